"""The order-parameter equations for any σ and h: their expectations by a rule of points, with the error it makes.

Fields are λ = Rz + (Q − RRᵀ)^½ξ and z, for standard normal (z, ξ) of N + r numbers. A rule has points and weights for
them: up to three numbers and smooth functions, a product of Gauss–Hermite rules; else scrambled Sobol points, in pairs
±. The equations are solved once for each of several rules, that differ in size or in their scramble; the mean is the
answer, and how far they are apart its error. Right-hand sides as in `equations`, M(N + r)² flops for M points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged, NoTheorem
from lazyscope.limits.sgd.order_parameters.machine import Machine, diverges
from lazyscope.problems import MultiIndex
from lazyscope.progress import report
from lazyscope.regimes import Trained

MOST = 16
"""Neurons: a rule of 2¹³ points and its 16² products."""
_SCRAMBLES, _POINTS = 4, 1 << 12  # and as many again with the other sign
_NODES = {2: (96, 72), 3: (32, 26)}  # of Gauss and Hermite along each axis, by the number of variables
_LOOK, _ENOUGH, _MOST = 500, 5_000, 1_000_000  # evaluations: between looks, before a judgement, and in all
# of the integration, a step, relative and absolute: a thousandth of what the rules leave, and no less, as the slopes of
# a σ with a kink jump wherever a sample crosses it
_TOLERANCES = {"quadrature": (1e-6, 1e-9), "sampling": (1e-5, 1e-7)}
Rule = tuple[FloatArray, FloatArray]


def rules(variables: int, smooth: bool) -> list[Rule]:
    """Return points, (M, variables), and weights whose sum is 1: several rules, to tell what one of them is worth.

    >>> for points, weights in rules(2, smooth=True):
    ...     print(len(points), f"{weights @ points[:, 0] ** 4:.6f}")  # E z⁴ = 3
    9216 3.000000
    5184 3.000000
    """
    if smooth and variables in _NODES:
        return [_product(nodes, variables) for nodes in _NODES[variables]]
    from scipy.special import ndtri
    from scipy.stats import qmc

    rules = []
    for number in range(_SCRAMBLES):
        uniform = qmc.Sobol(variables, scramble=True, seed=number).random(_POINTS)
        half = ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12))
        rules.append((np.concatenate([half, -half]), np.full(2 * _POINTS, 0.5 / _POINTS)))
    return rules


def _product(nodes: int, variables: int) -> Rule:
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    grid, weights = np.meshgrid(*[x] * variables, indexing="ij"), w
    for _ in range(variables - 1):
        weights = np.multiply.outer(weights, w)
    return np.stack([axis.ravel() for axis in grid], axis=1), weights.ravel()


@dataclass(frozen=True, eq=False)
class Estimated:
    """f̂ = Σ a_i σ(λ_i) + c against y = h(z) + ε, with expectations by rules; states are those of `Machine`."""

    problem: MultiIndex
    sigma: Activation
    N: int
    trained: bool = False
    offset: bool = True

    @classmethod
    def of(cls, problem: MultiIndex, regime: Trained, N: int, trained: bool = False, offset: bool = True) -> Estimated:
        """Return the machine, for any σ with a derivative."""
        theorem = "The limit of SGD"
        if not regime.activation.has_derivative:
            raise NoTheorem.of(theorem, "σ with a derivative", regime.activation.name, "Use another σ.")
        if N > MOST:
            needs = f"at most {MOST} neurons where it has no closed form"
            raise NoTheorem.of(theorem, needs, f"N = {N}, σ = {regime.activation.name}", "Use simulate.")
        return cls(problem, regime.activation, N, trained, offset)

    @property
    def shape(self) -> Machine:
        """Return what shapes and starts a state: the closed-form machine of the same sizes."""
        mean = self.problem.mean if self.offset else 0.0
        return Machine(0, 1.0, self.N, np.ones(self.problem.indices), mean, self.problem.noise, self.problem.energy)

    @property
    def how(self) -> str:
        """How expectations are taken, in a word."""
        return "quadrature" if self._smooth and self.N + self.problem.indices in _NODES else "sampling"

    @property
    def _smooth(self) -> bool:
        link = self.problem.link
        kinked = isinstance(self.problem.neuron, Activation) and bool(self.problem.neuron.kinks)
        return not (self.sigma.kinks or kinked or (callable(link) and self.problem.indices > 1))

    def solved(self, start: FloatArray, times: FloatArray, step: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mean states at ascending times, (times, state), E[(f̂ − f)²] there, and its error."""
        paths, errors = [], []
        for rule in rules(self.N + self.problem.indices, self._smooth):
            paths.append(self._path(rule, start, times, step))
            errors.append([self._moments(rule, state)[0] for state in paths[-1]])
        several = np.asarray(errors)
        if self.how == "quadrature":
            apart = np.abs(several[0] - several[1])
            return paths[0], several[0], apart
        return np.mean(paths, axis=0), several.mean(axis=0), several.std(axis=0, ddof=1) / np.sqrt(len(several))

    def squared_error(self, states: FloatArray) -> FloatArray:
        """E[(f̂ − f)²] of each state, the mean over the rules."""
        some = rules(self.N + self.problem.indices, self._smooth)
        return np.array([np.mean([self._moments(rule, state)[0] for rule in some]) for state in states])

    def _path(self, rule: Rule, start: FloatArray, times: FloatArray, step: float) -> FloatArray:
        speed = step if step > 0.0 else 1.0

        def moved(t: float, state: FloatArray) -> FloatArray:
            return np.asarray(speed * self._rates(rule, state, step))

        return integrated(moved, start, times, step, *_TOLERANCES[self.how])

    def _fields(self, rule: Rule, state: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return λ, z and the residual ρ at the points of a rule."""
        N, r = self.N, self.problem.indices
        Q, R, a, _ = self.shape.split(state)
        values, vectors = np.linalg.eigh(0.5 * (Q + Q.T) - R @ R.T)
        z = rule[0][:, :r]
        fields = z @ R.T + rule[0][:, r:] @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        wanted = self.problem.h(z[:, 0] if r == 1 else z) + self.problem.mean
        return fields, z, self.sigma(fields) @ a + state[N * (N + r) + N] - wanted

    def _moments(self, rule: Rule, state: FloatArray) -> tuple[float, float]:
        """E[ρ²] and E[ρ], without the noise of the label."""
        residual = self._fields(rule, state)[2]
        return float(rule[1] @ residual**2), float(rule[1] @ residual)

    def _rates(self, rule: Rule, state: FloatArray, step: float) -> FloatArray:
        """Return d(Q, R, a, k)/d(ηt) in a row, as `equations.rates` does."""
        N, r, weight = self.N, self.problem.indices, rule[1]
        a = state[N * (N + r) : N * (N + r) + N]
        fields, z, residual = self._fields(rule, state)
        slopes = self.sigma.derivative(fields) * a
        pulled = slopes * (weight * residual)[:, None]
        along = pulled.T @ fields
        Q = -along - along.T
        if step > 0.0:
            noise = self.problem.noise**2
            Q = Q + step * (slopes * (weight * (residual**2 + noise))[:, None]).T @ slopes
        out = np.zeros_like(state)
        out[: N * N], out[N * N : N * (N + r)] = Q.ravel(), -(pulled.T @ z).ravel()
        if self.trained:
            out[N * (N + r) : N * (N + r) + N] = -self.sigma(fields).T @ (weight * residual)
        if self.offset:
            out[-1] = -float(weight @ residual)
        return out


def integrated(
    moved: Callable[[float, FloatArray], FloatArray],
    start: FloatArray,
    times: FloatArray,
    step: float,
    rtol: float = 1e-6,
    atol: float = 1e-9,
) -> FloatArray:
    """Integrate to ascending times, (times, state); overlaps that grow without bound are refused.

    So are equations that move too fast for their time, as those of a target 10⁴ times larger than the neurons: they
    would take hours. After 5,000 evaluations a two-hundredth of the time must have passed, and so on.
    """
    from scipy.integrate import solve_ivp

    if not times[-1] > 0.0:
        return np.repeat(start[None], times.size, axis=0)
    last, done = float(times[-1]), 0
    lost, message = diverges(step, last)

    def counted(t: float, state: FloatArray) -> FloatArray:
        nonlocal done
        done += 1
        if done % _LOOK == 0:
            report(round(100.0 * t / last), 100, f"equations of SGD, t = {t:.3g} of {last:.3g}")
            if done >= _ENOUGH and done * last > _MOST * t:
                raise NotConverged(
                    f"The equations of SGD are too fast: {done:,} evaluations came to t = {t:.2g} of {last:g}. "
                    "Scale the target to the size of the neurons, or pass a smaller step size or earlier times."
                )
        return moved(t, state)

    with np.errstate(all="ignore"):
        try:
            solved = solve_ivp(counted, (0.0, last), start, "RK45", times, events=lost, rtol=rtol, atol=atol)
        except np.linalg.LinAlgError:  # overlaps that are no numbers any more
            raise NotConverged(message) from None
    if solved.status != 0 or not np.all(np.isfinite(solved.y)):
        raise NotConverged(message)
    return np.asarray(solved.y.T)

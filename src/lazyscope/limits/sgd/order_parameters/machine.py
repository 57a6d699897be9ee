"""A student network of N neurons and its teacher: what is fixed while the overlaps move, and the way they go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, NotConverged, NoTheorem
from lazyscope.problems import MultiIndex
from lazyscope.regimes import Trained
from lazyscope.weights import generator

_KINDS = {"erf": (0, 2.0), "erf2": (0, 1.0), "relu": (1, 1.0), "square": (2, 1.0)}  # of `integrals`, and 2κ² for erf
_RELATIVE, _ABSOLUTE = 1e-10, 1e-13  # of the integration, a step
_LOST = 1e8  # an overlap that does not come back
LAST = 1e5  # time, and η times time: a step of the integration is of order 1 in either
MOST = 64  # neurons: N²(N + r)²/4 integrals each time


@dataclass(frozen=True, eq=False)
class Machine:
    """f̂ = Σ_i a_i σ(λ_i) + c against y = Σ_m b_m σ(z_m) − `mean` + ε, fields λ_i = ⟨w_i, x⟩ and z_m = ⟨u_m, x⟩.

    Its state is (Q, R, a, k) in a row, k = c + `mean`: Q_ij = ⟨w_i, w_j⟩ and R_im = ⟨w_i, u_m⟩.
    """

    kind: int
    scale: float
    N: int
    b: FloatArray
    mean: float
    noise: float
    energy: float
    trained: bool = False
    offset: bool = True

    @staticmethod
    def serves(problem: MultiIndex, regime: Trained) -> bool:
        """Say whether network and target have neurons alike, of a σ whose integrals have closed forms."""
        sigma = regime.activation.name
        if not isinstance(regime.activation.name_or_callable, str) or sigma not in _KINDS:
            return False
        twice = sigma == "square" and problem.link == "he2"
        return twice or (problem.neuron is not None and problem.neuron.name == sigma)

    @classmethod
    def of(cls, problem: MultiIndex, regime: Trained, N: int, trained: bool = False, offset: bool = True) -> Machine:
        """Return the machine of a problem and a regime, where the integrals are known.

        >>> Machine.of(MultiIndex(50, "committee-erf", indices=2), Trained("erf"), 3).b
        array([1., 1.])
        """
        theorem, sigma = "The limit of SGD", regime.activation.name
        if not cls.serves(problem, regime):
            needs = f"neurons alike in network and target, of {', '.join(_KINDS)}"
            raise NoTheorem.of(theorem, needs, f"{sigma} on {str(problem).split(',')[0]}", "Use simulate.")
        b = np.array([np.sqrt(0.5)]) if problem.neuron is None else np.ones(problem.indices)  # he₂ = (z² − 1)/√2
        if N > MOST:
            raise NoTheorem.of(theorem, f"at most {MOST} neurons, N fixed as d → ∞", N, "Use simulate.")
        kind, scale = _KINDS[sigma]
        mean = float(b.sum()) if kind == 2 else problem.mean
        return cls(kind, scale, N, b, mean if offset else 0.0, problem.noise, problem.energy, trained, offset)

    @property
    def shape(self) -> Machine:
        """What shapes and starts a state: itself."""
        return self

    @property
    def how(self) -> str:
        """How expectations are taken, in a word."""
        return "closed forms"

    @property
    def r(self) -> int:
        """The number of teachers."""
        return self.b.size

    def start(self, Q: FloatArray, R: FloatArray) -> FloatArray:
        """Return the state with these overlaps, a = 1 and c = 0."""
        return np.concatenate([Q.ravel(), R.ravel(), np.ones(self.N), [self.mean]])

    def drawn(self, d: int, init: float, seed: int, draw: int) -> FloatArray:
        """Return the state of the weights that `simulate` draws: w_i ~ N(0, init²I/d), from (seed, draw, N)."""
        W = init * generator(seed, draw, self.N).standard_normal((self.N, d)) / np.sqrt(d)
        return self.start(W @ W.T, W[:, : self.r])

    def split(self, states: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return Q, R, a and c of each state."""
        N, n = self.N, self.N + self.r
        Q, R, a, k = np.split(states, [N * N, N * n, N * n + N], axis=-1)
        shape = states.shape[:-1]
        return Q.reshape(*shape, N, N), R.reshape(*shape, N, self.r), a, k[..., 0] - self.mean

    def solved(self, start: FloatArray, times: FloatArray, step: float) -> tuple[FloatArray, FloatArray, None]:
        """Return the states at ascending times, E[(f̂ − f)²] there, and no error: that of the integration is 10⁻¹⁰."""
        states = self.path(start, times, step)
        return states, self.squared_error(states), None

    def squared_error(self, states: FloatArray) -> FloatArray:
        """E[(f̂ − f)²] of each state, without the noise of the label."""
        from lazyscope.limits.sgd.order_parameters.equations import covariance, squared_error

        n, errors = self.N + self.r, []
        for state in states:
            D = np.concatenate([state[self.N * n : self.N * n + self.N], -self.b])
            errors.append(squared_error(self.kind, covariance(state, self.N, self.r, self.scale), D, float(state[-1])))
        return np.asarray(np.maximum(errors, 0.0))

    def path(self, start: FloatArray, times: FloatArray, step: float) -> FloatArray:
        """Return the states at ascending times t = steps/d, or t = η·steps/d for η = `step` = 0: (times, state).

        DOP853 with a relative error of 10⁻¹⁰ a step: some 6 right-hand sides for each unit of ηt, each of N²(N+r)²/4
        integrals. Memory: that of the states returned.
        """
        from scipy.integrate import solve_ivp

        from lazyscope.limits.sgd.order_parameters.equations import rates

        speed, how = (step if step > 0.0 else 1.0), (self.b, self.N, self.scale, self.noise, step)
        flags = int(self.trained), int(self.offset)

        def moved(t: float, state: FloatArray) -> FloatArray:
            return np.asarray(speed * rates(self.kind, state, *how, *flags))

        if not times[-1] > 0.0:
            return np.repeat(start[None], times.size, axis=0)
        lost, message = diverges(step, float(times[-1]))
        with np.errstate(all="ignore"):
            solved = solve_ivp(
                moved, (0.0, float(times[-1])), start, "DOP853", times, events=lost, rtol=_RELATIVE, atol=_ABSOLUTE
            )
        if solved.status != 0 or not np.all(np.isfinite(solved.y)):
            raise NotConverged(message)
        return np.asarray(solved.y.T)


def check_length(owner: str, last: float, step: float) -> None:
    """Refuse an integration of more than 10⁵ units of ηt: minutes without a word.

    >>> check_length("limit", 1.0, 1e6)
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The step_size parameter of limit must keep η·t at most 100000, t in units of d \
steps. Got η = 1e+06 until t = 1 instead. Pass a smaller step size or earlier times.
    """
    if not step * last <= LAST:
        must = f"keep η·t at most {LAST:g}, t in units of d steps"
        got = f"η = {step:g} until t = {last:g}"
        raise InvalidParameter.of(owner, "step_size", must, got, "Pass a smaller step size or earlier times.")


def diverges(step: float, until: float) -> tuple[Callable[[float, FloatArray], float], str]:
    """Return the event at which an integration has left every solution, and what is then said."""

    def lost(t: float, state: FloatArray) -> float:
        return _LOST - float(np.max(np.abs(state)))

    lost.terminal = True  # type: ignore[attr-defined]
    return lost, (
        f"SGD diverges with the step size {step:g}, before t = {until:.3g}: the weights grow without bound. "
        "Pass a smaller step size."
    )

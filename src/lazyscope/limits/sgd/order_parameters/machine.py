"""A student network of N neurons and its teacher: what is fixed while the overlaps move, and the way they go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged, NoTheorem
from lazyscope.problems import MultiIndex
from lazyscope.regimes import Trained
from lazyscope.weights import generator

_KINDS = {"erf": (0, 2.0), "erf2": (0, 1.0), "relu": (1, 1.0), "square": (2, 1.0)}  # of `integrals`, and 2κ² for erf
_RELATIVE, _ABSOLUTE = 1e-10, 1e-13  # of the integration, a step
_LOST = 1e8  # an overlap that does not come back
LAST = 1e5  # time: a step of the integration is of order 1
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

    @classmethod
    def of(cls, problem: MultiIndex, regime: Trained, N: int, trained: bool = False, offset: bool = True) -> Machine:
        """Return the machine of a problem and a regime, where the integrals are known.

        >>> Machine.of(MultiIndex(50, "committee-erf", indices=2), Trained("erf"), 3).b
        array([1., 1.])
        """
        theorem, sigma = "The limit of SGD", regime.activation.name
        if not isinstance(regime.activation.name_or_callable, str) or sigma not in _KINDS:
            raise NoTheorem.of(theorem, f"σ from {', '.join(_KINDS)}", sigma, "Use simulate.")
        if regime.alpha is not None:
            raise NoTheorem.of(theorem, "no output scale", f"α = {regime.alpha:g}", "Use simulate.")
        if sigma == "square" and problem.link == "he2":
            b = np.array([np.sqrt(0.5)])
        elif problem.neuron is not None and problem.neuron.name == sigma:
            b = np.ones(problem.indices)
        else:
            target = f"a target of neurons like those of the network, {sigma} or committee-{sigma}"
            raise NoTheorem.of(theorem, target, str(problem).split(",")[0], "Use simulate.")
        if N > MOST:
            raise NoTheorem.of(theorem, f"at most {MOST} neurons, N fixed as d → ∞", N, "Use simulate.")
        kind, scale = _KINDS[sigma]
        mean = float(b.sum()) if kind == 2 else problem.mean
        return cls(kind, scale, N, b, mean if offset else 0.0, problem.noise, problem.energy, trained, offset)

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

        def lost(t: float, state: FloatArray) -> float:
            return _LOST - float(np.max(np.abs(state)))

        lost.terminal = True  # type: ignore[attr-defined]
        if not times[-1] > 0.0:
            return np.repeat(start[None], times.size, axis=0)
        with np.errstate(all="ignore"):
            solved = solve_ivp(
                moved, (0.0, float(times[-1])), start, "DOP853", times, events=lost, rtol=_RELATIVE, atol=_ABSOLUTE
            )
        if solved.status != 0 or not np.all(np.isfinite(solved.y)):
            raise NotConverged(
                f"SGD diverges with the step size {step:g}, before t = {float(times[-1]):.3g}: the weights grow "
                "without bound. Pass a smaller step size."
            )
        return np.asarray(solved.y.T)

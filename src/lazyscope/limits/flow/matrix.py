"""Gradient flow of a network with σ = u² on the quadratic target: a matrix Riccati equation and two scalars.

The network is f = a⟨K, xxᵀ⟩ + c, with K = WWᵀ. With E = aK − B and s = Tr E + c − b₀ the population risk is
L = 2‖E‖² + s² (Ghorbani et al. 2019, §2.3), and gradient flow in the paper's parametrisation is

    Ẇ = −4a(2E + sI)W,    ȧ = −4⟨E, K⟩ − 2s Tr K   (or a fixed),    ċ = −2μs,

where μ = 1 but for a rescaled offset. Given a(t) and s(t), K is the closed form of `flow_riccati` in the eigenbasis of
B, with λ_i = 8b_iτ − θ, τ = ∫a, θ = 4∫as. What is left are one or two scalar functions of time, which `flow_newton`
finds on Chebyshev points, panel by panel of log t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.limits.flow.moments import Bins, Moment, Panel
from lazyscope.limits.flow.newton import COARSEST, Newton
from lazyscope.limits.flow.panels import Clock
from lazyscope.limits.flow.riccati import Riccati, riccati
from lazyscope.limits.flow.typical import typical

_SHORTEST, _LONGEST = 1.0005, 30.0  # t₁/t₀ of a panel
_ORDER = 8.0  # in log t₁/t₀, of what a panel leaves, as it looks when it is near the tolerance
_AIM = 0.25  # of the tolerance
_TRUSTED = 1.5  # of shorter panels the guess has nothing to say: it may jump where the truth does not
_MANY, _COARSE = 100, 1e-5  # d and tolerance from which on shifts from typical weights may be interpolated
_GIVE_UP = 1.1  # t₁/t₀ below which they are not
_SAFETY = 0.4  # the estimated error may be short of the true one
_MOST_PANELS = 3000


@dataclass(frozen=True, eq=False)
class Start:
    """Where the flow starts, in the eigenbasis of B.

    b is the spectrum, ascending; W, (d, N), gives K = WWᵀ, or None stands for typical weights, Gaussian with E K = γI,
    at N = width. μ = offset_rate.
    """

    b: FloatArray
    W: FloatArray | None
    a: float = 1.0
    c: float = 0.0
    b0: float = 0.0
    trained_layer: bool = False
    offset_rate: float = 1.0
    typical_gamma: float = 1.0
    typical_width: float = np.inf

    @property
    def energy(self) -> float:
        """2‖B‖², the risk of the best constant."""
        return 2.0 * float(self.b @ self.b)

    @cached_property
    def gamma(self) -> float:
        """Mean entry of diag K."""
        return self.typical_gamma if self.W is None else float(np.sum(self.W**2)) / self.b.size

    @cached_property
    def width(self) -> float:
        """N, of Gaussian weights: the one with the same ‖K‖² = dγ²(1 + d/N), where the weights are given."""
        if self.W is None:
            return self.typical_width
        d, spread = self.b.size, float(self.moment.sums[2]) / (self.b.size * self.gamma**2) - 1.0
        return min(d / max(spread, 1e-12), float(self.W.shape[1])) if self.W.shape[1] < d else d / max(spread, 1e-12)

    @cached_property
    def groups(self) -> Bins:
        """The spectrum in groups for the guess; one by one, where there are no weights and the guess is the answer."""
        return Bins.of(self.b) if self.W is not None else Bins.each(self.b)

    @cached_property
    def moment(self) -> Moment:
        """The start as a moment of the flow."""
        if self.W is None:
            zero = np.zeros((1, self.b.size))
            one = typical(zero, zero, self.typical_gamma, self.typical_width)
            k, norm = one.diagonal[0], float(one.norm[0])
        else:
            k = np.einsum("ij,ij->i", self.W, self.W)
            gram = self.W.T @ self.W if self.W.shape[1] < self.b.size else self.W @ self.W.T
            norm = float(np.sum(gram**2))
        s = self.a * float(k.sum()) - float(self.b.sum()) - self.b0 + self.c
        still, sums = np.zeros_like(k), np.array([k.sum(), k @ self.b, norm])
        return Moment(0.0, s, self.a, self.c, 0.0, 0.0, still, np.zeros_like(self.groups.b), k, sums)


@dataclass(frozen=True, eq=False)
class Curve:
    """A solved flow: values at any times up to its end by interpolation, and K itself at any time.

    `evaluations` is the number of matrices K that were computed: nearly all of the cost.
    """

    start: Start
    K: Riccati | None
    panels: tuple[Panel, ...]
    evaluations: int

    def at(self, name: str, times: FloatArray) -> FloatArray:
        """Return a quantity of the panels, such as "risk", at some times."""
        ends = np.array([panel.clock.end for panel in self.panels])
        which = np.minimum(np.searchsorted(ends, times), len(ends) - 1)
        values = [self.panels[k].at(name, times[which == k]) for k in np.unique(which)]
        return np.concatenate(values) if values else np.zeros(0)

    def matrix(self, time: float) -> FloatArray:
        """Return G = aK at one time, in the eigenbasis of B."""
        if self.K is None:
            raise InvalidParameter.of("flow", "start", "have weights for a matrix to exist", "typical weights")
        one = np.array([time])
        tau, theta, a = (float(self.at(name, one)[0]) for name in ("tau", "theta", "a"))
        u = np.maximum(self.at("u", one)[0], 0.0)
        return a * self.K(8.0 * self.start.b * tau - theta, u).full


def solve(start: Start, until: float, tolerance: float = 1e-5) -> Curve:
    """Return the flow from t = 0 to `until`, its normalised risk within about `tolerance`.

    >>> b = np.array([0.5, 1.0, 2.0])
    >>> curve = solve(Start(b, 0.1 * np.eye(3), b0=-b.sum()), until=100.0)
    >>> bool(curve.at("risk", np.array([100.0]))[0] < 1e-8)
    True
    """
    from threadpoolctl import threadpool_limits

    # NumPy and SciPy bring a BLAS each, and the threads of the one that waits spin: several times slower
    with threadpool_limits(1, user_api="blas"):
        K = None if start.W is None else riccati(start.W)
        walker = _Walker(start, K, tolerance)
        panels = tuple(walker.walk(until))
    return Curve(start, K, panels, walker.evaluations)


class _Walker:
    """Panel after panel, each as long as the tolerance allows."""

    def __init__(self, start: Start, K: Riccati | None, tolerance: float) -> None:
        self.start, self.K, self.tolerance, self.evaluations = start, K, tolerance, 0
        self.stride = COARSEST if start.b.size >= _MANY and tolerance >= _COARSE else 0

    def walk(self, until: float) -> Iterator[Panel]:
        """Yield panels from t = 0 to at least `until`."""
        before: Panel | None = None
        end, ratio = min(until, 0.3 / self._fastest()), 6.0
        for _ in range(_MOST_PANELS):
            begin = 0.0 if before is None else before.clock.end
            if begin >= until:
                return
            panel, tail = self._solved(Clock(begin, end), before, ratio > _TRUSTED)
            # too long is mostly found out before any K is computed, by the tail of the guess
            factor = (_AIM * self.tolerance / tail) ** (1.0 / _ORDER) if tail > 0.0 else np.inf
            if panel is not None and panel.error < self.tolerance * _SAFETY:
                before = panel
                yield panel
                ratio = min(ratio ** float(np.clip(factor, 0.7, 1.6)), _LONGEST)
            elif before is None:
                end, self.stride = 0.5 * end, 0
                continue
            else:
                ratio **= float(np.clip(factor, 0.6, 0.85))
                if self.stride and ratio < _GIVE_UP:
                    self.stride, ratio = 0, _TRUSTED
                if ratio < _SHORTEST:
                    break
            end = min(before.clock.end * ratio, max(until, before.clock.end * _SHORTEST))
        raise NotConverged(
            f"The flow was not resolved at t = {end:.3g} to {self.tolerance:g}. Pass a larger tolerance."
        )

    def _fastest(self) -> float:
        """Return the fastest rate at the start: that of Tr K, of a and c together, or of the largest eigenvalue."""
        one, first = self.start, self.start.moment
        T = float(first.diagonal.sum())
        a = abs(one.a) + abs(4.0 * float(one.b @ first.diagonal)) / (1.0 + T * T) * one.trained_layer
        return 2.0 * one.offset_rate + 2.0 * T * T + 8.0 * a * a * T + 16.0 * a * float(np.max(np.abs(one.b)))

    def _solved(self, clock: Clock, before: Panel | None, trust: bool) -> tuple[Panel | None, float]:
        """Solve one panel, None where Newton's method gave up; and what it leaves, as far as that was seen."""
        first = self.start.moment if before is None else before.last
        work = Newton(self.start, self.K, clock, first, self.tolerance, trust, self.stride)
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                panel = work.solve()
                self.stride = min(2 * work.stride, COARSEST) if panel.error < 0.1 * self.tolerance else work.stride
                return panel, panel.error
        except (FloatingPointError, np.linalg.LinAlgError, NotConverged):
            return None, work.tail
        finally:
            self.evaluations += work.evaluations

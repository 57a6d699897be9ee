"""Gradient flow of a network with σ = u² on the quadratic target: a matrix Riccati equation and two scalars.

The network is f = a⟨K, xxᵀ⟩ + c, with K = WWᵀ. With E = aK − B and s = Tr E + c − b₀ the population risk is
L = 2‖E‖² + s² (Ghorbani et al. 2019, §2.3), and gradient flow in the paper's parametrisation is

    Ẇ = −4a(2E + sI)W,    ȧ = −4⟨E, K⟩ − 2s Tr K   (or a fixed),    ċ = −2μs,

where μ = 1 but for a rescaled offset. Given a(t) and s(t), K is the closed form of `riccati` in the eigenbasis of
B, with λ_i = 8b_iτ − θ, τ = ∫a, θ = 4∫as. What is left are one or two scalar functions of time, which `newton`
finds on Chebyshev points, panel by panel of log t.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.limits.flow import constants
from lazyscope.limits.flow.moments import Panel, Start
from lazyscope.limits.flow.newton import Newton
from lazyscope.limits.flow.panels import Clock
from lazyscope.limits.flow.riccati import Riccati, riccati
from lazyscope.numerics.blas import threads_for


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
        """Return a quantity of the panels, such as "risk", at some ascending times."""
        return self.several((name,), times)[name]

    def several(self, names: Iterable[str], times: FloatArray) -> dict[str, FloatArray]:
        """Return quantities of the panels by name at some ascending times: one interpolation serves them all."""
        ends = np.array([panel.clock.end for panel in self.panels])
        cuts = np.append(0, np.searchsorted(times, ends[:-1], side="right"))
        parts = [(panel, *cut) for panel, cut in zip(self.panels, pairwise([*cuts, times.size]), strict=True)]
        weights = [(panel, panel.weights(times[i:j])) for panel, i, j in parts if i < j]
        return {name: np.concatenate([at @ getattr(panel, name) for panel, at in weights]) for name in names}

    def matrix(self, time: float) -> FloatArray:
        """Return G = aK at one time, in the eigenbasis of B."""
        if self.K is None:
            raise InvalidParameter.of("flow", "start", "have weights for a matrix to exist", "typical weights")
        now = np.array([time])
        values = self.several(("tau", "theta", "a", "u"), now)
        tau, theta, a = (float(values[name][0]) for name in ("tau", "theta", "a"))
        u = np.maximum(values["u"][0], 0.0)
        return a * self.K(8.0 * self.start.b * tau - theta, u).full


def solve(start: Start, until: float, tolerance: float = 1e-5) -> Curve:
    """Return the flow from t = 0 to `until`, its normalised risk within about `tolerance`.

    >>> b = np.array([0.5, 1.0, 2.0])
    >>> curve = solve(Start(b, 0.1 * np.eye(3), b0=-b.sum()), until=100.0)
    >>> bool(curve.at("risk", np.array([100.0]))[0] < 1e-8)
    True
    """
    # NumPy and SciPy bring a BLAS each, and the threads of the one that waits spin: several times slower
    with threads_for(0) if start.W is not None else nullcontext():  # without weights there is no matrix of size d
        K = None if start.W is None else riccati(start.W, start.gram)
        walker = _Walker(start, K, tolerance)
        panels = tuple(walker.walk(until))
    return Curve(start, K, panels, walker.evaluations)


class _Walker:
    """Panel after panel, each as long as the tolerance allows."""

    def __init__(self, start: Start, K: Riccati | None, tolerance: float) -> None:
        self.start, self.K, self.tolerance, self.evaluations = start, K, tolerance, 0
        many, coarse = constants.MANY_DIMENSIONS, constants.COARSE_TOLERANCE
        self.stride = constants.STRIDE if start.b.size >= many and tolerance >= coarse else 0

    def walk(self, until: float) -> Iterator[Panel]:
        """Yield panels from t = 0 to at least `until`."""
        before: Panel | None = None
        end, length = min(until, constants.FIRST_PANEL / self._fastest()), constants.FIRST_LENGTH
        for _ in range(constants.MOST_PANELS):
            begin = 0.0 if before is None else before.clock.end
            if begin >= until:
                return
            panel, tail = self._solved(Clock(begin, end), before, length > constants.TRUSTED)
            # too long is mostly found out before any K is computed, by the tail of the guess
            factor = (constants.AIM * self.tolerance / tail) ** (1.0 / constants.ERROR_ORDER) if tail > 0.0 else np.inf
            if panel is not None and panel.error < self.tolerance * constants.ACCEPTED:
                before = panel
                yield panel
                length = min(length ** float(np.clip(factor, *constants.AFTER_SUCCESS)), constants.LONGEST)
            elif before is None:
                end, self.stride = 0.5 * end, 0
                continue
            else:
                length **= float(np.clip(factor, *constants.AFTER_FAILURE))
                if self.stride and length < constants.GIVE_UP:
                    self.stride, length = 0, constants.TRUSTED
                if length < constants.SHORTEST:
                    break
            end = min(before.clock.end * length, max(until, before.clock.end * constants.SHORTEST))
        raise NotConverged(
            f"The flow was not resolved at t = {end:.3g} to {self.tolerance:g}. Pass a larger tolerance."
        )

    def _fastest(self) -> float:
        """Return the fastest rate at the start: that of Tr K, of a and c together, or of the largest eigenvalue."""
        start, first = self.start, self.start.moment
        T = float(first.diagonal.sum())
        a = abs(start.a) + abs(4.0 * float(start.b @ first.diagonal)) / (1.0 + T * T) * start.trained_layer
        return 2.0 * start.offset_rate + 2.0 * T * T + 8.0 * a * a * T + 16.0 * a * float(np.max(np.abs(start.b)))

    def _solved(self, clock: Clock, before: Panel | None, trust: bool) -> tuple[Panel | None, float]:
        """Return the panel, None where Newton's method gave up, and the error that it leaves where that was seen."""
        first = self.start.moment if before is None else before.last
        work = Newton(self.start, self.K, clock, first, self.tolerance, trust, self.stride)
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                panel = work.solve()
                self.stride = min(2 * work.stride, constants.STRIDE) if work.spare else work.stride
                return panel, panel.error
        except (FloatingPointError, np.linalg.LinAlgError, NotConverged):
            return None, work.tail
        finally:
            self.evaluations += work.evaluations

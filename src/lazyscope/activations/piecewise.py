"""Piecewise linear activations: σ(u) = a + bu + Σ_j δ_j (u − κ_j)₊, and their Gaussian constants in closed form.

With h_j = κ_j/s, φ and Q the standard normal density and upper tail, and g ~ N(0, 1),

    c₀(s) = a + s Σ δ_j (φ(h_j) − h_j Q(h_j)),   c₁(s) = s (b + Σ δ_j Q(h_j)),
    c_k(s) = s Σ δ_j φ(h_j) he_{k−2}(h_j)/√(k(k−1)),   k ≥ 2,

as σ″ is a sum of point masses. A leaky ReLU, a hat or a staircase of slopes that is passed as a callable is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.orthant import below, density
from lazyscope.numerics.quadrature import hermite_functions, root_density

_STRAIGHT = 1e-12  # distance from a line, relative to σ, up to which it is one
_NEAR, _FAR = np.linspace(0.0, 8.0, 129)[1:], np.geomspace(16.0, 4096.0, 9)


@dataclass(frozen=True)
class PiecewiseLinear:
    """a, b, the knots κ_j and the bends δ_j of σ.

    >>> leaky = recognise(lambda u: np.where(u > 1, u, 0.1 * u + 0.9), (1.0,))
    >>> leaky.knots, [round(number, 12) for number in (leaky.constant, leaky.slope, *leaky.bends)]
    ((1.0,), [0.9, 0.1, 0.9])
    """

    constant: float
    slope: float
    knots: tuple[float, ...]
    bends: tuple[float, ...]

    @property
    def pieces(self) -> tuple[tuple[float, float], ...]:
        """(κ_j, δ_j), from left to right."""
        return tuple(zip(self.knots, self.bends, strict=True))

    def derivative(self, u: FloatArray) -> FloatArray:
        """σ′(u), at a knot from the right."""
        slopes = self.slope + np.cumsum([0.0, *self.bends])
        return np.asarray(slopes[np.searchsorted(self.knots, u, side="right")])

    def hermite_coefficients(self, s: FloatArray, degree: int) -> FloatArray:
        """c_k(s), k = 0 … degree, shape (degree + 1, *s.shape)."""
        c = np.zeros((max(degree, 1) + 1, *s.shape))
        c[0], c[1] = self.constant, self.slope * s
        k = np.arange(2.0, degree + 1).reshape(-1, *[1] * s.ndim)
        for knot, bend in self.pieces:
            h = knot / s
            c[0] += bend * (s * density(h) - knot * below(-h))
            c[1] += bend * s * below(-h)
            if degree >= 2:
                functions = hermite_functions(h.ravel(), degree - 2).reshape(degree - 1, *s.shape) * root_density(h)
                c[2:] += bend * s * functions / np.sqrt(k * (k - 1.0))
        return c[: degree + 1]

    def second_moment(self, s: FloatArray) -> FloatArray:
        """E[σ(sg)²]: with m = max(h, k), E[(g − h)₊(g − k)₊] = (1 + hk)Q(m) + (m − h − k)φ(m)."""
        c0, c1 = self.hermite_coefficients(s, 1)
        total = self.constant * (2.0 * c0 - self.constant) + self.slope * s * (2.0 * c1 - self.slope * s)
        for knot, bend in self.pieces:
            for other, turn in self.pieces:
                h, k, m = knot / s, other / s, max(knot, other) / s
                total = total + bend * turn * s * s * ((1.0 + h * k) * below(-m) + (m - h - k) * density(m))
        return np.asarray(total)

    def second_moment_slope(self, s: FloatArray, sigma: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """d/ds E[σ(sg)²] = 2s(E[σ′(sg)²] + E[σσ″]), and E[σσ″] = Σ δ_j σ(κ_j) φ(h_j)/s."""
        heights = sigma(np.array(self.knots))
        masses = sum(bend * y * density(knot / s) for (knot, bend), y in zip(self.pieces, heights, strict=True))
        return np.asarray(2.0 * s * self.slope_moments(s)[0] + 2.0 * masses)

    def slope_moments(self, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[σ′(sg)²] and E[σ′(sg)²g²]: slopes are constant between knots."""
        plain = np.full(s.shape, self.slope**2)
        weighted = plain.copy()
        slope = self.slope
        for knot, bend in self.pieces:
            h, jump = knot / s, (slope + bend) ** 2 - slope**2
            plain += jump * below(-h)
            weighted += jump * (below(-h) + h * density(h))
            slope += bend
        return plain, weighted


def recognise(function: Callable[[FloatArray], FloatArray], kinks: Sequence[float]) -> PiecewiseLinear | None:
    """Return σ as bends at its kinks, where it is a straight line between them and does not jump; otherwise None.

    It is looked at in some hundred points of every interval; 0 counts as a kink.

    >>> recognise(np.tanh, ()), recognise(np.sign, (0.0,))
    (None, None)
    """
    knots = np.unique([0.0, *kinks])
    parts = [knots[0] - np.concatenate([_NEAR, _FAR])[::-1]]
    parts += [np.linspace(left, right, 131)[1:-1] for left, right in pairwise(knots)]
    parts += [knots[-1] + np.concatenate([_NEAR, _FAR])]
    lines = []
    with np.errstate(all="ignore"):
        for u in parts:
            y = function(u)
            slope = (y[-1] - y[0]) / (u[-1] - u[0])
            if not np.all(np.abs(y[0] + slope * (u - u[0]) - y) <= _STRAIGHT * (1.0 + np.abs(y) + np.abs(slope * u))):
                return None
            at = u[np.argmin(np.abs(u))]
            lines.append((float(y[np.argmin(np.abs(u))] - slope * at), float(slope)))
    unit = 1.0 + max(abs(number) for line in lines for number in line)
    for knot, ((here, slope), (there, after)) in zip(knots, pairwise(lines), strict=True):
        if abs(here + slope * knot - there - after * knot) > 4.0 * _STRAIGHT * unit * (1.0 + abs(knot)):
            return None
    bends = np.diff([slope for _, slope in lines])
    turned = np.abs(bends) > _STRAIGHT * unit
    constant, slope = lines[0]
    return PiecewiseLinear(constant, slope, tuple(knots[turned].tolist()), tuple(bends[turned].tolist()))

"""The fixed point of random-features ridge regression, as one monotone equation, and what follows from it.

On the imaginary axis, ξ = iη with η² = ψ₁ψ₂λ̄, the paper's unknowns are ν_j = i b_j with b_j > 0, and both of its
equations say the same of c = b₁b₂ = −χ: with r = ζ²c/(1 + ζ²c) and h = c + r,

    δ_j = 1 − h/ψ_j = η b_j/ψ_j,      δ₁δ₂ = λ̄ c.                                                        (1)

The left-hand side falls from 1 and the right-hand side grows: one root, with h < min(ψ₁, ψ₂). Near zero ridge one of
the δ_j is a difference of nearly equal numbers, so they are not computed as such: (1) and δ₂ − δ₁ = h(1/ψ₁ − 1/ψ₂)
are a quadratic equation for the smaller one, δ, and what is solved is

    G(c) = h/m + δ(c) − 1 = 0,      m = min(ψ₁, ψ₂),                                                      (2)

an increasing function that is smooth down to λ̄ = 0, ψ₁ = ψ₂ included. With g = c h′(c) = h − r² the paper's
polynomials 𝓔₀, 𝓔₁, 𝓔₂ in χ, all three divided by −ψ₁ψ₂(1 + ζ²c)³, lose every minus sign:

    𝓔₀ → a = δ₁δ₂ + g(δ₁/ψ₂ + δ₂/ψ₁),
    𝓔₁ → (1 − r)(1 − r + cr/ψ₁),                      bias 𝓑 = 𝓔₁/𝓔₀,
    𝓔₂ → g²/ψ₁ψ₂ + r²(g/ψ₁ + δ₁)/ψ₂,                  variance 𝓥 = 𝓔₂/𝓔₀,

so that all of it is accurate to a few rounding errors, times ζ where the activation is nearly linear (ζ ≫ 1) and ψ
near 1: there c itself depends as strongly on ψ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged

_MOST_STEPS = 40  # seven are enough for ζ up to 10⁶, λ̄ from 0 to 10⁸ and ψ from 10⁻³ to 10⁴
_LAST_STEP = 1e-8  # relative; convergence is quadratic, so that what remains after it is below rounding
_HUGE = 1e100  # stands for infinity where infinity times zero would have to be a number
_BLOCK = 8192  # points at once: the two dozen arrays of a step stay in the second-level cache


@dataclass(frozen=True)
class FixedPoint:
    """c, and δ₁, δ₂ of (1), at every point of a grid: the whole state, from which both errors follow."""

    zeta: float
    psi1: FloatArray
    psi2: FloatArray
    c: FloatArray
    delta1: FloatArray
    delta2: FloatArray

    @property
    def errors(self) -> tuple[FloatArray, FloatArray]:
        """𝓑 and 𝓥; both infinite where ψ₁ = ψ₂ and λ̄ = 0, as there a = 0."""
        u1, u2 = 1.0 / self.psi1, 1.0 / self.psi2
        rest, r, g = self._parts
        with np.errstate(divide="ignore"):
            bias = rest * (rest + self.c * u1 * r) / self.a
            variance = ((g * u1) * (g * u2) + r**2 * (g * u1 + self.delta1) * u2) / self.a
        return bias, variance

    @property
    def a(self) -> FloatArray:
        """The denominator of both errors, the paper's 𝓔₀: δ₁δ₂ + g(δ₁/ψ₂ + δ₂/ψ₁)."""
        g = self._parts[2]
        return self.delta1 * self.delta2 + g * (self.delta1 / self.psi2 + self.delta2 / self.psi1)

    @property
    def _parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return 1 − r with all its digits, r and g."""
        rest = 1.0 / (1.0 + self.zeta**2 * self.c)
        r = self.zeta**2 * self.c * rest
        return rest, r, self.c + r * rest

    @property
    def error_slopes(self) -> tuple[FloatArray, FloatArray]:
        """d𝓑/dλ̄ and d𝓥/dλ̄ at fixed ψ₁, ψ₂: by (1), dc/dλ̄ = −c²/a and dδ_j = −(g/cψ_j)dc.

        A complex step does the rest: Im f(c + it)/t is f′(c) to rounding, as f is rational and t² vanishes beside 1.
        """
        t, g = 1e-30, self._parts[2]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # at the threshold, and at ψ ~ 1e300
            dc = -(self.c**2) / self.a
            moved: Any = [
                value + 1j * t * move
                for value, move in (
                    (self.c, dc),
                    (self.delta1, -g / self.c / self.psi1 * dc),
                    (self.delta2, -g / self.c / self.psi2 * dc),
                )
            ]
            bias, variance = FixedPoint(self.zeta, self.psi1, self.psi2, *moved).errors
        return bias.imag / t, variance.imag / t


def ridgeless(zeta: float, h: FloatArray, ridge: FloatArray | float = 0.0) -> FloatArray:
    """Return c with h(c) = h in closed form; with a ridge, that with h(c)/h + λ̄c = 1: the root of (1) at one ψ = ∞.

    >>> c = ridgeless(1.5, np.array([2.0]))
    >>> c + 1.5**2 * c / (1.0 + 1.5**2 * c)
    array([2.])
    """
    z, u = zeta**2, 1.0 / h
    e = u + ridge
    with np.errstate(invalid="ignore", divide="ignore"):  # in the branches that are not taken
        linear = e + z * np.where(np.isinf(h), -1.0, (1.0 - h) * u)
        root = np.hypot(linear, 2.0 * np.sqrt(z * e))
        return np.asarray(np.where(linear > 0.0, 2.0 / (linear + root), (root - linear) / (2.0 * z * e)))


@dataclass(frozen=True)
class Solution:
    """A fixed point with its residual |G|, whose terms add up to 1, and the number of steps, point by point."""

    point: FixedPoint
    residual: FloatArray
    iterations: NDArray[np.int64]


def solve(zeta: float, psi1: FloatArray, psi2: FloatArray, ridge: FloatArray) -> Solution:
    """Solve (2) by Newton's iteration in log c, at every point of broadcastable arrays; `ridge` is λ̄ = λ/b⋆².

    ψ = ∞ and λ̄ = 0 are points like others. It starts at the root for max(ψ₁, ψ₂) = ∞, a quadratic equation: an upper
    bound, exact at λ̄ = 0. A step is about 25 operations on arrays, in blocks that stay in the cache.

    >>> solved = solve(1.5, np.array([2.0]), np.array([2.0, 3.0]), np.array([0.1]))
    >>> solved.point.c.round(6), bool(solved.residual.max() < 1e-14)
    (array([0.794798, 0.92648 ]), True)
    """
    shape = np.broadcast_shapes(psi1.shape, psi2.shape, ridge.shape)
    psi1, psi2, ridge = (np.broadcast_to(values, shape) for values in (psi1, psi2, ridge))
    ridge = np.minimum(np.where(np.isinf(psi1) & np.isinf(psi2), np.maximum(ridge, 1.0 / _HUGE), ridge), _HUGE)
    flat = [values.ravel() for values in (psi1, psi2, ridge)]
    pieces = [
        _solved(zeta, *(values[start : start + _BLOCK] for values in flat)) for start in range(0, flat[0].size, _BLOCK)
    ]
    c, delta1, delta2, residual, iterations = (
        np.concatenate(part).reshape(shape) for part in zip(*pieces, strict=True)
    )
    return Solution(FixedPoint(zeta, psi1, psi2, c, delta1, delta2), residual, iterations)


def _solved(zeta: float, psi1: FloatArray, psi2: FloatArray, ridge: FloatArray) -> tuple[NDArray[Any], ...]:
    """Return c, δ₁, δ₂, |G| and the number of steps, on flat arrays."""
    m, larger = np.minimum(psi1, psi2), np.maximum(psi1, psi2)
    equation = _Equation(zeta**2, 1.0 / m, difference(m, larger), ridge)
    c = ridgeless(zeta, m, ridge)
    iterations = np.zeros(c.shape, dtype=np.int64)
    moving = np.ones(c.shape, dtype=bool)
    for _ in range(_MOST_STEPS):
        iterations += moving
        G, slope, _, _ = equation(c)
        step = G / slope
        c = np.where(moving, c * np.exp(-step), c)
        moving &= np.abs(step) > _LAST_STEP
        if not moving.any():
            break
    else:
        where = int(np.argmax(moving))
        raise NotConverged(
            f"The fixed point of ridge regression moved by {step[where]:.1e} in its step {_MOST_STEPS}, at "
            f"ψ₁ = {psi1[where]:g}, ψ₂ = {psi2[where]:g}, λ̄ = {ridge[where]:g}, ζ = {zeta:g}. Please report it."
        )
    G, _, delta, s = equation(c)
    narrow = psi1 <= psi2
    return c, np.where(narrow, delta, delta + s), np.where(narrow, delta + s, delta), np.abs(G), iterations


def difference(m: FloatArray, larger: FloatArray) -> FloatArray:
    """1/m − 1/larger without cancellation, both of which may be infinite."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.isinf(larger), 1.0 / m, (larger - m) / larger / m))


@dataclass(frozen=True)
class _Equation:
    """G, with z = ζ², u = 1/m and w = 1/m − 1/max(ψ₁, ψ₂)."""

    z: float
    u: FloatArray
    w: FloatArray
    ridge: FloatArray

    def __call__(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return G, dG/dlog c, δ and s = hw, the difference of the two δ_j; δ(δ + s) = λ̄c."""
        rest = 1.0 / (1.0 + self.z * c)
        r = self.z * c * rest
        h, g = c + r, c + r * rest
        s, x = h * self.w, self.ridge * c
        root = np.sqrt(s * s + 4.0 * x)  # = 2δ + s
        root = np.where(root > 0.0, root, 1.0)  # zero where ψ₁ = ψ₂ and λ̄ = 0: δ = 0
        delta = 2.0 * x / (s + root)
        slope = g * self.u + delta * (delta + self.w * r * r) / root
        return h * self.u + delta - 1.0, slope, delta, s

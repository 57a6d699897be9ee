"""Chebyshev points on a panel of time: interpolation, integrals, derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.flow import constants


@dataclass(frozen=True, eq=False)
class Rule:
    """Chebyshev–Lobatto points x₀ = 0 … x_p = 1, and what is done with functions given there, as matrices."""

    x: FloatArray
    integral: FloatArray  # (p + 1, p + 1): values → integrals from 0 to the points
    derivative: FloatArray
    coefficients: FloatArray  # values → Chebyshev coefficients
    from_inside: FloatArray  # (p + 1, p): values at all points but the first → at all, by a polynomial of degree p − 1

    def at(self, x: FloatArray) -> FloatArray:
        """Return the matrix that takes values at the points to values at x."""
        return np.asarray(np.polynomial.chebyshev.chebvander(2.0 * x - 1.0, self.x.size - 1) @ self.coefficients)


@cache
def rule(p: int | None = None) -> Rule:
    """Return the rule with p + 1 points, of a whole panel where p is left out.

    >>> cheb = rule(12)
    >>> bool(np.allclose(cheb.integral @ np.cos(cheb.x), np.sin(cheb.x), atol=1e-14))
    True
    >>> bool(np.allclose(cheb.derivative @ np.sin(cheb.x), np.cos(cheb.x), atol=1e-11))
    True
    """
    chebyshev, p = np.polynomial.chebyshev, p or constants.POINTS
    nodes = -np.cos(np.pi * np.arange(p + 1) / p)
    basis = np.eye(p + 1)
    coefficients: FloatArray = np.asarray(np.linalg.inv(chebyshev.chebvander(nodes, p)), dtype=np.float64)
    integrals = np.stack([chebyshev.chebval(nodes, chebyshev.chebint(unit, lbnd=-1.0)) for unit in basis], axis=1)
    slopes = np.stack([chebyshev.chebval(nodes, chebyshev.chebder(unit)) for unit in basis], axis=1)
    inside = chebyshev.chebvander(nodes, p - 1) @ np.linalg.inv(chebyshev.chebvander(nodes[1:], p - 1))
    inside[1:] = np.eye(p)
    return Rule(0.5 * (nodes + 1.0), 0.5 * integrals @ coefficients, 2.0 * slopes @ coefficients, coefficients, inside)


@dataclass(frozen=True, eq=False)
class Clock:
    """Time on a panel: t = t₀ + x(t₁ − t₀), or t₀(t₁/t₀)^x where the panel starts later than at 0."""

    start: float
    end: float

    def time(self, x: FloatArray) -> FloatArray:
        """Return the time at the place x of the panel."""
        if self.start == 0.0:
            return np.asarray(x * self.end)
        return np.asarray(self.start * (self.end / self.start) ** x)

    def speed(self, x: FloatArray) -> FloatArray:
        """Return dt/dx."""
        if self.start == 0.0:
            return np.full_like(x, self.end)
        return np.asarray(self.time(x) * np.log(self.end / self.start))

    def place(self, t: FloatArray) -> FloatArray:
        """Return the place x of a time."""
        if self.start == 0.0:
            return np.asarray(t / self.end)
        return np.asarray(np.log(t / self.start) / np.log(self.end / self.start))

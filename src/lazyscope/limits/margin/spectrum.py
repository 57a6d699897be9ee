"""Averages over the spectrum of the features: A(t) = ⟨λ/(λ + t)⟩ and B(t) = Σ_i α_i λ_i/(λ_i + t).

α_i is the share of the score's variance that the features carry along eigenvector i; Σα_i = r² ≤ 1 is what they see of
it. For random features, Σ = b₁²WWᵀ + b⋆²I with W of shape (N, d), rows uniform on the unit sphere, both averages are
closed forms in the Stieltjes transform of the Marchenko–Pastur law, exact without any spectrum: with z = (b⋆² + t)/b₁²,

    m = lim (1/d)Tr(WᵀW + z)⁻¹  solves  zm² + (z + ψ₁ − 1)m = 1,      ψ₁ = N/d,

    B = (1/d)Tr b₁²WᵀW(b₁²WᵀW + b⋆² + t)⁻¹ = 1 − zm = ψ₁m/(1 + m),
    A = (1/N)Tr Σ(Σ + t)⁻¹ = (b⋆² + y)/(b⋆² + t + y),      y = b₁²(1 − B).

Machine code: imported where it is used, as numba takes half a second to load.
"""

from __future__ import annotations

import math

from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import jitted


@jitted
def averages(t: float, law: FloatArray, points: FloatArray) -> tuple[float, ...]:
    """A, A′, A + tA′ = ⟨λ²/(λ+t)²⟩ and its slope; B, B′, B + tB′ − B² and its slope; 1 − B. Primes are slopes in t.

    `points` holds λ, its share and α in rows, and law[0] is 1 − Σα; without any column of points,
    law = (ψ₁, b₁², b⋆²) is that of random features. As t → 0 and r → 1, B → 1: the last three are then sums of what is
    small, so that they keep their digits.

    >>> import numpy as np
    >>> isotropic = np.ones((3, 1))
    >>> averages(1.0, np.zeros(3), isotropic)[:3]
    (0.5, -0.25, 0.25)
    >>> relu = np.array([3.0, 0.25, 0.0908450569])
    >>> print(*(f"{value:.6f}" for value in averages(0.1, relu, np.empty((3, 0)))[::4]))
    0.606474 0.746928 0.253072
    """
    if points.shape[1]:
        return _of_points(t, law[0], points)
    return _of_random_features(t, law[0], law[1], law[2])


@jitted
def _of_points(t: float, hidden: float, points: FloatArray) -> tuple[float, ...]:
    A = A1 = a = a1 = B = B1 = spread = spread1 = 0.0
    h, h1 = hidden, 0.0
    for k in range(points.shape[1]):
        total = points[0, k] + t
        part, rest = points[0, k] / total, t / total
        slope, square = -part / total, part * part
        square_slope = 2.0 * part * slope
        share, aligned = points[1, k], points[2, k]
        A += share * part
        A1 += share * slope
        a += share * square
        a1 += share * square_slope
        B += aligned * part
        B1 += aligned * slope
        h += aligned * rest
        h1 += aligned * part / total
        spread += aligned * rest * rest
        spread1 += 2.0 * aligned * rest * part / total
    return A, A1, a, a1, B, B1, hidden + spread - h * h, spread1 - 2.0 * h * h1, h


@jitted
def _of_random_features(t: float, psi1: float, signal: float, noise: float) -> tuple[float, ...]:
    """With signal b₁² and noise b⋆², in terms of m/b₁², so that b₁ = 0 is no case of its own."""
    x = noise + t
    s = x + signal * (psi1 - 1.0)
    root = math.sqrt(s * s + 4.0 * signal * x)
    m = 2.0 / (s + root) if s > 0.0 else (root - s) / (2.0 * signal * x)
    full = 1.0 + signal * m
    m1 = -m * full / root
    m2 = -(m1 * (1.0 + 2.0 * signal * m) * root - m * full * (s + 2.0 * signal) / root) / (root * root)
    B = psi1 * signal * m / full
    B1 = psi1 * signal * m1 / (full * full)
    B2 = psi1 * signal * (m2 / (full * full) - 2.0 * signal * m1 * m1 / (full * full * full))
    y, y1 = signal * x * m, -signal * B1
    bottom = x + y
    A = (noise + y) / bottom
    A1 = (y1 - A * (1.0 + y1)) / bottom
    # ⟨λ²/(λ+t)²⟩ as a sum of positive terms: A + tA′ would cancel where t is large
    a = A * A + t * t * y1 / (bottom * bottom)
    a1 = 2.0 * A * A1 + (2.0 * t * y1 - t * t * signal * B2) / (bottom * bottom)
    a1 -= 2.0 * t * t * y1 * (1.0 + y1) / (bottom * bottom * bottom)
    h = x * m
    return A, A1, a, a1, B, B1, h * (1.0 - h) + t * B1, 2.0 * h * B1 + t * B2, h

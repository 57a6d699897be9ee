"""Gaussian integrals of σ and σ′ for σ(u) = erf(κu), max(u, 0) and u²: what the order-parameter equations are made of.

Fields g = (g_1, …, g_n) have covariance C. With 1, 2, 3, 4 for the fields in the order of the arguments,

    E₁ = E σ(g₁)        I₂ = E σ(g₁)σ(g₂)             I₃ = E σ′(g₁) g₂ σ(g₃)        I₄ = E σ′(g₁)σ′(g₂)σ(g₃)σ(g₄)
    J₁ = E σ′(g₁) g₂    J₂ = E σ′(g₁)σ′(g₂)           J₃ = E σ′(g₁)σ′(g₂)σ(g₃)

For erf all are arcsines (Saad and Solla 1995, Appendix); for the square Isserlis' theorem gives polynomials. For ReLU,
Stein's lemma leaves orthant probabilities, which are arcsines in up to three dimensions; the one of four different
fields, in I₄, has no closed form and is Plackett's integral over one variable, taken by a double-exponential rule.
Importing this module loads numba.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math

from lazyscope.checks import FloatArray
from lazyscope.limits.sgd.order_parameters.relu import TAU, angle, relu_four, relu_three, wedge
from lazyscope.numerics.compiled import jitted

ERF, RELU, SQUARE = 0, 1, 2


@jitted
def mean(kind: int, C: FloatArray, i: int) -> float:
    """E₁ = E σ(g_i)."""
    if kind == ERF:
        return 0.0
    return math.sqrt(C[i, i] / TAU) if kind == RELU else C[i, i]


@jitted
def two(kind: int, C: FloatArray, i: int, j: int) -> float:
    """I₂ = E σ(g_i)σ(g_j). For erf C is 2κ² times the covariance, here and below."""
    a, b, c = C[i, i], C[j, j], C[i, j]
    if kind == ERF:
        return 2.0 / math.pi * math.asin(c / math.sqrt((1.0 + a) * (1.0 + b)))
    if kind == RELU:
        if i == j:
            return 0.5 * a
        return (wedge(a, b, c) + c * (0.5 * math.pi + angle(a, b, c))) / TAU
    return a * b + 2.0 * c * c


@jitted
def slope(kind: int, C: FloatArray, i: int, j: int) -> float:
    """J₁ = E σ′(g_i) g_j."""
    if kind == ERF:
        return 0.0
    if kind == RELU:
        return C[i, j] / math.sqrt(TAU * C[i, i]) if C[i, i] > 0.0 else 0.0
    return 2.0 * C[i, j]


@jitted
def slopes(kind: int, C: FloatArray, i: int, j: int) -> float:
    """J₂ = E σ′(g_i)σ′(g_j); for erf over 2κ²."""
    if kind == ERF:
        return 2.0 / (math.pi * math.sqrt((1.0 + C[i, i]) * (1.0 + C[j, j]) - C[i, j] ** 2))
    if kind == RELU:
        return 0.5 if i == j else 0.25 + angle(C[i, i], C[j, j], C[i, j]) / TAU
    return 4.0 * C[i, j]


@jitted
def three(kind: int, C: FloatArray, i: int, j: int, k: int) -> float:
    """I₃ = E σ′(g_i) g_j σ(g_k)."""
    if kind == ERF:
        free = (1.0 + C[i, i]) * (1.0 + C[k, k]) - C[i, k] ** 2
        return 2.0 / math.pi * (C[j, k] - C[i, j] * C[i, k] / (1.0 + C[i, i])) / math.sqrt(free)
    if kind == RELU:
        if i == k:
            return 0.5 * C[i, j]
        if C[i, i] <= 0.0:
            return 0.0
        edge_part = wedge(C[i, i], C[k, k], C[i, k]) / (TAU * C[i, i])
        return C[i, j] * edge_part + C[j, k] * (0.25 + angle(C[i, i], C[k, k], C[i, k]) / TAU)
    return 2.0 * (C[i, j] * C[k, k] + 2.0 * C[i, k] * C[j, k])


@jitted
def slopes_one(kind: int, C: FloatArray, i: int, j: int, k: int) -> float:
    """J₃ = E σ′(g_i)σ′(g_j)σ(g_k)."""
    if kind == ERF:
        return 0.0
    if kind == RELU:
        return relu_three(C, i, j, k)
    return 4.0 * (C[i, j] * C[k, k] + 2.0 * C[i, k] * C[j, k])


@jitted
def four(kind: int, C: FloatArray, i: int, j: int, k: int, last: int) -> float:
    """I₄ = E σ′(g_i)σ′(g_j)σ(g_k)σ(g_l), l = `last`; for erf over 2κ²."""
    if kind == ERF:
        p, q, c = 1.0 + C[i, i], 1.0 + C[j, j], C[i, j]
        free = p * q - c * c
        ik, jk, il, jl = C[i, k], C[j, k], C[i, last], C[j, last]
        both = free * C[k, last] - jk * jl * p - ik * il * q + c * (ik * jl + il * jk)
        one = free * (1.0 + C[k, k]) - jk * jk * p - ik * ik * q + 2.0 * c * ik * jk
        other = free * (1.0 + C[last, last]) - jl * jl * p - il * il * q + 2.0 * c * il * jl
        return 4.0 / math.pi**2 * angle(one, other, both) / math.sqrt(free)
    if kind == RELU:
        return relu_four(C, i, j, k, last)
    ij, kl = C[i, j], C[k, last]
    pairs = C[i, k] * C[j, k] * C[last, last] + C[i, last] * C[j, last] * C[k, k]
    crossed = C[i, k] * C[j, last] + C[i, last] * C[j, k]
    return 4.0 * (ij * (C[k, k] * C[last, last] + 2.0 * kl * kl) + 2.0 * pairs + 4.0 * kl * crossed)

"""The loss of the margin, F_κ(c₁, c₂)² = E[(κ − c₁T − c₂Z)₊²], with Z ~ N(0, 1) integrated in closed form.

T = yS is the agreement of the label with its score (`LinearLabels.agreement`). Given T, with x = μ − ρT, μ = κ/c₂ and
ρ = c₁/c₂,

    P(x > Z) = Φ(x),    E[(x − Z)₊] = xΦ(x) + φ(x),    E[(x − Z)₊²] = (x² + 1)Φ(x) + xφ(x),

which leaves one integral, over the law of T. A 40-point Gauss rule for that law itself, whatever its link, is exact to
rounding while ρ ≤ 1.3 (its error falls as (ρ²/(1+ρ²))^80); the panels of `agreement` serve beyond.

Machine code: imported where it is used, as numba takes half a second to load.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import jitted
from lazyscope.problems.labels import LinearLabels

STEEPEST = 1.3
"""The largest ρ = c₁/c₂ that `compact` resolves to rounding."""

_NODES = 40
_F = TypeVar("_F", bound=Callable[..., Any])


def machine_code(function: _F) -> _F:
    """Compile, and keep the code on disk; unlike those of `numerics.compiled`, they may call one another."""
    return jitted(function)


@lru_cache(maxsize=64)
def compact(problem: LinearLabels) -> tuple[FloatArray, FloatArray]:
    """Return the Gauss rule of 40 nodes for the law of T: Lanczos on the panels' rule, then Golub and Welsch.

    >>> t, p = compact(LinearLabels(link="sign"))
    >>> f"{t.size} {p @ t**2:.12f} {p @ t**10 / 945:.12f}"  # E[T^2k] = 1·3·…·(2k−1)
    '40 1.000000000000 1.000000000000'
    """
    from scipy.linalg import eigh_tridiagonal

    t, p = problem.agreement
    basis = np.zeros((_NODES + 1, t.size))
    diagonal, off = np.empty(_NODES), np.empty(_NODES)
    basis[0] = np.sqrt(p / p.sum())
    for k in range(_NODES):
        rest = t * basis[k]
        diagonal[k] = basis[k] @ rest
        for _ in range(2):  # orthogonal to all before, twice: once leaves what rounding makes grow
            rest -= basis[: k + 1].T @ (basis[: k + 1] @ rest)
        off[k] = np.linalg.norm(rest)
        basis[k + 1] = rest / off[k]
    nodes, vectors = eigh_tridiagonal(diagonal, off[:-1])
    return nodes, np.asarray(p.sum() * vectors[0] ** 2)


@machine_code
def loss(mu: float, rho: float, T: FloatArray, p: FloatArray) -> tuple[float, ...]:
    """With x = μ − ρT − Z: P(x > 0), E[x₊], E[x₊T], E[x₊²], and E[φ], E[φT], E[ΦT], E[ΦT²] for slopes. 25 ns a node.

    >>> T, p = LinearLabels(link="sign").agreement
    >>> P0, E0, E1, F2, *_ = loss(1.0, 0.5, T, p)
    >>> f"{P0 + E0 - 0.5 * E1:.12f} {F2:.12f}"  # Stein's lemma: E[x₊²] = μE[x₊] − ρE[x₊T] + P(x > 0)
    '1.251100808324 1.251100808324'
    """
    P0 = E0 = E1 = F2 = Q0 = Q1 = P1 = P2 = 0.0
    for k in range(T.size):
        t, weight = T[k], p[k]
        x = mu - rho * t
        below = weight * 0.5 * math.erfc(-x * math.sqrt(0.5))
        density = weight * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
        mean = x * below + density
        P0 += below
        E0 += mean
        E1 += t * mean
        F2 += x * mean + below
        Q0 += density
        Q1 += t * density
        P1 += t * below
        P2 += t * t * below
    return P0, E0, E1, F2, Q0, Q1, P1, P2


@machine_code
def wrong(rho: float, T: FloatArray, p: FloatArray) -> float:
    """Return P(ρT + Z ≤ 0), the probability of a wrong label. 15 ns a node.

    >>> T, p = LinearLabels(link="sign").agreement
    >>> wrong(0.5, T, p) == loss(0.0, 0.5, T, p)[0]
    True
    """
    total = 0.0
    for k in range(T.size):
        total += p[k] * 0.5 * math.erfc(rho * T[k] * math.sqrt(0.5))
    return total

"""The staircase of gradient flow: from small weights, eigendirections are learned one after another, largest first.

With second layer 1 and K = WWᵀ/N small, direction i of the flow of Theorem 3 (Ghorbani, Mei, Misiakiewicz and Montanari
2019, §2.3) grows like κ_i e^{16λ_it − 8∫s}, λ_i the eigenvalues of B/√d. κ_i is the squared distance of row i of W₀/√N
from the span of the rows before it, whose neurons are taken. s is what the offset has still to make up for, ċ = −2s, so
that ∫s is half the trace learned so far.
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.flow.curve import beginning
from lazyscope.problems import QuadraticTarget


def half_learned(eigenvalues: FloatArray, kappa: FloatArray) -> FloatArray:
    """Return the times t_i at which half of each direction is learned, for small κ.

    16λ_i t_i = log(λ_i/κ_i) + 4Σ_{j<i}λ_j + 2λ_i    (i ≤ N; later directions are never learned).

    >>> half_learned(np.array([1.0, 0.5]), np.array([1e-6, 1e-6])).round(3)
    array([0.988, 2.265])
    """
    earlier = np.cumsum(eigenvalues) - eigenvalues
    return np.asarray((np.log(eigenvalues / kappa) + 4.0 * earlier + 2.0 * eigenvalues) / (16.0 * eigenvalues))


def initial_sizes(problem: QuadraticTarget, width: int, directions: int, init: float) -> FloatArray:
    """Return κ_i, largest eigenvalue first, for the weights that `flow` draws with seed 0, times `init`."""
    start = beginning(problem, width, None, "drawn", "fixed", 0, 0, init)
    assert start.W is not None
    rows = start.W[::-1][: min(width, directions)]
    return np.asarray(np.diagonal(np.linalg.qr(rows.T)[1]) ** 2)


def levels(eigenvalues: FloatArray, width: int) -> FloatArray:
    """Return the risk with the first k directions learned, k = 0, 1, …, N: Σ_{i>k}λ_i²/Σλ_i², by Theorem 3.

    >>> levels(np.array([2.0, 1.0]), 1)
    array([1. , 0.2])
    """
    squares = np.square(eigenvalues)
    return np.asarray(1.0 - np.append(0.0, np.cumsum(squares))[: width + 1] / squares.sum())

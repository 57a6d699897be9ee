"""Symmetric matrices held as a full (d, d) array, or as the (d,) vector of their diagonal.

A diagonal matrix stays a vector through every operation here, so that a diagonal problem costs O(d) memory.
`scipy.sparse` would keep it small too, but NumPy's linear algebra does not take its matrices. Benchmark:
`limit_curves`, full and diagonal.
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray

_BLOCK = 256  # rows at once, in `mirror`


def trace(M: FloatArray) -> float:
    """Return Tr M.

    >>> trace(np.array([1.0, 2.0])) == trace(np.diag([1.0, 2.0])) == 3.0
    True
    """
    return float(M.sum() if M.ndim == 1 else np.trace(M))


def inner(A: FloatArray, B: FloatArray) -> float:
    """Return ⟨A, B⟩ = Tr(AᵀB), for any mix of full and diagonal."""
    if A.ndim == B.ndim:
        return float(np.vdot(A, B))
    return float(np.vdot(diagonal(A), diagonal(B)))


def diagonal(M: FloatArray) -> FloatArray:
    """Return the diagonal as a vector."""
    return M if M.ndim == 1 else np.diagonal(M)


def squared_norm(M: FloatArray) -> float:
    """Return ‖M‖_F²."""
    return inner(M, M)


def eigenvalues(M: FloatArray) -> FloatArray:
    """Return the spectrum in ascending order: O(d³) for a full matrix, a sort for a diagonal one."""
    return np.sort(M) if M.ndim == 1 else np.asarray(np.linalg.eigvalsh(M))


def times(M: FloatArray, X: FloatArray) -> FloatArray:
    """Return M X for X of shape (d,) or (d, k)."""
    if M.ndim == 2:
        return np.asarray(M @ X)
    return M * X if X.ndim == 1 else M[:, None] * X


def product(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the product A B, diagonal if both are (the result need not be symmetric)."""
    if A.ndim == 1 and B.ndim == 1:
        return A * B
    if A.ndim == 1:
        return A[:, None] * B
    return np.asarray(A @ B) if B.ndim == 2 else A * B[None, :]


def combine(A: FloatArray, B: FloatArray, beta: float) -> FloatArray:
    """Return A + beta B, diagonal if both are."""
    if A.ndim == B.ndim:
        return A + beta * B
    return dense(A) + beta * dense(B)


def dense(M: FloatArray) -> FloatArray:
    """Return the full (d, d) array."""
    return np.diag(M) if M.ndim == 1 else M


def power(M: FloatArray, exponent: float) -> FloatArray:
    """Return M^exponent for symmetric M ⪰ 0 (≻ 0 where the exponent is negative).

    >>> power(np.array([4.0, 9.0]), 0.5)
    array([2., 3.])
    """
    if M.ndim == 1:
        return np.asarray(np.maximum(M, 0.0) ** exponent)
    values, vectors = np.linalg.eigh(M)
    return np.asarray((vectors * np.maximum(values, 0.0) ** exponent) @ vectors.T)


def sandwich(A: FloatArray, M: FloatArray) -> FloatArray:
    """Return A M A for symmetric A and M, symmetric to the last bit."""
    full = product(product(A, M), A)
    return full if full.ndim == 1 else 0.5 * (full + full.T)


def rows_times(X: FloatArray, M: FloatArray) -> FloatArray:
    """Return X M for rows X of shape (n, d)."""
    return X * M if M.ndim == 1 else np.asarray(X @ M)


def is_positive_definite(M: FloatArray) -> bool:
    """Decide whether M ≻ 0, by a Cholesky factorisation (d³/3 flops, a tenth of an eigendecomposition)."""
    if M.ndim == 1:
        return bool(np.all(M > 0))
    try:
        np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return False
    return True


def is_semidefinite(values: FloatArray) -> bool:
    """Decide whether M ⪰ 0 from its spectrum, up to the rounding of an eigensolver (d·ε·‖M‖)."""
    slack = values.size * np.finfo(np.float64).eps * float(np.max(np.abs(values)))
    return bool(np.min(values) >= -slack)


def unit_of(M: FloatArray) -> int | None:
    """Return the k for which the largest entry of M is of order 2^k; None where that is ordinary, 2^−10 to 2^10.

    >>> unit_of(np.array([1e60, 1.0])), unit_of(np.array([3.0, -700.0]))
    (199, None)
    """
    k = int(np.frexp(np.max(np.abs(M)))[1]) - 1
    return k if abs(k) > 10 else None


def mirror(U: FloatArray) -> None:
    """Copy the upper triangle of a square matrix onto the lower one, block by block; for the other way pass U.T.

    >>> U = np.array([[1.0, 2.0], [0.0, 3.0]])
    >>> mirror(U)
    >>> U.tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    N = len(U)
    for start in range(0, N, _BLOCK):
        rows = slice(start, min(start + _BLOCK, N))
        corner = U[rows, rows]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T
        U[rows.stop :, rows] = U[rows, rows.stop :].T

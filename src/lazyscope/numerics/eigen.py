"""The eigendecomposition of a large symmetric matrix in two and a half times its memory, on the threads of one BLAS.

    K = QTQᵀ (Householder),      T = Z diag(w) Zᵀ (divide and conquer),      U = QZ.

LAPACK's own `dsyevd` does the same with three matrices. Here the reflectors of Q, half a matrix, are set aside, so that
Z takes the memory of K; and they are applied to Z in blocks of 128, where LAPACK has 32: a quarter less time for QZ.
`dsyevr` needs two matrices, but finds Z on one thread. Benchmark: `forecast_grid`.
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.numerics.blas import lapack

_BLOCK = 128  # reflectors
_PANEL = 64  # columns that are reduced at once


def symmetric(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ascending eigenvalues and eigenvectors, in columns; K, in either order, is overwritten. About 6P³ flops.

    >>> w, U = symmetric(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w.round(12), np.abs(U).round(6)
    (array([1., 3.]), array([[0.707107, 0.707107],
           [0.707107, 0.707107]]))
    """
    A = K if K.flags.f_contiguous else K.T
    assert A.flags.f_contiguous and A.dtype == np.float64 and A.shape[0] == A.shape[1], "a float64 matrix, not a view"
    P, largest = len(A), float(np.max(np.abs(A)))
    unit = 2.0 ** np.frexp(largest)[1] if largest > 0.0 else 1.0
    A /= unit  # so that squares neither overflow nor vanish
    w, beside, tau = np.empty(P), np.empty(max(1, P - 1)), np.empty(max(1, P - 1))
    lapack("dsytrd", b"L", P, A, P, w, beside, tau, np.empty(_PANEL * P), _PANEL * P)
    starts = range(0, P - 1, _BLOCK)
    reflectors = [np.asfortranarray(A[start + 1 :, start : start + _BLOCK]) for start in starts]
    _divide(w, beside, A)
    for start, V in reversed(list(zip(starts, reflectors, strict=True))):
        _reflect(V[:, : P - 1 - start], tau[start : start + _BLOCK], A[start + 1 :])
    return unit * w, A


def _divide(w: FloatArray, beside: FloatArray, Z: FloatArray) -> None:
    """Put the eigenvectors of T, w on its diagonal and `beside` on both sides, into Z, and its eigenvalues into w."""
    P = len(w)
    room, whole = 1 + 4 * P + P * P, 3 + 5 * P
    info = lapack("dstedc", b"I", P, w, beside, Z, P, np.empty(room), room, np.empty(whole, np.int32), whole)
    if info:
        raise NotConverged(f"The eigenvalues of a {P}×{P} matrix were not found (dstedc: {info}).")


def _reflect(V: FloatArray, tau: FloatArray, C: FloatArray) -> None:
    """Replace C by (I − VSVᵀ)C, the product of the reflectors that are the columns of V, below a unit diagonal."""
    m, k = V.shape
    n, apart = C.shape[1], C.strides[1] // C.itemsize
    S = np.empty((k, k), order="F")
    lapack("dlarft", b"F", b"C", m, k, V, m, tau, S, k, info=False)
    lapack("dlarfb", b"L", b"N", b"F", b"C", m, n, k, V, m, S, k, C, apart, np.empty((n, k), order="F"), n, info=False)

"""Ridge regression for every ridge from one decomposition, and not even all of it.

    a(s) = Φᵀ(ΦΦᵀ + s)⁻¹Y   or   (ΦᵀΦ + s)⁻¹ΦᵀY,   whichever Gram matrix is the smaller one, m × m.

The Gram matrix is reduced to tridiagonal form, K = QTQᵀ, and no further: T + s is solved in O(m) operations for each s,
so that eigenvectors, four times the work, would buy nothing. For n × N features, k right-hand sides and R ridges:
nNm flops for K, 4m³/3 for T, then 4m²kR + 2nNkR. In float64, as K squares the condition number of Φ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lazyscope.checks import FloatArray


def ridge_path(Phi: FloatArray, Y: FloatArray, shifts: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients, (N, R, k), of ‖Y − Φa‖² + s‖a‖² for each s, and the residuals Y − Φa, (n, R, k).

    s = 0 is the limit s → 0: least squares, and of least norm where N > n.

    >>> Phi, Y = np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 1.0]]), np.array([[1.0], [3.0], [1.0]])
    >>> a, left = ridge_path(Phi, Y, [0.0, 1e9])
    >>> print(a[:, 0, 0].round(6), a[:, 1, 0].round(6), left[:, 1, 0].round(6))
    [1. 1.] [0. 0.] [1. 3. 1.]
    """
    from scipy.linalg.blas import dgemm

    def unpack(side_by_side: FloatArray) -> FloatArray:
        return side_by_side.reshape(len(side_by_side), len(shifts), Y.shape[1])

    n, N = Phi.shape
    rows = np.asfortranarray(Phi.T)  # (N, n) and Fortran order: what BLAS sees without a copy is its transpose
    Y = np.asfortranarray(Y)
    if n <= N:
        alpha = Tridiagonal(rows, gram_of_columns=True).solve(Y, shifts)
        a = dgemm(1.0, rows, alpha)
        residual = unpack(alpha) * np.asarray(shifts)[:, None]
    else:
        a = Tridiagonal(rows, gram_of_columns=False).solve(dgemm(1.0, rows, Y), shifts)
        fitted = dgemm(1.0, rows, a, trans_a=1)
        residual = Y[:, None, :] - unpack(fitted)
    return unpack(a), residual


class Tridiagonal:
    """K = QTQᵀ for the Gram matrix K = MᵀM of the columns of M, or MMᵀ of its rows."""

    def __init__(self, M: FloatArray, gram_of_columns: bool) -> None:
        from scipy.linalg.blas import dsyrk
        from scipy.linalg.lapack import dsytrd, dsytrd_lwork

        K = dsyrk(1.0, M, trans=int(gram_of_columns), lower=1)
        work = int(dsytrd_lwork(len(K), lower=1)[0])
        reflectors, self.diagonal, self.beside, self.scales, _ = dsytrd(K, lower=1, lwork=work, overwrite_a=1)
        # Below the diagonal dsytrd leaves Householder vectors as a QR decomposition of rows 1 … m − 1 would.
        self.reflectors = np.asfortranarray(reflectors[1:, :-1])

    def solve(self, B: FloatArray, shifts: Sequence[float]) -> FloatArray:
        """Return (K + s)⁻¹B for every shift, side by side: (m, R·k), in Fortran order."""
        from scipy.linalg.lapack import dptsv

        m, k = B.shape
        turned = self._times_Q(B, "T")
        result = np.empty((m, len(shifts) * k), order="F")
        for j, shift in enumerate(shifts):
            # (a matrix of one row has no off-diagonal, which the wrapper of LAPACK refuses)
            x, failed = (
                (turned / (self.diagonal + shift), False)
                if m == 1
                else dptsv(self.diagonal + shift, self.beside, turned)[2:]
            )
            result[:, j * k : (j + 1) * k] = self._least_norm(turned) if failed else x
        return self._times_Q(result, "N")

    def _times_Q(self, B: FloatArray, trans: str) -> FloatArray:
        """Return QB, or QᵀB."""
        from scipy.linalg.lapack import dormqr

        B = np.array(B, order="F")
        if len(B) > 1:
            rest = np.asfortranarray(B[1:])
            work = int(dormqr("L", trans, self.reflectors, self.scales, rest, -1)[1][0])
            B[1:] = dormqr("L", trans, self.reflectors, self.scales, rest, work, overwrite_c=1)[0]
        return B

    def _least_norm(self, B: FloatArray) -> FloatArray:
        """T⁺B for a matrix that is singular to rounding: features that depend on one another, without a ridge."""
        from scipy.linalg import eigh_tridiagonal

        values, vectors = eigh_tridiagonal(self.diagonal, self.beside)
        kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
        return np.asarray(vectors[:, kept] @ ((vectors[:, kept].T @ B) / values[kept, None]))

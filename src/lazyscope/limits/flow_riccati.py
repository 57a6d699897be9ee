"""The closed form of a matrix Riccati flow, K(λ, u) = ΦW(I + 16WᵀΦ² diag(u) W)⁻¹WᵀΦ with Φ = diag(e^λ).

It solves K̇ = ΛK + KΛ − 16a²K² with K(0) = WWᵀ, where Λ = diag(λ̇) and u_i = ∫ a² e^{−2(λ_i(t) − λ_i(t′))} dt′.
Nothing overflows, however far the λ_i are apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged

_WORST_CONDITION = 1e7  # of WWᵀ: its inverse keeps nine digits
_BLOCK = 64  # of a triangular inverse, below which LAPACK's own is as good


class Measured:
    """K at one moment, and what the scalars of the flow ask of it."""

    def __init__(self, lower: FloatArray) -> None:
        """Take the lower triangle of K, zeros above, in Fortran order."""
        self.lower = lower
        self.diagonal = np.diagonal(lower).copy()
        self.squares = np.square(lower)

    def squares_times(self, v: FloatArray) -> FloatArray:
        """Σ_j K_ij² v_j: with v = 1 the diagonal of K²."""
        from scipy.linalg.blas import dsymv

        return np.asarray(dsymv(1.0, self.squares, v, lower=1))

    @property
    def full(self) -> FloatArray:
        """K, both triangles."""
        K = self.lower + self.lower.T
        K[np.diag_indices_from(K)] = self.diagonal
        return np.asarray(K)

    def change_of_norm(self, moved: FloatArray, w: FloatArray) -> float:
        """δ‖K‖² = Σ 4(K²)_ii δλ_i − 32(K³)_ii w_i, with w = δu + 2uδλ, to first order: 2d³ flops."""
        K = self.full
        square = K @ K
        cubed = np.einsum("ij,ij->i", K, square)
        return float(4.0 * np.diagonal(square) @ moved - 32.0 * cubed @ w)


class Riccati(ABC):
    """K as a function of λ and u ≥ 0."""

    @abstractmethod
    def lower(self, lam: FloatArray, u: FloatArray) -> FloatArray:
        """Return the lower triangle of K, zeros above, in Fortran order."""

    def __call__(self, lam: FloatArray, u: FloatArray) -> Measured:
        """Return K, to be asked."""
        return Measured(self.lower(lam, u))


class NarrowRiccati(Riccati):
    """Any W, (d, n): 2dn² + n³/3 + d²n flops.

    W is made triangular first (K is the same), rows in the order of ascending λ: scaled by columns, no entry then
    exceeds its start, and the matrix that is factorised is as well conditioned as at the start.
    """

    def __init__(self, W: FloatArray) -> None:
        """Take W, (d, N), rows in the order of ascending λ."""
        from scipy.linalg import rq

        self.W = np.asfortranarray(rq(W, mode="economic")[0])

    def lower(self, lam: FloatArray, u: FloatArray) -> FloatArray:
        """K = Z(D + 16Zᵀ diag(u) Z)⁻¹Zᵀ, Z = ΦW scaled by columns."""
        from scipy.linalg.blas import dsyrk, dtrsm
        from scipy.linalg.lapack import dpotrf

        d, n = self.W.shape
        with np.errstate(divide="ignore"):
            scale = 0.5 * np.logaddexp(0.0, np.log(u[d - n :]) + 2.0 * lam[d - n :])
        if max(np.ptp(lam), np.max(np.abs(lam))) < 300.0:
            columns = np.exp(lam)[:, None] * np.exp(-scale)
        else:
            columns = np.exp(np.minimum(np.subtract.outer(lam, scale), 300.0))
        Z = np.multiply(self.W, columns, order="F")
        A = dsyrk(16.0, np.sqrt(u)[:, None] * Z, trans=1, lower=1)
        A[np.diag_indices(n)] += np.exp(-2.0 * scale)
        Y = dtrsm(1.0, _cholesky(A, dpotrf), Z, side=1, lower=1, trans_a=1, overwrite_b=1)
        return np.asarray(dsyrk(1.0, Y, lower=1))


class WideRiccati(Riccati):
    """W of full row rank, N ≥ d, by K⁻¹ = Φ⁻¹(WWᵀ)⁻¹Φ⁻¹ + 16 diag(u): d³ flops."""

    def __init__(self, inverse: FloatArray) -> None:
        """Take (WWᵀ)⁻¹."""
        self.inverse = np.asfortranarray(inverse)

    def lower(self, lam: FloatArray, u: FloatArray) -> FloatArray:
        """K = S(SΦ⁻¹(WWᵀ)⁻¹Φ⁻¹S + 16S² diag(u))⁻¹S with a unit diagonal inside."""
        from scipy.linalg.lapack import dlauum, dpotrf

        own = np.diagonal(self.inverse)
        with np.errstate(over="ignore", divide="ignore"):
            f = 1.0 / np.sqrt(own + 16.0 * u * np.exp(2.0 * lam))
            size = own * np.exp(-2.0 * lam) + 16.0 * u
        A = np.multiply(self.inverse, f, order="F")
        A *= f[:, None]
        A[np.diag_indices_from(A)] = 1.0
        Y = _triangular_inverse(_cholesky(A, dpotrf))
        Y /= np.sqrt(size)
        return np.asarray(dlauum(Y, lower=1, overwrite_c=1)[0])


def riccati(W: FloatArray) -> Riccati:
    """Return the cheaper form that is accurate for W, (d, N), rows in the order of ascending λ.

    >>> rng = np.random.default_rng(0)
    >>> W, lam, u = rng.standard_normal((3, 30)), np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.1, 0.05])
    >>> bool(np.allclose(riccati(W)(lam, u).full, NarrowRiccati(W)(lam, u).full, rtol=1e-12))
    True
    """
    d, N = W.shape
    if d > N:
        return NarrowRiccati(W)
    values, vectors = np.linalg.eigh(W @ W.T)
    if values[0] * _WORST_CONDITION < values[-1]:
        return NarrowRiccati(W)
    return WideRiccati((vectors / values) @ vectors.T)


def _cholesky(A: FloatArray, dpotrf: object) -> FloatArray:
    L, failed = dpotrf(A, lower=1, overwrite_a=1, clean=1)  # type: ignore[operator]
    if failed:
        raise NotConverged("The closed form of the flow lost positivity. Pass a smaller tolerance.")
    return np.asarray(L)


def _triangular_inverse(L: FloatArray) -> FloatArray:
    """L⁻¹ by halves: LAPACK's own is slow. d³/3 multiplications, nearly all in matrix products."""
    from scipy.linalg.lapack import dtrtri

    n = len(L)
    if n <= _BLOCK:
        return np.asarray(dtrtri(L, lower=1)[0])
    h = n // 2
    X = np.zeros((n, n), order="F")
    X[:h, :h], X[h:, h:] = _triangular_inverse(L[:h, :h]), _triangular_inverse(L[h:, h:])
    X[h:, :h] = -(X[h:, h:] @ (L[h:, :h] @ X[:h, :h]))
    return X

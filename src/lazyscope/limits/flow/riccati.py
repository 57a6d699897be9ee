"""The closed form of a matrix Riccati flow, K(λ, u) = ΦW(I + 16WᵀΦ² diag(u) W)⁻¹WᵀΦ with Φ = diag(e^λ).

It solves K̇ = ΛK + KΛ − 16a²K² with K(0) = WWᵀ, where Λ = diag(λ̇) and u_i = ∫ a² e^{−2(λ_i(t) − λ_i(t′))} dt′.
Nothing overflows, however far the λ_i are apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.limits.flow import constants


class Measured:
    """The matrix K at one moment, and the sums over it that the flow needs."""

    def __init__(self, lower: FloatArray) -> None:
        """Take the lower triangle of K, zeros above, in Fortran order."""
        self.lower = lower
        self.diagonal = np.diagonal(lower).copy()
        self.squares = np.square(lower)

    def squares_times(self, v: FloatArray) -> FloatArray:
        """Return Σ_j K_ij² v_j: with v = 1 the diagonal of K²."""
        from scipy.linalg.blas import dsymv

        return np.asarray(dsymv(1.0, self.squares, v, lower=1))

    @property
    def full(self) -> FloatArray:
        """K, both triangles."""
        K = self.lower + self.lower.T
        K[np.diag_indices_from(K)] = self.diagonal
        return np.asarray(K)

    def change_of_norm(self, moved: FloatArray, w: FloatArray) -> float:
        """Return δ‖K‖² = Σ 4(K²)_ii δλ_i − 32(K³)_ii w_i, with w = δu + 2uδλ, to first order: 2d³ flops."""
        K = self.full
        square = K @ K
        cubed = np.einsum("ij,ij->i", K, square)
        return float(4.0 * np.diagonal(square) @ moved - 32.0 * cubed @ w)


class Riccati(ABC):
    """The closed form of K, as a function of λ and u ≥ 0.

    Directions that are learned, K_ii = 1/(16u_i) but for 10⁻¹⁵, no longer know of the others. Rows being in the order
    of λ, they are the last ones: what is left is a block, which shrinks as the flow goes on.
    """

    @abstractmethod
    def block(self, lam: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the lower triangle of the block that is not learned yet, zeros above, and the rest of diag K."""

    @abstractmethod
    def sums(self, lam: FloatArray, u: FloatArray) -> tuple[FloatArray, float]:
        """Return diag K and ‖K‖²."""

    def __call__(self, lam: FloatArray, u: FloatArray) -> Measured:
        """Return K, to be asked."""
        active, rest = self.block(lam, u)
        n, after = len(active), np.arange(len(active), lam.size)
        K = np.zeros((lam.size, lam.size), order="F")
        K[:n, :n], K[after, after] = active, rest
        return Measured(K)


class NarrowRiccati(Riccati):
    """Any W, (d, n): 3dn² + n³/3 flops for diag K and ‖K‖², d and n without what is learned.

    W is made triangular first (K is the same), rows in the order of ascending λ: scaled by columns, no entry then
    exceeds its start, and the matrix that is factorised is as well conditioned as at the start. A learned direction
    takes its column with it.
    """

    def __init__(self, W: FloatArray) -> None:
        """Take W, (d, N), rows in the order of ascending λ."""
        from scipy.linalg import rq

        self.W = np.asfortranarray(rq(W, mode="economic")[0])
        self.own = np.diagonal(self.W, offset=self.W.shape[1] - len(self.W)) ** 2

    def block(self, lam: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return K = YYᵀ, its block and the rest."""
        from scipy.linalg.blas import dsyrk

        Y, rest = self._root(lam, u)
        return (np.asarray(dsyrk(1.0, Y, lower=1)) if Y.shape[1] else np.zeros((len(Y), len(Y)))), rest

    def sums(self, lam: FloatArray, u: FloatArray) -> tuple[FloatArray, float]:
        """Return diag K and ‖K‖² = ‖YᵀY‖²: dn² flops instead of d²n."""
        from scipy.linalg.blas import dsyrk

        Y, rest = self._root(lam, u)
        norm = _squared_norm(dsyrk(1.0, Y, trans=1, lower=1)) if Y.shape[1] else 0.0
        return np.append(np.einsum("ij,ij->i", Y, Y), rest), norm + float(rest @ rest)

    def _root(self, lam: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Y of K = YYᵀ = Z(D + 16Zᵀ diag(u) Z)⁻¹Zᵀ, Z = ΦW scaled by columns; and the rest of diag K."""
        from scipy.linalg.blas import dsyrk, dtrsm

        d, n = self.W.shape
        with np.errstate(over="ignore", divide="ignore"):
            left = np.exp(-2.0 * lam[d - n :]) / self.own
            learned = left < constants.LEARNED * 16.0 * u[d - n :]
            if d > n:  # a direction without a column of its own is seen in those of others, where these are not far off
                learned &= 2.0 * (lam[d - n - 1] - lam[d - n :]) < np.log(constants.LEARNED)
        n = int(np.max(np.flatnonzero(~learned), initial=-1)) + 1
        first, d = d - self.W.shape[1], d - self.W.shape[1] + n
        rest = 1.0 / (left[n:] + 16.0 * u[d:])
        if n == 0:
            return np.zeros((d, 0)), rest
        lam, u = lam[:d], u[:d]
        with np.errstate(divide="ignore"):
            scale = 0.5 * np.logaddexp(0.0, np.log(u[first:]) + 2.0 * lam[first:])
        if max(np.ptp(lam), np.max(np.abs(lam))) < 300.0:
            columns = np.exp(lam)[:, None] * np.exp(-scale)
        else:
            columns = np.exp(np.minimum(np.subtract.outer(lam, scale), 300.0))
        Z = np.multiply(self.W[:d, :n], columns, order="F")
        A = dsyrk(16.0, np.sqrt(u)[:, None] * Z, trans=1, lower=1)
        A[np.diag_indices(n)] += np.exp(-2.0 * scale)
        return np.asarray(dtrsm(1.0, _cholesky(A), Z, side=1, lower=1, trans_a=1, overwrite_b=1)), rest


class WideRiccati(Riccati):
    """For W of full row rank, N ≥ d, by K⁻¹ = Φ⁻¹(WWᵀ)⁻¹Φ⁻¹ + 16 diag(u): d³ flops, d without what is learned."""

    def __init__(self, inverse: FloatArray) -> None:
        """Take (WWᵀ)⁻¹, rows in the order of ascending λ."""
        self.inverse = np.asfortranarray(inverse)

    def sums(self, lam: FloatArray, u: FloatArray) -> tuple[FloatArray, float]:
        """Return the sums, computed from K itself."""
        active, rest = self.block(lam, u)
        return np.append(np.diagonal(active), rest), _squared_norm(active) + float(rest @ rest)

    def block(self, lam: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return K = S(SΦ⁻¹(WWᵀ)⁻¹Φ⁻¹S + 16S² diag(u))⁻¹S, the matrix inside having a unit diagonal."""
        from scipy.linalg.lapack import dlauum

        own = np.diagonal(self.inverse)
        with np.errstate(over="ignore", divide="ignore"):
            f = 1.0 / np.sqrt(own + 16.0 * u * np.exp(2.0 * lam))
            size = own * np.exp(-2.0 * lam) + 16.0 * u
        n = int(np.max(np.flatnonzero(own * f * f > constants.LEARNED), initial=-1)) + 1
        if n == 0:
            return np.zeros((0, 0)), 1.0 / size
        f = f[:n]
        A = np.multiply(self.inverse[:n, :n], f, order="F")
        A *= f[:, None]
        A[np.diag_indices(n)] = 1.0
        Y = _inverse_triangle(_cholesky(A))
        Y /= np.sqrt(size[:n])
        return np.asarray(dlauum(Y, lower=1, overwrite_c=1)[0]), 1.0 / size[n:]


def riccati(W: FloatArray, gram: FloatArray | None = None) -> Riccati:
    """Return the cheaper form that is accurate for W, (d, N), rows in the order of ascending λ; WWᵀ may be given.

    >>> rng = np.random.default_rng(0)
    >>> W, lam, u = rng.standard_normal((3, 30)), np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.1, 0.05])
    >>> bool(np.allclose(riccati(W)(lam, u).full, NarrowRiccati(W)(lam, u).full, rtol=1e-12))
    True
    """
    from scipy.linalg.lapack import dpocon, dpotrf, dpotri

    d, N = W.shape
    if d > N:
        return NarrowRiccati(W)
    A = W @ W.T if gram is None else gram
    size = float(np.max(np.abs(A).sum(axis=0)))  # ‖A‖₁
    L, failed = dpotrf(A, lower=1)
    if failed or dpocon(L, size, uplo="L")[0] * constants.WORST_CONDITION < 1.0:
        return NarrowRiccati(W)
    inverse = dpotri(L, lower=1)[0]
    return WideRiccati(np.tril(inverse) + np.tril(inverse, -1).T)


def _squared_norm(lower: FloatArray) -> float:
    """Return ‖K‖² by its lower triangle, zeros above."""
    own, flat = np.diagonal(lower), lower.ravel(order="K")
    return 2.0 * float(flat @ flat) - float(own @ own)


def _inverse_triangle(L: FloatArray) -> FloatArray:
    """Return L⁻¹, lower triangles, zeros above, by halves: twice as fast as LAPACK's dtrtri at n = 450.

    With L = [[A, 0], [C, D]] it is [[A⁻¹, 0], [−D⁻¹CA⁻¹, D⁻¹]].
    """
    from scipy.linalg.blas import dtrmm
    from scipy.linalg.lapack import dtrtri

    n = len(L)
    if n <= constants.HALVED:
        return np.asarray(dtrtri(L, lower=1, overwrite_c=1)[0])
    k = n // 2
    A, D = _inverse_triangle(np.asfortranarray(L[:k, :k])), _inverse_triangle(np.asfortranarray(L[k:, k:]))
    below = dtrmm(-1.0, D, np.asfortranarray(L[k:, :k]), lower=1, overwrite_b=1)
    inverse = np.zeros((n, n), order="F")
    inverse[:k, :k], inverse[k:, k:] = A, D
    inverse[k:, :k] = dtrmm(1.0, A, below, side=1, lower=1, overwrite_b=1)
    return inverse


def _cholesky(A: FloatArray) -> FloatArray:
    """Return L of A = LLᵀ in the memory of A, lower triangles, zeros above."""
    from scipy.linalg.lapack import dpotrf

    L, failed = dpotrf(A, lower=1, overwrite_a=1, clean=1)
    if failed:
        raise NotConverged("The closed form of the flow lost positivity. Pass a smaller tolerance.")
    return np.asarray(L)

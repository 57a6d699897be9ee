"""Ridge regression for every ridge from one decomposition, and the best ridge by generalised cross-validation.

    minimise (1/n) Σ_i v_i |y_i − c − ⟨a, φ(x_i)⟩|² + λ‖a‖²,      n = Σ_i v_i,

where v_i says how often a sample counts. The Gram matrix K of the features, N × N or n × n, whichever is the smaller,
is reduced to tridiagonal form, K = QTQᵀ, and no further: T + s is solved in O(m) operations for each shift s = nλ, so
that eigenvectors, four times the work, would buy nothing. For n × N features, k targets and R ridges: nNm flops for K,
4m³/3 for T, then 4m²kR + 2nNkR, m = min(n, N). In float64, as K squares the condition number of the features.

With H_λ the matrix that maps y to the fit,

    GCV(λ) = (1/n) ‖(I − H_λ)y‖² / (1 − tr H_λ/n)²        (Golub, Heath & Wahba 1979)

estimates the test error without a second fit; tr H_λ for all ridges needs the eigenvalues of T alone. The ridge is
chosen by the same with (1 + 4/√n) tr H_λ (`cautious`). The reduction is
m products with a vector in turn: up to m = 2000 it runs on one thread, as a second that is busy elsewhere would be
waited for m times (2.7 s were seen for 0.03).

Why not `sklearn.linear_model.RidgeCV`: it computes eigenvectors, and returns the coefficients of the best ridge alone.
Benchmarks: `ridge_path` (against a Cholesky fit for each ridge), `random_features_regressor` (against `RidgeCV`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.numerics.blas import threads_for

AUTO = np.geomspace(1e-8, 1e2, 50)  # in units of the mean square of a feature vector
_CAUTION = 4.0  # over √n: by how much degrees of freedom count more where ridges are chosen
Block = tuple[FloatArray, FloatArray, FloatArray | None]  # features, targets, weights


class Tridiagonal:
    """The reduction K = QTQᵀ of a Gram matrix in Fortran order; its lower triangle is read, and it is overwritten."""

    def __init__(self, K: FloatArray) -> None:
        from scipy.linalg.lapack import dsytrd, dsytrd_lwork

        work = int(dsytrd_lwork(len(K), lower=1)[0])
        reflectors, self.diagonal, self.beside, self.scales, _ = dsytrd(K, lower=1, lwork=work, overwrite_a=1)
        # Below the diagonal dsytrd leaves Householder vectors as a QR decomposition of rows 1 … m − 1 would.
        self.reflectors = np.asfortranarray(reflectors[1:, :-1])

    def eigenvalues(self) -> FloatArray:
        """Return the spectrum of K, none of it negative."""
        from scipy.linalg import eigvalsh_tridiagonal

        if len(self.diagonal) == 1:
            return np.asarray(np.maximum(self.diagonal, 0.0))
        return np.asarray(np.maximum(eigvalsh_tridiagonal(self.diagonal, self.beside), 0.0))

    def solve(self, B: FloatArray, shifts: Sequence[float]) -> FloatArray:
        """Return (K + s)⁻¹B for every shift, side by side: (m, R·k), in Fortran order."""
        from scipy.linalg.lapack import dptsv

        m, k = B.shape
        turned = self._times_Q(B, "T")
        result = np.empty((m, len(shifts) * k), order="F")
        for j, shift in enumerate(shifts):
            pivots = self.diagonal + shift
            if m == 1:  # no off-diagonal, which the wrapper of LAPACK refuses; features that are zero fit nothing
                x, failed = (turned / pivots if pivots[0] > 0.0 else np.zeros_like(turned)), False
            else:
                x, failed = dptsv(pivots, self.beside, turned)[2:]
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
        """Return T⁺B for a matrix that is singular to rounding: dependent features without a ridge."""
        from scipy.linalg import eigh_tridiagonal

        values, vectors = eigh_tridiagonal(self.diagonal, self.beside)
        kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
        return np.asarray(vectors[:, kept] @ ((vectors[:, kept].T @ B) / values[kept, None]))


def ridge_path(Phi: FloatArray, Y: FloatArray, shifts: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients, (N, R, k), of ‖Y − Φa‖² + s‖a‖² for each s, and the residuals Y − Φa, (n, R, k).

    s = 0 is the limit s → 0: least squares, and of least norm where N > n.

    >>> Phi, Y = np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 1.0]]), np.array([[1.0], [3.0], [1.0]])
    >>> a, left = ridge_path(Phi, Y, [0.0, 1e9])
    >>> print(a[:, 0, 0].round(6), a[:, 1, 0].round(6), left[:, 1, 0].round(6))
    [1. 1.] [0. 0.] [1. 3. 1.]
    """
    from scipy.linalg.blas import dgemm, dsyrk

    def unpack(side_by_side: FloatArray) -> FloatArray:
        return side_by_side.reshape(len(side_by_side), len(shifts), Y.shape[1])

    n, N = Phi.shape
    rows = np.asfortranarray(Phi.T)  # (N, n) and Fortran order: what BLAS sees without a copy is its transpose
    Y = np.asfortranarray(Y)
    if n <= N:
        alpha = Tridiagonal(dsyrk(1.0, rows, trans=1, lower=1)).solve(Y, shifts)
        a = dgemm(1.0, rows, alpha)
        residual = unpack(alpha) * np.asarray(shifts)[:, None]
    else:
        a = Tridiagonal(dsyrk(1.0, rows, lower=1)).solve(dgemm(1.0, rows, Y), shifts)
        fitted = dgemm(1.0, rows, a, trans_a=1)
        residual = Y[:, None, :] - unpack(fitted)
    return unpack(a), residual


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Solutions for each ridge, (m, R, k), their GCV, tr H_λ, and which is best for n samples."""

    ridges: FloatArray
    solutions: FloatArray
    gcv: FloatArray
    freedom: FloatArray
    n: float

    @property
    def best(self) -> int:
        """Index of the ridge with the lowest score; of equal ones the largest, that is the smoothest fit."""
        scores = self.scores
        lowest = np.flatnonzero(scores <= np.min(scores) * (1.0 + 1e-12))
        return int(lowest[np.argmax(self.ridges[lowest])])

    @property
    def scores(self) -> FloatArray:
        """Cautious GCV by which ridges, and fits of other features, are chosen; GCV itself where it has no value."""
        scores = cautious(self.gcv, self.freedom, self.n)
        return scores if np.any(np.isfinite(scores)) else self.gcv


def cautious(gcv: Any, freedom: Any, n: float) -> FloatArray:
    """Return GCV with (1 + 4/√n) tr H_λ in the place of tr H_λ; infinite where no degree of freedom is left.

    GCV now and then chooses next to no ridge, the more often the smaller n is. A factor of 1.2 to 1.4 ends that (Kim &
    Gu 2004, J. R. Statist. Soc. B 66, 337); here it is 1.4 at n = 100, 1.18 at 500, and falls to one, as GCV needs no
    help where n is large.

    >>> cautious(np.array([1.0, 1.0]), np.array([0.0, 90.0]), 100.0).round(2)
    array([ 1., inf])
    """
    left = 1.0 - (1.0 + _CAUTION / np.sqrt(n)) * np.asarray(freedom) / n
    usable = left > 1e-12
    share = np.maximum(1.0 - np.asarray(freedom) / n, 0.0) / np.where(usable, left, 1.0)
    return np.where(usable, gcv * share**2, np.inf)


def primal(
    G: FloatArray, b: FloatArray, energy: FloatArray, n: float, ridges: FloatArray | None, constant: bool
) -> RidgePath:
    """Return a(λ) = (G + nλ)⁻¹b for G = ΦᵀVΦ, b = ΦᵀVY and energy = yᵀVy, of centred Φ and Y where `constant`.

    G is Fortran-ordered, its lower triangle is read, and it is overwritten.
    """
    scale = float(np.trace(G)) / n
    with threads_for(G.size):
        decomposed, ridges, shifts, freedom = _decompose(G, n, ridges, constant, scale)
        a = decomposed.solve(b, shifts.tolist()).reshape(len(b), len(shifts), b.shape[1])
    # ‖y − Φa‖² = ‖y‖² − ⟨b, a⟩ − s‖a‖², as Ga = b − sa
    lost = energy - np.einsum("mk,mrk->rk", b, a) - shifts[:, None] * np.einsum("mrk,mrk->rk", a, a)
    return RidgePath(ridges, a, _gcv(np.maximum(lost, 0.0), freedom, n), freedom, n)


def dual(K: FloatArray, Y: FloatArray, n: float, ridges: FloatArray | None, constant: bool) -> RidgePath:
    """Return α(λ) = (K + nλ)⁻¹Y, with a = Φᵀα, for K = ΦΦᵀ and Y, both times √v and centred where `constant`."""
    scale = float(np.trace(K)) / n
    with threads_for(K.size):
        decomposed, ridges, shifts, freedom = _decompose(K, n, ridges, constant, scale)
        alpha = decomposed.solve(Y, shifts.tolist()).reshape(len(Y), len(shifts), Y.shape[1])
    lost = shifts[:, None] ** 2 * np.einsum("mrk,mrk->rk", alpha, alpha)
    return RidgePath(ridges, alpha, _gcv(lost, freedom, n), freedom, n)


def _decompose(
    K: FloatArray, n: float, ridges: FloatArray | None, constant: bool, scale: float
) -> tuple[Tridiagonal, FloatArray, FloatArray, FloatArray]:
    """Return the tridiagonal form, λ, the shifts nλ and tr H_λ."""
    decomposed = Tridiagonal(K)
    values = decomposed.eigenvalues()
    if ridges is None:
        ridges = AUTO * (scale if scale > 0 else 1.0)
    # below the rounding of the largest eigenvalue a shift is the limit λ → 0
    floor = len(values) * np.finfo(np.float64).eps * max(float(values[-1]), np.finfo(np.float64).tiny)
    shifts = np.maximum(n * ridges, floor)
    freedom = np.sum(values[:, None] / (values[:, None] + shifts), axis=0) + float(constant)
    return decomposed, ridges, shifts, freedom


def _gcv(lost: FloatArray, freedom: FloatArray, n: float) -> FloatArray:
    """Return the GCV of each ridge, summed over targets; infinite where nothing is left to judge by."""
    left = 1.0 - freedom / n
    usable = left > 1e-12
    if len(left) > 1 and not np.any(usable):
        must = "sum to more than the degrees of freedom of the fit: they count how often a sample was seen"
        raise InvalidParameter.of("fit", "sample_weight", must, f"{n:.3g}", "Multiply them, or pass one ridge.")
    scores = np.full(len(left), np.inf)
    scores[usable] = lost[usable].sum(axis=1) / n / left[usable] ** 2
    return scores


@dataclass(frozen=True, eq=False)
class Solved:
    """Coefficients (N, R, k) and constants (R, k) for each ridge, with the path they come from."""

    path: RidgePath
    coefficients: FloatArray
    constants: FloatArray


class Moments:
    """Sums over samples that ridge regression needs: Σ v φφᵀ, Σ v φyᵀ, Σ v yy, Σ v φ, Σ v y and Σ v.

    Samples are added in blocks, so that memory is O(N²) whatever n. Sums are taken around the mean of the first block:
    to subtract a large mean at the end would cost the digits that the small eigenvalues of the Gram matrix need.

    >>> moments = Moments(constant=True)
    >>> moments.add(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]), None)
    >>> solved = moments.solve(np.array([1e-12]))
    >>> solved.coefficients.item().__round__(6), solved.constants.item().__round__(6)
    (2.0, 1.0)
    """

    def __init__(self, constant: bool) -> None:
        self.constant, self.n = constant, 0.0

    def add(self, Phi: FloatArray, Y: FloatArray, v: FloatArray | None) -> None:
        """Add rows; Phi is overwritten. nN² flops."""
        from scipy.linalg.blas import dgemm, dsyrk

        if self.n == 0.0:
            N, k = Phi.shape[1], Y.shape[1]
            self.reference = np.average(Phi, axis=0, weights=v) if self.constant else np.zeros(N)
            self.target = np.average(Y, axis=0, weights=v) if self.constant else np.zeros(k)
            self.G, self.b = np.zeros((N, N), order="F"), np.zeros((N, k))
            self.energy, self.mean, self.label = np.zeros(k), np.zeros(N), np.zeros(k)
        Phi -= self.reference
        Y = Y - self.target
        if v is not None:
            root = np.sqrt(v)[:, None]
            Phi *= root
            Y = Y * root
            self.mean += np.einsum("nm,n->m", Phi, root[:, 0])
            self.label += np.einsum("nk,n->k", Y, root[:, 0])
        else:
            self.mean += Phi.sum(axis=0)
            self.label += Y.sum(axis=0)
        self.n += float(len(Phi) if v is None else v.sum())
        self.G = dsyrk(1.0, Phi.T, beta=1.0, c=self.G, lower=1, overwrite_c=1)
        self.b += dgemm(1.0, Phi.T, Y)
        self.energy += np.einsum("nk,nk->k", Y, Y)

    def solve(self, ridges: FloatArray | None) -> Solved:
        """Return the path; the sums stay as they are, so that more rows may follow."""
        G, b, energy = np.array(self.G, order="F"), self.b, self.energy
        mean, label = self.mean / self.n, self.label / self.n
        if self.constant:
            G -= self.n * np.multiply.outer(mean, mean)
            b = b - self.n * np.multiply.outer(mean, label)
            energy = np.maximum(energy - self.n * label**2, 0.0)
        path = primal(G, b, energy, self.n, ridges, self.constant)
        constants = self.target + label - np.einsum("m,mrk->rk", self.reference + mean, path.solutions)
        return Solved(path, path.solutions, constants if self.constant else np.zeros_like(constants))


def from_rows(
    Phi: FloatArray, Y: FloatArray, v: FloatArray | None, ridges: FloatArray | None, constant: bool
) -> Solved:
    """Solve by the n × n Gram matrix; Phi is overwritten."""
    from scipy.linalg.blas import dgemm, dsyrk

    n, N = Phi.shape
    mean = np.average(Phi, axis=0, weights=v) if constant else np.zeros(N)
    label = np.average(Y, axis=0, weights=v) if constant else np.zeros(Y.shape[1])
    Phi -= mean
    Y = Y - label
    if v is not None:
        Phi *= np.sqrt(v)[:, None]
        Y *= np.sqrt(v)[:, None]
    K = dsyrk(1.0, Phi.T, trans=1, lower=1)
    path = dual(K, Y, float(n if v is None else v.sum()), ridges, constant)
    flat = np.asfortranarray(path.solutions.reshape(n, -1))
    a = dgemm(1.0, Phi.T, flat).reshape(N, len(path.ridges), Y.shape[1])
    return Solved(path, a, label - np.einsum("m,mrk->rk", mean, a))

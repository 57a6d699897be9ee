"""Ridge regression for every ridge from one decomposition, and the best ridge by generalised cross-validation.

    minimise (1/n) Σ_i v_i |y_i − c − ⟨a, φ(x_i)⟩|² + λ‖a‖²,      n = Σ_i v_i,

v_i the weight of a sample: how often it counts. With H_λ the matrix that maps y to the fit,

    GCV(λ) = (1/n) ‖(I − H_λ)y‖² / (1 − tr H_λ/n)²        (Golub, Heath & Wahba 1979),

an estimate of the test error that needs no second fit. The Gram matrix is the smaller of the two, N × N (`primal`) or
n × n (`dual`), reduced to tridiagonal form once: a ridge costs O(m) for its residual, and the traces of all of them the
eigenvalues alone, no vectors. 4m³/3 flops, then 4m²kR for the coefficients of R ridges and k targets. The reduction is
m products with a vector in turn: up to m = 2000 on one thread, as a second that is busy elsewhere would be waited for
m times (we saw 2.7 s for 0.03).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.numerics.blas import threads_for
from lazyscope.numerics.ridge_path import Tridiagonal

AUTO = np.geomspace(1e-8, 1e2, 50)  # in units of the mean square of a feature vector


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Solutions for each ridge, (m, R, k), their GCV, and which is best."""

    ridges: FloatArray
    solutions: FloatArray
    gcv: FloatArray
    freedom: FloatArray

    @property
    def best(self) -> int:
        """Index of the ridge with the lowest GCV; of equal ones the largest, that is the smoothest fit."""
        lowest = np.flatnonzero(self.gcv <= np.min(self.gcv) * (1.0 + 1e-12))
        return int(lowest[np.argmax(self.ridges[lowest])])


class _OfGram(Tridiagonal):
    """K = QTQᵀ of a Gram matrix that is given, by its lower triangle, and overwritten."""

    def __init__(self, K: FloatArray) -> None:
        from scipy.linalg.lapack import dsytrd, dsytrd_lwork

        work = int(dsytrd_lwork(len(K), lower=1)[0])
        reflectors, self.diagonal, self.beside, self.scales, _ = dsytrd(K, lower=1, lwork=work, overwrite_a=1)
        self.reflectors = np.asfortranarray(reflectors[1:, :-1])

    def eigenvalues(self) -> FloatArray:
        """Return the spectrum of K, none of it negative."""
        from scipy.linalg import eigvalsh_tridiagonal

        if len(self.diagonal) == 1:
            return np.asarray(np.maximum(self.diagonal, 0.0))
        return np.asarray(np.maximum(eigvalsh_tridiagonal(self.diagonal, self.beside), 0.0))


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
    return RidgePath(ridges, a, _gcv(np.maximum(lost, 0.0), freedom, n), freedom)


def dual(K: FloatArray, Y: FloatArray, n: float, ridges: FloatArray | None, constant: bool) -> RidgePath:
    """Return α(λ) = (K + nλ)⁻¹Y, with a = Φᵀα, for K = ΦΦᵀ and Y, both times √v and centred where `constant`."""
    scale = float(np.trace(K)) / n
    with threads_for(K.size):
        decomposed, ridges, shifts, freedom = _decompose(K, n, ridges, constant, scale)
        alpha = decomposed.solve(Y, shifts.tolist()).reshape(len(Y), len(shifts), Y.shape[1])
    lost = shifts[:, None] ** 2 * np.einsum("mrk,mrk->rk", alpha, alpha)
    return RidgePath(ridges, alpha, _gcv(lost, freedom, n), freedom)


def _decompose(
    K: FloatArray, n: float, ridges: FloatArray | None, constant: bool, scale: float
) -> tuple[_OfGram, FloatArray, FloatArray, FloatArray]:
    """Return the tridiagonal form, λ, the shifts nλ and tr H_λ."""
    decomposed = _OfGram(K)
    values = decomposed.eigenvalues()
    if ridges is None:
        ridges = AUTO * (scale if scale > 0 else 1.0)
    # below the rounding of the largest eigenvalue a shift is the limit λ → 0
    floor = len(values) * np.finfo(np.float64).eps * max(float(values[-1]), np.finfo(np.float64).tiny)
    shifts = np.maximum(n * ridges, floor)
    freedom = np.sum(values[:, None] / (values[:, None] + shifts), axis=0) + float(constant)
    return decomposed, ridges, shifts, freedom


def _gcv(lost: FloatArray, freedom: FloatArray, n: float) -> FloatArray:
    """GCV of each ridge, summed over targets; infinite where nothing is left to judge by."""
    left = 1.0 - freedom / n
    usable = left > 1e-12
    if len(left) > 1 and not np.any(usable):
        must = "sum to more than the degrees of freedom of the fit: they count how often a sample was seen"
        raise InvalidParameter.of("fit", "sample_weight", must, f"{n:.3g}", "Multiply them, or pass one ridge.")
    scores = np.full(len(left), np.inf)
    scores[usable] = lost[usable].sum(axis=1) / n / left[usable] ** 2
    return scores

"""Fits with a kernel matrix K: ridge regression for all ridges at once, and the largest margin.

Ridge: min ‖y − f‖² + λ‖f‖²_K has f = Σ α_i K(x_i, ·), (K + λ)α = y. Lanczos' tridiagonal form of K, begun at y, is one
decomposition for all λ: after t products with K the residual of every λ is known, and tangent kernels, a few large
eigenvalues above a flat rest, need t ≈ 60 where a full tridiagonal form would take n.

Margin: min ½‖f‖²_K subject to y_i f(x_i) ≥ 1 has f = Σ β_i y_i K(x_i, ·) with β ≥ 0, s = Mβ − 1 ≥ 0, βᵀs = 0 for
M = diag(y) K diag(y). Nearly all points are support vectors in high dimension, so the set of them is guessed (all) and
corrected in blocks (block principal pivoting: Júdice & Pires 1994), a Cholesky factorisation each: two or three of
them, where non-negative least squares (`hard_margin`) adds points one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray, non_negative_numbers, real_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.numerics.losses import LOSSES, labels_for

_MOST_STEPS = 1500
_EVERY = 8  # steps between two looks at the residuals
_GAP = 1e-8  # between both sides of the margin, relative
_PATIENCE = 3  # blocks exchanged without progress before points are exchanged one by one


@dataclass(frozen=True, eq=False)
class RidgeFits:
    """α, (R, n), a row for each ridge; `residual`, (R,), is ‖(K + λ)α − y‖/‖y‖; `steps` the products with K."""

    alpha: FloatArray
    residual: FloatArray
    steps: int

    def predict(self, K: FloatArray) -> FloatArray:
        """Return f at new inputs, (n′, R), from their kernel with the samples, (n′, n)."""
        return np.asarray(K @ self.alpha.T)


def kernel_ridge(K: FloatArray, y: FloatArray, ridges: Sequence[float], tolerance: float = 1e-10) -> RidgeFits:
    """Solve (K + λ)α = y for every λ by one Lanczos process: 2n²t flops and 8nt bytes beside K.

    >>> fits = kernel_ridge(np.diag([1.0, 3.0]), np.array([1.0, 1.0]), [0.0, 1.0])
    >>> fits.alpha.round(6)
    array([[1.      , 0.333333],
           [0.5     , 0.25    ]])
    """
    K, y = _square(K, "kernel_ridge"), np.asarray(y, dtype=np.float64)
    if y.shape != (len(K),) or not np.all(np.isfinite(y)) or not np.any(y):
        raise InvalidParameter.of("kernel_ridge", "y", f"be {len(K)} finite numbers, not all zero", f"shape {y.shape}")
    shifts = np.atleast_1d(non_negative_numbers(ridges, "kernel_ridge", "ridges", "0 interpolates."))
    size = float(np.linalg.norm(y))
    Q, coordinates, left = _lanczos(K, y / size, shifts, tolerance)
    alpha = size * (coordinates @ Q)
    found = np.linalg.norm(alpha @ K + shifts[:, None] * alpha - y, axis=1) / size
    if not np.all(found <= 100.0 * tolerance):
        worst = int(np.argmax(found))
        raise NotConverged(
            f"Kernel ridge regression with λ = {shifts[worst]:g} leaves {found[worst]:.1e} of y after {len(Q)} steps "
            f"(expected {left[worst]:.1e}). Pass a larger ridge: K is singular to rounding, or nearly."
        )
    return RidgeFits(alpha, found, len(Q))


def _lanczos(
    K: FloatArray, q: FloatArray, shifts: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return an orthonormal basis (t, n), coordinates of every solution in it (R, t), and the residuals promised."""
    from scipy.linalg import eigh_tridiagonal

    n = len(K)
    Q = np.empty((min(n, _EVERY), n))
    diagonal, beside = np.empty(min(n, _MOST_STEPS)), np.empty(min(n, _MOST_STEPS))
    for t in range(min(n, _MOST_STEPS)):
        if t == len(Q):
            Q = np.concatenate([Q, np.empty((min(len(Q), n - len(Q)), n))])
        Q[t] = q
        q = K @ q
        diagonal[t] = Q[t] @ q
        for _ in range(2):  # twice is enough: orthogonal to rounding
            q -= (Q[: t + 1] @ q) @ Q[: t + 1]
        beside[t] = np.linalg.norm(q)
        last = t + 1 == min(n, _MOST_STEPS) or beside[t] <= 1e-14 * np.max(np.abs(diagonal[: t + 1]))
        if last or t % _EVERY == _EVERY - 1:
            values, vectors = eigh_tridiagonal(diagonal[: t + 1], beside[:t])
            gains = values + shifts[:, None]
            gains[np.abs(gains) < np.finfo(np.float64).tiny] = np.finfo(np.float64).tiny
            coordinates = (vectors[0] / gains) @ vectors.T
            left = beside[t] * np.abs(coordinates[:, -1])
            if last or np.all(left <= tolerance):
                return Q[: t + 1], coordinates, left
        q /= beside[t]
    raise AssertionError("unreachable: the last step returns")


@dataclass(frozen=True, eq=False)
class KernelMargin:
    """The largest margin: α = βy, f = Σ α_i K(x_i, ·) with min y_i f(x_i) = 1; `margin` is 1/‖f‖_K.

    `gap` is what is left between it and the distance ‖Σ z_i y_i φ(x_i)‖, z = β/Σβ, that bounds every margin from above,
    relative; `support` is how many β are positive.
    """

    alpha: FloatArray
    margin: float
    gap: float
    support: int

    def predict(self, K: FloatArray) -> FloatArray:
        """Return f at new inputs, (n′,), from their kernel with the samples, (n′, n)."""
        return np.asarray(K @ self.alpha)


def kernel_margin(K: FloatArray, y: FloatArray, ridge: float = 0.0) -> KernelMargin:
    """Return the classifier of largest margin in the space of K, without offset, labels y = ±1.

    With a ridge λ > 0 the margin is soft: min ½‖f‖² + Σξ_i²/2λ, y_i f(x_i) ≥ 1 − ξ_i, which is the same with K + λ (and
    `margin` and `gap` are those of K + λ). n³/3 flops for each correction of the support, 16n² bytes.

    >>> fit = kernel_margin(np.diag([1.0, 4.0]), np.array([1.0, -1.0]))
    >>> fit.alpha, round(fit.margin, 6), fit.support
    (array([ 1.  , -0.25]), 0.894427, 2)
    """
    from threadpoolctl import threadpool_limits

    K = _square(K, "kernel_margin")
    y = labels_for(LOSSES["logistic"], y, len(K), "kernel_margin")
    if real_number(ridge, "kernel_margin", "ridge") < 0:
        raise InvalidParameter.of("kernel_margin", "ridge", "be at least 0", ridge)
    M = K * y * y[:, None]
    M[np.diag_indices_from(M)] += ridge
    with threadpool_limits(1, user_api="blas"):  # NumPy's and SciPy's pools, in turn, wait for each other: 3× slower
        beta = _complementary(M)
    values = M @ beta
    norm, total = float(np.sqrt(beta @ values)), float(np.sum(beta))
    attained, bound = float(np.min(values)) / norm, norm / total
    if not bound - attained <= _GAP * bound:
        raise NotConverged(f"The margin lies between {attained:.6g} and {bound:.6g}. Pass a ridge: K is near singular.")
    return KernelMargin(beta * y, attained, (bound - attained) / bound, int(np.count_nonzero(beta)))


def _complementary(M: FloatArray) -> FloatArray:
    """Return β ≥ 0 with Mβ ≥ 1 and βᵀ(Mβ − 1) = 0, M positive definite."""
    n, largest = len(M), float(np.max(np.abs(M)))
    support = np.ones(n, dtype=bool)
    fewest, patience = n + 1, _PATIENCE
    for _ in range(5 * n + 50):
        beta = np.zeros(n)
        beta[support] = _solve_ones(M, support)
        slack = M @ beta - 1.0
        # rounding of the product: β is large where points nearly coincide and labels differ
        rounding = 1e-10 + np.finfo(np.float64).eps * n * largest * float(np.max(np.abs(beta)))
        wrong = np.where(support, beta < 0.0, slack < -rounding)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return beta
        if count < fewest:
            fewest, patience = count, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:  # one at a time cannot cycle (Murty 1974)
            wrong = np.arange(n) == np.flatnonzero(wrong)[-1]
        support ^= wrong
    raise NotConverged(f"The support vectors among {n} points were not found. Pass a ridge.")


def _solve_ones(M: FloatArray, support: FloatArray) -> FloatArray:
    """M_SS⁻¹1 on the supposed support vectors S."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    part = np.flatnonzero(support)
    block = M if part.size == len(M) else M[np.ix_(part, part)]
    try:
        factor = cho_factor(block, lower=True, check_finite=False)
    except LinAlgError:
        raise NotConverged(
            "The kernel matrix is singular to rounding: points coincide, or there are fewer features than points. "
            "Pass a ridge, or `hard_margin` the features."
        ) from None
    return np.asarray(cho_solve(factor, np.ones(part.size), check_finite=False))


def _square(K: FloatArray, owner: str) -> FloatArray:
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.size == 0 or not np.all(np.isfinite(K)):
        raise InvalidParameter.of(owner, "K", "be an (n, n) matrix of finite numbers", f"shape {K.shape}")
    return K

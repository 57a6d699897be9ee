"""The largest margin of labelled points, exactly, or a proof that there is none.

    κ = max_{‖a‖≤1} min_i y_i⟨a, u_i⟩ = min_{z≥0, Σz=1} ‖Σ_i z_i y_i u_i‖,

the distance from the origin to the convex hull of the points g_i = y_iu_i. In least-distance form (Lawson and Hanson
1974, chapter 23) both sides come from one problem of non-negative least squares,

    minimise ‖(Σ_i z_i g_i, Σ_i z_i) − (0, 1)‖ over z ≥ 0,

whose residual is zero where the points are not separable. More dimensions than points make them separable, and then
block pivoting on their Gram matrix (`kernel_margin`) is five times faster. Whatever the solver did, the answer is
checked on the points themselves: a must attain the margin and z the distance, or z must be a convex combination equal
to zero.

With a kernel, min ½‖f‖²_K subject to y_i f(x_i) ≥ 1 has f = Σ β_i y_i K(x_i, ·) with β ≥ 0, s = Mβ − 1 ≥ 0, βᵀs = 0 for
M = diag(y) K diag(y). Nearly all points are support vectors in high dimension, so the set of them is guessed (all) and
corrected in blocks (block principal pivoting: Júdice & Pires 1994), a Cholesky factorisation each: two or three of
them, where non-negative least squares adds points one by one.

Why not `sklearn.svm.SVC` or interior points: they stop at a tolerance and cannot prove that there is no margin.
Benchmark: `hard_margin` (against cvxpy).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory, real_array, real_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.numerics.krylov import square_matrix
from lazyscope.numerics.losses import LOSSES, labels_for

TOLERANCE = 1e-9
"""What is left between both sides, over the root mean square norm of the points divided by √n."""

_OWNER = "hard_margin"
_GAP = 1e-8  # between both sides of the margin of a kernel, relative
_PATIENCE = 3  # blocks exchanged without progress before points are exchanged one by one


@dataclass(frozen=True, eq=False)
class HardMargin:
    """A margin and its proof.

    `a` is the unit vector that attains the margin, zero where there is none; `z` are weights of the points, none
    negative, their sum 1: ‖Σ z_iy_iu_i‖ bounds every margin from above, and proves that there is none where it is zero.
    `gap` is what lies between the two bounds, over the root mean square norm of the points divided by √n.
    """

    separable: bool
    margin: float
    a: FloatArray
    z: FloatArray
    gap: float

    @property
    def support(self) -> int:
        """Number of support vectors; where there is no margin, of the points that the proof needs."""
        return int(np.count_nonzero(self.z))

    def __str__(self) -> str:
        if self.separable:
            return f"separable, margin {self.margin:.6g}, {self.support} support vectors"
        return f"not separable: a convex combination of {self.support} points y_iu_i is zero to {self.gap:.1e}"


def hard_margin(U: Any, y: Any) -> HardMargin:
    """Return the largest margin of the rows of U, (n, N), with labels y = ±1, without offset.

    N > n: n²N flops for the Gram matrix and a few Cholesky factorisations of it, 0.2 s at n = 800, N = 2000. N ≤ n:
    about N steps of nN multiplications, 0.3 s at n = 800, N = 600. Memory that of U twice, and 24n·min(n, N) bytes.

    >>> largest = hard_margin([[2.0, 0.0], [0.0, -2.0], [3.0, 1.0]], [1, -1, 1])
    >>> print(largest)
    separable, margin 1.41421, 2 support vectors
    >>> largest.a.round(6)
    array([0.707107, 0.707107])
    >>> print(hard_margin([[1.0], [2.0]], [1, -1]))
    not separable: a convex combination of 2 points y_iu_i is zero to ...
    """
    U, y = _checked(U, y)
    return solve(U * y[:, None])


def _checked(U: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    must = "be a matrix of points, a row for each"
    points = real_array(U, _OWNER, "U", must)
    if points.ndim != 2 or points.size == 0:
        raise InvalidParameter.of(_OWNER, "U", must, f"shape {points.shape}")
    must = f"be labels 1 and −1, one for each of the {len(points)} points"
    labels = real_array(y, _OWNER, "y", must)
    if labels.shape != (len(points),) or not np.all(np.abs(labels) == 1.0):
        shaped = labels.shape == (len(points),)
        got = f"{labels[np.abs(labels) != 1.0][0]:g}" if shaped else f"shape {labels.shape}"
        raise InvalidParameter.of(_OWNER, "y", must, got)
    if np.all(labels == labels[0]):
        must = "have labels of both classes"
        raise InvalidParameter.of(_OWNER, "y", must, f"{labels[0]:g} {len(labels)} times", "Pass more points.")
    seen: dict[bytes, int] = {}
    for i, row in enumerate(points + 0.0):  # + 0.0: −0 is 0
        first = seen.setdefault(row.tobytes(), i)
        if labels[first] != labels[i]:
            must = "have no point with both labels"
            got = f"points {first} and {i}, which are equal and have opposite labels"
            raise InvalidParameter.of(_OWNER, "U", must, got, "No classifier separates them: remove one.")
    return points, labels


def solve(G: FloatArray) -> HardMargin:
    """Return the margin of points g_i = y_iu_i in rows, any shape; the answer is checked on G itself."""
    n, N = G.shape
    size = 8.0 * (n * N + 3.0 * n * min(n, N))
    fits_in_memory(size, f"The margin of {n} points in {N} dimensions", "Use fewer points.")
    unit = float(np.sqrt(np.sum(G * G) / n / n))
    if unit == 0.0:
        raise InvalidParameter.of(_OWNER, "U", "have a point that is not zero", "zeros")
    if n < N:  # in general position then, and separable: the support is found in a few blocks
        try:
            return _proved(G, kernel_margin(G @ G.T / unit**2, np.ones(n)).alpha, unit)
        except NotConverged:
            pass
    return _proved(G, _least_distance(G / unit), unit)


def _least_distance(G: FloatArray) -> FloatArray:
    """Return z by non-negative least squares, point by point: exact whether the points are separable or not.

    Of N > n dimensions a QR decomposition keeps the n that the points span.
    """
    from scipy.linalg import qr
    from scipy.optimize import nnls

    n, N = G.shape
    E = np.empty((min(n, N) + 1, n))
    E[:-1] = qr(G.T, mode="r", check_finite=False)[0][:n] if n < N else G.T
    E[-1] = 1.0
    target = np.zeros(len(E))
    target[-1] = 1.0
    try:
        z, _ = nnls(E, target, maxiter=30 * n)
    except RuntimeError:
        raise NotConverged(f"Non-negative least squares for {n} points took more than {30 * n} steps.") from None
    return np.asarray(z)


def _proved(G: FloatArray, z: FloatArray, unit: float) -> HardMargin:
    """Check both sides on the points themselves, and say which of the two cases it is; z up to a factor."""
    z = z / np.sum(z)
    nearest = z @ G
    distance = float(np.linalg.norm(nearest))
    attained = float(np.min(G @ nearest)) / distance if distance > 0.0 else 0.0
    if attained > 0.0 and distance - attained <= TOLERANCE * unit:
        return HardMargin(True, attained, nearest / distance, z, (distance - attained) / unit)
    if distance <= TOLERANCE * unit:
        return HardMargin(False, 0.0, np.zeros(G.shape[1]), z, distance / unit)
    raise NotConverged(
        f"The margin of {len(G)} points lies between {max(attained, 0.0):.6g} and {distance:.6g}, and rounding hides "
        f"where, to {TOLERANCE:.0e} of {unit:.3g}. Are points nearly equal, or of very different norms?"
    )


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

    K = square_matrix(K, "kernel_margin")
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
    """Return M_SS⁻¹1 on the supposed support vectors S."""
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

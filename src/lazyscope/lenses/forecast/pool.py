"""The population's degrees of freedom and errors from one pool of P rows, by one eigendecomposition.

K = U diag(w) Uᵀ is the kernel of the pool, y its targets, ℓ a ridge on it. A row that is left out has the variance and
the error

    v_i = 1/[(K + ℓ)⁻¹]_ii − ℓ,      e_i = [(K + ℓ)⁻¹y]_i/[(K + ℓ)⁻¹]_ii,

given the others. On average over new rows they are κ df₁(κ) and P/(P − df₂) G(κ), with the κ of the deterministic
equivalents, P = df₁(κ) + ℓ/κ. So with b = ℓ + mean(v), which is Pκ, and its derivative b′ along ℓ,

    κ = b/P,      df₁ = P mean(v)/b,      df₁ − df₂ = P (b − ℓb′)/(bb′),      P − df₂ = P/b′,      G(κ) = mean(e²)/b′,

are those of the population, df₁(κ) = Σ ξ/(ξ + κ), df₂(κ) = Σ ξ²/(ξ + κ)², G(κ) = Σ (κ/(ξ + κ))²β² + τ², for every
κ ≥ κ(ℓ → 0): no eigenvalue ξ is estimated. M(κ) = Σ κ/(ξ + κ) β² + τ² is κ ∫_κ^∞ G(s)/s² ds.

Each row has its own leverage. With their mean in its place, κ would be 1/Tr (K + ℓ)⁻¹, and mean(e²) generalised
cross-validation. For Gaussian features that is the same; on images the second is wrong by up to a factor of two at
small ridge, and the first adds 5 % there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.numerics.blas import gemm
from lazyscope.numerics.eigen import symmetric

_NEGATIVE = 1e-8  # of the largest eigenvalue: below, a kernel is not positive
_ROUNDING = 1e-11  # of the largest eigenvalue: no ridge below it
_BELOW = 1e-6  # of the smallest eigenvalue: there the ridge is nothing
_ABOVE = 1e5  # of the largest eigenvalue: there nothing is learnt
_GROUPS = 20  # of rows, for the jackknife
_PER_DECADE = 8  # nodes; the functions are smooth on the scale of a factor e


@dataclass(frozen=True, eq=False)
class Pool:
    """Tables over log ℓ, ascending: κ, df₁ and df₁ − df₂, (nodes,); G and M, (1 + groups, targets, nodes).

    G[0] and M[0] are those of all rows; G[b] leaves out the b-th group of rows, for the jackknife. `chance` is the
    covariance of log G/G(∞) between nodes where the target is noise, (nodes, nodes).
    """

    rows: int
    log_ridge: FloatArray
    kappa: FloatArray
    df1: FloatArray
    gap: FloatArray
    G: FloatArray
    M: FloatArray
    chance: FloatArray


def decompose(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, none negative, and eigenvectors in Fortran order; K is overwritten. About 6P³ flops."""
    scale = float(np.max(np.abs(K)))
    if scale == 0.0:
        raise InvalidParameter.of("forecast", "gram", "be a kernel that is not zero", "zeros")
    asymmetry = max(float(np.max(np.abs(K[i : i + 256] - K[:, i : i + 256].T))) for i in range(0, len(K), 256))
    if asymmetry > 1e-8 * scale:
        raise InvalidParameter.of("forecast", "gram", "be symmetric", f"an asymmetry of {asymmetry:.3g}")
    w, U = symmetric(K)
    if w[0] < -_NEGATIVE * w[-1]:
        must = "be positive: E[φφ] has no negative eigenvalue"
        got = f"a smallest eigenvalue of {w[0]:.3g} beside a largest of {w[-1]:.3g}"
        raise InvalidParameter.of("forecast", "gram", must, got, "Add to its diagonal, if that is what you mean.")
    return np.maximum(w, 0.0), U


def pool(K: FloatArray, Y: FloatArray, largest_ridge: float = 0.0) -> Pool:
    """Return the tables of a kernel (P, P), which is overwritten, and targets (P, T), up to some pool ridge at least.

    One eigendecomposition, and 2P²(T + 4) flops a node, of which there are eight a decade; beside the eigenvectors a
    few arrays of P numbers a node.
    """
    P, T = Y.shape
    w, U = decompose(K)
    t = _nodes(w, largest_ridge)
    ridge = np.exp(t)
    inverse = 1.0 / (ridge[:, None] + w)
    left_out = _left_out(U, w, inverse)
    b, slope = ridge + left_out.variance, left_out.slope
    along, errors = np.empty((P, T), order="F"), np.empty((P, len(t)), order="F")
    gemm(1.0, U, np.asfortranarray(Y), 0.0, along, trans_a=True)
    averages = _averages(P)
    G, means = np.empty((len(averages), T, len(t))), np.empty((len(averages), len(t)), order="F")
    for k in range(T):
        gemm(1.0, U, (inverse * along[:, k]).T, 0.0, errors)
        errors /= left_out.diagonal
        errors *= errors
        gemm(1.0, averages, errors, 0.0, means)
        G[:, k] = means / slope
    kappa, df1, gap = b / P, P * left_out.variance / b, P * left_out.rest / (b * slope)
    M = smoothed(G, t, P / b, ridge * P * slope / b**2)
    return Pool(P, t, kappa, df1, gap, G, M, _chance(inverse))


def _chance(inverse: FloatArray) -> FloatArray:
    """Return the covariance of log G between nodes where y is pure noise, that of log G(∞) taken out.

    With the mean leverage in the place of each row's own, G = Σ a²y_k²/Σ a² with a = 1/(w_k + ℓ) and y_k = ⟨u_k, y⟩:
    a weighted mean of squares, each of which has the variance 2 whatever the law of the noise, as U mixes the rows.
    """
    weights = inverse**2
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(2.0 * (weights @ weights.T - 1.0 / weights.shape[1]))


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """[(K + ℓ)⁻¹]_ii, (P, nodes), and at each node the means of v_i, of its b′ and of what b − ℓb′ is."""

    diagonal: FloatArray
    variance: FloatArray
    slope: FloatArray
    rest: FloatArray


def _left_out(U: FloatArray, w: FloatArray, inverse: FloatArray) -> _LeftOut:
    """Return the variances of rows left out: 8P² flops a node, U² in pieces, so that there is no second matrix.

    With A = (K + ℓ)⁻¹: v = [KA]/[A], b′ = mean [A²]/[A]², b − ℓb′ = mean [KA²]/[A]², diagonals all: nothing cancels.
    """
    nodes, P = inverse.shape
    weights = np.concatenate([inverse, w * inverse, inverse**2, w * inverse**2]).T
    diagonal, sums = np.empty((P, nodes), order="F"), np.zeros((3, nodes))
    size = max(1, P // 8)
    for start in range(0, P, size):
        squares = np.asfortranarray(U[start : start + size] ** 2)
        found = np.empty((len(squares), 4 * nodes), order="F")
        gemm(1.0, squares, weights, 0.0, found)
        A, KA, AA, KAA = (found[:, k * nodes : (k + 1) * nodes] for k in range(4))
        diagonal[start : start + size] = A
        sums += np.sum(KA / A, axis=0), np.sum(AA / A**2, axis=0), np.sum(KAA / A**2, axis=0)
    sums /= P
    return _LeftOut(diagonal, sums[0], sums[1], sums[2])


def _nodes(w: FloatArray, largest_ridge: float) -> FloatArray:
    """Return log ℓ from where the ridge is nothing, or rounding begins, to where nothing is learnt."""
    positive = w[w > _ROUNDING * w[-1]]
    low = max(_BELOW * float(positive[0]) if len(positive) == len(w) else 0.0, _ROUNDING * float(w[-1]))
    high = max(_ABOVE * float(w[-1]), largest_ridge)
    return np.linspace(np.log(low), np.log(high), int(np.ceil(_PER_DECADE * np.log10(high / low))) + 1)


def _averages(P: int) -> FloatArray:
    """Return (1 + groups, P): the mean over all rows, and without each group in turn.

    Rows are grouped at random: those of a file are often sorted.
    """
    groups = np.random.default_rng(0).permutation(P) % min(_GROUPS, P // 2)
    weights = np.ones((int(groups.max()) + 2, P), order="F")
    weights[1 + groups, np.arange(P)] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def smoothed(G: FloatArray, t: FloatArray, u: FloatArray, slope: FloatArray) -> FloatArray:
    """M = (1/u) ∫₀ᵘ G du, u = 1/κ, slope = −du/dt, by a cubic spline; above the table G is constant."""
    from scipy.interpolate import CubicSpline

    area = CubicSpline(t, G * slope, axis=-1).antiderivative()
    return np.asarray((u[-1] * G[..., -1:] + area(t[-1])[..., None] - area(t)) / u)

"""The population's degrees of freedom and errors from one pool of P rows, by one eigendecomposition.

K = U diag(w) Uᵀ is the kernel of the pool, y its targets. At a pool ridge ℓ let s₁ = Σ 1/(w + ℓ), s₂ = Σ 1/(w + ℓ)².
The equation of the deterministic equivalents, read from the pool to the population, P = df₁ + ℓ/κ with
df₁ = Σ w/(w + ℓ), gives

    κ = 1/s₁,      P − df₁ = ℓs₁,      P − df₂ = s₁²/s₂,      df₁ − df₂ = (s₁/s₂) Σ w/(w + ℓ)²,

the degrees of freedom df₁(κ) = Σ ξ/(ξ + κ) and df₂(κ) = Σ ξ²/(ξ + κ)² of the population for every κ ≥ κ(ℓ → 0): no
eigenvalue ξ is estimated. The leave-one-out errors e_i(ℓ) = [(K + ℓ)⁻¹y]_i/[(K + ℓ)⁻¹]_ii give the errors

    G(κ) = Σ (κ/(ξ + κ))²β² + τ² = mean(e²)(P − df₂)/P,      M(κ) = Σ κ/(ξ + κ) β² + τ² = κ ∫_κ^∞ G(s)/s² ds.

Leave-one-out, not generalised cross-validation: leverages differ from row to row, and with their mean in their place
the error of images is off by up to a factor of two at small ridge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, NotConverged

_NEGATIVE = 1e-8  # of the largest eigenvalue: below, a kernel is not positive
_ROUNDING = 1e-11  # of the largest eigenvalue: no ridge below it
_BELOW = 1e-6  # of the smallest eigenvalue: there the ridge is nothing
_ABOVE = 1e5  # of the largest eigenvalue: there nothing is learnt
_GROUPS = 20  # of rows, for the jackknife
_PER_DECADE = 8  # nodes; the functions are smooth on the scale of a factor e


@dataclass(frozen=True, eq=False)
class Pool:
    """Tables over log ℓ, ascending: κ, df₁ and df₁ − df₂, (nodes,); G and M, (1 + groups, targets, nodes).

    G[0] and M[0] are those of all rows; G[b] leaves out the b-th group of rows, for the jackknife.
    """

    rows: int
    log_ridge: FloatArray
    kappa: FloatArray
    df1: FloatArray
    gap: FloatArray
    G: FloatArray
    M: FloatArray


def decompose(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, none negative, and eigenvectors; K is overwritten. About 9P³ flops and two matrices."""
    from scipy.linalg import LinAlgError, eigh

    scale = float(np.max(np.abs(K)))
    if scale == 0.0:
        raise InvalidParameter.of("forecast", "gram", "be a kernel that is not zero", "zeros")
    asymmetry = max(float(np.max(np.abs(K[i : i + 256] - K[:, i : i + 256].T))) for i in range(0, len(K), 256))
    if asymmetry > 1e-8 * scale:
        raise InvalidParameter.of("forecast", "gram", "be symmetric", f"an asymmetry of {asymmetry:.3g}")
    try:
        # K.T has Fortran order, so that its memory is used again
        w, U = eigh(K.T, overwrite_a=True, check_finite=False, driver="evr")
    except LinAlgError as error:
        raise NotConverged(f"The eigenvalues of the kernel were not found ({error}).") from None
    if w[0] < -_NEGATIVE * w[-1]:
        must = "be positive: E[φφ] has no negative eigenvalue"
        got = f"a smallest eigenvalue of {w[0]:.3g} beside a largest of {w[-1]:.3g}"
        raise InvalidParameter.of("forecast", "gram", must, got, "Add to its diagonal, if that is what you mean.")
    return np.maximum(w, 0.0), U


def pool(K: FloatArray, Y: FloatArray, largest_ridge: float = 0.0) -> Pool:
    """Return the tables of a kernel (P, P), which is overwritten, and targets (P, T), up to some pool ridge at least.

    One eigendecomposition, and 2P²(T + 1) flops a node, of which there are eight a decade; beside the eigenvectors a
    few arrays of P numbers a node.
    """
    P, T = Y.shape
    w, U = decompose(K)
    t = _nodes(w, largest_ridge)
    ridge = np.exp(t)
    inverse = 1.0 / (w[:, None] + ridge)
    s1, s2 = inverse.sum(axis=0), np.einsum("wt,wt->t", inverse, inverse)
    gap = s1 / s2 * (w @ inverse**2)
    along, leverages = U.T @ Y, _leverages(U, inverse)
    groups = _groups(P)
    G = np.empty((1 + int(groups.max()) + 1, T, len(t)))
    for k in range(T):
        errors = U @ (along[:, k, None] * inverse)
        errors /= leverages
        errors *= errors
        G[:, k] = _means(errors, groups) * (s1**2 / s2 / P)
    return Pool(P, t, 1.0 / s1, w @ inverse, gap, G, smoothed(G, t, s1, ridge * s2))


def _nodes(w: FloatArray, largest_ridge: float) -> FloatArray:
    """Return log ℓ from where the ridge is nothing, or rounding begins, to where nothing is learnt."""
    positive = w[w > _ROUNDING * w[-1]]
    low = max(_BELOW * float(positive[0]) if len(positive) == len(w) else 0.0, _ROUNDING * float(w[-1]))
    high = max(_ABOVE * float(w[-1]), largest_ridge)
    return np.linspace(np.log(low), np.log(high), int(np.ceil(_PER_DECADE * np.log10(high / low))) + 1)


def _leverages(U: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return the diagonal of (K + ℓ)⁻¹, (P, nodes): U² in pieces, so that there is no second matrix."""
    size = max(1, len(U) // 8)
    return np.concatenate([U[start : start + size] ** 2 @ inverse for start in range(0, len(U), size)])


def _groups(P: int) -> NDArray[np.int64]:
    """Return the group of each row, at random: rows of a file are often sorted."""
    return np.random.default_rng(0).permutation(P) % min(_GROUPS, P // 2)


def _means(rows: FloatArray, groups: NDArray[np.int64]) -> FloatArray:
    """Return the mean over all rows, and without each group in turn."""
    sums = np.zeros((int(groups.max()) + 1, rows.shape[1]))
    np.add.at(sums, groups, rows)
    whole, sizes = sums.sum(axis=0), np.bincount(groups)
    return np.concatenate([whole[None] / len(rows), (whole - sums) / (len(rows) - sizes)[:, None]])


def smoothed(G: FloatArray, t: FloatArray, u: FloatArray, slope: FloatArray) -> FloatArray:
    """M = (1/u) ∫₀ᵘ G du, u = 1/κ, slope = −du/dt, by a cubic spline; above the table G is constant."""
    from scipy.interpolate import CubicSpline

    area = CubicSpline(t, G * slope, axis=-1).antiderivative()
    return np.asarray((u[-1] * G[..., -1:] + area(t[-1])[..., None] - area(t)) / u)

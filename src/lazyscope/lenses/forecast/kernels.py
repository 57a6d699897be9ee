"""Kernels of infinitely wide regimes at a user's rows, K = E[φ(x)φ(x′)]: what features of any width fluctuate around.

    z = ⟨w, x⟩ + b,   w ~ N(0, s²I),   b ~ N(0, β²),   s = 1/√E‖x‖² unless it is given,
    random features:  K = E[σ(z)σ(z′)],      tangent model:  K = E[σ′(z)σ′(z′)]⟨x̃, x̃′⟩,   x̃ = (sx, β),

the weights of `lazyscope.estimators`. z and z′ are Gaussian with the covariance C = ⟨x̃, x̃′⟩. Closed forms:

- t₊^m/m!, |t|, sign and step: arc-cosine kernels (Cho & Saul 2009), `population.kernels`;
- erf: E[σσ] = (2/π) arcsin(2c/√((1 + 2a)(1 + 2b))), E[σ′σ′] = (4/π)/√((1 + 2a)(1 + 2b) − 4c²) (Williams 1998), with
  a, b the variances and c the covariance;
- every other σ: Hermite series, whose coefficients are found by quadrature, `population.kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, fits_in_memory, real_array, real_number
from lazyscope.errors import InvalidParameter, NotConverged, NoTheorem
from lazyscope.population.kernels import PairKernel, pair_kernel
from lazyscope.regimes import NeuralTangent, RandomFeatures

MATRICES = 3
"""How many P×P matrices are in memory at most: the kernel and what its decomposition needs."""

_BLOCK = 128  # rows at once


def gram(regime: Any, X: FloatArray, scale: Any, bias: float) -> FloatArray:
    """Return K of the rows of X, (P, P), for a regime or a kernel function k(X, X′); P²(d + 20) flops, 8P² bytes."""
    fits_in_memory(8.0 * MATRICES * len(X) ** 2, f"The kernel of {len(X)} rows", "Use fewer rows.")
    if isinstance(regime, (RandomFeatures, NeuralTangent)):
        _check(regime)
        return of_rows(_extended(X, scale, bias), regime.activation, tangent=isinstance(regime, NeuralTangent))
    if callable(regime):
        K = np.asarray(regime(X, X))
        if K.shape != (len(X), len(X)):
            must = f"return a ({len(X)}, {len(X)}) matrix for as many rows"
            raise InvalidParameter.of("forecast", "regime", must, f"shape {K.shape}")
        return np.array(real_array(K, "forecast", "regime", "return real, finite numbers"))
    must = "be RandomFeatures(…), NeuralTangent(…), or a kernel, a function of two arrays of rows"
    raise InvalidParameter.of("forecast", "regime", must, f"a {type(regime).__name__}")


def _check(regime: RandomFeatures | NeuralTangent) -> None:
    if regime.weights is not None or getattr(regime, "surrogate", False):
        instead = "Leave weights and surrogate out, or pass the kernel of such features as a function."
        raise NoTheorem.of("A forecast", "isotropic weights and σ itself", regime, instead)


def _extended(X: FloatArray, scale: Any, bias: Any) -> FloatArray:
    """Return x̃ = (sx, β), so that ⟨x̃, x̃′⟩ is the covariance of z and z′."""
    β = real_number(bias, "forecast", "bias")
    if β < 0.0:
        raise InvalidParameter.of("forecast", "bias", "be zero or positive, a standard deviation", bias)
    mean = float(np.mean(np.einsum("nd,nd->n", X, X)))
    if isinstance(scale, str) and scale == "auto":
        s = 1.0 / np.sqrt(mean) if mean > 0.0 else 1.0
    else:
        must = 'be "auto" or a positive number, the standard deviation of a weight'
        s = real_number(scale, "forecast", "scale", must) if not isinstance(scale, str) else -1.0
        if s <= 0.0:
            raise InvalidParameter.of("forecast", "scale", must, repr(scale))
    return np.column_stack([s * X, np.full(len(X), β)]) if β else s * X


def of_rows(X: FloatArray, sigma: Activation, *, tangent: bool) -> FloatArray:
    """Return K for rows x̃, block by block in the place of their covariance: one half, and its mirror image.

    >>> of_rows(np.eye(2), Activation("relu"), tangent=False).round(6)  # ½ together, 1/2π apart
    array([[0.5     , 0.159155],
           [0.159155, 0.5     ]])
    >>> of_rows(np.eye(2), Activation("relu"), tangent=True)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    K = np.asarray(X @ X.T)
    a = np.diagonal(K).copy()
    s = np.sqrt(a)
    p = int(tangent)
    closed = sigma.name == "erf"
    seen = np.where(s > 0.0, s, 1.0)  # a row of zeros: σ(0) or nothing at all, whatever the angle
    series = not closed and sigma.rectified is None
    pair = None if closed else _pair(sigma, seen, _largest_cosine(K, seen) if series else 1.0, p)
    for start in range(0, len(K), _BLOCK):
        rows, right = slice(start, min(len(K), start + _BLOCK)), slice(start, len(K))
        C = K[rows, right]
        value = _erf(C, a[rows, None], a[right], tangent) if pair is None else _paired(pair, p, C, seen, rows, right)
        if tangent:
            value *= C
        K[right, rows], K[rows, right] = value.T, value
        K[rows, rows] = 0.5 * (K[rows, rows] + K[rows, rows].T)
    if not closed:
        _exact_diagonal(K, sigma, seen, a, tangent)
        _zero_rows(K, sigma, s, tangent)
    return K


def _pair(sigma: Activation, s: FloatArray, largest_cosine: float, p: int) -> PairKernel:
    try:
        return pair_kernel(sigma, s, largest_cosine, order=p)
    except NotConverged:
        raise NotConverged(
            f"The kernel of {sigma.name} is a series that does not end where two rows are nearly parallel, as two of "
            f"these are (cosine {largest_cosine:.6f}). Use relu, erf or another activation in closed form."
        ) from None


def _paired(pair: PairKernel, p: int, C: FloatArray, s: FloatArray, rows: slice, columns: slice) -> FloatArray:
    r = C / s[rows, None]
    r /= s[columns]
    return pair(p, p, np.clip(r, -1.0, 1.0, out=r), rows, columns)


def _erf(c: FloatArray, a: FloatArray, b: FloatArray, tangent: bool) -> FloatArray:
    whole = (1.0 + 2.0 * a) * (1.0 + 2.0 * b)
    if tangent:
        return np.asarray(4.0 / np.pi / np.sqrt(whole - 4.0 * c * c))
    return np.asarray(2.0 / np.pi * np.arcsin(2.0 * c / np.sqrt(whole)))


def _largest_cosine(K: FloatArray, s: FloatArray) -> float:
    """Return the largest |cos| between two different rows, from their covariances."""
    largest = 0.0
    for start in range(0, len(K), _BLOCK):
        r = np.abs(K[start : start + _BLOCK] / s[start : start + _BLOCK, None] / s)
        r[np.arange(len(r)), np.arange(start, start + len(r))] = 0.0
        largest = max(largest, float(r.max()))
    return min(largest, 1.0)


def _exact_diagonal(K: FloatArray, sigma: Activation, s: FloatArray, a: FloatArray, tangent: bool) -> None:
    """Put E[σ²], or E[σ′²]‖x̃‖², on the diagonal: no truncated series."""
    each, where = np.unique(s, return_inverse=True)
    moment = sigma.slope_moments(each)[0] if tangent else sigma.second_moment(each)
    K.flat[:: len(K) + 1] = moment[where] * (a if tangent else 1.0)


def _zero_rows(K: FloatArray, sigma: Activation, s: FloatArray, tangent: bool) -> None:
    """Rows x̃ = 0 have z = 0: K = σ(0)E[σ(z′)], and no tangent feature at all."""
    (zero,) = np.nonzero(s == 0.0)
    if zero.size == 0:
        return
    here = float(sigma(np.zeros(1))[0])
    mean = np.full(len(s), here)
    if np.any(s > 0.0):
        mean[s > 0.0] = sigma.hermite_coefficients(s[s > 0.0], 0)[0]
    row = np.zeros_like(mean) if tangent else here * mean
    K[zero], K[:, zero] = row, row[:, None]

"""The spectrum of B without the sampling noise of its estimate.

Two things move the eigenvalues λ of B in what is observed, whatever its eigenvectors are:

    B̂ = LᵀΛL + G,      G symmetric, entries of variance v/4 (v/2 on the diagonal),   LLᵀ = S/n,  S ~ Wishart(n),

G the noise of the coefficients, and L the whitening, which knows the covariance of the inputs from n samples only. Both
drive eigenvalues apart (for G see Dyson 1962): of B = I and of B = 0 one sees a semicircle. The spectrum that is sought
is the one whose noisy copies look, on average, like the observed one:

    λ ← sorted(λ + λ̂ − E eig(LᵀΛL + G)),

E over fixed draws, "sorted" the nearest sequence that does not fall (so that eigenvalues which noise alone told apart
become equal again). It is the indirect inference of Gouriéroux, Monfort & Renault (1993).
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.blas import threads_for

_DRAWS = 960  # over d: larger matrices fluctuate less
_STEPS = 30  # a cluster of eigenvalues is resolved slowly: what more steps would resolve is noise


def without_noise(observed: FloatArray, n: int, v: float) -> FloatArray:
    """Return λ, rising, for the eigenvalues of B̂ from n samples with coefficients of variance v; 10⁶d² flops.

    >>> rng = np.random.default_rng(1)
    >>> G = rng.standard_normal((20, 20))
    >>> seen = np.linalg.eigvalsh(np.eye(20) + 0.05 * (G + G.T) / 2**0.5)
    >>> found = without_noise(seen, 10**6, 0.01)
    >>> seen.std().round(2), found.std().round(2)
    (np.float64(0.21), np.float64(0.03))
    """
    from sklearn.isotonic import isotonic_regression

    d = len(observed)
    draws = max(8, _DRAWS // d)
    rng = np.random.default_rng(0)  # the same draws for all data: the correction is a function of what was observed
    G = rng.standard_normal((draws, d, d)) * sqrt(v / 8.0)
    G += G.transpose(0, 2, 1)
    L = _roots(draws, d, n, rng)
    seen = np.sort(observed)
    estimate = seen
    with threads_for(d**3):
        for _ in range(_STEPS):
            noisy = np.linalg.eigvalsh((L.transpose(0, 2, 1) * estimate) @ L + G).mean(axis=0)
            estimate = np.asarray(isotonic_regression(estimate + seen - noisy))
    return estimate


def _roots(draws: int, d: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw L, lower triangular, with LLᵀ ~ Wishart(n)/n (Bartlett 1933)."""
    L = np.tril(rng.standard_normal((draws, d, d)), -1)
    diagonal = np.arange(d)
    L[:, diagonal, diagonal] = np.sqrt(rng.chisquare(np.maximum(n - 1 - diagonal, 1), (draws, d)))
    return np.asarray(L / sqrt(n))

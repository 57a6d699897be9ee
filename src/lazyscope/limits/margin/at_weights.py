"""Random features at given weights as Gaussian features with a spectrum, for which Gordon's formula speaks.

What `classifier` says for N, d → ∞ it then says of the weights that were drawn.
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.regimes import GaussianFeatures, RandomFeatures

_POWERS = 12  # of ⟨w_i, w_j⟩ in the covariance: of order d^(−k/2), i ≠ j


def features_at(regime: RandomFeatures, W: FloatArray) -> GaussianFeatures:
    """Return b₁⟨w_i, x⟩ + b⋆z_i at these weights, (N, d), as Gaussian features with a spectrum.

    With WᵀW = V diag(s²) Vᵀ the eigenvalues are λ = b₁²s² + b⋆², and N − d more of them are b⋆² where N > d. The score
    S = x₁ has covariance b₁We₁ with the features, so that its share along an eigenvector is b₁²s²V₁²/λ.

    >>> W = np.eye(3)[:2]
    >>> features = features_at(RandomFeatures("relu"), W)
    >>> features.spectrum.round(4), features.shares.round(4)
    (array([0.3408, 0.3408]), array([0.    , 0.7335]))
    """
    N, d = W.shape
    squares, V = np.linalg.eigh(W.T @ W)
    squares, toward = squares[-N:].clip(0.0), V[0, -N:]
    signal, noise = regime.activation.b1**2, regime.activation.lambda_tilde
    spectrum = signal * squares + noise
    shares = signal * squares * toward**2 / spectrum
    more = max(0, N - d)
    return GaussianFeatures(np.append(spectrum, np.full(more, noise)), np.append(shares, np.zeros(more)))


def nonlinear_features_at(regime: RandomFeatures, W: FloatArray) -> GaussianFeatures:
    """Return Gaussian features with the covariance of σ(⟨w_i, x⟩) at these weights, (N, d): unit vectors, x ~ N(0, I).

    It is Σ_{k≥1} c_k²⟨w_i, w_j⟩^k with the Hermite coefficients c_k of σ, cut off between different neurons, and Var σ
    on the diagonal.

    >>> W = np.eye(3)[:2]  # orthogonal neurons: there are no higher powers
    >>> nonlinear_features_at(RandomFeatures("relu"), W).spectrum.round(4)
    array([0.3408, 0.3408])
    """
    sigma = regime.activation
    cosines, covariance = W @ W.T, np.zeros((len(W), len(W)))
    for k in range(_POWERS, 0, -1):
        covariance += sigma.hermite(k) ** 2
        covariance *= cosines
    np.fill_diagonal(covariance, sigma.b1**2 + sigma.lambda_tilde)
    spectrum, V = np.linalg.eigh(covariance)
    spectrum = np.maximum(spectrum, np.finfo(float).eps * spectrum[-1])
    return GaussianFeatures(spectrum, (sigma.b1 * (V.T @ W[:, 0])) ** 2 / spectrum)

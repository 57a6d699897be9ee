"""A random first layer: unit weights, and the features they make, nonlinear or noisy linear."""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.regimes import RandomFeatures


def unit_rows(X: FloatArray) -> FloatArray:
    """Return rows divided by their norms: uniform on the sphere where they were Gaussian.

    >>> unit_rows(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def features(regime: RandomFeatures, W: FloatArray, X: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return σ(⟨w_i, x⟩) − E σ(g) for the rows of X, (n, N), or b₁⟨w_i, x⟩ + b⋆z_i for a surrogate: 2ndN flops."""
    sigma, linear = regime.activation, X @ W.T
    if regime.surrogate:
        linear *= sigma.b1
        linear += sigma.b_star * rng.standard_normal(linear.shape)
        return linear
    values = sigma.at(linear)
    values -= sigma.hermite(0)
    return values

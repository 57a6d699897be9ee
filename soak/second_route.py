"""A second route to the exact risks at d = 1 and 2: least squares on the nodes of a quadrature, by singular values.

Features and target are evaluated on nodes of the Gaussian measure and the best fit is a projection, whose error grows
with the condition number of the features, not with its square as that of the normal equations does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lazyscope.activations import Activation
from lazyscope.numerics.quadrature import panels

Array = NDArray[np.float64]
_REACH = 12.0  # φ(12) = 1e-32


def nodes(W: Array) -> tuple[Array, Array]:
    """Return nodes (n, d) and weights of N(0, I), with panel edges where some ⟨w, x⟩ = 0; W is (N, d), d ≤ 2."""
    if W.shape[1] == 1:
        t, w = panels(np.linspace(-_REACH, _REACH, 81))
        return t[:, None], w * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
    turn = np.arctan2(W[:, 1], W[:, 0])
    kinks = np.concatenate([turn + 0.5 * np.pi, turn - 0.5 * np.pi, np.linspace(0.0, 2.0 * np.pi, 17)[:-1]])
    edges = np.sort(np.mod(kinks, 2.0 * np.pi))
    angle, around = panels(np.append(edges, edges[0] + 2.0 * np.pi))
    r, out = panels(np.linspace(0.0, _REACH, 25))
    X = np.stack([np.outer(np.cos(angle), r).ravel(), np.outer(np.sin(angle), r).ravel()], axis=1)
    return X, np.outer(around, out * r * np.exp(-0.5 * r * r)).ravel() / (2.0 * np.pi)


def risk(B: Array, W: Array, sigma: Activation, tangent: bool) -> float:
    """Return the risk of random features, or of the tangent model with its offset; B is diagonal, (d,)."""
    X, weight = nodes(W)
    target = X**2 @ (B / np.max(np.abs(B)))
    target -= np.sum(B / np.max(np.abs(B)))
    H = X @ W.T
    if tangent:
        features = (sigma.derivative(H)[:, :, None] * X[:, None, :]).reshape(len(X), -1)
        features = np.concatenate([np.ones((len(X), 1)), features], axis=1)
    else:
        features = sigma(H) - sigma.hermite(0)
    root = np.sqrt(weight)
    A, y = features * root[:, None], target * root
    size = np.linalg.norm(A, axis=0)
    left, values, _ = np.linalg.svd(A / np.where(size > 0.0, size, 1.0), full_matrices=False)
    basis = left[:, values > 1e-13 * values[0]]
    missed = y - basis @ (basis.T @ y)
    return float(missed @ missed / (y @ y))

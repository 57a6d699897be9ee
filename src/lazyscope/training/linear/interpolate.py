"""Networks fitted to given labels exactly, or as far as it goes: linear ones by rank, the trained one by descent."""

from __future__ import annotations

from typing import Literal

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, fits_in_memory

Kind = Literal["RF", "NT", "NN"]
KINDS: tuple[Kind, ...] = ("RF", "NT", "NN")
_STARTS, _ITERATIONS = 4, 200


def features(kind: Kind, sigma: Activation, X: FloatArray, W: FloatArray) -> FloatArray:
    """Return the features of RF, (n, N), or of NT, (n, Nd + 1), of the rows of X."""
    n, d = X.shape
    fits_in_memory(24.0 * n * W.shape[1] * (1 if kind == "RF" else d), "The matrix of features", "Use fewer samples.")
    if kind == "RF":
        return np.asarray(sigma(X @ W) - sigma.hermite(0))
    slopes = sigma.derivative(X @ W)
    tangent = (slopes[:, :, None] * X[:, None, :]).reshape(n, -1)
    return np.concatenate([tangent, np.ones((n, 1))], axis=1)


def fitted(phi: FloatArray, y: FloatArray) -> tuple[float, int]:
    """Return ‖y − Φβ‖/‖y‖ of the least-squares fit and the rank of Φ, by one singular value decomposition."""
    scale = np.linalg.norm(phi, axis=0)
    left, values, _ = np.linalg.svd(phi / np.where(scale > 0.0, scale, 1.0), full_matrices=False)
    kept = values > values[0] * max(phi.shape) * np.finfo(np.float64).eps
    missed = y - left[:, kept] @ (left[:, kept].T @ y)
    return float(np.linalg.norm(missed) / np.linalg.norm(y)), int(np.count_nonzero(kept))


def trained(sigma: Activation, X: FloatArray, y: FloatArray, rng: np.random.Generator, N: int, enough: float) -> float:
    """Return ‖y − f‖/‖y‖ of the best of a few descents; one that reaches `enough` is the last.

    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((8, 4)), rng.standard_normal(8)
    >>> trained(Activation("tanh"), X, y, rng, 6, 1e-7) < 1e-6
    True
    """
    best = np.inf
    for _ in range(_STARTS):
        best = min(best, _descended(sigma, X, y, rng, N, enough))
        if best <= enough:
            break
    return best


def _descended(
    sigma: Activation, X: FloatArray, y: FloatArray, rng: np.random.Generator, N: int, enough: float
) -> float:
    """Fit a network from one random start by Levenberg–Marquardt; return ‖y − f‖/‖y‖ where it ends.

    An iteration solves with JJᵀ + μI, n × n, or JᵀJ + μI where that is smaller.
    """
    n, d = X.shape
    a, W, c = rng.standard_normal(N) / np.sqrt(N), rng.standard_normal((d, N)) / np.sqrt(d), 0.0
    damping, size = 1.0, float(np.linalg.norm(y))

    def residual(a: FloatArray, W: FloatArray, c: float) -> FloatArray:
        return np.asarray(sigma(X @ W) @ a + c - y)

    r = residual(a, W, c)
    for _ in range(_ITERATIONS):
        H = X @ W
        slopes = sigma.derivative(H) * a
        J = np.concatenate([sigma(H), (X[:, :, None] * slopes[:, None, :]).reshape(n, -1), np.ones((n, 1))], axis=1)
        wide = J.shape[1] >= n
        gram = J @ J.T if wide else J.T @ J
        for _ in range(12):
            system = gram + damping * np.eye(len(gram))
            step = J.T @ np.linalg.solve(system, r) if wide else np.linalg.solve(system, J.T @ r)
            there = a - step[:N], W - step[N:-1].reshape(d, N), c - float(step[-1])
            ahead = residual(*there)
            if float(ahead @ ahead) < float(r @ r):
                damping = max(damping / 5.0, 1e-14)
                (a, W, c), r = there, ahead
                break
            damping *= 4.0
        else:
            break
        if np.linalg.norm(r) < enough * size:
            break
    return float(np.linalg.norm(r)) / size

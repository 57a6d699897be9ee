"""The Rademacher complexity of quadratic models, in closed form for each draw of signs (Bai & Lee 2019, Lemma 5).

For f^Q_W with ‖W‖_{2,4} ≤ B_w, signs s_i = ±1 and A_r = (1/n) Σ_i s_i c₂(w_{0,r}·x_i) x_i x_iᵀ, c₂ = σ″/2,

    sup_W (1/n) Σ_i s_i f^Q_W(x_i) = B_w² √( (1/m) Σ_r λ_max(a_r A_r)₊² )  ≤  B_w² max_r ‖A_r‖_op:

the supremum has a closed form, as ‖w_r‖² are weights in an ℓ₂ ball. Its mean over s is the Rademacher complexity. What
Theorem 6 makes of it has the inputs' size

    M_{x,op} = ‖(1/n) Σ x_i x_iᵀ‖_op^{1/2}/B_x,   between 1/√d (isotropic inputs, n ≫ d) and 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from lazyscope.activations.derivatives import taylor_coefficients
from lazyscope.checks import FloatArray
from lazyscope.training.taylor.model import TaylorModel

_ENTRIES = 1 << 22  # of a block of neurons × samples × inputs: 32 MB


def operator_size(X: FloatArray, Bx: float) -> float:
    """M_{x,op} of one data set.

    >>> operator_size(np.eye(4), 1.0), operator_size(np.ones((4, 1)), 1.0)
    (0.5, 1.0)
    """
    return float(np.linalg.norm(X, 2)) / sqrt(len(X)) / Bx


def feature_matrices(model: TaylorModel, X: FloatArray, s: FloatArray, power: int) -> Iterator[FloatArray]:
    """Yield (1/n) Σ_i s_i c₂(w_{0,r}·x_i)^power x_i x_iᵀ for the neurons of one half, in blocks; both halves agree."""
    half, (n, d) = model.W0[: model.m // 2], X.shape
    size = max(1, _ENTRIES // (n * d))
    for start in range(0, len(half), size):
        g = taylor_coefficients(model.sigma, half[start : start + size] @ X.T, 2)[2] ** power * (s / n)
        yield (g[:, :, None] * X).transpose(0, 2, 1) @ X


def suprema(model: TaylorModel, X: FloatArray, s: FloatArray) -> tuple[float, float, float]:
    """√(mean λ₊²), max ‖A_r‖_op and max ‖A_r‖_F for one draw of signs, at B_w = 1."""
    squares, largest, frobenius = 0.0, 0.0, 0.0
    for A in feature_matrices(model, X, s, 1):
        values = np.linalg.eigvalsh(A)
        up, down = np.maximum(values[:, -1], 0.0), np.maximum(-values[:, 0], 0.0)  # a_r = +1 and −1
        squares += float(np.sum(up**2) + np.sum(down**2))
        largest = max(largest, float(np.max(np.abs(values))))
        frobenius = max(frobenius, float(np.max(np.linalg.norm(values, axis=1))))
    return sqrt(squares / model.m), largest, frobenius


def second_moment(model: TaylorModel, X: FloatArray) -> float:
    """Return max_r ‖E A_r²‖_op = max_r ‖(B_x²/n²) Σ_i c₂² x_i x_iᵀ‖_op: Lemma 8 bounds E max_r ‖A_r‖ by it."""
    weights = np.full(len(X), model.Bx**2 / len(X))
    return max(float(np.linalg.eigvalsh(A)[:, -1].max()) for A in feature_matrices(model, X, weights, 2))

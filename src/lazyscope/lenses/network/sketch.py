"""The tangent kernel of a large network: by products with random directions, never by its Jacobian, with its error.

    K = JJᵀ/k = E (Jω)(Jω)ᵀ/k,    ω ∈ {±1}^P,      K_b = mean over the ω of group b,

s directions in B groups. Jω costs one forward derivative, and memory a few times the parameters'. An entry of the mean
is off by √(K_ii K_jj + K_ij²)·√(1/s) or less, a tenth at s = 128. What is asked of kernels are inner products, and

    ⟨K, L⟩ ≈ Σ_{b≠c} ⟨K_b, L_c⟩/(B(B − 1))

has no bias, as different groups are independent: ‖K − K₀‖² of the mean itself would have the noise added to it. The
same ω serve the start and every look. Errors are those of the jackknife over groups. An exact kernel is one group.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan, sqrt
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.network.differentiable import Differentiable
from lazyscope.progress import report

GROUPS = 8


def sketched(model: Differentiable, theta: FloatArray, x: Any, directions: int) -> FloatArray:
    """Return K_b, (GROUPS, n, n), from so many directions: one forward derivative each, 8·P bytes for ω."""
    n, groups = len(x), np.zeros((GROUPS, len(x), len(x)))
    for j in range(directions):
        report(j, directions, f"tangent kernel, direction {j + 1} of {directions}")
        signs = np.random.default_rng((0, j)).integers(0, 2, len(theta), dtype=np.int8)
        product = model.pieces(theta, np.where(signs == 1, 1.0, -1.0), x, 1)[1]
        groups[j % GROUPS] += product @ product.T / product.shape[1]
    sizes = np.array([len(range(b, directions, GROUPS)) for b in range(GROUPS)], dtype=np.float64)
    return np.asarray(groups.reshape(GROUPS, n, n) / sizes[:, None, None])


def inner(K: FloatArray, L: FloatArray) -> float:
    """Return ⟨K, L⟩ of kernels in groups, (B, n, n), without bias; of one group it is the inner product.

    >>> inner(np.ones((1, 2, 2)), np.ones((1, 2, 2)))
    4.0
    """
    B = len(K)
    if B == 1:
        return float(np.vdot(K, L))
    whole = float(np.vdot(K.sum(axis=0), L.sum(axis=0)))
    return (whole - float(np.vdot(K, L))) / (B * (B - 1))


def change(K: FloatArray, K0: FloatArray) -> float:
    """‖K − K₀‖/‖K₀‖: by how much the kernel has changed, size included."""
    size = inner(K0, K0)
    return sqrt(max(0.0, inner(K - K0, K - K0)) / size) if size > 0 else nan


def drift(K: FloatArray, K0: FloatArray) -> float:
    """1 − ⟨K, K₀⟩/(‖K‖‖K₀‖): by how much it has turned, whatever its size.

    >>> round(drift(2.0 * np.eye(3)[None], np.eye(3)[None]), 12)
    0.0
    """
    size = sqrt(max(0.0, inner(K, K) * inner(K0, K0)))
    return max(0.0, 1.0 - inner(K, K0) / size) if size > 0 else nan


def alignment(K: FloatArray, Y: FloatArray) -> float:
    """⟨K, YYᵀ⟩/(‖K‖‖YYᵀ‖) of centred K and Y: how much of the kernel points at the labels.

    >>> y = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    >>> round(alignment((y @ y.T)[None], y), 12)
    1.0
    """
    Y = Y - Y.mean(axis=0)
    K = K - K.mean(axis=1, keepdims=True)
    K = K - K.mean(axis=2, keepdims=True)
    size = sqrt(max(0.0, inner(K, K))) * float(np.linalg.norm(Y.T @ Y))  # ‖YYᵀ‖ = ‖YᵀY‖
    return float(np.sum((K.mean(axis=0) @ Y) * Y)) / size if size > 0 else nan


def jackknife(statistic: Callable[..., float], *kernels: FloatArray) -> float:
    """Return the standard error of a statistic of kernels in groups; zero for exact ones.

    >>> jackknife(change, np.ones((1, 2, 2)), np.ones((1, 2, 2)))
    0.0
    """
    B = len(kernels[0])
    if B == 1:
        return 0.0
    without = [statistic(*(np.delete(K, b, axis=0) for K in kernels)) for b in range(B)]
    return sqrt((B - 1) * float(np.var(without)))

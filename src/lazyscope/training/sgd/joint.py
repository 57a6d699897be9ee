"""RF and NT trained together by SGD, any activation: the network's linearisation in both layers.

    f = (1/N) Σ [a_i(σ(⟨w_i,x⟩) − λ₀) + σ′(⟨w_i,x⟩)⟨v_i,x⟩] + c,    w_i fixed; a, v and c start at 0

so that f = 0 at the start. Gradients of a and v are multiplied by N. With D = (2ε/batch)·diag(r) as for NT,

    a ← a − (σ(XW) − λ₀)ᵀD1,      V ← V − XᵀDσ′(XW).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import compiled
from lazyscope.numerics.normals import Float32
from lazyscope.training.sgd.pack import Int, SecondLayer
from lazyscope.training.sgd.tangent import Tangents


class JointTangents(SecondLayer, Tangents):
    """Models linear in both layers: at most 6·batch·d·N flops a step, and σ and σ′ of batch·N numbers."""

    compresses = False  # the a_i are N parameters, also for N > d

    def __init__(
        self, weights: Sequence[Float32], widths: Sequence[int], step_sizes: Sequence[float], sigma: Activation
    ) -> None:
        """Take weights as rows, widths and step sizes of each model; models with one and the same array share it."""
        super().__init__(weights, widths, step_sizes, sigma)
        self.a = np.zeros(self.state.shape[1], dtype=np.float32)
        self.centre = np.float32(sigma.hermite(0))

    def outputs(self, X: Float32) -> Float32:
        """Return (1/N) Σ [a_i(σ(⟨w_i,x⟩) − λ₀) + σ′(⟨w_i,x⟩)⟨v_i,x⟩]."""
        q = super().outputs(X)
        self.values = np.asfortranarray(self.sigma.at(self.buffer("H", len(X), self.fixed.shape[1]))) - self.centre
        second = self.empty(X)
        add_shared(self.values, self.shared, self.a, self.first, second)
        q += second / self.N
        return q

    def move(self, X: Float32, r: Float32, rate: Float32) -> None:
        """Move a and V by their gradients."""
        super().move(X, r, rate)
        descend_shared(self.values, self.shared, r * (rate * rate.dtype.type(2.0 / len(r))), self.first, self.a)

    def form(self, m: int) -> FloatArray | None:
        """Return None: for σ = u² the offset has a part of −λ₀Σa_i/N, and the risk is measured on samples."""
        return None


@compiled
def add_shared(H: Float32, shared: Int, a: Float32, first: Int, q: Float32) -> None:
    """Add Σ_j a_j H_s(j) over the columns j of model m to q_m; s(j) is the column of H that j shares with others."""
    for m in range(len(first) - 1):
        for j in range(first[m], first[m + 1]):
            for i in range(H.shape[0]):
                q[i, m] += a[j] * H[i, shared[j]]


@compiled
def descend_shared(H: Float32, shared: Int, D: Float32, first: Int, a: Float32) -> None:
    """Subtract ⟨D_m, H_s(j)⟩ from a_j for the columns j of model m."""
    for m in range(len(first) - 1):
        for j in range(first[m], first[m + 1]):
            gradient = H[0, shared[j]] * D[0, m]
            for i in range(1, H.shape[0]):
                gradient += H[i, shared[j]] * D[i, m]
            a[j] -= gradient

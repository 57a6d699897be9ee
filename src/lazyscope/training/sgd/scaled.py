"""NN with an output scale α, first layer trained by SGD, any activation: lazy for large α, rich for small.

    f = (α/N) Σ [σ(⟨w_i,x⟩) − σ(⟨w_i⁰,x⟩)] + c,    W = W₀ + V/α,  V starts at 0

The loss is divided by α² for the weights, and their gradient multiplied by N as everywhere: with residuals r on a batch
X, rows x, and D = (2ε/batch)·diag(r),

    V ← V − XᵀDσ′(XW),

which for α → ∞ are the steps of NT. V is the state: it is of order 1 for every α. The gradient of c is multiplied by
1 + 1/α, so that for small α, where weights move 1/α times faster, c keeps up with them. For σ = u², N > d weights may
be replaced by d, as in NT and NN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.numerics.normals import Float32
from lazyscope.training.sgd.pack import add_weighted, scale
from lazyscope.training.sgd.tangent import Tangents


class ScaledNetworks(Tangents):
    """Networks with an output scale: 6·batch·d·N flops a step and model, and σ and σ′ of batch·N numbers."""

    def __init__(
        self,
        weights: Sequence[Float32],
        widths: Sequence[int],
        step_sizes: Sequence[float],
        sigma: Activation,
        alpha: float,
    ) -> None:
        """Take what a tangent model takes, and α."""
        super().__init__(weights, widths, step_sizes, sigma)
        self.alpha = alpha

    def outputs(self, X: Float32) -> Float32:
        """Return (α/N) Σ [σ(⟨w_i,x⟩) − σ(⟨w_i⁰,x⟩)]."""
        H, K, q = self.times(X, self.fixed, "H"), self.times(X, self.state, "K"), self.empty(X)
        number = self.state.dtype.type
        before = np.asfortranarray(H[:, self.shared])
        now = before + K * number(1.0 / self.alpha)
        if self.sigma.name == "square":
            values = K * (before + now)  # α(h² − h₀²) without the cancellation
        else:
            values = np.asfortranarray(number(self.alpha) * (self.sigma.at(now) - self.sigma.at(before)))
        self.slope = np.asfortranarray(self.sigma.slope_at(now))
        add_weighted(values, np.ones(values.shape[1], dtype=number), self.first, q)
        q /= self.N
        return q

    def move(self, X: Float32, r: Float32, rate: Float32) -> None:
        """Subtract XᵀDσ′(XW) from V."""
        scale(self.slope, r * (rate * rate.dtype.type(2.0 / len(r))), self.first)
        self.subtract(X, self.slope)

    def step(self, X: Float32, y: Float32, divisor: float) -> None:
        """Make one step, in which the gradient of c is multiplied by 1 + 1/α."""
        before = self.c.copy()
        super().step(X, y, divisor)
        self.c += (self.c - before) * self.c.dtype.type(1.0 / self.alpha)

    def form(self, m: int) -> FloatArray | None:
        """Return (W₀Vᵀ + VW₀ᵀ + VVᵀ/α)/N, for σ = u²."""
        linear = super().form(m)
        if linear is None:
            return None
        V = self.state[:, self.columns(m)].astype(np.float64)
        return np.asarray(linear + V @ V.T / (self.alpha * float(self.N[m])))

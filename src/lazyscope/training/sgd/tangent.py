"""NT trained by SGD, any activation.

    f = (1/N) Σ σ′(⟨w_i,x⟩)⟨v_i,x⟩ + c,    w_i fixed; v and c start at 0; the gradient of v is multiplied by N

With residuals r on a batch X, rows x, and D = (2ε/batch)·diag(r),

    V ← V − XᵀDσ′(XW).

σ′(XW) is the same for all step sizes at one width, and computed once. For σ = u², N > d weights may be replaced by the
d columns of R in W = RQ, QQᵀ = I: V = UQ with U ← U − 2XᵀDXR, and f is the same function at every step, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.numerics.normals import Float32
from lazyscope.training.sgd.pack import Pack, add_products, scaled
from lazyscope.training.sgd.square import compressed


class Tangents(Pack):
    """Tangent models: at most 6·batch·d·N flops a step, 4 with many step sizes (min(N, d) for N where σ = u²)."""

    compresses = True  # N > d weights to d columns, for σ = u²

    def __init__(
        self,
        weights: Sequence[Float32],
        widths: Sequence[int],
        step_sizes: Sequence[float],
        sigma: Activation,
    ) -> None:
        """Take weights as rows, widths and step sizes of each model; models with one and the same array share it."""
        distinct = {id(W): W for W in weights}
        if self.compresses and sigma.name == "square":
            distinct = {key: compressed(W) for key, W in distinct.items()}
        starts = [distinct[id(W)] for W in weights]
        super().__init__(starts, widths, step_sizes)
        self.sigma = sigma
        self.fixed = np.asfortranarray(np.concatenate(list(distinct.values())).T, dtype=np.float32)
        self.state[:] = 0.0
        ends = np.cumsum([0, *map(len, distinct.values())])
        offset = dict(zip(distinct, ends, strict=False))
        self.shared = np.concatenate([offset[id(W)] + np.arange(len(distinct[id(W)])) for W in weights])

    def outputs(self, X: Float32) -> Float32:
        """Return (1/N) Σ σ′(⟨w_i,x⟩)⟨v_i,x⟩."""
        H, K, q = self.times(X, self.fixed, "H"), self.times(X, self.state, "K"), self.empty(X)
        self.slope = np.asfortranarray(self.sigma.slope_at(H))
        add_products(self.slope, self.shared, K, self.first, q)
        q /= self.N
        return q

    def move(self, X: Float32, r: Float32, rate: Float32) -> None:
        """Subtract XᵀDσ′(XW) from V."""
        Z = self.buffer("Z", len(X), self.state.shape[1])
        scaled(self.slope, self.shared, r * (rate * rate.dtype.type(2.0 / len(r))), self.first, Z)
        self.subtract(X, Z)

    def drop(self, columns: slice) -> None:
        """Remove what the columns share, too."""
        super().drop(columns)
        self.shared = np.delete(self.shared, columns)

    def form(self, m: int) -> FloatArray | None:
        """Return (WVᵀ + VWᵀ)/N, for σ = u²."""
        if self.sigma.name != "square":
            return None
        here = self.columns(m)
        W, V = self.fixed[:, self.shared[here]].astype(np.float64), self.state[:, here].astype(np.float64)
        return np.asarray((W @ V.T + V @ W.T) / float(self.N[m]))

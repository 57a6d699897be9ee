"""NN with both layers trained by SGD, any activation.

    f = (1/N) Σ a_i σ(⟨w_i,x⟩) + c,    a_i and c start at 0; gradients of a_i and w_i are multiplied by N

With residuals r on a batch X, rows x, and D = (2ε/batch)·diag(r),

    a ← a − σ(XW)ᵀD1,      W ← W − XᵀDσ′(XW) diag(a),

both with the a and W from before the step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.numerics.blas import gemm
from lazyscope.numerics.compiled import compiled
from lazyscope.numerics.descent.steps import EPSILON, adam, corrected
from lazyscope.numerics.normals import Float32
from lazyscope.training.sgd.pack import Int, SecondLayer, add_weighted


class Networks(SecondLayer):
    """Networks with any activation: 4·batch·d·N flops a step and model, and σ and σ′ of batch·N numbers."""

    def __init__(
        self,
        starts: Sequence[Float32],
        widths: Sequence[int],
        step_sizes: Sequence[float],
        sigma: Activation,
        fixed_layer: bool = False,
        summed: bool = False,
    ) -> None:
        """Take what every pack takes, σ, and whether the a_i are 1 and stay so, or N: then f = Σσ(⟨w_i,x⟩) + c."""
        super().__init__(starts, widths, step_sizes)
        self.sigma, self.fixed_layer = sigma, fixed_layer
        self.a = np.full(self.state.shape[1], float(fixed_layer), dtype=np.float32)
        if summed:
            self.a *= np.repeat(self.N, np.diff(self.first))

    def outputs(self, X: Float32) -> Float32:
        """Return (1/N) Σ a_i σ(⟨w_i,x⟩)."""
        self.H, q = self.times(X, self.state, "H"), self.empty(X)
        self.values = np.asfortranarray(self.sigma.at(self.H))
        add_weighted(self.values, self.a, self.first, q)
        q /= self.N
        return q

    def move(self, X: Float32, r: Float32, rate: Float32) -> None:
        """Move a and W by their gradients."""
        slope = np.asfortranarray(self.sigma.slope_at(self.H))
        D, a = r * (rate * rate.dtype.type(2.0 / len(r))), self.a
        descend(self.values, slope, D, self.first, np.ones_like(a) if self.fixed_layer else a)
        self.subtract(X, slope)

    def form(self, m: int) -> FloatArray | None:
        """Return (1/N) W diag(a) Wᵀ, for σ = u²."""
        if self.sigma.name != "square":
            return None
        W = self.state[:, self.columns(m)].astype(np.float64)
        a = self.a[self.columns(m)].astype(np.float64)
        return np.asarray((W * (a / float(self.N[m]))) @ W.T)


class AdamNetworks(Networks):
    """The same networks by Adam (Kingma & Ba 2015), on a_i/N and w_i: twice the memory, and no factor N needed.

    Plain steps must be small enough for the neuron with the largest |a_i|, whose w_i then moves |a_i| times faster;
    Adam gives every weight its own scale. Step sizes are those of w_i.
    """

    def __init__(
        self, starts: Sequence[Float32], widths: Sequence[int], step_sizes: Sequence[float], sigma: Activation
    ) -> None:
        """Take what every pack takes, and σ."""
        super().__init__(starts, widths, step_sizes, sigma)
        self.steps = 0
        self.moments = [np.zeros_like(self.state) for _ in range(2)]
        self.moments_a = [np.zeros_like(self.a) for _ in range(2)]

    def move(self, X: Float32, r: Float32, rate: Float32) -> None:
        """Move a and W by Adam's steps: the gradient of W is one product, as in a plain step."""
        self.steps += 1
        slope, unit = np.asfortranarray(self.sigma.slope_at(self.H)), self.state.dtype.type
        D = r * unit(2.0 / len(r))
        before, a_gradient = self.a.copy(), self.a.copy()
        descend(self.values, slope, D, self.first, a_gradient)  # slope_j ← a_j D σ′_j; a ← a − gradient
        np.subtract(before, a_gradient, out=a_gradient)
        gradient = self.buffer("gradient", *self.state.shape)
        gemm(1.0, X.T, slope, 0.0, gradient)
        for m in np.flatnonzero(self.alive):
            here, now = self.columns(int(m)), corrected(float(rate[m]), self.steps)
            theta, g, m1, m2 = (part[:, here].reshape(-1, order="F") for part in (self.state, gradient, *self.moments))
            adam(theta, g, m1, m2, unit(now), unit(EPSILON))
            theta, g, m1, m2 = (part[here] for part in (self.a, a_gradient, *self.moments_a))
            adam(theta, g, m1, m2, unit(now * float(self.N[m])), unit(EPSILON))

    def drop(self, columns: slice) -> None:
        """Remove moments, too."""
        super().drop(columns)
        self.moments = [np.asfortranarray(np.delete(part, columns, axis=1)) for part in self.moments]
        self.moments_a = [np.delete(part, columns) for part in self.moments_a]


@compiled
def descend(values: Float32, slope: Float32, D: Float32, first: Int, a: Float32) -> None:
    """Multiply slope_j by a_j D_m, then subtract ⟨D_m, values_j⟩ from a_j, for the columns j of model m."""
    for m in range(len(first) - 1):
        for j in range(first[m], first[m + 1]):
            gradient = values[0, j] * D[0, m]
            for i in range(1, values.shape[0]):
                gradient += values[i, j] * D[i, m]
            for i in range(values.shape[0]):
                slope[i, j] *= a[j] * D[i, m]
            a[j] -= gradient

"""NN with σ = u² and one second-layer weight for all neurons: Theorem 3's algorithm, in the paper's parametrisation.

    f = (a/N) Σ⟨w_i,x⟩² + c,    w_i ~ N(0, I/d), a and c start at 0; the gradient of W is multiplied by N

With residuals r on a batch X, rows x, and D = (4ε/batch)·diag(r),

    W ← (I − aXᵀDX)W.

A step multiplies from the left, and f depends on WWᵀ alone. So N > d weights may be replaced by the d columns of R in
the factorisation W = RQ, QQᵀ = I: R follows the same steps, and f is the same function at every step, exactly. The cost
of a step does not depend on N from there on. (WWᵀ itself could be the state; in float32 it soon fails to be ⪰ 0.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.normals import Float32
from lazyscope.training.sgd.pack import Pack, add_squares, scale


def compressed(W: Float32) -> Float32:
    """Return at most d rows with the same WᵀW as the rows of W, (N, d): 2Nd² flops, once.

    >>> W = np.random.default_rng(0).standard_normal((50, 3), dtype=np.float32)
    >>> R = compressed(W)
    >>> R.shape, bool(np.allclose(R.T @ R, W.T @ W, rtol=1e-5))
    ((3, 3), True)
    """
    N, d = W.shape
    return W if d >= N else np.asarray(np.linalg.qr(W.astype(np.float64), mode="r"), dtype=np.float32)


class SquareNetworks(Pack):
    """Networks with σ = u²: 4·batch·d·min(N, d) flops a step and model."""

    def __init__(
        self, starts: Sequence[Float32], widths: Sequence[int], step_sizes: Sequence[float], fixed_layer: bool = False
    ) -> None:
        """Take what every pack takes, and whether a is 1 and stays so: Theorem 3 to the letter, w_i being √N w_i."""
        super().__init__([compressed(W) for W in starts], widths, step_sizes)
        self.fixed_layer = fixed_layer
        self.a = np.full(len(starts), float(fixed_layer), dtype=np.float32)

    def outputs(self, X: Float32) -> Float32:
        """Return (a/N) Σ⟨w_i,x⟩²."""
        self.H, self.q = self.times(X, self.state, "H"), self.empty(X)
        add_squares(self.H, self.first, self.q)
        self.q /= self.N
        return np.asarray(self.a * self.q)

    def move(self, X: Float32, r: Float32, rate: Float32) -> None:
        """Replace W by (I − aXᵀDX)W, and move a by its gradient."""
        number = self.a.dtype.type
        scale(self.H, r * (self.a * rate * number(4.0 / len(r))), self.first)
        if not self.fixed_layer:
            self.a -= rate * number(2.0) * ((r * self.q).sum(axis=0) / len(r))
        self.subtract(X, self.H)

    def form(self, m: int) -> FloatArray:
        """Return (a/N) WWᵀ."""
        W = self.state[:, self.columns(m)].astype(np.float64)
        return np.asarray(float(self.a[m] / self.N[m]) * (W @ W.T))

    def healthy(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Say of each model whether all its numbers are finite, a among them."""
        return super().healthy() & np.isfinite(self.a)

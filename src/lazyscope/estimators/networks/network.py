"""A two-layer network with offsets, its loss, and one step of Adam or SGD on a batch, in float32 or float64.

    f(x) = c + Aᵀσ(W̃x̃),   x̃ = (x, 1),      Z = XW̃ᵀ,  H = σ(Z),  R = ∂ℓ/∂f,
    ∂A = HᵀR,   ∂W̃ = ((RAᵀ) ∘ σ′(Z))ᵀX.

Three matrix products with the batch, 6·batch·N·d flops, each into memory that was set aside before; σ, σ′ and the step
are one pass over their arrays each. All parameters are one vector, so that the step is one loop.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lazyscope.activations import Activation
from lazyscope.estimators.base import Array
from lazyscope.estimators.probabilities import softmax
from lazyscope.numerics.compiled import compiled
from lazyscope.numerics.descent.steps import EPSILON, adam, corrected

Kind = Literal["square", "logistic"]


class TwoLayerNetwork:
    """Parameters W̃ (N, d + 1), A (N, k) and c (k,), with the memory for batches of at most `batch` rows.

    `kind` "square" is |f − y|²/2, "logistic" the cross-entropy of a sigmoid (k = 1) or of a softmax.

    >>> network = TwoLayerNetwork(np.ones((2, 3)), np.ones((2, 1)), Activation("relu"), "square", batch=4)
    >>> network.outputs(np.array([[1.0, -1.0, 1.0]])).tolist()
    [[2.0]]
    """

    def __init__(self, W: Array, A: Array, sigma: Activation, kind: Kind, batch: int) -> None:
        from scipy.linalg.blas import dgemm, sgemm

        (N, D), k = W.shape, A.shape[1]
        self.sigma, self.kind = sigma, kind
        self.theta = np.concatenate([W.ravel(), A.ravel(), np.zeros(k, dtype=W.dtype)])
        self.gradient = np.zeros_like(self.theta)
        self.W, self.A, self.c = _views(self.theta, N, D, k)
        self.dW, self.dA, self.dc = _views(self.gradient, N, D, k)
        self.H, self.Delta = np.empty((batch, N), W.dtype), np.empty((batch, N), W.dtype)
        self.Z = self.H if sigma.name in _SLOPES else np.empty_like(self.H)
        self.gemm: Any = sgemm if W.dtype == np.float32 else dgemm
        self.first, self.second, self.steps = np.zeros_like(self.theta), np.zeros_like(self.theta), 0

    def outputs(self, X: Array) -> Array:
        """Return f at the rows of X, (n, k), n at most the size of a batch; H and Z are kept for the gradient."""
        n = len(X)
        Z, H = self.Z[:n], self.H[:n]
        self.gemm(1.0, self.W.T, X.T, trans_a=1, c=Z.T, overwrite_c=1)
        if self.sigma.name == "relu":
            np.maximum(Z, 0, out=H)
        elif self.sigma.name == "tanh":
            np.tanh(Z, out=H)
        else:
            H[:] = self.sigma.at(Z)
        return np.asarray(self.gemm(1.0, self.A.T, H.T).T + self.c)

    def losses(self, F: Array, Y: Array) -> Array:
        """Return ℓ for each sample, (n,)."""
        if self.kind == "square":
            return np.asarray(0.5 * np.einsum("nk,nk->n", F - Y, F - Y))
        if F.shape[1] == 1:
            return np.asarray(np.logaddexp(0.0, F[:, 0]) - Y[:, 0] * F[:, 0])
        top = F.max(axis=1)
        log_sum = np.log(np.exp(F - top[:, None]).sum(axis=1)) + top
        return np.asarray(log_sum - np.einsum("nk,nk->n", F, Y))

    def probabilities(self, F: Array) -> Array:
        """Return what f says of each class: sigmoid or softmax; f itself for the squared loss."""
        if self.kind == "square":
            return F
        if F.shape[1] == 1:
            from scipy.special import expit

            return np.asarray(expit(F))
        return softmax(F)

    def backward(self, X: Array, F: Array, Y: Array, weights: Array) -> None:
        """Write the gradient of Σ_b weights_b ℓ_b, from the outputs F just computed on X."""
        n = len(X)
        R = np.ascontiguousarray((self.probabilities(F) - Y) * weights[:, None])
        H, Delta = self.H[:n], self.Delta[:n]
        self.gemm(1.0, R.T, H.T, trans_b=1, c=self.dA.T, overwrite_c=1)
        self.dc[:] = R.sum(axis=0)
        self.gemm(1.0, self.A.T, R.T, trans_a=1, c=Delta.T, overwrite_c=1)
        if self.sigma.name in _SLOPES:
            _SLOPES[self.sigma.name](Delta.reshape(-1), H.reshape(-1))
        else:
            Delta *= self.sigma.slope_at(self.Z[:n])
        self.gemm(1.0, X.T, Delta.T, trans_b=1, c=self.dW.T, overwrite_c=1)

    def adam(self, rate: float, decay: float) -> None:
        """Make one step of Adam (Kingma & Ba 2015); `decay` adds decay·θ to the gradient, offsets left out."""
        self._shrink(decay)
        self.steps += 1
        unit = self.theta.dtype.type
        now = unit(corrected(rate, self.steps))
        adam(self.theta, self.gradient, self.first, self.second, now, unit(EPSILON))

    def momentum(self, rate: float, decay: float, momentum: float) -> None:
        """Make one step of SGD with Nesterov's momentum."""
        self._shrink(decay)
        self.first *= self.theta.dtype.type(momentum)
        self.first -= self.theta.dtype.type(rate) * self.gradient
        self.theta += self.theta.dtype.type(momentum) * self.first
        self.theta -= self.theta.dtype.type(rate) * self.gradient

    def _shrink(self, decay: float) -> None:
        if decay:
            decay = self.theta.dtype.type(decay)
            self.dW[:, :-1] += decay * self.W[:, :-1]
            self.dA += decay * self.A


def _views(vector: Array, N: int, D: int, k: int) -> tuple[Array, Array, Array]:
    return vector[: N * D].reshape(N, D), vector[N * D : N * (D + k)].reshape(N, k), vector[N * (D + k) :]


@compiled
def _relu_slope(delta: Array, h: Array) -> None:
    zero = delta.dtype.type(0.0)
    for i in range(delta.size):
        if h[i] <= zero:
            delta[i] = zero


@compiled
def _tanh_slope(delta: Array, h: Array) -> None:
    one = delta.dtype.type(1.0)
    for i in range(delta.size):
        delta[i] *= one - h[i] * h[i]


_SLOPES = {"relu": _relu_slope, "tanh": _tanh_slope}  # σ′ from σ itself, so that z need not be kept

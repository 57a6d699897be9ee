"""Fully connected ReLU networks of any depth, all layers trained on given images without penalty.

    z₀ = x,   z_l = max(W_l z_{l−1} + b_l, 0),  l ≤ L,      f = W_{L+1} z_L + b_{L+1}.

Labels are one number y_k = ±1 for each class. The loss is ½(f_k − y_k)² or, quadratic hinge, ½max(0, 1 − y_k f_k)², in
the mean over images and classes; the latter is zero as soon as every margin is 1. Both are minimised by L-BFGS.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from lazyscope.checks import FloatArray

Loss = Literal["square", "hinge"]


@dataclass(frozen=True)
class Layers:
    """The sizes of the layers, from the inputs to the outputs.

    >>> Layers((64, 10, 10)).parameters
    760
    """

    sizes: tuple[int, ...]

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum((before + 1) * after for before, after in pairwise(self.sizes))

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Draw weights of variance 2/fan-in (1/fan-in for the last layer), biases 0."""
        parts = []
        for k, (before, after) in enumerate(pairwise(self.sizes)):
            gain = 2.0 if k < len(self.sizes) - 2 else 1.0
            weights = rng.standard_normal((before, after)) * np.sqrt(gain / before)
            parts += [weights.ravel(), np.zeros(after)]
        return np.concatenate(parts)

    def outputs(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """Return f at the rows of X, (n, classes): 2n flops a parameter."""
        return self._forward(theta, X)[-1]

    def loss(self, theta: FloatArray, X: FloatArray, Y: FloatArray, loss: Loss) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient: 6n flops a parameter, and n numbers a neuron."""
        values = self._forward(theta, X)
        F = values[-1]
        r = F - Y if loss == "square" else -Y * np.maximum(1.0 - Y * F, 0.0)
        total = 0.5 * float(np.mean(r**2))
        back, parts = r / r.size, []
        for (W, _), z in zip(reversed(self._unpack(theta)), reversed(values[:-1]), strict=True):
            parts += [back.sum(axis=0), (z.T @ back).ravel()]
            back = (back @ W.T) * (z > 0.0)  # of the inputs it is not used
        return total, np.concatenate(parts[::-1])

    def train(self, X: FloatArray, Y: FloatArray, loss: Loss, start: FloatArray, iterations: int) -> FloatArray:
        """Return where L-BFGS ends: at a loss of 10⁻¹², where it does not fall any more, or after `iterations`."""
        from scipy.optimize import minimize

        def stop(intermediate_result: Any) -> None:
            if intermediate_result.fun < 1e-12:
                raise StopIteration

        options: dict[str, Any] = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20}
        end = minimize(
            self.loss, start, (X, Y, loss), jac=True, method="L-BFGS-B", callback=stop,
            options=options | {"ftol": 1e-15, "gtol": 1e-10},
        )  # fmt: skip
        return np.asarray(end.x)

    def _unpack(self, theta: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        parts, at = [], 0
        for before, after in pairwise(self.sizes):
            middle = at + before * after
            parts.append((theta[at:middle].reshape(before, after), theta[middle : middle + after]))
            at = middle + after
        return parts

    def _forward(self, theta: FloatArray, X: FloatArray) -> list[FloatArray]:
        """Return the values of all layers, the inputs first."""
        values = [X]
        layers = self._unpack(theta)
        for k, (W, b) in enumerate(layers):
            u = values[-1] @ W + b
            values.append(u if k == len(layers) - 1 else np.maximum(u, 0.0))
        return values

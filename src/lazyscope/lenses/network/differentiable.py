"""What a network must offer to be looked at, whichever library it is written in; and how losses are taken of it.

Parameters are one flat vector θ. Inputs are whatever the library calls an array, rows first; values are (n, k).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter

LossName = Literal["square", "cross-entropy"]


class Differentiable(Protocol):
    """A network as a differentiable function of θ and x."""

    at_once: int

    @property
    def layers(self) -> Mapping[str, slice]:
        """Where the parameters of each layer stand in θ."""

    def state(self) -> FloatArray:
        """θ as it is now."""

    def vector(self, other: Any) -> FloatArray:
        """θ of another network of the same shape, or of its saved parameters."""

    def array(self, x: Any) -> Any:
        """Inputs as the library's own array, or as `inputs.Several`."""

    def surroundings(self) -> FloatArray:
        """What is neither a parameter nor an input but changes along training: running statistics."""

    def less_precise(self) -> bool:
        """Look in the network's own precision from now on; False where that is done already."""

    def values(self, theta: FloatArray, x: Any) -> FloatArray:
        """f(x; θ), (n, k)."""

    def pieces(self, theta: FloatArray, delta: FloatArray, x: Any, order: int) -> Sequence[FloatArray]:
        """(1/j!) ∂ʲ/∂tʲ f(x; θ + tδ) at t = 0, for j = 0 … order, each (n, k)."""

    def kernel(self, theta: FloatArray, x: Any, chunk: int) -> FloatArray:
        """(1/k) Σ_l ⟨∇f_l(x), ∇f_l(x′)⟩, (n, n), with Jacobians of `chunk` rows at a time."""

    def times(self, theta: FloatArray, x: Any, u: FloatArray) -> FloatArray:
        """J(Jᵀu), (n, k), for u (n, k): one backward and one forward derivative, no Jacobian."""

    def taylor_loss(
        self, theta: FloatArray, delta: FloatArray, x: Any, Y: FloatArray, order: int, loss: LossName
    ) -> tuple[float, FloatArray]:
        """The mean loss of the Taylor model of this order around θ at θ + δ, and its gradient in δ."""


def rows_of(n: int, size: int) -> Iterator[slice]:
    """Cut n rows into slices of at most `size`.

    >>> list(rows_of(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))


def kernel_by_chunks(
    n: int, chunk: int, jacobian: Callable[[slice], Any], gram: Callable[[Any, Any], FloatArray]
) -> FloatArray:
    """Return K, (n, n), from Jacobians of chunks of rows, two of which are in memory at a time."""
    K = np.empty((n, n))
    for first in rows_of(n, chunk):
        J = jacobian(first)
        for second in rows_of(n, chunk):
            if second.start >= first.start:
                K[first, second] = gram(J, J if second == first else jacobian(second))
                K[second, first] = K[first, second].T
    return K


def targets(y: Any, n: int, k: int, loss: str | None) -> tuple[FloatArray, LossName]:
    """Return targets (n, k) and the loss: classes for whole numbers, numbers otherwise.

    >>> targets(np.array([0, 2]), 2, 3, None)
    (array([[1., 0., 0.],
           [0., 0., 1.]]), 'cross-entropy')
    """
    if loss not in (None, "square", "cross-entropy"):
        raise InvalidParameter.of("lens", "loss", 'be "square" or "cross-entropy"', repr(loss))
    labels = np.asarray(y.detach().cpu() if hasattr(y, "detach") else y)  # a tensor may have a history, and a device
    if labels.dtype.kind not in "biuf" or not np.all(np.isfinite(labels)):
        got = "NaN or infinity" if labels.dtype.kind == "f" else f"an array of {labels.dtype}"
        raise InvalidParameter.of("lens", "y", "hold finite numbers: targets, or the numbers of classes", got)
    if labels.ndim not in (1, 2) or len(labels) != n:
        raise InvalidParameter.of("lens", "y", f"have one row for each of the {n} inputs", f"shape {labels.shape}")
    classes = labels.ndim == 1 and labels.dtype.kind in "iub" and k > 1
    if loss == "cross-entropy" or (loss is None and classes):
        if not classes:
            must = f"be whole numbers, the classes of a network with {k} outputs, for the cross-entropy"
            raise InvalidParameter.of("lens", "y", must, f"shape {labels.shape}, {labels.dtype}")
        if labels.min() < 0 or labels.max() >= k:
            must = f"be classes 0 … {k - 1}, one for each output of the network"
            raise InvalidParameter.of("lens", "y", must, f"{labels.max() if labels.max() >= k else labels.min()}")
        return (labels[:, None] == np.arange(k)).astype(np.float64), "cross-entropy"
    Y = labels.reshape(n, -1).astype(np.float64)
    if classes:
        Y = (labels[:, None] == np.arange(k)).astype(np.float64)
    if Y.shape[1] != k:
        must = f"have as many columns as the network has outputs, {k}"
        raise InvalidParameter.of("lens", "y", must, f"shape {labels.shape}")
    return Y, "square"


def mean_loss(F: FloatArray, Y: FloatArray, loss: LossName) -> float:
    """Return the mean over rows of |f − y|²/2, or of the cross-entropy."""
    if loss == "square":
        return float(0.5 * np.mean(np.sum((F - Y) ** 2, axis=1)))
    top = F.max(axis=1)
    return float(np.mean(np.log(np.exp(F - top[:, None]).sum(axis=1)) + top - np.sum(F * Y, axis=1)))


def error(F: FloatArray, Y: FloatArray, loss: LossName) -> float:
    """Return the share of wrong classes, or the squared error over the variance of the targets."""
    if loss == "cross-entropy":
        return float(np.mean(np.argmax(F, axis=1) != np.argmax(Y, axis=1)))
    variance = float(np.mean(np.sum((Y - Y.mean(axis=0)) ** 2, axis=1)))
    squares = float(np.mean(np.sum((F - Y) ** 2, axis=1)))
    return squares / variance if variance > 0 else squares

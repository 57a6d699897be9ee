"""Training under random signs, and its companions: the clean model f^{(k)} and the plain network, on the same samples.

    E_Σ (1/n) Σ_i ℓ(y_i, f_{W₀+WΣ}(x_i)) + λ‖B_x W‖⁸_{2,4}                          (Bai & Lee 2019, §3.1)

by noisy SGD: fresh signs Σ and fresh isotropic noise at every step, which W = 0, a saddle, needs to be left at all.
Every Σ is used with its mirror image −Σ: the estimate of the gradient stays unbiased and f^L, odd in Σ, leaves it to
leading order. Since (W₀ ± WΣ)x = w₀·x ± Σ w·x and w₀·x never changes, the pair costs two matrix products a step, as
much as the linear model. Steps are measured on the scale on which f^{(k)} is of order one, w = m^{−1/2k} v/B_x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np

from lazyscope.activations.derivatives import taylor_coefficients
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged
from lazyscope.numerics.losses import Loss, as_loss, labels_for
from lazyscope.progress import report
from lazyscope.protocols import NoisySGD
from lazyscope.training.taylor.model import Array, TaylorModel
from lazyscope.training.taylor.risk import on_sphere
from lazyscope.training.taylor.signs import flipped, norm_24, random_signs, regularizer_gradient

_LOST = 1e4  # times the loss at the start: no noise brings that back


@dataclass(frozen=True, eq=False)
class Fit:
    """A trained W, the mean loss on batches along the way (`trace`), and what it was trained for."""

    model: TaylorModel
    W: Array
    loss: Loss
    order: int | None
    signs: bool
    trace: FloatArray

    @property
    def norm(self) -> float:
        """‖B_x W‖_{2,4}: of order one, whatever the width, where f^{(2)} is."""
        return self.model.Bx * norm_24(self.W)

    def predict(self, X: Array, rng: np.random.Generator) -> FloatArray:
        """Return f at the rows of X; with signs, those of one fresh draw."""
        W = flipped(self.W, random_signs(self.model.m, rng)) if self.signs else self.W
        return self.model.expand(W, X, self.order, derivatives=0).values


class _Slopes(Protocol):
    """Values of f on some samples, and the gradient of Σ g_i f(x_i), summed over the branches of f."""

    def __call__(self, Z: Array, part: slice) -> Iterator[tuple[Array, Array]]:
        """Yield (f, G) with G_ri = ∂f_i/∂z_ri for each branch: ±Σ for the randomised network, one for the others."""


def train(
    model: TaylorModel,
    X: Array,
    y: Array,
    order: int | None,
    *,
    signs: bool,
    protocol: NoisySGD,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
) -> Fit:
    """Train f^{(order)}, or the network where order is None, under random signs or not; `weights` multiply losses.

    4·batch·m·d flops a step and, once, 2nmd; memory 4nm bytes. float32 throughout: steps are noisy anyway.

    >>> rng = np.random.default_rng(0)
    >>> X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> model = TaylorModel.symmetric(64, 2, "relu3", rng, Bx=2**0.5)
    >>> fit = train(model, X, X[:, 0] * X[:, 1], None, signs=True, protocol=NoisySGD(steps=300), rng=rng)
    >>> np.sign(fit.predict(X, rng)) == X[:, 0] * X[:, 1]
    array([ True,  True,  True,  True])
    """
    model = model.in_precision(np.float32)
    X = np.ascontiguousarray(on_sphere(X, model.Bx, "train"), dtype=np.float32)
    n, m = len(X), model.m
    binary = bool(np.all(np.abs(y) == 1.0))
    loss = as_loss(protocol.loss or ("logistic" if binary else "square"), "NoisySGD")
    y = labels_for(loss, y, n, "train")
    fits_in_memory(8.0 * n * m, f"w₀·x of {m} neurons and {n} samples", "Use a smaller width, or fewer samples.")
    shuffled = rng.permutation(n)
    X, y = X[shuffled], y[shuffled]
    v = np.ones(n) if weights is None else weights[shuffled] / np.mean(weights)
    scale = 1 if order is None and not signs else (order or 2)
    slopes = _clean(model, X, order) if order is not None else _network(model, X, signs, rng)

    def gradient(W: Array, part: slice) -> tuple[Array, float]:
        total, value = _gradient(W, X[part], y[part], v[part], loss, slopes, part)
        return (total + regularizer_gradient(W, protocol.lam * model.Bx**8) if protocol.lam else total), value

    smaller = f"step_size than {protocol.step_size:g}, or a smaller momentum than {protocol.momentum:g}"
    W, trace = noisy_sgd(model, m, scale, n, gradient, protocol, rng, smaller)
    return Fit(model, W, loss, order, signs, trace)


def noisy_sgd(
    model: TaylorModel,
    rows: int,
    k: int,
    n: int,
    gradient: Callable[[Array, slice], tuple[Array, float]],
    protocol: NoisySGD,
    rng: np.random.Generator,
    smaller: str,
) -> tuple[Array, FloatArray]:
    """Train displacements of `rows` neurons; return them, and the mean loss on the batch of each step.

    `gradient` gives the gradient and the loss on a slice of n samples. Steps are on the scale where f^{(k)} is of order
    one. Where training diverges, the message says what to pass a smaller value of.
    """
    batch, unit = min(protocol.batch, n), model.m ** (-0.5 / k) / model.Bx
    rate = protocol.step_size * model.m ** (1.0 - 1.0 / k) / model.Bx**2
    W = (protocol.start * unit / sqrt(model.d) * rng.standard_normal((rows, model.d))).astype(np.float32)
    velocity, trace = np.zeros_like(W), np.empty(protocol.steps)
    for step in range(protocol.steps):
        begin = min(step * batch % n, n - batch)  # the last batch of a pass is a full one
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is said below
            slope, trace[step] = gradient(W, slice(begin, begin + batch))
        if not np.isfinite(trace[step]) or trace[step] > _LOST * max(1.0, trace[0]):
            raise NotConverged(f"Training diverged at step {step} of {protocol.steps}. Pass a smaller {smaller}.")
        share = protocol.rate(step)
        velocity *= protocol.momentum
        velocity -= np.float32(share * rate * (1.0 - protocol.momentum)) * slope
        W += velocity
        if protocol.noise:
            W += np.float32(share * protocol.noise * unit / sqrt(model.d)) * rng.standard_normal(W.shape, np.float32)
        if step % 50 == 0:
            report(step, protocol.steps, f"step {step}, loss {trace[step]:.4f}")
    return W, trace


def _gradient(
    W: Array, X: Array, y: FloatArray, v: FloatArray, loss: Loss, slopes: _Slopes, part: slice
) -> tuple[Array, float]:
    """Return the gradient of the mean loss on a batch, weights v, and that loss: two matrix products."""
    total, value, branches = np.zeros((len(W), len(X)), dtype=W.dtype), 0.0, 0
    for f, G in slopes(W @ X.T, part):
        G *= (v * loss.slope(y, f)).astype(W.dtype)
        total += G
        value += float(np.mean(v * loss.value(y, f)))
        branches += 1
    total *= W.dtype.type(1.0 / (branches * len(y)))
    return total @ X, value / branches


def _clean(model: TaylorModel, X: Array, order: int) -> _Slopes:
    """f^{(k)}: c_k at w₀·x is computed once."""
    U = model.W0 @ X.T
    C = taylor_coefficients(model.sigma, U, order)[order]
    C *= (model.a / sqrt(model.m)).astype(C.dtype)[:, None]

    def slopes(Z: Array, part: slice) -> Iterator[tuple[Array, Array]]:
        G = C[:, part] * Z ** (order - 1) if order > 1 else C[:, part].copy()
        f = np.einsum("rb,rb->b", G, Z, dtype=np.float64)
        G *= order
        yield f, G

    return slopes


def _network(model: TaylorModel, X: Array, signs: bool, rng: np.random.Generator) -> _Slopes:
    """The network; with signs, at W₀ + WΣ and W₀ − WΣ for a fresh Σ, whose gradients in W are Σ and −Σ times G."""
    U = model.W0 @ X.T
    a = (model.a / sqrt(model.m)).astype(U.dtype)

    def slopes(Z: Array, part: slice) -> Iterator[tuple[Array, Array]]:
        draw = random_signs(model.m, rng, U.dtype) if signs else np.ones(model.m, dtype=U.dtype)
        for sign in (1.0, -1.0) if signs else (1.0,):
            outer = (sign * draw)[:, None].astype(U.dtype)
            c = taylor_coefficients(model.sigma, U[:, part] + outer * Z, 1)
            c[1] *= a[:, None] * outer
            yield np.asarray(a @ c[0], dtype=np.float64), c[1]

    return slopes

"""The model f^{(k)} trained by L-BFGS on all samples: its loss is a smooth function, which noisy SGD need not find.

    L(W) = Σ_i v_i ℓ(y_i, f_i)/Σ_i v_i + λ‖B_x W‖⁸_{2,4},      f_i = Σ_r C_ri z_ri^k,   z = W x̃_i,
    ∇L = k (C ∘ Z^{k−1} ∘ g)X̃,        C_ri = a_r σ^{(k)}(w_{0,r}·x̃_i)/(k!√m),   g_i = v_i ℓ′(y_i, f_i)/Σv.

C is computed once. A step costs about one evaluation, 4nmd flops and memory 8nm bytes (4nm in float32); sparse inputs
stay sparse, and cost 4·m flops an entry. Training ends when the loss, or that of samples held out, no longer falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from scipy import sparse

from lazyscope.activations.derivatives import taylor_coefficients
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.estimators.base import Array
from lazyscope.numerics.losses import Loss
from lazyscope.progress import report
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.signs import norm_24, regularizer_gradient

_PAIRS = 10  # of steps and differences of gradients that the curvature is read off
_PATIENCE = 25  # steps without a lower held-out loss: eight were seen to end on a plateau
_START = 0.3  # of the size on which f^{(k)} is of order one: W = 0 is a saddle


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs on the sphere, dense or sparse, targets (n,), weights of sum one, and C, (n, m), in one precision."""

    X: Any
    y: FloatArray
    v: FloatArray
    C: Array
    order: int

    @classmethod
    def of(cls, model: TaylorModel, order: int, X: Any, y: FloatArray, v: FloatArray | None, dtype: Any) -> Inputs:
        """Compute C at the rows of X; samples without weight are left out."""
        weights = np.ones(X.shape[0]) if v is None else v
        if not np.all(weights):
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        n, m = X.shape[0], model.m
        size = np.dtype(dtype).itemsize
        fits_in_memory(4.0 * size * n * m, f"{m} neurons × {n} samples", "Use a smaller width, or fewer samples.")
        X = X.astype(dtype, copy=False)
        U = np.ascontiguousarray(np.asarray(X @ model.W0.T.astype(dtype)))
        C = np.array(taylor_coefficients(model.sigma, U, order)[order])
        C *= (model.a / sqrt(m)).astype(dtype)
        return cls(X, y, weights / weights.sum(), C, order)

    def loss(self, W: Array, loss: Loss) -> tuple[float, FloatArray, Array]:
        """Return Σ v_i ℓ(y_i, f_i), g, and C ∘ Z^{k−1}."""
        Z = np.asarray(self.X @ W.T)
        G = self.C * Z ** (self.order - 1) if self.order > 1 else self.C
        f = np.einsum("ir,ir->i", G, Z, dtype=np.float64)
        return float(self.v @ loss.value(self.y, f)), self.v * loss.slope(self.y, f), G

    def gradient(self, g: FloatArray, G: Array) -> Array:
        """Return ∇ Σ g_i f_i, (m, d)."""
        scaled = G * (self.order * g).astype(G.dtype)[:, None]
        return np.asarray((self.X.T @ scaled).T) if sparse.issparse(self.X) else scaled.T @ self.X


@dataclass(eq=False)
class Descent:
    """A descent from a random start: displacements W, the loss of each step, that of samples held out, the best step.

    `best` counts steps up to the lowest held-out loss; without held-out samples it is their number.
    """

    W: Array
    curve: list[float] = field(default_factory=list)
    validated: list[float] = field(default_factory=list)

    @property
    def best(self) -> int:
        """Return the step of the lowest held-out loss, or the last one."""
        return int(np.argmin(self.validated)) + 1 if self.validated else max(1, len(self.curve))


def common_best(tried: Sequence[Descent]) -> int:
    """Return the step at which held-out losses are lowest on average, of those that all descents made.

    >>> one, two = Descent(np.zeros(1)), Descent(np.zeros(1))
    >>> one.validated, two.validated = [3.0, 1.0, 2.0, 2.0], [3.0, 2.5, 1.0]
    >>> common_best([one]), common_best([one, two])
    (2, 3)
    """
    made = min(len(descent.validated) for descent in tried)
    if made == 0:
        return max(descent.best for descent in tried)
    return int(np.argmin(np.mean([descent.validated[:made] for descent in tried], axis=0))) + 1


def descend(
    model: TaylorModel,
    samples: Inputs,
    loss: Loss,
    lam: float,
    steps: int,
    tol: float,
    rng: np.random.Generator,
    held: Inputs | None = None,
    what: str = "L-BFGS",
) -> Descent:
    """Train from a random start until the loss falls by less than `tol`, or that of `held` no longer; keep the best."""
    from scipy.optimize import minimize

    m, d = model.W0.shape
    dtype, unit = samples.C.dtype, model.m ** (-0.5 / samples.order) / model.Bx
    start = (_START * unit / sqrt(d)) * rng.standard_normal((m, d))
    result = Descent(start)
    penalty = lam * model.Bx**8
    now = 0.0

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        nonlocal now
        W = flat.reshape(m, d).astype(dtype)
        value, g, G = samples.loss(W, loss)
        gradient = samples.gradient(g, G).astype(np.float64)
        if penalty:
            value += penalty * norm_24(W) ** 8
            gradient += regularizer_gradient(flat.reshape(m, d), penalty)
        now = value
        return value, gradient.ravel()

    def step(flat: FloatArray) -> None:
        result.curve.append(now)
        report(len(result.curve), steps, f"{what}, step {len(result.curve)}, loss {now:.4g}")
        if held is None:
            result.W = flat.reshape(m, d).copy()
            return
        result.validated.append(held.loss(flat.reshape(m, d).astype(dtype), loss)[0])
        if result.best == len(result.validated):
            result.W = flat.reshape(m, d).copy()
        elif len(result.validated) - result.best >= _PATIENCE:
            raise StopIteration

    with np.errstate(over="ignore", invalid="ignore"):  # a step of the line search that is too long is taken back
        minimize(
            objective, start.ravel(), jac=True, method="L-BFGS-B", callback=step,
            options={"maxiter": steps, "maxcor": _PAIRS, "ftol": tol, "gtol": 1e-8, "maxfun": 20 * steps},
        )  # fmt: skip
    if not result.curve:  # the start is the best there is: a target that is constant
        result.curve.append(now)
    return result

"""Descent by steps of known length: the same setting from 10 to 100 inputs, off a saddle and into a minimum.

    V ← μV + (1 − μ)∇L(W),     W ← W − η_t R V/‖V‖,     η_t falling linearly to zero.

f^Q is quadratic in W. Near W = 0, a saddle, gradients vanish with W; near a minimum they are √d times steeper than the
one direction that matters. A step whose length is a share of R, the distance there is to go, passes both, where a step
size would have to change with d, m and the distance. Under random signs (Bai & Lee 2019, §3.1) every step draws a fresh
Σ and takes the mean over ±Σ: unbiased, and without the part of f^L that is odd in Σ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lazyscope.checks import real_number, whole_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.training.taylor.model import Array
from lazyscope.training.taylor.risk import Risk
from lazyscope.training.taylor.signs import random_signs

Watch = Callable[[int, Array], None]


@dataclass(frozen=True)
class Descent:
    """How many steps, the length of the first and of the start over R = `reach`, and the momentum μ.

    >>> Descent(steps=100, first=0.1).length(50)
    0.05
    """

    steps: int = 200
    first: float = 0.1
    start: float = 0.1
    momentum: float = 0.9

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", whole_number(self.steps, "Descent", "steps"))
        for name in ("first", "start", "momentum"):
            value = real_number(getattr(self, name), "Descent", name)
            if not 0.0 <= value < (1.0 if name == "momentum" else np.inf):
                must = "be at least 0" + (" and below 1" if name == "momentum" else "")
                raise InvalidParameter.of("Descent", name, must, f"{value:g}")
            object.__setattr__(self, name, value)

    def length(self, step: int) -> float:
        """Return η_t, the length of a step over R."""
        return self.first * (1.0 - step / self.steps)


def descend(
    risk: Risk,
    reach: float,
    rng: np.random.Generator,
    *,
    signs: bool = False,
    how: Descent | None = None,
    watch: Watch | None = None,
) -> Array:
    """Return the W that the descent ends at, from a random start; `watch` sees (step, W) before each step, and the end.

    6nmd flops a step (8nmd for the network under signs), in the precision of the model.

    >>> from lazyscope.training.taylor.model import TaylorModel
    >>> rng = np.random.default_rng(0)
    >>> X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> model = TaylorModel.symmetric(64, 2, "relu3", rng, Bx=2**0.5)
    >>> risk = Risk(model, X, X[:, 0] * X[:, 1], orders=2)
    >>> W = descend(risk, 20.0, rng)
    >>> risk.at(W).value < 0.1
    True
    """
    how = how or Descent()
    if not real_number(reach, "descend", "reach") > 0.0:
        raise InvalidParameter.of("descend", "reach", "be a positive distance", reach)
    model = risk.model
    W = rng.standard_normal(model.W0.shape).astype(model.W0.dtype)
    W *= how.start * reach / max(float(np.linalg.norm(W)), 1e-300)
    V = np.zeros_like(W)
    for step in range(how.steps):
        if watch is not None:
            watch(step, W)
        V *= how.momentum
        V += (1.0 - how.momentum) * _gradient(risk, W, rng if signs else None)
        size = float(np.linalg.norm(V))
        if not np.isfinite(size):
            raise NotConverged(f"The descent left what numbers can hold at step {step}. Pass a smaller reach.")
        if size > 0.0:
            W -= W.dtype.type(how.length(step) * reach / size) * V
    if watch is not None:
        watch(how.steps, W)
    return W


def _gradient(risk: Risk, W: Array, rng: np.random.Generator | None) -> Array:
    if rng is None:
        return risk.at(W).gradient()
    signs = random_signs(risk.model.m, rng, W.dtype)
    return (risk.at(W, signs).gradient() + risk.at(W, -signs).gradient()) / 2


def settle(risk: Risk, W: Array) -> Array:
    """Return the minimum near W, by L-BFGS in float64: for the clean risk, or a plain network, whose W knows no signs.

    >>> from lazyscope.training.taylor.model import TaylorModel
    >>> model = TaylorModel.symmetric(8, 2, "relu3", np.random.default_rng(0))
    >>> risk = Risk(model, np.eye(2), np.array([1.0, -1.0]), orders=2, lam=1e-3)
    >>> W = settle(risk, np.random.default_rng(1).standard_normal((8, 2)))
    >>> bool(np.linalg.norm(risk.at(W).gradient()) < 1e-5)
    True
    """
    from scipy.optimize import minimize

    exact = replace(risk, model=risk.model.in_precision(np.float64))
    shape = W.shape

    def value(flat: Array) -> tuple[float, Array]:
        here = exact.at(flat.reshape(shape))
        return here.value, here.gradient().ravel()

    options = {"maxiter": 500, "gtol": 1e-9, "ftol": 1e-15, "maxcor": 20}
    minimum = minimize(value, np.asarray(W, dtype=np.float64).ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(minimum.x.reshape(shape))

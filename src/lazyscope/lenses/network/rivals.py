"""The linearised and the quadratic model, trained on the network's own data until they fit them as well as it does.

Each starts where the network started and minimises the same loss, by L-BFGS on all samples. Training ends when the loss
is down to the network's own, so that what is compared is what the models learn, not how long they were trained.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.network.differentiable import Differentiable, LossName, error
from lazyscope.progress import report

NAMES = {1: "linearised", 2: "quadratic", 3: "cubic"}


@dataclass(frozen=True, eq=False)
class Rival:
    """A Taylor model after training: its order, loss and error on the data, error on test data, steps."""

    order: int
    loss: float
    train: float
    test: float
    steps: int
    caught_up: bool


class _CaughtUp(Exception):
    pass


def train(
    model: Differentiable,
    start: FloatArray,
    x: Any,
    Y: FloatArray,
    test: tuple[Any, FloatArray],
    order: int,
    loss: LossName,
    goal: float,
    steps: int,
) -> Rival:
    """Train the Taylor model of one order from δ = 0 until its loss is at most `goal`, or for `steps` iterations."""
    from scipy.optimize import minimize

    best: dict[str, Any] = {"loss": np.inf, "delta": np.zeros_like(start), "steps": 0}

    def objective(delta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = model.taylor_loss(start, delta, x, Y, order, loss)
        if not np.isfinite(value):
            return 1e300, np.zeros_like(delta)
        if value < best["loss"]:
            best.update(loss=value, delta=delta.copy())
        return value, gradient

    def after_step(_: FloatArray) -> None:
        best["steps"] += 1
        report(best["steps"], steps, f"{NAMES.get(order, order)} model, loss {best['loss']:.4g}")
        if best["loss"] <= goal:
            raise _CaughtUp

    options = {"maxiter": steps, "maxfun": 10 * steps, "maxcor": 20, "ftol": 0.0, "gtol": 1e-9}
    with suppress(_CaughtUp):
        minimize(objective, np.zeros_like(start), jac=True, method="L-BFGS-B", callback=after_step, options=options)
    delta = best["delta"]

    def wrong(inputs: Any, wanted: FloatArray) -> float:
        return error(sum(model.pieces(start, delta, inputs, order), np.zeros(1)), wanted, loss)

    return Rival(order, best["loss"], wrong(x, Y), wrong(*test), best["steps"], best["loss"] <= goal)

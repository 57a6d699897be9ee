"""Losses ℓ(y, z) of a prediction z: values and the first two derivatives in z, elementwise.

Bai & Lee (2019, §2) assume ℓ convex and 1-Lipschitz in z, ℓ(y, 0) ≤ 1, second and third derivatives at most 1:
`logistic` and `soft hinge` are, for labels y = ±1. `square` is the regression loss, with ℓ″ = 1; it is not Lipschitz.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import e, log
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, real_array
from lazyscope.errors import InvalidParameter

Values = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Loss:
    """ℓ, ∂ℓ/∂z and ∂²ℓ/∂z² as functions of (y, z); `classification` losses take y = ±1 only.

    >>> logistic = LOSSES["logistic"]
    >>> print(f"{logistic.value(1.0, 0.0):.4f} {logistic.slope(1.0, 0.0):.4f} {logistic.curvature(1.0, 0.0):.4f}")
    0.6931 -0.5000 0.2500
    """

    name: str
    formula: str
    classification: bool
    value: Values
    slope: Values
    curvature: Values


def _margin_loss(name: str, formula: str, shift: float) -> Loss:
    """log(1 + e^{shift − yz})."""

    def slope(y: FloatArray, z: FloatArray) -> FloatArray:
        from scipy.special import expit

        return np.asarray(-y * expit(shift - y * z))

    def curvature(y: FloatArray, z: FloatArray) -> FloatArray:
        from scipy.special import expit

        return np.asarray(expit(shift - y * z) * expit(y * z - shift))

    return Loss(name, formula, True, lambda y, z: np.logaddexp(0.0, shift - y * z), slope, curvature)


LOSSES = {
    "logistic": _margin_loss("logistic", "log(1 + exp(−yz))", 0.0),
    # the shift for which ℓ(y, 0) = 1: the hinge 1 − yz, rounded
    "soft hinge": _margin_loss("soft hinge", "log(1 + (e − 1) exp(−yz))", log(e - 1.0)),
    "square": Loss(
        "square",
        "(y − z)²/2",
        False,
        lambda y, z: 0.5 * (z - y) ** 2,
        lambda y, z: z - y,
        lambda y, z: np.ones_like(z),
    ),
}


def as_loss(value: Any, owner: str) -> Loss:
    """Return a loss from itself or its name.

    >>> as_loss("hinge", "Risk")
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The loss parameter of Risk must be one of logistic, soft hinge, square. \
Got 'hinge' instead.
    """
    if isinstance(value, Loss):
        return value
    if not isinstance(value, str) or value not in LOSSES:
        raise InvalidParameter.of(owner, "loss", f"be one of {', '.join(LOSSES)}", repr(value))
    return LOSSES[value]


def labels_for(loss: Loss, y: Any, samples: int, owner: str) -> FloatArray:
    """Return labels that suit the loss, one for each sample: ±1 for a classification loss."""
    must = f"be {samples} {'labels, ±1, for the ' + loss.name + ' loss' if loss.classification else 'real numbers'}"
    labels = real_array(y, owner, "y", must)
    if labels.shape != (samples,):
        raise InvalidParameter.of(owner, "y", must, f"shape {labels.shape}")
    if loss.classification:
        wrong = labels[np.abs(labels) != 1.0]
        if wrong.size:
            got = f"{wrong[0]:g}"
            raise InvalidParameter.of(owner, "y", must, got, 'Use loss="square" for real labels, or 2y − 1 for 0/1.')
    return labels

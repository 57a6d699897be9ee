"""One step of Adam (Kingma & Ba 2015) on a flat vector: PyTorch and optax have it, but bring a framework along."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.numerics.compiled import compiled

Array = NDArray[Any]
_BETA1, _BETA2 = 0.9, 0.999
EPSILON = 1e-8


def corrected(rate: float, steps: int) -> float:
    """Return the rate with which step number `steps` ≥ 1 makes up for averages that started at zero.

    >>> corrected(0.1, 1).__round__(12)
    0.031622776602
    """
    return float(rate * (np.sqrt(1.0 - _BETA2**steps) / (1.0 - _BETA1**steps)))


@compiled
def adam(theta: Array, gradient: Array, first: Array, second: Array, rate: Any, epsilon: Any) -> None:
    """Make a step of Adam in one pass: m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g², θ ← θ − rate·m/(√v + ε)."""
    one = theta.dtype.type(1.0)
    beta1, beta2 = theta.dtype.type(0.9), theta.dtype.type(0.999)
    for i in range(theta.size):
        g = gradient[i]
        m = beta1 * first[i] + (one - beta1) * g
        v = beta2 * second[i] + (one - beta2) * g * g
        first[i] = m
        second[i] = v
        theta[i] -= rate * m / (np.sqrt(v) + epsilon)

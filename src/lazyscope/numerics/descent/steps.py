"""Steps of descent: one of Adam, and what the noise of many of SGD adds to the risk of a linear model.

Adam (Kingma & Ba 2015) is made on a flat vector: PyTorch and optax have it, but bring a framework along.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
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


@compiled
def noisy_risks(
    still: FloatArray, decay: FloatArray, gain: FloatArray, noise: FloatArray, factor: FloatArray
) -> FloatArray:
    """Return L_n = F_n + Σ_b y_b(n), with y_b ← decay_b y_b + gain_b·factor_n·L_n; `noise` is y, which is updated.

    F, `still`, is the risk without noise. This is a Volterra equation for L (Paquette et al. 2021), solved by going on.

    >>> noise = np.zeros(1)
    >>> noisy_risks(np.ones(3), np.array([0.5]), np.array([0.1]), noise, np.ones(3)), noise
    (array([1.  , 1.1 , 1.16]), array([0.16]))
    """
    line = still.copy()
    for n in range(still.size):
        for b in range(noise.size):
            line[n] += noise[b]
        if n + 1 < still.size:
            for b in range(noise.size):
                noise[b] = decay[b] * noise[b] + gain[b] * factor[n] * line[n]
    return line

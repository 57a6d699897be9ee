"""The standard normal law in one and two dimensions: density, Φ, and P(ξ > h, η > k) by Owen's function T (1956).

    P(ξ ≤ h, η ≤ k) = ½Φ(h) + ½Φ(k) − T(h, (k − rh)/(h√(1−r²))) − T(k, (h − rk)/(k√(1−r²))) − β,

r the correlation, β = ½ where h and k have opposite signs, otherwise 0. Valid up to |r| = 1, to about 1e-15.
`scipy.stats.multivariate_normal` takes one correlation a call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lazyscope.checks import FloatArray


def density(x: FloatArray) -> FloatArray:
    """Return φ(x)."""
    return np.asarray(np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi))


def below(x: FloatArray) -> FloatArray:
    """Return Φ(x)."""
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


def orthant(h: Any, k: Any, r: FloatArray) -> FloatArray:
    """Return P(ξ > h, η > k); h, k and r broadcast against each other.

    >>> orthant(0.0, 0.0, np.array([0.0, 0.5, 1.0])).round(6)
    array([0.25    , 0.333333, 0.5     ])
    >>> orthant(1.0, -0.5, np.array([-1.0, 0.0, 1.0])).round(6)
    array([0.      , 0.109704, 0.158655])
    """
    from scipy.special import owens_t

    h, k, r = np.broadcast_arrays(-np.asarray(h, dtype=np.float64) + 0.0, -np.asarray(k, dtype=np.float64) + 0.0, r)
    q = np.sqrt(np.maximum(1.0 - r * r, 0.0))
    opposite = (h * k < 0) | ((h * k == 0) & (h + k < 0))
    both = 0.5 * (below(h) + below(k)) - owens_t(h, ratio(k - r * h, h * q)) - owens_t(k, ratio(h - r * k, k * q))
    both = both - np.where(opposite, 0.5, 0.0)
    centre = 0.25 + np.arcsin(np.clip(r, -1.0, 1.0)) / (2.0 * np.pi)
    return np.maximum(np.where((h == 0) & (k == 0), centre, both), 0.0)


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return above/below with 0/0 = 0, which is the limit where the correlation tends to ±1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(above / below, nan=0.0, posinf=np.inf, neginf=-np.inf))

"""Sizes of the linear and the quadratic piece of a network under random signs, in closed form (Bai and Lee 2019, §3).

With w_r = m^−α v for the m/2 neurons with a_r = +1, w₀ ~ N(0, I) and x uniform on the unit sphere of d dimensions,

    f^L = m^{−½−α} Σ_r σ′(w₀·x)(v·x),      f^Q = ½ m^{−½−2α} Σ_r σ″(w₀·x)(v·x)²,

sums of m/2 independent terms: with E(v·x)² = 1/d and E(v·x)⁴ = 3/(d(d+2)) the mean squares over weights, inputs and
signs Σ are closed forms, for every m. At α = ¼, f^L without signs grows like m^¼, under signs it falls like m^−¼, and
f^Q, which does not see signs, stays.
"""

from __future__ import annotations

from functools import cache
from math import sqrt
from typing import Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.derivatives import require_smooth, taylor_coefficients
from lazyscope.checks import FloatArray
from lazyscope.numerics.quadrature import gaussian_nodes, root_density

THEOREM = "§3 and Lemmas 10–11: sizes of f^L and f^Q under random signs"
CITATIONS = ("bai2020beyond",)
ASSUMPTIONS = (
    "σ ∈ C² with σ″ Lipschitz (Assumption A)",
    "symmetric initialisation, w₀ ~ N(0, I), ‖x‖ = 1; ‖w_r‖ = m^−α on the half with a = +1",
)


@cache
def _moments(sigma: Activation) -> tuple[float, float, float, float]:
    """E σ′, E σ′², E σ″, E σ″² at a standard Gaussian, by quadrature that ends its panels at kinks."""
    require_smooth(sigma, 2)
    g, w = gaussian_nodes(sigma.kinks, 1.0, 0)
    weight = w * root_density(g)
    coefficients = taylor_coefficients(sigma, g, 2)
    first, second = coefficients[1], 2.0 * coefficients[2]
    return tuple(float(weight @ values) for values in (first, first**2, second, second**2))  # type: ignore[return-value]


def piece_sizes(activation: Activation | str, d: int, alpha: float, m: Any) -> dict[str, FloatArray]:
    """Return the root mean squares of f^L without and under signs and of f^Q, for each width m.

    >>> here = piece_sizes("relu3", 10, 0.25, [1e4, 16e4])
    >>> [f"{values[1] / values[0]:.2f}" for values in here.values()]  # 16^¼ = 2, and its inverse
    ['2.00', '0.50', '1.00']
    """
    m = np.asarray(m, dtype=np.float64)
    s1, s1_squared, s2, s2_squared = _moments(as_activation(activation))
    scale = m**-alpha
    spread = 0.5 * scale**2 * (s1_squared - s1**2) / d
    fourth = 3.0 / (d * (d + 2.0))
    return {
        "linear_plain": np.sqrt(0.25 * m * scale**2 * s1**2 / d + spread),
        "linear": scale * sqrt(0.5 * s1_squared / d),
        "quadratic": 0.5 * scale**2 * np.sqrt((0.25 * m * s2**2 + 0.5 * (s2_squared - s2**2)) * fourth),
    }

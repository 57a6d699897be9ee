"""How large the gap between NT and NN can be (Ghorbani et al. 2019, Eq. 6).

With ρ = N/d < 1, τ = Tr(B)²/(d‖B‖²) and r = Σ_{i>N} b_i²/‖B‖² (Theorems 2 and 3, risks over that of the best constant),

    GAP = (1−ρ)² + ρ(1−ρ)τ − r.

It is zero for B ∝ I, where τ = 1 and r = 1 − ρ. For a given r the trace is largest when the N largest eigenvalues are
equal and so are the others: √τ ≤ √(ρ(1−r)) + √((1−ρ)r) = cos(φ−θ), sin²φ = r, cos²θ = ρ. With c = ρ(1−ρ), the maximum
of c cos²(φ−θ) − sin²φ over φ is ½(|1 + c e^{2iθ}| + c − 1), cos 2θ = 2ρ − 1: the largest gap over all spectra,

    GAP⋆(ρ) = (1−ρ)² + ½(√(1 + c² + 2c(2ρ−1)) + c − 1),   at tan 2φ = c sin 2θ/(1 + c cos 2θ).

The ratio R_NT/R_NN has no bound at all: a B of rank N has R_NN = 0 and R_NT ≥ (1−ρ)².
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray


def largest_gap(rho: FloatArray) -> FloatArray:
    """Return the largest R_NT − R_NN that a spectrum has at each N/d, GAP⋆(ρ).

    >>> largest_gap(np.array([0.0, 0.5, 1.0])).round(4)
    array([1.    , 0.3904, 0.    ])
    """
    rho = np.minimum(rho, 1.0)
    c = rho * (1.0 - rho)
    return np.asarray((1.0 - rho) ** 2 + 0.5 * (np.sqrt(1.0 + c**2 + 2.0 * c * (2.0 * rho - 1.0)) + c - 1.0))


def widest_apart(d: int, width: int) -> FloatArray:
    """Return the eigenvalues, ‖B‖ = 1, whose gap at N = width is the largest: N equal large ones, the rest equal.

    >>> widest_apart(4, 2).round(3)
    array([0.086, 0.086, 0.702, 0.702])
    """
    rho = width / d
    c, double = rho * (1.0 - rho), 2.0 * np.arccos(np.sqrt(rho))
    phi = 0.5 * np.arctan2(c * np.sin(double), 1.0 + c * np.cos(double))
    b = np.full(d, np.cos(phi) / np.sqrt(width))
    b[: d - width] = np.sin(phi) / np.sqrt(max(d - width, 1))
    return b

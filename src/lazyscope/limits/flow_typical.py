"""The Riccati flow of many random weights: what K(λ, u) is for nearly every W, as N, d → ∞ with N/d → ρ.

For W with independent Gaussian entries, E WWᵀ = γI, the closed form K = ΦW(I + 16WᵀΦ² diag(u) W)⁻¹WᵀΦ has the
deterministic equivalent diag(κ) (Marchenko and Pastur 1967; Silverstein and Bai 1995),

    κ_i = 1/(ψ_i + 16u_i),   ψ_i = e^{−2λ_i}/(γm),   N(1 − m) = Σ_i (1 − q_i),   q_i = ψ_iκ_i,

and ‖K‖² = Σκ_i² + (Σκ_iq_i)²/(N − Σ(1 − q_i)²). Here 1 − q_i is the share of direction i that has been learned: no
more than N of them can be. All in O(d) for one time, where the true K of one W costs O(d³).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged

_SWEEPS = 200


@dataclass(frozen=True, eq=False)
class Typical:
    """diag κ, ‖K‖², and the derivatives of Σκ: Σκ changes by Σ by_lambda δλ + by_u δu. First axis: times."""

    diagonal: FloatArray
    norm: FloatArray
    by_lambda: FloatArray
    by_u: FloatArray
    log_m: FloatArray


def typical(
    lam: FloatArray, u: FloatArray, gamma: FloatArray | float, width: float, log_m: FloatArray | None = None
) -> Typical:
    """Return the deterministic equivalent at λ and u, (times, d), for N = width neurons; log m may be guessed.

    >>> start = typical(np.zeros((1, 4)), np.zeros((1, 4)), 0.5, 8.0)
    >>> start.diagonal[0], float(start.norm[0])  # 4·0.5² and the Wishart's (4·0.5)²/8
    (array([0.5, 0.5, 0.5, 0.5]), 1.5)
    """
    from scipy.special import logsumexp

    base = -2.0 * lam - np.log(gamma)  # log ψ + log m; all in logarithms, as λ may be thousands
    with np.errstate(divide="ignore", over="ignore"):
        # N(1 − m) − Σ16uκ falls as m rises, and 16uκ ≤ 16um e^−base: the root lies between these, in log m
        most = logsumexp(np.log(16.0 * u) - base, axis=1, keepdims=True)
        below = -np.logaddexp(0.0, most - np.log(width))
        above = np.zeros_like(below)
        log_m = above if log_m is None else np.clip(log_m, below, above)
        for _ in range(_SWEEPS):
            m = np.exp(log_m)
            kappa = 1.0 / (np.exp(base - log_m) + 16.0 * u)
            q = 1.0 / (1.0 + 16.0 * u * np.exp(log_m - base))
            learned = 16.0 * u * kappa
            excess = width * (1.0 - m) - learned.sum(axis=1, keepdims=True)
            slope = -width * m - np.sum(learned * q, axis=1, keepdims=True)
            below, above = np.where(excess > 0.0, log_m, below), np.where(excess < 0.0, log_m, above)
            newton = log_m - np.divide(excess, slope, out=np.full_like(slope, np.inf), where=slope < 0.0)
            step = np.where((newton > below) & (newton < above), newton, 0.5 * (below + above)) - log_m
            log_m = log_m + step
            if np.max(np.abs(step)) < 1e-12 * (1.0 + np.max(np.abs(log_m))):
                break
        else:
            raise NotConverged(f"The fixed point of the typical flow left {np.max(np.abs(step)):.1e} at N = {width:g}.")
    spread = np.sum(kappa * q, axis=1)
    share = np.divide(spread[:, None], slope, out=np.zeros_like(slope), where=slope < 0.0)  # −slope = N − Σ(1 − q_i)²
    norm = np.sum(kappa**2, axis=1) - spread * share[:, 0]
    through_m = 16.0 * share
    return Typical(
        kappa,
        norm,
        2.0 * kappa * q + through_m * 2.0 * u * kappa * q,
        -16.0 * kappa**2 + through_m * kappa * q,
        log_m,
    )

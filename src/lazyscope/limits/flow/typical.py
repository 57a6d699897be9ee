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
from lazyscope.limits.flow import constants


@dataclass(frozen=True, eq=False)
class Typical:
    """diag κ, q, ‖K‖², and the derivatives of Σκ: Σκ changes by Σ by_lambda δλ + by_u δu. First axis: times.

    Derivatives are multiplied by the count of each direction.
    """

    diagonal: FloatArray
    unlearned: FloatArray
    norm: FloatArray
    by_lambda: FloatArray
    by_u: FloatArray
    log_m: FloatArray


def typical(
    lam: FloatArray,
    u: FloatArray,
    gamma: float,
    width: float,
    count: FloatArray | None = None,
    log_m: FloatArray | None = None,
) -> Typical:
    """Return the deterministic equivalent at λ and u, (times, d), for N = width neurons.

    `count` says how often each direction is there; log m may be guessed.

    >>> start = typical(np.zeros((1, 4)), np.zeros((1, 4)), 0.5, 8.0)
    >>> start.diagonal[0], float(start.norm[0])  # 4·0.5² and the Wishart's (4·0.5)²/8
    (array([0.5, 0.5, 0.5, 0.5]), 1.5)
    """
    count = np.ones(lam.shape[1]) if count is None else count
    base = -2.0 * lam - np.log(gamma)  # log ψ + log m; all in logarithms, as λ may be thousands
    with np.errstate(all="ignore"):
        log_v = base - np.log(16.0 * u)  # v = e^base/(16u): 16uκ = m/(m + v)
        # N(1 − m) − Σ16uκ falls as m rises, and 16uκ ≤ m/v: the root lies between these, in log m
        least = log_v.min(axis=1)
        least = np.where(np.isfinite(least), least, 0.0)  # u = 0: nothing is learned
        most = np.log(np.exp(least[:, None] - log_v) @ count) - least
        below, above = -np.logaddexp(0.0, most - np.log(width)), np.zeros_like(most)
        log_m = above if log_m is None else np.clip(log_m, below, above)
        for _ in range(constants.FIXED_POINT_SWEEPS):
            m, above_m = width * np.exp(log_m), log_v - log_m[:, None]
            # of what is learned of a direction, m/(m + v), and what is not, q = v/(m + v), the smaller
            less, mostly = 1.0 / (1.0 + np.exp(np.abs(above_m))), (above_m < 0.0).astype(np.float64)
            turning = less * (1.0 - less)
            spare = width - mostly @ count
            # N − Nm − Σ learned = gain − loss, without differences of what is nearly equal: Newton on log gain/loss
            unlearned, falling = (less * mostly) @ count, (turning * mostly) @ count
            gain, loss = np.maximum(spare, 0.0) + unlearned, np.maximum(-spare, 0.0) + m + less @ count - unlearned
            turn = m + turning @ count
            excess = np.log(gain) - np.log(loss)
            newton = log_m + excess / (falling / gain + (turn - falling) / loss)
            below, above = np.where(excess > 0.0, log_m, below), np.where(excess < 0.0, log_m, above)
            step = np.where((newton >= below) & (newton <= above), newton, 0.5 * (below + above)) - log_m
            step[~(np.abs(excess) > 0.0)] = 0.0  # also where both have vanished: nothing is seen of m there
            log_m = log_m + step
            if np.max(np.abs(step)) < constants.FIXED_POINT * (1.0 + np.max(np.abs(log_m))):
                break
        else:
            raise NotConverged(f"The fixed point of the typical flow left {np.max(np.abs(step)):.1e} at N = {width:g}.")
        kappa = 1.0 / (np.exp(base - log_m[:, None]) + 16.0 * u)
        q = np.where(mostly > 0.0, less, 1.0 - less)
    kq = kappa * q
    spread = kq @ count
    share = np.divide(spread, turn, out=np.zeros_like(turn), where=turn > 0.0)  # turn = N − Σ(1 − q_i)²
    through_m = -16.0 * share[:, None] * kq
    return Typical(
        kappa,
        q,
        (kappa * kappa) @ count + spread * share,
        count * (2.0 * kq + 2.0 * u * through_m),
        count * (through_m - 16.0 * kappa * kappa),
        log_m,
    )

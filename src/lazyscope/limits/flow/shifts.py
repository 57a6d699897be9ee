"""How the K of given weights differs from that of typical ones: as if λ were shifted, a little and slowly in time.

Of Tr K, ⟨B, K⟩ and ‖K‖², in short the sums, what is more than typical comes from directions that are being learned: it
is of the order of what a shift of λ would change, Σ2κ_iq_i for Tr K. In these units it is of order 1/√d, and varies
slowly, from the first direction that is learned to the last.
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.flow import constants
from lazyscope.limits.flow.moments import Bins
from lazyscope.limits.flow.typical import Typical


def sums_and_units(usual: Typical, groups: Bins) -> tuple[FloatArray, FloatArray]:
    """Return the sums of typical weights, and what they gain when λ is shifted: points × 3, both."""
    kappa, count, b, pull = usual.diagonal, groups.count, groups.b, usual.by_lambda
    counted = kappa * count
    sums = np.stack([counted.sum(axis=1), counted @ b, usual.norm], axis=1)
    apart = usual.norm - (counted * kappa).sum(axis=1)
    gains = [pull.sum(axis=1), pull @ b, 2.0 * (kappa * pull).sum(axis=1) + 4.0 * apart]
    return sums, np.stack(gains, axis=1) + constants.UNIT_FLOOR * sums


def shifted_slopes(usual: Typical, groups: Bins, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of Tr K + shift·2Σκq by λ and by u; those of m in the second part are left out."""
    kq = groups.count * usual.diagonal * usual.unlearned
    by_lambda = usual.by_lambda + 4.0 * shift * kq * (2.0 * usual.unlearned - 1.0)
    return by_lambda, usual.by_u - 64.0 * shift * kq * usual.diagonal


def worth(
    usual: Typical, groups: Bins, a: FloatArray, by_trace: float, missed: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what errors of the shifts are worth in the risk at each point: one of Tr K, and `missed` of all three.

    An error of Tr K is made up for by λ, as s holds Tr K where it is: E = aK − B changes along with it.
    """
    units = sums_and_units(usual, groups)[1]
    E = a[:, None] * usual.diagonal - groups.b
    through = 4.0 * np.abs(a * np.sum(E * usual.by_lambda, axis=1))
    direct = np.abs(2.0 * a**2 * units[:, 2] * missed[2] - 4.0 * a * units[:, 1] * missed[1])
    return through * by_trace, through * abs(float(missed[0])) + direct


def typical_diagonal(lam: FloatArray, u: FloatArray, gamma: float, log_m: FloatArray) -> FloatArray:
    """Return κ for all of the spectrum, m being known from its groups."""
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (np.exp(-2.0 * lam - np.log(gamma) - np.expand_dims(log_m, -1)) + 16.0 * u))


def log_ratio(diagonal: FloatArray, kappa: FloatArray, u: FloatArray) -> FloatArray:
    """Return log K_ii/κ_i over the unlearned share of i, which varies slowly; 0 where K_ii or κ_i has vanished."""
    seen = (diagonal > 1e-200) & (kappa > 1e-200)
    return np.log(np.divide(diagonal, kappa, out=np.ones_like(kappa), where=seen)) / unlearned(kappa, u)


def unlearned(kappa: FloatArray, u: FloatArray) -> FloatArray:
    """Return the share 1 − 16uκ of each direction that is not learned, raised by a floor."""
    return np.asarray(np.maximum(1.0 - 16.0 * u * kappa, 0.0) + constants.UNIT_FLOOR)

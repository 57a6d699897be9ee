"""One-pass SGD of the tangent model at a finite step size, σ = u²: a recursion for its risk.

With K = WWᵀ/N = diag(k) a step is E_ij ← E_ij − ε(k_i + k_j)S_ij, S = (4/m)Σ r xxᵀ, so that on average every entry
decays by 1 − 8ε(k_i + k_j) and gains the variance ε²(k_i + k_j)²·16L/m, L = E r², to leading order in d:

    L_n = F_n + 2 Σ_ij v_ij(n),   v_ij(n + 1) = (1 − 8ε(k_i + k_j))² v_ij(n) + 16ε²(k_i + k_j)²L_n/m,

with F the risk of gradient descent without noise (`numerics.descent.steps`; Paquette et al. 2021). The d² pairs
are collected by the value of k_i + k_j in bins, with which a step costs some hundred multiplications.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged, NoTheorem
from lazyscope.limits.flow.linear import TangentFlow
from lazyscope.numerics.descent.steps import noisy_risks

_BINS = 256
_HOPELESS = 1e3  # times the risk without noise: what does not come back


@dataclass(frozen=True)
class Steps:
    """A number of steps of one size."""

    count: int
    step_size: float


def tangent_risks(flow: TangentFlow, plan: Sequence[Steps], batch: int, points: Sequence[int]) -> FloatArray:
    """Return E r² after so many steps (ascending), for the model whose flow is given.

    >>> flow = TangentFlow.of(np.eye(3), np.array([3.0, 2.0, 1.0]) / np.sqrt(3.0))
    >>> risks = tangent_risks(flow, [Steps(4000, 0.002)], 50, [0, 4000])
    >>> bool(risks[1] < 1e-3 * risks[0])
    True
    """
    rate, weight = _binned(flow.k)
    spread, k = 16.0 / batch, flow.k
    g = 4.0 * float(k.sum()) + 1.0
    most = min(2.0 / float(flow.rates.max()), 1.0 / (8.0 * float(k.max())), batch / ((batch + 1.0) * g))
    largest = max(part.step_size for part in plan)
    if largest >= most:
        stable = "steps short enough for every direction and for the offset to be stable"
        instead = f"Pass a step size below {most:.2g}, or use simulate."
        raise NoTheorem.of("The limit of SGD", stable, f"the step size {largest:g}", instead)
    share = k.size * k**2 + 2.0 * k * k.sum() + float(k @ k)
    share /= share.sum()  # Σ_j (k_i + k_j)²: how much of the noise is in row i
    risks: list[float] = []
    noise, begin = np.zeros_like(rate), 0
    phase, pairs = np.zeros(flow.rates.size), np.zeros(k.size)  # logarithms of what is left, of modes and of directions
    for part in plan:
        end = begin + part.count
        inside = [p for p in points if begin <= p < end or (part is plan[-1] and p == end)]
        with np.errstate(divide="ignore"):
            mode_step = np.log(np.abs(1.0 - part.step_size * flow.rates))
        pair_step = np.log1p(-8.0 * part.step_size * flow.k)  # (1 − x)(1 − y) for 1 − x − y: xy is nothing
        grid = begin + np.append(0.0, np.geomspace(1.0, part.count, min(part.count, 500)))
        marks = np.unique(np.append(grid.round(), inside)).astype(int)
        left = (marks - begin)[:, None]
        modes, pairs_left = np.exp(phase + left * mode_step), np.exp(pairs + left * pair_step)
        still = flow.risk_of(modes, pairs_left)
        # entries of S have variance 16(L + 8(E²)_ii + 8(E²)_jj)/m, of which the last two are smaller by 1/d
        uneven = 16.0 * (flow.squared_error(modes, pairs_left) @ share) / still
        steps = np.arange(begin, end + 1)
        smooth, factor = np.interp(steps, marks, still), 1.0 + np.interp(steps, marks, uneven)
        gains = weight * (part.step_size * rate / 8.0) ** 2 * spread
        line = noisy_risks(smooth, (1.0 - part.step_size * rate) ** 2, gains, noise, factor)
        if not float(line.max()) < _HOPELESS * float(still.max()):
            raise NotConverged(
                f"SGD diverges with the step size {part.step_size:g} and batches of {batch}: its noise feeds itself. "
                "Pass a smaller step size, or larger batches."
            )
        fast = part.step_size * g
        line /= 1.0 - fast / (batch * (1.0 - fast))  # Var s, s being the fastest of all
        risks += [float(line[p - begin]) for p in inside]
        phase, pairs = phase + part.count * mode_step, pairs + part.count * pair_step
        begin = end
    return np.array(risks)


def _binned(k: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rates 8(k_i + k_j) in bins, and 2 × the number of ordered pairs in each (i = j counts twice)."""
    rates = 8.0 * np.add.outer(k, k)
    count = 2.0 * (1.0 + np.eye(k.size))
    flat, weight = rates.ravel(), count.ravel()
    edges = np.quantile(flat, np.linspace(0.0, 1.0, _BINS + 1))
    which = np.clip(np.searchsorted(edges, flat, side="right") - 1, 0, _BINS - 1)
    total = np.bincount(which, weight, _BINS).astype(np.float64)
    mean = np.bincount(which, weight * flat, _BINS) / np.maximum(total, 1.0)
    return mean[total > 0.0], total[total > 0.0]

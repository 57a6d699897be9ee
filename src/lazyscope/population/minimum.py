"""Fully trained network with the square activation: the global minimum over both layers, in closed form.

f = Σ a_i⟨w_i,x⟩² + c is ⟨M, xxᵀ⟩ + c with any symmetric M of rank at most N.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.claim import Claim, at_width, exponential_quantiles, square_activation, three_levels
from lazyscope.problems import GaussianMixture, QuadraticTarget
from lazyscope.regimes import Trained


def quadratic(problem: QuadraticTarget, regime: Trained, width: int, rng: np.random.Generator) -> dict[str, float]:
    """R = Σ_{i>N} s_i(B)²/‖B‖², s_i the singular values: the best approximation of rank N (Eckart & Young).

    For B ⪰ 0 this is the minimum of Theorem 3, whose second layer is fixed to 1; it holds for any symmetric B.
    """
    values = np.sort(problem.eigenvalues**2)  # the smallest first: their sum keeps its digits
    missed = float(np.sum(values[: max(problem.d - width, 0)]))
    return {"risk": missed / float(np.sum(values))}


def learnt_form(problem: QuadraticTarget, width: int) -> FloatArray:
    """Return the G of rank N that is nearest to B: its N eigenvalues that are largest in size (Eckart & Young).

    >>> print(learnt_form(QuadraticTarget([0.5, -3.0, 1.0]), 2))
    [[ 0.  0.  0.]
     [ 0. -3.  0.]
     [ 0.  0.  1.]]
    """
    b, U = (problem.B, np.eye(problem.d)) if problem.B.ndim == 1 else np.linalg.eigh(problem.B)
    kept = np.argsort(-np.abs(b), kind="stable")[:width]
    return np.asarray((U[:, kept] * b[kept]) @ U[:, kept].T)


def mixture(problem: GaussianMixture, regime: Trained, width: int, rng: np.random.Generator) -> dict[str, float]:
    """R = 1/(1 + ½Σ_{i ≤ N} δ_i²/(1+δ_i²)), δ_i the singular values of Δ̃, largest first.

    With M = VSVᵀ, VᵀV = I_N and Q = VᵀΔ̃V, the best S is diagonal in Q's basis and gives ½Σ q_i²/(1+q_i²); by
    Cauchy's interlacing no q_i exceeds the δ_i of its rank and sign. Theorem 6 is the same without 1+δ_i².
    """
    captured = problem.singular_values[:width] ** 2
    return {"risk": 1.0 / (1.0 + 0.5 * float(np.sum(captured / (1.0 + captured))))}


_HYPOTHESES = ("n = ∞: the population minimum over both layers and the offset", "σ(u) = u² (+ constant)")

_claim = partial(
    Claim, fidelity="exact", regime=Trained, title="trained network, square activation", assumptions=_HYPOTHESES,
    arguments=("width",), covers=square_activation,
)  # fmt: skip

CLAIMS = (
    _claim(
        problem=QuadraticTarget,
        theorem="Theorem 3's minimum, for B of any sign",
        citations=("ghorbani2019limitations", "eckart1936"),
        compute=at_width(quadratic),
        example=lambda d: (exponential_quantiles(d), Trained()),
    ),
    _claim(
        problem=GaussianMixture,
        theorem="Theorem 6 with its O(1/d) terms kept",
        citations=("ghorbani2019limitations",),
        compute=at_width(mixture),
        example=lambda d: (three_levels(d), Trained()),
    ),
)

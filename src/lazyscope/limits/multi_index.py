"""A function of a few directions at N ~ d: random features learn its linear part alone, NT its quadratic part alone.

Ghorbani et al. 2019, §1 ("RF learns only linear, NT only quadratic functions"): the parts of degree ≥ 3 need N ~ d² and
more, whatever the lazy regime.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NoTheorem
from lazyscope.evidence.claim import Claim, at_ratios, isotropic_features, square_activation
from lazyscope.limits.quadratic import missed_by_tangent
from lazyscope.limits.resolvent import TOLERANCE, solve
from lazyscope.problems import MultiIndex
from lazyscope.regimes import Bayes, NeuralTangent, RandomFeatures


def _share(problem: MultiIndex, degree: int) -> float:
    """Return the part of the energy that lies in one degree."""
    return float(problem.energies[degree]) / problem.energy if degree < problem.energies.size else 0.0


def random_features(problem: MultiIndex, regime: RandomFeatures, rho: FloatArray) -> dict[str, FloatArray]:
    """The linear part by the resolvent of Theorem 1, nothing beyond it.

        R = 1 − (h₁²/E h²) λ₁²ψ/(1 + λ₁²ψ),      ψ from Eq. 9 with dΓ = I.

    U = E σσᵀ is λ₁²WWᵀ + λ̃I up to a vanishing part, ψ = lim Tr(U⁻¹)/d, and the linear part has V = λ₁h₁Wu. The
    quadratic part, B of rank r, has overlap d⟨Γ,B⟩²/‖B‖² ≤ r/d with isotropic weights: Theorem 1 gives it the risk 1.
    """
    sigma = regime.activation
    point = solve(rho, sigma.lambda_tilde, sigma.lambda_k(1), np.ones(1))
    seen = sigma.lambda_k(1) ** 2
    learned = seen / (point.inverse + seen) if seen > 0.0 else np.zeros_like(rho)
    return {"risk": 1.0 - _share(problem, 1) * learned, "psi": point.psi, "residual": point.residual}


def neural_tangent(problem: MultiIndex, regime: NeuralTangent, rho: FloatArray) -> dict[str, FloatArray]:
    """Theorem 2 for B of rank r, whose Tr(B)²/(d‖B‖²) ≤ r/d vanishes: R = 1 − (h₂²/E h²)(1 − (1−ρ)₊²), for σ = u²."""
    if not regime.activation.is_square:
        raise NoTheorem.of("Theorem 2", "σ(u) = u²", regime.activation.name, "Use exact or simulate.")
    return {"risk": 1.0 - _share(problem, 2) * (1.0 - missed_by_tangent(rho, 0.0))}


def bayes(problem: MultiIndex, regime: Bayes) -> dict[str, FloatArray]:
    """Risks are without the noise of the test sample: a learner that knows h and u has none."""
    return {"risk": np.zeros(())}


_DATA = "x ~ N(0, I), y = h(⟨u₁, x⟩, …, ⟨u_r, x⟩) + ε, n = ∞"
_PROPORTIONAL = "N, d → ∞ with N/d → ρ"
_claim = partial(
    Claim, fidelity="limit", problem=MultiIndex, citations=("ghorbani2019limitations",), arguments=("rho",)
)

CLAIMS = (
    _claim(
        regime=RandomFeatures,
        title="random features",
        theorem="§1: only the linear part (Eq. 9's resolvent)",
        assumptions=(_DATA, _PROPORTIONAL, "A1: σ² ≤ c₀exp(c₁u²/2), c₁ < 1, σ not linear; centred", "w ~ N(0, I/d)"),
        compute=at_ratios(random_features),
        tolerance=TOLERANCE,
        covers=isotropic_features,
        example=lambda d: (MultiIndex(d, "erf"), RandomFeatures("erf")),
        rate=0.5,
    ),
    _claim(
        regime=NeuralTangent,
        title="neural tangent",
        theorem="§1: only the quadratic part (Theorem 2)",
        assumptions=(_DATA, _PROPORTIONAL, "σ(u) = u² (+ constant)", "w ~ N(0, I/d)"),
        compute=at_ratios(neural_tangent),
        covers=isotropic_features,
        assumes=square_activation,
        example=lambda d: (MultiIndex(d, "he2"), NeuralTangent()),
        rate=0.5,
    ),
    _claim(
        regime=Bayes,
        title="Bayes floor",
        theorem="the target is a function of x: zero by definition",
        assumptions=(_DATA,),
        arguments=(),
        compute=at_ratios(bayes),
        example=lambda d: (MultiIndex(d, "he3"), Bayes()),
    ),
)

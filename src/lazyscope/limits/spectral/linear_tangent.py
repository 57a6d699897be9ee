"""The tangent model on n ~ d samples of a linear target: kernel ridge regression on inputs, with a ridge of its own.

‖x‖ = √d, ‖w‖ = 1, K = (1/N)σ′(XWᵀ)σ′(XWᵀ)ᵀ ∘ XXᵀ/d. While n ~ d and Nd ≫ n, K is (Eσ′)²XXᵀ/d and, for all that is not
linear, a multiple of the identity: the model is ridge regression on the inputs, of ridge γ (Montanari and Zhong 2020),

    γ = (λ + E[σ′²] − (Eσ′)²)/(Eσ′)²,      ψ₂ = n/d = 1/(1 + κ) + γ/κ,      L = 1/(1 + κ),
    R = ψ₂/(ψ₂ − L²)·((1 − L)²F₁² + τ²) − τ²,      objective Σ(y − f)² + λ‖a‖².

κ is the positive root of ψ₂κ² + (ψ₂ − 1 − γ)κ − γ = 0. The training error is (λ/((Eσ′)²κψ₂))²(R + τ²).
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NoTheorem
from lazyscope.evidence.claim import Claim, at_ratios
from lazyscope.problems import LinearTarget
from lazyscope.regimes import NeuralTangent

THEOREM = "The linear regime of the tangent model (Montanari and Zhong 2020)"
_NO_SLOPE = 1e-10  # of √E[σ′²]: below it Eσ′ is what quadrature leaves of zero


def constants(problem: LinearTarget, regime: NeuralTangent) -> tuple[float, float]:
    """(Eσ′)² and E[σ′²] − (Eσ′)² of the activation, where the hypotheses hold.

    >>> slope, rest = constants(LinearTarget(), NeuralTangent("relu"))
    >>> print(f"{slope:.6f} {rest:.6f}")
    0.250000 0.250000
    """
    if regime.weights is not None:
        raise NoTheorem.of(THEOREM, "weights uniform on the sphere", "other weights", "Leave weights out.")
    if problem.nonlinear:
        instead = "Use HarmonicTarget.of_target(target, d), whose limit has every degree at given n and d."
        raise NoTheorem.of(THEOREM, "a linear target, F⋆ = 0", f"F⋆ = {problem.nonlinear:g}", instead)
    if problem.inputs != "sphere":
        raise NoTheorem.of(THEOREM, "x on the sphere ‖x‖ = √d", f"{problem.inputs} inputs", 'Use inputs="sphere".')
    sigma = regime.activation
    mean = sigma.b1  # E[σ′(g)] = E[gσ(g)]
    power = float(sigma.slope_moments(np.ones(1))[0][0])
    if abs(mean) <= _NO_SLOPE * np.sqrt(power):
        instead = "Its tangent model sees nothing of a linear target at n ~ d: use an activation with an odd part."
        raise NoTheorem.of(THEOREM, "Eσ′(g) ≠ 0", f"{sigma.name}, whose Eσ′ is 0", instead)
    return mean**2, power - mean**2


def tangent(problem: LinearTarget, regime: NeuralTangent, psi2: FloatArray, ridge: FloatArray) -> dict[str, FloatArray]:
    """The formula at every point; ψ₂ = ∞ learns all. γ > 0: an activation is not linear, so that Var σ′ > 0."""
    slope, rest = constants(problem, regime)
    psi, ridge = np.broadcast_arrays(psi2, ridge)
    gamma, many = (ridge + rest) / slope, np.isinf(psi)
    n = np.where(many, 1.0, psi)
    b = n - 1.0 - gamma
    large = np.abs(b) + np.sqrt(b**2 + 4.0 * n * gamma)
    kappa = np.where(b > 0.0, 2.0 * gamma / large, large / (2.0 * n))  # whichever form of the root does not cancel
    learnt, missed = 1.0 / (1.0 + kappa), kappa / (1.0 + kappa)
    left = gamma / kappa + learnt * missed  # ψ₂ − L² = (ψ₂ − L) + L(1 − L), a sum of positive terms
    bias = np.where(many, 0.0, problem.signal**2 * missed**2 * n / left)
    variance = np.where(many, 0.0, problem.noise**2 * learnt**2 / left)
    share = np.where(many, 1.0, ridge / (slope * kappa * n))
    return {
        "risk": bias + variance,
        "bias": bias,
        "variance": variance,
        "train": share**2 * (bias + variance + problem.noise**2),
        "learnt": np.where(many, 1.0, learnt),
        "residual": np.where(many, 0.0, np.abs(n - learnt - gamma / kappa) / n),
    }


CLAIMS = (
    Claim(
        fidelity="limit",
        problem=LinearTarget,
        regime=NeuralTangent,
        title="tangent model, linear regime",
        theorem=THEOREM,
        citations=("montanari2020interpolation",),
        assumptions=(
            "y = ⟨β₀, x⟩ + ε, x uniform on the sphere ‖x‖ = √d, w on the unit sphere, Eσ′ ≠ 0",
            "n, d → ∞ with n/d → ψ₂, and Nd/n → ∞",
            "objective Σ(y − f)² + λ‖a‖², K = (1/N)Σσ′σ′⟨x, x′⟩/d; ridge = 0 is λ → 0",
        ),
        arguments=("psi2", "ridge"),
        compute=at_ratios(tangent),
        tolerance=1e-12,
        example=lambda d: (LinearTarget(noise=0.5), NeuralTangent("relu")),
        rate=0.5,
    ),
)

"""Random-features ridge regression in the proportional regime: bias, variance, risk and training error.

    minimise (1/n) Σ_k (y_k − Σ_i a_i σ(⟨w_i, x_k⟩))² + (Nλ/d)‖a‖²,      N/d → ψ₁,  n/d → ψ₂,

    R = F₁² 𝓑(ζ, ψ₁, ψ₂, λ̄) + (τ² + F⋆²) 𝓥(ζ, ψ₁, ψ₂, λ̄) + F⋆²,      ζ = b₁/b⋆,  λ̄ = λ/b⋆²

(Mei and Montanari 2019). The talk *Thermodynamic limits* prints ζ ≡ b₁²/b⋆²; its formulas hold for
ζ = b₁/b⋆, as every one of them uses ζ². The fixed point behind 𝓑 and 𝓥 is in `limits.ridge.fixed_point`.
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NoTheorem
from lazyscope.evidence import errata
from lazyscope.evidence.claim import Claim, at_ratios
from lazyscope.limits.ridge.fixed_point import FixedPoint, solve
from lazyscope.problems import LinearTarget, Problem
from lazyscope.regimes import RandomFeatures, Regime

THEOREM = "The theorem of Mei and Montanari 2019"
PAPERS = ("mei2019generalization",)
_NO_LINEAR_PART = 1e-10  # of √E[σ²]: below it b₁ is what quadrature leaves of zero


def random_features(
    problem: LinearTarget, regime: RandomFeatures, psi1: FloatArray, psi2: FloatArray, ridge: FloatArray
) -> dict[str, FloatArray]:
    """The theorem, at every point of broadcastable arrays: ridge = 0 is λ → 0⁺, ψ = ∞ the wide or large-sample limit.

    With ridge = 0 and ψ₁ = ψ₂, the interpolation threshold, bias and variance are infinite. With ridge = 0 and both
    ψ = ∞ the sizes go first: least squares with infinitely many samples. A constant part of σ is left out (σ is
    centred): it would fit the constant part of the target, which is zero here, and changes no limit.

    Training error, the mean of the squares above at the minimum, is (R + τ²)δ₂² with δ₂ = 1 − h/ψ₂, the limit of
    (λN/d)·Tr (ΦΦᵀ/n + λN/d)⁻¹/n: generalised cross-validation is exact here.

    Noisy linear features (`surrogate=True`) have the same limit, and so have Gaussian inputs: their norms,
    ‖x‖² = d(1 + O(d^−½)), add λ₂²/2d to every entry of E[σ(⟨w_i, x⟩)σ(⟨w_j, x⟩)], one direction among N that no
    target of this problem shares.
    """
    zeta, b_star = constants(regime)
    points = float(np.prod(np.broadcast_shapes(psi1.shape, psi2.shape, ridge.shape), dtype=np.float64))
    fits_in_memory(200.0 * points, f"A limit at {points:.3g} points", "Use a coarser grid.")  # 25 numbers a point
    solved = solve(zeta, psi1, psi2, ridge / b_star**2)
    return {
        **risks(problem, solved.point),
        "residual": solved.residual,
        "iterations": solved.iterations.astype(np.float64),
    }


def pair(problem: Problem, regime: Regime) -> tuple[LinearTarget, RandomFeatures]:
    """Refuse what the theorem does not speak of; for functions that no claim stands in front of."""
    if not isinstance(problem, LinearTarget):
        raise NoTheorem.of(THEOREM, "a LinearTarget", type(problem).__name__, "Pass ls.LinearTarget(…).")
    if not isinstance(regime, RandomFeatures):
        raise NoTheorem.of(THEOREM, "RandomFeatures", type(regime).__name__, 'Pass ls.RandomFeatures("relu").')
    return problem, regime


def constants(regime: RandomFeatures) -> tuple[float, float]:
    """ζ = b₁/b⋆ and b⋆ of the regime's activation, where the theorem's hypotheses hold.

    >>> print("{:.6f} {:.6f}".format(*constants(RandomFeatures("relu"))))
    1.658897 0.301405
    """
    if regime.weights is not None:
        got = regime.weights if isinstance(regime.weights, str) else "other weights"
        raise NoTheorem.of(THEOREM, "weights uniform on the sphere, ‖w‖ = 1", got, "Leave weights out.")
    sigma = regime.activation
    b1, b_star = sigma.b1, sigma.b_star
    scale = float(np.sqrt(sigma.second_moment(1.0)))
    if abs(b1) <= _NO_LINEAR_PART * scale:
        instead = "Such features see nothing of a linear target: use an activation with an odd part."
        raise NoTheorem.of(THEOREM, "b₁ = E[gσ(g)] ≠ 0", f"{sigma.name}, whose b₁ is 0", instead)
    if b_star <= 1e-6 * scale:
        instead = "Such features are linear: use another activation."
        raise NoTheorem.of(THEOREM, "b⋆ ≠ 0, an activation that is not linear", f"{sigma.name}, b⋆ = 0", instead)
    return abs(b1) / b_star, b_star


def risks(problem: LinearTarget, point: FixedPoint) -> dict[str, FloatArray]:
    """Risk, bias, variance and training error of a problem at given fixed points."""
    signal, noise, beyond = problem.signal**2, problem.noise**2, problem.nonlinear**2
    shapes = point.errors
    # zero signal or noise stays without effect at the threshold, where 𝓑 and 𝓥 are infinite
    bias, variance = (
        energy * shape if energy else np.zeros_like(shape)
        for energy, shape in zip((signal, noise + beyond), shapes, strict=True)
    )
    risk = bias + variance + beyond
    with np.errstate(invalid="ignore"):
        train = np.where(np.isinf(risk), 0.0, (risk + noise) * point.delta2**2)
    return {"risk": risk, "bias": bias, "variance": variance, "train": train}


CLAIMS = (
    Claim(
        fidelity="limit",
        problem=LinearTarget,
        regime=RandomFeatures,
        title="random-features ridge regression",
        theorem=THEOREM,
        citations=PAPERS,
        assumptions=(
            "y = ⟨β₀, x⟩ + f⋆(x) + ε, x uniform on the sphere ‖x‖ = √d; Gaussian x has the same limit",
            "f⋆ an isotropic Gaussian random function of variance F⋆², orthogonal to linear ones",
            "N, n, d → ∞ with N/d → ψ₁, n/d → ψ₂",
            "w uniform on the sphere ‖w‖ = 1; σ with b₁ ≠ 0, b⋆ ≠ 0; centred here",
            "λ > 0; ridge = 0 is λ → 0 after the limit, infinite at ψ₁ = ψ₂",
        ),
        arguments=("psi1", "psi2", "ridge"),
        compute=at_ratios(random_features),
        tolerance=1e-10,
        example=lambda d: (LinearTarget(noise=0.5), RandomFeatures("relu")),
        erratum=errata.ZETA.note,
        rate=0.5,
    ),
)

"""Quadratic target: Theorems 1, 2 and 3 and Corollary 1 of Limitations of Lazy Training, §2."""

from __future__ import annotations

from functools import partial

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence import errata
from lazyscope.evidence.claim import Claim, at_ratios, exponential_quantiles, nonlinear_features, square_activation
from lazyscope.limits.resolvent import TOLERANCE, solve, visible_energy
from lazyscope.numerics import matrices
from lazyscope.problems import QuadraticTarget
from lazyscope.regimes import Bayes, FixedWeights, NeuralTangent, RandomFeatures, Trained

PAPER = ("ghorbani2019limitations",)


def random_features(problem: QuadraticTarget, regime: RandomFeatures, rho: FloatArray) -> dict[str, FloatArray]:
    """Theorem 1, Eq. 10, for any σ and Γ; Eq. 11 at ρ = ∞; Corollary 1 is its case σ = u² − 1.

        R/‖f⋆‖² = 1 − ψλ₂² d⟨Γ,B⟩² / (‖B‖²(2 + ψλ₂² d‖Γ‖²)),   ψ from Eq. 9 with D the spectrum of dΓ.

    Eq. 11, "independent of σ", needs λ₂ ≠ 0: an activation without a second Hermite coefficient (tanh, erf,
    sign) never sees a quadratic target, and its risk is 1 at every ρ.
    """
    d, sigma = problem.d, regime.activation
    Gamma = weights.covariance(problem, regime)
    overlap = matrices.inner(Gamma, problem.B) ** 2 / matrices.squared_norm(problem.B)
    size = matrices.squared_norm(Gamma)
    point = solve(rho, sigma.lambda_tilde, sigma.lambda_k(1), d * matrices.eigenvalues(Gamma))
    k = 0.5 * d * visible_energy(sigma)
    learned = k * overlap / (point.inverse + k * size) if k else np.zeros_like(rho)
    return {"risk": np.maximum(1.0 - learned, 0.0), "psi": point.psi, "residual": point.residual}


def neural_tangent(problem: QuadraticTarget, regime: NeuralTangent, rho: FloatArray) -> dict[str, FloatArray]:
    """Theorem 2: (1−ρ)₊²(1−τ) + (1−ρ)₊τ with τ = Tr(B)²/(d‖B‖²), for σ = u² and isotropic weights.

    Eq. 13 prints "… ρ(1−ρ)₊ + Tr(B)²/(d‖B‖²)" where Theorem 2 gives a product: this is the product.
    """
    if not regime.activation.is_square:
        raise NoTheorem.of("Theorem 2", "σ(u) = u²", regime.activation.name, "Use exact or simulate.")
    if regime.weights is not None:
        law = regime.weights if isinstance(regime.weights, (str, FixedWeights)) else "a covariance Γ"
        raise NoTheorem.of("Theorem 2", "isotropic weights, w ~ N(0, I/d)", law, "Use exact.")
    return {"risk": missed_by_tangent(rho, problem.alignment)}


def missed_by_tangent(rho: FloatArray, tau: float) -> FloatArray:
    """‖P⊥BP⊥‖²/‖B‖² for a random subspace of dimension ρd: (1−ρ)₊²(1−τ) + (1−ρ)₊τ.

    >>> missed_by_tangent(np.array([0.0, 0.5, 1.0, 2.0]), 1.0)
    array([1. , 0.5, 0. , 0. ])
    """
    left = np.maximum(1.0 - rho, 0.0)
    return left**2 * (1.0 - tau) + left * tau


def trained(problem: QuadraticTarget, regime: Trained, rho: FloatArray) -> dict[str, FloatArray]:
    """Theorem 3: one-pass SGD with ε → 0 ends at 2Σ_{i>N} λ_i(B)², for σ = u², a = 1 and B ⪰ 0."""
    if not regime.activation.is_square:
        raise NoTheorem.of("Theorem 3", "σ(u) = u²", regime.activation.name, "Use exact or simulate.")
    values = problem.eigenvalues
    if not matrices.is_semidefinite(values):
        got = f"smallest eigenvalue {values[0]:.4g}"
        raise NoTheorem.of(
            "Theorem 3", "B ⪰ 0, its second layer being fixed to 1", got, "Use exact, which takes B of any sign."
        )
    width = neurons(rho, problem.d)
    tail = np.concatenate([[0.0], np.cumsum(values**2)])  # tail[k] = sum of the k smallest λ²
    missed = tail[(problem.d - np.minimum(width, problem.d)).astype(int)]
    return {"risk": missed / tail[-1], "width": width}


def neurons(rho: FloatArray, d: int) -> FloatArray:
    """Return N = round(ρd), which must be at least 1 (∞ stays ∞)."""
    width = np.rint(rho * d)
    if np.any(width < 1):
        must = f"give at least one neuron: N = round(rho·d) with d = {d}"
        advice = f"Pass rho ≥ {0.5 / d:.3g}."
        raise InvalidParameter.of("limit", "rho", must, f"{np.min(rho):g}", advice)
    return np.asarray(width)


def bayes(problem: QuadraticTarget, regime: Bayes) -> dict[str, FloatArray]:
    """The target is a function of x: nothing but the class stands between a learner and zero risk."""
    return {"risk": np.zeros(())}


_DATA = "x ~ N(0, I), y = b₀ + ⟨x, Bx⟩"
_PROPORTIONAL = "N, d → ∞ with N/d → ρ"

_claim = partial(Claim, fidelity="limit", problem=QuadraticTarget, citations=PAPER, arguments=("rho",))

CLAIMS = (
    _claim(
        regime=RandomFeatures,
        title="random features",
        theorem="Theorem 1 (Eqs. 9–11), Corollary 1",
        assumptions=(
            _DATA,
            _PROPORTIONAL,
            "A1: σ² ≤ c₀exp(c₁u²/2), c₁ < 1, σ not linear; centred here",
            "A2: w ~ N(0, Γ), Tr Γ = 1 (rescaled here), ‖dΓ‖ bounded",
        ),
        compute=at_ratios(random_features),
        tolerance=TOLERANCE,
        covers=nonlinear_features,
        example=lambda d: (exponential_quantiles(d), RandomFeatures("relu")),
        rate=0.5,
    ),
    _claim(
        regime=NeuralTangent,
        title="neural tangent",
        theorem="Theorem 2",
        assumptions=(_DATA, _PROPORTIONAL, "σ(u) = u² (+ constant)", "w ~ N(0, I/d)"),
        compute=at_ratios(neural_tangent),
        assumes=lambda problem, regime: regime.activation.is_square and regime.weights is None,
        example=lambda d: (exponential_quantiles(d), NeuralTangent()),
        erratum=errata.TANGENT.note,
        rate=1.0,
    ),
    _claim(
        regime=Trained,
        title="trained network",
        theorem="Theorem 3",
        assumptions=(
            _DATA,
            "B ⪰ 0",
            "σ(u) = u², second layer 1, offset trained",
            "one-pass SGD, ε → 0, then t → ∞",
        ),
        compute=at_ratios(trained),
        assumes=square_activation,
        example=lambda d: (exponential_quantiles(d), Trained()),
    ),
    _claim(
        regime=Bayes,
        title="Bayes floor",
        theorem="no noise: zero by definition",
        assumptions=(_DATA,),
        arguments=(),
        compute=at_ratios(bayes),
        example=lambda d: (exponential_quantiles(d), Bayes()),
    ),
)

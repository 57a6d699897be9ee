"""Gaussian mixture: Theorems 4, 5 and 6 of Limitations of Lazy Training, §3, and the Bayes floor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence import errata
from lazyscope.evidence.claim import Claim, at_ratios, nonlinear_features, square_activation, three_levels
from lazyscope.limits.quadratic import PAPER, missed_by_tangent, neurons
from lazyscope.limits.resolvent import TOLERANCE, solve, visible_energy
from lazyscope.numerics import matrices
from lazyscope.numerics.quadrature import gaussian_nodes, root_density
from lazyscope.problems import GaussianMixture
from lazyscope.regimes import Bayes, FixedWeights, NeuralTangent, RandomFeatures, Trained


def random_features(problem: GaussianMixture, regime: RandomFeatures, rho: FloatArray) -> dict[str, FloatArray]:
    """Theorem 4, Eq. 15, for any σ, Σ and Γ; Eq. 16 at ρ = ∞.

        R = (1 + ζ₁λ₂²ψ)/(1 + (ζ₁+ζ₂)λ₂²ψ),   ζ₁ = d Tr(ΣΓΣΓ)/2,   ζ₂ = d Tr(ΔΓ)²/4,

    ψ from Eq. 14 with D the spectrum of dΓ^{1/2}ΣΓ^{1/2}. Eq. 17 and the poster print ρ/(1+2ρ) for its case
    σ = u² − 1, Σ = I, Γ = I/d; Theorem 4 and its own ρ → ∞ limit give ρ/(1+ρ), and that is what you get.
    """
    d, sigma = problem.d, regime.activation
    Gamma = weights.covariance(problem, regime)
    seen = spectrum_seen(problem, Gamma)
    zeta1 = 0.5 * d * float(np.sum(seen**2))
    zeta2 = 0.25 * d * matrices.inner(problem.Delta, Gamma) ** 2
    point = solve(rho, sigma.lambda_tilde, sigma.lambda_k(1), d * seen)
    k = visible_energy(sigma)
    risk = (point.inverse + zeta1 * k) / (point.inverse + (zeta1 + zeta2) * k) if k else np.ones_like(rho)
    return {"risk": risk, "psi": point.psi, "residual": point.residual}


def spectrum_seen(problem: GaussianMixture, Gamma: FloatArray) -> FloatArray:
    """Eigenvalues of Γ^{1/2}ΣΓ^{1/2}: those of Γ where Σ = I."""
    if problem.Sigma is None:
        return matrices.eigenvalues(Gamma)
    if problem.Sigma.ndim == Gamma.ndim == 1:
        return Gamma * problem.Sigma
    L = np.asarray(np.linalg.cholesky(matrices.dense(problem.Sigma)), dtype=np.float64)
    return matrices.eigenvalues(L.T @ matrices.times(Gamma, L))


def neural_tangent(problem: GaussianMixture, regime: NeuralTangent, rho: FloatArray) -> dict[str, FloatArray]:
    """Theorem 5, σ = u²: its limit for Σ = I and isotropic weights, its first form for weights you fix.

    R = 2/(2 + κ‖Δ‖²),   κ = 1 − (1−ρ)₊²(1−τ) − (1−ρ)₊τ,   τ = Tr(Δ)²/(d‖Δ‖²).
    """
    if not regime.activation.is_square:
        raise NoTheorem.of("Theorem 5", "σ(u) = u²", regime.activation.name, "Use exact or simulate.")
    if isinstance(regime.weights, FixedWeights):
        return {"risk": _given_weights(problem, regime.weights.W, rho)}
    if regime.weights is not None:
        got = regime.weights if isinstance(regime.weights, str) else "a covariance Γ"
        raise NoTheorem.of("Theorem 5", "isotropic weights, or FixedWeights(W)", got, "Use exact.")
    if problem.Sigma is not None and not np.array_equal(matrices.dense(problem.Sigma), np.eye(problem.d)):
        instead = "Use exact, or pass weights=FixedWeights(W), for which the theorem holds with any Σ."
        raise NoTheorem.of("The limit of Theorem 5", "Σ = I", "another Σ", instead)
    kappa = 1.0 - missed_by_tangent(rho, problem.alignment)
    return {"risk": 2.0 / (2.0 + kappa * problem.information)}


def _given_weights(problem: GaussianMixture, W: FloatArray, rho: FloatArray) -> FloatArray:
    """2/(2 + ‖Δ̃‖² − ‖P⊥Δ̃P⊥‖²), P⊥ the projector off span(Σ^{1/2}W)."""
    d, N = W.shape
    if d != problem.d or np.any(rho != N / d):
        must = f"be N/d = {N / d:g} for these weights of shape ({d}, {N}), in the problem's d = {problem.d}"
        raise InvalidParameter.of("limit", "rho", must, np.array2string(np.ravel(rho)[:3]))
    return np.full(rho.shape, 2.0 / (2.0 + float(np.sum(_seen_by(problem, W)(problem.whitened) ** 2))))


def _seen_by(problem: GaussianMixture, W: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return M ↦ Π(M) = M − P⊥MP⊥, the part of a form that the tangent model with the weights W, (d, N), has."""
    directions = matrices.times(matrices.power(problem.covariance, 0.5), W)
    left, singular, _ = np.linalg.svd(directions, full_matrices=False)
    basis = left[:, singular > singular[0] * max(W.shape) * np.finfo(np.float64).eps]

    def part(M: FloatArray) -> FloatArray:
        whole = matrices.dense(M)
        off = whole - basis @ (basis.T @ whole)
        return np.asarray(whole - off + (off @ basis) @ basis.T)

    return part


def tangent_at_weights(problem: GaussianMixture, W: FloatArray) -> float:
    """Return Theorem 5's risk for given weights with the terms of order 1/d that it drops, all of them.

    f = c + ⟨M, xxᵀ⟩ varies within the classes by 2‖M‖² + 2⟨M, Δ̃MΔ̃⟩; the theorem keeps the first. So R = 1/(1+J),

        J = ½⟨Π(Δ̃), (1 + A)⁻¹Π(Δ̃)⟩ = ½Σ_k (−1)^k ⟨Π(Δ̃), A^kΠ(Δ̃)⟩,     A(M) = Π(Δ̃MΔ̃),   ‖A‖ ≤ ‖Δ̃‖² < 1:

    as Σ ∓ Δ are covariances. Ten terms of O(d³) where ‖Δ̃‖ is a third.

    >>> round(tangent_at_weights(GaussianMixture([0.2, 0.1]), np.eye(2)), 6)  # 1/(1 + ½Σδ²/(1 + δ²))
    0.97639
    """
    part, tilde = _seen_by(problem, W), matrices.dense(problem.whitened)
    first = term = part(tilde)
    J = 0.0
    while float(np.sum(term**2)) > 1e-30 * float(np.sum(first**2)):
        J += 0.5 * float(np.sum(first * term))
        term = -part(tilde @ term @ tilde)
    return 1.0 / (1.0 + J)


def trained(problem: GaussianMixture, regime: Trained, rho: FloatArray) -> dict[str, FloatArray]:
    """Theorem 6, σ = u², both layers trained: R = 2/(2 + Σ_{i ≤ N∧d} λ_i(Δ̃)²), λ_i singular values."""
    if not regime.activation.is_square:
        raise NoTheorem.of("Theorem 6", "σ(u) = u²", regime.activation.name, "Use exact or simulate.")
    width = neurons(rho, problem.d)
    captured = np.cumsum(problem.singular_values**2)[np.minimum(width, problem.d).astype(int) - 1]
    return {"risk": 2.0 / (2.0 + captured), "width": width}


def trained_at_finite_d(problem: GaussianMixture, N: int) -> float:
    """Return Theorem 6's risk with the terms of order 1/d that it drops: J of `tangent_at_weights`, in N directions.

    R = 1/(1 + ½Σ_{i ≤ N} λ_i²/(1 + λ_i²)), λ_i the singular values of Δ̃, largest first.

    >>> round(trained_at_finite_d(GaussianMixture([0.2, 0.1]), 2), 6)
    0.97639
    """
    largest = np.sort(problem.singular_values**2)[::-1][:N]
    return 1.0 / (1.0 + 0.5 * float(np.sum(largest / (1.0 + largest))))


def bayes(problem: GaussianMixture, regime: Bayes) -> dict[str, FloatArray]:
    """Squared-error Bayes risk, as the log-likelihood ratio tends to ℓ ~ N(±J, 2J) with J = ‖Δ̃‖².

    R = E[1 − tanh²(ℓ/2)] = E[1 − tanh(ℓ/2)] = 2 E[1/(1 + e^ℓ)],   ℓ ~ N(J, 2J).
    """
    from scipy.special import expit

    J = problem.information
    spread = np.sqrt(2.0 * J)
    g, w = gaussian_nodes([-J / spread], max(1.0, spread), 0, settles=40.0 + J)
    return {"risk": np.asarray(2.0 * np.sum(w * root_density(g) * expit(-J - spread * g)))}


_DATA = "y = ±1 with probability ½, x | y ~ N(0, Σ ∓ Δ)"
_SIGNAL = "M1, M2: Σ bounded above and below, ‖Δ‖ of order 1/√d"
_PROPORTIONAL = "N, d → ∞ with N/d → ρ"

_claim = partial(Claim, fidelity="limit", problem=GaussianMixture, citations=PAPER, arguments=("rho",))

CLAIMS = (
    _claim(
        regime=RandomFeatures,
        title="random features",
        theorem="Theorem 4 (Eqs. 14–16)",
        assumptions=(
            _DATA,
            _SIGNAL,
            _PROPORTIONAL,
            "A1: σ² ≤ c₀exp(c₁u²/2), c₁ < 1, σ not linear; centred here",
            "B2: w ~ N(0, Γ), Tr(ΓΣ) = 1 (rescaled here), ‖dΓ‖ bounded",
        ),
        compute=at_ratios(random_features),
        tolerance=TOLERANCE,
        covers=nonlinear_features,
        example=lambda d: (three_levels(d), RandomFeatures("relu")),
        erratum=errata.MIXTURE.note,
        rate=0.5,
    ),
    _claim(
        regime=NeuralTangent,
        title="neural tangent",
        theorem="Theorem 5",
        assumptions=(
            _DATA,
            _SIGNAL,
            "σ(u) = u² (+ constant)",
            "N/d → ρ with Σ = I and w ~ N(0, I/d), or FixedWeights(W) with any Σ",
        ),
        compute=at_ratios(neural_tangent),
        assumes=square_activation,
        example=lambda d: (three_levels(d), NeuralTangent()),
        rate=1.0,
    ),
    _claim(
        regime=Trained,
        title="trained network",
        theorem="Theorem 6",
        assumptions=(_DATA, _SIGNAL, "σ(u) = u², both layers and the offset trained; the minimum, not SGD"),
        compute=at_ratios(trained),
        assumes=square_activation,
        example=lambda d: (three_levels(d), Trained()),
        rate=1.0,
    ),
    _claim(
        regime=Bayes,
        title="Bayes floor",
        theorem="Figure 2 (dotted line)",
        assumptions=(_DATA, _SIGNAL, "d → ∞: the log-likelihood ratio is Gaussian"),
        arguments=(),
        compute=at_ratios(bayes),
        example=lambda d: (three_levels(d), Bayes()),
        rate=1.0,
    ),
)

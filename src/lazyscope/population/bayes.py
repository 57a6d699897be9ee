"""The Bayes floor at the problem's own dimension, by inverting the characteristic function."""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.claim import Claim, at_ratios, exponential_quantiles, three_levels
from lazyscope.numerics import matrices
from lazyscope.numerics.quadrature import panels
from lazyscope.problems import GaussianMixture, QuadraticTarget
from lazyscope.regimes import Bayes

_CUTOFF = 12.0  # 1/sinh(πt) is below 1e-16 beyond


def mixture(problem: GaussianMixture, regime: Bayes) -> dict[str, float]:
    """R = 1 − E[y tanh(ℓ/2)], ℓ the log-likelihood ratio of x: a weighted sum of χ²₁ variables.

    With δ_i the eigenvalues of Δ̃, given y: ℓ = Σ_i [artanh δ_i − δ_i χ²/(1 + yδ_i)], whose characteristic function
    is φ_y(t) = Π e^{it artanh δ_i}(1 + 2itδ_i/(1 + yδ_i))^{-1/2}, and as tanh(ℓ/2) = 2∫₀^∞ sin(tℓ)/sinh(πt) dt,

        E[tanh(ℓ/2) | y] = 2 ∫₀^∞ Im φ_y(t)/sinh(πt) dt   (compare Gil-Pelaez).
    """
    delta = matrices.eigenvalues(problem.whitened)
    width = min(0.5, 2.0 / (1.0 + np.sqrt(problem.information)))
    t, w = panels(np.linspace(0.0, _CUTOFF, int(np.ceil(_CUTOFF / width)) + 1))
    mean = sum(0.5 * y * float(np.sum(w * _imaginary(t, delta, y) / np.sinh(np.pi * t))) for y in (1.0, -1.0))
    return {"risk": max(0.0, 1.0 - 2.0 * mean)}


def _imaginary(t: FloatArray, delta: FloatArray, y: float) -> FloatArray:
    """Im φ_y(t), one node after another: O(d) memory."""
    weight, shift = 2.0 * delta / (1.0 + y * delta), float(np.sum(np.arctanh(delta)))
    log_phi = np.array([1j * s * shift - 0.5 * np.sum(np.log1p(1j * s * weight)) for s in t])
    return np.asarray(np.imag(np.exp(log_phi)))


def quadratic(problem: QuadraticTarget, regime: Bayes) -> dict[str, float]:
    """Without noise the floor is zero."""
    return {"risk": 0.0}


CLAIMS = (
    Claim(
        fidelity="exact",
        problem=GaussianMixture,
        regime=Bayes,
        title="Bayes floor",
        theorem="characteristic function of the log-likelihood ratio",
        citations=("ghorbani2019limitations", "gilpelaez1951"),
        assumptions=("y = ±1 with probability ½, x | y ~ N(0, Σ ∓ Δ)",),
        arguments=(),
        compute=at_ratios(mixture),
        example=lambda d: (three_levels(d), Bayes()),
    ),
    Claim(
        fidelity="exact",
        problem=QuadraticTarget,
        regime=Bayes,
        title="Bayes floor",
        theorem="no noise: zero by definition",
        citations=("ghorbani2019limitations",),
        assumptions=("y is a function of x",),
        arguments=(),
        compute=at_ratios(quadratic),
        example=lambda d: (exponential_quantiles(d), Bayes()),
    ),
)

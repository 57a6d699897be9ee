"""Max-margin classification: the margin and the test error as N, n → ∞ with N/n → ψ.

    κ_n = max_{‖a‖≤1} min_i y_i⟨a, u_i⟩,      u Gaussian with covariance Σ,      P(y = 1 | x) = f₀(⟨β₀, x⟩).

Let S = ⟨β₀, x⟩/‖β₀‖, T = yS, and let a classifier have c₁ = Cov(⟨a, u⟩, S), c₁² + c₂² = Var⟨a, u⟩. By Gordon's
inequality κ_n → κ⋆, where (κ, c₁, c₂, s) solve, with F = F_κ(c₁, c₂) = E[(κ − c₁T − c₂Z)₊²]^½, D = ∂₁F − c₁∂₂F/c₂,

    c₁ = −⟨λαD/(λ∂₂F/c₂ + s)⟩,                        1 = ⟨λ(D²α + ψ)/(λ∂₂F/c₂ + s)²⟩,
    c₁² + c₂² = ⟨λ²(D²α + ψ)/(λ∂₂F/c₂ + s)²⟩,         s = F − c₁∂₁F − c₂∂₂F,

⟨·⟩ over the spectrum λ of Σ with α its weights along the score, whose mean r² is what the features see of S. Then
Err = P(c₁T + c₂Z ≤ 0). This is Montanari, Ruan, Sohn and Yan 2019, but for one simplification: the part of the score
that the features do not see only adds Gaussian noise to ⟨a, u⟩ given S, so that T keeps the link as it is and no
effective link is needed. `newton` solves the equations, docs/max-margin.md derives them.

Random features σ(⟨w_i, x⟩) enter through noisy linear ones, u_i = b₁⟨w_i, x⟩ + b⋆z_i, of the same asymptotics: a
conjecture of the talk *Thermodynamic limits*, since proved (Montanari, Ruan, Saeed and Sohn 2023).

Below the separability threshold (`separability`) the margin is 0 and its only maximiser is a = 0: `separable` says so,
and the error is that of a coin, 1/2.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache, partial
from types import ModuleType

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, NotConverged, NoTheorem
from lazyscope.evidence.claim import Claim, at_ratios
from lazyscope.problems import LinearLabels
from lazyscope.regimes import Bayes, GaussianFeatures, IsotropicFeatures, RandomFeatures

THEOREM = "Asymptotics of the maximum margin (Montanari et al. 2019), by Gordon's inequality"
PAPER = "montanari2019generalization"
_RESIDUAL = 1e-8  # of the four equations in their own units; the solver's own three are met to 1e-12
_NO_LINEAR_PART = 1e-10  # of √Var σ: below it b₁ is what quadrature leaves of zero

Spectrum = tuple[FloatArray, FloatArray, FloatArray, float]
"""The law and the points that `spectrum.averages` takes, the largest λ, and their mean, the unit of λ."""


def random_features(
    problem: LinearLabels, regime: RandomFeatures, psi1: FloatArray, psi2: FloatArray
) -> dict[str, FloatArray]:
    """Margin, error and alignment on random features at every point of broadcastable arrays, ψ = ψ₁/ψ₂."""
    psi = _ratio(psi1, psi2)
    return solve(problem, psi, spectrum_of_features(regime, psi1, psi.shape))


def given_features(
    problem: LinearLabels, regime: IsotropicFeatures | GaussianFeatures, psi1: FloatArray, psi2: FloatArray
) -> dict[str, FloatArray]:
    """Features that are Gaussian themselves: ψ = ψ₁/ψ₂ = N/n is all that matters of the two."""
    psi = _ratio(psi1, psi2)
    return solve(problem, psi, spectrum_given(regime, psi.size))


def bayes(problem: LinearLabels, regime: Bayes) -> dict[str, FloatArray]:
    """E[min(f₀, 1 − f₀)], the error that no classifier goes below."""
    return {"risk": np.asarray(problem.bayes_error), "error": np.asarray(problem.bayes_error)}


def _ratio(psi1: FloatArray, psi2: FloatArray) -> FloatArray:
    """Return N/n at every point."""
    for name, values in {"psi1": psi1, "psi2": psi2}.items():
        if not (values.min() >= 1e-9 and values.max() <= 1e9):
            wrong = values[~((values >= 1e-9) & (values <= 1e9))]
            must = "be between 1e-9 and 1e9: N, n and d grow together here"
            raise InvalidParameter.of("limit", name, must, f"{wrong.flat[0]:g}")
    return psi1 / psi2


@lru_cache(maxsize=64)
def constants(sigma: Activation) -> tuple[float, float]:
    """b₁² and b⋆² of an activation.

    >>> constants(Activation("square"))[0], round(constants(Activation("square"))[1], 12)
    (0.0, 2.0)
    """
    b1, noise = sigma.b1, sigma.lambda_tilde
    return (b1**2 if b1**2 > _NO_LINEAR_PART**2 * (noise + b1**2) else 0.0), noise


def spectrum_of_features(regime: RandomFeatures, psi1: FloatArray, shape: tuple[int, ...] | None = None) -> Spectrum:
    """Return Σ = b₁²WWᵀ + b⋆²I in units of its mean eigenvalue b₁² + b⋆², for each ψ₁, broadcast to `shape`."""
    if regime.weights is not None:
        got = regime.weights if isinstance(regime.weights, str) else type(regime.weights).__name__
        raise NoTheorem.of(THEOREM, "w uniform on the unit sphere", f"weights {got}", "Leave weights out.")
    signal, noise = constants(regime.activation)
    unit = signal + noise
    law = np.empty((*(psi1.shape if shape is None else shape), 3))
    law[..., 0], law[..., 1], law[..., 2] = psi1, signal / unit, noise / unit
    law = law.reshape(-1, 3)
    return law, np.empty((3, 0)), law[:, 2] + law[:, 1] * (1.0 + np.sqrt(law[:, 0])) ** 2, unit


def spectrum_given(regime: IsotropicFeatures | GaussianFeatures, size: int) -> Spectrum:
    """Return the distinct eigenvalues in units of their mean, the same for each of `size` points."""
    points, unit, law = np.ones((3, 1)), 1.0, np.zeros((size, 3))
    if isinstance(regime, GaussianFeatures):
        values, which, counts = np.unique(regime.spectrum, return_inverse=True, return_counts=True)
        unit = float(regime.spectrum.mean())
        points = np.stack([values / unit, counts / counts.sum(), np.bincount(which, regime.shares)])
        hidden = 1.0 - float(regime.shares.sum())
        law[:, 0] = hidden if hidden > 1e-12 else 0.0
    return law, points, np.full(size, points[0].max()), unit


@cache
def _machine_code() -> tuple[ModuleType, ModuleType]:
    """Load the kernels when they are first needed: numba takes half a second."""
    from lazyscope.limits.margin import loss, newton

    return newton, loss


def solve(problem: LinearLabels, psi: FloatArray, spectrum: Spectrum) -> dict[str, FloatArray]:
    """Solve the equations at every ψ, in the order of memory: neighbours give one another a first guess.

    First with 40 nodes for T, then with panels where c₁/c₂ is too large for them. 2 µs a point on a smooth curve.
    """
    kernel, loss = _machine_code()
    law, points, widest, unit = spectrum
    flat = psi.ravel()
    y, out, (status, steepness) = np.zeros((flat.size, 7)), np.empty((6, flat.size)), np.zeros((2, flat.size))
    kernel.curve(flat, widest, law, points, *loss.compact(problem), y, out, status, steepness)
    if status.min() < 0.0 or steepness.max() > loss.STEEPEST:
        again = (status < 0.0) | (steepness > loss.STEEPEST)
        part = [np.ascontiguousarray(array[..., again]) for array in (out, status, steepness)]
        kernel.curve(flat[again], widest[again], law[again], points, *problem.agreement, y[again], *part)
        out[:, again], status[again], steepness[again] = part
        if np.any(status < 0.0):
            where = int(np.argmax(status < 0.0))
            raise NotConverged(
                f"The equations of the margin were not solved to {kernel.TOLERANCE:.0e} at N/n = {flat[where]:.6g}, "
                f"with {problem}. Is it within rounding of the separability threshold? Move ψ a little."
            )
    out[1] *= math.sqrt(unit)
    error, margin, alignment, seen, support, residual = out.reshape(6, *psi.shape)
    return {
        "risk": error,
        "error": error,
        "margin": margin,
        "alignment": alignment,
        "seen": seen,
        "separable": (status == 1.0).reshape(psi.shape),
        "support": support,
        "residual": residual,
    }


_DATA = "x ~ N(0, I), P(y = 1 | x) = f₀(⟨β₀, x⟩), f₀ not decreasing; no offset is fitted"
_PROPORTIONAL = "N, n, d → ∞ with N/d → ψ₁, n/d → ψ₂"
_BELOW = "below the separability threshold: margin 0, a = 0, error 1/2"

_claim = partial(Claim, fidelity="limit", problem=LinearLabels, citations=(PAPER,), arguments=("psi1", "psi2"))

CLAIMS = (
    _claim(
        regime=RandomFeatures,
        title="max-margin",
        theorem=THEOREM,
        citations=(PAPER, "montanari2023universality"),
        assumptions=(
            _DATA,
            "w uniform on the unit sphere, σ centred; as for noisy linear features, to which nonlinear ones are "
            "asymptotically equivalent",
            _PROPORTIONAL,
            _BELOW,
        ),
        compute=at_ratios(random_features),
        tolerance=_RESIDUAL,
        example=lambda d: (LinearLabels(4.0), RandomFeatures("relu")),
        rate=0.5,
        method="margin",
    ),
    _claim(
        regime=IsotropicFeatures,
        title="max-margin",
        theorem=THEOREM,
        assumptions=(_DATA, "u ~ N(0, I)", _PROPORTIONAL, _BELOW),
        compute=at_ratios(given_features),
        tolerance=_RESIDUAL,
        example=lambda d: (LinearLabels(4.0), IsotropicFeatures()),
        rate=0.5,
        method="margin",
    ),
    _claim(
        regime=GaussianFeatures,
        title="max-margin",
        theorem=THEOREM,
        assumptions=(_DATA, "u ~ N(0, Σ), its spectrum and alignment with the score given", _PROPORTIONAL, _BELOW),
        compute=at_ratios(given_features),
        tolerance=_RESIDUAL,
        example=lambda d: (LinearLabels(4.0), GaussianFeatures(np.array([0.5, 2.0]))),
        rate=0.5,
        method="margin",
    ),
    _claim(
        regime=Bayes,
        title="Bayes error",
        theorem="by definition",
        assumptions=(_DATA,),
        arguments=(),
        compute=at_ratios(bayes),
        example=lambda d: (LinearLabels(4.0), Bayes()),
    ),
)

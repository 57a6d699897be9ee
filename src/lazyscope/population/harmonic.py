"""Random features on the sphere at finite N and d: the best second layer for given weights, for a target of any degree.

With f(x) = Σ_k √E_k q_k(⟨u, x⟩/√d), one direction u, and weights w_i on the unit sphere, Funk and Hecke give

    U_ij = E[σ(⟨w_i, x⟩)σ(⟨w_j, x⟩)] = κ(⟨w_i, w_j⟩),      V_i = E[σ(⟨w_i, x⟩)f(x)] = Σ_k √E_k s_k Q_k(⟨w_i, u⟩),

s_k = E[σ(√d t)q_k(t)], and the risk is ΣE − VᵀU⁻¹V. Isotropic weights see no direction: f stands for every target of
the same energies, up to the scatter of the draws. A `RidgeMonomial` is such a function too. There the class has an
offset, as its risks are those beside the best constant: s₀² is taken from U, and degree 0 from f.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from lazyscope.activations import Activation
from lazyscope.activations.zonal import overlaps, uncentred
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NoTheorem
from lazyscope.evidence.claim import Claim, at_width, isotropic_features
from lazyscope.population.random_features import explained, missed, noise_of
from lazyscope.problems import HarmonicTarget, RidgeMonomial
from lazyscope.regimes import RandomFeatures

_MANY = 20  # dimensions from which the series of κ is exact to rounding


def risk(problem: HarmonicTarget, regime: RandomFeatures, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the population risk for one draw of N weights: 2N²d + N³/3 flops, two matrices of N² numbers."""
    energy = problem.energy
    if energy == 0.0:
        return {"risk": 0.0, "condition": 1.0, "rank": width, "residual": 0.0}
    fit = _best(regime.activation, problem.d, problem.energies, width, rng)
    return fit | {"risk": energy * fit["risk"]}


def monomial(problem: RidgeMonomial, regime: RandomFeatures, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the risk of a monomial over its variance, with an offset in the class; the cost is that of `risk`."""
    return _best(regime.activation, problem.d, beyond_constant(problem), width, rng, offset=True)


def beyond_constant(problem: RidgeMonomial) -> FloatArray:
    """Return the energies of a monomial in each degree, that of the constant taken out."""
    if not isinstance(problem.inputs, str) or problem.inputs != "sphere" or problem.d < 2:
        got = f"inputs {problem.inputs if isinstance(problem.inputs, str) else 'of a covariance'}, d = {problem.d}"
        advice = "Pass d of at least 2." if problem.d < 2 else 'Pass inputs="sphere".'
        raise NoTheorem.of("Funk and Hecke's formula", "x on the sphere, d ≥ 2", got, advice)
    energies = HarmonicTarget.of_target(problem).energies.copy()
    energies[0] = 0.0
    return energies


def _best(
    sigma: Activation, d: int, energies: FloatArray, N: int, rng: np.random.Generator, *, offset: bool = False
) -> dict[str, float]:
    """Return the share of the energy that the best second layer misses, for one draw of N weights."""
    fits_in_memory(3.0 * 8.0 * N * N, f"The Gram matrix of N = {N} features", "Use a smaller width.")
    W = rng.standard_normal((N, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    moments_of_pairs = uncentred(sigma, d)
    U = moments_of_pairs.kernel(W @ W.T)
    if offset:
        U -= moments_of_pairs.energies[0]  # s₀² = (Eσ)²
    energy = float(np.sum(energies))
    fit = explained(U, overlaps(sigma, d, energies, W[:, 0]))
    # the series of κ ends at degree 160: what is beyond counts in few dimensions, where Q_k(r) is not small
    beyond = 1.0 - float(np.sum(moments_of_pairs.energies)) / moments_of_pairs.second_moment if d < _MANY else 0.0
    error = max(noise_of(sigma), beyond) * fit.sensitivity + fit.cut
    return {
        "risk": missed(fit.energy, energy, error),
        "condition": fit.condition,
        "rank": fit.rank,
        "residual": fit.residual,
    }


_claim = partial(Claim, fidelity="exact", regime=RandomFeatures, arguments=("width",), covers=isotropic_features)

CLAIMS = (
    _claim(
        problem=HarmonicTarget,
        title="random features, every degree",
        theorem="closed-form moments on the sphere (Funk and Hecke), best second layer",
        citations=("defilippis2024dimension",),
        assumptions=(
            "x uniform on the sphere ‖x‖ = √d, w on the unit sphere, σ not centred, no offset",
            "f a function of one direction, with these energies",
        ),
        compute=at_width(risk),
        example=lambda d: (HarmonicTarget(d, np.array([0.0, 0.5, 0.5])), RandomFeatures("relu")),
    ),
    _claim(
        problem=RidgeMonomial,
        title="random features on a monomial",
        theorem="closed-form moments on the sphere (Funk and Hecke), best second layer and offset",
        citations=("ghorbani2021linearized",),
        assumptions=(
            "x uniform on the sphere ‖x‖ = √d, w on the unit sphere",
            "n = ∞: the population optimum over second layer and offset; risk over the variance of the monomial",
        ),
        compute=at_width(monomial),
        example=lambda d: (RidgeMonomial(d, 3), RandomFeatures("erf")),
    ),
)

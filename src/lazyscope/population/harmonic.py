"""Random features on the sphere at finite N and d: the best second layer for given weights, for a target of any degree.

With f(x) = Σ_k √E_k q_k(⟨u, x⟩/√d), one direction u, and weights w_i on the unit sphere, Funk and Hecke give

    U_ij = E[σ(⟨w_i, x⟩)σ(⟨w_j, x⟩)] = κ(⟨w_i, w_j⟩),      V_i = E[σ(⟨w_i, x⟩)f(x)] = Σ_k √E_k s_k Q_k(⟨w_i, u⟩),

s_k = E[σ(√d t)q_k(t)], and the risk is ΣE − VᵀU⁻¹V. Isotropic weights see no direction: f stands for every target of
the same energies, up to the scatter of the draws.
"""

from __future__ import annotations

import numpy as np

from lazyscope.activations.zonal import overlaps, uncentred
from lazyscope.checks import fits_in_memory
from lazyscope.evidence.claim import Claim, at_width, isotropic_features
from lazyscope.population.random_features import explained, missed, noise_of
from lazyscope.problems import HarmonicTarget
from lazyscope.regimes import RandomFeatures

_MANY = 20  # dimensions from which the series of κ is exact to rounding


def risk(problem: HarmonicTarget, regime: RandomFeatures, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the population risk for one draw of N weights: 2N²d + N³/3 flops, two matrices of N² numbers."""
    d, N, sigma = problem.d, width, regime.activation
    fits_in_memory(3.0 * 8.0 * N * N, f"The Gram matrix of N = {N} features", "Use a smaller width.")
    W = rng.standard_normal((N, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    moments_of_pairs = uncentred(sigma, d)
    U = moments_of_pairs.kernel(W @ W.T)
    energy = problem.energy
    if energy == 0.0:
        return {"risk": 0.0, "condition": 1.0, "rank": N, "residual": 0.0}
    V = overlaps(sigma, d, problem.energies, W[:, 0])
    fit = explained(U, V)
    # the series of κ ends at degree 160: what is beyond counts in few dimensions, where Q_k(r) is not small
    beyond = 1.0 - float(np.sum(moments_of_pairs.energies)) / moments_of_pairs.second_moment if d < _MANY else 0.0
    error = max(noise_of(sigma), beyond) * fit.sensitivity + fit.cut
    return {
        "risk": energy * missed(fit.energy, energy, error),
        "condition": fit.condition,
        "rank": fit.rank,
        "residual": fit.residual,
    }


CLAIMS = (
    Claim(
        fidelity="exact",
        problem=HarmonicTarget,
        regime=RandomFeatures,
        title="random features, every degree",
        theorem="closed-form moments on the sphere (Funk and Hecke), best second layer",
        citations=("defilippis2024dimension",),
        assumptions=(
            "x uniform on the sphere ‖x‖ = √d, w on the unit sphere, σ not centred, no offset",
            "f a function of one direction, with these energies",
        ),
        arguments=("width",),
        compute=at_width(risk),
        covers=isotropic_features,
        example=lambda d: (HarmonicTarget(d, np.array([0.0, 0.5, 0.5])), RandomFeatures("relu")),
    ),
)

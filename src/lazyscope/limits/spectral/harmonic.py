"""Ridge regression on the sphere at given d, n and N: every degree of the target, random features and tangent kernel.

The kernel of isotropic features on the sphere ‖x‖ = √d has one eigenvalue for each degree, by Funk and Hecke; with it,
the deterministic equivalents of `equivalent` need no limit at all. Objective Σ(y − f)² + λ‖a‖², f = N^{−1/2} Σ a_jφ_j:

    RF  φ = σ(⟨w, x⟩), w uniform on the unit sphere, σ as it is, not centred:     ξ_k = E[σ(√d t)Q_k(t)]²
    NT  K(x, x′) = t E_w[σ′(⟨w, x⟩)σ′(⟨w, x′⟩)], t = ⟨x, x′⟩/d:                     ξ_k = E[K(t)Q_k(t)]

where Q_k is the Gegenbauer polynomial of degree k with Q_k(1) = 1, and t one coordinate of the unit sphere. A neuron of
NT has d features, and at finite width the equations of `groups` take the place of those for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lazyscope.activations.zonal import spectrum
from lazyscope.activations.zonal_tangent import grouped_spectrum
from lazyscope.checks import FloatArray
from lazyscope.errors import NoTheorem
from lazyscope.evidence.claim import Claim, at_ratios, isotropic_features
from lazyscope.limits.spectral import equivalent, groups
from lazyscope.limits.spectral.equivalent import Spectrum
from lazyscope.limits.spectral.groups import Groups
from lazyscope.problems import HarmonicTarget, SpectralTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures

PAPER = ("defilippis2024dimension",)
_kernel = lru_cache(maxsize=64)(spectrum)
_tangent_kernel = lru_cache(maxsize=64)(grouped_spectrum)


def steps(energies: Sequence[float], kappa: FloatArray) -> FloatArray:
    """Return the risk for d → ∞ of RF with n = d^κ or N = d^κ: the energy of the degrees that are not below κ.

    Ghorbani, Mei, Misiakiewicz and Montanari 2021; Mei, Misiakiewicz and Montanari 2022.

    >>> steps((0.0, 0.5, 0.5), np.array([0.5, 1.5, 2.5]))
    array([1. , 0.5, 0. ])
    """
    degree = np.arange(len(energies))
    return np.asarray(np.sum(np.array(energies) * (degree >= kappa[..., None]), axis=-1))


def random_features(
    problem: HarmonicTarget, regime: RandomFeatures, N: FloatArray, n: FloatArray, ridge: FloatArray
) -> dict[str, FloatArray]:
    """RF of width N on n samples; N = ∞ is kernel ridge regression, n = ∞ the population risk."""
    kernel = _kernel(regime.activation, problem.d)
    degrees = min(problem.energies.size, len(kernel[0]))
    return equivalent.risks(_seen(problem, kernel), problem.noise, N, n, ridge, degrees)


def tangent_model(
    problem: HarmonicTarget, regime: NeuralTangent, N: FloatArray, n: FloatArray, ridge: FloatArray
) -> dict[str, FloatArray]:
    """NT of width N ≥ 2d on n samples; N = ∞ is kernel ridge regression with the tangent kernel."""
    d = problem.d
    if np.any(2.0 * d > N):
        instead = "Use a larger width, width=inf, exact or simulate."
        raise NoTheorem.of("The equivalent of the tangent model", f"N ≥ 2d = {2 * d}", f"N = {np.min(N):g}", instead)
    kernel, (along, tail_along) = _tangent_kernel(regime.activation, d)
    N, n, ridge = np.broadcast_arrays(N, n, ridge)
    degrees, wide = min(problem.energies.size, len(kernel[0])), np.isinf(N)
    seen = _seen(problem, kernel)
    if np.all(wide):
        return equivalent.risks(seen, problem.noise, N, n, ridge, degrees)
    narrow = Groups(seen, along, tail_along, d)
    if not np.any(wide):
        return groups.risks(narrow, problem.noise, N, n, ridge, degrees)
    parts = (
        equivalent.risks(seen, problem.noise, N[wide], n[wide], ridge[wide], degrees),
        groups.risks(narrow, problem.noise, N[~wide], n[~wide], ridge[~wide], degrees),
    )
    whole = {name: np.empty((*N.shape, *value.shape[1:])) for name, value in parts[0].items()}
    for name, values in whole.items():
        values[wide], values[~wide] = parts[0][name], parts[1][name]
    return whole


def _seen(problem: HarmonicTarget, kernel: tuple[FloatArray, FloatArray, float, float]) -> Spectrum:
    xi, m, tail, largest = kernel
    energies = problem.energies
    known = np.zeros(len(xi))
    known[: energies.size] = energies[: len(xi)]
    return Spectrum(xi, m, known, tail, float(np.sum(energies[len(xi) :])), largest)


def given_spectrum(
    problem: SpectralTarget, regime: RandomFeatures, N: FloatArray, n: FloatArray, ridge: FloatArray
) -> dict[str, FloatArray]:
    """N features whose kernel has the spectrum that the problem gives."""
    m = np.ones_like(problem.eigenvalues) if problem.multiplicities is None else problem.multiplicities
    largest = float(np.min(problem.eigenvalues))
    seen = Spectrum(problem.eigenvalues, m, problem.energies, problem.tail, 0.0, largest)
    return equivalent.risks(seen, problem.noise, N, n, ridge)


_OBJECTIVE = "objective Σ(y − f)² + λ‖a‖², f = N^−½ Σ a_jφ_j; ridge = 0 is λ → 0, infinite at N = n"
_ERROR = "no limit is taken: the relative error falls with n and N, and is largest near N = n at small λ"
_SPHERE = "x uniform on the sphere ‖x‖ = √d, w on the unit sphere, σ not centred"

CLAIMS = (
    Claim(
        fidelity="limit",
        problem=HarmonicTarget,
        regime=RandomFeatures,
        title="random features, every degree",
        theorem="Deterministic equivalents (Theorem 3.3) with the spectrum on the sphere",
        citations=PAPER,
        assumptions=(_SPHERE, _OBJECTIVE, _ERROR),
        arguments=("width", "samples", "ridge"),
        compute=at_ratios(random_features),
        covers=isotropic_features,
        dims={"learnt": ("degree",)},
        tolerance=equivalent.TOLERANCE,
        example=lambda d: (HarmonicTarget(d, np.array([0.0, 0.5, 0.5]), noise=0.3), RandomFeatures("relu")),
    ),
    Claim(
        fidelity="limit",
        problem=HarmonicTarget,
        regime=NeuralTangent,
        title="tangent model, every degree",
        theorem="Deterministic equivalents with the spectrum of the tangent kernel on the sphere, d features a neuron",
        citations=(*PAPER, "montanari2020interpolation"),
        assumptions=(_SPHERE, _OBJECTIVE, "N ≥ 2d or N = ∞; K = E_w[σ′σ′]⟨x, x′⟩/d, no offset", _ERROR),
        arguments=("width", "samples", "ridge"),
        compute=at_ratios(tangent_model),
        covers=isotropic_features,
        dims={"learnt": ("degree",)},
        tolerance=equivalent.TOLERANCE,
        sizes={"width": 60},
        example=lambda d: (HarmonicTarget(d, np.array([0.0, 0.5, 0.5]), noise=0.3), NeuralTangent("relu")),
    ),
    Claim(
        fidelity="limit",
        problem=SpectralTarget,
        regime=RandomFeatures,
        title="random features, given spectrum",
        theorem="Deterministic equivalents (Theorem 3.3)",
        citations=PAPER,
        assumptions=("features whose kernel has this spectrum, whatever σ is", _OBJECTIVE, _ERROR),
        arguments=("width", "samples", "ridge"),
        compute=at_ratios(given_spectrum),
        covers=isotropic_features,
        tolerance=equivalent.TOLERANCE,
        example=lambda d: (SpectralTarget.power_law(1.5, 0.5, terms=800, noise=0.1), RandomFeatures()),
    ),
)

"""The tangent model on the sphere at finite N and d: the best displacement for given weights, a target of any degree.

The class Σ_i σ′(⟨w_i, x⟩)⟨a_i, x⟩, without an offset, has normal equations K a = b with d×d blocks

    K_ij = E[σ′(⟨w_i, x⟩)σ′(⟨w_j, x⟩)xxᵀ],      b_i = E[f(x)σ′(⟨w_i, x⟩)x],      f = Σ_k √E_k q_k(⟨u, x⟩/√d),

in closed form by Funk and Hecke (`zonal_tangent`), and the risk is ΣE − bᵀK⁺b. A block is a multiple of I and a part in
the plane of the two weights, as for Gaussian inputs: the same product, which never forms the Nd×Nd matrix. Where σ is
made of t₊^m, the entries of K are homogeneous of degree 2m in x, so that those of Gaussian inputs, in closed form,
differ by the factor d^m/E‖g‖^{2m} = Π_{j<m} d/(d + 2j) alone, in every dimension. With an offset in the class, for a
`RidgeMonomial`, E[σ′(⟨w_i, x⟩)x] = p₀w_i is taken from the features, p₀ = E[uσ′(u)], and degree 0 from f.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from lazyscope.activations import Activation
from lazyscope.activations.zonal_tangent import ZonalTangent
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged
from lazyscope.evidence.claim import Claim, at_width, isotropic_features
from lazyscope.population.environment import Environment
from lazyscope.population.harmonic import beyond_constant
from lazyscope.population.random_features import ACCURACY, missed, noise_of
from lazyscope.population.tangent import TangentKernel, solved
from lazyscope.problems import HarmonicTarget, RidgeMonomial
from lazyscope.regimes import NeuralTangent


def risk(problem: HarmonicTarget, regime: NeuralTangent, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Population risk of one draw: 5N² + 10Nd numbers, 6N²d flops a step of conjugate gradients.

    `residual` is that of the normal equations; the risk is refused where the error of K, or what float64 leaves of
    nearly dependent features, hides its fifth digit.
    """
    energy = problem.energy
    if energy == 0.0:
        return {"risk": 0.0, "residual": 0.0, "iterations": 0}
    fit = _best(regime.activation, problem.d, problem.energies, width, rng)
    return fit | {"risk": energy * fit["risk"]}


def monomial(problem: RidgeMonomial, regime: NeuralTangent, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the risk of a monomial over its variance, with an offset in the class; the cost is that of `risk`."""
    return _best(regime.activation, problem.d, beyond_constant(problem), width, rng, offset=True)


def _best(
    sigma: Activation, d: int, energies: FloatArray, N: int, rng: np.random.Generator, *, offset: bool = False
) -> dict[str, float]:
    """Return the share of the energy that the best displacement misses, for one draw of N weights."""
    size, energy = 8.0 * (5.0 * N * N + 10.0 * N * d), float(np.sum(energies))
    fits_in_memory(size, f"The tangent kernel at N = {N}, d = {d}", "Use a smaller width.")
    W = rng.standard_normal((N, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    moments = ZonalTangent.of(sigma, d)
    b = moments.overlaps(energies, W)
    if moments.across + moments.along == 0.0 or not np.any(b):
        return {"risk": 1.0, "residual": 0.0, "iterations": 0}
    times, lost = _product(sigma, moments, W)
    mean = moments.p[0] * W if offset else np.zeros_like(W)

    def centred(a: FloatArray) -> FloatArray:
        return times(a) - float(np.vdot(mean, a)) * mean

    solution = solved(centred, b, np.full((N, 1), 1.0 / max(moments.across, moments.along)))
    if lost * solution.sensitivity > ACCURACY * energy:
        raise NotConverged(
            f"The risk is known to {lost * solution.sensitivity / energy:.1e} only (tolerance {ACCURACY:.0e}): the "
            f"series of the kernel of {sigma.name} ends at degree 160, too early for weights as parallel as some of "
            f"N = {N} in d = {d}. Use a larger d, a smaller width, or an activation with a closed form (relu, abs)."
        )
    error = (noise_of(sigma) + lost) * solution.sensitivity + solution.cut
    return {
        "risk": missed(solution.energy, energy, error),
        "residual": solution.residual,
        "iterations": solution.iterations,
    }


def _product(
    sigma: Activation, moments: ZonalTangent, W: FloatArray
) -> tuple[Callable[[FloatArray], FloatArray], float]:
    """Return the product with K, and a bound on the error of K relative to its diagonal."""
    N, d = W.shape
    plain = Environment(1.0, np.ones(d), 0.0)
    if sigma.rectified is not None:
        gaussian = TangentKernel.of(plain, W, sigma)
        factor = float(np.prod(d / (d + 2.0 * np.arange(sigma.rectified.power))))
        return lambda a: factor * gaussian.times(a), 0.0
    first, second, mixed, lost = moments.pairs(W @ W.T)
    m0, along = np.full(N, moments.across), np.full(N, moments.along - moments.across)
    nothing = np.zeros_like(W)  # no mean to subtract, and b is kept apart
    kernel = TangentKernel(plain, W, first, second, mixed, m0, along, nothing, nothing)
    return kernel.times, lost / moments.across


_claim = partial(
    Claim, fidelity="exact", regime=NeuralTangent, arguments=("width",), covers=isotropic_features,
    citations=("ghorbani2021linearized", "cho2009kernel", "hestenes1952"),
)  # fmt: skip

CLAIMS = (
    _claim(
        problem=HarmonicTarget,
        title="tangent model, every degree",
        theorem="closed-form moments on the sphere (Funk and Hecke), normal equations by conjugate gradients",
        assumptions=(
            "x uniform on the sphere ‖x‖ = √d, w on the unit sphere, no offset",
            "f a function of one direction, with these energies",
            "n = ∞: the population optimum over the displacement",
        ),
        compute=at_width(risk),
        example=lambda d: (HarmonicTarget(d, np.array([0.0, 0.5, 0.5])), NeuralTangent("relu")),
    ),
    _claim(
        problem=RidgeMonomial,
        title="tangent model on a monomial",
        theorem="closed-form moments on the sphere (Funk and Hecke), normal equations with an offset",
        assumptions=(
            "x uniform on the sphere ‖x‖ = √d, w on the unit sphere",
            "n = ∞: the population optimum over displacement and offset; risk over the variance of the monomial",
        ),
        compute=at_width(monomial),
        example=lambda d: (RidgeMonomial(d, 3), NeuralTangent("erf")),
    ),
)

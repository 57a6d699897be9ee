"""One giant step on the first layer, then the best second layer and offset: exact for drawn weights (Ba et al. 2022).

With w_i the weights after the step, U_ij = Cov(σ(w_i·x), σ(w_j·x)) and V_i = E[hσ(w_i·x)], the risk is
1 − VᵀU⁻¹V/E[h²], as for random features: these are random features of weights that have seen the target once.
"""

from __future__ import annotations

import numpy as np

from lazyscope import weights
from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.evidence.claim import Claim, at_width
from lazyscope.population.directions import series
from lazyscope.population.environment import Environment, environments
from lazyscope.population.joint import JointKernel
from lazyscope.population.random_features import explained, missed, moments, noise_of
from lazyscope.problems import MultiIndex
from lazyscope.regimes import GiantStep, RandomFeatures

_BLOCK = 2048  # samples of the step at once


def risk(problem: MultiIndex, regime: GiantStep, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Exact risk of one draw of weights and of the step's samples: 4ndN flops for the step, N²d + N³/3 after it."""
    size = 8.0 * (2.0 * width * width + 4.0 * width * problem.d + _BLOCK * (problem.d + 3.0 * width))
    fits_in_memory(size, f"The N×N kernel matrix at N = {width}", "Use a smaller width.")
    sigma = regime.activation
    W = stepped(problem, regime, width, rng)
    s = np.linalg.norm(W, axis=1)
    U, V = moments(environments(problem), W, sigma, centre=sigma.hermite_coefficients(s, 0)[0])
    solution = explained(U, V)
    along = np.linalg.norm(W @ np.atleast_2d(problem.u).T) / np.linalg.norm(W)
    return {
        "risk": missed(solution.energy, problem.energy, noise_of(sigma) * solution.sensitivity + solution.cut),
        "aligned": float(along**2),
        "condition": solution.condition,
        "rank": solution.rank,
        "residual": solution.residual,
    }


def stepped(problem: MultiIndex, regime: GiantStep, N: int, rng: np.random.Generator) -> FloatArray:
    """Return the weights after the step, rows; those before it are the ones that random features have."""
    sigma = regime.activation
    W = weights.draw(problem, RandomFeatures(sigma), N, rng)
    alpha = rng.standard_normal(N)
    if np.isinf(regime.samples):
        G = population_gradient(problem, sigma, W, alpha)
    else:
        G = sampled_gradient(problem, sigma, W, alpha, int(regime.samples), rng)
    return np.asarray(W + regime.step * alpha[:, None] * G)


def sampled_gradient(
    problem: MultiIndex, sigma: Activation, W: FloatArray, alpha: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """(1/n) Σ_k (y_k − f(x_k)) σ′(w_i·x_k) x_k on fresh samples, f = (1/N) Σ α_jσ(w_j·x): shape (N, d)."""
    U, total = np.atleast_2d(problem.u), np.zeros_like(W)
    for start in range(0, n, _BLOCK):
        X = rng.standard_normal((min(_BLOCK, n - start), problem.d))
        z, fields = X @ U.T, X @ W.T
        y = problem.h(z[:, 0] if problem.indices == 1 else z) + problem.noise * rng.standard_normal(len(X))
        residual = y - sigma(fields) @ alpha / len(W)
        total += (sigma.derivative(fields) * residual[:, None]).T @ X
    return total / n


def population_gradient(problem: MultiIndex, sigma: Activation, W: FloatArray, alpha: FloatArray) -> FloatArray:
    """The same for n = ∞: E[hσ′x] by its series, and E[fσ′x] by the kernels of both layers, 2N²d flops."""
    joint = JointKernel.of(Environment(1.0, np.ones(problem.d), 0.0), W, sigma)
    network = np.column_stack([alpha / len(W), np.zeros_like(W)])
    return series.gradients(problem, W, sigma) - joint.times(network)[:, 1:]


CLAIMS = (
    Claim(
        fidelity="exact",
        problem=MultiIndex,
        regime=GiantStep,
        title="one giant step",
        theorem="one gradient step, then the population optimum of the second layer by Hermite series",
        citations=("ba2022onestep", "price1958", "cho2009kernel", "williams1998infinite"),
        assumptions=(
            "w_i ~ N(0, I/d), α_i ~ N(0, 1); the step is taken on `samples` fresh samples, or on the population",
            "n = ∞ for the second layer: the population optimum over it and an offset",
        ),
        arguments=("width",),
        compute=at_width(risk),
        example=lambda d: (MultiIndex(d, "relu"), GiantStep("erf", samples=4 * d)),
        scale_free=False,
    ),
)

"""RF and NT together at finite N and d: the features of both layers in one system of normal equations.

The class c + Σ a_iσ(w_i·x) + Σ σ′(w_i·x)⟨v_i, x⟩ has, beside U of `random_features` and K of `tangent`, the blocks

    G_ij = E[σ(w_i·x) σ′(w_j·x) x] = Σ_y p_y { T₁₁ y_i + T₀₂ y_j },    G_ii = Σ_y p_y E[σ(s g)σ′(s g)g] y_i/s_i,

by Stein's lemma, y_i = C w_i. Where σ is homogeneous, U and G are combinations of K: NT has the same functions, and is
what is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope import weights
from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.evidence.claim import Claim, Example, at_width, exponential_quantiles, three_levels
from lazyscope.numerics import matrices
from lazyscope.population import projector, tangent
from lazyscope.population.environment import Environment, environments, largest_cosine, project
from lazyscope.population.kernels import pair_kernel
from lazyscope.population.random_features import BLOCK, missed, moments, noise_of
from lazyscope.population.tangent import TangentKernel, solved
from lazyscope.problems import GaussianMixture, GaussianProblem, MultiIndex, QuadraticTarget
from lazyscope.regimes import JointTangent, NeuralTangent


def risk(problem: GaussianProblem, regime: JointTangent, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Exact risk of one draw: 4N² numbers an environment and N² more, 10N²d flops a conjugate-gradient step."""
    if regime.is_neural_tangent:
        return _first_layer(problem, regime.first_layer, width, rng)
    world = environments(problem)
    size = 8.0 * ((4.0 * len(world) + 1.0) * width**2 + 12.0 * width * problem.d)
    fits_in_memory(size, f"The tangent kernel at N = {width}, d = {problem.d}", "Use a smaller width.")
    W, sigma = weights.draw(problem, regime, width, rng), regime.activation
    parts = [JointKernel.of(y, W, sigma) for y in world]
    U, V = moments(world, W, sigma, centre=0.0)
    matrices.mirror(U)
    mean = sum(part.probability * part.mean for part in parts)
    rhs = sum(part.probability * part.first.rhs for part in parts)
    slopes = sum(part.probability * part.first.m0 for part in parts)
    assert isinstance(mean, np.ndarray) and isinstance(rhs, np.ndarray)

    def centred(x: FloatArray) -> FloatArray:
        out = -float(np.vdot(mean, x)) * mean
        out[:, 0] += U @ x[:, 0]
        for part in parts:
            out += part.probability * part.times(x)
        return out

    energy = sum(y.probability * y.energy for y in world)
    b = np.column_stack([V, rhs])
    diagonal = np.column_stack(
        [np.diagonal(U) - mean[:, 0] ** 2, np.broadcast_to(np.asarray(slopes)[:, None], rhs.shape)]
    )
    solution = solved(centred, b, 1.0 / diagonal)
    return {
        "risk": missed(solution.energy, energy, noise_of(sigma) * solution.sensitivity + solution.cut),
        "residual": solution.residual,
        "iterations": solution.iterations,
    }


def _first_layer(
    problem: GaussianProblem, regime: NeuralTangent, width: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the risk of NT, which for σ = u² is linear algebra in d dimensions."""
    if regime.activation.is_square and isinstance(problem, QuadraticTarget):
        return projector.quadratic(problem, regime, width, rng)
    if regime.activation.is_square and isinstance(problem, GaussianMixture):
        return projector.mixture(problem, regime, width, rng)
    if regime.activation.is_square and isinstance(problem, MultiIndex):
        return projector.few_directions(problem, regime, width, rng)
    return tangent.risk(problem, regime, width, rng)


@dataclass(frozen=True, eq=False)
class JointKernel:
    """K of one environment, and what couples it to σ: T₀₂ (N×N, zero diagonal), G_ii and the means of the features."""

    first: TangentKernel
    T02: FloatArray
    own: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, environment: Environment, W: FloatArray, sigma: Activation) -> JointKernel:
        """Evaluate the pair kernels for the weights W, shape (N, d): 2N²d flops and 4N² kernel entries."""
        seen, N = project(environment, W), len(W)
        kernel = pair_kernel(sigma, seen.s, 0.0 if sigma.has_closed_kernels else largest_cosine(seen, BLOCK), order=3)
        T02, everything = np.empty((N, N)), slice(0, N)
        for start in range(0, N, BLOCK):
            rows = slice(start, min(start + BLOCK, N))
            r = seen.cosines(rows, everything)
            own = (np.arange(len(r)), np.arange(rows.start, rows.stop))
            r[own] = 0.0  # the pair (i, i) has its own closed form
            block = kernel(0, 2, r, rows, everything)
            block[own] = 0.0
            T02[rows] = block
        first = TangentKernel.of(environment, W, sigma)
        mean = np.column_stack([sigma.hermite_coefficients(seen.s, 0)[0], first.mean])
        return cls(first, T02, 0.5 * sigma.second_moment_slope(seen.s) / seen.s, mean)

    @property
    def probability(self) -> float:
        """p_y."""
        return self.first.environment.probability

    def times(self, x: FloatArray) -> FloatArray:
        """Multiply x = (a, v), shape (N, 1 + d), by all blocks but U: K v + Gᵀa and G v."""
        a, v, Y, T11 = x[:, 0], x[:, 1:], self.first.Y, self.first.T11
        along = np.einsum("ij,ij->i", Y, v)  # y_j·v_j
        out = np.empty_like(x)
        out[:, 0] = np.einsum("ij,ij->i", Y, T11 @ v) + self.T02 @ along + self.own * along
        out[:, 1:] = self.first.times(v) + T11.T @ (a[:, None] * Y) + (self.T02.T @ a + self.own * a)[:, None] * Y
        return out


def _claim(problem: type[GaussianProblem], example: Example) -> Claim:
    return Claim(
        fidelity="exact",
        problem=problem,
        regime=JointTangent,
        title="both layers",
        theorem="normal equations of both layers by Stein's lemma; for homogeneous σ those of NT (Euler)",
        citations=("ghorbani2019limitations", "price1958", "cho2009kernel", "hestenes1952"),
        assumptions=("n = ∞: the population optimum over both layers and the offset", "σ′ in L² at every weight norm"),
        arguments=("width",),
        compute=at_width(risk),
        example=example,
    )


CLAIMS = (
    _claim(QuadraticTarget, lambda d: (exponential_quantiles(d), JointTangent("softplus"))),
    _claim(GaussianMixture, lambda d: (three_levels(d), JointTangent("softplus"))),
    _claim(MultiIndex, lambda d: (MultiIndex(d, "erf"), JointTangent("erf"))),
)

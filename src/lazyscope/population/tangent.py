"""Neural tangent with any activation: an Nd×Nd system that is never formed.

The class c + Σ σ′(w_i·x)⟨a_i, x⟩ has the normal equations (K − μμᵀ)a = b with d×d blocks, over environments y,

    K_ij = Σ_y p_y { T₁₁ C + T₃₁ y_iy_iᵀ + T₂₂ (y_iy_jᵀ + y_jy_iᵀ) + T₁₃ y_jy_jᵀ },    y_i = C w_i,
    K_ii = Σ_y p_y { m₀ C + (m₂ − m₀)/s_i² y_iy_iᵀ },   m₀ = E[σ′(s g)²],  m₂ = E[σ′(s g)² g²],

by Stein's lemma (T_pq as in `kernels`). R = 1 − bᵀ(K − μμᵀ)⁺b/E[f⋆²]. A product with K is three N×N×d products,
6N²d flops, so that conjugate gradients need 3N² numbers an environment, not (Nd)².
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from lazyscope import weights
from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged
from lazyscope.evidence.claim import Claim, Example, at_width, exponential_quantiles, three_levels
from lazyscope.numerics import matrices
from lazyscope.numerics.krylov import Solution, solve
from lazyscope.population.directions import series
from lazyscope.population.environment import Environment, Projected, environments, largest_cosine, project
from lazyscope.population.kernels import pair_kernel
from lazyscope.population.random_features import BLOCK, explained, missed, noise_of
from lazyscope.problems import GaussianMixture, GaussianProblem, MultiIndex, QuadraticTarget
from lazyscope.regimes import NeuralTangent

_SMALL = 512  # Nd up to which systems are solved directly: conjugate gradients may stop on a plateau
_DENSE = 2048  # Nd up to which a system that conjugate gradients cannot solve is solved directly, in seconds
_TOO_HARD = (
    "the tangent kernel is too ill-conditioned, as for a very smooth activation or weights that are nearly parallel. "
    "Use a smaller width or a less smooth activation."
)
_SINGULAR = (
    "the tangent kernel is singular to rounding, as for weights that are nearly parallel. "
    "Use a smaller width, or a larger d."
)


def risk(problem: GaussianProblem, regime: NeuralTangent, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Exact risk of one draw: 3N² + 6Nd numbers an environment, 6N²d flops a conjugate-gradient step."""
    world = environments(problem)
    size = 8.0 * (3.0 * len(world) * width**2 + 10.0 * width * problem.d)
    fits_in_memory(size, f"The tangent kernel at N = {width}, d = {problem.d}", "Use a smaller width.")
    W = weights.draw(problem, regime, width, rng)
    parts = [TangentKernel.of(y, W, regime.activation) for y in world]
    mean = sum(part.environment.probability * part.mean for part in parts)
    b = sum(part.environment.probability * part.rhs for part in parts)
    diagonal = sum(part.environment.probability * part.m0 for part in parts)
    assert isinstance(mean, np.ndarray) and isinstance(b, np.ndarray)

    def centred(a: FloatArray) -> FloatArray:
        out = -float(np.vdot(mean, a)) * mean
        for part in parts:
            out += part.environment.probability * part.times(a)
        return out

    def matrix() -> FloatArray:
        out = -np.outer(mean, mean)
        for part in parts:
            out += part.environment.probability * part.matrix()
        return out

    energy = sum(y.probability * y.energy for y in world)
    solution = solved(centred, b, 1.0 / np.asarray(diagonal)[:, None], matrix)
    return {
        "risk": missed(solution.energy, energy, noise_of(regime.activation) * solution.sensitivity + solution.cut),
        "residual": solution.residual,
        "iterations": solution.iterations,
    }


def solved(
    apply: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    scale: FloatArray,
    matrix: Callable[[], FloatArray] | None = None,
) -> Solution:
    """Solve by conjugate gradients, or directly where the system is small enough for it or for them to fail.

    `matrix` forms the matrix of `apply`; without it a product with every unit vector does.
    """
    if b.size > _SMALL:
        try:
            return solve(apply, b, scale, too_hard=_TOO_HARD, singular=_SINGULAR)
        except NotConverged:
            if b.size > _DENSE:
                raise
    if matrix is None:
        return dense_solution(np.stack([apply(unit.reshape(b.shape)).ravel() for unit in np.eye(b.size)]), b)
    return dense_solution(matrix(), b)


def dense_solution(K: FloatArray, b: FloatArray) -> Solution:
    """Solve a small or an ill-conditioned system by its eigenvectors: (Nd)² memory, 9(Nd)³ flops."""
    direct = explained(0.5 * (K + K.T), b.ravel())
    return Solution(direct.energy, direct.residual, b.size, direct.sensitivity, direct.cut)


@dataclass(frozen=True, eq=False)
class TangentKernel:
    """K of one environment as T₁₁, T₂₂, T₃₁ (N×N, zero diagonals) and its diagonal blocks."""

    environment: Environment
    Y: FloatArray
    T11: FloatArray
    T22: FloatArray
    T31: FloatArray
    m0: FloatArray
    along: FloatArray
    mean: FloatArray
    rhs: FloatArray

    @classmethod
    def of(cls, environment: Environment, W: FloatArray, sigma: Activation) -> TangentKernel:
        """Evaluate the pair kernels for the weights W, shape (N, d): 2N²d flops and 3N² kernel entries."""
        seen = project(environment, W)
        N = len(W)
        cosine = 0.0 if sigma.has_closed_kernels else largest_cosine(seen, BLOCK)
        kernel = pair_kernel(sigma, seen.s, cosine, order=3)
        T = np.empty((3, N, N))
        everything = slice(0, N)
        for start in range(0, N, BLOCK):
            rows = slice(start, min(start + BLOCK, N))
            r = seen.cosines(rows, everything)
            own = (np.arange(len(r)), np.arange(rows.start, rows.stop))
            r[own] = 0.0  # the pair (i, i) has its own closed form
            T[0, rows] = kernel(1, 1, r, rows, everything)
            for k, (p, q) in ((1, (2, 2)), (2, (3, 1))):
                block = kernel(p, q, r, rows, everything)
                block[np.isinf(block)] = 0.0  # ReLU, parallel weights: T₂₂ and T₃₁ diverge, but cancel in K_ij
                T[k, rows] = block
            T[:, rows.start + own[0], own[1]] = 0.0
        m0, m2 = sigma.slope_moments(seen.s)
        mean, rhs = tangent_moments(seen, sigma)
        return cls(environment, seen.CW, T[0], T[1], T[2], m0, (m2 - m0) / seen.s**2, mean, rhs)

    def times(self, a: FloatArray) -> FloatArray:
        """K a for a of shape (N, d), in row blocks: three products of N×N with N×d."""
        Y, C = self.Y, self.environment.C
        N = len(Y)
        out = np.empty_like(a)
        own = np.einsum("ij,ij->i", Y, a)  # y_j·a_j
        for start in range(0, N, BLOCK):
            rows = slice(start, min(start + BLOCK, N))
            P = Y[rows] @ a.T  # y_i·a_j
            out[rows] = matrices.rows_times(self.T11[rows] @ a + self.m0[rows, None] * a[rows], C)
            along = np.einsum("ij,ij->i", self.T31[rows], P) + self.T22[rows] @ own + self.along[rows] * own[rows]
            P *= self.T22[rows]
            P += self.T31[:, rows].T * own
            out[rows] += P @ Y
            out[rows] += along[:, None] * Y[rows]
        return out

    def matrix(self) -> FloatArray:
        """K itself, (Nd, Nd), for systems that are solved directly: 11(Nd)² flops and a temporary of its size."""
        Y, C, i = self.Y, matrices.dense(self.environment.C), np.arange(len(self.Y))
        T11, T22, T31 = (T[:, None, :, None] for T in (self.T11, self.T22, self.T31))
        squares = Y[:, :, None] * Y[:, None, :]
        K = T11 * C[:, None, :]  # [i, a, j, b]
        K += T31 * squares[:, :, None, :]
        K += self.T31.T[:, None, :, None] * squares.swapaxes(0, 1)
        K += T22 * Y[:, :, None, None] * Y
        K += T22 * Y.T[:, :, None] * Y[:, None, None, :]
        K[i, :, i, :] += self.m0[:, None, None] * C + self.along[:, None, None] * squares
        return K.reshape(Y.size, Y.size)


def tangent_moments(seen: Projected, sigma: Activation) -> tuple[FloatArray, FloatArray]:
    """μ_i = E[σ′(w_i·x) x] = e₁ y_i/s_i and b_i = E[f⋆ σ′(w_i·x) x], both (N, d).

    With σ′(s·) = Σ e_k he_k, e_k = √(k+1) c_{k+1}(s)/s: b = m μ + 2e₁ CB y_i/s_i + √6 e₃ (y_iᵀBy_i/s_i²) y_i/s_i,
    and for a function of a few directions as in `series`. These are gradients of E[σ(w_i·x)] and E[f⋆σ(w_i·x)], too.
    """
    c = sigma.hermite_coefficients(seen.s, 4)
    e1, e3 = sqrt(2.0) * c[2] / seen.s, 2.0 * c[4] / seen.s
    unit = seen.CW / seen.s[:, None]
    mean = e1[:, None] * unit
    if seen.environment.index is not None:
        return mean, series.gradients(seen.environment.index, seen.W, sigma)
    rhs = seen.environment.m * mean
    if seen.environment.B is not None:
        bent = matrices.rows_times(matrices.rows_times(unit, seen.environment.B), seen.environment.C)
        rhs = rhs + 2.0 * e1[:, None] * bent + (sqrt(6.0) * e3 * seen.target_form())[:, None] * unit
    return mean, rhs


def _claim(problem: type[GaussianProblem], example: Example) -> Claim:
    return Claim(
        fidelity="exact",
        problem=problem,
        regime=NeuralTangent,
        title="neural tangent, any activation",
        theorem="normal equations by Stein's lemma, conjugate gradients",
        citations=("ghorbani2019limitations", "price1958", "cho2009kernel", "hestenes1952"),
        assumptions=(
            "n = ∞: the population optimum over the displacement and the offset",
            "σ′ in L² at every weight norm",
        ),
        arguments=("width",),
        compute=at_width(risk),
        example=example,
    )


CLAIMS = (
    _claim(QuadraticTarget, lambda d: (exponential_quantiles(d), NeuralTangent("relu"))),
    _claim(GaussianMixture, lambda d: (three_levels(d), NeuralTangent("relu"))),
    _claim(MultiIndex, lambda d: (MultiIndex(d, "erf"), NeuralTangent("erf"))),
)

"""The Gaussian problems in one form: a mixture of centred Gaussians, each with a label of its own.

Environment y has probability p_y; in it x ~ N(0, C_y) and the target is m_y + ⟨x, Bx⟩ − Tr(B C_y) + h(⟨u₁, x⟩, …). The
quadratic target is one environment (p = 1, C = I, m = 0, h = 0), the Gaussian mixture two (p = ½, C = Σ ∓ Δ, m = ±1,
B = 0), a function of a few directions is one (C = I, m = 0, B = 0). Every exact result is written once, for a list of
environments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from math import sqrt

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.numerics import matrices
from lazyscope.population.directions import series
from lazyscope.problems import GaussianMixture, GaussianProblem, MultiIndex, QuadraticTarget


@dataclass(frozen=True, eq=False)
class Environment:
    """One Gaussian component: probability p, covariance C; m + ⟨x, Bx⟩ − Tr(BC) + h(⟨u₁, x⟩, …); h needs C = I."""

    probability: float
    C: FloatArray
    m: float
    B: FloatArray | None = None
    index: MultiIndex | None = None

    @property
    def energy(self) -> float:
        """E[target²] = m² + 2‖C^{1/2}BC^{1/2}‖² + E[h²]; no environment has both B and h."""
        if self.index is not None:
            return self.m**2 + self.index.energy
        if self.B is None:
            return self.m**2
        CB = matrices.product(self.C, self.B)
        return self.m**2 + 2.0 * matrices.inner(CB, CB.T)


@singledispatch
def environments(problem: GaussianProblem) -> tuple[Environment, ...]:
    """Return the problem as its environments."""
    raise TypeError(f"no Gaussian environments for {type(problem).__name__}")


@environments.register
def _(problem: QuadraticTarget) -> tuple[Environment, ...]:
    return (Environment(1.0, np.ones(problem.d), 0.0, problem.B),)


@environments.register
def _(problem: GaussianMixture) -> tuple[Environment, ...]:
    return tuple(Environment(0.5, problem.class_covariance(y), y) for y in (1.0, -1.0))


@environments.register
def _(problem: MultiIndex) -> tuple[Environment, ...]:
    return (Environment(1.0, np.ones(problem.d), 0.0, index=problem),)


@dataclass(frozen=True, eq=False)
class Projected:
    """The neurons seen in one environment: rows w_i, C w_i, and the norms s_i = √⟨w_i, C w_i⟩."""

    environment: Environment
    W: FloatArray
    CW: FloatArray
    s: FloatArray

    def cosines(self, rows: slice, columns: slice) -> FloatArray:
        """r_ij = ⟨w_i, C w_j⟩/(s_i s_j), within [−1, 1]: 2·|rows|·|columns|·d flops.

        Cosines within rounding of ±1 are ±1: kernels of ReLU have terms in 1/√(1 − r²) that cancel, at r = ±1 because
        they are left out, but for r = 1 − ε only to 1e-9, and collinear weights would seem independent.
        """
        r = self.CW[rows] @ self.W[columns].T
        r /= self.s[rows, None]
        r /= self.s[columns]
        np.clip(r, -1.0, 1.0, out=r)
        parallel = np.abs(r) >= 1.0 - (self.W.shape[1] + 4) * np.finfo(np.float64).eps
        if parallel.any():
            r[parallel] = np.sign(r[parallel])
        return r

    def target_form(self) -> FloatArray:
        """⟨w_i, C B C w_i⟩/s_i², the curvature of the target along neuron i (zero without B)."""
        B = self.environment.B
        if B is None:
            return np.zeros(len(self.W))
        return np.asarray(np.einsum("ij,ij->i", matrices.rows_times(self.CW, B), self.CW) / self.s**2)

    def overlaps(self, sigma: Activation) -> FloatArray:
        """E[(f⋆ − m)σ(w_i·x)] = √2 c₂(s_i) ⟨w_i, CBCw_i⟩/s_i² + E[hσ(w_i·x)], the latter by its series."""
        if self.environment.index is None:
            return np.asarray(sqrt(2.0) * sigma.hermite_coefficients(self.s, 2)[2] * self.target_form())
        return series.values(self.environment.index, self.W, sigma)


def project(environment: Environment, W: FloatArray) -> Projected:
    """See the rows of W, shape (N, d), through C."""
    CW = matrices.rows_times(W, environment.C)
    return Projected(environment, W, CW, np.sqrt(np.einsum("ij,ij->i", CW, W)))


def largest_cosine(seen: Projected, block: int) -> float:
    """max_{i≠j} |r_ij|, in row blocks of the upper triangle: N²d flops."""
    N, largest = len(seen.W), 0.0
    for start in range(0, N, block):
        rows = slice(start, min(start + block, N))
        r = np.abs(seen.cosines(rows, slice(start, N)))
        r[np.arange(r.shape[0]), np.arange(r.shape[0])] = 0.0
        largest = max(largest, float(np.max(r)))
    return largest

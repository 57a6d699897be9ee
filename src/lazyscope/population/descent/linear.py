"""Gradient descent of the tangent model, and what the noise of SGD adds to it: no sample is drawn.

f = (1/N) Σ σ′(⟨w_i,x⟩)⟨v_i,x⟩ + c is linear in u = (√N a, c), a = V/N, features φ = (σ′(⟨w_i,x⟩)x/√N, 1). A step is

    u ← u − (2ε/m) Σ rφ over a batch of m,   in the mean  u ← u − 2ε(Su − s),   S = E[φφᵀ],  s = E[f⋆φ],

S of the blocks K/N, μ/√N and 1, with K, μ and b as in `tangent`. Along the eigenvectors of S, of eigenvalues θ_j, what
is left of the start after all steps is q_j = Π_k(1 − 2ε_kθ_j), and the energy that is learnt Σ_j s_j²(1 − q_j²)/θ_j: a
quadrature over the spectrum of S as s sees it, for which some hundred steps of Lanczos' method serve every schedule.

The noise of a step has the covariance (4ε²/m)·Cov(rφ), which is (4ε²/m)·κ·L·S, L = E r², with κ near 1 as ‖φ‖² hardly
varies in high dimensions. For σ = u² κ is a moment of quadratic forms (`noise`), taken at the end of the descent. Else
‖φ‖² ∝ ‖x‖² is assumed; a residual of degree 2 has E[r²‖x‖²] = (d + 4)L, and else κ is taken as 1. So every eigenvalue
θ of S adds y to the risk, with y ← (1 − 2εθ)²y + (4ε²θ²/m)κL, and L is what is left without noise and the sum of all y
(`numerics.descent.steps`). That sum is over all of the spectrum, for which Lanczos' method starts from random vectors:
one in what the offset spans, one in the linear functions that all neurons share, whose eigenvalues stand out, and some
in the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged
from lazyscope.numerics.descent.steps import noisy_risks
from lazyscope.population.descent.noise import noise_factor
from lazyscope.population.environment import environments
from lazyscope.population.tangent import TangentKernel
from lazyscope.problems import GaussianProblem, QuadraticTarget
from lazyscope.regimes import NeuralTangent

Schedule = Sequence[tuple[int, float]]
"""So many steps of one size, then of the next."""

_SEEN = 100  # steps of Lanczos' method from s: conjugate gradients need fewer for twelve digits
_ALL = 32  # and from a random vector
_DENSE = 2000  # parameters up to which all eigenvalues are computed
_PROBED = 100_000  # parameters, over random vectors: their number is this over Nd, rounded up
_MARKS = 500  # of a stretch of steps at which the risk without noise is computed; between them it is interpolated
_SMALLEST = 1e-12  # eigenvalue, over the largest, of what is learnt at all
_HOPELESS = 1e3  # times the trivial risk
_LOST = 100.0  # logarithm of what is left of the start: the risk is infinite, as good as


@dataclass(frozen=True, eq=False)
class TangentDescent:
    """The spectrum of S: as s sees it (`theta`, `share`), and all of it (`modes`, `count`).

    `factor` is κ of a model that has learnt the given shares of what is to be learnt along each θ.
    """

    theta: FloatArray
    share: FloatArray
    modes: FloatArray
    count: FloatArray
    factor: Callable[[FloatArray], float]

    @classmethod
    def of(cls, problem: GaussianProblem, regime: NeuralTangent, N: int, rng: np.random.Generator) -> TangentDescent:
        """Draw N weights, and take the spectrum: some 200 products with K, 6N²d flops each; N is at most d for σ = u².

        >>> import lazyscope as ls
        >>> target = ls.QuadraticTarget([2.0, 1.0, 0.5])
        >>> found = TangentDescent.of(target, NeuralTangent(), 2, weights.generator(0, 0, 2))
        >>> found.risk([(0, 0.1)]), round(found.risk([(4000, 0.05)]), 4)
        (1.0, 0.5377)
        >>> ls.exact(target, NeuralTangent(), width=[2]).risk.values.round(4)  # where it ends
        array([0.5377])
        >>> found.noisy_risk([(4000, 0.05)], batch=50) > found.risk([(4000, 0.05)])
        True
        """
        W = weights.draw(problem, regime, N, rng)
        if regime.activation.name == "square" and len(W) > problem.d:
            W = np.asarray(np.linalg.qr(W, mode="r"))  # the model sees WᵀW alone
        world = environments(problem)
        size = 8.0 * (3.0 * len(world) * len(W) ** 2 + (_SEEN + 10.0) * W.size)
        fits_in_memory(size, f"The descent of NT at N = {N}, d = {problem.d}", "Use a smaller width.")
        parts = [TangentKernel.of(y, W, regime.activation) for y in world]
        mean, rhs = np.zeros_like(W), np.zeros_like(W)
        for part in parts:
            mean += part.environment.probability * part.mean
            rhs += part.environment.probability * part.rhs
        offset = sum(part.environment.probability * part.environment.m for part in parts)
        energy = sum(y.probability * y.energy for y in world)
        root = N**-0.5

        def times(u: FloatArray) -> FloatArray:
            a, c = u[:-1].reshape(W.shape) * root, float(u[-1])
            out = c * mean
            for part in parts:
                out += part.environment.probability * part.times(a)
            return np.append(root * out.ravel(), float(np.vdot(mean, a)) + c)

        s = np.append(root * rhs.ravel(), offset)
        theta, vectors, basis = lanczos(times, s, _SEEN)
        share = _weights(vectors, s) / energy
        modes, count = _spectrum(times, *W.shape)
        seen = theta > _SMALLEST * theta.max()

        def factor(learnt: FloatArray) -> float:
            """All is learnt in S⁺s = Σ_jz_j⟨z_j,s⟩/θ_j, the eigenvectors z_j being Σ_k vectors_kj basis_k."""
            along = float(np.linalg.norm(s)) * vectors[0, seen] * learnt[seen] / theta[seen]
            u = (vectors[:, seen] @ along) @ basis
            return noise_factor(world, W, u[:-1].reshape(W.shape) * root, float(u[-1]), N)

        if regime.activation.name == "square" and all(y.index is None for y in world):
            return cls(theta, share, modes, count, factor)
        usual = 1.0 + (4.0 / problem.d if isinstance(problem, QuadraticTarget) else 0.0)
        return cls(theta, share, modes, count, lambda learnt: usual)

    def risk(self, schedule: Schedule) -> float:
        """Return the risk of gradient descent after a schedule, in units of the trivial one."""
        left = sum(count * _logarithms(self.theta, size) for count, size in schedule)
        return float(self._risks(np.asarray(left)[None])[0])

    def _risks(self, logarithms: FloatArray) -> FloatArray:
        learnt = -np.expm1(2.0 * np.minimum(logarithms, _LOST)) / np.maximum(self.theta, 1e-300)
        return np.asarray(1.0 - np.where(self.theta > _SMALLEST * self.theta.max(), learnt, 0.0) @ self.share)

    def _factor(self, schedule: Schedule) -> float:
        """Return κ at the end of a schedule; 1 where descent diverges, as SGD does then with any noise."""
        left = np.ones_like(self.theta)
        with np.errstate(over="ignore"):
            for count, size in schedule:
                left *= (1.0 - 2.0 * size * self.theta) ** count
        return self.factor(1.0 - left) if np.all(np.abs(left) <= 1.0) else 1.0

    def noisy_risk(self, schedule: Schedule, batch: int) -> float:
        """Return the risk of SGD after a schedule, in expectation over samples; NotConverged where it diverges."""
        noise, left = np.zeros_like(self.modes), np.zeros_like(self.theta)
        end, kappa = 1.0, self._factor(schedule)
        for count, size in schedule:
            if not count:
                continue
            marks = np.unique(np.append(0.0, np.geomspace(1.0, count, min(count, _MARKS))).round())
            step = _logarithms(self.theta, size)
            still = np.interp(np.arange(count + 1), marks, self._risks(left + marks[:, None] * step))
            decay, gain = (1.0 - 2.0 * size * self.modes) ** 2, (2.0 * size * self.modes) ** 2 * self.count / batch
            factor = np.full(count + 1, kappa)
            with np.errstate(over="ignore", invalid="ignore"):
                line = noisy_risks(still, decay, gain, noise, factor)
            if not line.max() < _HOPELESS:
                raise NotConverged(f"SGD diverges with the step size {size:g} and batches of {batch}.")
            left = left + count * step
            end = float(line[-1])
        return end


def _logarithms(theta: FloatArray, size: float) -> FloatArray:
    """Return log|1 − 2εθ|."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(np.abs(1.0 - 2.0 * size * theta)), -1e3))


def _spectrum(times: Callable[[FloatArray], FloatArray], N: int, d: int) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of S, each once; or nodes and the numbers of eigenvalues that they stand for."""
    if N * d < _DENSE:
        values = np.linalg.eigvalsh(np.stack([times(unit) for unit in np.eye(N * d + 1)]))
        return np.maximum(values, 0.0), np.ones_like(values)
    nodes = [quadrature(times, probe, _ALL) for probe in _probes(N, d)]
    modes, count = (np.concatenate(column) for column in zip(*nodes, strict=True))
    return modes, count


def _probes(N: int, d: int) -> list[FloatArray]:
    """Return vectors whose squares sum up to the dimensions that they stand for: Nd + 1 in all."""
    rng = np.random.default_rng(0)
    offset, shared = np.zeros(N * d + 1), np.zeros(N * d + 1)
    offset[-1] = 1.0
    shared[:-1] = np.tile(rng.standard_normal(d), N)
    probes = [offset, shared * np.sqrt(d) / np.linalg.norm(shared)]
    many = -(-_PROBED // (N * d)) if N > 1 else 0
    for _ in range(many):
        rest = rng.standard_normal((N, d))
        rest -= rest.mean(axis=0)
        probes.append(np.append(rest.ravel() * np.sqrt((N - 1) * d / many) / np.linalg.norm(rest), 0.0))
    return probes


def quadrature(
    times: Callable[[FloatArray], FloatArray], start: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Return nodes θ_j and weights for vᵀf(S)v, v the start."""
    theta, vectors, _ = lanczos(times, start, steps)
    return theta, _weights(vectors, start)


def _weights(vectors: FloatArray, start: FloatArray) -> FloatArray:
    return np.asarray(float(np.linalg.norm(start)) ** 2 * vectors[0] ** 2)


def lanczos(
    times: Callable[[FloatArray], FloatArray], start: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return eigenvalues θ_j and eigenvectors (columns) of S on what the start and its products span; and a basis.

    The basis has orthonormal rows, the first along the start; full orthogonalisation, twice.
    """
    from scipy.linalg import eigh_tridiagonal

    size = float(np.linalg.norm(start))
    most = min(steps, start.size)
    basis = np.empty((most, start.size))
    diagonal, off = np.empty(most), np.empty(most)
    basis[0] = start / size
    count = most
    for k in range(most):
        rest = times(basis[k])
        diagonal[k] = float(basis[k] @ rest)
        for _ in range(2):
            rest -= basis[: k + 1].T @ (basis[: k + 1] @ rest)
        off[k] = float(np.linalg.norm(rest))
        if k + 1 == most or off[k] < 1e-12 * abs(diagonal[: k + 1]).max():
            count = k + 1
            break
        basis[k + 1] = rest / off[k]
    theta, vectors = eigh_tridiagonal(diagonal[:count], off[: count - 1])
    return np.maximum(theta, 0.0), vectors, basis[:count]

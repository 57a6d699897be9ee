"""Proposition 1 of Limitations of Lazy Training: the population risk has no flat point that is not a minimum.

For f = Σ⟨w_i,x⟩² + c, with E = WWᵀ − B and s = Tr E + c − b₀, L = 2‖E‖² + s² has

    ∇_W L = (8E + 4sI)W,   ∂_c L = 2s,
    ∇²L[(Z,ζ),(Z,ζ)] = 4‖WZᵀ + ZWᵀ‖² + 2(2Tr WᵀZ + ζ)² + 2⟨4E + 2sI, ZZᵀ⟩.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, real_array, real_number
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence.statement import Statement
from lazyscope.numerics import matrices
from lazyscope.problems import QuadraticTarget

_DENSE = 400  # unknowns up to which the Hessian is simply diagonalised
_CRITICAL = 1e-6  # gradient, relative, below which a point counts as critical


@dataclass(frozen=True)
class Certificate:
    """Gradient and curvature at a point, in units of ‖B‖: a saddle is where the gradient vanishes and λ_min < 0.

    `closed_form` is min(0, λ_min) where the point is critical, by the eigenvalues of B alone; None elsewhere.
    """

    risk: float
    gradient: float
    smallest_curvature: float
    closed_form: float | None

    @property
    def kind(self) -> str:
        """Say what the point is: "slope", "strict saddle" or "minimum"."""
        if self.gradient > _CRITICAL:
            return "slope"
        return "strict saddle" if self.smallest_curvature < -_CRITICAL else "minimum"


def strict_saddle(problem: QuadraticTarget, W: Any, c: float) -> Certificate:
    """Return the certificate of Proposition 1 at (W, c), W of shape (d, N), for B ⪰ 0.

    Gradient norm over 8‖B‖^{3/2} and curvature over 8‖B‖ (operator norms), risk over that of the best constant.
    At a critical point W spans eigenvectors of B, those in S say. The smallest curvature is 8(min_S b − max_{S^c} b)
    where |S| = N, and −8 max_{S^c} b where a neuron is idle, if that is negative: else the point is a minimum.

    >>> target = QuadraticTarget([3.0, 2.0, 1.0])
    >>> wrong = np.array([[0.0], [np.sqrt(2.0)], [0.0]])  # the second direction instead of the first
    >>> point = strict_saddle(target, wrong, c=4.0)
    >>> point.kind, round(point.smallest_curvature, 6), round(point.closed_form, 6)
    ('strict saddle', -0.333333, -0.333333)
    """
    values, basis = _eigen(problem)
    W = real_array(W, "strict_saddle", "W", "be a (d, N) matrix of weights, a column for each neuron")
    c = real_number(c, "strict_saddle", "c")
    if W.ndim != 2 or W.shape[0] != problem.d or W.shape[1] < 1:
        must = f"be a (d, N) matrix of weights in the problem's d = {problem.d} dimensions"
        raise InvalidParameter.of("strict_saddle", "W", must, f"shape {W.shape}")
    if not matrices.is_semidefinite(values):
        got = f"smallest eigenvalue {values[0]:.4g}"
        raise NoTheorem.of("Proposition 1", "B ⪰ 0", got, "Flip the sign of the target, if that is what it takes.")
    W = W if basis is None else basis.T @ W
    order = np.argsort(values)
    W, b = W[order], values[order]
    E = W @ W.T - np.diag(b)
    s = float(np.trace(E)) + c - problem.b0
    scale = 8.0 * float(b[-1])
    slope, along_c = gradient(b, W, c - problem.b0)
    steep = float(np.hypot(np.linalg.norm(slope), along_c)) / (scale * float(np.sqrt(b[-1])))
    smallest = _smallest(W, 4.0 * E + 2.0 * s * np.eye(b.size)) / scale
    closed = _at_critical(W, b) / scale if steep < _CRITICAL else None
    return Certificate((2.0 * float(np.sum(E**2)) + s * s) / problem.energy, steep, smallest, closed)


def gradient(B: FloatArray, W: FloatArray, c: float) -> tuple[FloatArray, float]:
    """Return ∇_W L = (8E + 4sI)W and ∂_c L = 2s at b₀ = 0, for B of shape (d, d) or its (d,) diagonal.

    >>> slope, along_c = gradient(np.array([3.0, 2.0]), np.array([[0.0], [2.0**0.5]]), 3.0)
    >>> print(np.abs(slope).max().round(12), round(along_c, 12))
    0.0 0.0
    """
    E = W @ W.T - (B if B.ndim == 2 else np.diag(B))
    s = float(np.trace(E)) + c
    return 8.0 * (E @ W) + 4.0 * s * W, 2.0 * s


def critical_points(b: FloatArray, N: int) -> Iterator[tuple[tuple[int, ...], FloatArray, float]]:
    """Yield one critical point for each set S of at most N eigendirections, b > 0 ascending: S, W and c.

    WWᵀ = Σ_{i∈S} b_i u_iu_iᵀ and c = Σ_{i∉S} b_i: rotating the neurons gives all the others.

    >>> [S for S, W, c in critical_points(np.array([1.0, 2.0]), 1)]
    [(), (0,), (1,)]
    """
    for size in range(min(N, b.size) + 1):
        for S in combinations(range(b.size), size):
            W = np.zeros((b.size, N))
            W[list(S), range(size)] = np.sqrt(b[list(S)])
            yield S, W, float(b.sum() - b[list(S)].sum())


def _eigen(problem: QuadraticTarget) -> tuple[FloatArray, FloatArray | None]:
    if problem.B.ndim == 1:
        return problem.B, None
    values, basis = np.linalg.eigh(problem.B)
    return values, basis


def _smallest(W: FloatArray, M: FloatArray) -> float:
    """Smallest eigenvalue of the Hessian, an operator on (Z, ζ): Lanczos, d²N flops a step."""
    d, N = W.shape

    def times(flat: FloatArray) -> FloatArray:
        Z, zeta = flat[:-1].reshape(d, N), float(flat[-1])
        cross = W @ Z.T
        trace = 2.0 * float(np.sum(W * Z)) + zeta
        HZ = 8.0 * ((cross + cross.T) @ W) + 4.0 * trace * W + 2.0 * (M @ Z)
        return np.append(HZ.ravel(), 2.0 * trace)

    size = d * N + 1
    if size <= _DENSE:
        H = np.stack([times(unit) for unit in np.eye(size)])
        return float(np.linalg.eigvalsh(0.5 * (H + H.T))[0])
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator((size, size), matvec=times, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    return float(eigsh(operator, k=1, which="SA", v0=start, tol=1e-9, ncv=min(60, size), return_eigenvectors=False)[0])


def _at_critical(W: FloatArray, b: FloatArray) -> float:
    """λ_min by the spectrum of B, for W that spans eigenvectors."""
    learned = np.einsum("ij,ij->i", W, W) > 0.5 * b
    idle = np.linalg.matrix_rank(W) < W.shape[1]
    left = float(np.max(b[~learned], initial=0.0))
    if idle:
        return min(0.0, -8.0 * left)
    return min(0.0, 8.0 * (float(np.min(b[learned])) - left))


STATEMENTS = (
    Statement(
        "Proposition 1",
        "every critical point of the population risk is a global minimum or a strict saddle",
        ("ghorbani2019limitations",),
        "strict_saddle",
        figure="saddle",
    ),
)

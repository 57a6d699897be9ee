"""Neural tangent with the square activation: the class is {⟨M, xxᵀ⟩ + c : P⊥MP⊥ = 0}, P⊥ off span(W).

For σ = u² the tangent model is f = c + 2Σ⟨w_i,x⟩⟨a_i,x⟩, that is M = WAᵀ + AWᵀ: every symmetric M without a part
in the orthogonal complement of the weights. Minimising over it is linear algebra in d dimensions, whatever N.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.evidence.claim import Claim, at_width, exponential_quantiles, square_activation, three_levels
from lazyscope.numerics import matrices
from lazyscope.numerics.krylov import solve
from lazyscope.problems import GaussianMixture, GaussianProblem, MultiIndex, QuadraticTarget
from lazyscope.regimes import NeuralTangent

_TOO_HARD = "the classes are too far apart. Scale Delta down."


def quadratic(
    problem: QuadraticTarget, regime: NeuralTangent, width: int, rng: np.random.Generator
) -> dict[str, float]:
    """R = ‖P⊥BP⊥‖²/‖B‖² for one draw of W: a QR of W and a (d−N)-dimensional block of B, O(d³) flops."""
    basis, rank = _rotation(problem, weights_of(problem, regime, width, rng))
    off = basis[:, rank:]
    missed = off.T @ matrices.times(problem.B, off)
    return {"risk": float(np.sum(missed**2)) / matrices.squared_norm(problem.B)}


def learnt_form(problem: QuadraticTarget, regime: NeuralTangent, W: FloatArray) -> FloatArray:
    """G = B − P⊥BP⊥, the form that the best tangent model with the weights W learns, (d, d): O(d³) flops."""
    basis, rank = _rotation(problem, W)
    off = basis[:, rank:]
    return np.asarray(matrices.dense(problem.B) - off @ (off.T @ matrices.times(problem.B, off)) @ off.T)


def few_directions(
    problem: MultiIndex, regime: NeuralTangent, width: int, rng: np.random.Generator
) -> dict[str, float]:
    """R = 1 − (E₂/E h²)(1 − ‖P⊥BP⊥‖²/‖B‖²): the class has quadratic functions alone; that part of h has B = ½UᵀMU.

    M = E[h(zzᵀ − I)] is the curvature of h, and E₂ = ½‖M‖² the energy of degree 2. With one direction B ∝ uuᵀ.
    """
    basis, rank = _rotation(problem, weights_of(problem, regime, width, rng))
    M, off = problem.curvature, np.atleast_2d(problem.u) @ basis[:, rank:]
    missed = float(np.trace(M @ off @ off.T @ M @ off @ off.T))
    return {"risk": 1.0 - 0.5 * (float(np.sum(M**2)) - missed) / problem.energy}


def mixture(problem: GaussianMixture, regime: NeuralTangent, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Exact risk for one draw of W, of which Theorem 5 is the large-d form.

    For f = c + ⟨M, xxᵀ⟩, whitened by Σ: E[f|y] moves by ∓⟨M, Δ̃⟩, and the variance within a class is, averaged,
    2‖M‖² + 2⟨M, Δ̃MΔ̃⟩. Hence R = 1/(1+J) with J = max ⟨M,Δ̃⟩²/(2‖M‖² + 2⟨M,Δ̃MΔ̃⟩) over the class: the solution of
    M + Π(Δ̃MΔ̃) = Π(Δ̃). Theorem 5 drops ⟨M,Δ̃MΔ̃⟩, which is O(1/d). A few steps of O(d³).
    """
    W = weights_of(problem, regime, width, rng)
    root = matrices.power(problem.covariance, 0.5)
    basis, rank = _rotation(problem, matrices.rows_times(W, root))
    if rank == problem.d:
        values = problem.singular_values**2
        return {"risk": 1.0 / (1.0 + 0.5 * float(np.sum(values / (1.0 + values)))), "residual": 0.0}
    D = basis.T @ matrices.times(problem.whitened, basis)

    def in_class(M: FloatArray) -> FloatArray:
        M[rank:, rank:] = 0.0
        return M

    solution = solve(lambda M: M + in_class(D @ M @ D), in_class(D.copy()), too_hard=_TOO_HARD)
    return {"risk": 1.0 / (1.0 + 0.5 * solution.energy), "residual": solution.residual}


def weights_of(problem: GaussianProblem, regime: NeuralTangent, width: int, rng: np.random.Generator) -> FloatArray:
    """Draw the weights, after a look at the memory."""
    d = problem.d
    fits_in_memory(8.0 * d * (2.0 * width + 4.0 * d), f"{width} weights in d = {d} dimensions", "Use limit.")
    return weights.draw(problem, regime, width, rng)


def _rotation(problem: GaussianProblem, W: FloatArray) -> tuple[FloatArray, int]:
    """Return an orthogonal d×d matrix whose first `rank` columns span the rows of W."""
    from scipy.linalg import qr

    if len(W) < problem.d:
        Q, R, _ = qr(W.T, pivoting=True, check_finite=False)
        size = np.abs(np.diagonal(R))
        return np.asarray(Q), int(np.count_nonzero(size > size[0] * problem.d * np.finfo(np.float64).eps))
    size, vectors = np.linalg.eigh(W.T @ W)  # N ≥ d: the span is that of a d×d Gram matrix
    rank = int(np.count_nonzero(size > size[-1] * problem.d * np.finfo(np.float64).eps))
    return np.asarray(vectors[:, ::-1]), rank


_HYPOTHESES = ("n = ∞: the population optimum over the displacement and the offset", "σ(u) = u² (+ constant)")

_claim = partial(
    Claim, fidelity="exact", regime=NeuralTangent, title="neural tangent, square activation",
    citations=("ghorbani2019limitations",), assumptions=_HYPOTHESES, arguments=("width",), covers=square_activation,
)  # fmt: skip

CLAIMS = (
    _claim(
        problem=QuadraticTarget,
        theorem="Theorem 2, before its limit: ‖P⊥BP⊥‖²/‖B‖²",
        compute=at_width(quadratic),
        example=lambda d: (exponential_quantiles(d), NeuralTangent()),
    ),
    _claim(
        problem=GaussianMixture,
        theorem="Theorem 5 with its O(1/d) terms kept",
        citations=("ghorbani2019limitations", "hestenes1952"),
        compute=at_width(mixture),
        example=lambda d: (three_levels(d), NeuralTangent()),
    ),
    _claim(
        problem=MultiIndex,
        theorem="Theorem 2, before its limit, for B ∝ uuᵀ",
        compute=at_width(few_directions),
        example=lambda d: (MultiIndex(d, "he2"), NeuralTangent()),
    ),
)

"""Random features at finite N and d: the best second layer for given weights, without a sample.

With U_ij = E[σ(w_i·x)σ(w_j·x)] and V_i = E[f⋆(x)σ(w_i·x)] the minimum over a is

    R = 1 − VᵀU⁻¹V/E[f⋆²],      U_ij = Σ_y p_y T₀₀(i, j),    V_i = Σ_y p_y (m_y c₀(s_i) + E_y[(f⋆ − m_y)σ(w_i·x)])

over the environments y (one for the quadratic target and for one direction, two for the mixture). No offset,
σ centred (footnote 2 of the paper).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lazyscope import weights
from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged, NoTheorem
from lazyscope.evidence.claim import (
    Claim,
    Example,
    at_width,
    exponential_quantiles,
    nonlinear_features,
    three_levels,
    weights_exist,
)
from lazyscope.numerics import matrices
from lazyscope.population.environment import Environment, environments, largest_cosine, project
from lazyscope.population.kernels import SERIES_TOLERANCE, pair_kernel
from lazyscope.problems import GaussianMixture, GaussianProblem, MultiIndex, QuadraticTarget
from lazyscope.regimes import RandomFeatures

BLOCK = 256  # rows at once: temporaries of 256·N, 9 MB at N = 4500
_EPS = float(np.finfo(np.float64).eps)
ACCURACY = 1e-5
"""Of a risk, where the features are nearly dependent: what rounding may hide before it is refused."""
_FAINT = sqrt(_EPS)  # a variance below this part of the squared mean keeps less than half its digits in U
_SPANNED = 1e-10  # of the constant's energy outside the span of features, where it is rounding


def risk(problem: GaussianProblem, regime: RandomFeatures, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Exact risk of one draw: 1 matrix of N×N memory, N²d + N³/3 flops and N²/2 kernel entries."""
    advice = "Use limit, or a smaller width."
    fits_in_memory(8.0 * width * (width + problem.d), f"The N×N kernel matrix at N = {width}", advice)
    W = weights.draw(problem, regime, width, rng)
    world = environments(problem)
    energy = sum(y.probability * y.energy for y in world)
    solution = best_second_layer(world, W, regime.activation)
    return {
        "risk": missed(solution.energy, energy, noise_of(regime.activation) * solution.sensitivity + solution.cut),
        "condition": solution.condition,
        "rank": solution.rank,
        "residual": solution.residual,
    }


def best_second_layer(world: tuple[Environment, ...], W: FloatArray, sigma: Activation) -> Explained:
    """Solve the normal equations of the features φ_i = σ(w_i·x) − E[σ(g)], also where some are nearly constant.

    A short weight makes σ(w_i·x) small beside E[σ(g)]: for (u)₊⁵ at |w| = 0.003 the part ψ_i of φ_i that varies is
    1e-13 of its constant, and U, which holds squares, does not show it. Where the other features span the constant,
    φ_i gives ψ_i whatever its length: the class is that of the ψ_i alone. Where they do not, a single such feature
    stands for the constant; of several the differences would count, and float64 has lost them.
    """
    centre = float(sigma.hermite(0))
    U, V = moments(world, W, sigma, centre)
    means, faint = _means(world, W, sigma, centre)
    if not faint.any():
        return explained(U, V)
    clear = np.flatnonzero(~faint)
    if clear.size and 1.0 - explained(U[np.ix_(clear, clear)], means[clear] - centre).energy < _SPANNED:
        return explained(*moments(world, W, sigma, means))
    solution = explained(U, V)
    if solution.rank < len(W) and np.count_nonzero(faint) > 1:
        raise NotConverged(
            f"{np.count_nonzero(faint)} of {len(W)} features differ from a constant by less than {sqrt(_FAINT):.0e} of "
            "their size, which float64 does not tell apart. Use a larger d, or an activation of a lower power."
        )
    return solution


def _means(
    world: tuple[Environment, ...], W: FloatArray, sigma: Activation, centre: float
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return E[σ(w_i·x)], and for which i the feature σ(w_i·x) − centre is constant but for √_FAINT of its size."""
    first, second = np.zeros(len(W)), np.zeros(len(W))
    for y in world:
        s = project(y, W).s
        first += y.probability * sigma.hermite_coefficients(s, 0)[0]
        second += y.probability * sigma.second_moment(s)
    return first, second - first**2 < _FAINT * (first - centre) ** 2


def added(risk: float, N: int, n: int) -> float:
    """Return R·N/(n − N − 1), what a fit to n samples adds to the population risk R, to first order in N/n.

    The coefficients of a least-squares fit are off by δ = Ĥ⁻¹(1/n)Σ r φ, r the residual of the best ones and
    H = E[φφᵀ], so that R grows by E[δᵀHδ]. Were φ Gaussian and r independent of it, this would be exactly R·N/(n−N−1),
    by the mean of an inverse Wishart matrix. r knows the leverage φᵀH⁻¹φ a little: both are large where |x| is. To
    first order the true value is E[r² φᵀH⁻¹φ]/n, which by Cauchy and Schwarz exceeds RN/n by at most √(E r⁴)/E r²,
    √3 for a Gaussian residual, as the leverage hardly varies in many dimensions: √3 − 1 of the term may be missing.

    >>> round(added(0.5, 100, 10_101), 6)
    0.005
    """
    if n <= N + 1:
        raise NoTheorem.of("The expansion in N/n", "n > N + 1", f"n = {n}, N = {N}", "Use simulate.")
    return risk * N / (n - N - 1)


def uncertain(risk: float, N: int, n: int) -> float:
    """Return what `added` may be off by: √3 − 1 times itself.

    >>> round(uncertain(0.5, 100, 10_101), 6)
    0.00366
    """
    return (sqrt(3.0) - 1.0) * added(risk, N, n)


def learnt_form(problem: QuadraticTarget, W: FloatArray) -> tuple[FloatArray, float]:
    """G = Σa_iw_iw_iᵀ and the offset Tr G − Σa_i of the best second layer for σ = u² − 1: U and V in closed form.

    U_ij = 2⟨w_i, w_j⟩² + (‖w_i‖² − 1)(‖w_j‖² − 1),      V_i = 2⟨w_i, Bw_i⟩:   N³ flops.
    """
    from scipy.linalg import lstsq

    excess = np.einsum("ij,ij->i", W, W) - 1.0
    U = 2.0 * (W @ W.T) ** 2 + np.outer(excess, excess)
    V = 2.0 * np.einsum("ij,ij->i", matrices.rows_times(W, problem.B), W)
    a = lstsq(U, V)[0]
    return np.asarray((W.T * a) @ W), float(a @ excess)


def moments(
    world: tuple[Environment, ...], W: FloatArray, sigma: Activation, centre: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """U (upper triangle) and V for the features σ(w_i·x) − centre, one for all of them or one each."""
    N = len(W)
    U, V = np.zeros((N, N)), np.zeros(N)
    for y in world:
        seen = project(y, W)
        cosine = 0.0 if sigma.has_closed_kernels else largest_cosine(seen, BLOCK)
        kernel = pair_kernel(sigma, seen.s, cosine, order=0)
        c = sigma.hermite_coefficients(seen.s, 0)
        mean, power = c[0] - centre, sigma.second_moment(seen.s)
        for start in range(0, N, BLOCK):
            rows, columns = slice(start, min(start + BLOCK, N)), slice(start, N)
            T = kernel(0, 0, seen.cosines(rows, columns), rows, columns)
            # The diagonal is E[σ(s g)²] itself, not a series cut short; centring moves the k = 0 term alone.
            diagonal = np.arange(T.shape[0])
            T[diagonal, diagonal] = power[rows]
            T += np.outer(mean[rows], mean[columns])
            T -= np.outer(c[0, rows], c[0, columns])
            T *= y.probability
            U[rows, columns] += T
        V += y.probability * (y.m * mean + seen.overlaps(sigma))
    return U, V


@dataclass(frozen=True)
class Explained:
    """VᵀU⁺V, the condition number of U on the directions kept, how many were kept, and ‖V − UU⁺V‖/‖V‖.

    `sensitivity` is how far the energy moves by errors in U, over their size relative to ‖U‖: ‖U‖‖U⁺V‖². `cut`
    estimates the energy of directions left out, from what V has there and from that of the last ones kept (λ below 100
    times the cut); it is rounding where nothing is near the cut, as for features that are exactly dependent.
    """

    energy: float
    condition: float
    rank: int
    residual: float
    sensitivity: float
    cut: float = 0.0


def noise_of(sigma: Activation) -> float:
    """Relative error of the kernel of σ: rounding of a closed form, the tolerance of a series."""
    return _EPS if sigma.has_closed_kernels else SERIES_TOLERANCE


def missed(explained: float, total: float, error: float) -> float:
    """Return the risk 1 − explained/total, or refuse where the error of `explained` hides its fifth digit.

    >>> missed(0.25, 1.0, 1e-15)
    0.75
    """
    risk = 1.0 - explained / total
    if not (error <= ACCURACY * total and -ACCURACY <= risk <= 1.0 + ACCURACY):
        raise NotConverged(
            f"The risk, {risk:.4g}, is known to {error / total:.1e} only (tolerance {ACCURACY:.0e}): the features "
            "are nearly dependent, and float64 does not tell them apart. Use a smaller width, a larger d, or an "
            "activation that is less smooth."
        )
    return max(0.0, risk)


def explained(U: FloatArray, V: FloatArray) -> Explained:
    """VᵀU⁺V for U ⪰ 0 given by its upper triangle; U is overwritten.

    By Cholesky, N³/3 flops and one temporary of U's size. Where U is singular to rounding (more features than
    the class has dimensions), by its eigenvectors, about 9N³ flops: directions below N·ε of the largest
    eigenvalue carry no function in float64 and are left out, so that the risk is never understated.
    """
    from scipy.linalg import get_lapack_funcs, solve_triangular

    N = len(V)
    tiny = N * _EPS
    scale = 1.0 / np.sqrt(np.diagonal(U))  # to unit diagonal: features of any size count alike
    U *= scale
    U *= scale[:, None]
    V = V * scale
    matrices.mirror(U)
    norm = float(np.max(np.sum(np.abs(U), axis=0)))
    factorise, reciprocal_condition = get_lapack_funcs(("potrf", "pocon"), (U,))
    # U.T is the same matrix in LAPACK's order; its lower triangle, our upper one, becomes the factor in place.
    L, failed = factorise(U.T, lower=1, overwrite_a=1, clean=0)
    if not failed:
        reciprocal, _ = reciprocal_condition(L, norm, uplo="L")
        if reciprocal > tiny:
            half = solve_triangular(L, V, lower=True, check_finite=False)
            a = solve_triangular(L, half, lower=True, trans=1, check_finite=False)
            return Explained(float(half @ half), 1.0 / float(reciprocal), N, 0.0, norm * float(a @ a))
    # Our lower triangle still holds U (below a unit diagonal), and eigh reads nothing else.
    np.fill_diagonal(U, 1.0)
    values, vectors = np.linalg.eigh(U, UPLO="L")
    kept = values > tiny * values[-1]
    parts = (vectors.T @ V) ** 2
    residual = float(np.sqrt(np.sum(parts[~kept]) / max(np.sum(parts), np.finfo(np.float64).tiny)))
    condition = float(values[-1] / values[kept][0])
    energies = parts[kept] / values[kept]
    sensitivity = float(values[-1] * np.sum(energies / values[kept]))
    cut = 0.0
    if not kept.all():
        unresolved = float(np.sum(parts[~kept])) / (_EPS * values[-1])  # V_i²/λ_i, all that is known being λ_i ≲ ε‖U‖
        cut = unresolved + float(np.sum(energies[values[kept] < 100.0 * tiny * values[-1]]))
    rank = int(np.count_nonzero(kept))
    return Explained(float(np.sum(energies)), condition, rank, residual, sensitivity, cut)


def _claim(problem: type[GaussianProblem], example: Example) -> Claim:
    return Claim(
        fidelity="exact",
        problem=problem,
        regime=RandomFeatures,
        title="random features",
        theorem="Hermite series of the kernel (Price's theorem), arc-cosine and arcsine forms",
        citations=("ghorbani2019limitations", "price1958", "cho2009kernel", "williams1998infinite"),
        assumptions=("n = ∞: the population optimum over the second layer", "σ in L² at every weight norm"),
        arguments=("width",),
        compute=at_width(risk),
        example=example,
        covers=nonlinear_features,
        assumes=weights_exist,
    )


CLAIMS = (
    _claim(QuadraticTarget, lambda d: (exponential_quantiles(d), RandomFeatures("relu"))),
    _claim(GaussianMixture, lambda d: (three_levels(d), RandomFeatures("relu"))),
    _claim(MultiIndex, lambda d: (MultiIndex(d, "erf"), RandomFeatures("erf"))),
)

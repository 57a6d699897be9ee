"""Moments of a neuron with a function of r directions, by their Hermite series.

With h = Σ_α h_α he_α(z), σ(s g) = Σ_k c_k(s) he_k(g) and the cosines ρ = (ρ₁ … ρ_r) of a weight w with u₁ … u_r,

    E[he_α(z) he_k(g)] = 1{k = |α|} M_α,      M_α = (|α|!/α!)^½ ρ₁^α₁ ⋯ ρ_r^α_r,
    E[h σ(w·x)]    = Σ_α h_α c_|α|(s) M_α,
    E[h σ′(w·x) x] = Σ_m u_m Σ_α h_α √α_m e_{|α|−1}(s) M_{α−1_m} + (w/s) Σ_α h_α √(|α|+1) e_{|α|+1}(s) M_α,

e_k = √(k+1) c_{k+1}/s being the coefficients of σ′ (Stein's lemma).
"""

from __future__ import annotations

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.numerics.quadrature import MAX_DEGREE
from lazyscope.problems import MultiIndex
from lazyscope.problems.links import Powers

_CUT = 1e-12  # what the series of a link may leave out, relative to √(E[h²] E[σ²])


def monomials(powers: Powers, cosines: FloatArray) -> FloatArray:
    """M_α at the cosines of each neuron, (N, r): shape (terms, N).

    >>> monomials(np.array([[1, 1]]), np.array([[0.6, 0.8]])).round(6)  # √2 · 0.6 · 0.8
    array([[0.678823]])
    """
    from scipy.special import gammaln

    choices = 0.5 * (gammaln(powers.sum(axis=1) + 1.0) - gammaln(powers + 1.0).sum(axis=1))
    values = np.repeat(np.exp(choices)[:, None], len(cosines), axis=1)
    for m in range(powers.shape[1]):
        values *= cosines[:, m] ** powers[:, m : m + 1]
    return values


def terms(problem: MultiIndex, cosines: FloatArray, highest: int = MAX_DEGREE) -> tuple[Powers, FloatArray]:
    """Return the powers and coefficients that count at these cosines, or refuse where more are needed than are known.

    None has a degree above `highest`. By Cauchy and Schwarz the degrees beyond K sum to at most
    |ρ|^{K+1}(Σ_{|α|>K} h_α²)^½ E[σ²]^½.
    """
    energies, degree = problem.energies, problem.powers.sum(axis=1)
    rest = problem.energy - float(energies.sum())
    if rest + float(energies[highest + 1 :].sum()) <= _CUT * problem.energy:  # a polynomial, or as good as one
        kept = degree <= highest
        return problem.powers[kept], problem.coefficients[kept]
    beyond = np.maximum(rest + np.cumsum(energies[::-1])[::-1] - energies, 0.0) / problem.energy  # Σ_{k>K} of degree k
    largest = float(np.max(np.linalg.norm(cosines, axis=1)))
    left_out = largest ** np.arange(1.0, energies.size + 1.0) * np.sqrt(beyond)
    enough = np.flatnonzero(left_out[: highest + 1] <= _CUT)
    if not enough.size:
        raise NotConverged(
            f"A weight at the cosine {largest:.6f} to the directions of the target needs more Hermite coefficients of "
            f"its link than the {energies.size - 1} that are known. Use a smaller step, a larger d, or a polynomial."
        )
    kept = degree <= int(enough[0])
    return problem.powers[kept], problem.coefficients[kept]


def values(problem: MultiIndex, W: FloatArray, sigma: Activation) -> FloatArray:
    """E[h σ(w_i·x)] of the weights W, (N, d): N flops for each term of the series."""
    s, cosines = _seen(problem, W)
    powers, h = terms(problem, cosines)
    degree = powers.sum(axis=1)
    c = sigma.hermite_coefficients(s, int(degree.max()))[degree]
    return np.asarray(np.einsum("t,ti,ti->i", h, c, monomials(powers, cosines)))


def gradients(problem: MultiIndex, W: FloatArray, sigma: Activation) -> FloatArray:
    """E[h σ′(w_i·x) x], the gradient of E[h σ(w_i·x)] in w_i: shape (N, d)."""
    s, cosines = _seen(problem, W)
    powers, h = terms(problem, cosines, MAX_DEGREE - 2)  # c_k of two degrees more are needed
    degree = powers.sum(axis=1)
    c = sigma.hermite_coefficients(s, int(degree.max()) + 2)
    e = np.sqrt(np.arange(1.0, len(c)))[:, None] * c[1:] / s
    beside = np.einsum("t,ti,ti->i", h * np.sqrt(degree + 1.0), e[degree + 1], monomials(powers, cosines))
    out = (beside / s)[:, None] * W
    U = np.atleast_2d(problem.u)
    for m in range(problem.indices):
        some = powers[:, m] > 0
        lower = powers[some] - np.eye(1, problem.indices, m, dtype=np.int64)
        weight = h[some] * np.sqrt(powers[some, m])
        out += np.einsum("t,ti,ti->i", weight, e[degree[some] - 1], monomials(lower, cosines))[:, None] * U[m]
    return np.asarray(out)


def _seen(problem: MultiIndex, W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the norms of the weights and their cosines with each direction."""
    s = np.linalg.norm(W, axis=1)
    return s, W @ np.atleast_2d(problem.u).T / s[:, None]

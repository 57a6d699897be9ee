"""Random features of Gaussian inputs in d dimensions, N of them and no limit: the spectrum of their kernel.

x ~ N(0, I) has a length r and a direction, and so has w ~ N(0, I/d), of length s. On directions σ(s r t), t the cosine
between them, acts degree by degree (Funk and Hecke): in degree k by one number

    A_k(s, r) = E[(σ(s r t) − λ₀) q_k(t)]/√B(d, k),

t a coordinate of the unit sphere, q_k Gegenbauer's polynomial with E[q_k²] = 1 and B(d, k) harmonics in the degree. So
in each degree the features are a map from functions of r to functions of s. Both are laws of χ with d degrees of
freedom, narrow ones: a Gauss rule of 14 nodes makes A_k a small matrix, whose singular values squared are eigenvalues
of the kernel, B(d, k) times each. The target ⟨x, Bx⟩ − Tr B is r² − d in degree 0, with the share τ = Tr(B)²/(d‖B‖²) of
its energy, and r² in degree 2 with the rest. `equivalent` does the rest.
"""

from __future__ import annotations

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.errors import NoTheorem
from lazyscope.numerics.gegenbauer import coordinate, multiplicities
from lazyscope.problems import GaussianMixture, QuadraticTarget, SpectralTarget

_SQUARE = Activation("square")
_NODES = 14
_DEGREE = 40
_ROUNDING = 1e-13  # of the trace: eigenvalues and tails below are not told from zero


def lengths(d: int) -> tuple[FloatArray, FloatArray]:
    """Return a Gauss rule for the length of x ~ N(0, I): r²/2 has the weight of Laguerre's polynomials, α = d/2 − 1.

    >>> r, p = lengths(50)
    >>> print(f"{p.sum():.6f} {p @ r**2:.6f} {p @ r**4:.4f}")  # 1, d, d(d + 2)
    1.000000 50.000000 2600.0000
    """
    k, alpha = np.arange(float(_NODES)), 0.5 * d - 1.0
    beside = np.sqrt(k[1:] * (k[1:] + alpha))
    values, vectors = np.linalg.eigh(np.diag(2.0 * k + 1.0 + alpha) + np.diag(beside, 1) + np.diag(beside, -1))
    return np.sqrt(2.0 * values), vectors[0] ** 2


def at_finite_d(problem: QuadraticTarget, sigma: Activation = _SQUARE) -> SpectralTarget:
    """Return the quadratic target as isotropic random features see it in d dimensions, over its energy.

    For σ = u² these are three eigenvalues: one on quadratic forms without a trace, d(d+1)/2 − 1 times, and two on the
    trace and the offset, which such features have not to choose.

    >>> at_finite_d(QuadraticTarget([1.0, 1.0, 0.0])).multiplicities
    array([1., 1., 5.])
    """
    d, tau = problem.d, problem.alignment
    r, p = lengths(d)
    if any(kink != 0.0 for kink in sigma.kinks):
        raise NoTheorem.of("The spectrum at finite d", "no kink but at 0", f"kinks at {sigma.kinks}", "Use exact.")
    t, weights, table = coordinate(sigma.kinks, d, _DEGREE)
    values = sigma(np.multiply.outer(r / np.sqrt(d), r)[..., None] * t) - sigma.hermite(0)
    trace = float(np.einsum("srt,s,r->", values**2 * (weights * table[0]), p, p))
    maps = np.einsum("srt,kt->ksr", values * weights, table) * np.sqrt(np.multiply.outer(p, p))
    own = {0: (tau, (r**2 - d) / np.sqrt(2.0 * d)), 2: (1.0 - tau, r**2 / np.sqrt(d * (d + 2.0)))}
    xi, energies, many = [], [], []
    for k, count in enumerate(multiplicities(d, _DEGREE)):
        _, singular, right = np.linalg.svd(maps[k])
        share, radial = own.get(k, (0.0, np.zeros_like(r)))
        energy = share * (right @ (np.sqrt(p) * radial)) ** 2
        seen = singular**2 > _ROUNDING * trace
        unseen = [rest for rest in [float(np.sum(energy[~seen]))] if rest > _ROUNDING]
        xi += [*(singular[seen] ** 2 / count), *(0.0 for _ in unseen)]
        energies += [*energy[seen], *unseen]
        many += [count] * int(seen.sum()) + [1.0 for _ in unseen]
    tail = trace - float(np.dot(xi, many))
    return SpectralTarget(np.array(xi), np.array(energies), np.array(many), tail if tail > _ROUNDING * trace else 0.0)


def mixture_at_finite_d(problem: GaussianMixture, Gamma: FloatArray) -> SpectralTarget:
    """Return the labels of a mixture as random features ⟨w, x⟩² − 1, w ~ N(0, Γ), see them; Σ, Δ and Γ diagonal.

    With c_y the variances of class y, a mean over y, and g those of w, a feature is 2w_iw_j along x_ix_j, i < j, which
    is orthogonal to all else: the eigenvalue 4g_ig_j·mean(c_ic_j). Along x_i² it is w_i², and −1 along the constant.
    These functions have the second moments M = mean(c_ic_j)(1 + 2δ_ij), bordered by mean(c_i) and 1, their coefficients
    S = g_ig_j(1 + 2δ_ij), bordered by −g_i and 1: the other eigenvalues are those of M^½SM^½. The label has the overlap
    t = (−Δ_i, 0) with them, and M^{−½}t in the eigenvectors; the rest of its energy, 1, no feature sees.

    >>> seen = mixture_at_finite_d(GaussianMixture([0.2, 0.1]), np.array([0.5, 0.5]))
    >>> seen.eigenvalues.size, float(seen.energies.sum().round(6))  # one pair, three and what is not seen
    (5, 1.0)
    """
    if problem.Delta.ndim > 1 or problem.covariance.ndim > 1 or Gamma.ndim > 1:
        raise NoTheorem.of("The spectrum at finite d", "diagonal Σ, Δ and Γ", "a matrix", "Use exact.")
    c = problem.covariance + np.multiply.outer([1.0, -1.0], problem.Delta)
    pairs, own = 0.5 * c.T @ c, np.append(-problem.Delta, 0.0)

    def bordered(inner: FloatArray, border: FloatArray) -> FloatArray:
        square = inner * (1.0 + 2.0 * np.eye(problem.d))
        return np.block([[square, border[:, None]], [border[None, :], np.ones((1, 1))]])

    values, vectors = np.linalg.eigh(bordered(pairs, c.mean(axis=0)))
    root = (vectors * np.sqrt(values)) @ vectors.T
    xi, basis = np.linalg.eigh(root @ bordered(np.multiply.outer(Gamma, Gamma), -Gamma) @ root)
    energy = (basis.T @ ((vectors / np.sqrt(values)) @ (vectors.T @ own))) ** 2
    off = np.triu_indices(problem.d, 1)
    eigenvalues = np.concatenate([4.0 * (np.multiply.outer(Gamma, Gamma) * pairs)[off], np.maximum(xi, 0.0), [0.0]])
    energies = np.concatenate([np.zeros(off[0].size), energy, [max(0.0, 1.0 - float(energy.sum()))]])
    return SpectralTarget(eigenvalues, energies)

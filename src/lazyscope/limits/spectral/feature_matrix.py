"""The spectrum of the kernel matrix of random features, n ~ N ~ d: linear plus bulk.

Φ_ij = σ(⟨w_j, x_i⟩) − λ₀, n × N, ‖w‖ = 1, ‖x‖ = √d, has the spectrum of noisy linear features b₁XWᵀ + b⋆Z (Cheng and
Singer 2013, Pennington and Worah 2017; Montanari 2019, "kernel random matrices"). Given X, its N columns are
independent with the covariance b₁²XXᵀ/d + b⋆²I, whose own spectrum H is that of Marchenko and Pastur, stretched and
moved. So K = ΦΦᵀ/N is a sample covariance, and the law of Marchenko and Pastur applies a second time: with γ = n/N,
c = n/d and v the Stieltjes transform of ΦᵀΦ/N,

    z = −1/v + γ∫ t/(1 + tv) H(dt)      ⇔      G ≡ ∫ H(dt)/(1 + tv) = (γ − 1 − zv)/γ,
    −c b₁²v(1 + b⋆²v)G² + ((c − 1)b₁²v − 1 − b⋆²v)G + 1 = 0        (their equation for H),

a polynomial of degree 4 in v. Its root with Im v > 0 and Im vG > 0 is unique, and K has the density Im v/(πγ) at z.
For b₁ = 0 it is one law of Marchenko and Pastur. Features that are not centred have one more eigenvalue, near λ₀²n.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray

_POINTS = 2400  # of the distribution function; the mass is then right to 1e-5


@dataclass(frozen=True, eq=False)
class Distribution:
    """Density and distribution function at increasing places, and what the mass lacks of 1."""

    at: FloatArray
    density: FloatArray
    cumulative: FloatArray
    residual: float

    def distance(self, eigenvalues: FloatArray) -> float:
        """Return the distance of Kolmogorov and Smirnov to the eigenvalues of one matrix."""
        ordered = np.sort(eigenvalues)
        F = np.interp(ordered, self.at, self.cumulative)
        n = ordered.size
        return float(max(np.max(F - np.arange(n) / n), np.max(np.arange(1, n + 1) / n - F)))


def density(x: FloatArray, b1: float, b_star: float, psi1: float, psi2: float) -> FloatArray:
    """Return the density of the eigenvalues of K at x > 0, N/d = ψ₁ and n/d = ψ₂; mass at 0 (n > N) is left out.

    A 4×4 eigenvalue problem at each place.

    >>> print(density(np.array([1.0]), 0.0, 1.0, 2.0, 2.0).round(6))  # Marchenko and Pastur, γ = 1
    [0.275664]
    """
    P = np.polynomial.polynomial
    gamma, c, a, s = psi2 / psi1, psi2, b1**2, b_star**2
    rows = []
    for z in np.ravel(x).tolist():
        G = np.array([(gamma - 1.0) / gamma, -z / gamma])
        square = P.polymul(P.polymul([0.0, -c * a], [1.0, s]), P.polymul(G, G))
        linear = P.polymul([-1.0, (c - 1.0) * a - s], G)
        rows.append(P.polyadd(P.polyadd(square, linear), [1.0, 0.0, 0.0, 0.0, 0.0])[:5])
    roots = _roots(np.array(rows))
    G = (gamma - 1.0 - np.ravel(x)[:, None] * roots) / gamma
    chosen = np.where((roots.imag > 0.0) & ((a * roots * G).imag > 0.0 if a else True), roots.imag, 0.0)
    return np.asarray(np.max(chosen, axis=1) / (np.pi * gamma)).reshape(np.shape(x))


def _roots(polynomials: FloatArray) -> np.ndarray[tuple[int, int], np.dtype[np.complex128]]:
    """Return the roots of polynomials of one degree, coefficients by rising powers, as eigenvalues of companions."""
    degree = polynomials.shape[1] - 1
    while degree > 1 and np.all(np.abs(polynomials[:, degree]) <= 1e-300):
        degree -= 1
    companion = np.zeros((len(polynomials), degree, degree))
    companion[:, np.arange(1, degree), np.arange(degree - 1)] = 1.0
    companion[:, :, -1] = -polynomials[:, :degree] / polynomials[:, degree : degree + 1]
    return np.asarray(np.linalg.eigvals(companion), dtype=np.complex128)


def distribution(sigma: Activation, psi1: float, psi2: float) -> Distribution:
    """Return the spectrum of K for centred features σ, n ≤ N.

    >>> law = distribution(Activation("relu"), 3.0, 1.5)
    >>> bool(law.residual < 1e-4)
    True
    """
    b1 = sigma.b1 if abs(sigma.b1) > 1e-12 else 0.0
    widest = (1.0 + sqrt(psi2 / psi1)) ** 2 * (b1**2 * (1.0 + sqrt(psi2)) ** 2 + sigma.b_star**2)
    lowest = (1.0 - sqrt(psi2 / psi1)) ** 2 * sigma.b_star**2
    angle = (np.arange(_POINTS) + 0.5) * np.pi / _POINTS
    # more places near the ends, where the density is a root; the first bulk is much narrower than the second
    at = lowest + (widest - lowest) * (0.5 * (1.0 - np.cos(angle))) ** 2
    steps = (widest - lowest) * 0.5 * (1.0 - np.cos(angle)) * np.sin(angle) * np.pi / _POINTS
    rho = density(at, b1, sigma.b_star, psi1, psi2)
    mass = np.cumsum(rho * steps) - 0.5 * rho * steps
    total = float(np.sum(rho * steps))
    return Distribution(at, rho, np.asarray(mass / total), abs(total - 1.0))


def spike(sigma: Activation, psi1: float, psi2: float, n: int) -> float:
    """Return where the largest eigenvalue of K lies for features that are not centred.

        λ₀²n − λ₀λ₄ψ₂/2 + (1 + n/N)(b₁² + b⋆²):

    the mean feature, which is λ₀ − λ₄/(4d) on the sphere, and the noise of either side; what follows is of order 1/n.
    """
    on_sphere = sigma.hermite(0) ** 2 * n - 0.5 * sigma.hermite(0) * sigma.lambda_k(4) * psi2
    return on_sphere + (1.0 + psi2 / psi1) * (sigma.b1**2 + sigma.b_star**2)

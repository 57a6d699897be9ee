"""Second moments of features over all inputs, in closed form: what makes the test error of a fit exact.

For w, w′ of norm 1 the moment E[σ(⟨w, x⟩)σ(⟨w′, x⟩)] depends on r = ⟨w, w′⟩ alone:

    κ(r) = Σ_k s_k² P_k(r),

on the sphere ‖x‖ = √d with Gegenbauer's polynomials, P_k(1) = 1, and s_k² the energy of σ(√d t) in degree k under the
law of one coordinate t, density ∝ (1 − t²)^{(d−3)/2}; for Gaussian x with P_k(r) = r^k and Hermite coefficients. κ(1)
is E[σ²], not the truncated series. For r ≠ 1 the series converges at least like |r|^k: 160 terms are exact to rounding
from d ≈ 20 on, where all r are small; below, a σ with a kink or a jump is left with an error of 1e-6.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.quadrature import panels

_DEGREE = 160
_REACH = 40.0  # of √d t: beyond it the density is below e^−800, or the sphere ends first
_NODES, _MORE_NODES = 48, 200  # of Chebyshev between −max|r| and max|r|; more where that is near 1, in few dimensions
_BLOCK = 1 << 16  # entries at once: what a recurrence holds stays in the second-level cache
_NEGLIGIBLE = 1e-16


@dataclass(frozen=True)
class Zonal:
    """Moments of features: E[σ²], E[σ(⟨w,x⟩)⟨β,x⟩] = slope·⟨w,β⟩, E[σ(⟨w,x⟩)xᵀGx] = quadratic·wᵀGw (Tr G = 0), and κ.

    `d` is None where P_k(r) = r^k.
    """

    second_moment: float
    slope: float
    quadratic: float
    energies: FloatArray
    d: int | None = None

    @classmethod
    def on_sphere(cls, sigma: Activation, d: int) -> Zonal:
        """Moments for x uniform on the sphere ‖x‖ = √d; σ is centred by its Gaussian mean.

        >>> relu = Zonal.on_sphere(Activation("relu"), 50)
        >>> print(f"{relu.second_moment:.6f} {relu.slope:.6f}")
        0.339250 0.500000
        """
        t, weights, table = _coordinate(sigma, d)
        values = sigma(np.sqrt(d) * t) - sigma.hermite(0)
        s = table @ (weights * values)
        second = float(np.sum(weights * values**2 * table[0]))
        harmonic = (d * t * t - 1.0) / (d - 1.0)
        quadratic = d * float(np.sum(weights * values * harmonic * table[0]))
        return cls(second, float(s[1]), quadratic, s**2, d)

    @classmethod
    def gaussian(cls, sigma: Activation) -> Zonal:
        """Moments for x ~ N(0, I).

        >>> print(f"{Zonal.gaussian(Activation('relu')).slope:.6f}")
        0.500000
        """
        c = sigma.hermite_coefficients(1.0, _DEGREE)
        centred = float(sigma.second_moment(1.0)) - c[0] ** 2
        return cls(centred, float(c[1]), sigma.lambda_k(2), np.concatenate([[0.0], c[1:] ** 2]))

    @classmethod
    def noisy_linear(cls, sigma: Activation) -> Zonal:
        """Moments of u = b₁⟨w, x⟩ + b⋆z, on the sphere or for Gaussian x.

        >>> Zonal.noisy_linear(Activation("relu")).quadratic
        0.0
        """
        b1, b_star = sigma.b1, sigma.b_star
        return cls(b1**2 + b_star**2, b1, 0.0, np.array([0.0, b1**2]))

    def kernel(self, R: FloatArray) -> FloatArray:
        """Return κ of the Gram matrix R = WWᵀ of unit weights, in place of R: O(N²) times the degree that it takes.

        Off the diagonal κ is interpolated between ±max|r| in Chebyshev polynomials, to rounding; about fifteen of them
        for ReLU in d = 200.
        """
        chebyshev = np.polynomial.chebyshev
        N = len(R)
        R.flat[:: N + 1] = 0.0
        widest = float(np.max(np.abs(R), initial=0.0))
        if widest > 0.0:
            count = _NODES if widest < 0.6 else _MORE_NODES
            nodes = chebyshev.chebpts1(count)
            series = chebyshev.chebfit(nodes, self.series(widest * nodes), count - 1)
            series[np.abs(series) < _NEGLIGIBLE * self.second_moment] = 0.0
            series = np.concatenate([series[:1], np.trim_zeros(series[1:], "b")])  # all zero where b₁ = 0
            flat = R.reshape(-1)
            for start in range(0, flat.size, _BLOCK):
                part = flat[start : start + _BLOCK]
                part[:] = chebyshev.chebval(part / widest, series)
        R.flat[:: N + 1] = self.second_moment
        return R

    def series(self, r: FloatArray) -> FloatArray:
        """Σ_k s_k² P_k(r), by (k + d − 2)P_{k+1} = (2k + d − 2) r P_k − k P_{k−1}, or P_k = r^k.

        >>> Zonal(1.0, 0.0, 0.0, np.array([0.0, 0.5, 0.25])).series(np.array([0.5]))
        array([0.3125])
        """
        before, here = np.ones_like(r), r.copy()
        total = self.energies[0] * before + self.energies[1] * here
        for k, energy in enumerate(self.energies[2:], start=1):
            if self.d is None:
                before, here = here, here * r
            else:
                d = self.d
                before, here = here, ((2.0 * k + d - 2.0) * r * here - k * before) / (k + d - 2.0)
            total += energy * here
        return np.asarray(total)


def _coordinate(sigma: Activation, d: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nodes t, weights and q_k(t)√p(t), k = 0 … 160, for the law p of one coordinate of the unit sphere.

    E[F(t)q_k(t)] = Σ w F(t) q_k(t)√p(t): as in `quadrature`, one factor √p is in the weights, and nothing overflows.
    With t = sin φ the density is ∝ cos^{d−2}φ, smooth; panels end at the kinks of σ(√d t).
    """
    reach = min(0.5 * np.pi, _REACH / np.sqrt(d))
    kinks = np.array([0.0, *sigma.kinks]) / np.sqrt(d)
    edges = np.unique(np.concatenate([[-reach, reach], np.arcsin(kinks[np.abs(kinks) < np.sin(reach)])]))
    width = min(0.6 / np.sqrt(d), 6.0 / _DEGREE)
    pieces = [np.linspace(a, b, int(np.ceil((b - a) / width)) + 1) for a, b in pairwise(edges)]
    phi, weights = panels(np.unique(np.concatenate(pieces)))
    t = np.sin(phi)
    root = np.exp(0.5 * (d - 2.0) * np.log(np.cos(phi)))
    total = np.sqrt(np.sum(weights * root**2))
    table = np.empty((_DEGREE + 1, t.size))
    table[0] = root / total
    beside = np.zeros(_DEGREE + 1)
    k = np.arange(1.0, _DEGREE + 1.0)
    beside[1:] = np.sqrt(k * (k + d - 3.0) / ((2.0 * k + d - 2.0) * (2.0 * k + d - 4.0)))
    table[1] = t * table[0] / beside[1]
    for j in range(1, _DEGREE):
        table[j + 1] = (t * table[j] - beside[j] * table[j - 1]) / beside[j + 1]
    return t, weights * root / total, table

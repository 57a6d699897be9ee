"""Second moments of tangent features σ′(⟨w, x⟩)x on the sphere ‖x‖ = √d, in closed form, for w of norm 1.

With u = ⟨w, x⟩ = √d t let s_k = E[σ(u)q_k(t)] and p_k = E[uσ′(u)q_k(t)], E[q_k²] = 1, and Q_k the Gegenbauer polynomial
with Q_k(1) = 1. Then κ(r) = E[σ(⟨w, x⟩)σ(⟨w′, x⟩)] = Σ s_k²Q_k(r), r = ⟨w, w′⟩. Along w, σ′(⟨w, x⟩)x is the radial
derivative of a feature, and across w its gradient on the sphere of weights, so that

    E[σ′(⟨w, x⟩)σ′(⟨w′, x⟩)xxᵀ] = κ′(r) I + κ″(r)(ww′ᵀ + w′wᵀ) + μ(r)(wwᵀ + w′w′ᵀ),
    μ(r) = Σ s_kp_kQ_k′(r) − κ′(r) − rκ″(r),
    E[σ′(u)²xxᵀ] = m₀ I + (m₂ − m₀)wwᵀ,      m₀ = E[σ′(u)²(d − u²)]/(d − 1),  m₂ = E[σ′(u)²u²].

Derivatives of Gegenbauer polynomials are those of two dimensions more: Q_k′ = k(k + d − 2)/(d − 1)·Q_{k−1} of d + 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope.activations.activation import Activation
from lazyscope.activations.zonal import interpolate, series_of, tangent_spectrum
from lazyscope.checks import FloatArray
from lazyscope.numerics.gegenbauer import coordinate, polynomials

_DEGREE = 160
_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 1e-14  # of a function's size: coefficients are known to that
_GRID = 201  # cosines at which the error of the series is looked at


@dataclass(frozen=True, eq=False)
class ZonalTangent:
    """s_k and p_k for k ≤ 160, m₀ across the weight and m₂ along it.

    >>> relu = ZonalTangent.of(Activation("relu"), 50)
    >>> print(f"{relu.across:.6f} {relu.along:.6f}")  # half of E[x₁²] = 1 each
    0.500000 0.500000
    """

    d: int
    s: FloatArray
    p: FloatArray
    across: float
    along: float

    @classmethod
    def of(cls, sigma: Activation, d: int) -> ZonalTangent:
        """Return the moments by quadrature that splits at the kinks of σ."""
        t, weights, table = coordinate(sigma.kinks, d, _DEGREE)
        u = np.sqrt(d) * t
        slope = sigma.derivative(u)
        weighted = weights * table[0]
        return cls(
            d,
            _coefficients(table, weights, sigma(u)),
            _coefficients(table, weights, u * slope),
            float(np.sum(weighted * slope**2 * (d - u * u))) / (d - 1.0),
            float(np.sum(weighted * (slope * u) ** 2)),
        )

    def pairs(self, R: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return κ′, κ″, μ of the cosines R = WWᵀ, (N, N), zero on the diagonal, and a bound on the error of K.

        R is overwritten: its diagonal becomes zero.

        The bound is on the operator norm, by Gershgorin's circles, of what the blocks of all pairs lose because the
        series end at degree 160: what the terms beyond degree 80 add, which is more than all that follow them. It
        counts in few dimensions, where some weights are nearly parallel.
        """
        N, d = len(R), self.d
        np.clip(R, -1.0, 1.0, out=R)
        R.flat[:: N + 1] = 0.0
        k = np.arange(len(self.s), dtype=np.float64)
        once = (k * (k + d - 2.0) / (d - 1.0))[1:]  # Q_k′ = once·Q_{k−1} in d + 2 dimensions
        twice = once[1:] * k[1:-1] * (k[1:-1] + d) / (d + 1.0)  # and the same again
        parts = (
            ((self.s**2)[1:] * once, d + 2),
            ((self.s**2)[2:] * twice, d + 4),
            ((self.s * self.p)[1:] * once, d + 2),
        )
        first, second, mixed = R.copy(), R.copy(), R.copy()
        for T, (energies, size) in zip((first, second, mixed), parts, strict=True):
            interpolate(energies, size, T, self.across)
        mixed -= first
        mixed -= R * second
        for T in (first, second, mixed):
            T.flat[:: N + 1] = 0.0
        return first, second, mixed, self._lost(R, parts)

    def _lost(self, R: FloatArray, parts: Sequence[tuple[FloatArray, int]]) -> float:
        """Bound the norm of what the series leave out, from their second halves at 201 cosines up to the largest."""
        grid = float(np.max(np.abs(R), initial=0.0)) * np.linspace(0.0, 1.0, _GRID)
        lost = np.zeros(_GRID)
        for (energies, size), times in zip(parts, (3.0, 4.0, 2.0), strict=True):  # how often each enters a block's norm
            beyond = np.where(np.arange(len(energies)) < _DEGREE // 2, 0.0, energies)
            lost += times * np.maximum(*(np.abs(series_of(beyond, size, sign * grid)) for sign in (-1.0, 1.0)))
        lost = np.maximum.accumulate(lost)
        if lost[-1] <= _EPS * self.across:
            return 0.0
        bound = np.interp(np.abs(R), grid, lost)
        bound.flat[:: len(R) + 1] = 0.0
        return float(np.max(np.sum(bound, axis=1), initial=0.0))

    def overlaps(self, energies: FloatArray, W: FloatArray) -> FloatArray:
        """E[f(x)σ′(⟨w_i, x⟩)x], (N, d), for f = Σ_k √E_k q_k(⟨e₁, x⟩/√d), e₁ the first axis.

        Along w_i it is Σ √E_k p_kQ_k(r), and across it (e₁ − rw_i)Σ √E_k s_kQ_k′(r), r = ⟨w_i, e₁⟩.
        """
        d, degree, r = self.d, energies.size - 1, np.clip(W[:, 0], -1.0, 1.0)
        roots = np.sqrt(energies)
        out = ((roots * self.p[: degree + 1]) @ polynomials(r, d, degree))[:, None] * W
        if degree:
            k = np.arange(1.0, degree + 1.0)
            weights = roots[1:] * self.s[1 : degree + 1] * k * (k + d - 2.0) / (d - 1.0)
            slope = weights @ polynomials(r, d + 2, degree - 1)
            out -= (r * slope)[:, None] * W
            out[:, 0] += slope
        return np.asarray(out)


def _coefficients(table: FloatArray, weights: FloatArray, values: FloatArray) -> FloatArray:
    """Return E[F q_k], where it is more than rounding: an odd function has no even part."""
    coefficients = np.asarray(table @ (weights * values))
    size = np.sqrt(np.sum(weights * values**2 * table[0]))
    return np.where(np.abs(coefficients) > _ROUNDING * size, coefficients, 0.0)


def grouped_spectrum(
    sigma: Activation, d: int
) -> tuple[tuple[FloatArray, FloatArray, float, float], tuple[FloatArray, float]]:
    """Return `tangent_spectrum`, and the part of it that is due to the feature along the weight: Y_k, and its tail.

    σ′(u)u/√d, u = ⟨w, x⟩, has the energy p_k²/d in degree k, and E[σ′(u)²u²]/d in all.

    >>> (xi, m, tail, _), (Y, rest) = grouped_spectrum(Activation("relu"), 30)
    >>> print(f"{float(xi @ m) + tail:.4f} {30 * (float(Y @ m) + rest):.4f}")  # one of thirty features is along
    0.5000 0.5000
    """
    xi, m, tail, largest = tangent_spectrum(sigma, d)
    moments = ZonalTangent.of(sigma, d)
    energies = moments.p[: len(xi)] ** 2 / d
    rest = moments.along / d - float(np.sum(energies))
    return (xi, m, tail, largest), (energies / m, min(tail, max(0.0, rest)))

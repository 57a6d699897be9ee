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

import numpy as np

from lazyscope.activations.activation import Activation
from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import compiled
from lazyscope.numerics.gegenbauer import coordinate, multiplicities, polynomials

_DEGREE = 160
_NODES, _MORE_NODES = 48, 200  # of Chebyshev between −max|r| and max|r|; more where that is near 1, in few dimensions
_LANES = 256  # entries at once: what a recurrence holds stays in the first-level cache
_NEGLIGIBLE = 1e-16
_ROUNDING = 1e-28  # of the trace: energies are squares of coefficients that are known to 1e-15
_MANY = 1e24


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
        """Return the moments for x uniform on the sphere ‖x‖ = √d; σ is centred by its Gaussian mean.

        >>> relu = Zonal.on_sphere(Activation("relu"), 50)
        >>> print(f"{relu.second_moment:.6f} {relu.slope:.6f}")
        0.339250 0.500000
        """
        t, weights, table = coordinate(sigma.kinks, d, _DEGREE)
        values = sigma(np.sqrt(d) * t) - sigma.hermite(0)
        s = table @ (weights * values)
        second = float(np.sum(weights * values**2 * table[0]))
        harmonic = (d * t * t - 1.0) / (d - 1.0)
        quadratic = d * float(np.sum(weights * values * harmonic * table[0]))
        return cls(second, float(s[1]), quadratic, s**2, d)

    @classmethod
    def gaussian(cls, sigma: Activation) -> Zonal:
        """Return the moments for x ~ N(0, I).

        >>> print(f"{Zonal.gaussian(Activation('relu')).slope:.6f}")
        0.500000
        """
        c = sigma.hermite_coefficients(1.0, _DEGREE)
        centred = float(sigma.second_moment(1.0)) - c[0] ** 2
        return cls(centred, float(c[1]), sigma.lambda_k(2), np.concatenate([[0.0], c[1:] ** 2]))

    @classmethod
    def noisy_linear(cls, sigma: Activation) -> Zonal:
        """Return the moments of u = b₁⟨w, x⟩ + b⋆z, on the sphere or for Gaussian x.

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
        N = len(R)
        R.flat[:: N + 1] = 0.0
        interpolate(self.energies, self.d, R, self.second_moment)
        R.flat[:: N + 1] = self.second_moment
        return R

    def series(self, r: FloatArray) -> FloatArray:
        """Return Σ_k s_k² P_k(r), by (k + d − 2)P_{k+1} = (2k + d − 2) r P_k − k P_{k−1}, or P_k = r^k.

        >>> Zonal(1.0, 0.0, 0.0, np.array([0.0, 0.5, 0.25])).series(np.array([0.5]))
        array([0.3125])
        """
        return series_of(self.energies, self.d, r)


def series_of(energies: FloatArray, d: int | None, r: FloatArray) -> FloatArray:
    """Σ_k energies[k]·P_k(r), by the recurrence that `Zonal.series` names; at least two energies."""
    before, here = np.ones_like(r), r.copy()
    total = energies[0] * before + energies[1] * here
    for k, energy in enumerate(energies[2:], start=1):
        if d is None:
            before, here = here, here * r
        else:
            before, here = here, ((2.0 * k + d - 2.0) * r * here - k * before) / (k + d - 2.0)
        total += energy * here
    return np.asarray(total)


def interpolate(energies: FloatArray, d: int | None, R: FloatArray, whole: float) -> None:
    """Put Σ_k energies[k]·P_k(r) in place of every r in R, by Chebyshev polynomials between ±max|r|.

    Terms below 10⁻¹⁶ of `whole` are left out. Where max|r| ≥ 0.6 there are more nodes than the series has degrees.
    """
    chebyshev = np.polynomial.chebyshev
    widest = float(np.max(np.abs(R), initial=0.0))
    if widest > 0.0:
        count = _NODES if widest < 0.6 else _MORE_NODES
        nodes = chebyshev.chebpts1(count)
        series = chebyshev.chebfit(nodes, series_of(energies, d, widest * nodes), count - 1)
        series[np.abs(series) < _NEGLIGIBLE * whole] = 0.0
        series = np.concatenate([series[:1], np.trim_zeros(series[1:], "b")])  # all zero where b₁ = 0
        _clenshaw(R.reshape(-1), widest, np.append(series, np.zeros(max(0, 2 - series.size))))
    else:
        R += float(series_of(energies, d, np.zeros(1))[0])


@compiled
def _clenshaw(values: FloatArray, widest: float, series: FloatArray) -> None:
    """Put Σ_k series[k]·T_k(r/widest) in place of every r, by Clenshaw's recurrence, 256 of them side by side.

    Five flops an entry and term; `numpy.polynomial.chebyshev.chebval` takes four times as long, for its temporaries.
    """
    x, here, before = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    for start in range(0, values.size, _LANES):
        count = min(_LANES, values.size - start)
        for j in range(count):
            x[j] = values[start + j] / widest
            here[j] = 0.0
            before[j] = 0.0
        for k in range(series.size - 1, 0, -1):
            c = series[k]
            for j in range(count):
                new = c + 2.0 * x[j] * here[j] - before[j]
                before[j] = here[j]
                here[j] = new
        for j in range(count):
            values[start + j] = series[0] + x[j] * here[j] - before[j]


def spectrum(sigma: Activation, d: int) -> tuple[FloatArray, FloatArray, float, float]:
    """Return ξ_k and B(d, k) of the kernel E_w[σ(⟨w, x⟩)σ(⟨w, x′⟩)] on the sphere, w uniform on the unit one.

    ξ_k = E[σ(√d t)Q_k(t)]², B(d, k) times (Funk and Hecke), for the degrees that are fewer than 10²⁴; then the trace of
    all the others, and a bound on their eigenvalues.

    >>> xi, m, tail, _ = spectrum(Activation("relu"), 30)
    >>> print(f"{m[2]:.0f} {xi[1] * m[1]:.6f} {float(xi @ m) + tail:.6f}")
    464 0.250000 0.500000
    """
    t, weights, table = coordinate(sigma.kinks, d, _last(d))
    values = sigma(np.sqrt(d) * t)
    energies = (table @ (weights * values)) ** 2
    whole = float(np.sum(weights * values**2 * table[0]))
    return truncated(_of_degree(sigma, energies), whole, d)


def _last(d: int) -> int:
    """The last degree whose energy is looked at: two more than are kept, which bound the others; 160 at most."""
    return min(_DEGREE, int(np.count_nonzero(multiplicities(d, _DEGREE) <= _MANY)) + 1)


def _of_degree(sigma: Activation, energies: FloatArray) -> FloatArray:
    """Return the energies of a power, homogeneous and smooth, without what quadrature leaves beyond its degree."""
    if sigma.degree is None or sigma.kinks:
        return energies
    return np.where(np.arange(energies.size) > sigma.degree, 0.0, energies)


def tangent_spectrum(sigma: Activation, d: int) -> tuple[FloatArray, FloatArray, float, float]:
    """Return the same of the tangent kernel K = t·E_w[σ′(⟨w, x⟩)σ′(⟨w, x′⟩)], t = ⟨x, x′⟩/d.

    With e_k the trace of E_w[σ′σ′] in degree k, t·Q_k = (k Q_{k−1} + (k + d − 2) Q_{k+1})/(2k + d − 2) gives that of K:
    (j + 1)e_{j+1}/(2j + d) + (j + d − 3)e_{j−1}/(2j + d − 4).

    >>> xi, m, tail, _ = tangent_spectrum(Activation("relu"), 30)
    >>> print(f"{xi[1] * m[1]:.4f} {float(xi @ m) + tail:.4f}")  # E[σ′²] = 1/2
    0.2500 0.5000
    """
    last = min(_DEGREE, _last(d) + 1)
    t, weights, table = coordinate(sigma.kinks, d, last)
    values = sigma.derivative(np.sqrt(d) * t)
    e = (table @ (weights * values)) ** 2
    whole = float(np.sum(weights * values**2 * table[0]))
    j = np.arange(float(last))
    energies = (j + 1.0) * e[1:] / (2.0 * j + d)
    below = np.ones(last - 1)  # of Q_0: t itself is Q_1
    k = j[1:-1]
    below[1:] = (k + d - 2.0) / (2.0 * k + d - 2.0)
    energies[1:] += below * e[: last - 1]
    return truncated(_of_degree(sigma, energies), whole, d)


def truncated(energies: FloatArray, whole: float, d: int) -> tuple[FloatArray, FloatArray, float, float]:
    """Return eigenvalues, multiplicities, tail and largest eigenvalue in it, from a kernel's trace in each degree."""
    energies = np.where(energies > _ROUNDING * whole, energies, 0.0)
    m = multiplicities(d, len(energies) - 1)
    kept = m <= _MANY
    xi = energies[kept] / m[kept]
    tail = whole - float(np.sum(energies[kept]))
    if tail < 1e-13 * whole:  # a polynomial: what is left is rounding
        tail = 0.0
    rest = energies[~kept] / m[~kept]  # they fall with the degree, two by two where σ is even or odd
    return xi, m[kept], tail, float(np.max(rest if rest.size > 1 else xi[-2:]))


def coefficients(sigma: Activation, d: int, degree: int) -> FloatArray:
    """Return s_k = E[σ(√d t)q_k(t)] for k ≤ degree, with E[q_k²] = 1.

    >>> coefficients(Activation("relu"), 30, 1).round(6)
    array([0.40228, 0.5    ])
    """
    t, weights, table = coordinate(sigma.kinks, d, _DEGREE)
    return np.asarray(table[: degree + 1] @ (weights * sigma(np.sqrt(d) * t)))


def uncentred(sigma: Activation, d: int) -> Zonal:
    """Return the moments of σ as it is, on the sphere ‖x‖ = √d."""
    t, weights, table = coordinate(sigma.kinks, d, _DEGREE)
    values = sigma(np.sqrt(d) * t)
    s = table @ (weights * values)
    return Zonal(float(np.sum(weights * values**2 * table[0])), float(s[1]), 0.0, s**2, d)


def overlaps(sigma: Activation, d: int, energies: FloatArray, along: FloatArray) -> FloatArray:
    """V_i = E[σ(⟨w_i, x⟩)f(x)] = Σ_k √E_k s_k Q_k(⟨w_i, u⟩) for f = Σ_k √E_k q_k(⟨u, x⟩/√d), given ⟨w_i, u⟩."""
    degree = energies.size - 1
    return np.asarray((np.sqrt(energies) * coefficients(sigma, d, degree)) @ polynomials(along, d, degree))

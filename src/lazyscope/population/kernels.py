r"""Pair kernels: T_pq(i, j) = E[σ^{(p)}(s_i ξ) σ^{(q)}(s_j η)] for standard normal ξ, η of correlation r.

Derivatives are in the sense of distributions, so that T₂₂ of ReLU is the density E[δ(s_iξ)δ(s_jη)]. By Price's
theorem these five, T₀₀, T₁₁, T₂₀, T₂₂ and T₃₁, give every Gram matrix of the package and its gradient. Four routes:

- `SeriesKernel`, any σ: with σ(s·) = Σ c_k(s) he_k and σ^{(p)}(s·) = s^{-p} Σ c_{k+p}(s)√((k+1)…(k+p)) he_k,
      T_pq = s_i^{-p} s_j^{-q} Σ_k c_{k+p}(s_i) c_{k+q}(s_j) √((k+1)_p (k+1)_q) r^k;
- `ArcsineKernel`, erf, T₀₀ alone: (2/π) asin of a normalised covariance, valid up to |r| = 1 and at every norm;
- `RectifiedKernel`, σ built from t₊^m/m!: arc-cosine closed forms by a recursion, valid up to |r| = 1;
- `PiecewiseKernel`, σ linear between any kinks: closed forms in the bivariate normal law, valid up to |r| = 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import gamma, pi, sqrt
from typing import ClassVar

import numpy as np

from lazyscope.activations import Activation
from lazyscope.activations.named import Rectified
from lazyscope.activations.piecewise import PiecewiseLinear
from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.numerics.orthant import below, density, orthant, ratio
from lazyscope.numerics.quadrature import MAX_DEGREE

SERIES_TOLERANCE = 1e-14
_REFUSED_TAIL = 1e-10


class PairKernel(ABC):
    """T_pq on a block of pairs."""

    @abstractmethod
    def __call__(self, p: int, q: int, r: FloatArray, rows: slice, columns: slice) -> FloatArray:
        """T_pq(i, j) for i in rows, j in columns, at the cosines r of that block."""


class SeriesKernel(PairKernel):
    """Any activation, by its Hermite series; the number of terms follows from the largest cosine.

    A block costs 3 multiply-adds an entry and term; 25 terms serve d = 450.
    """

    def __init__(self, sigma: Activation, s: FloatArray, largest_cosine: float, order: int) -> None:
        self.s = s
        power = sigma.second_moment(s)
        for degree in (24, 48, 96, 192, MAX_DEGREE):
            self.c = sigma.hermite_coefficients(s, degree)
            tail = self._tail(power, min(largest_cosine, 1.0), order)
            enough = np.flatnonzero(tail <= SERIES_TOLERANCE)
            if enough.size:
                self.terms = int(enough[0])
                return
        self.terms = tail.size - 1
        if tail[-1] > _REFUSED_TAIL:
            raise NotConverged(
                f"The Hermite series of {sigma.name} leaves {tail[-1]:.1e} after {tail.size} terms, as two weights "
                f"are nearly parallel (cosine {largest_cosine:.6f}) and σ is not smooth enough at weight norms up to "
                f"{np.max(s):.3g}. Use a smoother activation, one with a closed form (relu, relu2, relu3, abs, sign, "
                "step, or a callable that is linear between its kinks), or a larger d; weights that you choose "
                "yourself may also be shorter."
            )

    def _tail(self, power: FloatArray, r: float, order: int) -> FloatArray:
        """Bound what T_pq loses after K = 0, 1, … terms, relative to E[σ²], for p, q ≤ order.

        It is at most max_{k>K} r^k (k+order)^order times the energy left, max_i 1 − Σ_{k≤K} c_k(s_i)²/E[σ(s_i g)²].
        """
        left = np.max(1.0 - np.cumsum(self.c**2, axis=0) / power, axis=1)
        left[left < 4e-15] = 0.0  # rounding of the quadrature, not energy
        k = np.arange(len(left) - order)
        envelope = r ** (k + 1.0) * (k + 1.0 + order) ** order
        return np.asarray(np.maximum.accumulate(envelope[::-1])[::-1] * left[: k.size])

    def _coefficients(self, p: int, part: slice) -> FloatArray:
        """Hermite coefficients of σ^{(p)}(s·), shape (terms + 1, |part|)."""
        k = np.arange(self.terms + 1.0)
        rising = np.prod([k + step for step in range(1, p + 1)], axis=0) if p else np.ones_like(k)
        return np.sqrt(rising)[:, None] * self.c[p : p + self.terms + 1, part] / self.s[part] ** p

    def __call__(self, p: int, q: int, r: FloatArray, rows: slice, columns: slice) -> FloatArray:
        """Horner's scheme in r, a rank-one coefficient at each step."""
        left, right = self._coefficients(p, rows), self._coefficients(q, columns)
        total = np.zeros_like(r)
        term = np.empty_like(r)
        for k in range(self.terms, -1, -1):
            total *= r
            if np.any(left[k]) and np.any(right[k]):
                np.multiply(left[k][:, None], right[k], out=term)
                total += term
        return total


class ArcsineKernel(PairKernel):
    """σ(t) = erf(κt): T₀₀ = (2/π) asin(2κ²s_is_j r/√((1 + 2κ²s_i²)(1 + 2κ²s_j²))) (Williams 1998)."""

    twice_kappa_squared: ClassVar[dict[str, float]] = {"erf": 2.0, "erf2": 1.0}

    def __init__(self, sigma: Activation, s: FloatArray) -> None:
        scaled = self.twice_kappa_squared[sigma.name] * s * s
        self.length = np.sqrt(scaled / (1.0 + scaled))

    def __call__(self, p: int, q: int, r: FloatArray, rows: slice, columns: slice) -> FloatArray:
        """T₀₀: an arcsine an entry."""
        assert p == q == 0  # the moments of derivatives go by the series
        return np.asarray(2.0 / pi * np.arcsin(self.length[rows, None] * self.length[columns] * r))


class RectifiedKernel(PairKernel):
    """σ(t) = t₊^m/m!, or that plus or minus its mirror image: relu, relu2, relu3, step, abs, sign."""

    def __init__(self, shape: Rectified, s: FloatArray) -> None:
        self.m, self.parity, self.s = shape.power, shape.parity, s

    def __call__(self, p: int, q: int, r: FloatArray, rows: slice, columns: slice) -> FloatArray:
        """T_pq = s_i^{m−p} s_j^{m−q} J(m−p, m−q; r), mirrored where σ is even or odd."""
        a, b = self.m - p, self.m - q
        value = rectified_moment(a, b, r)
        if self.parity:
            if (p + q) % 2:
                return np.zeros_like(r)
            value *= 2.0
            value += 2.0 * self.parity * (-1.0) ** p * rectified_moment(a, b, -r)
        if a:
            value *= self.s[rows, None] ** a
        if b:
            value *= self.s[columns] ** b
        return value


class PiecewiseKernel(PairKernel):
    """σ(t) = a + bt + Σ_j δ_j(t − κ_j)₊, any bends: closed forms in the bivariate normal law.

    With h = κ_j/s_i, k = κ_l/s_j, q² = 1 − r² and L = P(ξ > h, η > k),

        E[(ξ−h)₊(η−k)₊] = (r + hk)L − kφ(h)Q((k−rh)/q) − hφ(k)Q((h−rk)/q) + q²φ₂(h, k; r),

    E[1{ξ>h}1{η>k}] = L, and σ″ is a sum of point masses, which leave one-dimensional integrals.
    """

    def __init__(self, shape: PiecewiseLinear, s: FloatArray) -> None:
        self.shape, self.s = shape, s

    def __call__(self, p: int, q: int, r: FloatArray, rows: slice, columns: slice) -> FloatArray:
        """T_pq for (0, 0), (1, 1), (2, 0), (2, 2) and (3, 1): an Owen's function or an exponential a pair of bends."""
        s, t = self.s[rows, None], self.s[None, columns]
        return {(0, 0): self._T00, (1, 1): self._T11, (2, 0): self._T20, (2, 2): self._T22, (3, 1): self._T31}[p, q](
            s, t, np.clip(r, -1.0, 1.0)
        )

    def _T00(self, s: FloatArray, t: FloatArray, r: FloatArray) -> FloatArray:
        a, b = self.shape.constant, self.shape.slope
        (u0, u1), (v0, v1) = (self.shape.hermite_coefficients(x, 1) for x in (s, t))
        # E[σσ] = E[σ]E[σ] where bends meet nothing else; bt and its pairs go by Stein
        total = a * (u0 + v0 - a) + r * b * (u1 * t + s * v1 - b * s * t)
        for knot, bend in self.shape.pieces:
            for other, turn in self.shape.pieces:
                total = total + bend * turn * s * t * _both_above(knot / s, other / t, r)
        return np.asarray(total)

    def _T11(self, s: FloatArray, t: FloatArray, r: FloatArray) -> FloatArray:
        b = self.shape.slope
        u1, v1 = (self.shape.hermite_coefficients(x, 1)[1] / x for x in (s, t))
        total = b * (u1 + v1 - b) + 0.0 * r
        for knot, bend in self.shape.pieces:
            for other, turn in self.shape.pieces:
                total = total + bend * turn * orthant(knot / s, other / t, r)
        return np.asarray(total)

    def _T20(self, s: FloatArray, t: FloatArray, r: FloatArray) -> FloatArray:
        """Σ_j δ_j φ(h_j)/s · E[σ(m + τz)], m = rtκ_j/s and τ = tq: η given s·ξ = κ_j."""
        tau = t * _beside(r)
        total = np.zeros_like(r)
        for knot, bend in self.shape.pieces:
            mean = r * t * (knot / s)
            value = self.shape.constant + self.shape.slope * mean
            for other, turn in self.shape.pieces:
                x = ratio(mean - other, tau)
                value = value + turn * (tau * density(x) + (mean - other) * below(x))
            total += bend * density(knot / s) / s * value
        return total

    def _T22(self, s: FloatArray, t: FloatArray, r: FloatArray) -> FloatArray:
        total = np.zeros_like(r)
        for knot, bend in self.shape.pieces:
            for other, turn in self.shape.pieces:
                with np.errstate(divide="ignore", invalid="ignore"):
                    total += bend * turn * _joint(knot / s, other / t, r) / (_beside(r) ** 2 * s * t)
        return total

    def _T31(self, s: FloatArray, t: FloatArray, r: FloatArray) -> FloatArray:
        """−Σ_j δ_j d/dκ_j [φ(h_j)/s · E[σ′(η) | s·ξ = κ_j]]."""
        total = np.zeros_like(r)
        for knot, bend in self.shape.pieces:
            h = knot / s
            slope = self.shape.slope + 0.0 * r
            for other, turn in self.shape.pieces:
                slope = slope + turn * below(ratio(r * h - other / t, _beside(r)))
                with np.errstate(divide="ignore", invalid="ignore"):
                    total -= bend * turn * _joint(h, other / t, r) * r / (_beside(r) ** 2 * s * s)
            total += bend * density(h) / s * h / s * slope
        return total


def _beside(r: FloatArray) -> FloatArray:
    return np.sqrt((1.0 - r) * (1.0 + r))


def _joint(h: FloatArray, k: FloatArray, r: FloatArray) -> FloatArray:
    """q² times the density of (ξ, η) at (h, k); 0 at |r| = 1."""
    q = _beside(r)
    return np.asarray(q * density(ratio(h - r * k, q)) * density(k) * np.where(q > 0.0, 1.0, 0.0))


def _both_above(h: FloatArray, k: FloatArray, r: FloatArray) -> FloatArray:
    """E[(ξ − h)₊(η − k)₊].

    >>> _both_above(np.zeros(1), np.zeros(1), np.array([0.0, 1.0]))
    array([0.15915494, 0.5       ])
    """
    q = _beside(r)
    edges = k * density(h) * below(-ratio(k - r * h, q)) + h * density(k) * below(-ratio(h - r * k, q))
    return np.asarray((r + h * k) * orthant(h, k, r) - edges + _joint(h, k, r))


def rectified_moment(a: int, b: int, r: FloatArray) -> FloatArray:
    """J(a, b; r) = E[ξ₊^a/a! · η₊^b/b!], with order −1 meaning δ and −2 meaning δ′ (Cho & Saul generalised).

    Stein's lemma gives a J(a,b) = J(a−2,b) + r J(a−1,b−1) for a ≥ 1, and J(−2,b) = −r J(−1,b−1); the ground
    is J(0,0) = (π − arccos r)/2π and J(−1,b) = (1−r²)^{b/2} E[z₊^b]/(b! √2π).

    >>> print(rectified_moment(1, 1, np.array([0.0, 1.0])))  # E[ReLU ReLU]: 1/2π apart, 1/2 together
    [0.15915494 0.5       ]
    """
    if a > b:
        return rectified_moment(b, a, r)
    if a == -2:
        return -r * rectified_moment(-1, b - 1, r)
    if a == -1:
        with np.errstate(divide="ignore"):
            return _half_moment(b) * np.sqrt(1.0 - r * r) ** b
    if a == 0 and b == 0:
        return (np.pi - np.arccos(r)) / (2.0 * np.pi)
    # b ≥ 1: lower the larger order
    return (rectified_moment(a, b - 2, r) + r * rectified_moment(a - 1, b - 1, r)) / b


def _half_moment(b: int) -> float:
    """E[z₊^b]/(b! √2π), and for b = −1 the density E[δ(z)]/√2π = 1/2π."""
    if b == -1:
        return 1.0 / (2.0 * pi)
    return float(2.0 ** (0.5 * b) * gamma(0.5 * (b + 1)) / (2.0 * sqrt(pi)) / gamma(b + 1) / sqrt(2.0 * pi))


def pair_kernel(sigma: Activation, s: FloatArray, largest_cosine: float, order: int) -> PairKernel:
    """Return the closed form where σ has one, otherwise the series that serves T_pq up to p, q ≤ order."""
    if sigma.rectified is not None:
        return RectifiedKernel(sigma.rectified, s)
    if sigma.piecewise is not None:
        return PiecewiseKernel(sigma.piecewise, s)
    if order == 0 and sigma.name_or_callable in ArcsineKernel.twice_kappa_squared:
        return ArcsineKernel(sigma, s)
    return SeriesKernel(sigma, s, largest_cosine, order)

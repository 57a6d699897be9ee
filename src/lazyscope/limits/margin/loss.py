"""The loss of the margin, F_κ(c₁, c₂)² = E[(κ − c₁T − c₂Z)₊²], with Z ~ N(0, 1) integrated in closed form.

T = yS is the agreement of the label with its score (`LinearLabels.agreement`). Given T, with x = μ − ρT, μ = κ/c₂ and
ρ = c₁/c₂,

    P(x > Z) = Φ(x),    E[(x − Z)₊] = xΦ(x) + φ(x),    E[(x − Z)₊²] = (x² + 1)Φ(x) + xφ(x),

which leaves one integral, over the law of T. A 40-point Gauss rule for that law itself, whatever its link, is exact to
rounding while ρ ≤ 1.3 (its error falls as (ρ²/(1+ρ²))^80); the panels of `agreement` serve beyond.

Machine code: imported where it is used, as numba takes half a second to load.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import jitted
from lazyscope.problems.labels import LinearLabels

STEEPEST = 1.3
"""The largest ρ = c₁/c₂ that `compact` resolves to rounding."""

_NODES = 40
# e^z = 2^n e^r, n the nearest whole number to z/ln 2: |r| ≤ ½ ln 2, of which 13 terms of the series leave 2·10⁻¹⁶
_SERIES = np.array([1.0 / math.factorial(k) for k in range(12, -1, -1)])
_LN2, _LN2_REST = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # n times the first is exact
_WHOLE = 1.5 * 2.0**52  # added to a number it rounds it, and leaves the whole number in its last bits
_LEAST = -700.0  # below it e^z is not needed, and its power of two would not be a normal number
# (1 + y)(1 − Φ(y))/φ(y) for y ≥ 0 is a polynomial of w = (y − 4)/(y + 4), −1 ≤ w ≤ 1, to 2·10⁻¹⁵ of itself
_MIDDLE = 4.0


def _mills_polynomial() -> FloatArray:
    """Return its coefficients, highest power first: by interpolation at Chebyshev points, none of which is y = ∞."""
    from scipy.special import erfcx

    degree = 24
    w = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    y = _MIDDLE * (1.0 + w) / (1.0 - w)
    mills = (1.0 + y) * math.sqrt(0.5 * math.pi) * erfcx(y * math.sqrt(0.5))
    chebyshev = np.polynomial.chebyshev
    return np.array(chebyshev.cheb2poly(chebyshev.chebfit(w, mills, degree))[::-1], dtype=np.float64)


_MILLS = _mills_polynomial()


@lru_cache(maxsize=64)
def compact(problem: LinearLabels) -> tuple[FloatArray, FloatArray]:
    """Return the Gauss rule of 40 nodes for the law of T: Lanczos on the panels' rule, then Golub and Welsch.

    >>> t, p = compact(LinearLabels(link="sign"))
    >>> f"{t.size} {p @ t**2:.12f} {p @ t**10 / 945:.12f}"  # E[T^2k] = 1·3·…·(2k−1)
    '40 1.000000000000 1.000000000000'
    """
    from scipy.linalg import eigh_tridiagonal

    t, p = problem.agreement
    basis = np.zeros((_NODES + 1, t.size))
    diagonal, off = np.empty(_NODES), np.empty(_NODES)
    basis[0] = np.sqrt(p / p.sum())
    for k in range(_NODES):
        rest = t * basis[k]
        diagonal[k] = basis[k] @ rest
        for _ in range(2):  # orthogonal to all before, twice: once leaves what rounding makes grow
            rest -= basis[: k + 1].T @ (basis[: k + 1] @ rest)
        off[k] = np.linalg.norm(rest)
        basis[k + 1] = rest / off[k]
    nodes, vectors = eigh_tridiagonal(diagonal, off[:-1])
    return nodes, np.asarray(p.sum() * vectors[0] ** 2)


@jitted
def _six_more(value: float, x: float, square: float, coefficients: FloatArray, k: int) -> float:
    """Go on with a polynomial for six coefficients: value·x⁶ + c_k x⁵ + … + c_{k+5}.

    Written out, as a loop here would forbid vector instructions; in pairs, so that few of them wait for one another.
    """
    first = coefficients[k] * x + coefficients[k + 1]
    middle = coefficients[k + 2] * x + coefficients[k + 3]
    last = coefficients[k + 4] * x + coefficients[k + 5]
    return float(value * (square * square * square) + ((first * square + middle) * square + last))


@jitted
def normal(mu: float, rho: float, T: FloatArray, p: FloatArray, below: FloatArray, density: FloatArray) -> None:
    """Write pΦ(x) and pφ(x), x = μ − ρT: 5 ns a node, a quarter of what `math.erfc` and `math.exp` take.

    φ by the series of the exponential function, 1 − Φ(|x|) = φ times the Mills ratio: one formula for every x, which
    the compiler turns into vector instructions. Relative error 3·10⁻¹⁵, also of Φ far below 0.

    >>> T, p, below, density = np.array([0.0, 3.0, 20.0]), np.ones(3), np.empty(3), np.empty(3)
    >>> normal(0.0, 1.0, T, p, below, density)
    >>> print(*(f"{value:.13g}" for value in below))  # Φ(0), Φ(−3), Φ(−20)
    0.5 0.00134989803163 2.753624118606e-89
    """
    for k in range(T.size):
        x = mu - rho * T[k]
        z = max(-0.5 * x * x, _LEAST)
        shifted = z * (1.0 / math.log(2.0)) + _WHOLE
        whole = shifted - _WHOLE
        r = (z - whole * _LN2) - whole * _LN2_REST
        series = _six_more(_six_more(_SERIES[0], r, r * r, _SERIES, 1), r, r * r, _SERIES, 7)
        power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
        density[k] = p[k] * series * power / math.sqrt(2.0 * math.pi)
        y = abs(x)
        w = (y - _MIDDLE) / (y + _MIDDLE)
        mills = _six_more(_six_more(_MILLS[0], w, w * w, _MILLS, 1), w, w * w, _MILLS, 7)
        mills = _six_more(_six_more(mills, w, w * w, _MILLS, 13), w, w * w, _MILLS, 19)
        tail = density[k] * mills / (1.0 + y)
        below[k] = tail if x < 0.0 else p[k] - tail


@jitted
def loss(mu: float, rho: float, T: FloatArray, p: FloatArray) -> tuple[float, ...]:
    """With x = μ − ρT − Z: P(x > 0), E[x₊], E[x₊T], E[x₊²], and E[φ], E[φT], E[ΦT], E[ΦT²] for slopes. 8 ns a node.

    >>> T, p = LinearLabels(link="sign").agreement
    >>> P0, E0, E1, F2, *_ = loss(1.0, 0.5, T, p)
    >>> f"{P0 + E0 - 0.5 * E1:.12f} {F2:.12f}"  # Stein's lemma: E[x₊²] = μE[x₊] − ρE[x₊T] + P(x > 0)
    '1.251100808324 1.251100808324'
    """
    below, density = np.empty(T.size), np.empty(T.size)
    normal(mu, rho, T, p, below, density)
    P0 = E0 = E1 = F2 = Q0 = Q1 = P1 = P2 = 0.0
    for k in range(T.size):
        t, x = T[k], mu - rho * T[k]
        mean = x * below[k] + density[k]
        P0 += below[k]
        E0 += mean
        E1 += t * mean
        F2 += x * mean + below[k]
        Q0 += density[k]
        Q1 += t * density[k]
        P1 += t * below[k]
        P2 += t * t * below[k]
    return P0, E0, E1, F2, Q0, Q1, P1, P2


@jitted
def wrong(rho: float, T: FloatArray, p: FloatArray) -> float:
    """Return P(ρT + Z ≤ 0), the probability of a wrong label. 7 ns a node.

    >>> T, p = LinearLabels(link="sign").agreement
    >>> wrong(0.5, T, p) == loss(0.0, 0.5, T, p)[0]
    True
    """
    below, density = np.empty(T.size), np.empty(T.size)
    normal(0.0, rho, T, p, below, density)
    total = 0.0
    for k in range(T.size):
        total += below[k]
    return total

"""Gaussian integrals of ReLU: fields as unit vectors, so that parallel, opposite and coplanar ones lose no digits.

With S the different directions among the fields, Stein's lemma applied twice gives, for fields of variance 1,

    E[g_k g_l Π_{s ∈ S} 1{g_s > 0}] = c_kl P(S) + Σ_{a<b ∈ S} K_ab ω_ab,
    K_ab = (c_ka c_lb + c_kb c_la − c_ab(c_ka c_la + c_kb c_lb)) / (2π√(1 − c_ab²)),

P(S) the probability that all are positive, and ω_ab that all but a and b are, given g_a = g_b = 0: 1, ½ and
¼ + asin(ρ_cd·ab)/2π for two, three and four directions. Covariances alone do not say what ρ_cd·ab is where four fields
span three dimensions or nearly so: numerator and denominator of it vanish in rounding. A factor C = VVᵀ does, and all
terms see the same one, so that what is uncertain in each drops out of their sum. Importing this module loads numba.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import jitted

TAU = 2.0 * math.pi
_FLAT = 1e-14  # 1 − ρ² of two fields that is rounding: they are parallel
_FLOOR = 1e-15  # the squared distance of a unit vector from the span of others that is rounding


def _double_exponential() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights on (0, 1), as distances from 1: the rule that roots at the ends do not disturb."""
    t = np.arange(-44, 45) * 0.075
    q = np.exp(-np.pi * np.sinh(t))
    return q / (1.0 + q), 0.075 * np.pi * np.cosh(t) * q / (1.0 + q) ** 2


_AWAY, _WEIGHT = _double_exponential()


@jitted
def wedge(a: float, b: float, c: float) -> float:
    """Return √(ab − c²), 0 where rounding of c could have made it: fields within rounding of parallel are parallel."""
    rest = a * b - c * c
    return 0.0 if rest <= _FLAT * a * b else math.sqrt(rest)


@jitted
def angle(a: float, b: float, c: float) -> float:
    """Return asin ρ of two fields with variances a and b and covariance c; 0 where one of them is constant."""
    return math.atan2(c, wedge(a, b, c)) if a > 0.0 and b > 0.0 else 0.0


# -- directions --------------------------------------------------------------------------------------------------------


@jitted
def directions(C: FloatArray, i: int, j: int, k: int, last: int, S: FloatArray, at: FloatArray) -> int:
    """Write the correlations of the different directions among l = `last`, k, i, j into S; return their number.

    `at` gets the places of k and l among them. 0 stands for opposite fields, which are never both positive, and for a
    constant one, whose σ and σ′ are 0.
    """
    fields, kept = (last, k, i, j), np.empty(4, dtype=np.int64)
    m = 0
    for n in range(4):
        field = fields[n]
        if C[field, field] <= 0.0:
            return 0
        place = m
        for p in range(m):
            other = kept[p]
            if other == field:
                place = p
            elif wedge(C[field, field], C[other, other], C[field, other]) == 0.0:
                if C[field, other] < 0.0:
                    return 0
                place = p
        if place == m:
            kept[m] = field
            m += 1
        if n < 2:
            at[1 - n] = place
    for p in range(m):
        for q in range(p):
            x = C[kept[p], kept[q]] / (math.sqrt(C[kept[p], kept[p]]) * math.sqrt(C[kept[q], kept[q]]))
            S[p, q] = S[q, p] = x
        S[p, p] = 1.0
    return m


@jitted
def factor(S: FloatArray, m: int, V: FloatArray) -> float:
    """Write unit vectors, rows of V, with the inner products S: Cholesky with pivots. Return their volume, squared.

    V has as many columns other than 0 as the vectors have dimensions.
    """
    left, open_ = np.ones(4), np.ones(4, dtype=np.int64)
    V[:, :] = 0.0
    volume = 1.0
    for step in range(m):
        best = -1
        for a in range(m):
            if open_[a] and (best < 0 or left[a] > left[best]):
                best = a
        if left[best] <= _FLOOR:
            return 0.0
        volume *= left[best]
        V[best, step] = math.sqrt(left[best])
        open_[best] = 0
        for b in range(m):
            if open_[b]:
                rest = S[b, best]
                for t in range(step):
                    rest -= V[b, t] * V[best, t]
                V[b, step] = rest / V[best, step]
                left[b] -= V[b, step] ** 2
    return volume


@jitted
def flat(V: FloatArray) -> bool:
    """Say whether the vectors lie in a plane."""
    return np.max(np.abs(V[:, 2])) == 0.0


@jitted
def trivector(V: FloatArray, a: int, b: int, c: int, out: FloatArray) -> None:
    """Write the four 3×3 minors of the rows a, b, c, whose inner products are determinants of conditional laws."""
    n = 0
    for x in range(2):
        for y in range(x + 1, 3):
            for z in range(y + 1, 4):
                one = V[b, y] * V[c, z] - V[b, z] * V[c, y]
                two = V[b, x] * V[c, z] - V[b, z] * V[c, x]
                three = V[b, x] * V[c, y] - V[b, y] * V[c, x]
                out[n] = V[a, x] * one - V[a, y] * two + V[a, z] * three
                n += 1


@jitted
def others(a: int, b: int) -> tuple[int, int]:
    """Return the two of 0, 1, 2, 3 that are left."""
    c = 0 if a > 0 else (1 if b > 1 else 2)
    return c, 6 - a - b - c


@jitted
def turned(V: FloatArray, a: int, b: int, c: int, d: int, square: float) -> float:
    """Return asin ρ_cd·ab of two fields given g_a = g_b = 0, `square` = (1 − c_ab²) times the squared volume of all.

    Inner products N of trivectors give ρ = N_cd/√(N_cc N_dd), and N_cc N_dd − N_cd² = `square`.
    """
    one, other = np.empty(4), np.empty(4)
    trivector(V, a, b, c, one)
    trivector(V, a, b, d, other)
    return math.atan2(np.dot(one, other), math.sqrt(square))


# -- orthants ----------------------------------------------------------------------------------------------------------


@jitted
def plackett(S: FloatArray, V: FloatArray, volume: float) -> float:
    """P(g₁, …, g₄ > 0) for correlations S = VVᵀ of four directions that differ, by Plackett (1954).

    With ρ(s) = sρ off the diagonal, dP/ds = Σ_{a<b} ρ_ab/(2π√(1 − s²ρ_ab²)) (¼ + asin ρ_cd·ab(s)/2π), where c, d are
    the two other fields. The ¼ integrates to arcsines. The determinant of ρ(s) is Σ_k (1−s)^(4−k) s^k e_k with e_k the
    sum of all minors of k fields, none of them negative. 800 arctangents.
    """
    minors = np.empty(4)
    e2 = e3 = 0.0
    total = 1.0 / 16.0
    for a in range(4):
        b, c, d = (a + 1) % 4, (a + 2) % 4, (a + 3) % 4
        trivector(V, b, c, d, minors)
        e3 += np.dot(minors, minors)
        for b in range(a + 1, 4):
            e2 += wedge(1.0, 1.0, S[a, b]) ** 2
            total += angle(1.0, 1.0, S[a, b]) / (4.0 * TAU)
    for n in range(_AWAY.size):
        h = _AWAY[n]
        s = 1.0 - h
        whole = h * (h * (h * (h + 4.0 * s) + e2 * s * s) + e3 * s * s * s) + volume * s**4
        part = 0.0
        for a in range(4):
            for b in range(a + 1, 4):
                c, d = others(a, b)
                x = S[a, b]
                free = (1.0 - abs(x) + abs(x) * h) * (1.0 + s * abs(x))  # 1 − s²x², without its cancellation
                both = s * S[c, d] * free - s * s * (S[a, c] * S[a, d] + S[b, c] * S[b, d])
                both += s * s * s * x * (S[a, c] * S[b, d] + S[b, c] * S[a, d])
                part += x * math.atan2(both, math.sqrt(free * whole)) / math.sqrt(free)
        total += _WEIGHT[n] * part / TAU**2
    return total


@jitted
def orthant(S: FloatArray, m: int, V: FloatArray, volume: float) -> float:
    """P(g₁, …, g_m > 0) for m ≤ 4 directions that differ."""
    if m == 1:
        return 0.5
    if m == 4:
        return plackett(S, V, volume)
    angles = 0.0
    for a in range(m):
        for b in range(a):
            angles += angle(1.0, 1.0, S[a, b])
    return 0.25 + angles / TAU if m == 2 else 0.125 + angles / (2.0 * TAU)


@jitted
def edge(S: FloatArray, a: int, b: int, k: int, last: int) -> float:
    """Return K_ab, written so that it is right for a and b nearly parallel or opposite."""
    x, sign = S[a, b], (1.0 if S[a, b] >= 0.0 else -1.0)
    same = S[k, a] * S[last, a] + S[k, b] * S[last, b]
    apart = (S[k, a] - sign * S[k, b]) * (S[last, a] - sign * S[last, b])
    return sign * ((1.0 - abs(x)) * same - apart) / (TAU * wedge(1.0, 1.0, x))


@jitted
def corner(S: FloatArray, k: int, last: int) -> float:
    """E[g_k g_l 1{all four positive}] for directions in a plane: the two that bound the others' wedge count alone."""
    for a in range(4):
        for b in range(a + 1, 4):
            c, d = others(a, b)
            x = S[a, b]
            inside = min(
                min(S[c, a] - x * S[c, b], S[c, b] - x * S[c, a]), min(S[d, a] - x * S[d, b], S[d, b] - x * S[d, a])
            )
            if inside > 0.0:  # the other two are sums of a and b with positive coefficients
                return S[k, last] * (0.25 + angle(1.0, 1.0, x) / TAU) + edge(S, a, b, k, last)
    return 0.0


# -- the integrals -----------------------------------------------------------------------------------------------------


@jitted
def orthant4(C: FloatArray) -> float:
    """P(g₁, …, g₄ > 0) for the 4×4 covariance C."""
    S, V, at = np.empty((4, 4)), np.empty((4, 4)), np.empty(2)
    m = directions(C, 0, 1, 2, 3, S, at)
    if m == 0:
        return 0.0
    volume = factor(S, m, V)
    return orthant(S, m, V, volume)


@jitted
def relu_three(C: FloatArray, i: int, j: int, k: int) -> float:
    """J₃ = E[1{g_i > 0} 1{g_j > 0} g_k⁺] = Σ_p c_kp/√2π · P(the others are positive | g_p = 0)."""
    S, V, at = np.empty((4, 4)), np.empty((4, 4)), np.empty(2)
    m = directions(C, i, j, k, k, S, at)
    if m == 0:
        return 0.0
    size = math.sqrt(C[k, k] / TAU)
    if m < 3:
        return size if m == 1 else 0.5 * size * (1.0 + S[0, 1])
    root = math.sqrt(factor(S, 3, V))
    total = 0.0
    for p in range(3):
        q, r = (p + 1) % 3, (p + 2) % 3
        total += S[0, p] * (0.25 + math.atan2(S[q, r] - S[p, q] * S[p, r], root) / TAU)
    return size * total


@jitted
def relu_four(C: FloatArray, i: int, j: int, k: int, last: int) -> float:
    """I₄ = E[1{g_i > 0} 1{g_j > 0} g_k⁺ g_l⁺], l = `last`."""
    S, V, at = np.empty((4, 4)), np.empty((4, 4)), np.empty(2)
    m = directions(C, i, j, k, last, S, at)
    if m == 0:
        return 0.0
    p, q = int(at[0]), int(at[1])
    size = math.sqrt(C[k, k]) * math.sqrt(C[last, last])
    volume = factor(S, m, V)
    if m == 4 and flat(V):
        return size * corner(S, p, q)
    total = S[p, q] * orthant(S, m, V, volume)
    for a in range(m):
        for b in range(a + 1, m):
            share = 1.0 if m == 2 else 0.5
            if m == 4:
                c, d = others(a, b)
                share = 0.25 + turned(V, a, b, c, d, wedge(1.0, 1.0, S[a, b]) ** 2 * volume) / TAU
            total += edge(S, a, b, p, q) * share
    return size * total

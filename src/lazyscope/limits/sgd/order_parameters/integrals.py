"""Gaussian integrals of σ and σ′ for σ(u) = erf(κu), max(u, 0) and u²: what the order-parameter equations are made of.

Fields g = (g_1, …, g_n) have covariance C. With 1, 2, 3, 4 for the fields in the order of the arguments,

    E₁ = E σ(g₁)        I₂ = E σ(g₁)σ(g₂)             I₃ = E σ′(g₁) g₂ σ(g₃)        I₄ = E σ′(g₁)σ′(g₂)σ(g₃)σ(g₄)
    J₁ = E σ′(g₁) g₂    J₂ = E σ′(g₁)σ′(g₂)           J₃ = E σ′(g₁)σ′(g₂)σ(g₃)

For erf all are arcsines (Saad and Solla 1995, Appendix); for the square Isserlis' theorem gives polynomials. For ReLU,
Stein's lemma leaves orthant probabilities, which are arcsines in up to three dimensions; the one of four different
fields, in I₄, has no closed form and is Plackett's integral over one variable, taken by a double-exponential rule.
Importing this module loads numba.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import jitted

ERF, RELU, SQUARE = 0, 1, 2
_TAU = 2.0 * math.pi
_FLAT = 1e-14  # a conditional variance, relative to the variance itself, that is rounding


def _double_exponential() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights on (0, 1), as distances from 1: the rule that roots at the ends do not disturb."""
    t = np.arange(-33, 34) * 0.1
    q = np.exp(-np.pi * np.sinh(t))
    return q / (1.0 + q), 0.1 * np.pi * np.cosh(t) * q / (1.0 + q) ** 2


_AWAY, _WEIGHT = _double_exponential()


@jitted
def angle(a: float, b: float, c: float) -> float:
    """Return asin ρ of two fields with variances a and b and covariance c; 0 where one of them is constant."""
    size = math.sqrt(max(a, 0.0)) * math.sqrt(max(b, 0.0))
    return 0.0 if size == 0.0 else math.asin(min(1.0, max(-1.0, c / size)))


@jitted
def wedge(a: float, b: float, c: float) -> float:
    """Return √(ab − c²), 0 where rounding of c could have made it: fields within rounding of parallel are parallel."""
    rest = a * b - c * c
    return 0.0 if rest <= _FLAT * a * b else math.sqrt(rest)


# -- ReLU: orthants ----------------------------------------------------------------------------------------------------


@jitted
def orthant4(C: FloatArray) -> float:
    """P(g₁, …, g₄ > 0) for the 4×4 covariance C, by Plackett (1954).

    With ρ(s) = sρ off the diagonal, dP/ds = Σ_{a<b} ρ_ab/(2π√(1 − s²ρ_ab²)) (¼ + asin ρ_{cd·ab}(s)/2π), where c, d are
    the two other fields and ρ_{cd·ab} is their correlation given g_a = g_b = 0. The ¼ integrates to arcsines. Parallel
    fields are one; opposite ones are never both positive. 400 arcsines.
    """
    total = 1.0 / 16.0
    for a in range(4):
        for b in range(a + 1, 4):
            c = 0 if a > 0 else (1 if b > 1 else 2)
            d = 6 - a - b - c
            x = C[a, b] / math.sqrt(C[a, a] * C[b, b])
            if x >= 1.0 - _FLAT:
                angles = angle(C[a, a], C[c, c], C[a, c]) + angle(C[a, a], C[d, d], C[a, d])
                return 0.125 + (angles + angle(C[c, c], C[d, d], C[c, d])) / (2.0 * _TAU)
            if x <= _FLAT - 1.0:
                return 0.0
            total += math.asin(x) / (4.0 * _TAU)
    for a in range(4):
        for b in range(a + 1, 4):
            c = 0 if a > 0 else (1 if b > 1 else 2)
            d = 6 - a - b - c
            x = C[a, b] / math.sqrt(C[a, a] * C[b, b])
            ca, cb = C[a, c] / math.sqrt(C[a, a] * C[c, c]), C[b, c] / math.sqrt(C[b, b] * C[c, c])
            da, db = C[a, d] / math.sqrt(C[a, a] * C[d, d]), C[b, d] / math.sqrt(C[b, b] * C[d, d])
            cd = C[c, d] / math.sqrt(C[c, c] * C[d, d])
            part = 0.0
            for n in range(_AWAY.size):
                s = 1.0 - _AWAY[n]
                free = (1.0 - abs(x) + abs(x) * _AWAY[n]) * (1.0 + s * abs(x))  # 1 − s²x², without its cancellation
                both = s * cd * free - s * s * (ca * da + cb * db) + s * s * s * x * (ca * db + cb * da)
                one = free - s * s * (ca * ca + cb * cb) + 2.0 * s * s * s * x * ca * cb
                other = free - s * s * (da * da + db * db) + 2.0 * s * s * s * x * da * db
                part += _WEIGHT[n] * angle(one, other, both) / math.sqrt(free)
            total += x * part / _TAU**2
    return total


@jitted
def orthant(C: FloatArray, m: int) -> float:
    """P(g₁, …, g_m > 0) for the first m ≤ 4 fields of C."""
    if m == 1:
        return 0.5
    angles = 0.0
    for a in range(m):
        if C[a, a] <= 0.0:
            return 0.0
        for b in range(a):
            angles += angle(C[a, a], C[b, b], C[a, b])
    if m == 2:
        return 0.25 + angles / _TAU
    return 0.125 + angles / (2.0 * _TAU) if m == 3 else orthant4(C)


@jitted
def edge(C: FloatArray, p: int, q: int, r: int) -> float:
    """E[δ(g_p) 1{g_q > 0} 1{g_r > 0}]: an orthant of g_q and g_r given g_p = 0."""
    V = C[p, p]
    a, b = C[q, q] - C[p, q] ** 2 / V, C[r, r] - C[p, r] ** 2 / V
    a, b = (0.0 if a <= _FLAT * C[q, q] else a), (0.0 if b <= _FLAT * C[r, r] else b)
    return (0.25 + angle(a, b, C[q, r] - C[p, q] * C[p, r] / V) / _TAU) / math.sqrt(_TAU * V)


@jitted
def half_moment(C: FloatArray, m: int) -> float:
    """E[max(g₁, 0) 1{g₂ > 0} … 1{g_m > 0}] for the first m ≤ 3 fields of C, by Stein's lemma.

    A field of variance 0 stands for one that vanishes with the condition it is given: it is positive half of the time.
    """
    if C[0, 0] <= 0.0:
        return 0.0
    whole = math.sqrt(C[0, 0] / _TAU)
    if m == 1:
        return whole
    first = C[0, 1] / math.sqrt(_TAU * C[1, 1]) if C[1, 1] > 0.0 else 0.0
    if m == 2:
        return 0.5 * (whole + first)
    total = C[0, 0] * edge(C, 0, 1, 2)
    if C[1, 1] > 0.0:
        total += C[0, 1] * edge(C, 1, 0, 2)
    if C[2, 2] > 0.0:
        total += C[0, 2] * edge(C, 2, 0, 1)
    return total


@jitted
def chosen(C: FloatArray, i: int, j: int, k: int, last: int, S: FloatArray) -> int:
    """Write the covariance of the different fields among last, k, i, j (in this order) into S; return their number."""
    fields = (last, k, i, j)
    m = 0
    places = np.empty(4, dtype=np.int64)
    for field in fields:
        new = True
        for n in range(m):
            new = new and places[n] != field
        if new:
            places[m] = field
            m += 1
    for a in range(m):
        for b in range(m):
            S[a, b] = C[places[a], places[b]]
    return m


@jitted
def relu_four(C: FloatArray, i: int, j: int, k: int, last: int) -> float:
    """I₄ = E[1{g_i > 0} 1{g_j > 0} g_k⁺ g_l⁺], by Stein's lemma in g_k, with S the different ones of i, j, k, l:

    c_kl P(S) + Σ_{s ∈ S, s ≠ l} c_ks E[δ(g_s) g_l⁺ Π_{q ∈ S, q ≠ s, l} 1{g_q > 0}].
    """  # noqa: D400, D415
    S, given = np.empty((4, 4)), np.empty((3, 3))
    m = chosen(
        C, i, j, k, last, S
    )  # l = `last` is the first field of S, and k the second, or the first where they are the same
    for a in range(m):
        if S[a, a] <= 0.0:
            return 0.0
    at = 1 if k != last else 0
    total = S[at, 0] * orthant(S, m)
    for s in range(1, m):
        row = 0
        for a in range(m):
            if a == s:
                continue
            column = 0
            for b in range(m):
                if b == s:
                    continue
                value = S[a, b] - S[a, s] * S[b, s] / S[s, s]
                given[row, column] = 0.0 if a == b and value <= _FLAT * S[a, a] else value
                column += 1
            row += 1
        total += S[at, s] * half_moment(given, m - 1) / math.sqrt(_TAU * S[s, s])
    return total


# -- the integrals of all three ----------------------------------------------------------------------------------------


@jitted
def mean(kind: int, C: FloatArray, i: int) -> float:
    """E₁ = E σ(g_i)."""
    if kind == ERF:
        return 0.0
    return math.sqrt(C[i, i] / _TAU) if kind == RELU else C[i, i]


@jitted
def two(kind: int, C: FloatArray, i: int, j: int) -> float:
    """I₂ = E σ(g_i)σ(g_j). For erf C is 2κ² times the covariance, here and below."""
    a, b, c = C[i, i], C[j, j], C[i, j]
    if kind == ERF:
        return 2.0 / math.pi * math.asin(c / math.sqrt((1.0 + a) * (1.0 + b)))
    if kind == RELU:
        if i == j:
            return 0.5 * a
        return (wedge(a, b, c) + c * (0.5 * math.pi + angle(a, b, c))) / _TAU
    return a * b + 2.0 * c * c


@jitted
def slope(kind: int, C: FloatArray, i: int, j: int) -> float:
    """J₁ = E σ′(g_i) g_j."""
    if kind == ERF:
        return 0.0
    if kind == RELU:
        return C[i, j] / math.sqrt(_TAU * C[i, i]) if C[i, i] > 0.0 else 0.0
    return 2.0 * C[i, j]


@jitted
def slopes(kind: int, C: FloatArray, i: int, j: int) -> float:
    """J₂ = E σ′(g_i)σ′(g_j); for erf over 2κ²."""
    if kind == ERF:
        return 2.0 / (math.pi * math.sqrt((1.0 + C[i, i]) * (1.0 + C[j, j]) - C[i, j] ** 2))
    if kind == RELU:
        return 0.5 if i == j else 0.25 + angle(C[i, i], C[j, j], C[i, j]) / _TAU
    return 4.0 * C[i, j]


@jitted
def three(kind: int, C: FloatArray, i: int, j: int, k: int) -> float:
    """I₃ = E σ′(g_i) g_j σ(g_k)."""
    if kind == ERF:
        free = (1.0 + C[i, i]) * (1.0 + C[k, k]) - C[i, k] ** 2
        return 2.0 / math.pi * (C[j, k] - C[i, j] * C[i, k] / (1.0 + C[i, i])) / math.sqrt(free)
    if kind == RELU:
        if i == k:
            return 0.5 * C[i, j]
        if C[i, i] <= 0.0:
            return 0.0
        edge_part = wedge(C[i, i], C[k, k], C[i, k]) / (_TAU * C[i, i])
        return C[i, j] * edge_part + C[j, k] * (0.25 + angle(C[i, i], C[k, k], C[i, k]) / _TAU)
    return 2.0 * (C[i, j] * C[k, k] + 2.0 * C[i, k] * C[j, k])


@jitted
def slopes_one(kind: int, C: FloatArray, i: int, j: int, k: int) -> float:
    """J₃ = E σ′(g_i)σ′(g_j)σ(g_k)."""
    if kind == ERF:
        return 0.0
    if kind == RELU:
        S = np.empty((4, 4))
        m = chosen(C, i, j, k, k, S)
        for a in range(1, m):
            if S[a, a] <= 0.0:
                return 0.0
        return half_moment(S, m)
    return 4.0 * (C[i, j] * C[k, k] + 2.0 * C[i, k] * C[j, k])


@jitted
def four(kind: int, C: FloatArray, i: int, j: int, k: int, last: int) -> float:
    """I₄ = E σ′(g_i)σ′(g_j)σ(g_k)σ(g_l), l = `last`; for erf over 2κ²."""
    if kind == ERF:
        p, q, c = 1.0 + C[i, i], 1.0 + C[j, j], C[i, j]
        free = p * q - c * c
        ik, jk, il, jl = C[i, k], C[j, k], C[i, last], C[j, last]
        both = free * C[k, last] - jk * jl * p - ik * il * q + c * (ik * jl + il * jk)
        one = free * (1.0 + C[k, k]) - jk * jk * p - ik * ik * q + 2.0 * c * ik * jk
        other = free * (1.0 + C[last, last]) - jl * jl * p - il * il * q + 2.0 * c * il * jl
        return 4.0 / math.pi**2 * angle(one, other, both) / math.sqrt(free)
    if kind == RELU:
        return relu_four(C, i, j, k, last)
    ij, kl = C[i, j], C[k, last]
    pairs = C[i, k] * C[j, k] * C[last, last] + C[i, last] * C[j, last] * C[k, k]
    crossed = C[i, k] * C[j, last] + C[i, last] * C[j, k]
    return 4.0 * (ij * (C[k, k] * C[last, last] + 2.0 * kl * kl) + 2.0 * pairs + 4.0 * kl * crossed)

"""Newton's method on the equations of the margin, as machine code: a few microseconds a point.

Along each eigenvector the maximiser of the margin is a = R√(λψ)(v√α − g)/(λ + t), g ~ N(0, 1): t ≥ 0 comes from the
multiplier of its norm, v weighs the direction of the score. With μ = κ/c₂ and ρ = c₁/c₂ the four equations of `margin`
are three, for (μ, v, t), and an explicit norm (docs/max-margin.md):

    P₀ = ψA,     F C = √ψ A,     E₁ C = ψA v(1 − B),       ρ = vB/C,    C² = (A + tA′) + v²(B + tB′ − B²),

A(t) and B(t) from `spectrum`; P₀ = P(x > 0), F² = E[x₊²] and E₁ = E[x₊T] for x = μ − ρT − Z from `loss`.
They are the conditions of a concave maximisation, so that a solution with t > 0 and μ > 0 is its maximum: there is no
other for Newton's method to find.
"""

from __future__ import annotations

import math

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.margin.loss import loss, wrong
from lazyscope.limits.margin.spectrum import averages
from lazyscope.numerics.compiled import jitted

TOLERANCE = 1e-12
_ROUNDING = 1e-14
_MOST_STEPS = 60
_MOST_DESCENTS = 400


@jitted
def equations(
    mu: float,
    v: float,
    t: float,
    psi: float,
    law: FloatArray,
    points: FloatArray,
    T: FloatArray,
    p: FloatArray,
    M: FloatArray,
) -> float:
    """Write the three equations, each over its own size, and their slopes by (μ, v, t) into M, (4, 4).

    Its last row holds P₀, E₀, E₁ and F², which the results need once more. Return the largest residual, infinity
    outside the domain.
    """
    A, A1, a, a1, B, B1, spread, spread1, hidden = averages(t, law, points)
    C2 = a + v * v * spread
    if not (C2 > 0.0 and A > 0.0):
        return math.inf
    C = math.sqrt(C2)
    Cv, Ct = v * spread / C, 0.5 * (a1 + v * v * spread1) / C
    rho = v * B / C
    rho_v, rho_t = B * a / (C2 * C), v * B1 / C - rho * Ct / C
    P0, E0, E1, F2, Q0, Q1, P1, P2 = loss(mu, rho, T, p)
    if not F2 > 0.0:
        return math.inf
    M[3, 0], M[3, 1], M[3, 2], M[3, 3] = P0, E0, E1, F2
    F, root = math.sqrt(F2), math.sqrt(psi)
    size, size1 = psi * A, A1 / A
    M[0, 0] = Q0 / size
    M[0, 1] = -Q1 * rho_v / size
    M[0, 2] = -Q1 * rho_t / size - P0 / size * size1
    M[0, 3] = P0 / size - 1.0
    scale = C * root / size
    M[1, 0] = E0 / F * scale
    M[1, 1] = (-E1 * rho_v / F + F * Cv / C) * scale
    M[1, 2] = (-E1 * rho_t / F + F * (Ct / C - size1)) * scale
    M[1, 3] = F * scale - 1.0
    M[2, 0] = P1 * scale
    M[2, 1] = (-P2 * rho_v + E1 * Cv / C) * scale - root * hidden
    M[2, 2] = (-P2 * rho_t + E1 * (Ct / C - size1)) * scale + root * v * B1
    M[2, 3] = E1 * scale - root * v * hidden
    return float(max(abs(M[0, 3]), abs(M[1, 3]), abs(M[2, 3])))


@jitted
def _step(M: FloatArray) -> tuple[float, float, float]:
    """Solve M[:, :3]·step = −M[:, 3] by elimination with row exchanges, rows scaled by their largest entry."""
    for i in range(3):
        row = 1.0 / max(abs(M[i, 0]), abs(M[i, 1]), abs(M[i, 2]))
        for j in range(4):
            M[i, j] *= row
    for j in range(2):
        best = j
        for i in range(j + 1, 3):
            if abs(M[i, j]) > abs(M[best, j]):
                best = i
        for k in range(j, 4):
            M[j, k], M[best, k] = M[best, k], M[j, k]
        for i in range(j + 1, 3):
            factor = M[i, j] / M[j, j]
            for k in range(j, 4):
                M[i, k] -= factor * M[j, k]
    third = -M[2, 3] / M[2, 2]
    second = -(M[1, 3] + M[1, 2] * third) / M[1, 1]
    return -(M[0, 3] + M[0, 1] * second + M[0, 2] * third) / M[0, 0], second, third


@jitted
def newton(y: FloatArray, psi: float, law: FloatArray, points: FloatArray, T: FloatArray, p: FloatArray) -> bool:
    """Improve y = (μ, v, t) in place by damped Newton steps that keep t > 0; tell whether it is a solution.

    The four entries of y behind these become P₀, E₀, E₁ and F² there.
    """
    M = np.empty((4, 4))
    mu, v, t, size = y[0], y[1], y[2], math.inf
    mu_step = v_step = t_step = length = 0.0
    halvings = steps = 0
    while steps < _MOST_STEPS and halvings < 8:
        now = equations(mu + length * mu_step, v + length * v_step, t + length * t_step, psi, law, points, T, p, M)
        if not now < (1.0 - 1e-4 * length) * size:  # at the end of the halvings: rounding is reached, or all is lost
            halvings += 1
            length *= 0.5
            continue
        mu, v, t, size = mu + length * mu_step, v + length * v_step, t + length * t_step, now
        for j in range(4):
            y[3 + j] = M[3, j]
        if size < _ROUNDING:
            break
        mu_step, v_step, t_step = _step(M)
        length = 1.0 if t + t_step > 0.1 * t else -0.9 * t / t_step
        steps, halvings = steps + 1, 0
    if size < TOLERANCE and mu > 0.0 and t > 0.0:
        y[0], y[1], y[2] = mu, v, t
        return True
    return False


@jitted
def descend(
    y: FloatArray, psi: float, widest: float, law: FloatArray, points: FloatArray, T: FloatArray, p: FloatArray
) -> bool:
    """Solve from nothing: where ψ is so large that the solution is explicit, then along ψ down to where it is wanted.

    There t ≈ ψ⟨λ⟩ outgrows every eigenvalue (`widest` is the largest, 1 the mean) and all data are support vectors.
    A step in log ψ that fails is halved: above the threshold the solution is unique and smooth in ψ.
    """
    there = here = max(psi, 10.0 * widest)
    A, _, a, _, _, _, _, _, _ = averages(here, law, points)
    mean = 0.0
    for k in range(T.size):
        mean += p[k] * T[k]
    y[0], y[1], y[2] = A * math.sqrt(here / a), mean / math.sqrt(here), here
    trial, ratio, started = np.empty(7), 0.25, False
    for _ in range(_MOST_DESCENTS):
        trial[0], trial[1], trial[2] = y[0], y[1], y[2] * there / here
        if newton(trial, there, law, points, T, p):
            for j in range(y.size):  # numba takes seconds to compile an assignment to a slice
                y[j] = trial[j]
            if there <= psi:
                return True
            here, started = there, True
            ratio = max(0.1, ratio * ratio)
        else:
            ratio = math.sqrt(ratio)
            if not started or ratio > 1.0 - 1e-9:
                return False
        there = max(psi, here * ratio)
    return False


@jitted
def threshold(seen: float, c: float, T: FloatArray, p: FloatArray) -> tuple[float, float, float]:
    """Return min over c of E[(c√b T + √(1 + c²(1−b)) Z)₋²], b = r² what features see, its ρ and its c.

    Data are separable when ψ exceeds it. The square root is convex in c; Newton's method, kept in a bracket, finds
    where its slope vanishes, starting from `c`. Where there is no noise it never does: the minimum is 0, at infinity.
    """
    low, high, root, hidden = 0.0, math.inf, math.sqrt(seen), 1.0 - seen
    value = rho = 0.0
    for _ in range(200):
        s = math.sqrt(1.0 + c * c * hidden)
        rho = c * root / s
        P0, _, E1, F2, _, Q1, _, P2 = loss(0.0, rho, T, p)
        value = s * s * F2
        slope = c * hidden * P0 - root * s * E1
        rho_c = root / (s * s * s)
        curvature = hidden * (P0 - c * Q1 * rho_c) - root * (c * hidden / s * E1 - s * P2 * rho_c)
        if slope > 0.0:
            high = c
        else:
            low = c
        if c > 1e7:
            return value, rho, c
        following = c - slope / curvature
        if not low < following < high:
            following = 2.0 * c + 1.0 if high == math.inf else 0.5 * (low + high)
        if abs(following - c) <= 1e-9 * (1.0 + c):
            return value, rho, c
        c = following
    return value, rho, c


@jitted
def results(
    y: FloatArray, psi: float, seen: float, law: FloatArray, points: FloatArray, T: FloatArray, p: FloatArray,
    out: FloatArray,
) -> float:  # fmt: skip
    """Write the columns of a solution into `out` (`curve` names them); return ρ, which the rule for T must resolve."""
    mu, v, t = y[0], y[1], y[2]
    _, A1, a, _, B, B1, spread, _, _ = averages(t, law, points)
    C, norm = math.sqrt(a + v * v * spread), math.sqrt(-A1 - v * v * B1)
    c1, c2, rho = v * B / norm, C / norm, v * B / C
    P0, E0, E1, F = y[3], y[4], y[5], math.sqrt(y[6])
    D, slope = -(E1 + rho * P0) / F, P0 / (F * c2)  # ∂₁F − c₁∂₂F/c₂ and ∂₂F/c₂
    total = c1 * c1 + c2 * c2
    first = abs(c1 + D / slope * B) / math.sqrt(total)
    second = abs((D * D * (spread + B * B) + psi * a) / (slope * slope) - total) / total
    third = abs(-(D * D * B1 + psi * A1) / (slope * slope) - 1.0)
    fourth = abs(mu * E0 / F - t * slope / c2) / F
    out[0], out[1] = wrong(rho, T, p), mu * c2
    out[2] = c1 / math.sqrt(seen * total) if seen > 0.0 else 0.0
    out[4], out[5] = P0, max(first, second, third, fourth)
    return float(c1 / c2)


@jitted
def curve(
    psi: FloatArray,
    widest: FloatArray,
    law: FloatArray,
    points: FloatArray,
    T: FloatArray,
    p: FloatArray,
    y: FloatArray,
    out: FloatArray,
    status: FloatArray,
    steepness: FloatArray,
) -> None:
    """Solve every point: from its own row of y where t > 0, else from its neighbours' solutions, else from nothing.

    Columns of `out` are the error, κ in units of the mean eigenvalue's root, the alignment, r (what the features see),
    the share of support vectors and the relative residual of the four equations. `status` becomes 1 (solved), 0 (not
    separable) or −1 (neither); `steepness` is the ρ that the rule for T had to resolve.
    """
    last, run, c = -1, 0, 1.0  # the last one solved, how many in a row, and where the threshold was last found
    for k in range(psi.size):
        seen = min(1.0, averages(0.0, law[k], points)[4])
        out[:, k] = 0.0
        out[0, k], out[3, k] = 0.5, math.sqrt(seen)
        solved = False
        for guess in range(2):
            if guess and last >= 0 and not solved:
                for j in range(3):  # a polynomial through the last six or three, where they are neighbours of this one
                    if run > 5:
                        near = y[last, j] + y[last - 4, j] - 2.5 * (y[last - 1, j] + y[last - 3, j])
                        y[k, j] = 6.0 * near + 20.0 * y[last - 2, j] - y[last - 5, j]
                    elif run > 2:
                        y[k, j] = 3.0 * (y[last, j] - y[last - 1, j]) + y[last - 2, j]
                    else:
                        y[k, j] = y[last, j]
            if y[k, 2] > 0.0 and not solved:
                solved = newton(y[k], psi[k], law[k], points, T, p)
        if not solved:
            least, steepness[k], c = threshold(seen, c, T, p)
            if psi[k] <= least:
                status[k], run = 0.0, 0
                continue
            solved = descend(y[k], psi[k], widest[k], law[k], points, T, p)
        status[k] = 1.0 if solved else -1.0
        run = run + 1 if solved else 0
        if solved:
            last = k
            steepness[k] = results(y[k], psi[k], seen, law[k], points, T, p, out[:, k])

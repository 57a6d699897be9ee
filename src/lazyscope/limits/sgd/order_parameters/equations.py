"""The right-hand side: how the overlaps of N neurons move at each step of SGD, in expectation, as d → ∞.

Fields g = (λ_1, …, λ_N, z_1, …, z_r) have covariance C = ((Q, R), (Rᵀ, I)), and the residual is

    ρ = Σ_k D_k σ(g_k) + k − ε,      D = (a, −b),   k = c + E h,   ε ~ N(0, τ²).

In time t = steps/d, for the step w_i ← w_i − (η/√d) ρ a_i σ′(λ_i) x (Saad and Solla 1995, Eqs. 9 and 10),

    dR_im/dt = −η a_i E[ρσ′_i z_m]
    dQ_ij/dt = −η a_i E[ρσ′_i λ_j] − η a_j E[ρσ′_j λ_i] + η² a_i a_j E[ρ²σ′_iσ′_j]
    da_i/dt  = −η E[ρσ_i],      dc/dt = −η E[ρ],

the latter where they are trained. Importing this module loads numba.
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.sgd.order_parameters.integrals import four, mean, slope, slopes, slopes_one, three, two
from lazyscope.numerics.compiled import jitted


@jitted
def covariance(state: FloatArray, N: int, r: int, scale: float) -> FloatArray:
    """Return `scale` times the covariance of the fields, from (Q, R, …) in a row."""
    C = np.zeros((N + r, N + r))
    for i in range(N):
        for j in range(N):
            C[i, j] = 0.5 * scale * (state[i * N + j] + state[j * N + i])
        for m in range(r):
            C[i, N + m] = C[N + m, i] = scale * state[N * N + i * r + m]
    for m in range(r):
        C[N + m, N + m] = scale
    return C


@jitted
def squared_error(kind: int, C: FloatArray, D: FloatArray, k: float) -> float:
    """E[(f̂ − f)²] = Σ_kl D_kD_l I₂(k, l) + 2k Σ_k D_k E₁(k) + k²: (N + r)²/2 arcsines."""
    total = k * k
    for p in range(D.size):
        total += 2.0 * k * D[p] * mean(kind, C, p)
        for q in range(p + 1):
            total += (2.0 - (p == q)) * D[p] * D[q] * two(kind, C, p, q)
    return total


@jitted
def rates(
    kind: int, state: FloatArray, b: FloatArray, N: int, scale: float, noise: float, step: float,
    trained: int, free: int,
) -> FloatArray:  # fmt: skip
    """Return d(Q, R, a, k)/d(ηt) in a row; `step` is η, 0 for the flow; `trained` and `free` say whether a and c move.

    N²(N + r)²/4 arcsines for erf, in no memory but C. For erf C is 2κ² times the covariance, `scale` being 2κ².
    """
    r = b.size
    n = N + r
    C = covariance(state, N, r, scale)
    a, k = state[N * n : N * n + N], state[N * n + N]
    D = np.empty(n)
    for p in range(n):  # numba takes seconds to compile an assignment to a slice
        D[p] = a[p] if p < N else -b[p - N]
    out = np.zeros(state.size)
    drift = np.empty((N, n))
    for i in range(N):
        for j in range(n):
            total = k * slope(kind, C, i, j)
            for p in range(n):
                total += D[p] * three(kind, C, i, j, p)
            drift[i, j] = a[i] * total
        for m in range(r):
            out[N * N + i * r + m] = -drift[i, N + m]
    for i in range(N):
        for j in range(i, N):
            value = -drift[i, j] - drift[j, i]
            if step > 0.0:
                total = (k * k + noise * noise) * slopes(kind, C, i, j)
                for p in range(n):
                    total += 2.0 * k * D[p] * slopes_one(kind, C, i, j, p)
                    for q in range(p + 1):
                        total += (2.0 - (p == q)) * D[p] * D[q] * four(kind, C, i, j, p, q)
                value += step * a[i] * a[j] * total * (scale if kind == 0 else 1.0)
            out[i * N + j] = out[j * N + i] = value
    if trained:
        for i in range(N):
            total = k * mean(kind, C, i)
            for p in range(n):
                total += D[p] * two(kind, C, i, p)
            out[N * n + i] = -total
    if free:
        total = k
        for p in range(n):
            total += D[p] * mean(kind, C, p)
        out[N * n + N] = -total
    return out

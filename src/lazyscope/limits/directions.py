"""What each regime learns of every eigendirection of B, σ = u², N/d → ρ: the terms that Theorems 1 to 3 sum up.

A quadratic form G is learnt. G_ii = ⟨u_i, Gu_i⟩ is what it has along the eigenvector u_i of B, eigenvalue b_i, and
‖(B − G)u_i‖² what is missed there; Σ_i ‖(B − G)u_i‖²/‖B‖² is the risk. With b̄ = Tr B/d, m = ‖B‖²/d:

    RF, G = aΣw_jw_jᵀ:     G_ii = aρ,                       missed b_i² − 2aρb_i + a²(ρ + ρ²),       a = b̄/(1+ρ),
    NT, B − G = P⊥BP⊥:     G_ii = (1−q²)b_i − q(1−q)b̄,      missed q³b_i² + 2q²(1−q)b̄b_i + q²(1−q)m + q(1−q)(1−2q)b̄²,
    NN:                    G_ii = b_i or 0,                 missed 0 or b_i²: the N largest b_i are learnt,

with q = (1−ρ)₊. P⊥ projects on a random subspace: free of B, with the cumulants q, q(1−q), q(1−q)(1−2q) of its law, and
the sums over non-crossing partitions of P⊥BP⊥ and of P⊥BP⊥BP⊥ are the lines above. So RF has learnt the same of every
direction, NT the same share of every direction, and NN the principal ones.

At given N and d the means over drawn weights are known, too: those of NT exactly, as the moments of a random projector
are (`projected`), those of RF by deterministic equivalents (`features_at`).
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.spectral.equivalent import Spectrum, risks


def random_features(b: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
    """Return G_ii and ‖(B − G)u_i‖² of random features.

    >>> learnt, missed = random_features(np.array([0.0, 2.0]), 1.0)
    >>> print(learnt, missed)
    [0.5 0.5] [0.5 2.5]
    """
    a = float(np.mean(b)) / (1.0 + rho)
    return np.full_like(b, a * rho), b**2 - 2.0 * a * rho * b + a**2 * (rho + rho**2)


def neural_tangent(b: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
    """Return G_ii and ‖(B − G)u_i‖² of the tangent model.

    >>> learnt, missed = neural_tangent(np.array([0.0, 2.0]), 0.5)
    >>> print(learnt, missed)
    [-0.25  1.25] [0.25 1.25]
    """
    q, mean, square = max(1.0 - rho, 0.0), float(np.mean(b)), float(np.mean(b**2))
    spread = q * (1.0 - q)
    missed = q**3 * b**2 + spread * (2.0 * q * mean * b + q * square + (1.0 - 2.0 * q) * mean**2)
    return (1.0 - q**2) * b - spread * mean, missed


def trained(b: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
    """Return G_ii and ‖(B − G)u_i‖² of the trained network, b ≥ 0.

    >>> trained(np.array([0.0, 2.0]), 0.5)
    (array([0., 2.]), array([0., 0.]))
    """
    kept = np.zeros(b.size, dtype=bool)
    kept[np.argsort(-b, kind="stable")[: round(rho * b.size)]] = True
    return np.where(kept, b, 0.0), np.where(kept, 0.0, b**2)


def projected(b: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """Return the diagonals of E[PBP] and E[PBPBP], P on a random subspace of this dimension, B = diag(b): exact.

    E[P_ijP_kl] and E[P_ijP_klP_mn] do not change with the basis and are sums over pairings of their indices, with one
    coefficient for each kind: a₂ where every P keeps its own pair, c₂ where two of them mix; a₃, c₃ and d₃ where none,
    two or all three do. Traces, Tr P = m, and PP = P fix them:

        a₂d + 2c₂ = m²/d,      a₂ + (d + 1)c₂ = m/d,
        a₃d + 4c₃ = ma₂,       c₃d + 4d₃ = mc₂,         2c₃ + (d + 2)d₃ = c₂.

    With T = Tr B and S = Tr B² the pairings give

        E[PBP]   = (a₂ + c₂)B + c₂T,
        E[PBPBP] = a₃B² + c₃(3B² + 2TB + S) + d₃(4B² + 2TB + T² + S).

    >>> once, twice = projected(np.array([3.0, 1.0]), 1)  # P = uuᵀ: E[⟨u, Bu⟩u₁²] = (3·3 + 1)/8
    >>> once, bool(np.isclose(twice.sum(), np.mean([(2.0 + np.cos(x)) ** 2 for x in np.arange(64) * np.pi / 32])))
    (array([1.25, 0.75]), True)
    """
    d, m = float(b.size), float(rank)
    if rank == b.size or b.size == 1:
        return (b, b**2) if rank else (0.0 * b, 0.0 * b)
    c2 = m * (d - m) / (d * (d - 1.0) * (d + 2.0))
    a2 = m / d - (d + 1.0) * c2
    c3, d3 = np.linalg.solve([[d, 4.0], [2.0, d + 2.0]], [m * c2, c2]) if d > 2 else (0.5 * c2 * m, 0.0)
    a3 = (m * a2 - 4.0 * c3) / d
    T, S = float(np.sum(b)), float(np.sum(b**2))
    once = (a2 + c2) * b + c2 * T
    twice = a3 * b**2 + c3 * (3.0 * b**2 + 2.0 * T * b + S) + d3 * (4.0 * b**2 + 2.0 * T * b + T * T + S)
    return np.asarray(once), np.asarray(twice)


def features_at(b: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
    """Return the means of G_ii and ‖(B − G)u_i‖² over N isotropic random features, σ = u² − 1, no limit in d.

    As a function of x a feature is √2⟨w, Mw⟩ along each form M without a trace, ‖M‖ = 1, ‖w‖²√(2/d) along the trace,
    (‖x‖² − d)/√(2d), and ‖w‖² − 1 along the constant. Their kernel has the eigenvalue ξ = 4/d², d(d+1)/2 − 1 times, and
    those of the matrix of the last two, [[(1 + 2/d), √(2/d)], [√(2/d), 1]]·2/d. What is left of an eigenspace is in the
    mean the share s, and varies by s(1 − s)Q in each of its directions, Q = Σβ²s(1 − s)/(N − df₂) (`equivalent`): so

        E[B − G] = s(B − b̄I) + s_T b̄I,      E[(B − G)²] = E[B − G]² + ‖B‖²(v((d+1)/2 − 1/d) + v_T/d)I.

    >>> learnt, missed = features_at(np.array([0.0, 2.0]), 1e9)  # as many as there are forms
    >>> bool(np.allclose(learnt, [0.0, 2.0])), bool(np.allclose(missed, 0.0))
    (True, True)
    """
    d, mean, size = b.size, float(np.mean(b)), float(np.sum(b**2))
    root = np.sqrt(2.0 / d)
    pair, vectors = np.linalg.eigh(2.0 / d * np.array([[1.0 + 2.0 / d, root], [root, 1.0]]))
    tau = d * mean**2 / size
    xi, many = np.append(pair, 4.0 / d**2), np.array([1.0, 1.0, 0.5 * d * (d + 1) - 1.0])
    along = vectors[0] ** 2  # of the trace in the two eigenvectors
    beta2 = np.append(tau * along, 1.0 - tau)
    spectrum = Spectrum(xi, many, beta2)
    learnt = risks(spectrum, 0.0, np.array([width]), np.array([np.inf]), np.zeros(1), degrees=3)["learnt"][0]
    s = 1.0 - learnt
    unused = max(width - float(many @ learnt**2), 1e-300)
    varies = s * learnt * float(beta2 @ (s * learnt)) / unused
    left = s[2] * (b - mean) + float(along @ s[:2]) * mean
    spread = varies[2] * (0.5 * (d + 1) - 1.0 / d) + float(along @ varies[:2]) / d
    return b - left, left**2 + size * spread

"""What each regime learns of every eigendirection of B, σ = u², N/d → ρ: the terms that Theorems 1 to 3 sum up.

A quadratic form G is learnt. G_ii = ⟨u_i, Gu_i⟩ is what it has along the eigenvector u_i of B, eigenvalue b_i, and
‖(B − G)u_i‖² what is missed there; Σ_i ‖(B − G)u_i‖²/‖B‖² is the risk. With b̄ = Tr B/d, m = ‖B‖²/d:

    RF, G = aΣw_jw_jᵀ:     G_ii = aρ,                       missed b_i² − 2aρb_i + a²(ρ + ρ²),       a = b̄/(1+ρ),
    NT, B − G = P⊥BP⊥:     G_ii = (1−q²)b_i − q(1−q)b̄,      missed q³b_i² + 2q²(1−q)b̄b_i + q²(1−q)m + q(1−q)(1−2q)b̄²,
    NN:                    G_ii = b_i or 0,                 missed 0 or b_i²: the N largest b_i are learnt,

with q = (1−ρ)₊. P⊥ projects on a random subspace: free of B, with the cumulants q, q(1−q), q(1−q)(1−2q) of its law, and
the sums over non-crossing partitions of P⊥BP⊥ and of P⊥BP⊥BP⊥ are the lines above. So RF has learnt the same of every
direction, NT the same share of every direction, and NN the principal ones.
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray


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

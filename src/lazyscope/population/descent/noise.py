"""The noise of a step of SGD for the tangent model with σ = u²: a moment of Gaussian quadratic forms, no sample drawn.

The covariance of a step is (4ε²/m)·E[r²φφᵀ]. It is (4ε²/m)·L·S, S = E[φφᵀ], where r² and φφᵀ are independent; else what
small steps add to the risk is (ε/m)·E[r²‖φ‖²], and

    κ = E[r²‖φ‖²] / (E[r²] E[‖φ‖²])

is the factor by which that differs. For σ = u² both are polynomials, with M = WᵀW,

    ‖φ‖² = (4/N)⟨x,Mx⟩‖x‖² + 1,     r = m − c − Tr BC + ⟨x,(B − G)x⟩,     G = Σ_i(w_ia_iᵀ + a_iw_iᵀ),

in an environment where x ~ N(0, C). Quadratic forms have the joint cumulants

    κ(A,B) = 2Tr(ACBC),   κ(A,B,D) = 8Tr(ACBCDC),   κ(A,B,D,E) = 16[Tr(ABDE) + Tr(ABED) + Tr(ADBE)], C after each,

and E[r²⟨x,Mx⟩‖x‖²] is their sum over the partitions of the four factors (McCullagh 1987, §3.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics import matrices
from lazyscope.population.environment import Environment


def noise_factor(world: Sequence[Environment], W: FloatArray, a: FloatArray, c: float, N: int) -> float:
    """Return κ of c + Σ 2⟨w_i,x⟩⟨a_i,x⟩, rows of W and a: some ten products of d×d matrices an environment.

    The target is a quadratic form or a label: no environment has a function of few directions. `N` is the width that
    divides ‖φ‖², more than the rows of W where these stand for more neurons.

    >>> weights = np.eye(3)
    >>> noise_factor([Environment(1.0, np.ones(3), 1.0)], weights, 0.0 * weights, 0.0, 3)  # r = 1
    1.0
    >>> target = Environment(1.0, np.ones(3), 0.0, np.array([1.0, 0.0, -1.0]))  # E[r²‖x‖⁴] = (d + 4)(d + 6)E[r²]
    >>> round(noise_factor([target], 1e6 * weights, 0.0 * weights, 0.0, 3), 6) == round(7 * 9 / (3 * 5), 6)
    True
    """
    G, M = W.T @ a, W.T @ W
    G = G + G.T
    squares = lengths = both = 0.0
    for here in world:
        p, scale = here.probability, 4.0 / N
        B = np.zeros(len(M)) if here.B is None else here.B
        mean = here.m - c - matrices.inner(G, here.C)  # Tr BC is in the target already
        R = matrices.rows_times((np.diag(B) if B.ndim == 1 else B) - G, here.C)
        Q = matrices.rows_times(M, here.C)
        C = np.diag(here.C) if here.C.ndim == 1 else here.C
        RR, RQ, QC = R @ R, R @ Q, matrices.rows_times(Q, here.C)
        q, z, rr, qz = np.trace(Q), np.trace(C), 2.0 * np.trace(RR), 2.0 * np.trace(QC)
        rq, rz = 2.0 * np.trace(RQ), 2.0 * matrices.inner(R, C)
        rqz, rrz, rrq = 8.0 * np.vdot(RQ.T, C), 8.0 * np.vdot(RR.T, C), 8.0 * np.vdot(RR.T, Q)
        rrqz = 16.0 * (np.vdot(RR.T, QC + C @ Q) + np.vdot(RQ.T, R @ C))
        square, length = mean**2 + rr, scale * (q * z + qz) + 1.0
        product = mean**2 * (q * z + qz) + 2.0 * mean * (q * rz + z * rq + rqz)
        product += q * z * rr + q * rrz + z * rrq + rrqz + rr * qz + 2.0 * rq * rz
        squares += p * square
        lengths += p * length
        both += p * (scale * product + square)
    return float(both / (squares * lengths))

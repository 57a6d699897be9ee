"""Conjugate gradients for what is wanted here: the energy ⟨b, K⁺b⟩, with an estimate of what is still missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.progress import report

_DELAY = 4
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Solution:
    """2⟨b,x⟩ − ⟨x,Kx⟩ ≈ ⟨b,K⁺b⟩, the relative residual ‖b − Kx‖/‖b‖, and the number of products with K.

    That form of the energy is what the model with parameters x explains: it errs in second order, and below.
    """

    energy: float
    residual: float
    iterations: int


def solve(
    apply: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    scale: FloatArray | float = 1.0,
    most: int = 5000,
) -> Solution:
    """Solve K x = b for K ⪰ 0, b in its range, with the diagonal preconditioner `scale` (Hestenes & Stiefel).

    Step j adds α_j⟨r_j, z_j⟩ to the energy, so that what the last four steps added bounds, for a linearly
    convergent iteration, what is still missing; it stops when that falls below 1e-12 of the whole.
    """
    x, r = np.zeros_like(b), b.copy()
    z = scale * r
    p = z.copy()
    rho = float(np.vdot(r, z))
    gains: list[float] = []
    while rho > 0.0:
        Kp = apply(p)
        curvature = float(np.vdot(p, Kp))
        if curvature <= 0.0:  # the direction left is rounding error in the null space of K
            break
        alpha = rho / curvature
        x += alpha * p
        r -= alpha * Kp
        gains.append(alpha * rho)
        if len(gains) >= _DELAY and sum(gains[-_DELAY:]) <= TOLERANCE * sum(gains):
            break
        if len(gains) == most:
            raise NotConverged(
                f"Conjugate gradients still gained {sum(gains[-_DELAY:]) / sum(gains):.1e} of the energy in the "
                f"last {_DELAY} of {most} steps (tolerance {TOLERANCE:.0e}): the tangent kernel is too "
                "ill-conditioned, as for a very smooth activation or weights that are nearly parallel. "
                "Use a smaller width or a less smooth activation."
            )
        if len(gains) % 10 == 0:
            report(len(gains), 0, f"conjugate gradients, step {len(gains)}")
        z = scale * r
        rho, previous = float(np.vdot(r, z)), rho
        p *= rho / previous
        p += z
    size = float(np.linalg.norm(b))
    residual = float(np.linalg.norm(r)) / size if size else 0.0
    return Solution(float(np.vdot(b, x) + np.vdot(x, r)), residual, len(gains))  # ⟨x,Kx⟩ = ⟨x,b⟩ − ⟨x,r⟩

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
RESIDUAL = 1e-4
"""The largest relative residual of a result. The energy errs in its square, over the smallest eigenvalue that counts;
where the last steps gained 1e-12 of the energy it is 1e-6 times the root of an effective condition number, seen to be
below 1e-5 for the kernels here."""

_SOLVED = 1e-14  # relative residual at which what is left of b is rounding error
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Solution:
    """2⟨b,x⟩ − ⟨x,Kx⟩ ≈ ⟨b,K⁺b⟩, the relative residual ‖b − Kx‖/‖b‖, and the number of products with K.

    That form of the energy is what the model with parameters x explains: it errs in second order, and below.
    `sensitivity`, ‖K‖‖x‖², is how far errors of K move the energy, over their size relative to ‖K‖; `cut` what a
    direct solution may have lost with the eigenvalues that it left out.
    """

    energy: float
    residual: float
    iterations: int
    sensitivity: float = 0.0
    cut: float = 0.0


def solve(
    apply: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    scale: FloatArray | float = 1.0,
    most: int = 5000,
) -> Solution:
    """Solve K x = b for K ⪰ 0, b in its range, with the diagonal preconditioner `scale` (Hestenes & Stiefel).

    Step j adds α_j⟨r_j, z_j⟩ to the energy, so that what the last four steps added bounds, for a linearly
    convergent iteration, what is still missing; it stops when that falls below 1e-12 of the whole and the residual
    below its tolerance. A singular K is no obstacle while b is in its range: x stays there. But once the residual is
    rounding error, or a direction has no curvature beyond rounding, further steps would only amplify it.
    """
    x, r = np.zeros_like(b), b.copy()
    z = scale * r
    p = z.copy()
    rho = first = float(np.vdot(r, z))
    gains: list[float] = []
    largest, lost = 0.0, False
    while rho > _SOLVED**2 * first:
        Kp = apply(p)
        curvature, length = float(np.vdot(p, Kp)), float(np.vdot(p, p / scale))
        largest = max(largest, curvature / length)
        if curvature <= b.size * _EPS * largest * length:  # what is left lies in the null space of K, to rounding
            lost = True
            break
        alpha = rho / curvature
        x += alpha * p
        r -= alpha * Kp
        gains.append(alpha * rho)
        settled = len(gains) >= _DELAY and sum(gains[-_DELAY:]) <= TOLERANCE * sum(gains)
        if settled and _relative(r, b) <= RESIDUAL:
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
    residual = _relative(b - apply(x), b) if gains else 0.0  # not the recursion's r, which rounding lets drift away
    if not residual <= (np.sqrt(TOLERANCE) if lost else RESIDUAL):
        raise NotConverged(
            f"Conjugate gradients left a relative residual of {residual:.1e}: the tangent kernel is singular to "
            "rounding, as for weights that are nearly parallel. Use a smaller width, or a larger d."
        )
    sensitivity = largest * float(np.vdot(x, x / scale))
    energy = float(np.vdot(b, x) + np.vdot(x, r))  # ⟨x,Kx⟩ = ⟨x,b⟩ − ⟨x,r⟩
    return Solution(energy, residual, len(gains), sensitivity)


def _relative(r: FloatArray, b: FloatArray) -> float:
    size = float(np.linalg.norm(b))
    return float(np.linalg.norm(r)) / size if size else 0.0

"""Conjugate gradients for every shift at once: (A + s_j)x_j = b from one sequence of products with A.

The residuals of all shifts are parallel (Jegerlehner 1996), so that a shift costs two vector updates a step, and a
number ζ_j that says how much smaller its residual is. The smallest shift leads; the others converge before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray


@dataclass(frozen=True, eq=False)
class Shifted:
    """Solutions (R, n) or, where only ⟨b, x⟩ was asked for, none; ⟨b, x_j⟩ (R,); relative residuals (R,); steps."""

    x: FloatArray | None
    inner: FloatArray
    residual: FloatArray
    steps: int


def shifted_cg(
    times: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    shifts: FloatArray,
    tol: float,
    max_iter: int,
    solutions: bool = True,
) -> Shifted:
    """Solve (A + s_j)x_j = b for symmetric A ⪰ 0 and every s_j > 0.

    >>> A, b = np.diag([1.0, 2.0, 3.0]), np.ones(3)
    >>> found = shifted_cg(lambda v: A @ v, b, np.array([1.0, 2.0]), 1e-12, 10)
    >>> found.x.round(6).tolist(), found.steps
    ([[0.5, 0.333333, 0.25], [0.333333, 0.25, 0.2]], 3)
    """
    lead = float(np.min(shifts))
    delta = shifts - lead
    R, n = len(shifts), len(b)
    r = b.copy()
    p = b.copy()
    zeta, zeta_before = np.ones(R), np.ones(R)
    a_before, beta = 1.0, 0.0
    rr = norm = float(b @ b)
    x, direction = (np.zeros((R, n)), np.tile(b, (R, 1))) if solutions else (None, None)
    inner, along = np.zeros(R), np.full(R, norm)  # ⟨b, x_j⟩ and ⟨b, p_j⟩ follow the same recursion as x_j and p_j
    steps = 0
    while steps < max_iter and norm > 0 and np.max(np.abs(zeta)) * np.sqrt(rr / norm) > tol:
        q = times(p) + lead * p
        a = rr / float(p @ q)
        below = a * beta * (zeta_before - zeta) + zeta_before * a_before * (1.0 + delta * a)
        with np.errstate(under="ignore"):  # a shift that has long converged: its ζ may become zero
            zeta_next = np.divide(zeta * zeta_before * a_before, below, out=np.zeros(R), where=below != 0)
            ratio = np.divide(zeta_next, zeta, out=np.zeros(R), where=zeta != 0)
        inner += a * ratio * along
        r -= a * q
        rr_next = float(r @ r)
        beta, rr = rr_next / rr, rr_next
        p *= beta
        p += r
        if x is not None and direction is not None:
            x += (a * ratio)[:, None] * direction
            direction *= (beta * ratio**2)[:, None]
            direction += zeta_next[:, None] * r
        along = zeta_next * float(b @ r) + beta * ratio**2 * along
        zeta_before, zeta, a_before = zeta, zeta_next, a
        steps += 1
    residual = np.abs(zeta) * np.sqrt(rr / norm) if norm > 0 else np.zeros(R)
    return Shifted(x, inner, residual, steps)

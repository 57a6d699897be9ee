"""The fixed point that Theorems 1 and 4 share: the resolvent of random features at N/d = ρ.

ψ > 0 is the unique solution of

    −λ̃ = −ρ/ψ + ∫ λ₁²t/(1 + λ₁²tψ) D(dt)      ⇔      h(ψ) ≡ λ̃ψ + ∫ λ₁²tψ/(1 + λ₁²tψ) D(dt) = ρ,

(Ghorbani et al. 2019, Eqs. 9 and 14), D the spectrum of dΓ^{1/2}ΣΓ^{1/2}. h increases and is concave, so Newton's
method started left of the root climbs to it monotonically, whatever the spectrum: no bracket, no damping, no second
branch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged

TOLERANCE = 1e-13
_MOST_ITERATIONS = 100


@dataclass(frozen=True)
class FixedPoint:
    """ψ for each ρ, the relative residual |h(ψ) − ρ|/ρ, and how many Newton steps the slowest ρ took."""

    psi: FloatArray
    residual: FloatArray
    iterations: int

    @property
    def inverse(self) -> FloatArray:
        """1/ψ, which is 0 at ρ = ∞."""
        return 1.0 / self.psi


def visible_energy(sigma: Activation) -> float:
    """λ₂², exactly zero where it is zero up to rounding: such a σ never sees a quadratic function.

    >>> visible_energy(Activation("tanh")), round(visible_energy(Activation("square")), 12)
    (0.0, 4.0)
    """
    lambda_2 = sigma.lambda_k(2)
    return 0.0 if lambda_2**2 <= 1e-24 * sigma.second_moment(1.0) else lambda_2**2


def solve(rho: FloatArray, lambda_tilde: float, lambda_1: float, spectrum: FloatArray) -> FixedPoint:
    """Solve h(ψ) = ρ for every finite ρ at once; ρ = ∞ gives ψ = ∞.

    Costs 4·|ρ|·(distinct eigenvalues) flops a step, about 5 steps, and one array of that size.

    >>> solve(np.array([0.5, np.inf]), 2.0, 0.0, np.ones(1)).psi
    array([0.25,  inf])
    """
    t, counts = np.unique(lambda_1**2 * spectrum, return_counts=True)
    share = counts / spectrum.size
    finite = np.isfinite(rho)
    target = rho[finite]
    # Two lower bounds of the root: h(ψ) ≤ h′(0)ψ by concavity, and h(ψ) ≤ λ̃ψ + D(t > 0).
    psi = np.maximum(target / (lambda_tilde + share @ t), (target - share @ (t > 0)) / lambda_tilde)
    steps, residual = 0, np.zeros_like(psi)
    weight = share * t
    damped = np.empty((psi.size, t.size))  # 1/(1 + ψt), in one buffer: fresh pages would cost more than arithmetic
    while psi.size:
        np.multiply(psi[:, None], t, out=damped)
        damped += 1.0
        np.reciprocal(damped, out=damped)
        h = lambda_tilde * psi + psi * (damped @ weight)
        residual = np.abs(h - target) / target
        if np.all(residual <= TOLERANCE):
            break
        if steps == _MOST_ITERATIONS:
            worst = int(np.argmax(residual))
            raise NotConverged(
                f"The fixed point of Eq. 9 kept a relative residual of {residual[worst]:.1e} at "
                f"rho = {target[worst]:.4g} after {steps} Newton steps (tolerance {TOLERANCE:.0e}). "
                "Check that Γ has no eigenvalues many orders of magnitude apart."
            )
        np.square(damped, out=damped)
        slope = lambda_tilde + damped @ weight
        psi = np.maximum(psi, psi + (target - h) / slope)
        steps += 1
    return FixedPoint(_spread(psi, finite, np.inf), _spread(residual, finite, 0.0), steps)


def _spread(values: FloatArray, where: FloatArray, elsewhere: float) -> FloatArray:
    full = np.full(where.shape, elsewhere)
    full[where] = values
    return full

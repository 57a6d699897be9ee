"""The equation of u on a panel, u̇ = a² − 16a(b − s/2)u, for every eigenvalue b at once, by one small eigenproblem.

At the p Chebyshev points apart from the first it is M(b)u = source, M(b) = D + 16 diag(a(b − s/2)) with D the matrix
of d/dt. M depends on b by a multiple of the diagonal matrix C = 16 diag(a) alone: with b₀ fixed and
M(b₀)⁻¹C = V diag(θ)V⁻¹,

    M(b)⁻¹ = V diag(1/(1 + (b − b₀)θ)) V⁻¹M(b₀)⁻¹.

One eigendecomposition p × p thus serves all eigenvalues, where solving for each would cost p³ flops a piece. Of two
conjugate modes one is kept and counted twice, since M(b) is real.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.limits.flow import constants

ComplexArray = np.ndarray[Any, np.dtype[np.complex128]]


@dataclass(frozen=True, eq=False)
class Modes:
    """V, θ and V⁻¹M(b₀)⁻¹, of one s and a, without the modes below the real axis."""

    b0: float
    theta: ComplexArray
    vectors: ComplexArray
    inverse: ComplexArray

    @classmethod
    def of(cls, derivative: FloatArray, a: FloatArray, s: FloatArray, b0: float) -> Modes:
        """Take D, a and s at the points apart from the first, and the eigenvalue b₀ that others are told from."""
        M = derivative + np.diag(16.0 * a * (b0 - 0.5 * s))
        solved = np.linalg.inv(M)
        theta, V = np.linalg.eig(solved * (16.0 * a))
        back = np.linalg.inv(V)
        if np.linalg.norm(V) * np.linalg.norm(back) > constants.WORST_MODES:
            raise NotConverged("The modes of u are nearly parallel: the panel is made shorter.")
        kept = theta.imag >= 0.0
        twice = np.where(theta.imag > 0.0, 2.0, 1.0)
        return cls(b0, theta[kept].astype(complex), (V * twice)[:, kept].astype(complex), (back @ solved)[kept])

    def _scale(self, b: FloatArray) -> ComplexArray:
        """Return 1/(1 + (b − b₀)θ), modes × eigenvalues."""
        return np.asarray(1.0 / (1.0 + np.multiply.outer(self.theta, b - self.b0)))

    def solve(self, b: FloatArray, level: FloatArray, begin: FloatArray, first: FloatArray) -> FloatArray:
        """Return u, points × eigenvalues, for the sources level + begin·first_i; first_i belongs to b_i.

        >>> D = np.array([[2.0, 1.0], [-1.0, 3.0]])
        >>> a, s, b, first = np.array([1.0, 0.5]), np.array([0.1, 0.2]), np.array([0.3, 2.0]), np.array([0.0, 0.4])
        >>> u = Modes.of(D, a, s, 2.0).solve(b, a**2, np.array([1.0, -1.0]), first)
        >>> M = D + 16.0 * np.diag(a * (0.3 - 0.5 * s))
        >>> bool(np.allclose(M @ u[:, 0], a**2, rtol=1e-13))
        True
        """
        sources = self.inverse @ np.stack([level, begin], axis=1)
        inside = (sources[:, :1] + sources[:, 1:] * first) * self._scale(b)
        return np.asarray(self.vectors.real @ inside.real - self.vectors.imag @ inside.imag)

    def response(self, b: FloatArray) -> FloatArray:
        """Return M(b)⁻¹ for each b, eigenvalues × points × points."""
        p, scale = len(self.vectors), self._scale(b).T
        product = (self.vectors.T[:, :, None] * self.inverse[:, None, :]).reshape(-1, p * p)
        inverse = scale.real @ product.real - scale.imag @ product.imag
        return np.asarray(inverse.reshape(-1, p, p))

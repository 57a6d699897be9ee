"""Kernels of the Taylor pieces of an infinitely wide network, w₀ ~ N(0, I/B_x²), ‖x‖ = B_x (Bai & Lee 2019, Eq. 3).

    K_k(x, x′) = κ_k(r) (B_x² r)^k,   r = ⟨x, x′⟩/B_x²,   κ_k(r) = E[σ^{(k)}(u) σ^{(k)}(u′)]/k!²,

u, u′ standard normal of correlation r: k = 1 is the neural tangent kernel, k = 2 that of quadratic features. For
σ = u₊^p/p! and its kin κ_k is an arc-cosine kernel, in closed form (`kernels.rectified_moment`); else, as σ is
analytic, with Hermite coefficients c_j of σ,

    E[σ^{(k)}(u) σ^{(k)}(u′)] = Σ_j (j + 1)⋯(j + k) c_{j+k}² r^j.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.derivatives import require_smooth
from lazyscope.checks import FloatArray, fits_in_memory, real_number, whole_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.numerics.quadrature import MAX_DEGREE
from lazyscope.population.kernels import RectifiedKernel

_ENTRIES = 1 << 16  # at once: half a megabyte, so that a dozen passes over them stay in cache
_OFF = 1e-5  # of B_x, as inputs in float32 are


@dataclass(frozen=True, eq=False)
class InfiniteWidthKernel:
    """K_k of σ as a function of two sets of inputs on the sphere of radius B_x.

    >>> ntk = InfiniteWidthKernel("relu3")
    >>> print(ntk(np.eye(2)).round(6))  # E[(u₊²/2)²] = 3/8 on the diagonal, and orthogonal inputs do not speak
    [[0.375 0.   ]
     [0.    0.375]]
    """

    activation: Activation | str = "relu3"
    order: int = 1
    Bx: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", as_activation(self.activation))
        object.__setattr__(self, "order", whole_number(self.order, "InfiniteWidthKernel", "order"))
        if real_number(self.Bx, "InfiniteWidthKernel", "Bx") <= 0:
            raise InvalidParameter.of("InfiniteWidthKernel", "Bx", "be a positive radius", self.Bx)
        require_smooth(self._sigma, self.order - 1)  # σ^{(k)} must be a function

    @property
    def _sigma(self) -> Activation:
        return as_activation(self.activation)

    @cached_property
    def series(self) -> FloatArray:
        """Coefficients of κ_k(r) in powers of r, to 1e-15 of κ_k(1), for an analytic σ."""
        c = self._sigma.hermite_coefficients(1.0, MAX_DEGREE)
        j = np.arange(MAX_DEGREE + 1 - self.order, dtype=np.float64)
        rising = np.prod([j + step for step in range(1, self.order + 1)], axis=0)
        terms = rising * c[self.order :] ** 2 / factorial(self.order) ** 2
        left = np.cumsum(terms[::-1])[::-1]
        if left[-10] > 1e-12 * left[0]:
            raise NotConverged(
                f"The Hermite series of the derivative of order {self.order} of {self._sigma.name} leaves "
                f"{left[-10] / left[0]:.1e} after {len(terms)} terms. Use a smoother σ, or rescale it."
            )
        return np.asarray(terms[: max(1, int(np.count_nonzero(left > 1e-15 * left[0])))])

    def profile(self, r: FloatArray) -> FloatArray:
        """κ_k(r), elementwise, |r| ≤ 1."""
        if self._sigma.rectified is not None:
            pair = RectifiedKernel(self._sigma.rectified, np.ones(1))
            value = pair(self.order, self.order, r.reshape(1, -1), slice(None), slice(None)).reshape(r.shape)
            return np.asarray(value / factorial(self.order) ** 2)
        total = np.full_like(r, self.series[-1])
        for term in self.series[-2::-1]:
            total *= r
            total += term
        return total

    def __call__(self, X: FloatArray, Z: FloatArray | None = None) -> FloatArray:
        """K_k(x, z) for the rows of X and Z, (n, n′): a dozen passes over nn′ entries, or one for each term."""
        X = self._checked(X)
        Z = X if Z is None else self._checked(Z)
        fits_in_memory(8.0 * len(X) * len(Z), f"The kernel of {len(X)} × {len(Z)} inputs", "Pass fewer.")
        K = np.empty((len(X), len(Z)))
        rows = max(1, _ENTRIES // len(Z))
        columns = np.ascontiguousarray(Z.T) / self.Bx**2
        for start in range(0, len(X), rows):
            part = slice(start, start + rows)
            r = np.clip(X[part] @ columns, -1.0, 1.0)  # rounding alone leaves [−1, 1]: inputs are on the sphere
            np.multiply(self.profile(r), (self.Bx**2 * r) ** self.order, out=K[part])
        return K

    def _checked(self, X: FloatArray) -> FloatArray:
        X = np.asarray(X, dtype=np.float64)
        must = f"have rows on the sphere of radius B_x = {self.Bx:g} (Bai & Lee 2019, §2)"
        if X.ndim != 2 or X.size == 0:
            raise InvalidParameter.of("InfiniteWidthKernel", "X", must, f"shape {X.shape}")
        norms = np.linalg.norm(X, axis=1)
        wrong = norms[~(np.abs(norms - self.Bx) <= _OFF * self.Bx)]
        if wrong.size:
            got = f"a row of norm {wrong[0]:.6g}"
            raise InvalidParameter.of("InfiniteWidthKernel", "X", must, got, "Divide each row by its norm, or pass Bx.")
        return X


def fourier_kernel(sigma: str, tangent: bool, X: FloatArray, Z: FloatArray) -> FloatArray:
    """E_w[σ(w·x)σ(w·z)] for σ = cos or sin and w ~ N(0, I/d), or ⟨x, z⟩/d times that of σ′ (up to a sign the other).

    cos: ½(e^{−‖x−z‖²/2d} + e^{−‖x+z‖²/2d}), and sin with a minus (Rahimi and Recht 2007): inputs of every length.

    >>> fourier_kernel("cos", False, np.zeros((1, 2)), np.ones((1, 2))).round(6)  # e^{−½}
    array([[0.606531]])
    """
    even = (sigma == "cos") != tangent
    inner = X @ (Z.T / X.shape[1])
    squares = np.exp(-0.5 * np.mean(X * X, axis=1)[:, None]) * np.exp(-0.5 * np.mean(Z * Z, axis=1))
    return np.asarray(squares * (np.cosh(inner) if even else np.sinh(inner)) * (inner if tangent else 1.0))

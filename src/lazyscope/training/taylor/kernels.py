"""Kernels of the Taylor pieces at finite width (Bai & Lee 2019, Eqs. 1–3, §6).

f^{(k)}_W is linear in the tensors a_r w_r^{⊗k}, with features c_k(w_{0,r}·x) x^{⊗k}/√m, c_k = σ^{(k)}/k!. Their inner
products are

    K_k(x, x′) = (1/m) Σ_r c_k(w_{0,r}·x) c_k(w_{0,r}·x′) ⟨x, x′⟩^k:

k = 1 is the neural tangent kernel, k = 2 the kernel of quadratic features, which forgets that the tensors have rank
one. `population.infinite_width` has the limit m → ∞; `krylov.kernel_ridge` and `kernel_margin` fit with either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.activations.derivatives import taylor_coefficients
from lazyscope.checks import FloatArray, fits_in_memory, whole_number
from lazyscope.training.taylor.model import Array, TaylorModel
from lazyscope.training.taylor.risk import on_sphere


@dataclass(frozen=True, eq=False)
class FiniteWidthKernel:
    """K_k of a network, as a function of two sets of inputs on its sphere.

    (n + n′)m numbers in memory, and 2nn′(m + d) flops.

    >>> model = TaylorModel.symmetric(6, 2, "relu3", np.random.default_rng(0))
    >>> FiniteWidthKernel(model, 1)(np.eye(2)).shape
    (2, 2)
    """

    model: TaylorModel
    order: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", whole_number(self.order, "FiniteWidthKernel", "order"))

    def __call__(self, X: Array, Z: Array | None = None) -> FloatArray:
        """Return K_k(x, z) for the rows of X and Z, (n, n′); Z is X where it is left out."""
        X = on_sphere(X, self.model.Bx, "FiniteWidthKernel")
        Z = X if Z is None else on_sphere(Z, self.model.Bx, "FiniteWidthKernel")
        size = 8.0 * (len(X) * len(Z) + (len(X) + len(Z)) * self.model.m * (self.order + 1))
        fits_in_memory(size, f"The kernel of {len(X)} × {len(Z)} inputs", "Pass fewer.")
        left = self._features(X)
        K = left.T @ (left if Z is X else self._features(Z))
        K *= (X @ Z.T) ** self.order
        return np.asarray(K, dtype=np.float64)

    def _features(self, X: Array) -> FloatArray:
        """Return c_k(w_{0,r}·x_i)/√m, (m, n)."""
        u = np.asarray(self.model.W0 @ X.T, dtype=np.float64)
        return np.asarray(taylor_coefficients(self.model.sigma, u, self.order)[self.order] / np.sqrt(self.model.m))

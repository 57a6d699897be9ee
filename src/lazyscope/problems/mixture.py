"""The mixture of two Gaussians of Limitations of Lazy Training, §3."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory, symmetric, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.numerics import matrices
from lazyscope.problems.base import GaussianProblem, Option


@dataclass(frozen=True, eq=False)
class GaussianMixture(GaussianProblem):
    """y = ±1 with probability ½, x | y ~ N(0, Σ ∓ Δ): the classes differ in covariance only (Ghorbani et al. 2019, §3).

    Parameters: `Delta`, symmetric (d, d) or the (d,) vector of its diagonal; `Sigma` likewise, identity by
    default; both vectors are diagonals in one basis. Σ + Δ and Σ − Δ must be positive definite. The risk of
    the best constant, 0, is E y² = 1. (The poster has the classes the other way round; no risk depends on it.)

    >>> mixture = GaussianMixture.three_level(450, seed=0)
    >>> mixture.d, mixture.information.__round__(2)
    (450, 2.5)
    """

    word: ClassVar[str] = "mixture"
    title: ClassVar[str] = "mixture of two Gaussians"
    formula: ClassVar[str] = "y = ±1, x | y ~ N(0, Σ ∓ Δ)"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "delta", Path, None, "File (.npy, .csv) with Δ, (d, d) or its (d,) diagonal.", replaces=("d", "target_seed")
        ),
        Option("sigma", Path, None, "File (.npy, .csv) with Σ; the identity by default."),
        Option("d", int, None, "Dimension; without a file: 450."),
        Option("target_seed", int, None, "Seed of Δ's diagonal, {2, 1.5, 1}/√d; without a file: 0."),
    )
    usual: ClassVar[dict[str, Any]] = GaussianProblem.usual | {"regime": "rf,nt,nn,bayes"}
    Delta: FloatArray
    Sigma: FloatArray | None = None

    def __post_init__(self) -> None:
        Delta = symmetric(self.Delta, "GaussianMixture", "Delta")
        if not np.any(Delta):
            raise InvalidParameter.of("GaussianMixture", "Delta", "have a non-zero entry", "zero")
        object.__setattr__(self, "Delta", Delta)
        if self.Sigma is not None:
            Sigma = symmetric(self.Sigma, "GaussianMixture", "Sigma")
            if Sigma.shape[0] != self.d:
                must = f"have the size of Delta, d = {self.d}"
                raise InvalidParameter.of("GaussianMixture", "Sigma", must, f"d = {Sigma.shape[0]}")
            if not matrices.is_positive_definite(Sigma):
                got = f"smallest eigenvalue {matrices.eigenvalues(Sigma)[0]:.4g}"
                raise InvalidParameter.of("GaussianMixture", "Sigma", "be positive definite", got)
            object.__setattr__(self, "Sigma", Sigma)
        for sign in (-1.0, 1.0):
            law = self.class_covariance(sign)
            if not matrices.is_positive_definite(law):
                name = "Σ − Δ" if sign > 0 else "Σ + Δ"
                must = "leave Σ − Δ and Σ + Δ, the two class covariances, positive definite"
                got = f"{name} with smallest eigenvalue {matrices.eigenvalues(law)[0]:.4g}"
                advice = "Scale Delta down: the theory has ‖Δ‖ of order 1/√d."
                raise InvalidParameter.of("GaussianMixture", "Delta", must, got, advice)

    @classmethod
    def from_options(  # type: ignore[override]  # its keywords are its options
        cls, delta: Any = None, sigma: Any = None, d: int | None = None, target_seed: int | None = None
    ) -> Self:
        """Return the mixture with this Δ, or the paper's in d dimensions, and with this Σ, or the identity."""
        return cls(cls.three_level(450 if d is None else d, target_seed or 0).Delta if delta is None else delta, sigma)

    @classmethod
    def three_level(cls, d: int, seed: int = 0) -> GaussianMixture:
        """Draw the paper's mixture: Σ = I, Δ diagonal with entries uniform on {2, 1.5, 1}/√d.

        >>> np.unique(GaussianMixture.three_level(100).Delta.round(12))
        array([0.1 , 0.15, 0.2 ])
        """
        d = whole_number(
            d,
            "GaussianMixture.three_level",
            "d",
            least=5,
            advice="Below it 2/√d would leave no class covariance.",
        )
        seed = whole_number(seed, "GaussianMixture.three_level", "seed", least=0)
        fits_in_memory(8.0 * d, f"A mixture in d = {d} dimensions", "Use a smaller d.")
        return cls(np.random.RandomState(seed % 2**32).choice([2.0, 1.5, 1.0], d) / np.sqrt(d))

    @property
    def d(self) -> int:
        """Input dimension."""
        return int(self.Delta.shape[0])

    @property
    def covariance(self) -> FloatArray:
        """Σ, the mean of the two class covariances."""
        return np.ones(self.d) if self.Sigma is None else self.Sigma

    def class_covariance(self, y: float) -> FloatArray:
        """Covariance of x given the label: Σ − yΔ (L's convention)."""
        return matrices.combine(self.covariance, self.Delta, -float(y))

    @cached_property
    def whitened(self) -> FloatArray:
        """Δ̃ = Σ^{-1/2} Δ Σ^{-1/2}, diagonal where Σ and Δ are."""
        if self.Sigma is None:
            return self.Delta
        return matrices.sandwich(matrices.power(self.Sigma, -0.5), self.Delta)

    @cached_property
    def singular_values(self) -> FloatArray:
        """|eigenvalues| of Δ̃, descending."""
        return np.sort(np.abs(matrices.eigenvalues(self.whitened)))[::-1]

    @cached_property
    def information(self) -> float:
        """J = ‖Δ̃‖_F²: the mean log-likelihood ratio of a sample, for large d."""
        return matrices.squared_norm(self.whitened)

    @cached_property
    def alignment(self) -> float:
        """τ = Tr(Δ̃)²/(d‖Δ̃‖_F²) ∈ [0, 1]: the part of Δ that isotropic features see."""
        return matrices.trace(self.whitened) ** 2 / (self.d * self.information)

    def in_units(self, regime: object) -> GaussianMixture:
        """Σ and Δ over a power of four: weights follow as their inverse root, unless they are fixed."""
        if self.Sigma is None or matrices.unit_of(self.Sigma) is None or _has_fixed_weights(regime):
            return self
        return self._rescaled

    @cached_property
    def _rescaled(self) -> GaussianMixture:
        k = (matrices.unit_of(self.covariance) or 0) // 2 * 2
        return GaussianMixture(np.ldexp(self.Delta, -k), np.ldexp(self.covariance, -k))

    def best_weight_covariance(self) -> FloatArray:
        """Γ ∝ ±Σ⁻¹ΔΣ⁻¹, which maximises ζ₂/ζ₁ of Eq. 16; Δ must not change sign."""
        values = matrices.eigenvalues(self.whitened)
        sign = 1.0 if abs(values[-1]) >= abs(values[0]) else -1.0
        if not matrices.is_semidefinite(sign * values):
            must = 'be semidefinite for weights="optimal", as Γ ∝ Σ⁻¹ΔΣ⁻¹ is a covariance'
            got = f"eigenvalues of both signs ({values[0]:.4g} to {values[-1]:.4g})"
            advice = "Pass your own Γ, for example the positive part."
            raise InvalidParameter.of("GaussianMixture", "Delta", must, got, advice)
        if self.Sigma is None:
            return sign * self.Delta
        return sign * matrices.sandwich(matrices.power(self.Sigma, -1.0), self.Delta)

    def __str__(self) -> str:
        if self.Sigma is None:
            return f"Gaussian mixture, d = {self.d}, Σ = I, ‖Δ‖² = {self.information:.4g}"
        return f"Gaussian mixture, d = {self.d}, given Σ"  # ‖Δ̃‖² would cost an eigendecomposition


def _has_fixed_weights(regime: object) -> bool:
    return hasattr(getattr(regime, "weights", None), "W")

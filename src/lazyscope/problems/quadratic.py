"""The quadratic target of Limitations of Lazy Training, §2."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory, real_number, symmetric, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.numerics import matrices
from lazyscope.problems.base import GaussianProblem, Option


@dataclass(frozen=True, eq=False)
class QuadraticTarget(GaussianProblem):
    """x ~ N(0, I_d), y = b₀ + ⟨x, Bx⟩, without noise (Ghorbani et al. 2019, Eq. 8).

    Parameters: `B`, symmetric (d, d), or the (d,) vector of its eigenvalues (in the basis where it is
    diagonal: isotropic x has no other); `b0`, the constant. Risks are those of the centred target
    f⋆ = ⟨x, Bx⟩ − Tr B, divided by ‖f⋆‖² = 2‖B‖_F², the risk of the best constant; b₀ therefore never
    changes a risk, as Theorem 1 assumes E f⋆ = 0 and the other classes carry an offset of their own.

    >>> target = QuadraticTarget([3.0, 1.0, 0.0])
    >>> target.d, target.energy, target.alignment.__round__(6)
    (3, 20.0, 0.533333)
    """

    word: ClassVar[str] = "quadratic"
    title: ClassVar[str] = "quadratic target"
    formula: ClassVar[str] = "y = b₀ + ⟨x, Bx⟩, x ~ N(0, I)"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "B", Path, None, "File (.npy, .csv) with B, (d, d) or its (d,) eigenvalues.", replaces=("d", "target_seed")
        ),
        Option("d", int, None, "Dimension; without a file: 450."),
        Option("target_seed", int, None, "Seed of B's eigenvalues, Exp(1); without a file: 100."),
    )
    usual: ClassVar[dict[str, Any]] = GaussianProblem.usual | {"regime": "rf,nt,nn"}
    B: FloatArray
    b0: float = 0.0

    def __post_init__(self) -> None:
        B = symmetric(self.B, "QuadraticTarget", "B")
        if not np.any(B):
            must = "have a non-zero entry (a constant target has no risk to normalise by)"
            raise InvalidParameter.of("QuadraticTarget", "B", must, "zero")
        object.__setattr__(self, "B", B)
        object.__setattr__(self, "b0", real_number(self.b0, "QuadraticTarget", "b0"))

    @classmethod
    def from_options(  # type: ignore[override]  # its keywords are its options
        cls, B: Any = None, d: int | None = None, target_seed: int | None = None
    ) -> Self:
        """Return the target with this B, or the paper's in d dimensions."""
        if B is not None:
            return cls(B)
        return cls.exponential(450 if d is None else d, 100 if target_seed is None else target_seed)

    @classmethod
    def exponential(cls, d: int, seed: int = 100) -> Self:
        """Draw the paper's target: B diagonal, γ_i ~ Exp(1), from numpy's legacy generator as its script does.

        >>> QuadraticTarget.exponential(450, seed=100).B[:2].round(6)
        array([0.783958, 0.326242])
        """
        d = whole_number(d, "QuadraticTarget.exponential", "d")
        seed = whole_number(seed, "QuadraticTarget.exponential", "seed", least=0)
        fits_in_memory(8.0 * d, f"A target in d = {d} dimensions", "Use a smaller d.")
        return cls(np.random.RandomState(seed % 2**32).exponential(1.0, d))

    @property
    def d(self) -> int:
        """Input dimension."""
        return int(self.B.shape[0])

    @property
    def covariance(self) -> FloatArray:
        """Σ = I, as the vector of its diagonal."""
        return np.ones(self.d)

    @cached_property
    def energy(self) -> float:
        """‖f⋆‖² = 2‖B‖_F²: the risk of the best constant, by which risks are divided."""
        return 2.0 * matrices.squared_norm(self.B)

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """Spectrum of B, ascending."""
        return matrices.eigenvalues(self.B)

    @cached_property
    def alignment(self) -> float:
        """τ = Tr(B)²/(d‖B‖_F²) ∈ [0, 1]: the part of the target that isotropic features see."""
        return matrices.trace(self.B) ** 2 / (self.d * matrices.squared_norm(self.B))

    def in_units(self, regime: object) -> QuadraticTarget:
        """B over a power of two, without b₀: no risk depends on either."""
        return self if matrices.unit_of(self.B) is None else self._rescaled

    @cached_property
    def _rescaled(self) -> QuadraticTarget:
        return QuadraticTarget(np.ldexp(self.B, -(matrices.unit_of(self.B) or 0)))

    def best_weight_covariance(self) -> FloatArray:
        """Γ ∝ B (Ghorbani et al. 2019, §2.1), which must be a covariance: B ⪰ 0."""
        if not matrices.is_semidefinite(self.eigenvalues):
            must = 'be positive semidefinite for weights="optimal", as Γ ∝ B is a covariance'
            got = f"smallest eigenvalue {self.eigenvalues[0]:.4g}"
            advice = "Pass your own Γ, for example the positive part of B."
            raise InvalidParameter.of("QuadraticTarget", "B", must, got, advice)
        return np.maximum(self.B, 0.0) if self.B.ndim == 1 else self.B

    def __str__(self) -> str:
        shape = "diagonal B" if self.B.ndim == 1 else "full B"
        return f"quadratic target, d = {self.d}, {shape}, Tr(B)²/(d‖B‖²) = {self.alignment:.4g}"

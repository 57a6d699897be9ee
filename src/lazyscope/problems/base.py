"""What every problem with Gaussian inputs tells the rest of the package."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lazyscope.checks import FloatArray


class Problem(ABC):
    """A data law and a target in d dimensions."""

    @property
    @abstractmethod
    def d(self) -> int:
        """Input dimension."""

    @property
    @abstractmethod
    def covariance(self) -> FloatArray:
        """Covariance Σ of the inputs, averaged over classes: (d, d), or (d,) where it is diagonal."""

    @abstractmethod
    def best_weight_covariance(self) -> FloatArray:
        """Return the Γ, up to scale, that random features of infinite width would want."""

    @abstractmethod
    def __str__(self) -> str:
        """One short line for tables, figures and provenance."""

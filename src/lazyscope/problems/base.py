"""What a problem tells the rest of the package: the more it has, the more of the package serves it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lazyscope.checks import FloatArray


class Problem(ABC):
    """A data law and a target. It may leave its dimension open: its limits then depend on ratios of sizes alone."""

    @abstractmethod
    def __str__(self) -> str:
        """One short line for tables, figures and provenance."""


class SizedProblem(Problem):
    """A problem in d dimensions."""

    @property
    @abstractmethod
    def d(self) -> int:
        """Input dimension."""


class GaussianProblem(SizedProblem):
    """A problem with Gaussian inputs, or a mixture of them."""

    @property
    @abstractmethod
    def covariance(self) -> FloatArray:
        """Covariance Σ of the inputs, averaged over classes: (d, d), or (d,) where it is diagonal."""

    @abstractmethod
    def best_weight_covariance(self) -> FloatArray:
        """Return the Γ, up to scale, that random features of infinite width would want."""

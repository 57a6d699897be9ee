"""No network at all: features whose law is given, and the best function there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lazyscope.checks import FloatArray, real_array
from lazyscope.errors import InvalidParameter
from lazyscope.regimes.base import Regime


@dataclass(frozen=True, eq=False)
class IsotropicFeatures(Regime):
    """No network at all: the inputs themselves are the features, Gaussian with the identity as covariance.

    The special case of no feature map, in which N of psi1 is the number of inputs.

    >>> print(IsotropicFeatures())
    isotropic features
    """

    label: ClassVar[str] = "IF"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"isotropic": {}}
    flag: ClassVar[bool] = True

    def __str__(self) -> str:
        return "isotropic features"


@dataclass(frozen=True, eq=False)
class GaussianFeatures(Regime):
    """No network at all: Gaussian features whose covariance has the spectrum you give.

    `spectrum` are the eigenvalues λ_i > 0, in equal shares; `alignment` is what part of the score's variance the
    features carry along each eigenvector, Σ_i α_i ≤ 1, and the rest they do not see. Without it the score is spread
    evenly, α_i = 1/K.

    >>> print(GaussianFeatures([1.0, 4.0], alignment=[0.0, 0.5]))
    Gaussian features, 2 eigenvalues from 1 to 4, which see 0.5 of the score's variance
    """

    spectrum: FloatArray
    alignment: FloatArray | None = None
    label: ClassVar[str] = "GF"

    def __post_init__(self) -> None:
        must = "be positive eigenvalues of a covariance, a one-dimensional sequence"
        spectrum = real_array(self.spectrum, "GaussianFeatures", "spectrum", must)
        if spectrum.ndim != 1 or spectrum.size == 0 or not np.all(spectrum > 0.0):
            got = f"shape {spectrum.shape}" if spectrum.ndim != 1 or not spectrum.size else f"{spectrum.min():.4g}"
            raise InvalidParameter.of("GaussianFeatures", "spectrum", must, got)
        object.__setattr__(self, "spectrum", spectrum)
        if self.alignment is None:
            return
        must = "be shares of variance, one for each eigenvalue: none negative, their sum at most 1"
        alignment = real_array(self.alignment, "GaussianFeatures", "alignment", must)
        if alignment.shape != spectrum.shape:
            raise InvalidParameter.of("GaussianFeatures", "alignment", must, f"shape {alignment.shape}")
        if np.any(alignment < 0.0) or np.sum(alignment) > 1.0 + 1e-12:
            got = f"{alignment.min():.4g}" if np.any(alignment < 0.0) else f"a sum of {alignment.sum():.4g}"
            raise InvalidParameter.of("GaussianFeatures", "alignment", must, got)
        object.__setattr__(self, "alignment", alignment)

    @property
    def shares(self) -> FloatArray:
        """α_i, written out where they were left out."""
        K = self.spectrum.size
        return np.full(K, 1.0 / K) if self.alignment is None else self.alignment

    def __str__(self) -> str:
        low, high = float(self.spectrum.min()), float(self.spectrum.max())
        seen = f", which see {float(self.shares.sum()):.4g} of the score's variance"
        return f"Gaussian features, {self.spectrum.size} eigenvalues from {low:.4g} to {high:.4g}{seen}"


@dataclass(frozen=True, eq=False)
class Bayes(Regime):
    """No network at all: the best function of x there is, the floor that no regime beats."""

    label: ClassVar[str] = "Bayes"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"bayes": {}}

    def __str__(self) -> str:
        return "Bayes"

"""A target given by its energy in each eigenspace of the features: for whoever has a spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from lazyscope.checks import FloatArray, real_array, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.problems.base import Option, Problem


@dataclass(frozen=True, eq=False)
class SpectralTarget(Problem):
    """A target known by the spectrum of the features' kernel: eigenvalues ξ_i and the energy β_i² in each eigenspace.

    `multiplicities` say how often each eigenvalue occurs (`energies` is then that of the whole eigenspace); `tail` is
    the trace of infinitely many more eigenvalues, tiny and without energy; `noise` τ the standard deviation of the
    labels' noise. Risks are absolute: to predict zero costs Σβ².

    >>> print(SpectralTarget([1.0, 0.1], [0.5, 0.5], noise=0.1))
    spectral target, 2 eigenvalues from 0.1 to 1, energy 1, τ = 0.1
    >>> SpectralTarget.power_law(1.5, 0.5, terms=3).energies.round(4)
    array([1.    , 0.1768, 0.0642])
    """

    word: ClassVar[str] = "spectral"
    formula: ClassVar[str] = "ξ_i = i^{−a}, energies i^{−1−2ar} (capacity a, source r)"
    options: ClassVar[tuple[Option, ...]] = (
        Option("capacity", float, 1.5, "a: eigenvalues fall like i^−a."),
        Option("source", float, 0.5, "r: energies fall like i^(−1−2ar)."),
        Option("terms", int, 100_000, "Number of eigenvalues."),
        Option("noise", float, 0.0, "Standard deviation τ of the label noise."),
    )

    title: ClassVar[str] = "target of a given spectrum"
    usual: ClassVar[dict[str, Any]] = {
        "regime": "rf", "activation": "square", "width": "100,1000,inf", "samples": "1000", "ridge": "0.001", "draws": 4
    }  # fmt: skip
    eigenvalues: FloatArray
    energies: FloatArray
    multiplicities: FloatArray | None = None
    tail: float = 0.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        owner = "SpectralTarget"
        must = "be a one-dimensional sequence of numbers, none negative"
        for name in ("eigenvalues", "energies", "multiplicities"):
            if getattr(self, name) is None:
                continue
            values = real_array(getattr(self, name), owner, name, must)
            if values.ndim != 1 or not values.size or np.any(values < 0.0):
                got = f"{values.min():.4g}" if values.size and values.ndim == 1 else f"shape {values.shape}"
                raise InvalidParameter.of(owner, name, must, got)
            if values.shape != np.shape(self.eigenvalues):
                must = f"have one entry for each eigenvalue, {np.size(self.eigenvalues)}"
                raise InvalidParameter.of(owner, name, must, values.size)
            object.__setattr__(self, name, values)
        for name in ("tail", "noise"):
            value = real_number(getattr(self, name), owner, name)
            if not 0.0 <= value <= 1e100:
                raise InvalidParameter.of(owner, name, "be zero or positive, at most 1e100", f"{value:g}")
            object.__setattr__(self, name, value)

    @classmethod
    def power_law(cls, capacity: float, source: float, terms: int = 100_000, noise: float = 0.0) -> Self:
        """Return ξ_i = i^{−a} with energies β_i² = i^{−1−2ar}: capacity a > 1 and source r > 0 (Cui et al. 2021).

        The law is cut off after `terms`; rates hold while n, the number of samples, is far below that: at a = 1.5 the
        measured exponent at n = 3,200 is off by 0.03 with 10⁵ terms and by 0.008 with 10⁶.
        """
        a = real_number(capacity, "SpectralTarget.power_law", "capacity")
        r = real_number(source, "SpectralTarget.power_law", "source")
        for name, value, least in (("capacity", a, 1.0), ("source", r, 0.0)):
            if not least < value <= 50.0:
                raise InvalidParameter.of(
                    "SpectralTarget.power_law", name, f"be above {least:g}, at most 50", f"{value:g}"
                )
        i = np.arange(1.0, whole_number(terms, "SpectralTarget.power_law", "terms") + 1.0)
        return cls(i**-a, i ** (-1.0 - 2.0 * a * r), noise=noise)

    @classmethod
    def from_options(cls, **values: Any) -> Self:
        """Return the power law that these options describe."""
        return cls.power_law(**values)

    @property
    def energy(self) -> float:
        """The risk of predicting zero."""
        return float(np.sum(self.energies))

    @property
    def trace(self) -> float:
        """E[φ²] of a feature: Σ mξ and the tail."""
        m = 1.0 if self.multiplicities is None else self.multiplicities
        return float(np.sum(m * self.eigenvalues)) + self.tail

    def __str__(self) -> str:
        low, high = float(np.min(self.eigenvalues)), float(np.max(self.eigenvalues))
        tail = f", tail {self.tail:.4g}" if self.tail else ""
        return (
            f"spectral target, {self.eigenvalues.size} eigenvalues from {low:.4g} to {high:.4g}{tail}, "
            f"energy {self.energy:.4g}, τ = {self.noise:.4g}"
        )

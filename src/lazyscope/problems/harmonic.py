"""A target on the sphere, known by its energy in each degree: all that isotropic features can tell of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from lazyscope.checks import FloatArray, real_array, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.numerics.gegenbauer import coordinate
from lazyscope.problems.base import Option, SizedProblem
from lazyscope.problems.linear import LinearTarget
from lazyscope.problems.monomial import RidgeMonomial
from lazyscope.problems.multi_index import MultiIndex
from lazyscope.problems.quadratic import QuadraticTarget

_FOLLOWED = 60  # degrees of a function of a few directions that are told apart: no number of samples reaches beyond


@dataclass(frozen=True, eq=False, slots=True)
class HarmonicTarget(SizedProblem):
    """y = f(x) + ε, x uniform on the sphere ‖x‖ = √d, where f has energy `energies[k]` in degree k.

    The degree-k part of f is its projection on spherical harmonics of degree k: constants, linear functions, quadratic
    forms without trace, … `noise` is τ, the standard deviation of ε. Risks are absolute, without the noise of the test
    sample: to predict zero costs the sum of the energies.

    >>> print(HarmonicTarget(30, [0.0, 0.5, 0.5]))
    harmonic target, d = 30, energies 0, 0.5, 0.5, τ = 0
    >>> HarmonicTarget.of_function(20, lambda u: u**3 - 3 * u).energies.round(3)
    array([0.   , 0.074, 0.   , 3.926])
    """

    word: ClassVar[str] = "harmonic"
    formula: ClassVar[str] = "y = f(x) + ε, ‖x‖ = √d, f given by its energy in each degree"
    options: ClassVar[tuple[Option, ...]] = (
        Option("d", int, 30, "Dimension."),
        Option("energies", str, "0,0.5,0.5", "Energy of degree 0, 1, 2, …, with commas."),
        Option("noise", float, 0.0, "Standard deviation τ of the label noise."),
    )

    title: ClassVar[str] = "harmonic target"
    usual: ClassVar[dict[str, Any]] = {
        "regime": "rf", "activation": "relu", "width": "d,4d,16d", "samples": "10d", "ridge": "0.001", "draws": 4
    }  # fmt: skip
    d: int = field()  # with slots, a field that replaces the property of the base class
    energies: FloatArray = field()
    noise: float = 0.0

    def __post_init__(self) -> None:
        owner, must = "HarmonicTarget", "be a sequence of energies, one for each degree from 0 on, none negative"
        object.__setattr__(self, "d", whole_number(self.d, owner, "d", least=2))
        energies = real_array(self.energies, owner, "energies", must)
        if energies.ndim != 1 or not 1 <= energies.size <= 100 or np.any(energies < 0.0) or np.any(energies > 1e200):
            got = f"{energies.size} of them" if energies.ndim == 1 else f"shape {energies.shape}"
            raise InvalidParameter.of(owner, "energies", f"{must}, at most 100 of them and each at most 1e200", got)
        object.__setattr__(self, "energies", energies)
        noise = real_number(self.noise, owner, "noise")
        if not 0.0 <= noise <= 1e100:
            raise InvalidParameter.of(owner, "noise", "be zero or positive, at most 1e100", f"{noise:g}")
        object.__setattr__(self, "noise", noise)

    @classmethod
    def of_function(
        cls, d: int, function: Callable[[FloatArray], FloatArray], *, kinks: tuple[float, ...] = (), degree: int = 40,
        noise: float = 0.0,
    ) -> Self:  # fmt: skip
        """Return the target function(⟨u, x⟩) of one direction, ‖u‖ = 1: its energies up to `degree`, by quadrature.

        What lies beyond the last degree is left out; `kinks` are where the function is not smooth.
        """
        d = whole_number(d, "HarmonicTarget.of_function", "d", least=2)
        t, weights, table = coordinate(kinks, d, whole_number(degree, "HarmonicTarget.of_function", "degree"))
        values = np.asarray(function(np.sqrt(d) * t), dtype=np.float64)
        energies = (table @ (weights * values)) ** 2
        rounding = 1e-24 * float(np.sum(energies))
        energies = np.where(energies > rounding, energies, 0.0)
        last = int(np.flatnonzero(energies)[-1]) if np.any(energies) else 0
        return cls(d, energies[: last + 1], noise)

    @classmethod
    def of_target(
        cls, target: QuadraticTarget | LinearTarget | RidgeMonomial | MultiIndex, d: int | None = None
    ) -> Self:
        """Return a quadratic, a linear target or a monomial on the sphere; a trace is constant there.

        A function of a few directions keeps the energies that it has for Gaussian inputs, divided by their sum, and its
        noise likewise; what lies beyond degree 60 counts as degree 61. On the sphere they are others by O(1/d).

        >>> HarmonicTarget.of_target(QuadraticTarget([2.0, 1.0, 0.0])).energies.round(3)
        array([9. , 0. , 2.4])
        >>> HarmonicTarget.of_target(MultiIndex(50, "staircase", indices=2)).energies
        array([0. , 0.5, 0.5])
        """
        if isinstance(target, MultiIndex):
            return cls(target.d, _shares(target), target.noise / np.sqrt(target.energy))
        if isinstance(target, LinearTarget):
            size = whole_number(d, "HarmonicTarget.of_target", "d", least=2, advice="LinearTarget leaves it open.")
            return cls(size, np.array([0.0, target.signal**2, target.nonlinear**2]), target.noise)
        if isinstance(target, RidgeMonomial):
            p, alpha, length = target.degree, target.alpha, float(np.linalg.norm(target.direction))
            return cls.of_function(
                target.d, lambda u: np.asarray(alpha * (length * u) ** p), degree=p, noise=target.noise
            )
        if not isinstance(target, QuadraticTarget):
            must = "be a QuadraticTarget, a LinearTarget, a RidgeMonomial or a MultiIndex"
            raise InvalidParameter.of("HarmonicTarget.of_target", "target", must, type(target).__name__)
        B = target.B
        size, trace = target.d, float(np.sum(B) if B.ndim == 1 else np.trace(B))
        # E(xᵀGx)² = 2‖G‖² d/(d + 2) on the sphere, for G without trace
        energy = 2.0 * (float(np.sum(B**2)) - trace**2 / size) * size / (size + 2.0)
        return cls(size, np.array([(target.b0 + trace) ** 2, 0.0, max(0.0, energy)]))

    @classmethod
    def from_options(cls, **values: Any) -> Self:
        """Return the target that these options describe."""
        energies = values["energies"]
        try:
            parts = [float(part) for part in str(energies).split(",")]
        except ValueError:
            must = "be numbers with commas, from degree 0 on, such as 0,0.5,0.5"
            raise InvalidParameter.of("harmonic", "--energies", must, repr(energies)) from None
        return cls(values["d"], np.array(parts), values["noise"])

    @property
    def energy(self) -> float:
        """The risk of predicting zero."""
        return float(np.sum(self.energies))

    def __str__(self) -> str:
        shown = ", ".join(f"{energy:.4g}" for energy in self.energies[:6]) + (", …" if self.energies.size > 6 else "")
        return f"harmonic target, d = {self.d}, energies {shown}, τ = {self.noise:.4g}"


def _shares(target: MultiIndex) -> FloatArray:
    """Return the share of the energy in each degree, what is beyond the last one that is followed in one more."""
    shares, low = target.energies / target.energy, np.zeros(_FOLLOWED + 2)
    low[: min(shares.size, _FOLLOWED + 1)] = shares[: _FOLLOWED + 1]
    low[-1] = max(0.0, 1.0 - float(low.sum()))
    return low[: int(np.flatnonzero(low > 1e-12)[-1]) + 1]

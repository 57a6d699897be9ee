"""A function of one direction, such as a single neuron: what a network finds and a lazy one does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lazyscope.activations import Activation, activation_names
from lazyscope.checks import FloatArray, real_array, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.numerics.quadrature import MAX_DEGREE
from lazyscope.problems.base import GaussianProblem, Option

_NOTHING = 1e-13  # a Hermite coefficient, relative to the root of the energy, that is rounding of the quadrature
_SIZES = (1e-6, 1e6)  # of the link: simulations see it in float32, and the steps of a network know its scale
_HERMITE = re.compile(r"he([1-9][0-9]?)")


@dataclass(frozen=True, eq=False, slots=True)
class MultiIndex(GaussianProblem):
    """x ~ N(0, I_d), y = h(⟨u, x⟩) + ε, |u| = 1, ε ~ N(0, noise²).

    `link` is h: "he3" for the normalised Hermite polynomial he₃ (any degree to 99), the name of an activation for a
    single neuron, or an `Activation` or callable on arrays of your own. `direction` is u, the first axis by default:
    isotropic inputs have no other. Risks are those of h − E h, without the noise of the test sample, divided by its
    variance, the risk of the best constant.

    >>> target = MultiIndex(50, "he3")
    >>> target.energy, target.information_exponent
    (1.0, 3)
    >>> print(MultiIndex(50, "relu"))
    relu(⟨u, x⟩), d = 50, 73 % of its energy linear, 23 % quadratic, 3 % beyond quadratic
    """

    word: ClassVar[str] = "multi-index"
    title: ClassVar[str] = "function of one direction"
    formula: ClassVar[str] = "y = h(⟨u, x⟩) + ε, x ~ N(0, I)"
    options: ClassVar[tuple[Option, ...]] = (
        Option("d", int, 50, "Dimension."),
        Option("link", str, "he3", "h: he1, he2, … for a Hermite polynomial, or the name of an activation."),
        Option("noise", float, 0.0, "Standard deviation of ε."),
    )
    usual: ClassVar[dict[str, Any]] = GaussianProblem.usual | {
        "regime": "rf,nt", "activation": "erf", "width": "d/2,d,2d", "samples": "200d"
    }  # fmt: skip
    d: int = field()  # with slots, a field that replaces the property of the base class
    link: str | Activation | Callable[[FloatArray], FloatArray] = "he3"
    direction: FloatArray | None = None
    noise: float = 0.0
    mean: float = field(init=False, repr=False, metadata={"stored": False})
    """E h(g) of the link as it is given; `h` and `coefficients` are centred."""
    energy: float = field(init=False, repr=False, metadata={"stored": False})
    """Var h(g), the risk of the best constant, by which risks are divided."""
    coefficients: FloatArray = field(init=False, repr=False, metadata={"stored": False})
    """h_k = E[h(g) he_k(g)] for k = 0, 1, …, with h₀ = 0. A polynomial has as many as its degree says, any other h
    all that quadrature gives, up to degree 400."""

    def __post_init__(self) -> None:
        owner = "MultiIndex"
        object.__setattr__(self, "d", whole_number(self.d, owner, "d"))
        noise = real_number(self.noise, owner, "noise")
        if not 0.0 <= noise <= _SIZES[1]:
            must = f"be a standard deviation, zero or positive, at most {_SIZES[1]:g}"
            raise InvalidParameter.of(owner, "noise", must, f"{noise:g}")
        object.__setattr__(self, "noise", noise)
        if self.direction is not None:
            must = f"be a direction of length 1, {self.d} numbers"
            u = real_array(self.direction, owner, "direction", must)
            if u.shape != (self.d,):
                raise InvalidParameter.of(owner, "direction", must, f"shape {u.shape}")
            length = float(np.linalg.norm(u))
            if not abs(length - 1.0) <= 1e-9:
                raise InvalidParameter.of(owner, "direction", must, f"length {length:.6g}", "Divide it by its length.")
            object.__setattr__(self, "direction", u / length)
        mean, energy, coefficients = self._constants()
        if not _SIZES[0] <= sqrt(energy) <= _SIZES[1]:
            must = f"have a standard deviation between {_SIZES[0]:g} and {_SIZES[1]:g}"
            raise InvalidParameter.of(owner, "link", must, f"{sqrt(energy):.3g}", "Rescale it.")
        coefficients[np.abs(coefficients) <= _NOTHING * sqrt(energy)] = 0.0
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "energy", energy)
        object.__setattr__(self, "coefficients", coefficients[: int(np.flatnonzero(coefficients)[-1]) + 1])

    def _constants(self) -> tuple[float, float, FloatArray]:
        """Return E h(g), Var h(g) and all coefficients; a link that is no Hermite polynomial becomes an activation."""
        if isinstance(self.link, str) and (match := _HERMITE.fullmatch(self.link)):
            return 0.0, 1.0, np.eye(1, int(match[1]) + 1, int(match[1]))[0]
        neuron = _neuron(self.link)
        object.__setattr__(self, "link", neuron)
        coefficients = neuron.hermite_coefficients(1.0, MAX_DEGREE)
        mean, coefficients[0] = float(coefficients[0]), 0.0
        return mean, float(neuron.second_moment(1.0)) - mean**2, coefficients

    def h(self, z: NDArray[Any]) -> NDArray[Any]:
        """Return the centred link at z, in the precision of z."""
        if isinstance(self.link, Activation):
            return np.asarray(self.link.at(z) - z.dtype.type(self.mean))
        k = self.coefficients.size - 1
        monic = np.zeros(k + 1)
        monic[k] = np.exp(-0.5 * np.sum(np.log(np.arange(1, k + 1))))  # he_k = He_k/√k!
        return np.asarray(np.polynomial.hermite_e.hermeval(z, monic), dtype=z.dtype)

    @property
    def energies(self) -> FloatArray:
        """The energy in each degree, h_k²."""
        return np.asarray(self.coefficients**2)

    @property
    def information_exponent(self) -> int:
        """The first degree k ≥ 1 that h has: SGD needs of the order of d^max(k−1, 1) samples (Ben Arous et al. 2021).

        >>> [MultiIndex(9, link).information_exponent for link in ("relu", "abs", "he4")]
        [1, 2, 4]
        """
        return int(np.flatnonzero(self.coefficients)[0])

    @property
    def u(self) -> FloatArray:
        """The direction, of length 1."""
        return np.eye(1, self.d)[0] if self.direction is None else self.direction

    @property
    def covariance(self) -> FloatArray:
        """Σ = I, as the vector of its diagonal."""
        return np.ones(self.d)

    def best_weight_covariance(self) -> FloatArray:
        """Refuse: every weight would be u itself."""
        must = "be isotropic, a covariance Γ, or fixed: the best ones for a function of one direction all lie along it"
        raise InvalidParameter.of("MultiIndex", "weights", must, "'optimal'")

    def __str__(self) -> str:
        name = self.link.name if isinstance(self.link, Activation) else self.link
        share = np.pad(self.energies[:3], (0, 3))[:3] / self.energy
        parts = [(share[1], "linear"), (share[2], "quadratic"), (1.0 - share[1] - share[2], "beyond quadratic")]
        told = ", ".join(f"{100 * part:.0f} % {word}" for part, word in parts if part > 5e-4)
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"{name}(⟨u, x⟩), d = {self.d}, {told.replace(' % ', ' % of its energy ', 1)}{noise}"


def _neuron(link: Any) -> Activation:
    """Return a link that is no Hermite polynomial as an activation, which knows its Gaussian constants."""
    if isinstance(link, str) and link not in activation_names():
        must = "be he1, he2, … for a Hermite polynomial, the name of an activation, or a callable"
        raise InvalidParameter.of("MultiIndex", "link", must, repr(link), "`relu`, `abs` and `erf` are activations.")
    return link if isinstance(link, Activation) else Activation(link)

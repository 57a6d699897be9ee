"""A function of a few directions, such as a single neuron: what a network finds and a lazy one does not."""

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
from lazyscope.problems import links
from lazyscope.problems.base import GaussianProblem, Option

_NOTHING = 1e-13  # a Hermite coefficient, relative to the root of the energy, that is rounding of the quadrature
_SIZES = (1e-6, 1e6)  # of the link: simulations see it in float32, and the steps of a network know its scale
_HERMITE = re.compile(r"he[1-9][0-9]?(\+he[1-9][0-9]?)*")


@dataclass(frozen=True, eq=False, slots=True)
class MultiIndex(GaussianProblem):
    """x ~ N(0, I_d), y = h(⟨u₁, x⟩, …, ⟨u_r, x⟩) + ε, orthonormal u, ε ~ N(0, noise²).

    `link` is h. With one index: "he3" for the normalised Hermite polynomial he₃ (any degree to 99), "he1+he3" for a sum
    of them, the name of an activation for a single neuron, or an `Activation` or callable on arrays of your own. With
    `indices` = r of them: "committee-erf" for the sum of r neurons (or "committee-" with another activation), "product"
    for z₁⋯z_r, "staircase" for z₁ + z₁z₂ + … + z₁⋯z_r, or a callable of an array (n, r), for up to four. `direction`
    is u, or the rows u₁ … u_r, the first axes by default: isotropic inputs have no other. Risks are those of h − E h,
    without the noise of the test sample, divided by its variance, the risk of the best constant.

    >>> target = MultiIndex(50, "he3")
    >>> target.energy, target.information_exponent
    (1.0, 3)
    >>> print(MultiIndex(50, "relu"))
    relu(⟨u, x⟩), d = 50, 73 % of its energy linear, 23 % quadratic, 3 % beyond quadratic, information exponent 1
    >>> print(MultiIndex(50, "staircase", indices=3))
    staircase of 3 directions, d = 50, 33 % of its energy linear, 33 % quadratic, 33 % beyond quadratic, leap 1
    """

    word: ClassVar[str] = "multi-index"
    title: ClassVar[str] = "function of a few directions"
    formula: ClassVar[str] = "y = h(⟨u₁, x⟩, …, ⟨u_r, x⟩) + ε, x ~ N(0, I)"
    options: ClassVar[tuple[Option, ...]] = (
        Option("d", int, 50, "Dimension."),
        Option("link", str, "he3", "h: he3, he1+he3, … (Hermite polynomials), an activation, committee-erf, product …"),
        Option("indices", int, 1, "Number of directions."),
        Option("noise", float, 0.0, "Standard deviation of ε."),
    )
    usual: ClassVar[dict[str, Any]] = GaussianProblem.usual | {
        "regime": "rf,nt", "activation": "erf", "width": "d/2,d,2d", "samples": "200d",
        "times": "0.1:100:7log", "step_size": "0.5", "ridge": "0.01",
    }  # fmt: skip
    d: int = field()  # with slots, a field that replaces the property of the base class
    link: str | Activation | Callable[[FloatArray], FloatArray] = "he3"
    direction: FloatArray | None = None
    noise: float = 0.0
    indices: int = 1
    mean: float = field(init=False, repr=False, metadata={"stored": False})
    """E h(g) of the link as it is given; `h` and `coefficients` are centred."""
    energy: float = field(init=False, repr=False, metadata={"stored": False})
    """Var h(g), the risk of the best constant, by which risks are divided."""
    coefficients: FloatArray = field(init=False, repr=False, metadata={"stored": False})
    """h_k = E[h(g) he_k(g)] for k = 0, 1, …, with h₀ = 0. A polynomial has as many as its degree says, any other h
    all that quadrature gives, up to degree 400. With several indices: of each monomial in `powers`."""
    powers: links.Powers = field(init=False, repr=False, metadata={"stored": False})
    """The degree in each variable of the monomial that a coefficient belongs to, (terms, r)."""
    neuron: Activation | None = field(init=False, repr=False, metadata={"stored": False})
    """σ where h is a neuron or a committee of them."""

    def __post_init__(self) -> None:
        owner = "MultiIndex"
        object.__setattr__(self, "d", whole_number(self.d, owner, "d"))
        noise = real_number(self.noise, owner, "noise")
        if not 0.0 <= noise <= _SIZES[1]:
            must = f"be a standard deviation, zero or positive, at most {_SIZES[1]:g}"
            raise InvalidParameter.of(owner, "noise", must, f"{noise:g}")
        object.__setattr__(self, "noise", noise)
        r = whole_number(self.indices, owner, "indices")
        if r > self.d:
            raise InvalidParameter.of(owner, "indices", f"be at most d = {self.d}, the number of directions", r)
        object.__setattr__(self, "indices", r)
        if self.direction is not None:
            object.__setattr__(self, "direction", _orthonormal(self.direction, r, self.d))
        self._expand()

    def _expand(self) -> None:
        """Work out the series of the link, and refuse one that has none."""
        if self.indices == 1:
            mean, energy, coefficients = self._constants()
            coefficients[np.abs(coefficients) <= _NOTHING * sqrt(energy)] = 0.0
            coefficients = coefficients[: int(np.flatnonzero(coefficients)[-1]) + 1]
            series = links.Expansion(mean, energy, np.arange(coefficients.size)[:, None], coefficients)
        else:
            series = self._many()
        if not _SIZES[0] <= sqrt(series.energy) <= _SIZES[1]:
            must = f"have a standard deviation between {_SIZES[0]:g} and {_SIZES[1]:g}"
            raise InvalidParameter.of("MultiIndex", "link", must, f"{sqrt(series.energy):.3g}", "Rescale it.")
        for name in ("mean", "energy", "coefficients", "powers"):
            object.__setattr__(self, name, getattr(series, name))

    def _constants(self) -> tuple[float, float, FloatArray]:
        """Return E h(g), Var h(g) and all coefficients; a link that is no Hermite polynomial becomes an activation."""
        if isinstance(self.link, str):  # a committee of one neuron is that neuron, a product of one factor he₁
            alone = "he1" if self.link in links.MANY else self.link.removeprefix(links.COMMITTEE)
            object.__setattr__(self, "link", alone)
        object.__setattr__(self, "neuron", None)
        if isinstance(self.link, str) and _HERMITE.fullmatch(self.link):
            coefficients = np.bincount([int(part[2:]) for part in self.link.split("+")]).astype(np.float64)
            return 0.0, float(coefficients @ coefficients), coefficients
        neuron = _neuron(self.link)
        object.__setattr__(self, "link", neuron)
        object.__setattr__(self, "neuron", neuron)
        coefficients = neuron.hermite_coefficients(1.0, MAX_DEGREE)
        mean, coefficients[0] = float(coefficients[0]), 0.0
        return mean, float(neuron.second_moment(1.0)) - mean**2, coefficients

    def _many(self) -> links.Expansion:
        """Return the series of a link of several variables."""
        link, r = self.link, self.indices
        object.__setattr__(self, "neuron", None)
        if isinstance(link, str) and link in links.MANY:
            return links.polynomial(link, r)
        if isinstance(link, str) and link.removeprefix(links.COMMITTEE) in activation_names() and "-" in link:
            neuron = Activation(link.removeprefix(links.COMMITTEE))
            object.__setattr__(self, "neuron", neuron)
            return links.committee(neuron, r)
        if isinstance(link, (str, Activation)) or not callable(link):
            name = link.name if isinstance(link, Activation) else link
            must = f"be a function of {r} variables: committee-erf, committee-relu, …, product, staircase or a callable"
            raise InvalidParameter.of("MultiIndex", "link", must, repr(name))
        return links.expanded(link, r)

    def h(self, z: NDArray[Any]) -> NDArray[Any]:
        """Return the centred link at z, (n,) for one index and (n, r) for more, in the precision of z."""
        number = z.dtype.type
        if self.indices > 1:
            if self.neuron is not None:
                return np.asarray(self.neuron.at(z).sum(axis=1, dtype=z.dtype) - number(self.mean))
            if isinstance(self.link, str):
                return links.value(self.link, z)
            return np.asarray(self.link(z) - number(self.mean), dtype=z.dtype)
        if isinstance(self.link, Activation):
            return np.asarray(self.link.at(z) - number(self.mean))
        degrees = np.arange(1.0, self.coefficients.size)
        size = np.exp(-0.5 * np.concatenate([[0.0], np.cumsum(np.log(degrees))]))  # he_k = He_k/√k!
        return np.asarray(np.polynomial.hermite_e.hermeval(z, self.coefficients * size), dtype=z.dtype)

    @property
    def energies(self) -> FloatArray:
        """The energy in each degree: h_k², or the sum of the squares of all coefficients of the degree."""
        return np.bincount(self.powers.sum(axis=1), self.coefficients**2).astype(np.float64)

    @property
    def information_exponent(self) -> int:
        """The first degree k ≥ 1 that h has: SGD needs of the order of d^max(k−1, 1) samples (Ben Arous et al. 2021).

        >>> [MultiIndex(9, link).information_exponent for link in ("relu", "abs", "he4")]
        [1, 2, 4]
        """
        return int(np.flatnonzero(self.energies)[0])

    @property
    def leap(self) -> int:
        """The most new degrees that SGD must find at once: about d^max(leap−1, 1) samples (Abbe et al. 2023).

        It is that of the directions as they are given: rotated among themselves, they may have another.

        >>> [MultiIndex(9, link, indices=3).leap for link in ("staircase", "product", "committee-abs")]
        [1, 3, 2]
        """
        return links.leap(self.powers[self.coefficients != 0.0])

    @property
    def curvature(self) -> FloatArray:
        """E[h (zzᵀ − I)], (r, r): what a quadratic form sees of h."""
        M = np.zeros((self.indices, self.indices))
        for power, value in zip(self.powers, self.coefficients, strict=True):
            if power.sum() == 2:
                at = np.flatnonzero(power)
                M[at[0], at[-1]] = M[at[-1], at[0]] = value * (sqrt(2.0) if at.size == 1 else 1.0)
        return M

    @property
    def u(self) -> FloatArray:
        """The direction, of length 1; with several indices the directions, (r, d)."""
        if self.direction is None:
            return np.eye(1, self.d)[0] if self.indices == 1 else np.eye(self.indices, self.d)
        return self.direction

    @property
    def covariance(self) -> FloatArray:
        """Σ = I, as the vector of its diagonal."""
        return np.ones(self.d)

    def best_weight_covariance(self) -> FloatArray:
        """Refuse: every weight would be u itself."""
        must = "be isotropic, a covariance Γ, or fixed: the best ones for a function of one direction all lie along it"
        raise InvalidParameter.of("MultiIndex", "weights", must, "'optimal'")

    def __str__(self) -> str:
        name = self.link if isinstance(self.link, str) else getattr(self.link, "name", "callable")
        share = np.pad(self.energies[:3], (0, 3))[:3] / self.energy
        parts = [(share[1], "linear"), (share[2], "quadratic"), (1.0 - share[1] - share[2], "beyond quadratic")]
        told = ", ".join(f"{100 * part:.0f} % {word}" for part, word in parts if part > 5e-4)
        noise = f", noise {self.noise:g}" if self.noise else ""
        told = f"d = {self.d}, {told.replace(' % ', ' % of its energy ', 1)}"
        if self.indices == 1:
            return f"{name}(⟨u, x⟩), {told}, information exponent {self.information_exponent}{noise}"
        return f"{name} of {self.indices} directions, {told}, leap {self.leap}{noise}"


def _neuron(link: Any) -> Activation:
    """Return a link that is no Hermite polynomial as an activation, which knows its Gaussian constants."""
    if isinstance(link, str) and link not in activation_names():
        must = "be he1, he2, … for a Hermite polynomial, the name of an activation, or a callable"
        raise InvalidParameter.of("MultiIndex", "link", must, repr(link), "`relu`, `abs` and `erf` are activations.")
    if isinstance(link, (str, Activation)):
        return Activation(link) if isinstance(link, str) else link
    try:
        return Activation(link)
    except InvalidParameter as error:  # what an activation must be, said of h
        if callable(link) and "must not be linear" in str(error):
            u = np.linspace(-1.0, 1.0, 5)
            varies = np.ptp(np.asarray(link(u), dtype=np.float64)) > 0.0
            must = "be nonlinear as a callable" if varies else "vary: a constant leaves nothing to learn"
            advice = 'The name of the linear one is "he1".' if varies else ""
            got = "a linear callable" if varies else f"the constant {float(np.asarray(link(u))[0]):.3g}"
            raise InvalidParameter.of("MultiIndex", "link", must, got, advice) from None
        told = str(error).replace("The name_or_callable parameter of Activation", "The link parameter of MultiIndex")
        raise InvalidParameter(told.replace("σ", "h")) from error


def _orthonormal(direction: Any, r: int, d: int) -> FloatArray:
    """Return the directions, exactly of length 1, or refuse ones that are dependent or of another length."""
    must = f"be a direction of length 1, {d} numbers" if r == 1 else f"be {r} orthonormal rows of {d} numbers"
    u = real_array(direction, "MultiIndex", "direction", must)
    if u.shape != ((d,) if r == 1 else (r, d)):
        raise InvalidParameter.of("MultiIndex", "direction", must, f"shape {u.shape}")
    rows = np.atleast_2d(u)
    lengths = np.linalg.norm(rows, axis=1)
    worst = float(lengths[np.argmax(np.abs(lengths - 1.0))])
    if not abs(worst - 1.0) <= 1e-9:
        raise InvalidParameter.of("MultiIndex", "direction", must, f"length {worst:.6g}", "Divide it by its length.")
    rows = rows / lengths[:, None]
    overlap = float(np.max(np.abs(rows @ rows.T - np.eye(r))))
    if overlap > 1e-9:
        advice = "Take the Q of a QR decomposition, and write h in its variables."
        raise InvalidParameter.of("MultiIndex", "direction", must, f"a cosine of {overlap:.3g} between two", advice)
    return rows if r > 1 else np.asarray(rows[0])

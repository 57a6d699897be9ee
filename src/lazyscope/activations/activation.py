"""Activations and their Gaussian constants: c_k(s), λ_k, λ̃, b₁, b⋆, σ′.

With he_k = He_k/√k! and g ~ N(0,1), an activation seen through a weight of norm s is the series

    σ(s g) = Σ_k c_k(s) he_k(g),      λ_k = E[σ(g) He_k(g)] = √k! c_k(1),
    λ̃ = E[σ²] − λ₀² − λ₁²,          b₁ = λ₁,   b⋆² = λ̃.

The theorems assume λ₀ = 0: lazyscope *centres* for you, σ → σ − λ₀, wherever a theorem needs it
(random features, which have no offset); the constants here are those of the σ you passed.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import factorial, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.activations.named import NAMED, Definition, Function, Rectified, installed
from lazyscope.activations.piecewise import PiecewiseLinear, recognise
from lazyscope.checks import FloatArray, real_array, whole_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.numerics.quadrature import (
    MAX_DEGREE,
    gaussian_nodes,
    growth_rate,
    hermite_functions,
    piecewise_derivative,
    root_density,
)

_LARGEST_GROWTH = 0.9  # c₁ of assumption A1; float64 overflows on the nodes that a larger one needs
_SCALE_CHUNK = 512  # weight norms handled at once: 512 × a few thousand nodes stays in tens of MB


def activation_names() -> tuple[str, ...]:
    """Return the names that `Activation` knows.

    >>> "relu" in activation_names()
    True
    """
    return (*NAMED, *installed())


def definition(name: str) -> Definition | None:
    """Return what a name stands for; other packages are asked only for names that are not lazyscope's own.

    >>> definition("relu").formula, definition("unheard-of")
    ('max(u, 0)', None)
    """
    return NAMED.get(name) or installed().get(name)


@dataclass(frozen=True)
class Activation:
    """An activation σ: a name, or a callable on arrays with the points where it is not smooth.

    Assumption A1 is checked on construction: σ(u)² ≤ c₀ exp(c₁u²/2) with c₁ < 1 (0.9 here, which float64
    needs), and σ not linear. A callable must be smooth between its `kinks` (0 is always treated as one).

    >>> relu = Activation("relu")
    >>> print(f"{relu.b1:.12f} {relu.b_star:.12f}")
    0.500000000000 0.301405137495
    >>> leaky = Activation(lambda u: np.where(u > 1, u, 0.1 * u + 0.9), kinks=(1.0,))
    >>> print(f"{leaky.lambda_k(2):.6f}")
    0.217774
    """

    name_or_callable: str | Function
    kinks: tuple[float, ...] = field(default=())

    def __post_init__(self) -> None:
        source = self.name_or_callable
        if isinstance(source, str):
            self._check_name(source)
            kinks: Sequence[float] = self._definition.kinks
        elif callable(source):
            kinks = np.ravel(real_array(self.kinks, "Activation", "kinks", "be finite numbers")).tolist()
        else:
            must = "be a name or a callable on arrays"
            raise InvalidParameter.of("Activation", "name_or_callable", must, repr(source))
        object.__setattr__(self, "kinks", tuple(sorted(float(k) for k in kinks)))
        if not isinstance(source, str):
            self._check_callable()

    def _check_name(self, name: str) -> None:
        if (known := definition(name)) is not None:
            if tuple(self.kinks) not in ((), known.kinks):
                must = "be left out for a named activation"
                raise InvalidParameter.of("Activation", "kinks", must, self.kinks)
            return
        nearest = difflib.get_close_matches(name.lower(), activation_names(), n=1, cutoff=0.5)
        hint = f"Did you mean {nearest[0]!r}?" if nearest else ""
        must = "be one of " + ", ".join(activation_names()) + ", or a callable"
        raise InvalidParameter.of("Activation", "name_or_callable", must, repr(name), hint)

    def _check_callable(self) -> None:
        """Assumption A1, and that the quadrature converges, which an undeclared kink prevents."""
        with np.errstate(all="ignore"):
            if np.any(np.isnan(self(np.linspace(-8.0, 8.0, 64)))):
                got = "NaN for |u| ≤ 8"
                raise InvalidParameter.of("Activation", "name_or_callable", "return real numbers", got)
            growth = self.growth
        if not growth <= _LARGEST_GROWTH:
            must = "satisfy assumption A1, σ(u)² ≤ c₀ exp(c₁u²/2) with c₁ < 1 (at most 0.9 in float64)"
            got = f"a callable that grows with c₁ ≈ {growth:.3g}"
            raise InvalidParameter.of("Activation", "name_or_callable", must, got, "It grows too fast.")
        fine = self._low_constants(1.0, refine=2)
        power = fine[0]
        if not np.all(np.isfinite(fine)):
            raise InvalidParameter.of("Activation", "name_or_callable", "return finite numbers", "NaN or infinity")
        if power <= 0 or power - fine[1] ** 2 - fine[2] ** 2 <= 1e-12 * power:
            must = "satisfy assumption A1: it must not be linear, σ(u) = a₀ + a₁u"
            raise InvalidParameter.of("Activation", "name_or_callable", must, "a linear or constant callable")
        # At a second scale too: a kink at u = 1 falls on the edge of a panel at s = 1, and nowhere near one at 0.927.
        gap = 0.0
        for s in (1.0, 0.927):
            coarse, fine = (self._low_constants(s, refine) for refine in (1, 2))
            unit = np.array([fine[0], *[sqrt(fine[0])] * (fine.size - 1)])
            gap = max(gap, float(np.max(np.abs(coarse - fine) / unit)))
        if gap > 1e-12:
            raise NotConverged(
                f"The Hermite coefficients of {self.name} change by {gap:.1e} when the quadrature is refined "
                "(1e-12 is the tolerance): σ is not smooth between its kinks. Pass kinks=(…), every point where "
                "σ or one of its derivatives jumps."
            )

    def _low_constants(self, s: float, refine: int) -> FloatArray:
        """E[σ(s g)²], c₀(s) … c₈(s) on a grid refined `refine` times."""
        g, w = gaussian_nodes(self.kinks, s, 8, self.growth, refine=refine)
        values = self(s * g)
        table = hermite_functions(g, 8)
        return np.concatenate([[np.sum(w * values**2 * table[0])], table @ (w * values)])

    # -- the function ------------------------------------------------------------------------------------

    @property
    def _definition(self) -> Definition:
        """What the name stands for; only a named activation has one."""
        known = definition(self.name)
        assert known is not None  # checked on construction
        return known

    @property
    def name(self) -> str:
        """The name, or the callable's own."""
        source = self.name_or_callable
        return source if isinstance(source, str) else getattr(source, "__name__", type(source).__name__)

    @property
    def formula(self) -> str:
        """The formula of a named activation."""
        return self._definition.formula if isinstance(self.name_or_callable, str) else self.name

    def __repr__(self) -> str:
        if isinstance(self.name_or_callable, str):
            return f"Activation({self.name!r})"
        return f"Activation({self.name}, kinks={self.kinks})"

    def __call__(self, u: Any) -> FloatArray:
        """σ(u), elementwise."""
        u = np.asarray(u, dtype=np.float64)
        source = self.name_or_callable
        if isinstance(source, str):
            return np.asarray(self._definition.function(u))
        must = "map a float64 array to an array of the same shape, elementwise"
        try:
            raw = np.asarray(source(u))
            if raw.dtype.kind not in "biuf":
                raise TypeError(f"it returned values of type {raw.dtype}")
            value = raw.astype(np.float64)
        except Exception as error:  # whatever a user's own function raises
            got = f"{type(error).__name__}: {error}"
            raise InvalidParameter.of("Activation", "name_or_callable", must, got) from error
        if value.shape != u.shape:
            got = f"shape {value.shape} for shape {u.shape}"
            raise InvalidParameter.of("Activation", "name_or_callable", must, got)
        return value

    def at(self, u: NDArray[Any]) -> NDArray[Any]:
        """σ(u) in the precision of u, unchecked: simulations live in float32, half the memory and twice the speed."""
        source = self.name_or_callable
        function: Any = self._definition.function if isinstance(source, str) else source
        return np.asarray(function(u), dtype=u.dtype)

    def slope_at(self, u: NDArray[Any]) -> NDArray[Any]:
        """σ′(u) in the precision of u: closed form, or central differences (good to 1e-10) of a callable."""
        source: Any = self.name_or_callable
        if isinstance(source, str):
            slope = self._definition.derivative
            assert slope is not None
            return np.asarray(slope(u), dtype=u.dtype)
        wide, h = u.astype(np.float64), 1e-5
        return np.asarray((source(wide + h) - source(wide - h)) / (2.0 * h), dtype=u.dtype)

    def derivative(self, u: Any) -> FloatArray:
        """σ′(u): closed form for a named activation, spectral (near 1e-12) for a callable.

        >>> float(Activation("tanh").derivative(0.0))
        1.0
        """
        if not self.has_derivative:
            must = "have a derivative that is a function"
            raise InvalidParameter.of("Activation.derivative", "activation", must, f"{self.name}, which jumps")
        u = np.asarray(u, dtype=np.float64)
        source = self.name_or_callable
        if isinstance(source, str):
            slope = self._definition.derivative
            assert slope is not None
            return np.asarray(slope(u))
        if self.piecewise is not None:
            return self.piecewise.derivative(u)
        return piecewise_derivative(self, self.kinks, u)

    @cached_property
    def has_derivative(self) -> bool:
        """Whether σ′ is a function: false for `sign` and `step`, whose derivative is a point mass."""
        if isinstance(self.name_or_callable, str):
            return self._definition.derivative is not None
        points = np.array([0.0, *self.kinks])
        step = 1e-9
        jump = np.abs(self(points + step) - self(points - step))
        return bool(np.all(jump <= 1e-6 * (1.0 + np.abs(self(points)))))

    # -- structure that other modules may use --------------------------------------------------------------

    @property
    def degree(self) -> int | None:
        """The p with σ(s u) = s^p σ(u) for all s > 0; None where σ is not homogeneous."""
        return self._definition.degree if isinstance(self.name_or_callable, str) else None

    @property
    def rectified(self) -> Rectified | None:
        """How σ is built from t₊^m/m!, where it is; its pair kernels then have a closed form."""
        return self._definition.rectified if isinstance(self.name_or_callable, str) else None

    @cached_property
    def piecewise(self) -> PiecewiseLinear | None:
        """A callable that is linear between its kinks, written as bends; its pair kernels then have a closed form."""
        return None if isinstance(self.name_or_callable, str) else recognise(self, self.kinks)

    @property
    def has_closed_kernels(self) -> bool:
        """Whether the pair kernels of σ and its derivatives are closed forms, good for parallel weights."""
        return self.rectified is not None or self.piecewise is not None

    @property
    def _settles(self) -> float:
        return self._definition.settles if isinstance(self.name_or_callable, str) else np.inf

    @cached_property
    def is_square(self) -> bool:
        """Whether σ(u) = αu² + γ almost everywhere: what Theorems 2, 3, 5 and 6 assume.

        >>> Activation("square").is_square, Activation(lambda u: 3 * u**2 - 1).is_square
        (True, True)
        """
        if self.name_or_callable == "square":  # by its name, without a quadrature
            return True
        power, c0, c2 = self.second_moment(1.0), self.hermite(0), self.hermite(2)
        return bool(abs(power - c0**2 - c2**2) <= 1e-12 * power)

    @cached_property
    def growth(self) -> float:
        """c₁ of assumption A1: the coefficient of u²/2 in log σ², beyond any power and exponential of u."""
        if isinstance(self.name_or_callable, str):
            return 0.0  # every named activation is bounded by a power
        return growth_rate(self)

    # -- Gaussian constants --------------------------------------------------------------------------------

    def _rules(self, s: FloatArray, degree: int) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield (which scales, nodes g, weights): one rule serves many scales unless a kink moves with s."""
        worst = self.growth * float(np.max(s)) ** 2
        if worst > _LARGEST_GROWTH:
            must = f"satisfy assumption A1 at every weight norm (largest here: {np.max(s):.4g})"
            got = f"{self.name} with c₁·s² ≈ {worst:.3g}"
            raise InvalidParameter.of("Activation", "name_or_callable", must, got)
        moving = any(k != 0.0 for k in self.kinks)
        size = 1 if moving else _SCALE_CHUNK
        for start in range(0, s.size, size):
            part = slice(start, min(start + size, s.size))
            g, w = gaussian_nodes(self.kinks, float(np.max(s[part])), degree, self.growth, self._settles)
            yield part, g, w

    def hermite_coefficients(self, s: Any, degree: int) -> FloatArray:
        """c_k(s) for k = 0 … degree: shape (degree + 1, *s.shape), to 1e-12 of √E[σ(s g)²].

        Costs 2·Q·degree flops a scale for Q ≈ 600 nodes (none for a homogeneous σ), O(512·Q) memory.

        >>> Activation("square").hermite_coefficients(2.0, 3).round(6) + 0.0
        array([4.      , 0.      , 5.656854, 0.      ])
        """
        degree = whole_number(degree, "hermite_coefficients", "degree", least=0)
        if degree > MAX_DEGREE:
            must = f"be at most {MAX_DEGREE}"
            raise InvalidParameter.of("hermite_coefficients", "degree", must, degree)
        s = _scales(s)
        if self.degree is not None:
            unit = self._unit_coefficients(degree)
            return np.asarray(unit.reshape(-1, *[1] * s.ndim) * s**self.degree)
        if self.piecewise is not None:
            return self.piecewise.hermite_coefficients(s, degree)
        flat = s.ravel()
        result = np.empty((degree + 1, flat.size))
        for part, g, w in self._rules(flat, degree):
            values = self(flat[part, None] * g)
            result[:, part] = (hermite_functions(g, degree) * w) @ values.T
        return result.reshape(degree + 1, *s.shape)

    def _unit_coefficients(self, degree: int) -> FloatArray:
        g, w = gaussian_nodes(self.kinks, 1.0, degree, self.growth, self._settles)
        return np.asarray(hermite_functions(g, degree) @ (w * self(g)))

    def hermite(self, k: int, s: float = 1.0) -> float:
        """c_k(s) = E[σ(s g) he_k(g)].

        >>> print(f"{Activation('relu').hermite(2):.12f}")
        0.282094791774
        """
        return float(self.hermite_coefficients(s, k)[k])

    def lambda_k(self, k: int) -> float:
        """λ_k = E[σ(g) He_k(g)], the un-normalised coefficient that the theorems print.

        >>> Activation("square").lambda_k(2).__round__(12)
        2.0
        """
        return self.hermite(k) * sqrt(factorial(k))

    def _mean(self, integrand: Callable[[FloatArray, FloatArray], FloatArray], s: Any, power: int) -> FloatArray:
        """E[integrand(s g, g)] for each scale; s^(2·degree − power) times that at s = 1 where σ is homogeneous."""
        s = _scales(s)
        if self.degree is not None and np.any(s != 1.0):
            return np.asarray(self._mean(integrand, 1.0, power) * s ** (2 * self.degree - power))
        flat = s.ravel()
        parts = [integrand(flat[part, None] * g, g) @ (w * root_density(g)) for part, g, w in self._rules(flat, 4)]
        return np.concatenate(parts).reshape(s.shape)

    def second_moment(self, s: Any) -> FloatArray:
        """E[σ(s g)²].

        >>> print(f"{Activation('relu').second_moment(1.0):.12f}")
        0.500000000000
        """
        if self.piecewise is not None:
            return self.piecewise.second_moment(_scales(s))
        return self._mean(lambda u, g: self(u) ** 2, s, 0)

    def second_moment_slope(self, s: Any) -> FloatArray:
        """d/ds E[σ(s g)²] = E[σ(s g)²(g² − 1)]/s: the density of s·g is differentiated, not σ."""
        if self.piecewise is not None:
            return self.piecewise.second_moment_slope(_scales(s), self)
        return self._mean(lambda u, g: self(u) ** 2 * (g * g - 1.0), s, 0) / _scales(s)

    def slope_moments(self, s: Any) -> tuple[FloatArray, FloatArray]:
        """E[σ′(s g)²] and E[σ′(s g)² g²]: the diagonal blocks of the tangent kernel."""
        if self.piecewise is not None:
            return self.piecewise.slope_moments(_scales(s))
        plain = self._mean(lambda u, g: self.derivative(u) ** 2, s, 2)
        weighted = self._mean(lambda u, g: (self.derivative(u) * g) ** 2, s, 2)
        return plain, weighted

    @cached_property
    def lambda_tilde(self) -> float:
        """λ̃ = E[σ(g)²] − λ₀² − λ₁²: the energy beyond linear."""
        c0, c1 = self.hermite_coefficients(1.0, 1)
        return float(self.second_moment(1.0) - c0**2 - c1**2)

    @property
    def b1(self) -> float:
        """b₁ = E[g σ(g)]."""
        return self.hermite(1)

    @property
    def b_star(self) -> float:
        """b⋆ = √(E[σ²] − E[σ]² − b₁²)."""
        return sqrt(self.lambda_tilde)


def as_activation(value: Any) -> Activation:
    """Return an `Activation` from itself, a name or a callable.

    >>> as_activation("relu")
    Activation('relu')
    """
    return value if isinstance(value, Activation) else Activation(value)


def _scales(s: Any) -> FloatArray:
    array = real_array(s, "Activation", "s", "be positive weight norms")
    if np.any(array <= 0):
        raise InvalidParameter.of("Activation", "s", "be positive weight norms", f"{np.min(array):g}")
    return array

"""The named activations: formula, function, derivative and structure, one entry each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import factorial, sqrt
from typing import Any

import numpy as np

from lazyscope import plugins
from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter

Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Rectified:
    """σ is built from t₊^m/m!: itself (parity 0), plus (+1) or minus (−1) its mirror image."""

    power: int
    parity: int


@dataclass(frozen=True)
class Definition:
    """What a named activation is: its function and, where it has one, its derivative; and what is known beyond them.

    Both are functions of arrays that keep float32 as it is. `kinks` are the points where σ or a derivative jumps.
    """

    formula: str
    function: Function
    derivative: Function | None
    kinks: tuple[float, ...] = ()
    degree: int | None = None  # σ(s u) = s^degree σ(u) for s > 0
    rectified: Rectified | None = None
    settles: float = np.inf  # beyond |u| = settles, σ is a polynomial up to rounding


def _special(name: str) -> Function:
    """A function of scipy.special, imported on first use."""

    def function(u: FloatArray) -> FloatArray:
        import scipy.special

        return np.asarray(getattr(scipy.special, name)(u))

    return function


_erf, _sigmoid, _normal_cdf = _special("erf"), _special("expit"), _special("ndtr")


def _normal_pdf(u: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * u * u) / sqrt(2.0 * np.pi))


def _positive(u: FloatArray) -> FloatArray:
    return np.asarray(u > 0, dtype=np.float64)


def _rectified(p: int, formula: str) -> Definition:
    """max(u, 0)^p/p!, whose derivative is the same with p − 1."""
    return Definition(
        formula,
        lambda u: np.maximum(u, 0.0) ** p / float(factorial(p)),
        lambda u: np.maximum(u, 0.0) ** (p - 1) / float(factorial(p - 1)),
        (0.0,),
        p,
        Rectified(power=p, parity=0),
    )


NAMED: dict[str, Definition] = {
    "square": Definition("u²", np.square, lambda u: 2.0 * u, degree=2),
    "cube": Definition("u³", lambda u: u**3, lambda u: 3.0 * u * u, degree=3),
    "relu": Definition("max(u, 0)", lambda u: np.maximum(u, 0.0), _positive, (0.0,), 1, Rectified(power=1, parity=0)),
    "relu2": _rectified(2, "max(u, 0)²/2"),
    "relu3": _rectified(3, "max(u, 0)³/6"),
    "relu4": _rectified(4, "max(u, 0)⁴/24"),
    "relu5": _rectified(5, "max(u, 0)⁵/120"),
    "abs": Definition("|u|", np.abs, np.sign, (0.0,), 1, Rectified(power=1, parity=1)),
    "sign": Definition("sign(u)", np.sign, None, (0.0,), 0, Rectified(power=0, parity=-1)),
    "step": Definition("1{u > 0}", _positive, None, (0.0,), 0, Rectified(power=0, parity=0)),
    "tanh": Definition("tanh(u)", np.tanh, lambda u: 1.0 - np.tanh(u) ** 2, settles=20.0),
    "erf": Definition("erf(u)", _erf, lambda u: 2.0 / sqrt(np.pi) * np.exp(-u * u), settles=7.0),
    "erf2": Definition(
        "erf(u/√2)", lambda u: _erf(u / sqrt(2.0)), lambda u: sqrt(2.0 / np.pi) * np.exp(-0.5 * u * u), settles=10.0
    ),
    "sigmoid": Definition("1/(1 + e⁻ᵘ)", _sigmoid, lambda u: _sigmoid(u) * _sigmoid(-u), settles=38.0),
    "softplus": Definition("log(1 + eᵘ)", lambda u: np.logaddexp(0.0, u), _sigmoid, settles=38.0),
    "gelu": Definition(
        "u Φ(u)", lambda u: u * _normal_cdf(u), lambda u: _normal_cdf(u) + u * _normal_pdf(u), settles=10.0
    ),
    "silu": Definition(
        "u/(1 + e⁻ᵘ)",
        lambda u: u * _sigmoid(u),
        lambda u: _sigmoid(u) * (1.0 + u * _sigmoid(-u)),
        settles=42.0,
    ),
    "sin": Definition("sin(u)", np.sin, np.cos),
    "cos": Definition("cos(u)", np.cos, lambda u: -np.sin(u)),
}


@cache
def installed() -> dict[str, Definition]:
    """Return the activations of other installed packages; an entry point's name is the activation's."""
    definitions: dict[str, Definition] = {}

    def take(name: str, thing: Any) -> None:
        if not isinstance(thing, Definition):
            must = "be a lazyscope.activations.Definition"
            raise InvalidParameter.of("lazyscope.activations", name, must, type(thing).__name__)
        if name in NAMED or definitions.setdefault(name, thing) is not thing:
            raise InvalidParameter.of("lazyscope.activations", name, "have a name of its own", "one that is taken")

    plugins.collect(plugins.ACTIVATIONS, take)
    return definitions

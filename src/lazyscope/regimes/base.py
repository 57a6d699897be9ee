"""What every regime has: words that choose it, options, and the weights that it may bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, real_array, real_number, symmetric
from lazyscope.errors import InvalidParameter
from lazyscope.problems.base import Option

ACTIVATION = Option("activation", str, None, "Name of σ, such as relu or tanh.")


@dataclass(frozen=True, eq=False)
class FixedWeights:
    """First-layer weights that you bring, instead of a law to draw them from: W = (w₁ … w_N), shape (d, N).

    >>> FixedWeights(np.ones((3, 2)))
    FixedWeights(d=3, N=2)
    """

    W: FloatArray

    def __post_init__(self) -> None:
        must = "be a (d, N) matrix of weights, a column for each neuron"
        W = real_array(self.W, "FixedWeights", "W", must)
        if W.ndim != 2 or W.size == 0:
            raise InvalidParameter.of("FixedWeights", "W", must, f"shape {W.shape}")
        if not np.all(np.any(W, axis=0)):
            raise InvalidParameter.of("FixedWeights", "W", must + ", none of them zero", "a zero column")
        object.__setattr__(self, "W", W)

    def __repr__(self) -> str:
        return f"FixedWeights(d={self.W.shape[0]}, N={self.W.shape[1]})"


Weights = None | str | FloatArray | FixedWeights


def as_weights(value: Any, owner: str) -> Weights:
    """Check the `weights` parameter that random features and the tangent model share."""
    if value is None or isinstance(value, FixedWeights):
        return value
    if isinstance(value, str):
        if value not in ("optimal", "isotropic"):
            must = 'be None, "isotropic", "optimal", a covariance Γ or FixedWeights(W)'
            raise InvalidParameter.of(owner, "weights", must, repr(value))
        return None if value == "isotropic" else value
    Gamma = symmetric(value, owner, "weights")
    diagonal = Gamma if Gamma.ndim == 1 else np.diagonal(Gamma)
    if not np.any(Gamma) or np.any(diagonal < 0):
        got = "zero" if not np.any(Gamma) else f"a variance of {np.min(diagonal):.4g}"
        raise InvalidParameter.of(owner, "weights", "be a covariance Γ ⪰ 0, not zero", got)
    return Gamma


def positive(value: Any, owner: str, parameter: str) -> float:
    """Return a positive number that is neither tiny nor huge."""
    number = real_number(value, owner, parameter)
    if not 1e-12 <= number <= 1e12:
        raise InvalidParameter.of(owner, parameter, "be positive, between 1e-12 and 1e12", value)
    return number


def describe(weights: Weights) -> str:
    """Say in a word or two where weights come from; nothing where they are isotropic."""
    if weights is None:
        return ""
    if isinstance(weights, np.ndarray):
        return ", given Γ"
    return f", weights {weights}"


class Regime:
    """What is trained, and how the answer is labelled.

    A subclass has `words` that choose it on the command line and in sweep plans, each with the keywords that it fixes;
    `options` are its options there, and `from_options` makes it from their values. A word that is a `flag` may be given
    as an option of its own, such as `--isotropic`. `refused` says why a fidelity has no result for it, and which has.
    """

    label: ClassVar[str]
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    options: ClassVar[tuple[Option, ...]] = ()
    flag: ClassVar[bool] = False
    refused: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def from_options(cls, **values: Any) -> Self:
        """Return the regime that these options describe; what is None is left to its default."""
        return cls(**{name: value for name, value in values.items() if value is not None})


class Network(Regime):
    """A regime of a two-layer network: it has an activation."""

    activation: Activation
    options: ClassVar[tuple[Option, ...]] = (ACTIVATION,)

    def __str__(self) -> str:
        return f"{self.label}, σ = {self.activation.name}"

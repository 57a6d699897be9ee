"""Lazy regimes: linear in what is trained, around random weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.named import Function
from lazyscope.errors import InvalidParameter
from lazyscope.problems.base import Option
from lazyscope.regimes.base import ACTIVATION, Network, Weights, as_weights, describe


@dataclass(frozen=True, eq=False, init=False)
class RandomFeatures(Network):
    """RF: only the second layer is trained, f(x) = Σ a_i σ(⟨w_i, x⟩) (Ghorbani et al. 2019, Eq. 2).

    `weights` is the law of w_i: None for isotropic, a covariance Γ as (d, d) or (d,), "optimal" for the Γ that
    suits the problem at infinite width (Γ ∝ B), or `FixedWeights(W)`. Γ is rescaled to the normalisation that
    the theorems assume, Tr(ΓΣ) = 1, and σ is centred (λ₀ = 0); the class has no offset (footnote 2 there).
    `surrogate` puts noisy linear features u_i = b₁⟨w_i, x⟩ + b⋆z_i, z_i ~ N(0, 1), in the place of σ(⟨w_i, x⟩): in
    proportion N ~ n ~ d they learn as much.

    >>> print(RandomFeatures("relu"))
    RF, σ = relu
    """

    activation: Activation
    weights: Weights
    surrogate: bool
    label: ClassVar[str] = "RF"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"rf": {}}
    options: ClassVar[tuple[Option, ...]] = (
        ACTIVATION,
        Option(
            "weights",
            ("isotropic", "optimal", Path),
            None,
            "Law of the random features: isotropic, optimal, or a file with their covariance Γ.",
            when="sized",
        ),
        Option("surrogate", bool, False, "Noisy linear features b₁⟨w, x⟩ + b⋆z instead of σ(⟨w, x⟩).", when="open"),
    )

    def __init__(
        self, activation: Activation | str | Function = "square", weights: Any = None, *, surrogate: bool = False
    ) -> None:
        object.__setattr__(self, "activation", as_activation(activation))
        object.__setattr__(self, "weights", as_weights(weights, "RandomFeatures"))
        if not isinstance(surrogate, bool):
            raise InvalidParameter.of("RandomFeatures", "surrogate", "be True or False", repr(surrogate))
        object.__setattr__(self, "surrogate", surrogate)

    def __str__(self) -> str:
        return super().__str__() + describe(self.weights) + (", noisy linear surrogate" if self.surrogate else "")


@dataclass(frozen=True, eq=False, init=False)
class NeuralTangent(Network):
    """NT: the linearisation in the first layer, f(x) = c + Σ σ′(⟨w_i, x⟩)⟨a_i, x⟩ (Ghorbani et al. 2019, Eq. 3).

    >>> print(NeuralTangent())
    NT, σ = square
    """

    activation: Activation
    weights: Weights
    label: ClassVar[str] = "NT"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"nt": {}}

    def __init__(self, activation: Activation | str | Function = "square", weights: Any = None) -> None:
        object.__setattr__(self, "activation", as_activation(activation))
        object.__setattr__(self, "weights", as_weights(weights, "NeuralTangent"))
        if not self.activation.has_derivative:
            must = "have a derivative that is a function: the tangent model is built on σ′"
            advice = 'Use RandomFeatures, or "erf" or "tanh".'
            raise InvalidParameter.of("NeuralTangent", "activation", must, self.activation.name, advice)

    def __str__(self) -> str:
        return super().__str__() + describe(self.weights)


@dataclass(frozen=True, eq=False, init=False)
class JointTangent(Network):
    """RF and NT together, the linearisation in both layers: f(x) = c + Σ a_iσ(⟨w_i, x⟩) + Σ σ′(⟨w_i, x⟩)⟨v_i, x⟩.

    This is Eq. 7 of Ghorbani et al. (2019), f(x; θ₀ + β) ≈ ⟨β, ∇f(x; θ₀)⟩, with β = (a, v): the network at the start is
    taken out, f(·; θ₀) = 0, and the size of its second layer only changes the scale of v. Where σ is homogeneous of
    degree p, such as u² and ReLU, pσ(u) = uσ′(u), and the model is NT itself (Euler).

    >>> print(JointTangent("erf"))
    RF+NT, σ = erf
    """

    activation: Activation
    weights: Weights
    label: ClassVar[str] = "RF+NT"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"joint": {}}

    def __init__(self, activation: Activation | str | Function = "square", weights: Any = None) -> None:
        first_layer = NeuralTangent(activation, weights)  # asks the same of both
        object.__setattr__(self, "activation", first_layer.activation)
        object.__setattr__(self, "weights", first_layer.weights)

    @property
    def first_layer(self) -> NeuralTangent:
        """The part of the model that moves the first layer."""
        return NeuralTangent(self.activation, self.weights)

    @property
    def is_neural_tangent(self) -> bool:
        """Whether NT contains the second layer's part: σ homogeneous, or σ = αu² + γ."""
        return self.activation.is_square or self.activation.degree is not None

    def __str__(self) -> str:
        return super().__str__() + describe(self.weights)

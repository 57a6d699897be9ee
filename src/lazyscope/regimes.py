"""Regimes: how the network is trained. Activation, law of the first-layer weights; nothing about data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.derivatives import require_smooth
from lazyscope.activations.named import Function
from lazyscope.checks import FloatArray, real_array, real_number, symmetric, whole_number
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.problems.base import Option

_ACTIVATION = Option("activation", str, None, "Name of σ, such as relu or tanh.")


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


def _as_weights(value: Any, owner: str) -> Weights:
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


def _positive(value: Any, owner: str, parameter: str) -> float:
    number = real_number(value, owner, parameter)
    if not 1e-12 <= number <= 1e12:
        raise InvalidParameter.of(owner, parameter, "be positive, between 1e-12 and 1e12", value)
    return number


class Regime:
    """What is trained, and how the answer is labelled.

    A subclass has `words` that choose it on the command line and in sweep plans, each with the keywords that it fixes;
    `options` are its options there, and `from_options` makes it from their values. A word that is a `flag` may be given
    as an option of its own, such as `--isotropic`.
    """

    label: ClassVar[str]
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    options: ClassVar[tuple[Option, ...]] = ()
    flag: ClassVar[bool] = False

    @classmethod
    def from_options(cls, **values: Any) -> Self:
        """Return the regime that these options describe; what is None is left to its default."""
        return cls(**{name: value for name, value in values.items() if value is not None})


class Network(Regime):
    """A regime of a two-layer network: it has an activation."""

    activation: Activation
    options: ClassVar[tuple[Option, ...]] = (_ACTIVATION,)

    def __str__(self) -> str:
        return f"{self.label}, σ = {self.activation.name}"


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
        _ACTIVATION,
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
        object.__setattr__(self, "weights", _as_weights(weights, "RandomFeatures"))
        if not isinstance(surrogate, bool):
            raise InvalidParameter.of("RandomFeatures", "surrogate", "be True or False", repr(surrogate))
        object.__setattr__(self, "surrogate", surrogate)

    def __str__(self) -> str:
        return super().__str__() + _describe(self.weights) + (", noisy linear surrogate" if self.surrogate else "")


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
        object.__setattr__(self, "weights", _as_weights(weights, "NeuralTangent"))
        if not self.activation.has_derivative:
            must = "have a derivative that is a function: the tangent model is built on σ′"
            advice = 'Use RandomFeatures, or "erf" or "tanh".'
            raise InvalidParameter.of("NeuralTangent", "activation", must, self.activation.name, advice)

    def __str__(self) -> str:
        return super().__str__() + _describe(self.weights)


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
        return super().__str__() + _describe(self.weights)


@dataclass(frozen=True, eq=False, init=False)
class Trained(Network):
    """NN: both layers are trained, f(x) = c + Σ a_i σ(⟨w_i, x⟩) (Ghorbani et al. 2019, Eq. 1).

    `init` scales the initial weights. With an output scale `alpha` the network is f = α(h − h₀) + c instead, with
    h = (1/N)Σσ(⟨w_i, x⟩), h₀ the same before training, and the first layer is trained: lazily for large α, where it
    tends to NT, and richly for small (Chizat, Oyallon and Bach 2019).

    >>> print(Trained(), Trained(alpha=100.0), sep=" | ")
    NN, σ = square | NN, σ = square, α = 100
    """

    activation: Activation
    alpha: float | None
    init: float
    label: ClassVar[str] = "NN"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"nn": {}}
    options: ClassVar[tuple[Option, ...]] = (
        _ACTIVATION,
        Option("alpha", float, None, "Output scale of nn: f = α(h − h₀) + c, lazy for large α.", when="scaled"),
        Option("init", float, None, "Scale of the initial weights of nn: 1 by default.", when="scaled"),
    )

    def __init__(
        self, activation: Activation | str | Function = "square", alpha: float | None = None, init: float = 1.0
    ) -> None:
        object.__setattr__(self, "activation", as_activation(activation))
        object.__setattr__(self, "alpha", None if alpha is None else _positive(alpha, "Trained", "alpha"))
        object.__setattr__(self, "init", _positive(init, "Trained", "init"))

    def __str__(self) -> str:
        scale = "" if self.alpha is None else f", α = {self.alpha:g}"
        return super().__str__() + scale + ("" if self.init == 1.0 else f", initial weights × {self.init:g}")


@dataclass(frozen=True, eq=False, init=False)
class MeanField(Network):
    """MF: a network as a measure, f(x; ρ) = ∫ a σ(⟨w, x⟩) ρ(da, dw), in which the risk is convex (Montanari 2019).

    A width of N is a measure held by N particles of mass 1/N each: a network in mean-field scaling.

    >>> print(MeanField())
    MF, σ = relu
    """

    activation: Activation
    label: ClassVar[str] = "MF"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"mf": {}}

    def __init__(self, activation: Activation | str | Function = "relu") -> None:
        object.__setattr__(self, "activation", as_activation(activation))
        if not self.activation.has_derivative:
            must = "have a derivative that is a function: particles follow σ′"
            raise InvalidParameter.of("MeanField", "activation", must, self.activation.name)


@dataclass(frozen=True, eq=False)
class Bayes(Regime):
    """No network at all: the best function of x there is, the floor that no regime beats."""

    label: ClassVar[str] = "Bayes"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"bayes": {}}

    def __str__(self) -> str:
        return "Bayes"


def _describe(weights: Weights) -> str:
    if weights is None:
        return ""
    if isinstance(weights, np.ndarray):
        return ", given Γ"
    return f", weights {weights}"


@dataclass(frozen=True, eq=False, init=False)
class Taylor(Network):
    """Taylor model of order k around the symmetric initialisation (Bai & Lee 2019, §§3, 6); the second layer is fixed.

        f^{(k)}_W(x) = (1/√m) Σ_r a_r σ^{(k)}(w_{0,r}·x)/k! (w_r·x)^k

    `randomized=False` is this model itself, the clean one: k = 1 the tangent model, k = 2 the quadratic model f^Q.
    `randomized=True`, for k = 2, is the network f_{W₀+WΣ} trained under fresh random signs Σ, which couples it with
    f^Q. σ must have k derivatives, the last one Lipschitz (Assumption A there).

    >>> print(Taylor())
    Taylor, order 2, randomised network, σ = relu3
    """

    order: int
    activation: Activation
    randomized: bool
    label: ClassVar[str] = "Taylor"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"quadratic": {"randomized": False}, "randomized": {}}

    def __init__(
        self, order: int = 2, activation: Activation | str | Function = "relu3", randomized: bool = True
    ) -> None:
        object.__setattr__(self, "order", whole_number(order, "Taylor", "order"))
        object.__setattr__(self, "activation", as_activation(activation))
        if not isinstance(randomized, (bool, np.bool_)):
            raise InvalidParameter.of("Taylor", "randomized", "be True or False", repr(randomized))
        object.__setattr__(self, "randomized", bool(randomized))
        if self.randomized and self.order != 2:
            instead = "Pass randomized=False for f^(k) itself; `lazyscope.higher_order` extracts it from a network."
            raise NoTheorem.of("Training under random signs", "order 2", f"order {self.order}", instead)
        require_smooth(self.activation, self.order)

    def __str__(self) -> str:
        what = "randomised network" if self.randomized else "clean model"
        return f"{self.label}, order {self.order}, {what}, σ = {self.activation.name}"

"""Regimes that move the first layer: a trained network, particles, Taylor models, one giant step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.derivatives import require_smooth
from lazyscope.activations.named import Function
from lazyscope.checks import real_number, whole_number
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.problems.base import Option
from lazyscope.regimes.base import ACTIVATION, Network, positive


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
        ACTIVATION,
        Option("alpha", float, None, "Output scale of nn: f = α(h − h₀) + c, lazy for large α.", when="scaled"),
        Option("init", float, None, "Scale of the initial weights of nn: 1 by default.", when="scaled"),
    )

    def __init__(
        self, activation: Activation | str | Function = "square", alpha: float | None = None, init: float = 1.0
    ) -> None:
        object.__setattr__(self, "activation", as_activation(activation))
        object.__setattr__(self, "alpha", None if alpha is None else positive(alpha, "Trained", "alpha"))
        object.__setattr__(self, "init", positive(init, "Trained", "init"))

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


@dataclass(frozen=True, eq=False, init=False)
class GiantStep(Network):
    """GS: one gradient step on the first layer, then ridge regression on the second (Ba et al. 2022).

    The network starts as f(x) = (1/N) Σ α_iσ(⟨w_i, x⟩) with α_i ~ N(0, 1) and w_i ~ N(0, I/d); the step on n fresh
    samples is

        w_i ← w_i + `step` · α_i (1/n) Σ_k (y_k − f(x_k)) σ′(⟨w_i, x_k⟩) x_k,

    which in the paper's scaling is a learning rate η = `step`·√N: a step of order 1 changes each weight by as much as
    there was, and is the giant one. `samples` is its n; `inf` is the gradient of the population. The second layer and
    an offset are then fitted anew, on samples of their own.

    >>> print(GiantStep("erf", step=2.0, samples=500))
    GS, σ = erf, step 2 on 500 samples
    """

    activation: Activation
    step: float
    samples: float
    label: ClassVar[str] = "GS"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"gs": {}}
    options: ClassVar[tuple[Option, ...]] = (
        ACTIVATION,
        Option("giant_step", float, None, "Size of the one step of gs: η/√N, 1 by default."),
        Option("giant_samples", float, None, "Samples of the one step of gs: inf by default, the population's."),
    )
    refused: ClassVar[Mapping[str, str]] = {
        "limit": "What is published for a step with η ~ √N is an upper bound (Ba et al. 2022, arXiv 2205.01445) and "
        "replica formulas for spiked features (Cui et al. 2024, arXiv 2402.04980) that are not implemented."
    }

    def __init__(
        self, activation: Activation | str | Function = "erf", step: float = 1.0, samples: float = np.inf
    ) -> None:
        object.__setattr__(self, "activation", as_activation(activation))
        if not self.activation.has_derivative:
            must = "have a derivative that is a function: the step follows σ′"
            raise InvalidParameter.of("GiantStep", "activation", must, self.activation.name)
        size = real_number(step, "GiantStep", "step")
        if not 0.0 <= size <= 1e6:
            raise InvalidParameter.of("GiantStep", "step", "be zero or positive, at most 1e6", f"{size:g}")
        object.__setattr__(self, "step", size)
        endless = samples == np.inf
        number = np.inf if endless else float(whole_number(samples, "GiantStep", "samples", advice="Or pass inf."))
        object.__setattr__(self, "samples", number)

    @classmethod
    def from_options(cls, **values: Any) -> Self:
        """Return the regime that these options describe."""
        names = {"activation": "activation", "giant_step": "step", "giant_samples": "samples"}
        given = {names[name]: value for name, value in values.items() if value is not None}
        if isinstance(given.get("samples"), float) and given["samples"].is_integer():
            given["samples"] = int(given["samples"])
        return cls(**given)

    def __str__(self) -> str:
        on = "the population" if np.isinf(self.samples) else f"{self.samples:.0f} samples"
        return f"{super().__str__()}, step {self.step:g} on {on}"

"""The linear target of random-features ridge regression, with noise and with energy beyond linear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from lazyscope.checks import real_number
from lazyscope.errors import InvalidParameter
from lazyscope.problems.base import Option, Problem

Inputs = Literal["sphere", "gaussian"]


@dataclass(frozen=True)
class LinearTarget(Problem):
    """y = ⟨β₀, x⟩ + f⋆(x) + ε in as many dimensions as you like (Mei and Montanari 2019, §2).

    Parameters, all of them standard deviations: `signal` F₁ = ‖β₀‖; `noise` τ, ε ~ N(0, τ²); `nonlinear` F⋆, where f⋆
    has variance F⋆² and is orthogonal to linear functions and constants, an isotropic Gaussian random function (a
    simulation draws a quadratic one). `inputs` says where x lives: "sphere", uniform with ‖x‖ = √d, as the theorem
    has it, or "gaussian", N(0, I). Risks are absolute, R = E(⟨β₀, x⟩ + f⋆(x) − f̂(x))², without the noise of the test
    sample: to predict zero costs F₁² + F⋆².

    >>> LinearTarget(noise=0.5).energy, LinearTarget(signal=2.0, nonlinear=1.0).energy
    (1.0, 5.0)
    >>> print(LinearTarget(noise=0.5))
    linear target on the sphere, F₁ = 1, τ = 0.5
    """

    word: ClassVar[str] = "linear"
    title: ClassVar[str] = "linear target"
    formula: ClassVar[str] = "y = ⟨β₀, x⟩ + f⋆(x) + ε, ‖x‖ = √d"
    options: ClassVar[tuple[Option, ...]] = (
        Option("signal", float, 1.0, "‖β₀‖."),
        Option("noise", float, 0.0, "τ, standard deviation of ε."),
        Option("nonlinear", float, 0.0, "F⋆, that of f⋆."),
        Option("inputs", str, "sphere", "Where x lives: sphere or gaussian."),
    )
    usual: ClassVar[dict[str, Any]] = Problem.usual | {"regime": "rf"}
    signal: float = 1.0
    noise: float = 0.0
    nonlinear: float = 0.0
    inputs: Inputs = "sphere"

    def __post_init__(self) -> None:
        for name in ("signal", "noise", "nonlinear"):
            must = "be a standard deviation, zero or positive, at most 1e100"
            value = real_number(getattr(self, name), "LinearTarget", name, must)
            if not 0.0 <= value <= 1e100:
                raise InvalidParameter.of("LinearTarget", name, must, f"{value:g}")
            object.__setattr__(self, name, value)
        largest = max(self.signal, self.noise, self.nonlinear)
        if 0.0 < largest < 1e-100:  # a smaller one beside it is nothing, but its own square must be a number
            must = "be at least 1e-100, or noise or nonlinear must: risks are squares"
            raise InvalidParameter.of("LinearTarget", "signal", must, f"{self.signal:g}", "Rescale all three.")
        if self.inputs not in get_args(Inputs):
            must = "be " + " or ".join(f'"{name}"' for name in get_args(Inputs))
            raise InvalidParameter.of("LinearTarget", "inputs", must, repr(self.inputs))

    @property
    def energy(self) -> float:
        """F₁² + F⋆²: the risk of predicting zero, which is the best constant."""
        return self.signal**2 + self.nonlinear**2

    def __str__(self) -> str:
        where = "on the sphere" if self.inputs == "sphere" else "of Gaussian inputs"
        beyond = f", F⋆ = {self.nonlinear:.4g}" if self.nonlinear else ""
        return f"linear target {where}, F₁ = {self.signal:.4g}, τ = {self.noise:.4g}{beyond}"

"""A power of one direction, the polynomial that Theorem 7 of Bai & Lee (2019) expresses."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log10, sqrt
from typing import ClassVar

import numpy as np

from lazyscope.checks import FloatArray, real_array, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.problems.base import Option
from lazyscope.problems.inputs import FixedLength, Inputs, as_inputs, describe, draw_inputs

_DECADES = 15  # float32 holds the square of a label, and of what is left of it


@dataclass(frozen=True, eq=False, slots=True)
class RidgeMonomial(FixedLength):
    """y = α(βᵀx)^p + ε, ‖x‖ = √d, ε ~ N(0, noise²) (Bai & Lee 2019, §5.2).

    `degree` is p; `beta` is β, by default (1, …, 1)/√d, so that βᵀx is of order 1 on every kind of input; `alpha` is α;
    `inputs` is "sphere", "hypercube" or a covariance Σ. Risks are squared errors against α(βᵀx)^p, divided by its
    variance, the risk of the best constant.

    >>> X, y = RidgeMonomial(4, 3).sample(2, np.random.default_rng(0))
    >>> np.allclose(y, (X.sum(axis=1) / 2) ** 3)
    True
    >>> print(RidgeMonomial(30, 4))
    1·(βᵀx)^4 of 30 inputs on the sphere
    """

    word: ClassVar[str] = "monomial"
    title: ClassVar[str] = "ridge monomial"
    formula: ClassVar[str] = "y = α(βᵀx)^p + ε, ‖x‖ = √d"
    options: ClassVar[tuple[Option, ...]] = (
        Option("d", int, 16, "Dimension."),
        Option("degree", int, 3, "p."),
        Option("noise", float, 0.0, "Standard deviation of ε."),
        Option("inputs", str, "sphere", "sphere or hypercube."),
    )
    classification: ClassVar[bool] = False
    d: int = field()  # with slots, a field that replaces the property of the base class
    degree: int
    alpha: float = 1.0
    beta: FloatArray | None = None
    noise: float = 0.0
    inputs: Inputs = "sphere"

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole_number(self.d, "RidgeMonomial", "d"))
        object.__setattr__(self, "degree", whole_number(self.degree, "RidgeMonomial", "degree"))
        alpha = real_number(self.alpha, "RidgeMonomial", "alpha")
        if alpha == 0.0:
            raise InvalidParameter.of("RidgeMonomial", "alpha", "not be zero: there would be nothing to learn", 0)
        object.__setattr__(self, "alpha", alpha)
        must = "be a standard deviation, zero or positive"
        noise = real_number(self.noise, "RidgeMonomial", "noise", must)
        if noise < 0:
            raise InvalidParameter.of("RidgeMonomial", "noise", must, f"{noise:g}")
        object.__setattr__(self, "noise", noise)
        if self.beta is not None:
            beta = real_array(self.beta, "RidgeMonomial", "beta", f"be a direction, {self.d} numbers")
            if beta.shape != (self.d,) or not np.any(beta):
                got = f"shape {beta.shape}" if beta.shape != (self.d,) else "zero"
                raise InvalidParameter.of("RidgeMonomial", "beta", f"be a direction, {self.d} numbers", got)
            object.__setattr__(self, "beta", beta)
        size = log10(abs(alpha)) + self.degree * log10(float(np.linalg.norm(self.direction)))
        if not abs(size) <= _DECADES:
            must = f"leave α‖β‖^p between 1e-{_DECADES} and 1e{_DECADES}: it is learned in float32"
            raise InvalidParameter.of("RidgeMonomial", "alpha", must, f"{alpha:g}", f"α‖β‖^p is 1e{size:.0f}.")
        object.__setattr__(self, "inputs", as_inputs(self.inputs, self.d, "RidgeMonomial"))
        cube = isinstance(self.inputs, str) and self.inputs == "hypercube"
        if self.degree % 2 == 0 and (self.d == 1 or (cube and np.count_nonzero(self.direction) == 1)):
            must = "be odd where βᵀx takes the values ±b alone: an even power of them is a constant"
            raise InvalidParameter.of("RidgeMonomial", "degree", must, self.degree, "Pass another degree, d or β.")

    @property
    def direction(self) -> FloatArray:
        """Return β."""
        return np.full(self.d, 1.0 / sqrt(self.d)) if self.beta is None else self.beta

    def target(self, X: FloatArray) -> FloatArray:
        """α(βᵀx)^p for each row."""
        return np.asarray(self.alpha * (X @ self.direction) ** self.degree)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw inputs (n, d) and labels (n,)."""
        X = draw_inputs(self.inputs, n, self.d, rng)
        return X, self.target(X) + self.noise * rng.standard_normal(n)

    def __str__(self) -> str:
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"{self.alpha:g}·(βᵀx)^{self.degree} of {self.d} inputs {describe(self.inputs)}{noise}"

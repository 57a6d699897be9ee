"""Parity of k coordinates among d: 2-XOR with label noise (Bai & Lee 2019, §5.2; Wei et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from lazyscope.checks import FloatArray, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.problems.base import Option
from lazyscope.problems.inputs import FixedLength, Inputs, as_inputs, describe, draw_inputs


@dataclass(frozen=True, eq=False, slots=True)
class SparseParity(FixedLength):
    """y = ±x₁x₂⋯x_k on {±1}^d, wrong with probability `flip`; off the hypercube y = ±sign(x₁⋯x_k).

    `inputs` is "hypercube", "sphere" (radius √d) or a covariance Σ: x = √d Σ^{1/2}g/‖Σ^{1/2}g‖. Risks are
    classification errors against the true parity, divided by ½, the error of a constant.

    >>> X, y = SparseParity(5).sample(3, np.random.default_rng(0))
    >>> bool(np.all(y == X[:, 0] * X[:, 1]))
    True
    >>> print(SparseParity(20, flip=0.1))
    2-parity of 20 inputs on the hypercube, 10% of the labels flipped
    """

    word: ClassVar[str] = "parity"
    title: ClassVar[str] = "sparse parity"
    formula: ClassVar[str] = "y = ±x₁x₂⋯x_k on {±1}^d"
    options: ClassVar[tuple[Option, ...]] = (
        Option("d", int, 16, "Dimension."),
        Option("k", int, 2, "Coordinates that count."),
        Option("flip", float, 0.0, "Share of labels flipped."),
        Option("inputs", str, "hypercube", "hypercube or sphere."),
    )
    classification: ClassVar[bool] = True
    d: int = field()  # with slots, a field that replaces the property of the base class
    k: int = 2
    flip: float = 0.0
    inputs: Inputs = "hypercube"

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole_number(self.d, "SparseParity", "d"))
        object.__setattr__(self, "k", whole_number(self.k, "SparseParity", "k"))
        if self.k > self.d:
            raise InvalidParameter.of("SparseParity", "k", f"be at most d = {self.d}", self.k)
        must = "be a probability below ½: at ½ a label says nothing"
        flip = real_number(self.flip, "SparseParity", "flip", must)
        if not 0.0 <= flip < 0.5:
            raise InvalidParameter.of("SparseParity", "flip", must, f"{flip:g}")
        object.__setattr__(self, "flip", flip)
        object.__setattr__(self, "inputs", as_inputs(self.inputs, self.d, "SparseParity"))

    def target(self, X: FloatArray) -> FloatArray:
        """Return the true parity of each row."""
        return np.asarray(np.prod(np.where(X[:, : self.k] < 0, -1.0, 1.0), axis=1))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw inputs (n, d) and labels (n,)."""
        X = draw_inputs(self.inputs, n, self.d, rng)
        wrong = rng.random(n) < self.flip
        return X, np.where(wrong, -1.0, 1.0) * self.target(X)

    def __str__(self) -> str:
        noise = f", {100 * self.flip:g}% of the labels flipped" if self.flip else ""
        return f"{self.k}-parity of {self.d} inputs {describe(self.inputs)}{noise}"

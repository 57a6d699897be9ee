"""Inputs of fixed length, ‖x‖ = √d, as Bai & Lee (2019) assume: hypercube, sphere, sphere with a covariance."""

from __future__ import annotations

from abc import abstractmethod
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from lazyscope.checks import FloatArray, symmetric
from lazyscope.errors import InvalidParameter
from lazyscope.numerics import matrices
from lazyscope.problems.base import SizedProblem

Inputs = str | FloatArray
"""\"hypercube\", \"sphere\", or a covariance Σ, (d, d) or the (d,) vector of its diagonal."""


class FixedLength(SizedProblem):
    """A target on inputs of length √d, drawn as often as wanted: what the Taylor models learn."""

    __slots__ = ()
    usual: ClassVar[dict[str, Any]] = {
        "regime": "nt,quadratic,randomized,nn", "activation": "relu3", "width": "256", "samples": 400, "draws": 2
    }  # fmt: skip
    classification: ClassVar[bool]
    """Whether labels are ±1, and not real numbers."""

    @property
    def Bx(self) -> float:
        """B_x = √d, the length of every input."""
        return sqrt(self.d)

    @abstractmethod
    def target(self, X: FloatArray) -> FloatArray:
        """Return the target at each row, without noise."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw inputs (n, d) and labels (n,)."""


def as_inputs(value: Any, d: int, owner: str) -> Inputs:
    """Check the `inputs` parameter of a problem.

    >>> as_inputs("cube", 3, "SparseParity")
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The inputs parameter of SparseParity must be "hypercube", "sphere" or a \
covariance Σ in d = 3 dimensions. Got 'cube' instead.
    """
    must = f'be "hypercube", "sphere" or a covariance Σ in d = {d} dimensions'
    if isinstance(value, str):
        if value not in ("hypercube", "sphere"):
            raise InvalidParameter.of(owner, "inputs", must, repr(value))
        return value
    Sigma = symmetric(value, owner, "inputs")
    if len(Sigma) != d:
        raise InvalidParameter.of(owner, "inputs", must, f"d = {len(Sigma)}")
    if not matrices.is_positive_definite(Sigma):
        raise InvalidParameter.of(owner, "inputs", must + ", positive definite", "one that is not")
    return Sigma


def draw_inputs(inputs: Inputs, n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw n inputs, (n, d): uniform on {±1}^d or the sphere of radius √d, or √d Σ^{1/2}g/‖Σ^{1/2}g‖, g ~ N(0, I).

    >>> X = draw_inputs("sphere", 2, 9, np.random.default_rng(0))
    >>> np.linalg.norm(X, axis=1)
    array([3., 3.])
    """
    if isinstance(inputs, str) and inputs == "hypercube":
        return np.where(rng.integers(0, 2, (n, d)) == 1, 1.0, -1.0)
    X = rng.standard_normal((n, d))
    if not isinstance(inputs, str):
        X = matrices.rows_times(X, matrices.power(inputs, 0.5))
    X *= (np.sqrt(d) / np.linalg.norm(X, axis=1))[:, None]
    return X


def describe(inputs: Inputs) -> str:
    """Return a few words for a title.

    >>> describe("sphere"), describe(np.ones(3))
    ('on the sphere', 'on the sphere, given Σ')
    """
    if isinstance(inputs, str):
        return f"on the {inputs}"
    return "on the sphere, given Σ"

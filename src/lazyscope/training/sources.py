"""Labelled samples of every problem, and what a predictor costs on fresh ones: one face for learners that ask no more.

A source is nature, drawn once. What it counts as risk is what the problem says: the squared error over that of the best
constant (`QuadraticTarget`, `GaussianMixture`, `RidgeMonomial`), the squared error itself (`LinearTarget`), the
probability of a wrong label (`LinearLabels`), or that over ½ (`SparseParity`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.problems import GaussianMixture, LinearLabels, LinearTarget, RidgeMonomial, SparseParity
from lazyscope.problems.base import GaussianProblem, Problem
from lazyscope.training.linear.margin import labels
from lazyscope.training.linear.ridge import World
from lazyscope.training.sgd.stream import draw, draw_test, law_of
from lazyscope.training.taylor.learning import scored

Draw = Callable[[int, np.random.Generator], tuple[NDArray[Any], NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class Source:
    """`labelled(n, rng)` are inputs (n, d) and labels to learn from; `fresh(n, rng)` inputs and the target there.

    `risk(wanted, f)` is the problem's own risk of the values f at fresh inputs.
    """

    d: int
    labelled: Draw
    fresh: Draw
    risk: Callable[[FloatArray, FloatArray], float]


@singledispatch
def source_of(problem: Problem, d: int, rng: np.random.Generator) -> Source:
    """Draw nature where a problem leaves something of it open; Gaussian inputs are in the basis of their law.

    >>> source = source_of(SparseParity(5), 5, np.random.default_rng(0))
    >>> X, y = source.labelled(4, np.random.default_rng(1))
    >>> X.shape, source.risk(y, y), source.risk(y, -y)
    ((4, 5), 0.0, 2.0)
    """
    raise NoTheorem(f"No samples are implemented for {type(problem).__name__}.")


@source_of.register
def _(problem: GaussianProblem, d: int, rng: np.random.Generator) -> Source:
    if isinstance(problem, GaussianMixture) and problem.Sigma is not None:
        needs = "Σ = I, as particles live in a ball of x's own coordinates"
        raise NoTheorem.of("Particle descent on the mixture", needs, "another Σ", "Use another regime.")
    law = law_of(problem)

    def risk(wanted: FloatArray, f: FloatArray) -> float:
        return float(np.mean((f - wanted) ** 2)) / law.energy

    return Source(law.d, partial(draw, law), partial(draw_test, law), risk)


@source_of.register
def _(problem: LinearTarget, d: int, rng: np.random.Generator) -> Source:
    if problem.nonlinear and d < 2:
        raise InvalidParameter.of("LinearTarget", "d", "be at least 2 for a part beyond linear", d)
    world = World.draw(problem, d, rng)

    def drawn(noise: bool) -> Draw:
        def one(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
            X, linear, rest = world.samples(n, rng, noise)
            return X, linear + rest

        return one

    return Source(d, drawn(True), drawn(False), lambda wanted, f: float(np.mean((f - wanted) ** 2)))


@source_of.register
def _(problem: LinearLabels, d: int, rng: np.random.Generator) -> Source:
    def labelled(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        X = rng.standard_normal((n, d))  # β₀ along the first axis
        return X, labels(problem, X[:, 0], rng)

    def fresh(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        X = rng.standard_normal((n, d))
        return X, problem.probability(problem.signal * X[:, 0])

    return Source(d, labelled, fresh, lambda p, f: float(np.mean(np.where(f > 0.0, 1.0 - p, p))))


@source_of.register(SparseParity)
@source_of.register(RidgeMonomial)
def _(problem: SparseParity | RidgeMonomial, d: int, rng: np.random.Generator) -> Source:
    def fresh(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        X, _ = problem.sample(n, rng)
        return X, problem.target(X)

    return Source(d, problem.sample, fresh, lambda wanted, f: scored(problem, wanted, f))

"""The landscape over widths, points and descents: the work, and labelled numbers made of it (Bai & Lee 2019, §4).

`LandscapeDraw` measures the three inequalities at five kinds of points against W⋆ of Theorem 7, at margin 2;
`DescentDraw` follows a descent from near the saddle W = 0 and looks at gradient and smallest eigenvalue on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.experiments.frame import Draw, Row, dataset
from lazyscope.experiments.frame.draws import attributes, exponents, provenance, table
from lazyscope.experiments.frame.types import Dataset
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.training.taylor.construction import express, monomials
from lazyscope.training.taylor.descent import Descent, descend
from lazyscope.training.taylor.landscape import Inequality, certificate, clean_error, landscape, stationarity
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import Risk
from lazyscope.training.taylor.signs import norm_24, random_signs
from lazyscope.weights import generator

Point = Callable[[FloatArray, np.random.Generator], FloatArray]

_MARGIN = 2.0


def _random(W_star: FloatArray, rng: np.random.Generator) -> FloatArray:
    W = rng.standard_normal(W_star.shape)
    return np.asarray(W * (norm_24(W_star) / norm_24(W)))


POINTS: dict[str, Point] = {
    "the saddle": lambda W_star, rng: np.zeros_like(W_star),
    "half way": lambda W_star, rng: 0.5 * W_star,
    "random": _random,
    "both": lambda W_star, rng: 0.7 * (W_star + _random(W_star, rng)),
    "the opposite": lambda W_star, rng: np.roll(W_star, len(W_star) // 2, axis=0),
}
"""Points W by their names, from W⋆: zero, W⋆/2, random rows of the same norm, a mixture, and W⋆ of −f⋆."""

INEQUALITIES = {"clean": "Lemma 1", "network": "Theorem 2", "regularized": "Corollary 3"}
_NUMBERS = ("left", "right", "error", "slack", "stderr", "sampled", "sampled_stderr")


@dataclass(frozen=True, eq=False)
class LandscapeDraw(Draw):
    """One initialisation of one width: the three statements at every point of `POINTS`; λ = lam/‖W⋆‖⁸_{2,4}."""

    problem: SparseParity | RidgeMonomial
    width: int
    samples: int = 100
    signs: int = 8
    lam: float = 0.01
    number: int = 0
    seed: int = 0

    words = "landscape, m = {0.width}"
    costs = ("width", "samples")

    def compute(self) -> Row:
        """Do the work; arrays of the row are (statement, point), the bound of Lemma 1's error (point,)."""
        setting = _Setting.of(self)
        points = []
        for build in POINTS.values():
            W = build(setting.W_star, setting.rng)
            options: dict[str, Any] = {"signs": self.signs, "lam": setting.lam}
            points.append(landscape(setting.risk, W, setting.W_star, setting.rng, **options))
        inequalities: list[list[Inequality]] = [[getattr(at, name) for at in points] for name in INEQUALITIES]
        row = {name: np.array([[getattr(at, name) for at in some] for some in inequalities]) for name in _NUMBERS}
        row["bound"] = np.array([point.clean.bound for point in points])
        return row | {"OPT": np.asarray(points[0].OPT)}


@dataclass(frozen=True, eq=False)
class _Setting:
    """The risk, W⋆ and λ that both kinds of work begin with."""

    risk: Risk
    W_star: FloatArray
    lam: float
    rng: np.random.Generator

    @classmethod
    def of(cls, draw: LandscapeDraw | DescentDraw) -> _Setting:
        problem, rng = draw.problem, generator(draw.seed, draw.number, draw.width)
        model = TaylorModel.symmetric(draw.width, problem.d, "relu3", rng, Bx=problem.Bx)
        data = generator(draw.seed, draw.number, 0)
        X, y = problem.sample(draw.samples, data)
        W_star = sqrt(_MARGIN) * express(model, monomials(problem), rng)
        risk = Risk(model, X, y, "logistic" if problem.classification else "square", orders=2)
        return cls(risk, W_star, draw.lam / norm_24(W_star) ** 8, rng)


@dataclass(frozen=True, eq=False)
class DescentDraw(Draw):
    """One descent on L_λ, λ = lam/‖W⋆‖⁸_{2,4}, clean or of the network under random signs, looked at `looks` times."""

    problem: SparseParity | RidgeMonomial
    width: int
    randomized: bool = False
    samples: int = 200
    steps: int = 200
    looks: int = 9
    signs: int = 4
    lam: float = 0.01  # λ‖W⋆‖⁸_{2,4}
    number: int = 0
    seed: int = 0

    costs = ("width", "samples", "steps")

    def __post_init__(self) -> None:
        if self.looks < 2:
            raise InvalidParameter.of("DescentDraw", "looks", "be at least 2, the start and the end", self.looks)

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"descent, m = {self.width}{', random signs' if self.randomized else ''}"

    def compute(self) -> Row:
        """Do the work; arrays of the row are over looks.

        `risk` is L_λ, `smallest` λ_min ‖W⋆‖²_F and `gradient` ‖∇L_λ‖ ‖W⋆‖_F, the units of a risk; `norm` is
        ‖W‖_{2,4}/‖W⋆‖_{2,4}, `certified` what Corollary 3 makes of them, a bound on L_λ − OPT, and `error` the error
        term of Lemma 1.
        """
        setting = _Setting.of(self)
        clean = replace(setting.risk, lam=setting.lam)
        risk = replace(clean, orders=None) if self.randomized else clean
        reach = float(np.linalg.norm(setting.W_star))
        when = np.unique(np.round(self.steps * np.linspace(0.0, 1.0, self.looks) ** 2).astype(int))
        draws = [random_signs(risk.model.m, setting.rng) for _ in range(self.signs)]
        rows: list[list[float]] = []

        def look(step: int, W: FloatArray) -> None:
            if step not in when:
                return
            some = [Sigma for draw in draws for Sigma in (draw, -draw)] if self.randomized else [None]
            stationary = stationarity([risk.at(W, Sigma, derivatives=2) for Sigma in some])
            here = clean.at(W, derivatives=2)
            rows.append(
                [
                    step,
                    stationary.risk,
                    stationary.gradient * reach,
                    stationary.smallest * reach**2,
                    norm_24(W) / norm_24(setting.W_star),
                    certificate(stationary, here, setting.W_star, setting.lam),
                    clean_error(here, setting.W_star)[0],
                ]
            )

        how = Descent(steps=self.steps, start=0.02)
        descend(risk, reach, setting.rng, signs=self.randomized, how=how, watch=look)
        OPT = replace(clean, lam=0.0).at(setting.W_star, derivatives=0).value
        names = ("step", "risk", "gradient", "smallest", "norm", "certified", "error")
        return dict(zip(names, np.array(rows).T, strict=True)) | {"OPT": np.asarray(OPT)}


def assemble_landscape(plan: Sequence[LandscapeDraw], rows: Sequence[Row]) -> Dataset:
    """Return means over draws, over (`statement`, `point`, `width`); the least `slack`, and the exponent of `error`."""
    widths = list(dict.fromkeys(draw.width for draw in plan))
    dims = ("statement", "point", "width")
    of_draws = {name: table(plan, rows, name) for name in _NUMBERS}  # (statement, point, width, draw)
    variables: dict[str, Any] = {name: (dims, table.mean(axis=-1)) for name, table in of_draws.items()}
    variables["slack"] = (dims, of_draws["slack"].min(axis=-1))
    # where no neuron has both rows, Σ′ changes nothing: what differs is rounding
    rounding = 1e-12 * (1.0 + np.abs(of_draws["left"]))
    z = (of_draws["sampled"] - of_draws["left"]) / np.maximum(of_draws["sampled_stderr"], rounding)
    z[2] = z[1]  # the regulariser adds its closed form to both
    variables["z"] = (dims, np.sqrt(np.mean(z**2, axis=-1)))
    if len(widths) > 1:
        slope, spread = exponents(np.array(widths), of_draws["error"])
        there = np.isfinite(slope)  # an error that is zero at every width has no exponent
        variables["exponent"] = (dims[:2], np.where(there, slope, np.nan))
        variables["exponent_stderr"] = (dims[:2], np.where(there, spread, np.nan))
    variables["bound"] = (dims[1:], table(plan, rows, "bound").mean(axis=-1))
    first = plan[0]
    told = provenance("landscape", "Lemma 1, Theorem 2, Corollary 3", "bai2020beyond", first.seed)
    told |= attributes(first, "problem", "samples", "seed") | {"draws": len(plan) // len(widths)}
    coordinates = {"statement": list(INEQUALITIES.values()), "point": list(POINTS), "width": widths}
    return dataset(variables, coordinates, told)

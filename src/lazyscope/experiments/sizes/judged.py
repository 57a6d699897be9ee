"""What the experiments on sizes share: dots beside the formula at their own n, N, d and λ, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.evidence.run import Run
from lazyscope.experiments.frame import Row, over_draws
from lazyscope.experiments.frame.judgement import Dot
from lazyscope.experiments.frame.types import Dataset
from lazyscope.problems import Problem
from lazyscope.regimes import NeuralTangent, RandomFeatures
from lazyscope.runs.verbs import limit

Sizes = tuple[float, float]
"""N and n of a dot."""


@dataclass(frozen=True, eq=False)
class DotSetting:
    """Random features or a tangent model on n samples at several (N, n), several draws; n = ∞ is `exact`."""

    problem: Problem
    regime: RandomFeatures | NeuralTangent
    ridge: float
    sizes: tuple[Sizes, ...]
    draws: int

    def _run(self, N: float, n: float, number: int) -> Run:
        if np.isinf(n):
            return Run("exact", self.problem, self.regime, {"width": (N,)}, number=number)
        sizes = {"width": (N,), "samples": (n,), "ridge": (self.ridge,)}
        return Run("simulate", self.problem, self.regime, sizes, number=number)

    @property
    def trials(self) -> list[Run]:
        """The work, size by size."""
        return [self._run(N, n, number) for N, n in self.sizes for number in range(self.draws)]

    def columns(self, rows: Sequence[Row], dim: str, prefix: str = "") -> dict[str, Any]:
        """Return mean, standard error, every draw, the formula at the same sizes and what that leaves out."""
        drawn = np.array([float(np.squeeze(row["risk"])) for row in rows]).reshape(len(self.sizes), self.draws)
        mean, stderr = over_draws(drawn)
        expected = np.array([self.formula(N, n) for N, n in self.sizes])
        missing = np.array([left_out(self.formula, N, n) for N, n in self.sizes])
        columns = {"risk": mean, "stderr": stderr, "expected": expected, "allowance": missing}
        labelled: dict[str, Any] = {f"{prefix}{name}": ((dim,), values) for name, values in columns.items()}
        return labelled | {f"{prefix}risk_draws": ((dim, "draw"), drawn)}

    def formula(self, N: float, n: float) -> float:
        """Return the risk of the deterministic equivalent."""
        return float(limit(self.problem, self.regime, width=N, samples=n, ridge=self.ridge).risk)


def left_out(formula: Callable[[float, float], float], N: float, n: float) -> float:
    """Return what one neuron or one sample, more or less, changes: the equivalents are right to order 1/N and 1/n.

    >>> left_out(lambda N, n: 1.0 / N, 10.0, np.inf).__round__(4)
    0.0111
    """
    near = ((max(1.0, N + more), n) for more in (-1.0, 1.0)), ((N, max(1.0, n + more)) for more in (-1.0, 1.0))
    here = formula(N, n)
    return max(abs(formula(*sizes) - here) for pair in near for sizes in pair)


def dots_of(data: Dataset, where: str, prefix: str = "") -> list[Dot]:
    """Return every dot with the formula at its own sizes; all of them may have seen the same random numbers."""
    drawn, expected, allowance = (data[f"{prefix}{name}"].values for name in ("risk_draws", "expected", "allowance"))
    return [
        Dot(f"{where} {at}", drawn[at], float(expected[at]), float(allowance[at]), stream=where)
        for at in np.ndindex(expected.shape)
    ]

"""What the experiments on sizes share: dots beside the formula at their own n, N, d and λ, and how they are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.draws import over_draws
from lazyscope.problems import Problem
from lazyscope.regimes import NeuralTangent, RandomFeatures
from lazyscope.runs.verbs import limit

if TYPE_CHECKING:
    import xarray as xr

Sizes = tuple[float, float]
"""N and n of a dot."""

_FARTHEST, _MEAN, _SPREAD = 5.0, 1.0, 2.0  # of z: Student's t of a dozen draws exceeds the first once in 2,000 dots


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
        """Return mean, standard error, the formula at the same sizes, and z, each against `dim`."""
        drawn = np.array([float(np.squeeze(row["risk"])) for row in rows]).reshape(len(self.sizes), self.draws)
        mean, stderr = over_draws(drawn)
        expected = np.array([self.formula(N, n) for N, n in self.sizes])
        columns = {"risk": mean, "stderr": stderr, "expected": expected, "z": (mean - expected) / stderr}
        return {f"{prefix}{name}": ((dim,), values) for name, values in columns.items()}

    def formula(self, N: float, n: float) -> float:
        """Return the risk of the deterministic equivalent."""
        return float(limit(self.problem, self.regime, width=N, samples=n, ridge=self.ridge).risk)


def scores(data: xr.Dataset, prefix: str = "") -> FloatArray:
    """Return z of every dot, from means and standard errors as they stand in the data."""
    found = (data[f"{prefix}risk"] - data[f"{prefix}expected"]) / data[f"{prefix}stderr"]
    return np.asarray(found.values, dtype=np.float64)


def judgement(z: FloatArray) -> tuple[bool, str]:
    """Return whether the dots obey the formula, and what their z-scores are in words.

    They do when none is beyond 5 standard errors, their mean is within ±1 and their spread below 2. A formula that is
    off by 5 % of the risk where the standard error is 2 % moves the mean to 2.5.

    >>> judgement(np.array([0.5, -1.0, 1.5]))
    (True, 'z of 3 dots: mean +0.33, spread 1.26, farthest 1.5')
    >>> judgement(np.array([2.5, 1.0, 3.5]))[0]
    False
    """
    spread = float(np.std(z, ddof=1)) if z.size > 1 else 0.0
    mean, farthest = float(np.mean(z)), float(np.max(np.abs(z)))
    fine = farthest <= _FARTHEST and abs(mean) <= _MEAN and spread <= _SPREAD
    return fine, f"z of {z.size} dots: mean {mean:+.2f}, spread {spread:.2f}, farthest {farthest:.1f}"

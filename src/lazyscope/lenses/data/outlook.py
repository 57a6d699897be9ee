"""What more rows would change: the forecast of the lazy regimes on a table, as lines under the measured dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.data.table import Table
from lazyscope.lenses.forecast.advice import Advice, advise
from lazyscope.lenses.forecast.extrapolate import LEAST_ROWS
from lazyscope.lenses.forecast.of_table import forecaster
from lazyscope.lenses.forecast.verb import SURE, Forecaster
from lazyscope.regimes import NeuralTangent, RandomFeatures

_REGIMES: Mapping[str, Any] = {"RF": RandomFeatures("relu"), "NT": NeuralTangent("relu")}
_ROWS, _SECONDS = 800, 120.0  # rows of the kernel matrix for such a budget: two percent of it
_FEWEST = 200
_FARTHER = 4.0  # times the rows at hand
_POINTS = 25


@dataclass(frozen=True, eq=False)
class Outlook:
    """Forecasts of the lazy regimes, at the best ridge; `rows` are those at hand, `advice` is on random features."""

    known: Mapping[str, Forecaster]
    rows: int
    advice: Advice

    def along_samples(self, least: int, width: int) -> tuple[FloatArray, dict[str, tuple[FloatArray, FloatArray]]]:
        """Return n, and for each regime its share of the best constant's error and the factor of its band."""
        n = np.unique(np.geomspace(least, _FARTHER * self.rows, _POINTS).round())
        return n, {name: self._shares(name, n, width) for name in self.known}

    def along_width(self, samples: int, widths: Sequence[int]) -> tuple[FloatArray, dict[str, tuple[Any, Any]]]:
        """Return N, and the same at so many rows; the tangent model has width ∞ whatever N is."""
        N = np.geomspace(min(widths), max(widths), _POINTS)
        return N, {name: self._shares(name, np.array(float(samples)), N) for name in self.known}

    def _shares(self, name: str, n: FloatArray, width: Any) -> tuple[FloatArray, FloatArray]:
        known = self.known[name]
        N = np.asarray(width, dtype=np.float64) if name == "RF" else np.full(np.shape(width), np.inf)
        shares, stderr = known.overall(known.at(n, N, known.best_ridge(n, N)))
        return shares[0], np.exp(SURE * stderr)


def outlook(table: Table, seconds: float, seed: int) -> Outlook | None:
    """Return the forecasts of a table within two percent of a budget; None where there are too few rows for them."""
    rows = max(_FEWEST, int(_ROWS * min(2.0, (seconds / _SECONDS) ** (1.0 / 3.0))))
    if min(rows, len(table.y)) < LEAST_ROWS:
        return None
    most = _FARTHER * len(table.y)
    known = {name: forecaster(table, regime, rows, seed, most)[0] for name, regime in _REGIMES.items()}
    return Outlook(known, len(table.y), advise(known["RF"], len(table.y)))

"""The forecast of a table: its rows prepared as for the data lens, its regime that of the lens's estimators."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import arithmetic, whole_number
from lazyscope.lenses.data.preparing import whole
from lazyscope.lenses.data.table import Table
from lazyscope.lenses.forecast.advice import Advice, advise
from lazyscope.lenses.forecast.extrapolate import LEAST_ROWS
from lazyscope.lenses.forecast.rows import rows_of
from lazyscope.lenses.forecast.verb import Forecaster, asked, dataset
from lazyscope.regimes import NeuralTangent

if TYPE_CHECKING:
    import xarray as xr

BIAS = 0.3
"""Of the estimators of `lazyscope.estimators`, which fit a constant too."""

MOST_ROWS = 3000
"""Rows of the kernel matrix: its decomposition takes some ten seconds."""


@dataclass(frozen=True, eq=False)
class TableForecast:
    """The forecast of a table, the advice that goes with it, and the names of its classes, if it has."""

    dataset: xr.Dataset
    advice: Advice
    about: str


def forecast_table(
    table: Table, regime: Any, *, samples: Any, width: Any, ridge: Any, rows: int = MOST_ROWS, seed: int = 0
) -> TableForecast:
    """Return the forecast of a table from at most so many of its rows, drawn at random."""
    given = asked(samples, width, ridge, regime)
    most = float(np.max(given["samples"]))
    with arithmetic("A forecast of this table"):
        known, pool, notes = forecaster(table, regime, rows, seed, most, given.get("ridge"))
        found, arguments = known.answer(given)
        advice = advise(known, _at_hand(table, known), widths=not isinstance(regime, NeuralTangent))
    said = {"regime": f"{regime}, offsets, a constant", "arguments": json.dumps(arguments), "problem": str(table)}
    result = dataset(known, pool, given, found, said)
    result.attrs["notes"] = "; ".join((*table.notes, *notes, *pool.notes))
    result.attrs["advice"] = " ".join(advice.lines)
    return TableForecast(result, advice, str(table))


def forecaster(
    table: Table, regime: Any, rows: int, seed: int, most: float, ridge: Any = None
) -> tuple[Forecaster, Any, tuple[str, ...]]:
    """Decompose the kernel of a table, for up to `most` rows, and at least for twice as many as it has."""
    X, y = whole(table), table.y
    notes: tuple[str, ...] = ()
    limit, seed = whole_number(rows, "forecast", "rows", least=20), whole_number(seed, "forecast", "seed", least=0)
    if len(X) > limit:
        kept = np.sort(np.random.default_rng(seed).permutation(len(X))[:limit])
        X, y = X[kept], y[kept]
        notes = (f"{limit:,} of {len(table.y):,} rows, drawn at random, make the kernel matrix",)
    options: dict[str, Any] = {"scale": "auto", "bias": BIAS, "intercept": True, "task": table.task}
    pool = rows_of(X, y, regime, None, **options)
    P = len(pool.K)
    reach = 2.0 * len(table.y) if P >= LEAST_ROWS else float(P)
    largest = 0.0 if ridge is None else float(np.max(ridge))
    return Forecaster.of(pool, max(most, reach), largest), pool, notes


def _at_hand(table: Table, known: Forecaster) -> int:
    """How many rows the advice is for: all of them, or half where there are too few to look beyond."""
    return len(table.y) if known.beyond is not None else max(1, known.rows // 2)

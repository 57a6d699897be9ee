"""A table that was brought, at some sizes: its state, its forecasts, and how they are computed again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from pydantic import Field

from lazyscope.checks import FloatArray
from lazyscope.explorer.tables.reading import MOST_BYTES, MOST_ROWS, Known, Source
from lazyscope.explorer.tables.shelf import PATTERN, SHELF
from lazyscope.explorer.views.calls import lines_of
from lazyscope.explorer.views.controls import ActivationName, State, choice, draws_field, seed_field, slider, switch
from lazyscope.explorer.views.picture import NEAR
from lazyscope.explorer.views.remembered import activation
from lazyscope.lenses.data.table import EXAMPLES
from lazyscope.regimes import NeuralTangent, RandomFeatures

AGAINST = {"samples": ("against n", "risk"), "width": ("against N", "nn")}
"""Names and colours of the two curves."""

BEYOND = "beyond the rows"
"""The part of the first that is extrapolated."""

WIDEST = 10_000
"""N of the curves."""

_LEAST = 10  # n of the curves


class DataState(State):
    """Which table and target, what learns, and the sizes."""

    data: str = Field(
        "diabetes", pattern=PATTERN, description="An example, or a file that was sent to /api/tables.",
        json_schema_extra={"label": "Table", "kind": "file", "group": "theory", "choices": list(EXAMPLES),
                           "largest": MOST_BYTES},
    )  # fmt: skip
    target: str = Field(
        "", max_length=200, description="The column to predict; the likeliest if left out.",
        json_schema_extra={"label": "Target", "kind": "column", "group": "theory"},
    )  # fmt: skip
    regime: Literal["rf", "nt"] = choice("rf", "Regime", "Random features, or the tangent kernel.", names=("RF", "NT"))
    activation: ActivationName = choice("relu", "Activation σ", "σ of the features, by its name in the library.")
    samples: int = slider(200, 10, 100_000, "Rows n", "n of the curve against N.", step=1, log=True)
    width: int = slider(
        100, 1, WIDEST, "Neurons N", "N of the curve against n.", step=1, log=True,
        when={"infinite": False, "regime": "rf"},
    )  # fmt: skip
    infinite: bool = switch(False, "N = ∞", "Infinitely many neurons: kernel ridge regression.", group="theory")
    ridge: float = slider(
        1e-2, 1e-6, 100.0, "Ridge λ", "Objective Σ(y − f)² + λ‖a‖²; 0 is the limit λ → 0.", log=True, zero=True,
        when={"best": False},
    )  # fmt: skip
    best: bool = switch(False, "Best ridge", "At every point the λ with the least error.", group="theory")
    log: bool = switch(True, "Logarithmic error", "A logarithmic vertical axis.")
    draws: int = draws_field(" Each has rows and features of its own.")
    seed: int = seed_field()


@dataclass(frozen=True, eq=False)
class Setting:
    """A state with its decomposed table: grids, sizes and forecasts."""

    state: DataState
    source: Source
    known: Known
    regime: RandomFeatures | NeuralTangent

    @classmethod
    def of(cls, state: DataState) -> Setting:
        """Decompose the table, or find it decomposed."""
        regime = _regime(state)
        return cls(state, SHELF.source(state.data), SHELF.known(state.data, state.target, regime), regime)

    @property
    def pool(self) -> int:
        """P, the rows of the kernel."""
        return self.known.forecaster.rows

    @property
    def far(self) -> int:
        """The largest n."""
        return self.known.far

    @property
    def n(self) -> int:
        """Rows n of the curve against N: as many as there is a forecast for."""
        return min(self.state.samples, self.far)

    @property
    def N(self) -> float:
        """Width N of the curve against n."""
        return np.inf if self.state.infinite or self.state.regime == "nt" else float(self.state.width)

    def shares(self, n: Any, N: Any) -> Shares:
        """Return the forecast at sizes, one of which may be an array."""
        sizes = (tuple(np.ravel(size).astype(float).tolist()) for size in (n, N))
        return _shares(self.known, *sizes, None if self.state.best else self.state.ridge)

    def at_best(self, n: float, N: float) -> Shares:
        """Return the forecast at a point with its best ridge."""
        return _shares(self.known, (float(n),), (float(N),), None)


@dataclass(frozen=True, eq=False)
class Shares:
    """Errors as shares of the best constant's, the factors of their bands, λ and df₁, each (points,)."""

    value: FloatArray
    factor: FloatArray
    ridge: FloatArray
    degrees_of_freedom: FloatArray

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Both ends of the band."""
        return self.value / self.factor, self.value * self.factor


@lru_cache(maxsize=32)  # while one size moves, the curve at the other stands still
def _shares(known: Known, n: tuple[float, ...], N: tuple[float, ...], ridge: float | None) -> Shares:
    """Compute some points; the ridge is the best one where it is None."""
    from lazyscope.lenses.forecast.verb import SURE

    rows, widths = np.broadcast_arrays(np.array(n), np.array(N))
    λ = known.forecaster.best_ridge(rows, widths) if ridge is None else np.full(rows.shape, ridge)
    forecast = known.forecaster.at(rows, widths, λ)
    shares, stderr = known.forecaster.overall(forecast)
    return Shares(shares[0], np.exp(SURE * stderr), λ, forecast["degrees_of_freedom"])


def _regime(state: DataState) -> RandomFeatures | NeuralTangent:
    return (RandomFeatures if state.regime == "rf" else NeuralTangent)(activation(state.activation))


def grids_of(setting: Setting) -> dict[str, tuple[FloatArray, str, str]]:
    """Return values, option and Python of n up to P and beyond, and of N; both closer together around N = n."""
    P, far = setting.pool, setting.far
    beyond = np.unique(np.geomspace(P, far, 14).round())[1:] if far > P else np.array([])
    here = setting.N if np.isfinite(setting.N) else float(P)
    peak = {"samples": np.round(np.multiply(here, NEAR)), "width": np.round(np.multiply(setting.n, NEAR))}
    grids = {}
    for name, (low, high, count), others in (
        ("samples", (min(_LEAST, P), P, 40), beyond), ("width", (1, WIDEST, 56), np.array([]))
    ):  # fmt: skip
        near = peak[name][(peak[name] > low) & (peak[name] < high)]
        others = np.unique(np.concatenate([near, others]))
        python, option = f"np.geomspace({low}, {high}, {count}).round()", f"{low}:{high}:{count}log"
        words = [f"{value:g}" for value in others]
        values = np.unique(np.concatenate([np.geomspace(low, high, count).round(), others]))
        grids[name] = values, ",".join([option, *words]), f"np.unique(np.r_[{python}, {', '.join(words)}])"
    return grids


# -- again ---------------------------------------------------------------------------------------------------


def _table(setting: Setting) -> tuple[list[str], str]:
    """Return the table as Python and as words of the command line; a file by its name alone."""
    name = setting.source.name
    if setting.source.path is None:
        return [f"table = example({name!r})"], f"--example {name}"
    drop = f", drop={list(setting.known.dropped)!r}" if setting.known.dropped else ""
    python = f"table = describe(read({name!r}), {setting.known.target!r}{drop})"
    words = [
        "--target",
        setting.known.target,
        *(word for column in setting.known.dropped for word in ("--drop", column)),
    ]
    return [python], " ".join(map(shlex.quote, [name, *words]))


def header(setting: Setting, function: str) -> list[str]:
    """Return the Python that reads the table, for one of the functions of a forecast."""
    module = {"forecast_table": "of_table", "held_out": "held_out"}[function]
    reader = "example" if setting.source.path is None else "describe, read"
    regime = f"ls.{type(setting.regime).__name__}({setting.state.activation!r})".replace("'", '"')
    return [
        "import numpy as np", "import lazyscope as ls", f"from lazyscope.lenses.data.table import {reader}",
        f"from lazyscope.lenses.forecast.{module} import {function}", "", *_table(setting)[0], f"regime = {regime}",
    ]  # fmt: skip


def again(setting: Setting, grids: dict[str, tuple[FloatArray, str, str]]) -> tuple[str, str]:
    """Return the command line and the Python that compute the curves again."""
    state, P, far = setting.state, setting.pool, setting.far
    ridge = '"best"' if state.best else repr(state.ridge)
    N = "np.inf" if np.isinf(setting.N) else repr(int(setting.N))
    python = [*header(setting, "forecast_table"), f'asked = {{"ridge": {ridge}, "rows": {MOST_ROWS}}}', ""]
    python += ["def share(found):", '    return found["overall" if "overall" in found else "share"].values', ""]
    python += [
        f"n = {grids['samples'][2]}",
        f"against_n = share(forecast_table(table, regime, samples=n, width={N}, **asked).dataset)",
    ]
    name = AGAINST["samples"][0]
    shown = [f"    {name!r}: against_n[n <= {P}],"]
    shown += [f"    {BEYOND!r}: against_n[n >= {P}],"] if far > P else []
    common = f"lazyscope forecast {_table(setting)[1]} --regime {state.regime} --activation {state.activation}"
    common += f" --ridge {'best' if state.best else repr(state.ridge)} --rows {MOST_ROWS}"
    commands = [f"{common} --samples {grids['samples'][1]} --width {'inf' if np.isinf(setting.N) else int(setting.N)}"]
    if state.regime == "rf":
        python += [f"N = {grids['width'][2]}"]
        python += [f"found = forecast_table(table, regime, samples=[{setting.n}, {far}], width=N, **asked).dataset"]
        shown += [f"    {AGAINST['width'][0]!r}: share(found)[0],"]
        commands.append(f"{common} --samples {setting.n} --width {grids['width'][1]}")
    python += ["lines = {", *shown, "}", "for name, line in lines.items():", "    print(name, line.round(4))"]
    return " && ".join(commands), lines_of(python)

"""From the rows of a sweep to what a panel shows: one Dataset over series, widths and samples seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NoTheorem
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.draws import over_draws
from lazyscope.experiments.lazy.design import Panel, Place, Series, line_at
from lazyscope.population.random_features import added, uncertain
from lazyscope.regimes import RandomFeatures
from lazyscope.runs import verbs
from lazyscope.runs.assembly import assemble
from lazyscope.runs.side_by_side import as_normal

if TYPE_CHECKING:
    import xarray as xr

Rows = Mapping[Place, Sequence[Row]]
"""The rows of each cross and of each dot, draw by draw."""

AT_A_WIDTH = {
    "limit_at_width": "limit at ρ = N/d",
    "exact": "exact risk",
    "exact_stderr": "standard error of the mean over draws, exact",
    "exact_draws": "draws, exact",
    "simulated": "simulated risk",
    "simulated_stderr": "standard error of the mean over draws, simulated",
    "simulated_draws": "draws, simulated",
    "step_size": "step size with the lowest risk at the end",
    "predicted": "risk that theory predicts for these weights, samples and step sizes",
    "difference": "simulated − predicted, draw by draw",
    "stderr": "standard error of the difference",
    "allowance": "what the prediction leaves out, by its own estimate",
    "z": "difference in standard errors, as a normal variable with its sign",
}


def panel_data(panel: Panel, rows: Rows) -> xr.Dataset:
    """Put the series of a panel side by side; NaN where a series has no line, cross, dot or trace."""
    import xarray as xr

    parts = [_series(panel, series, rows) for series in panel.series]
    whole = xr.concat(
        parts, "series", data_vars="all", coords="minimal", compat="override", join="outer", combine_attrs="drop"
    ).assign_coords(series=[series.label for series in panel.series])
    if panel.floor:
        whole = whole.assign(bayes=verbs.bayes(panel.problem).risk)
    for name, text in AT_A_WIDTH.items():
        whole[name].attrs["long_name"] = text
    theorems = [f"{series.label}: {part.attrs['rests']}" for series, part in zip(panel.series, parts, strict=True)]
    return whole.assign_attrs(
        title=panel.title,
        problem=str(panel.problem),
        d=panel.problem.d,
        seed=panel.seed,
        theorems="\n".join(theorems),
        citations=",".join(dict.fromkeys(key for part in parts for key in part.attrs["citations"].split(","))),
    )


def _series(panel: Panel, series: Series, rows: Rows) -> xr.Dataset:
    """Return the line, the crosses, the dots and the traces of one series, and what each rests on."""
    import xarray as xr

    widths, rho = panel.widths, line_at(panel.problem.d)
    values = {name: np.full(len(widths), np.nan) for name in AT_A_WIDTH}
    line, sources, traces = np.full(len(rho), np.nan), {}, {}
    with suppress(NoTheorem):
        sources["line"] = verbs.limit(panel.problem, series.regime, rho=rho)
        line = sources["line"].risk.values
        ratios = np.divide(widths, panel.problem.d)
        values["limit_at_width"] = verbs.limit(panel.problem, series.regime, rho=ratios).risk.values
    for i, N in enumerate(widths):
        crosses, dots = panel.draws(series, "exact", N), panel.draws(series, "simulate", N)
        if crosses:
            exact = sources["crosses"] = assemble(crosses, rows[panel.name, series.label, "exact", N])
            _note(values, i, "exact", exact, len(crosses))
        if dots:
            dot = sources["dots"] = assemble(dots, rows[panel.name, series.label, "simulate", N])
            _note(values, i, "simulated", dot, len(dots))
            values["step_size"][i] = _value(dot, "step_size_best")
            if "trace" in dot:
                traces[i] = dot
            judged = _agreement(dot, _predicted(panel, series, N, rows, float(values["step_size"][i])))
            for name, value in judged.items():
                values[name][i] = value
    at_width = {name: ("width", value) for name, value in values.items()}
    cited = (key for source in sources.values() for key in source.attrs["citations"].split(","))
    return xr.Dataset(
        {"limit": ("rho", line), **at_width, **_traces(traces, widths)},
        {"rho": rho, "width": widths},
        {
            "rests": "; ".join(f"{what}: {source.attrs['theorem']}" for what, source in sources.items()),
            "citations": ",".join(dict.fromkeys(cited)),
        },
    )


def _note(values: dict[str, Any], i: int, name: str, result: xr.Dataset, draws: int) -> None:
    """Write a cross or a dot into the table."""
    values[name][i], values[f"{name}_stderr"][i] = _value(result, "risk"), _value(result, "stderr")
    values[f"{name}_draws"][i] = draws


def _value(result: xr.Dataset, name: str) -> float:
    return float(result[name][0]) if name in result else np.nan


def _predicted(panel: Panel, series: Series, N: int, rows: Rows, step_size: float) -> FloatArray | None:
    """Return what is predicted of each draw of a dot and what that leaves out, (2, draws); None without a prediction.

    A fit of random features: the exact risk at its own weights, and what n samples add. SGD: at its best step size.
    """
    n = series.dots.samples
    if isinstance(series.regime, RandomFeatures):
        fits = panel.draws(series, "simulate", N)
        n = fits[0].settled().whole("samples")
        exact = [float(row["risk"]) for row in rows[panel.name, series.label, "exact", N][: len(fits)]]
        if len(exact) < len(fits) or n <= N + 1:
            return None
        return np.array([[R + added(R, N, n) for R in exact], [uncertain(R, N, n) for R in exact]])
    draws = panel.predictions(series, N)
    if not draws:
        return None
    k = draws[0].protocol.step_sizes.index(step_size)
    own = rows[panel.name, series.label, "predict", N]
    if not all(row["known"][k] for row in own):
        return None
    return np.array([[float(row[name][k]) for row in own] for name in ("risk", "allowance")])


def _agreement(dot: xr.Dataset, predicted: FloatArray | None) -> dict[str, float]:
    """Return how far a dot lies from its prediction; one of a single draw has no standard error and no z."""
    if predicted is None:
        return {}
    risk, allowance = predicted
    drawn = np.atleast_1d(dot.risk_draws.values[0] if "risk_draws" in dot else dot.risk.values)
    mean, stderr = over_draws(drawn - risk)
    values = {"predicted": float(risk.mean()), "difference": float(mean), "allowance": float(allowance.mean())}
    if len(drawn) > 1:
        size = as_normal(np.abs(mean), stderr, len(drawn))
        values |= {"stderr": float(stderr), "z": float(np.sign(mean) * size)}
    return values


def _traces(traces: dict[int, xr.Dataset], widths: Sequence[int]) -> dict[str, Any]:
    """Return risk against samples seen; a series without SGD has an empty one."""
    samples = next((dot.samples.values for dot in traces.values()), np.empty(0))
    table = np.full((len(widths), len(samples)), np.nan)
    for i, dot in traces.items():
        table[i] = dot.trace.values[0]
    return {
        "samples": ("point", samples),
        "trace": (("width", "point"), table),
        "point": np.arange(len(samples)),  # a label for each, as series may have unlike numbers of them
    }

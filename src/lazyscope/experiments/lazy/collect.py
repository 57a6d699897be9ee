"""From the rows of a sweep to what a panel shows: one Dataset over series, widths and samples seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.errors import NoTheorem
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.experiments.lazy.design import Panel, Place, Series, line_at
from lazyscope.runs import verbs
from lazyscope.runs.assembly import assemble
from lazyscope.runs.side_by_side import agreement

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
    "difference": "simulated − exact, draw by draw where both have the draws",
    "stderr": "standard error of the difference",
    "finite_size": "what finitely many samples may add to the risk, as the simulation declares",
    "z": "(|difference| − finite_size)₊ in standard errors",
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
        if crosses and dots:
            for name, value in _agreement(exact, dot, crosses, rows[panel.name, series.label, "exact", N]).items():
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


def _agreement(exact: xr.Dataset, dot: xr.Dataset, crosses: Sequence[Run], rows: Sequence[Row]) -> dict[str, float]:
    """Return how far a dot lies from its cross. A cross with more draws lends those that the dot has, one by one."""
    draws = dot.sizes.get("draw", 1)
    if draws == 1:  # the paper's SGD: no standard error, the finite-size term alone
        first = assemble(crosses[:1], rows[:1]) if "stderr" in exact else exact
        return {"difference": _value(dot, "risk") - _value(first, "risk"), "finite_size": _value(dot, "finite_size")}
    paired = assemble(crosses[:draws], rows[:draws]) if len(crosses) > draws and "stderr" in exact else exact
    judged = agreement(paired, dot)
    return {name: _value(judged, name) for name in ("difference", "stderr", "finite_size", "z")}


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

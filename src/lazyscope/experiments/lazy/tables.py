"""The numbers of a panel as rows: for a CSV file, for the table on the terminal, and the verdict on its dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lazyscope.experiments.frame import Row
from lazyscope.experiments.frame.judgement import Dot, judged
from lazyscope.experiments.frame.types import Dataset, Panels
from lazyscope.experiments.lazy.collect import AT_A_WIDTH, panel_data
from lazyscope.experiments.lazy.design import Panel


def at_widths(data: Dataset) -> list[dict[str, Any]]:
    """Return a row for each series and width of a panel that has a cross or a dot, None where there is no number."""
    table = []
    for label in data.series.values.tolist():
        at = data.sel(series=label)
        for i, N in enumerate(data.width.values.tolist()):
            numbers = {name: _number(at[name][i]) for name in AT_A_WIDTH}
            if numbers["exact"] is not None or numbers["simulated"] is not None:
                table.append({"regime": label, "width": N, "rho": N / data.attrs["d"], **numbers})
    return table


def _number(value: Any) -> float | None:
    number = float(value)
    return None if np.isnan(number) else number


def long_rows(panels: Panels) -> list[dict[str, Any]]:
    """Return everything that the picture shows, one row for each point of dots, crosses, lines, traces and floors."""
    return [{"panel": name, **row} for name, data in panels.items() for row in _long(data)]


def _long(data: Dataset) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = []
    for row in at_widths(data):
        size = {name: row[name] for name in ("regime", "width", "rho")}
        for fidelity, name in (("simulate", "simulated"), ("exact", "exact")):
            if row[name] is not None:
                point = {"risk": row[name], "stderr": row[f"{name}_stderr"], "draws": int(row[f"{name}_draws"])}
                shown = ("step_size", "predicted", "difference", "allowance", "z") if fidelity == "simulate" else ()
                table.append({"fidelity": fidelity, **size, **point, **{column: row[column] for column in shown}})
    for label in data.series.values.tolist():
        series = data.sel(series=label)
        shown = np.isfinite(series.limit.values)
        for rho, risk in zip(series.rho.values[shown].tolist(), series.limit.values[shown].tolist(), strict=True):
            table.append({"fidelity": "limit", "regime": label, "rho": rho, "risk": risk})
        for N in data.width.values.tolist():
            trace = series.trace.sel(width=N).values
            for samples, risk in zip(series.samples.values.tolist(), trace.tolist(), strict=True):
                if np.isfinite(risk):
                    at = {"regime": label, "width": N, "rho": N / data.attrs["d"], "samples": int(samples)}
                    table.append({"fidelity": "trace", **at, "risk": risk})
    if "bayes" in data:
        table.append({"fidelity": "limit", "regime": "Bayes", "risk": float(data.bayes)})
    return table


def dots_of(panels: Panels) -> list[Dot]:
    """Return every dot with its prediction; all of SGD have seen the same samples, as have fits of one width."""
    dots = []
    for name, data in panels.items():
        for row in at_widths(data):
            if row["simulated"] is None:
                continue
            at = data.sel(series=row["regime"], width=row["width"])
            drawn = at.measured.values[np.isfinite(at.measured.values)]
            where = f"{f'{name}, ' if len(panels) > 1 else ''}{row['regime']}, N = {row['width']}"
            known = row["predicted"] is not None
            foretold = at.foretold.values[: drawn.size] if known else np.nan
            stream = (name, row["width"] if row["step_size"] is None else "SGD")
            more = {"order": row["order"], "floor": row["floor"] or 0.0}
            dots.append(Dot(where, drawn, foretold, row["allowance"] or 0.0, stream=stream, **more))
    return dots


def verdict(panels: Panels) -> list[str]:
    """Return the three fidelities and the prediction at each cross and dot; say whether dots and predictions agree."""
    lines = []
    for data in panels.values():
        lines += [data.attrs["title"], data.attrs["problem"], *_table(data)]
        if "bayes" in data:
            lines.append(f"Bayes risk, which nothing beats: {float(data.bayes):.4f}")
        lines += data.attrs["theorems"].split("\n")
    lines += [
        "No ± where nothing is drawn, or once. Predicted: at the dot's own weights, samples and step size; allowed:",
        "what the prediction leaves out. z: simulated − predicted in standard errors, as a normal variable.",
    ]
    return [*lines, judged(dots_of(panels)).answer()]


def line(panel: Panel, rows: Sequence[Row]) -> str:
    """Return the line of a panel that has one series and one width, from the rows of its cross and its dot.

    Columns have fixed widths, as other lines are not known yet.
    """
    left = iter(rows)
    own = {at: [next(left) for _ in draws] for at, draws in panel.places()}
    (row,) = at_widths(panel_data(panel, own))
    cells = _cells(row)
    numbers = "   ".join(cell.rjust(w) for cell, w in zip(cells[1:], _WIDE, strict=True))
    return f"{panel.name}: {cells[0].ljust(22)}{numbers}"


_COLUMNS = ("regime", "N", "N/d", "limit", "exact", "predicted", "simulated", "difference", "allowed", "z")
_WIDE = (4, 5, 6, 15, 13, 15, 8, 6, 4)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a line."""
    difference = None if row["difference"] is None else round(row["difference"], 4) + 0.0  # + 0.0: no −0.0000
    return (
        row["regime"],
        f"{row['width']}",
        f"{row['rho']:.5g}",
        _cell(row["limit_at_width"], ".4f"),
        _cell(row["exact"], ".4f") + _cell(row["exact_stderr"], ".4f", " ± "),
        _cell(row["predicted"], ".4f") or ("" if row["simulated"] is None else "not predicted"),
        _cell(row["simulated"], ".4f") + _cell(row["simulated_stderr"], ".4f", " ± "),
        _cell(difference, "+.4f"),
        _cell(row["allowance"], ".4f"),
        _cell(row["z"], "+.1f"),
    )


def _table(data: Dataset) -> list[str]:
    """Return a line for each cross and dot under the names of the columns; a blank line tells series apart."""
    cells: list[tuple[str, ...]] = [_COLUMNS]
    label = ""
    for row in at_widths(data):
        if label and row["regime"] != label:
            cells.append(("",) * len(_COLUMNS))
        own = _cells(row)
        cells.append(own if row["regime"] != label else ("", *own[1:]))
        label = row["regime"]
    wide = [max(len(line[i]) for line in cells) for i in range(len(_COLUMNS))]
    text = [
        "   ".join([line[0].ljust(wide[0]), *(cell.rjust(w) for cell, w in zip(line[1:], wide[1:], strict=True))])
        for line in cells
    ]
    return [text[0], "─" * len(text[0]), *text[1:]]


def _cell(value: float | None, how: str, before: str = "") -> str:
    return "" if value is None else f"{before}{value:{how}}"

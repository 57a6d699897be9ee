"""`lazyscope forecast`: what more rows, neurons and ridge would do to the error on a table, without training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lazyscope.cli import output
from lazyscope.cli.asking import grammar, source
from lazyscope.cli.terminal import console, progress_bar, size, table
from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    import xarray as xr

    from lazyscope.lenses.forecast.of_table import TableForecast

_OWNER = "lazyscope forecast"
_CELL, _OTHERS = 23, 20  # characters of a width's column, and of the columns beside it
_HELP = """\
The learning curve and the double descent of a table (CSV, Parquet, NPZ), from one kernel matrix of its rows: what ten
times the rows would buy, how wide it must be, which ridge. Nothing is trained. Beyond the rows it is an extrapolation.

\b
lazyscope forecast house.csv --target price --samples 100:100000:20log --width 50,200,inf
lazyscope forecast --example digits --width 10:1000:30log --samples 200 --ridge 0.001,0.1 --plot
"""
_FAR = "100:10000:5log"


def _run(data: Path | None, options: dict[str, Any]) -> None:
    wanted = output.Wanted.of(_OWNER, options)
    source.check(_OWNER, data, options["example"])
    given = _FAR if options["samples"] is None else options["samples"]
    n = grammar.parse(given, _OWNER, "--samples").whole
    N = [float("inf")] if options["regime"] == "nt" else [50.0, 200.0, float("inf")]
    if options["width"] is not None:
        N = grammar.parse(options["width"], _OWNER, "--width").whole
    best = options["ridge"] == "best"
    ridge: Any = "best" if best else grammar.parse(options["ridge"], _OWNER, "--ridge").values
    if wanted.plot is not None:
        from lazyscope.lenses.forecast import pictures

        pictures.check({"samples": n, "width": N} | ({} if best else {"ridge": ridge}))
    from lazyscope.lenses.forecast.extrapolate import LEAST_ROWS
    from lazyscope.lenses.forecast.of_table import forecast_table

    table, regime = _table(data, options), _regime(options)
    rows = min(len(table.y), options["rows"])
    if options["samples"] is None and rows < LEAST_ROWS:  # too few to look beyond
        n = grammar.parse(f"10:{max(20, rows // 2)}:4log", _OWNER, "--samples").whole
    with progress_bar():
        found = forecast_table(
            table, regime, samples=n, width=N, ridge=ridge, rows=options["rows"],
            seed=options["seed"],
        )  # fmt: skip
    output.deliver(wanted, found.dataset, lambda: _picture(found), lambda _: _show(found))


def _table(data: Path | None, options: dict[str, Any]) -> Any:
    from lazyscope.lenses.data import table as tables

    if data is None:
        return tables.example(options["example"])
    frame = tables.read(data)
    if options["target"] is None:
        must = f"name the column to predict: {tables.columns(frame)}"
        raise InvalidParameter.of(_OWNER, "--target", must, "no --target")
    return tables.describe(frame, options["target"], task=options["task"], drop=options["drop"], name=data.stem)


def _regime(options: dict[str, Any]) -> Any:
    from lazyscope.regimes import NeuralTangent, RandomFeatures

    made: Any = NeuralTangent if options["regime"] == "nt" else RandomFeatures
    return made(options["activation"])


def _picture(found: TableForecast) -> Any:
    from lazyscope.lenses.forecast.pictures import picture

    return picture(found.dataset)


def _show(found: TableForecast) -> None:
    """Print the shares, with a line for each number of rows and a column for each width, and the advice."""
    from lazyscope.lenses.forecast.pictures import overall

    out, result = console(), found.dataset
    shares = overall(result)
    if "ridge" in shares.dims and shares.sizes["ridge"] > 1:
        for value in shares.ridge.values:
            _grid(out, result, shares.sel(ridge=value), f"ridge {value:g}")
    else:
        _grid(out, result, shares.squeeze([name for name in shares.dims if name == "ridge"]), "")
    notes = result.attrs["notes"]
    if bool(shares.extrapolated.any()):
        notes = "; ".join(part for part in (notes, "* is an extrapolation") if part)
    out.print("share of the best constant's squared error, with a band of 90 %.", soft_wrap=True)
    for note in filter(None, notes.split("; ")):
        out.print(f"Note: {note}.", soft_wrap=True)
    for line in found.advice.lines:
        out.print(line, soft_wrap=True)


def _grid(out: Any, result: xr.Dataset, shares: xr.Dataset, title: str) -> None:
    """Print one line for each number of rows; where the widths do not fit side by side, one for each width too."""
    widths = shares.width.values.tolist()
    best = ["best ridge"] if "best_ridge" in result else []
    beside = len(widths) * _CELL <= out.width - _OTHERS
    grid = table("rows", *([f"N = {size(width)}" for width in widths] if beside else ["N", "share"]), *best)
    for i, n in enumerate(shares.samples.values.tolist()):
        cells = [_cell(shares.isel(samples=i, width=k)) for k in range(len(widths))]
        ridges = [f"{float(value):.2g}" for value in result.best_ridge[i]] if best else []
        if beside:
            grid.add_row(f"{int(n):,}", *cells, *ridges[-1:])
            continue
        for k, width in enumerate(widths):
            grid.add_row(f"{int(n):,}", size(width), cells[k], *ridges[k : k + 1])
    if title:
        out.print(title)
    out.print(grid)


def _cell(cell: xr.Dataset) -> str:
    mark = "*" if bool(cell.extrapolated) else " "
    return f"{_share(cell.share)} ({_share(cell.low)}–{_share(cell.high)}){mark}"


def _share(value: Any) -> str:
    number = float(value)
    return "∞" if number == float("inf") else f"{number:.3f}" if number < 100 else f"{number:.3g}"


_PARAMS: list[click.Parameter] = [
    click.Argument(["data"], type=click.Path(path_type=Path), required=False),
    click.Option(["--target"], help="The column to predict."),
    click.Option(["--example"], type=click.Choice(source.EXAMPLES), help="Data of scikit-learn, instead of a file."),
    click.Option(
        ["--task"], type=click.Choice(["regression", "classification"]), help="What the target is; guessed if left out."
    ),
    click.Option(["--drop"], multiple=True, metavar="COLUMN", help="Columns left out, with commas; may be repeated."),
    click.Option(["--regime"], type=click.Choice(["rf", "nt"]), default="rf", show_default=True,
                 help="Random features, or the tangent kernel, which has width inf alone."),
    click.Option(["--activation"], default="relu", show_default=True, help="Name of σ, such as relu or tanh."),
    click.Option(["--samples"], help=f"n: {grammar.FINITE}; {_FAR} by default, or 10 to half the rows if few."),
    click.Option(["--width"], help=f"N: {grammar.GRAMMAR}; 50,200,inf by default."),
    click.Option(["--ridge"], default="best", show_default=True,
                 help="λ of Σ(y − f)² + λ‖a‖²: best, or numbers as above."),
    click.Option(["--rows"], type=int, default=3000, show_default=True,
                 help="Rows of the kernel matrix at most, drawn at random."),
    click.Option(["--seed"], type=int, default=0, show_default=True, help="Seed of these rows."),
    *output.options("lazyscope-forecast.png"),
]  # fmt: skip

forecast = click.Command(
    "forecast",
    callback=lambda data, **options: _run(data, options),
    params=_PARAMS,
    help=_HELP,
    short_help="What more rows, neurons and ridge would buy on your data.",
)

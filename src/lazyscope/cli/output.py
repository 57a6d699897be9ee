"""Where results go: a table for people, JSON for machines, a file, a picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lazyscope import files
from lazyscope.cli.asking import unused
from lazyscope.cli.terminal import console, size, table, with_error
from lazyscope.problems import SizedProblem
from lazyscope.runs import pictures

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure
    from rich.table import Table

DIGITS = {"limit": 5, "exact": 4, "simulate": 4}
_ERRORS = {"risk": "stderr", "simulate": "stderr", "difference": "stderr"}
_OWN = ("step", "degree", "neuron", "neuron_too", "index")  # axes that neither the table nor the picture of risks shows
_REPORTED = ("residual", "iterations")  # what a solver reports: in the files, not in the table

FORCE = "Replace files that exist; without it they are left alone, and the command refused."


def options(picture: str = "") -> tuple[click.Option, ...]:
    """Return `--json`, `--out`, `--plot` and `--force`; `picture` is the name of a picture that was given none.

    Without a `picture` there is no `--plot`.
    """
    usual = (
        click.Option(
            ["--json", "as_json"], is_flag=True, help="Print one JSON object instead of the table: all variables."
        ),
        click.Option(["--out"], type=click.Path(path_type=Path), help="Write the results: .csv, .json or .nc."),
    )
    force = click.Option(["--force"], is_flag=True, help=FORCE)
    if not picture:
        return (*usual, force)
    drawn = f"Draw a picture: .png, .pdf or .svg; {picture} if no name is given."
    return (*usual, click.Option(["--plot"], is_flag=False, flag_value=picture, metavar="[FILE]", help=drawn), force)


@dataclass(frozen=True)
class Wanted:
    """Where results are to go; every path is known to be writable, and new unless it may be replaced."""

    as_json: bool
    out: Path | None
    plot: Path | None

    @classmethod
    def of(cls, owner: str, options: dict[str, Any]) -> Wanted:
        """Check the paths before anything is computed."""
        plot = None if options.get("plot") is None else Path(options["plot"])
        places = [
            files.Place("--out", options["out"], files.RESULT_SUFFIXES),
            files.Place("--plot", plot, files.PICTURE_SUFFIXES),
        ]
        files.check_places(owner, places, force=options["force"])
        some = "--out or --plot" if "plot" in options else "--out"
        unused.refuse_force(owner, any(place.path is not None for place in places), some)
        return cls(options["as_json"], options["out"], plot)


def send(
    wanted: Wanted,
    write: Callable[[Path, str], None],
    document: Callable[[str], Any],
    show: Callable[[], None],
    picture: Callable[[], Figure] | None = None,
) -> None:
    """Send an answer where it is wanted: files and JSON carry the command, which is passed to what makes them."""
    command = str(click.get_current_context().find_root().obj)
    # drawn before anything is written: what cannot be shown leaves no file behind
    figure = picture() if wanted.plot is not None and picture is not None else None
    if wanted.out is not None:
        write(wanted.out, command)
        click.echo(f"wrote {wanted.out}", err=True)
    if figure is not None and wanted.plot is not None:
        pictures.save(figure, wanted.plot)
        click.echo(f"wrote {wanted.plot}", err=True)
    if wanted.as_json:
        click.echo(json.dumps(document(command)))
    else:
        show()


def emit(wanted: Wanted, results: Sequence[xr.Dataset], problem: SizedProblem, *, geometric: bool) -> None:
    """Send the results of regimes that stand side by side."""
    _warn(results)
    send(
        wanted,
        lambda path, command: files.write_results(path, results, problem.d, str(problem), command),
        lambda command: files.document(results, str(problem), command),
        lambda: show(results, problem),
        lambda: pictures.curves(results, problem, geometric=geometric),
    )


def deliver(
    wanted: Wanted, result: xr.Dataset, picture: Callable[[], Figure] | None, show: Callable[[xr.Dataset], None]
) -> None:
    """Send one result over any dimensions; `picture` draws it, `show` prints it for people."""
    send(
        wanted,
        lambda path, command: files.write_points(path, result, command),
        lambda command: files.document([result], result.attrs["problem"], command),
        lambda: show(result),
        picture,
    )


def emit_points(wanted: Wanted, result: xr.Dataset) -> None:
    """Send one result over any dimensions, with the usual table and picture."""

    def picture() -> Figure:
        first = ("risk", "error", "margin")
        names = ["limit"] if "limit" in result else sorted(_shown(result), key=lambda name: name not in first)
        if "margin" in names:
            names = ["error", "margin"]
        return pictures.grid(result.drop_dims([*_OWN], errors="ignore"), names)

    deliver(wanted, result, picture, show_points)


def _shown(result: xr.Dataset) -> list[str]:
    """Return the variables that people look at, in the order of the result."""
    along = [values.dims for values in result.data_vars.values() if not {"draw", *_OWN} & {*values.dims}]
    whole = max(along, key=len)
    names = [str(name) for name, values in result.data_vars.items() if values.dims == whole]
    same = ("risk",) if "error" in names else ()  # of labels the risk is the probability of a wrong one
    return [name for name in names if name not in (*_REPORTED, *same) and not name.endswith("stderr")]


def show_points(result: xr.Dataset) -> None:
    """Print the problem, one line for each point, and the theorem behind the numbers."""
    out, names = console(), _shown(result)
    heads = {"regime": "regime", "width": "N", "samples": "n", "psi1": "N/d", "psi2": "n/d", "ridge": "ridge"}
    heads |= {str(name): str(name) for name in result[names[0]].dims if str(name) not in heads}
    places = [name for name in heads if name in result.coords]
    grid = table(*(heads[name] for name in places), *names, left=int("regime" in places))
    for row in files.points(result[[*names, *(name for name in result.data_vars if str(name).endswith("stderr"))]]):
        numbers = (_cell(name, row) for name in names)
        where = (row[name] if name == "regime" else size(row[name]) for name in places)
        grid.add_row(*where, *numbers)
    at = result.attrs
    samples = json.loads(at["arguments"]).get("samples")
    alone = isinstance(samples, (int, float, str)) and not {"samples", "psi2", "regime"} & {*places}
    n = f"; n = {float(samples):,.0f}".replace("inf", "∞") if alone else ""  # a single number is no column
    out.print(f"{at['problem']}; {at['regime']}{n}", soft_wrap=True)
    out.print(grid)
    out.print(f"{at['theorem']} [{at['citations'].replace(',', ', ')}]", soft_wrap=True)
    if "erratum" in at:
        out.print(f"erratum: {at['erratum']}", soft_wrap=True)


def _cell(name: str, row: dict[str, Any]) -> str:
    """Return what the table shows of one variable."""
    stderr = row.get(_ERRORS.get(name, f"{name}_stderr"))
    if name == "separable" and stderr is None:
        return "yes" if row[name] else "no"
    return _number(row[name], stderr)


def _number(value: float, stderr: float | None) -> str:
    """Return a number that may be of any size, and its standard error.

    >>> _number(0.4174794, None), _number(2500.123, 3.2), _number(float("inf"), None)
    ('0.41748', '2500.1 ± 3.2', '∞')
    """
    if value == float("inf"):
        return "∞"
    digits = 1 if abs(value) >= 100 else 5 if stderr is None else 4
    return with_error(value, stderr, digits)


def _warn(results: Sequence[xr.Dataset]) -> None:
    """Say where a descent stopped at its last step instead of at a minimum."""
    for result in results:
        if "converged" in result and not result.converged.all():
            short = int((result.converged == 0).sum())
            label = result.attrs["label"]
            click.echo(f"lazyscope: note: {label}: {short} of {result.converged.size} descents were cut off.", err=True)


def show(results: Sequence[xr.Dataset], problem: SizedProblem) -> None:
    """Print the problem, the table, and the theorem that each column rests on."""
    out = console()
    out.print(str(problem), soft_wrap=True)
    out.print(risk_table(results, problem.d))
    for result in results:
        at = result.attrs
        out.print(
            f"{at['label']:<6}{at['theorem']} [{at['citations'].replace(',', ', ')}]; {at['regime']}", soft_wrap=True
        )
        if "erratum" in at:
            out.print(f"{'':<6}erratum: {at['erratum']}", soft_wrap=True)


def risk_table(results: Sequence[xr.Dataset], d: int) -> Table:
    """Return a table of N/d, N, and one column for each regime; a risk without a width is repeated on every line."""
    columns = {result.attrs["label"]: files.tidy([result], d) for result in results}
    digits = DIGITS[results[0].attrs["fidelity"]]
    longest = max(columns.values(), key=len)
    grid = table("N/d", "N", *columns)
    for i, line in enumerate(longest):
        here = [rows[i if len(rows) > 1 else 0] for rows in columns.values()]
        risks = (with_error(row["risk"], row.get("stderr"), digits) for row in here)
        grid.add_row(size(line["rho"]), size(line["width"]), *risks)
    return grid

"""`lazyscope lens`: whether training the features is worth it on a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lazyscope import files
from lazyscope.cli.asking import source, unused
from lazyscope.cli.asking.grammar import parse
from lazyscope.cli.output import FORCE
from lazyscope.cli.terminal import console, progress_bar, table, with_error

if TYPE_CHECKING:
    from rich.table import Table

    from lazyscope.lenses.data.lens import DataLens


@click.command()
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--target", help="The column to predict.")
@click.option(
    "--example", type=click.Choice(source.EXAMPLES), help="Data that ship with scikit-learn, instead of a file."
)
@click.option(
    "--task", type=click.Choice(["regression", "classification"]), help="What the target is; guessed if left out."
)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Columns left out, with commas; may be repeated.")
@click.option("--widths", default="32,128,512", show_default=True, help="Numbers of neurons, with commas.")
@click.option("--folds", type=int, default=5, show_default=True, help="Folds of the cross-validation.")
@click.option("--budget", default="2m", show_default=True, help="Time to use at most: 90s, 5m, 1h.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--rows", type=int, default=10_000, show_default=True, help="Use at most so many rows, drawn at random.")
@click.option("--report", type=click.Path(path_type=Path), help="The report, .html; lens.html unless --json is given.")
@click.option("--out", type=click.Path(path_type=Path), help="Write all numbers: .json or .nc.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option("--force", is_flag=True, help=FORCE)
def lens(data: Path | None, **options: Any) -> None:
    """Train the four regimes on a table (CSV, Parquet, NPZ), and say whether training the features is worth it.

    Numbers and categories are prepared the scikit-learn way, fold by fold. The report is one HTML file.
    """
    from lazyscope.lenses.data.budget import Budget, seconds_of, since_start
    from lazyscope.lenses.verb import lens as look

    owner = "lazyscope lens"
    report = options["report"] or (None if options["as_json"] else Path("lens.html"))
    places = [files.Place("--report", report, (".html",)), files.Place("--out", options["out"], (".json", ".nc"))]
    files.check_places(owner, places, force=options["force"])
    unused.refuse_force(owner, any(place.path is not None for place in places), "--report or --out")
    source.check(owner, data, options["example"])
    chosen = {name: options[name] for name in ("folds", "seed", "rows")}
    seconds = seconds_of(options["budget"], "lens")
    # since the command was typed; at most a tenth, as inside another program the process is older than the command
    chosen["budget"] = Budget(seconds, used=min(since_start(), 0.1 * seconds))
    chosen["widths"] = parse(options["widths"], owner, "--widths").whole
    chosen |= {name: options[name] for name in ("target", "task", "drop") if options[name]}
    with progress_bar():
        found = look(data if data is not None else options["example"], **chosen)
    if options["out"] is not None:
        _write(options["out"], found)
    if report is not None:
        click.echo(f"wrote {found.save(report)}", err=True)
    if options["as_json"]:
        from lazyscope.lenses.data.numbers import document

        click.echo(json.dumps(document(found)))
    else:
        _show(found)


def _write(path: Path, found: DataLens) -> None:
    from lazyscope.lenses.data.numbers import document

    with files.replacing(path) as part:
        if path.suffix.lower() == ".json":
            part.write_text(json.dumps(document(found), indent=1) + "\n", encoding="utf-8")
        else:
            found.dataset.to_netcdf(part, engine="h5netcdf")
    click.echo(f"wrote {path}", err=True)


def _grid(found: DataLens) -> Table:
    """Return the errors: a row for each regime, and one for boosted trees, which have no width."""
    from lazyscope.lenses.data.regimes import REFERENCE

    cells = found.measured.at(found.samples)
    widths = sorted({cell.width for line in cells.values() for cell in line})
    grid = table("regime", *(f"N = {width}" for width in widths), left=1)
    for name in (name for name in found.names if name in cells):
        means = {cell.width: found.measured.mean(cell) for cell in cells[name]}
        grid.add_row(f"{name}, {found.names[name]}", *(with_error(*means[w], 4) if w in means else "—" for w in widths))
    trees = found.measured.reference
    if trees is not None:
        told = with_error(*found.measured.mean(trees), 4)
        grid.add_row(f"{REFERENCE}, for reference (no width)", *(told if w == found.middle else "" for w in widths))
    return grid


def _show(found: DataLens) -> None:
    """Print the table of errors, the quadratic part, and the verdict."""
    out = console()
    out.print(found.about, soft_wrap=True)
    if found.samples:
        out.print(_grid(found))
        best = f"the best constant has {found.measured.baseline.mean():.4f}"
        out.print(f"{found.error_name}; {best}; {found.samples:,} training rows in each fold.", soft_wrap=True)
    if found.part is not None:
        from lazyscope.lenses.data.verdict import shares

        out.print(f"Of the variance, {shares(found.part)}.", soft_wrap=True)
    for note in found.notes:
        out.print(f"Note: {note}.", soft_wrap=True)
    out.print(found.verdict, soft_wrap=True)

"""`lazyscope figure`: the figures of the papers, with their data and the command that makes them again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    import xarray as xr


@click.command(short_help="Draw a figure of the papers.")
@click.argument("name", required=False)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True,
    help="Folder for the PNG, the PDF and the CSV; made if it is missing.",
)  # fmt: skip
@click.option("--list", "names", is_flag=True, help="List the figures.")
def figure(name: str | None, out: Path, names: bool) -> None:
    """Draw the figure NAME: theory as lines, exact values as dots, and the numbers of both."""
    from lazyscope import figures

    if names:
        for known, title in figures.FIGURES.items():
            click.echo(f"{known}  {title}")
        return
    if name not in figures.FIGURES:
        must = f"be {' or '.join(figures.FIGURES)}"
        raise InvalidParameter.of("lazyscope figure", "NAME", must, "none" if name is None else repr(name))
    _folder(out)
    _make(name, out)


def _folder(out: Path) -> None:
    from lazyscope.files import check_folder

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = f"{out} ({error.strerror})"
        raise InvalidParameter.of("lazyscope figure", "--out", "be a folder or a place for one", got) from None
    check_folder(out, "lazyscope figure", "--out")


def _make(name: str, out: Path) -> None:
    from lazyscope import figures, files, plotting
    from lazyscope.cli.terminal import progress_bar

    module = figures.load(name)
    with progress_bar():
        data = module.compute()
    command = f"lazyscope figure {name}"
    picture = module.plot(data)
    for suffix in (".png", ".pdf"):
        plotting.save(picture, out / f"{name}{suffix}")
    with files.replacing(out / f"{name}.csv") as part:
        files.write_csv(part, figures.rows(data), [command, data.attrs["problem"], *figures.provenance(data)])
    _show(data)
    for suffix in (".png", ".pdf", ".csv"):
        click.echo(f"wrote {out / name}{suffix}", err=True)


def _show(data: xr.Dataset) -> None:
    """Print limit, exact value and difference at each dot, regime by regime."""
    from lazyscope.cli.terminal import console, size, table, with_error

    grid = table("regime", "N", "N/d", "limit", "exact ± stderr", "difference", left=1)
    for label in data.series.values.tolist():
        line = data.sel(series=label)
        for i, N in enumerate(data.width.values.tolist()):
            limit, exact, stderr = (float(line[name][i]) for name in ("limit_at_width", "exact", "stderr"))
            cells = (
                f"{limit:.4f}",
                with_error(exact, stderr, 4),
                f"{round(exact - limit, 4) + 0.0:+.4f}",
            )  # + 0.0: no −0.0000
            grid.add_row(label if i == 0 else "", size(N), size(N / data.attrs["d"]), *cells)
        grid.add_section()
    out = console()
    out.print(data.attrs["problem"], soft_wrap=True)
    out.print(grid)
    if "bayes" in data:
        out.print(f"Bayes risk, which nothing beats: {float(data.bayes):.4f}")
    out.print("No ± where the value does not depend on the draw of the weights.", soft_wrap=True)
    for line in data.attrs["theorems"].split("\n"):
        out.print(line, soft_wrap=True)

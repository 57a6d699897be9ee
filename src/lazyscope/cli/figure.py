"""`lazyscope figure`: the figures of the papers, with their data and the command that makes them again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    import xarray as xr

    from lazyscope.experiments.frame.compute import Numbers
    from lazyscope.experiments.frame.design import Preset
    from lazyscope.experiments.frame.experiment import Size

_OWNER = "lazyscope figure"


@click.command()
@click.argument("name", required=False)
@click.option(
    "--preset", metavar="quick|paper", default="quick", show_default=True,
    help="quick: d ≤ 100, two or three minutes on two cores. paper: d = 450 and the paper's protocol, hours "
    "(--list tells how many) but for what the shipped reference runs have.",
)  # fmt: skip
@click.option("--width", help="Simulate at these N instead: numbers or ranges with commas, as in exact --width.")
@click.option("--workers", type=int, help="Processes; all cores by default. The numbers do not depend on it.")
@click.option("--fresh", is_flag=True, help="Compute anew what the shipped reference runs have, in a store of its own.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True,
    help="Folder for the PNG, the PDF, the numbers (CSV, netCDF) and their provenance (JSON); made if it is missing.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace also files of these names that this figure did not write.")
@click.option("--list", "names", is_flag=True, help="List the figures.")
@click.pass_context
def figure(
    ctx: click.Context,
    name: str | None,
    preset: str,
    width: str | None,
    workers: int | None,
    fresh: bool,
    out: Path,
    force: bool,
    names: bool,
) -> None:
    """Draw the figure NAME: limits as lines, exact values as crosses, simulated networks as dots.

    Every result goes to a store in the folder, NAME.sqlite, as soon as it is there: whatever ends a run, the same
    command goes on from there.
    """
    from lazyscope import experiments as figures
    from lazyscope.experiments.frame.experiment import Experiment

    if names:
        for known, title in figures.FIGURES.items():
            costs = (f"{word}: {size.cost}" for word, size in figures.load(known).PRESETS.items())
            click.echo(f"{known:19} {title}\n{'':19} {'; '.join(costs)}")
        return
    module = figures.load(name)
    if preset not in module.PRESETS:
        raise InvalidParameter.of(_OWNER, "--preset", f"be {' or '.join(module.PRESETS)}", repr(preset))
    size = module.PRESETS[preset]
    if isinstance(module, Experiment):
        for option, given in (("--width", width is not None), ("--fresh", fresh)):
            if given:
                must = f"be left out: {name} has neither dots at widths to choose nor reference runs"
                raise InvalidParameter.of(_OWNER, option, must, "it")
        _folder(out, str(name), preset, force)
        _explore(ctx, str(name), preset, size, out, workers)
        return
    if width is not None:
        size = size.at(_widths(width))
    _folder(out, str(name), preset, force)
    _make(ctx, str(name), preset, size, out, workers, fresh)


def _explore(ctx: click.Context, name: str, preset: str, size: Size, out: Path, workers: int | None) -> None:
    """Compute, draw and write a figure that is an experiment of its own."""
    from lazyscope import experiments as figures
    from lazyscope.cli.terminal import console, progress_bar
    from lazyscope.experiments.frame import experiment, output

    module = figures.load(name)
    stem = _stem(name, preset)
    store = out / f"{stem}.sqlite"
    try:
        with progress_bar():
            found = experiment.compute(stem, module, size, store, workers)
    except KeyboardInterrupt:
        plan, _ = experiment.plan_of(stem, module.work(size))
        _interrupted(ctx, "" if plan is None else plan.name, store)
    about = {"figure": name, "preset": preset}
    paths = output.write_findings(found, module.plot(found.panels), out / stem, str(ctx.obj or _OWNER), about)
    for line in module.verdict(found.panels):
        console().print(line, soft_wrap=True, markup=False, highlight=False)
    for path in paths:
        click.echo(f"wrote {path}", err=True)


def _widths(text: str) -> list[float]:
    from lazyscope.cli.asking import grammar

    return grammar.parse(text, _OWNER, "--width").whole


def _stem(name: str, preset: str) -> str:
    return name if preset == "quick" else f"{name}-{preset}"


def _folder(out: Path, name: str, preset: str, force: bool) -> None:
    """Make the folder, and see that everything the figure writes may be written there."""
    from lazyscope.experiments.frame.output import SUFFIXES, written_by
    from lazyscope.files import Place, check_folder, check_places

    stem = out / _stem(name, preset)
    paths = {suffix: stem.with_name(stem.name + suffix) for suffix in SUFFIXES}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = f"{out} ({error.strerror})"
        raise InvalidParameter.of(_OWNER, "--out", "be a folder or a place for one", got) from None
    check_folder(out, _OWNER, "--out")
    again = written_by(stem, name, preset)
    places = (Place("--out", path, (suffix,)) for suffix, path in paths.items())
    check_places(_OWNER, places, force=force or again)
    if again:
        click.echo(f"lazyscope: note: {stem}.* of an earlier run of this figure will be replaced.", err=True)


def _make(
    ctx: click.Context, name: str, preset: str, size: Preset, out: Path, workers: int | None, fresh: bool
) -> None:
    from lazyscope import experiments as figures
    from lazyscope.cli.terminal import progress_bar
    from lazyscope.experiments.frame import output, references
    from lazyscope.experiments.frame.compute import Layout, compute

    module = figures.load(name)
    stem = _stem(name, preset)
    store = out / f"{stem}{'-fresh' if fresh else ''}.sqlite"
    layout = Layout.of(stem, module.panels(size))
    known = () if fresh else references.shipped()
    try:
        with progress_bar():
            numbers = compute(
                layout, store, workers=workers, references=known, tell=lambda line: click.echo(line, err=True)
            )
    except KeyboardInterrupt:
        _interrupted(ctx, layout.plan.name, store)
    about = {"figure": name, "preset": preset, "d": size.d}
    paths = output.write(numbers, module.plot(numbers.panels), out / stem, str(ctx.obj or _OWNER), about)
    _show(numbers)
    for path in paths:
        click.echo(f"wrote {path}", err=True)


def _interrupted(ctx: click.Context, plan: str, store: Path) -> NoReturn:
    from lazyscope import sweep

    plans = sweep.status(store)[0] if store.exists() else []
    done = next((f"{one.done} of {one.tasks}" for one in plans if one.plan == plan), "none of the")
    click.echo(f"lazyscope: interrupted; {done} tasks are done and kept, the same command goes on from there", err=True)
    ctx.exit(130)


def _show(numbers: Numbers) -> None:
    """Print the three fidelities at each cross and dot, what lies between them, and whether it may."""
    from lazyscope.cli.terminal import console
    from lazyscope.experiments.frame import tables

    out = console()
    for data in numbers.panels.values():
        out.print(data.attrs["title"], soft_wrap=True)
        out.print(data.attrs["problem"], soft_wrap=True)
        out.print(_table(data))
        if "bayes" in data:
            out.print(f"Bayes risk, which nothing beats: {float(data.bayes):.4f}")
        for line in data.attrs["theorems"].split("\n"):
            out.print(line, soft_wrap=True)
    out.print(
        "No ± where nothing is drawn, or once. z: the difference beyond the finite-size term, in standard errors.",
        soft_wrap=True,
    )
    out.print(tables.verdict(numbers.panels), soft_wrap=True)


_COLUMNS = ("regime", "N", "N/d", "limit", "exact", "simulated", "difference", "finite size", "z")


def _table(data: xr.Dataset) -> object:
    from lazyscope.cli.terminal import size, table, with_error
    from lazyscope.experiments.frame import tables

    grid = table(*_COLUMNS, left=1)
    label = ""
    for row in tables.at_widths(data):
        if label and row["regime"] != label:
            grid.add_section()
        cells = [
            _cell(row["limit_at_width"], "{:.4f}"),
            "" if row["exact"] is None else with_error(row["exact"], row["exact_stderr"], 4),
            "" if row["simulated"] is None else with_error(row["simulated"], row["simulated_stderr"], 4),
            "" if row["difference"] is None else f"{round(row['difference'], 4) + 0.0:+.4f}",  # + 0.0: no −0.0000
            _cell(row["finite_size"], "{:.4f}"),
            _cell(row["z"], "{:.1f}"),
        ]
        grid.add_row(row["regime"] if row["regime"] != label else "", size(row["width"]), size(row["rho"]), *cells)
        label = row["regime"]
    return grid


def _cell(value: float | None, how: str) -> str:
    return "" if value is None else how.format(value)

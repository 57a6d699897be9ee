"""`lazyscope figure`: the figures of the papers, with their data and the command that makes them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import click

from lazyscope.cli.asking import unused
from lazyscope.errors import InvalidParameter

_OWNER = "lazyscope figure"


@click.command()
@click.argument("name", required=False)
@click.option(
    "--preset", metavar="quick|paper", default="quick", show_default=True,
    help="quick: d ≤ 100, minutes on two cores. paper: d = 450 and the paper's protocol, hours "
    "(--list tells how many) but for what the shipped reference runs have.",
)  # fmt: skip
@click.option("--width", help="Simulate at these N instead: numbers or ranges with commas, as in exact --width.")
@click.option("--workers", type=int, help="Processes; all cores by default. The numbers do not depend on it.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Of figures on MNIST: a folder with its four IDX files; else OpenML is asked.",
)
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
    folder: Path | None,
    fresh: bool,
    out: Path,
    force: bool,
    names: bool,
) -> None:
    """Draw the figure NAME: limits as lines, exact values as crosses, simulated networks as dots.

    Every result goes to a store in the folder, NAME.sqlite, as soon as it is there: whatever ends a run, the same
    command goes on from there.
    """
    from lazyscope import experiments

    if names:
        unused.refuse(_OWNER, (), ("name", "preset", "width", "workers", "folder", "fresh", "out", "force"), "--list")
        for known, entry in experiments.load_all().items():
            costs = (f"{word}: {size.cost}" for word, size in entry.presets.items())
            click.echo(f"{known:19} {entry.title}\n{'':19} {'; '.join(costs)}")
        return
    chosen = experiments.load(name)
    if preset not in chosen.presets:
        raise InvalidParameter.of(_OWNER, "--preset", f"be {' or '.join(chosen.presets)}", repr(preset))
    size = chosen.presets[preset]
    if width is not None and chosen.at_widths is None:
        raise InvalidParameter.of(
            _OWNER, "--width", f"be left out: {name} has no dots at widths to choose", repr(width)
        )
    if fresh and not chosen.borrows:
        raise InvalidParameter.of(_OWNER, "--fresh", f"be left out: {name} has no reference runs", "--fresh")
    if width is not None and chosen.at_widths is not None:
        from lazyscope.cli.asking import grammar

        size = chosen.at_widths(size, grammar.parse(width, _OWNER, "--width").whole)
    _data_folder(chosen, folder)
    _folder(out, chosen.name, preset, force)
    _make(ctx, chosen, preset, size, out, workers, fresh)


def _make(ctx: click.Context, chosen: Any, preset: str, size: Any, out: Path, workers: int | None, fresh: bool) -> None:
    """Compute what an experiment asks for, write its results, and print its verdict."""
    from lazyscope.cli.terminal import console, progress_bar
    from lazyscope.experiments.frame import experiment, output, references

    stem = _stem(chosen.name, preset)
    store = out / f"{stem}{'-fresh' if fresh else ''}.sqlite"
    known = references.shipped() if chosen.borrows and not fresh else ()
    try:
        with progress_bar() as say:
            findings = experiment.compute(stem, chosen, size, store, workers, references=known, tell=say)
    except KeyboardInterrupt:
        plan, _ = experiment.plan_of(stem, chosen.work(size))
        _interrupted(ctx, "" if plan is None else plan.name, store)
    about = {"figure": chosen.name, "preset": preset}
    paths = output.write(chosen, findings, out / stem, str(ctx.obj or _OWNER), about)
    *lines, ending = chosen.verdict(findings.panels)
    for line in lines:
        console().print(line, soft_wrap=True, markup=False, highlight=False)
    colour = {True: "green", False: "red", None: None}[getattr(ending, "holds", None)]
    console().print(ending, soft_wrap=True, markup=False, highlight=False, style=colour)
    for path in paths:
        click.echo(f"wrote {path}", err=True)


def _data_folder(chosen: Any, folder: Path | None) -> None:
    """Check that the data are there, for a figure that reads any."""
    if chosen.locate is not None:
        chosen.locate(folder)
    elif folder is not None:
        raise InvalidParameter.of(_OWNER, "--folder", f"be left out: {chosen.name} reads no data", folder)


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


def _interrupted(ctx: click.Context, plan: str, store: Path) -> NoReturn:
    from lazyscope import sweep

    plans = sweep.status(store)[0] if store.exists() else []
    done = next((f"{status.done} of {status.tasks}" for status in plans if status.plan == plan), "none of the")
    click.echo(f"lazyscope: interrupted; {done} tasks are done and kept, the same command goes on from there", err=True)
    ctx.exit(130)

"""`lazyscope sweep run`, `status` and `export`: grids of tasks that survive a crash."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import click

from lazyscope import files
from lazyscope import sweep as sweeps
from lazyscope.cli.asking import unused
from lazyscope.cli.asking.plan_file import read_plan
from lazyscope.cli.output import FORCE
from lazyscope.cli.terminal import console, progress_bar, table
from lazyscope.evidence.run import Run
from lazyscope.sweep import Plan, Summary
from lazyscope.sweep.collect import EXPORT_SUFFIXES

_PATH = click.Path(path_type=Path)
_MOST_FAILURES = 5  # failures that are printed one by one


@click.group()
def sweep() -> None:
    """Compute a grid of problems, regimes, widths and draws on all cores or on a cluster.

    Every result goes to a file, the store, as soon as it is there. Whatever ends a run, be it kill -9, the same command
    goes on from there, and the results are the same to the last bit.
    """


@sweep.command(short_help="Compute what a plan asks for and its store does not have.")
@click.argument("plan", type=_PATH)
@click.option("--store", type=_PATH, help="File for the results; by default that of the plan, ending in .sqlite.")
@click.option("--workers", type=int, help="Processes; all cores by default. The numbers do not depend on it.")
@click.option(
    "--backend", type=click.Choice(["loky", "dask"]), default="loky", show_default=True,
    help="Processes here, or a Dask cluster (pip install 'lazyscope[dask]').",
)  # fmt: skip
@click.option("--address", metavar="HOST:PORT", help="Of the scheduler of the Dask cluster.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.pass_context
def run(
    ctx: click.Context,
    plan: Path,
    store: Path | None,
    workers: int | None,
    backend: str,
    address: str | None,
    as_json: bool,
) -> None:
    """Compute the tasks of PLAN, a TOML file such as this one, and keep them in the store.

    \b
    problem = "quadratic"            # any problem of the verbs, with its options: d = 450 unless you say otherwise
    regime = ["rf", "nt", "nn"]      # with their options: activation, weights for rf
    fidelity = ["exact", "simulate"]
    width = "45:4500:5log"           # numbers, or ranges as in --width
    draws = 3
    samples = 500_000                # for rf
    [sgd]                            # for nt and nn; the paper's protocol without it
    steps = 20_000

    A list stands for each of its items; tables [[grid]] for several grids. Tasks that have a result are not computed
    again; those that failed are. Exit code 1 tells that some did fail.
    """  # noqa: D301 (\b is the character that keeps click from wrapping)
    words = {"workers": ", or add --backend loky", "address": ", or add --backend dask"}
    takes = ("workers",) if backend == "loky" else ("address",)
    unused.refuse("lazyscope sweep run", takes, words, f"--backend {backend}", words.__getitem__)
    what = read_plan(plan)
    place = plan.with_suffix(".sqlite") if store is None else store
    try:
        with progress_bar():
            summary = sweeps.run(what, place, workers=workers, backend=backend, address=address)
    except KeyboardInterrupt:
        _interrupted(ctx, what, place)
    if as_json:
        click.echo(json.dumps({"store": str(place), **asdict(summary)}))
    else:
        _show(what, summary, place)
    for task, message in summary.failures[:_MOST_FAILURES]:
        click.echo(f"lazyscope: failed: {task}: {message}", err=True)
    more = len(summary.failures) - _MOST_FAILURES
    if more > 0:
        click.echo(f"lazyscope: failed: {more} more", err=True)
    ctx.exit(0 if summary.complete else 1)


def _interrupted(ctx: click.Context, plan: Plan, store: Path) -> NoReturn:
    done = (
        next((status.done for status in sweeps.status(store)[0] if status.plan == plan.name), 0)
        if store.exists()
        else 0
    )
    told = f"interrupted; {done} of {len(plan.tasks)} tasks are done and kept, the same command goes on from there"
    click.echo(f"lazyscope: {told}", err=True)
    ctx.exit(130)


def _show(plan: Plan, summary: Summary, store: Path) -> None:
    runs = (task.work for task in plan.tasks if isinstance(task.work, Run))
    tasks = Counter((str(run.problem), run.fidelity, str(run.regime)) for run in runs)
    grid = table("problem", "fidelity", "regime", "tasks", left=3)
    for row, count in tasks.items():
        grid.add_row(*row, str(count))
    out = console()
    out.print(grid)
    failed = f", {len(summary.failures)} failed" if summary.failures else ""
    out.print(
        f"{plan.name}: {summary.computed} computed, {summary.reused} had a result already{failed}; kept in {store}",
        soft_wrap=True,
    )


@sweep.command(short_help="How far the plans of a store are.")
@click.argument("store", type=_PATH)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def status(store: Path, as_json: bool) -> None:
    """Tell how far each plan of STORE has come, also while it is being filled.

    Example: lazyscope sweep status width.sqlite
    """
    plans, holder = sweeps.status(store)
    if as_json:
        click.echo(json.dumps({"plans": [asdict(plan) for plan in plans], "running": holder}))
        return
    grid = table("plan", "tasks", "done", "failed", "left", "seconds of work", left=1)
    for plan in plans:
        left = plan.tasks - plan.done
        grid.add_row(plan.plan, *map(str, (plan.tasks, plan.done, plan.failed, left)), f"{plan.seconds:,.1f}")
    out = console()
    out.print(grid)
    if holder is not None:
        out.print(f"being filled by {holder}", soft_wrap=True)


@sweep.command(short_help="Write the results of a plan to .csv or .nc.")
@click.argument("store", type=_PATH)
@click.option("--out", type=_PATH, required=True, help="File: .csv, a row for each width; .nc, all there is.")
@click.option("--plan", metavar="NAME", help="Which plan; may be left out where the store has one only.")
@click.option("--partial", is_flag=True, help="Take the widths that have all their draws, if not all are finished.")
@click.option("--force", is_flag=True, help=FORCE)
def export(store: Path, out: Path, plan: str | None, partial: bool, force: bool) -> None:
    """Write the results of a plan of STORE, the same bytes however they were computed.

    Example: lazyscope sweep export width.sqlite --out width.csv
    """
    files.check_places("lazyscope sweep export", [files.Place("--out", out, EXPORT_SUFFIXES)], force=force)
    for line in sweeps.export(store, out, plan, partial=partial):
        click.echo(f"lazyscope: note: left out: {line}", err=True)
    click.echo(f"wrote {out}", err=True)

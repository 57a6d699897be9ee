"""What people see: a console, tables, a progress bar."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from lazyscope.cli.asking.effort import NOTES
from lazyscope.progress import observing, reporting

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDTH_OF_A_FILE = 140
_LEAST_WIDTH = 80


def console() -> Console:
    """Return a console on stdout that is wide enough for every number: a narrow terminal wraps, nothing is cut."""
    from rich.console import Console

    width = max(shutil.get_terminal_size().columns, _LEAST_WIDTH) if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    return Console(width=width, highlight=False, markup=False, emoji=False)


def table(*columns: str, left: int = 0) -> Table:
    """Return an empty table: the first `left` columns are words, which may wrap, the rest numbers."""
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, name in enumerate(columns):
        if i < left:
            grid.add_column(name, overflow="fold")
        else:
            grid.add_column(name, justify="right", no_wrap=True)
    return grid


def with_error(value: float, stderr: float | None, digits: int) -> str:
    """Return `value ± stderr`, without the second where there is none.

    >>> with_error(0.3725, 0.0012, 4), with_error(0.5, None, 2)
    ('0.3725 ± 0.0012', '0.50')
    """
    if stderr is None or stderr != stderr:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ± {stderr:.{digits}f}"


def size(value: float | None) -> str:
    """Return a width or a ratio as a table shows it.

    >>> size(450), size(0.05), size(float("inf")), size(None)
    ('450', '0.05', '∞', '')
    """
    if value is None:
        return ""
    if value == float("inf"):
        return "∞"
    return str(value) if isinstance(value, int) else f"{value:.5g}"


def _announce(say: Callable[[str], None]) -> None:
    """Say once what the command has to say when its work begins."""
    context = click.get_current_context(silent=True)
    notes = [] if context is None else context.meta.get(NOTES, [])
    while notes:
        say(notes.pop(0))


@contextmanager
def progress_bar() -> Iterator[None]:
    """Show on stderr how far the work inside has come, if somebody is watching; how long it takes, in any case."""
    if not sys.stderr.isatty():
        with observing(lambda: _announce(lambda note: click.echo(note, err=True))):
            yield
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=600.0) as bar:
        task = bar.add_task("", total=None)
        outer = ""

        def show(done: int, total: int, what: str) -> None:
            nonlocal outer
            _announce(lambda note: bar.console.print(note, soft_wrap=True, markup=False, highlight=False))
            if total:
                outer = what
                bar.update(task, completed=done, total=total, description=what)
            else:  # a message from within a step
                bar.update(task, description=f"{outer}: {what}")

        with reporting(show):
            yield

"""What people see: a console, tables, a progress bar."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lazyscope.cli.asking.effort import NOTES, spoken
from lazyscope.errors import InvalidParameter
from lazyscope.progress import reporting

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDTH_OF_A_FILE = 140
_LEAST_WIDTH = 80
_VARIABLE, _EVERY = "LAZYSCOPE_PROGRESS", 10.0  # seconds between two lines of progress, where no bar can be shown
PROGRESS = "lazyscope: at work: "
"""How a line of progress begins."""


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
    """Return `value ± stderr`, or `value` alone where there is no standard error.

    >>> with_error(0.3725, 0.0012, 4), with_error(0.5, None, 2)
    ('0.3725 ± 0.0012', '0.50')
    """
    if stderr is None or stderr != stderr:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ± {stderr:.{digits}f}"


def size(value: float | None) -> str:
    """Return a width or a ratio as a table shows it.

    >>> size(450), size(0.05), size(float("inf")), size(None), size(45 * 10**299)
    ('450', '0.05', '∞', '', '4.5e+300')
    """
    if value is None:
        return ""
    if value == float("inf"):
        return "∞"
    return str(value) if isinstance(value, int) and value < 10**12 else f"{value:.5g}"


def _announce(say: Callable[[str], None]) -> None:
    """Print the notes of the command once, when its work begins."""
    context = click.get_current_context(silent=True)
    notes = [] if context is None else context.meta.get(NOTES, [])
    while notes:
        say(notes.pop(0))


Say = Callable[[str], None]
"""Prints a line while the work goes on, above the bar where there is one."""


@contextmanager
def progress_bar() -> Iterator[Say]:
    """Show on stderr how far the work inside has come: a bar on a terminal, a line every ten seconds elsewhere.

    The environment variable LAZYSCOPE_PROGRESS has another number of seconds, 0 for no lines at all.
    """
    with _bar() if sys.stderr.isatty() else _lines(_seconds()) as say:
        yield say


def _seconds() -> float:
    """Return how many seconds lie between two lines, ∞ where none are wanted."""
    text = os.environ.get(_VARIABLE, f"{_EVERY:g}")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= threading.TIMEOUT_MAX:
        must = "be a number of seconds, 0 for no lines of progress"
        raise InvalidParameter.of("lazyscope", _VARIABLE, must, repr(text), "Unset it for one every ten seconds.")
    return seconds or threading.TIMEOUT_MAX


@contextmanager
def _lines(every: float) -> Iterator[Say]:
    """Print how far the work has come every so many seconds, also while a long step reports nothing."""

    def say(line: str) -> None:
        click.echo(line, err=True)

    began, far, ended = time.monotonic(), _Far(), threading.Event()

    def take(done: int, total: int, what: str, share: float | None) -> None:
        _announce(say)
        far.take(done, total, what, share, time.monotonic() - began)

    def tell() -> None:
        with suppress(OSError):  # stderr is closed: the work goes on without lines of progress
            while not ended.wait(every):
                say(far.line(time.monotonic() - began))

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        with reporting(take):
            yield say
    finally:
        ended.set()
        teller.join()


@dataclass
class _Far:
    """How far work has come: what was reported last, and how much was done when it began.

    `part` is the share of the present step that is done, since the second `since`; None where that is not known.
    """

    done: int = 0
    total: int = 0
    what: str = "starting"
    within: str = ""
    reused: int | None = None
    share: float | None = None
    part: float | None = None
    since: float = 0.0

    def take(self, done: int, total: int, what: str, share: float | None = None, seconds: float = 0.0) -> None:
        """Note what is reported after so many seconds; without a total it comes from within a step."""
        if not total:
            if self.part is not None and (share is None or share < self.part):  # the step goes on with something else
                self.since = seconds
            self.within, self.part = what, share
            return
        self.done, self.total, self.what, self.within, self.share = done, total, what, "", share
        self.part, self.since = None, seconds
        if self.reused is None:
            self.reused = done

    def left(self, seconds: float) -> float | None:
        """Return the seconds that are left after so many seconds of work, None where they are not known.

        Where the share of the work that is done is not known, the steps are taken to be of one length. The present
        step may be much longer than those before it: what is left of it, as fast as it goes, is the least.
        """
        share, new = self.share, self.total - (self.reused or 0)
        if share is None and new > 0:
            share = (self.done - (self.reused or 0)) / new
        both = ((seconds, share), (seconds - self.since, self.part))
        return max((spent / done * (1.0 - done) for spent, done in both if done and done < 1.0), default=None)

    def line(self, seconds: float) -> str:
        """Return the line.

        >>> far = _Far()
        >>> far.take(2, 10, "RF, N = 45"), far.take(4, 10, "NT, N = 45"), far.take(100, 0, "step 100")
        (None, None, None)
        >>> print(far.line(30.0))
        lazyscope: at work: 4 of 10, NT, N = 45, step 100; 30 seconds so far, about 90 seconds left
        >>> far.take(5, 10, "NT, N = 45", share=0.75)
        >>> print(far.line(30.0))
        lazyscope: at work: 5 of 10, NT, N = 45; 30 seconds so far, about 10 seconds left
        >>> far.take(5, 10, "NT, N = 45", 0.9, 30.0), far.take(2, 0, "step 2 of 8", 0.25, 60.0)
        (None, None)
        >>> print(far.line(60.0))
        lazyscope: at work: 5 of 10, NT, N = 45, step 2 of 8; 60 seconds so far, about 90 seconds left
        """
        count = f"{self.done} of {self.total}, " if self.total else ""
        missing = self.left(seconds)
        left = "" if missing is None else f", {spoken(missing)} left"
        so_far = spoken(seconds).removeprefix("about ")
        return f"{PROGRESS}{count}{', '.join(filter(None, (self.what, self.within)))}; {so_far} so far{left}"


@contextmanager
def _bar() -> Iterator[Say]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    far = _Far()

    class Left(ProgressColumn):
        """The time that is left, in the words of the lines of progress."""

        def render(self, task: Task) -> Text:
            missing = far.left(task.elapsed or 0.0)
            return Text("" if missing is None else f"{spoken(missing)} left")

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), Left()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def say(line: str) -> None:
            bar.console.print(line, soft_wrap=True, markup=False, highlight=False)

        def show(done: int, total: int, what: str, share: float | None) -> None:
            _announce(say)
            before = far.done
            far.take(done, total, what, share, bar.tasks[0].elapsed or 0.0)
            words = ": ".join(filter(None, (far.what, far.within)))
            first = (
                before == far.reused == far.done - 1
            )  # the first estimate is shown at once, the others ten times a second
            bar.update(task, completed=far.done, total=far.total or None, description=words, refresh=first)

        with reporting(show):
            yield say

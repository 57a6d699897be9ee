"""Progress of long work: silent in a library, a bar where the command line asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Reporter = Callable[[int, int, str, float | None], None]
"""Called with (steps done, steps in all, what is being done, the share of the work that is done, None if unknown).

Without a number of steps in all it comes from within a step, and the share is that of the step."""

_reporter: ContextVar[Reporter | None] = ContextVar("lazyscope_progress", default=None)


@contextmanager
def reporting(reporter: Reporter) -> Iterator[None]:
    """Send progress to `reporter` inside this block.

    >>> with reporting(lambda done, total, what, share: print(f"{done}/{total} {what}")):
    ...     report(1, 2, "N = 45")
    1/2 N = 45
    """
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)


def report(done: int, total: int, what: str, share: float | None = None) -> None:
    """Tell the reporter, if there is one; `share`, from 0 to 1, where the steps are known to differ in length."""
    reporter = _reporter.get()
    if reporter is not None:
        reporter(done, total, what, share)


@contextmanager
def within(step: str = "") -> Iterator[None]:
    """Inside this block work is one step of something larger: what it reports is shown in words, and not counted.

    >>> with reporting(lambda done, total, what, share: print(f"{done}/{total} {what}")), within("NT, N = 45"):
    ...     report(1, 2, "step 100")
    0/0 NT, N = 45, step 100
    """
    outer = _reporter.get()
    if outer is None:
        yield
        return

    def as_part(done: int, total: int, what: str, share: float | None) -> None:
        of_step = done / total if share is None and total else share
        outer(0, 0, f"{step}, {what}" if step else what, of_step)

    with reporting(as_part):
        yield


@contextmanager
def observing(observer: Callable[[], None]) -> Iterator[None]:
    """Inside this block `observer` is called whenever progress is reported; it may raise, to end the work.

    >>> with observing(lambda: print("still there")):
    ...     report(1, 2, "N = 45")
    still there
    """
    outer = _reporter.get()

    def both(done: int, total: int, what: str, share: float | None) -> None:
        observer()
        if outer is not None:
            outer(done, total, what, share)

    with reporting(both):
        yield

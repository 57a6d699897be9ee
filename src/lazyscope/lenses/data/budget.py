"""A time budget: how long is left, what work has been seen to take, and an end for what takes longer."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lazyscope.errors import InvalidParameter
from lazyscope.progress import observing

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def seconds_of(text: str | float, owner: str) -> float:
    """Return a length of time in seconds: a number of them, or with a unit, 90s, 5m, 1.5h.

    >>> seconds_of("5m", "lens"), seconds_of(12, "lens")
    (300.0, 12.0)
    >>> seconds_of("soon", "lens")
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The budget parameter of lens must be a length of time: 90s, 5m, 1.5h. \
Got 'soon' instead.
    """
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smh]?)\s*", str(text))
    if match is None or float(match[1]) <= 0:
        raise InvalidParameter.of(owner, "budget", "be a length of time: 90s, 5m, 1.5h", repr(text))
    return float(match[1]) * _UNITS[match[2]]


def since_start() -> float:
    """Return the seconds since this process was started, libraries and all; 0 where the system does not tell."""
    try:
        started = float(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, AttributeError, IndexError):
        return 0.0


class OutOfTime(Exception):
    """Raised inside work that has used up its budget."""


@dataclass
class Budget:
    """Seconds in all, from now on or with some `used` already, and what a unit of each kind of work was seen to take.

    `kept` are seconds for what comes after the work: a report to be written.

    >>> ticks = iter([0.0, 0.0, 2.0, 2.0])
    >>> budget = Budget(10.0, clock=lambda: next(ticks))
    >>> with budget.measuring("fit", 4.0):
    ...     pass
    >>> budget.rates, budget.left
    ({'fit': 0.5}, 8.0)
    """

    seconds: float
    kept: float = 0.0
    clock: Callable[[], float] = time.perf_counter
    rates: dict[str, float] = field(default_factory=dict)
    used: float = 0.0

    def __post_init__(self) -> None:
        self.start = self.clock() - self.used

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.seconds - self.kept - self.spent

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.start

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Inside this block, work that reports its progress is ended by `OutOfTime` when nothing is left."""

        def stop() -> None:
            if self.left < 0:
                raise OutOfTime

        with observing(stop):
            yield

    def measuring(self, kind: str, units: float) -> _Measuring:
        """Time a piece of work, to judge the next by it."""
        return _Measuring(self, kind, units)


@dataclass
class _Measuring:
    budget: Budget
    kind: str
    units: float

    def __enter__(self) -> None:
        self.begin = self.budget.clock()

    def __exit__(self, *_: object) -> None:
        self.budget.rates[self.kind] = (self.budget.clock() - self.begin) / self.units

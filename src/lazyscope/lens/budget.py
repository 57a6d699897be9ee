"""A time budget: how long is left, and whether the next piece of work still fits into it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lazyscope.errors import InvalidParameter

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
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smh]?)\s*", str(text))
    if found is None or float(found[1]) <= 0:
        raise InvalidParameter.of(owner, "budget", "be a length of time: 90s, 5m, 1.5h", repr(text))
    return float(found[1]) * _UNITS[found[2]]


@dataclass
class Budget:
    """Seconds in all, and what a unit of each kind of work has been seen to take.

    >>> ticks = iter([0.0, 0.0, 2.0, 2.0, 2.0])
    >>> budget = Budget(10.0, clock=lambda: next(ticks))
    >>> with budget.measuring("fit", 4.0):
    ...     pass
    >>> budget.fits("fit", 15.0), budget.fits("fit", 20.0)
    (True, False)
    """

    seconds: float
    clock: Callable[[], float] = time.perf_counter
    rates: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start = self.clock()

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.seconds - (self.clock() - self.start)

    def fits(self, kind: str, units: float) -> bool:
        """Whether so many units of this kind of work can be expected to end in time; unknown kinds may try."""
        return self.left > self.rates.get(kind, 0.0) * units

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

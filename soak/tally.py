"""What an attack counts, and how long it may go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Tries, failures and what was found; `goals` are the numbers that make the attack complete.

    >>> tally = Tally("calls", goals={"tried": 2, "accepted": 1})
    >>> tally.check(True, "limit(…)")
    >>> tally.check(False, "exact(…): risk 1.2 > 1")
    >>> tally.tried, tally.failed, tally.findings
    (2, 1, ['exact(…): risk 1.2 > 1'])
    >>> tally.short
    {'accepted': 0}
    """

    name: str
    goals: dict[str, int] = field(default_factory=dict)
    tried: int = 0
    failed: int = 0
    findings: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def check(self, holds: bool, what: str) -> None:
        """Count a try; keep what failed, with what is needed to do it again."""
        self.tried += 1
        if not holds:
            self.failed += 1
            if len(self.findings) < 50:
                self.findings.append(what)

    def count(self, what: str) -> None:
        """Count something worth a column of its own: calls accepted, calls refused, workers killed."""
        self.counts[what] = self.counts.get(what, 0) + 1

    @property
    def short(self) -> dict[str, int]:
        """The goals that were not reached, each with how far it came."""
        reached = {what: self.tried if what == "tried" else self.counts.get(what, 0) for what in self.goals}
        return {what: number for what, number in reached.items() if number < self.goals[what]}

    @contextmanager
    def trying(self, what: str) -> Iterator[None]:
        """Count a try that fails by raising anything at all."""
        try:
            yield
        except Exception as error:
            self.check(False, f"{what}: {type(error).__name__}: {error}")
        else:
            self.check(True, what)


@dataclass(frozen=True)
class Deadline:
    """The moment at which an attack stops trying, as a number of seconds from now."""

    seconds: float
    start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds left, 0 when it has passed."""
        return max(0.0, self.start + self.seconds - time.monotonic())

    def __bool__(self) -> bool:
        """Return whether there is time left."""
        return self.left > 0

"""How a figure is measured: interleaved medians of wall time, and peak memory in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Piece = Callable[[], object]


@dataclass(frozen=True)
class Bound:
    """What a ratio must satisfy: at most `value` times the peer, or at least `value` times cheaper than it."""

    value: float
    at_least: bool = False

    def ratio(self, measured: float, peer: float) -> float:
        """measured/peer for a cost, peer/measured for a saving."""
        return peer / measured if self.at_least else measured / peer

    def holds(self, ratio: float) -> bool:
        """Whether the ratio is on the right side; NaN is not."""
        return ratio >= self.value if self.at_least else ratio <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:g}"


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was measured, against which peer, and the bound on their ratio."""

    what: str
    measured: float
    peer: float
    against: str
    bound: Bound
    unit: str = "s"
    note: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """The figure that the bound is about."""
        return self.bound.ratio(self.measured, self.peer)

    @property
    def holds(self) -> bool:
        """Whether the bound holds."""
        return self.bound.holds(self.ratio)


def interleaved(
    pieces: Mapping[str, Piece],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
    warm_up: bool = True,
) -> dict[str, float]:
    """Return the median seconds of each piece, run in turn `repeats` times: A B A B …, never A A B B.

    A neighbour on the machine that slows one round slows every piece of it, and the median forgets the round.
    One untimed round first loads modules and touches memory.
    """
    taken: dict[str, list[float]] = {name: [] for name in pieces}
    for turn in range(-1 if warm_up else 0, repeats):
        for name, run in pieces.items():
            start = clock()
            run()
            stop = clock()
            if turn >= 0:
                taken[name].append(stop - start)
    return {name: median(times) for name, times in taken.items()}


@dataclass(frozen=True)
class MachineUse:
    """Seconds of processor time so far: the whole machine's, what was busy of it, and our share with children."""

    total: float
    busy: float
    own: float

    @classmethod
    def now(cls) -> MachineUse:
        """Read the kernel's counters; nothing but our own share where there is no /proc."""
        own = sum(os.times()[:4])
        try:
            with open("/proc/stat", encoding="ascii") as lines:  # noqa: PTH123 (a kernel interface, not a path)
                ticks = [int(field) for field in lines.readline().split()[1:9]]
        except OSError:
            return cls(own, own, own)
        total, idle = sum(ticks), ticks[3] + ticks[4]
        return cls(total / os.sysconf("SC_CLK_TCK"), (total - idle) / os.sysconf("SC_CLK_TCK"), own)

    def others_since(self, before: MachineUse) -> float:
        """Share of the machine that other processes used between `before` and this moment."""
        total = self.total - before.total
        others = (self.busy - before.busy) - (self.own - before.own)
        return max(0.0, others / total) if total > 0 else 0.0


# VmHWM belongs to this process image; ru_maxrss does not: Linux carries the parent's peak over fork and exec,
# so that a child of a 3 GB benchmark would report 3 GB. It is the fallback where there is no /proc.
_PROBE = """
import json, time
def _status(key):
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
    except OSError:
        import resource, sys
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
report = {}
"""
_BEFORE = "_baseline, _start = _status('VmRSS:'), time.perf_counter()"
_AFTER = """
_stop = time.perf_counter()
print(json.dumps({"peak": _status("VmHWM:"), "baseline": _baseline, "seconds": _stop - _start, "report": report}))
"""


@dataclass(frozen=True)
class Footprint:
    """Bytes resident at most and before the code ran, its seconds, and what it put into `report`."""

    peak: int
    baseline: int
    seconds: float
    report: dict[str, Any]

    @property
    def added(self) -> int:
        """Peak minus baseline: what the code itself needed."""
        return self.peak - self.baseline


def footprint(setup: str, body: str) -> Footprint:
    """Run `setup` (imports, warm-up) and then `body` in a fresh interpreter; measure the body."""
    return Footprint(**json.loads(run_python("\n".join([_PROBE, setup, _BEFORE, body, _AFTER]))))


def seconds_inside(code: str) -> float:
    """Seconds that `code` takes in a fresh interpreter, the interpreter's own start left out."""
    timed = f"import time\n_start = time.perf_counter()\n{code}\nprint(time.perf_counter() - _start)"
    return float(run_python(timed))


def run_python(code: str) -> str:
    """Return what a fresh interpreter prints last for `code`."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip().splitlines()[-1]

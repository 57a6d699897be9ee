"""How long a command will take, roughly: told where it is long, and refused where nobody can mean it.

The rates are those of one core of a usual machine, and the counts of operations leave small terms out: what is said is
right within a factor of a few. A command keeps nothing until its end, so that what takes more than a day belongs into
a sweep, which does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from lazyscope.errors import TooLarge

if TYPE_CHECKING:
    from lazyscope.problems import SizedProblem

NOTES = "lazyscope.cli.effort"  # where a command keeps what it says when its work begins
_LONG = 20.0  # seconds: from here on the time is told
_MOST = 86_400.0  # seconds: from here on the command is refused
_FLOPS = 4e9  # operations a second of a matrix product
_SINGLE = 2e10  # and in float32, of particles and of fits
_STREAM = 1e11  # and of the engine of SGD on two cores, at sizes where it takes long
_CALL = 1e-4  # seconds that Python and NumPy need for a step of anything
_DESCENT = 2000  # steps at most of the descent of `exact` for a trained network


@dataclass(frozen=True)
class Effort:
    """Seconds of work, and what is done in them."""

    seconds: float
    what: str

    def check(self, owner: str, fewer: str) -> None:
        """Refuse what would take more than a day; `fewer` names the options that make it less.

        How long what is long will take is said by `progress_bar`, when the work begins: all arguments are right then.
        """
        if not self.seconds <= _MOST:
            raise TooLarge(
                f"The work of {owner} must be done within a day, for nothing is kept before its end. Got {self.what}, "
                f"{spoken(self.seconds)}, instead. Use fewer {fewer}, `lazyscope sweep`, or Python, which has no bound."
            )
        if self.seconds >= _LONG:
            notes = click.get_current_context().meta.setdefault(NOTES, [])
            notes.append(f"lazyscope: note: {self.what}: {spoken(self.seconds)}.")


def spoken(seconds: float) -> str:
    """Return a time in words.

    >>> spoken(31.0), spoken(600.0), spoken(9000.0), spoken(3e5), spoken(1e18)
    ('about 31 seconds', 'about 10 minutes', 'about 2.5 hours', 'about 3.5 days', 'more than a thousand years')
    """
    for size, unit in ((60.0, "seconds"), (3600.0, "minutes"), (86_400.0, "hours"), (86_400.0 * 365, "days")):
        if seconds < 2 * size:
            per = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0, "days": 86_400.0}[unit]
            return f"about {_rounded(seconds / per)} {unit}"
    years = seconds / (86_400.0 * 365)
    return f"about {_rounded(years)} years" if years < 1000 else "more than a thousand years"


def _rounded(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _counted(count: float, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def _positive(values: Iterable[float]) -> list[float]:
    """Return what can be sizes: others are refused later, by whom they concern."""
    return [value for value in values if 0 < value < float("inf")]


def particles(n: float, d: float, widths: Sequence[float], steps: float, draws: float) -> Effort:
    """Descents of particles: two products of n × d and d × N a step."""
    sizes = _positive(widths)
    each = [_CALL + 4.0 * n * d * N / _SINGLE for N in sizes]
    what = (
        f"{_counted(len(sizes) * draws, 'descent')} of {steps:,} steps with up to {max(sizes, default=0):g} particles"
    )
    return Effort(draws * steps * sum(each), what)


def exact(problem: SizedProblem, regimes: dict[str, Any], widths: Sequence[float], draws: int) -> Effort:
    """Population risks: fits by closed forms, and descents of trained networks with another σ than u²."""
    d, sizes = float(problem.d), _positive(widths)
    seconds, parts = 0.0, []
    for name, regime in regimes.items():
        if name == "nn" and regime.alpha is None and regime.activation.degree != 2:
            each = [_DESCENT * (2e-3 + 3e-4 * N + 6.0 * N**2 * d / _FLOPS) for N in sizes]
            parts.append(f"{_counted(len(sizes) * draws, 'descent')} of up to {_DESCENT:,} steps")
        elif name in ("rf", "nt", "nn"):
            again = 50.0 if name == "nt" else 1.0
            each = [_CALL + (2.0 * again * N**2 * d + (N**3 if name == "rf" else 0.0)) / _FLOPS for N in sizes]
            parts.append(f"{_counted(len(sizes) * draws, 'fit')} of {name}")
        else:
            continue
        seconds += draws * sum(each)
    return Effort(seconds, " and ".join(parts))


def simulate(d: float, names: Iterable[str], sizes: Sequence[float], n: float, draws: int, lanes: int = 1) -> Effort:
    """Networks on n samples: normal equations for rf, for the others a pass of SGD with `lanes` step sizes at once."""
    widths = _positive(sizes)
    seconds, parts = 0.0, []
    for name in names:
        if name == "rf":
            each = [_CALL + n * (2.0 * N * d + N**2) / _SINGLE for N in widths]
            parts.append(f"{_counted(len(widths) * draws, 'fit')} of rf to {n:,} samples")
        else:
            each = [n * (1e-6 + 6.0 * N * d * lanes / _STREAM) for N in widths]
            parts.append(f"{_counted(len(widths) * draws, 'training')} of {name} on {n:,} samples")
        seconds += draws * sum(each)
    return Effort(seconds, " and ".join(parts))


def steps(count: float, flops: float, what: str) -> Effort:
    """So many steps of so many operations each."""
    return Effort(count * (_CALL + flops / _FLOPS), what)

"""A rough estimate of how long a command will take: announced where it is long, refused beyond a day.

The rates are those of one core of a usual machine, and the counts of operations leave small terms out: what is said is
right within a factor of a few. A command keeps nothing until its end: work of more than a day belongs into a sweep,
which keeps every result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from lazyscope.errors import LazyscopeError, TooLarge
from lazyscope.evidence.run import Run
from lazyscope.protocols import ParticleDescent
from lazyscope.regimes import GiantStep

NOTES = "lazyscope.cli.effort"  # the key under which a command keeps the notes that it prints when its work begins
_LONG = 20.0  # seconds: from here on the expected time is announced
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

        Where it takes long, `progress_bar` says how long when the work begins: all arguments have been checked by then.
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


def particles(n: float, d: float, widths: Sequence[float], steps: float, draws: float) -> Effort:
    """Descents of particles: two products of n × d and d × N a step."""
    sizes = [N for N in widths if 0 < N < float("inf")]  # the verb itself refuses the others
    seconds = [_CALL + 4.0 * n * d * N / _SINGLE for N in sizes]
    what = (
        f"{_counted(len(sizes) * draws, 'descent')} of {steps:,} steps with up to {max(sizes, default=0):g} particles"
    )
    return Effort(draws * steps * sum(seconds), what)


def of(runs: Iterable[tuple[str, Run]], draws: int) -> Effort:
    """Return the work of so many draws of runs, each with the word of its regime; limits take no time."""
    parts = [part for word, run in runs if (part := _of_run(word, run, draws)) is not None]
    return Effort(sum(part.seconds for part in parts), " and ".join(part.what for part in parts))


def _of_run(word: str, run: Run, draws: int) -> Effort | None:
    claim, widths = run.claim, run.sizes.get("width", ())
    if claim.fidelity == "limit" or not widths:
        return None
    try:
        run = run.settled()
    except LazyscopeError:
        return None  # it will be refused when it is computed
    d, n, fits = float(run.d), int(run.sizes.get("samples", (0,))[0]), _counted(len(widths) * draws, "fit")
    protocol: Any = run.protocol or (claim.protocol and claim.protocol.paper(run.problem, run.regime))
    if isinstance(protocol, ParticleDescent):
        return particles(n, d, widths, protocol.steps, draws)
    if isinstance(run.regime, GiantStep) and run.regime.samples < float("inf"):
        taken = run.regime.samples
        seconds = [_CALL + (4.0 * taken * N * d + n * (2.0 * N * d + N**2)) / _FLOPS + 1e-8 * taken * d for N in widths]
        what = f"{_counted(len(widths) * draws, 'giant step')} on {taken:,.0f} samples"
    elif claim.fidelity == "exact":
        seconds, descends = _exact(word, run, d, widths)
        descents = f"{_counted(len(widths) * draws, 'descent')} of up to {_DESCENT:,} steps"
        what = descents if descends else f"{fits} of {word}"
    elif protocol is None:
        seconds = [_CALL + n * (2.0 * N * d + N**2) / _SINGLE for N in widths]
        what = f"{fits} of {word} to {n:,} samples"
    else:
        n, lanes = getattr(protocol, "steps", 0) * getattr(protocol, "batch", 1), getattr(protocol, "step_sizes", (0,))
        seconds = [n * (1e-6 + 6.0 * N * d * len(lanes) / _STREAM) for N in widths]
        what = f"{_counted(len(widths) * draws, 'training')} of {word} on {n:,} samples"
    return Effort(draws * sum(seconds), what)


def _exact(word: str, run: Run, d: float, widths: Sequence[float]) -> tuple[list[float], bool]:
    """Return the seconds of each width, and whether it is a descent: a trained network with σ other than u²."""
    regime: Any = run.regime
    if word == "nn" and regime.alpha is None and regime.activation.degree != 2:
        return [_DESCENT * (2e-3 + 3e-4 * N + 6.0 * N**2 * d / _FLOPS) for N in widths], True
    again = 50.0 if word == "nt" else 1.0
    return [_CALL + (2.0 * again * N**2 * d + (N**3 if word == "rf" else 0.0)) / _FLOPS for N in widths], False


def steps(count: float, flops: float, what: str) -> Effort:
    """Return the work of `count` steps of `flops` operations each."""
    return Effort(count * (_CALL + flops / _FLOPS), what)

"""Figures that are an experiment of their own: some work for a sweep, labelled numbers made of its rows, a picture.

The figures of *Limitations of Lazy Training* share one plan (`design`); all others say here what they need: `work` for
the sweep, `data` from its rows, `plot`, and the `verdict` that the terminal shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from lazyscope.errors import LazyscopeError
from lazyscope.evidence.work import Row
from lazyscope.sweep import Plan, Task, Work, run
from lazyscope.sweep.store import Store

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


class Size(Protocol):
    """How large an experiment is."""

    @property
    def cost(self) -> str:
        """What it takes, in words for the help."""


@runtime_checkable
class Experiment(Protocol):
    """What a file of this folder that draws such a figure holds."""

    PRESETS: Mapping[str, Any]
    work: Callable[[Any], Sequence[Work]]
    data: Callable[[Any, Sequence[Row]], Mapping[str, xr.Dataset]]
    plot: Callable[[Mapping[str, xr.Dataset]], Figure]
    verdict: Callable[[Mapping[str, xr.Dataset]], Sequence[str]]


@dataclass(frozen=True, eq=False)
class Findings:
    """What an experiment found, a Dataset a panel; the sweep behind it, None where it is all theory; its seconds."""

    panels: Mapping[str, xr.Dataset]
    plan: Plan | None = None
    seconds: float = 0.0


def plan_of(stem: str, some: Sequence[Work]) -> tuple[Plan | None, list[Task]]:
    """Return the sweep of some work, and its tasks in the order of the work; equal work is one task.

    The sweep's name ends in its fingerprint: with another size it is another sweep, which finds in the same store what
    both have in common.
    """
    tasks = [task for work in some for task in Plan.of(stem, [work]).tasks]
    if not tasks:
        return None, []
    whole = Plan(stem, tuple(tasks))
    return Plan(f"{stem} {whole.digest[:8]}", whole.tasks), tasks


def compute(stem: str, experiment: Experiment, size: Any, store: Path, workers: int | None = None) -> Findings:
    """Compute what the store does not have yet, and return what the figure shows."""
    plan, tasks = plan_of(stem, experiment.work(size))
    if plan is None:
        return Findings(experiment.data(size, []))
    summary = run(plan, store, workers=workers)
    if not summary.complete:
        task, message = summary.failures[0]
        raise LazyscopeError(f"{len(summary.failures)} of {summary.tasks} tasks failed. The first, {task}: {message}")
    with Store.reading(store) as opened:
        rows = opened.rows(task.key for task in plan.tasks)
        seconds = next(one.seconds for one in opened.statuses() if one.plan == plan.name)
    return Findings(experiment.data(size, [rows[task.key] for task in tasks]), plan, seconds)

"""From the plan of a figure to its numbers: a sweep, which a crash cannot spoil, and the theorems for the lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lazyscope.errors import LazyscopeError
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.collect import panel_data
from lazyscope.experiments.frame.design import Panel
from lazyscope.experiments.frame.references import Reference
from lazyscope.sweep import Plan, Task, run
from lazyscope.sweep.store import Store

if TYPE_CHECKING:
    import xarray as xr

Place = tuple[str, str, Literal["exact", "simulate"], int]
"""Panel, series, fidelity and width: where a cross or a dot belongs."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The sweep of a figure, and which of its tasks make each cross and each dot."""

    panels: tuple[Panel, ...]
    plan: Plan
    tasks: Mapping[Place, tuple[Task, ...]]

    @classmethod
    def of(cls, name: str, panels: Sequence[Panel]) -> Layout:
        """Return the layout of these panels.

        The sweep's name ends in its fingerprint: with other widths it is another sweep, which finds in the same store
        what both have in common.
        """
        tasks: dict[Place, tuple[Task, ...]] = {}
        fidelities: tuple[Literal["exact", "simulate"], ...] = ("exact", "simulate")
        for panel in panels:
            places = ((one, fidelity, N) for one in panel.series for fidelity in fidelities for N in panel.widths)
            for one, fidelity, N in places:
                draws = panel.draws(one, fidelity, N)
                if draws:
                    tasks[panel.name, one.label, fidelity, N] = Plan.of(name, draws).tasks
        whole = Plan(name, tuple(task for some in tasks.values() for task in some))
        return cls(tuple(panels), Plan(f"{name} {whole.digest[:8]}", whole.tasks), tasks)


@dataclass(frozen=True, eq=False)
class Numbers:
    """What a figure shows, a Dataset a panel.

    `borrowed` has the key of each task that was not computed here, and the reference runs that it comes from; `seconds`
    is the work behind the rest.
    """

    layout: Layout
    panels: Mapping[str, xr.Dataset]
    borrowed: Mapping[str, Reference]
    seconds: float


def compute(
    layout: Layout,
    store: Path,
    *,
    workers: int | None = None,
    references: Sequence[Reference] = (),
    tell: Callable[[str], None] = lambda line: None,
) -> Numbers:
    """Compute what neither the store nor the references have, and return all the numbers of the figure."""
    plan = layout.plan
    borrowed: dict[str, Reference] = {}
    for reference in references:
        some = reference.lend(plan, store)
        borrowed |= dict.fromkeys(some, reference)
        if some:
            count = f"{len(some)} of {len(plan.tasks)} tasks come"
            tell(f"{count} from the reference runs of {reference.when}; --fresh computes them anew")
    summary = run(plan, store, workers=workers)
    if not summary.complete:
        task, message = summary.failures[0]
        raise LazyscopeError(f"{len(summary.failures)} of {summary.tasks} tasks failed. The first, {task}: {message}")
    with Store.reading(store) as opened:
        rows = opened.rows(task.key for task in plan.tasks)
        seconds = next(one.seconds for one in opened.statuses() if one.plan == plan.name)
    panels = {panel.name: panel_data(panel, _rows_of(layout, panel, rows)) for panel in layout.panels}
    return Numbers(layout, panels, borrowed, seconds)


def _rows_of(
    layout: Layout, panel: Panel, rows: Mapping[str, Row]
) -> Callable[[str, Literal["exact", "simulate"], int], list[Row]]:
    return lambda label, fidelity, N: [rows[task.key] for task in layout.tasks[panel.name, label, fidelity, N]]

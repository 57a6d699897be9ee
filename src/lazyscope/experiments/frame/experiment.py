"""An experiment: a question with its work for a sweep, the numbers made of its rows, a picture and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from lazyscope import files
from lazyscope.errors import LazyscopeError
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.references import Reference
from lazyscope.experiments.frame.types import Figure, Panels
from lazyscope.experiments.frame.verdict import Fault
from lazyscope.progress import observing, reporting
from lazyscope.sweep import Plan, Task, Work, run
from lazyscope.sweep.store import Store


@dataclass(frozen=True)
class Preset:
    """How large an experiment is; `cost` says in words what it takes, for the help."""

    cost: str


P = TypeVar("P", bound=Preset)


def points(panels: Panels) -> list[dict[str, Any]]:
    """Return every number of the panels, one row for each point: what a CSV file holds."""
    return [{"panel": name, **row} for name, data in panels.items() for row in files.points(data)]


@dataclass(frozen=True, eq=False)
class Early:
    """A line that can be printed before the end: it needs the rows of the work at these `places` in the order alone."""

    places: Sequence[int]
    line: Callable[[Sequence[Row]], str]


@dataclass(frozen=True, eq=False)
class Experiment(Generic[P]):
    """A question, `title`, and how it is answered.

    `work` gives the tasks of a sweep, `data` makes labelled numbers of their rows, panel by panel, `plot` draws them
    and `verdict` says in lines what they show, the last of which is the answer. `place` is where it stands in lists.

    What not every experiment has: `report`, the public function that measures the same for other parameters;
    `at_widths`, which moves its dots to widths that a user asks for; `borrows`, whether it takes what the shipped
    reference runs have; `tasks`, what more there is to say of each piece of work; `rows`, its own form of a CSV file;
    `locate`, which finds its data, in a folder if the user names one, before anything is computed; `early`, the lines
    that can be told as soon as their own work is done, the shortest first.

    `faults` are mistakes that the verdict must see (`frame.verdict`): the test of the registry plants each of them. The
    last line of a verdict is an `Answer`, which knows whether it says yes.
    """

    name: str
    title: str
    presets: Mapping[str, P]
    work: Callable[[P], Sequence[Work]]
    data: Callable[[P, Sequence[Row]], Panels]
    plot: Callable[[Panels], Figure]
    verdict: Callable[[Panels], Sequence[str]]
    place: int = 1000
    report: Callable[..., Any] | None = None
    at_widths: Callable[[P, Any], P] | None = None
    borrows: bool = False
    tasks: Callable[[P], Sequence[Mapping[str, Any]]] | None = None
    rows: Callable[[Panels], list[dict[str, Any]]] = points
    locate: Callable[[Path | None], None] | None = None
    faults: tuple[Fault, ...] = ()
    early: Callable[[P], Sequence[Early]] | None = None


AnyExperiment = Experiment[Any]


@dataclass(frozen=True, eq=False)
class Findings:
    """What an experiment found: a Dataset for each panel, and the sweep behind them, None where all is theory.

    `tasks` are those of the sweep in the order of the work, each with what there is to say of it; `borrowed` has the
    key of each task that was not computed here, and the reference runs that it comes from; `seconds` is the work
    behind the rest.
    """

    panels: Panels
    plan: Plan | None = None
    tasks: Sequence[Mapping[str, Any]] = ()
    seconds: float = 0.0
    borrowed: Mapping[str, Reference] = field(default_factory=dict)


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


class _Lines:
    """The lines that can be printed before the end, each as soon as the rows that it needs are in the store."""

    def __init__(self, early: Sequence[Early], tasks: Sequence[Task], store: Path, tell: Callable[[str], None]) -> None:
        self.store, self.tell = store, tell
        self.left = [([tasks[place] for place in item.places], item.line) for item in early]
        if store.is_file():  # what an earlier run has found stands in the table at the end
            with Store.reading(store) as opened:
                finished = opened.finished()
            self.left = [pair for pair in self.left if not all(task.key in finished for task in pair[0])]

    def order(self) -> list[str]:
        """Return the keys of tasks in the order of their lines: the first line, then those with the longest work."""
        longest = sorted(self.left[1:], key=lambda pair: -max(task.work.size for task in pair[0]))
        return list(dict.fromkeys(task.key for wanted, _ in (*self.left[:1], *longest) for task in wanted))

    def tell_finished(self) -> None:
        """Tell the lines whose rows have arrived since the last call.

        They are a courtesy: a store that cannot be read now ends no run, and the run itself says what is wrong.
        """
        if not self.left:
            return
        silent = reporting(lambda done, total, what, share: None)  # a line's own work is none of the sweep's
        with silent, suppress(LazyscopeError), Store.reading(self.store) as opened:
            finished = opened.finished()
            ready = [pair for pair in self.left if all(task.key in finished for task in pair[0])]
            self.left = [pair for pair in self.left if pair not in ready]
            for wanted, line in ready:
                rows = opened.rows(task.key for task in wanted)
                self.tell(line([rows[task.key] for task in wanted]))


def compute(
    stem: str,
    experiment: Experiment[P],
    preset: P,
    store: Path,
    workers: int | None = None,
    *,
    references: Sequence[Reference] = (),
    tell: Callable[[str], None] = lambda line: None,
) -> Findings:
    """Compute what neither the store nor the references have, and return what the experiment found."""
    plan, tasks = plan_of(stem, experiment.work(preset))
    if plan is None:
        return Findings(experiment.data(preset, []))
    borrowed: dict[str, Reference] = {}
    for reference in references:
        lent = reference.lend(plan, store)
        borrowed |= dict.fromkeys(lent, reference)
        if lent:
            count = f"{len(lent)} of {len(plan.tasks)} tasks come"
            tell(f"{count} from the reference runs of {reference.when}; --fresh computes them anew")
    lines = _Lines(experiment.early(preset) if experiment.early else (), tasks, store, tell)
    with observing(lines.tell_finished):
        summary = run(plan, store, workers=workers, sooner=lines.order())
    if not summary.complete:
        failed, message = summary.failures[0]
        raise LazyscopeError(f"{len(summary.failures)} of {summary.tasks} tasks failed. The first, {failed}: {message}")
    with Store.reading(store) as opened:
        rows = opened.rows(task.key for task in plan.tasks)
        seconds = next(status.seconds for status in opened.statuses() if status.plan == plan.name)
    panels = experiment.data(preset, [rows[task.key] for task in tasks])
    words = experiment.tasks(preset) if experiment.tasks else [{"label": task.work.label} for task in tasks]
    told = [{**more, "key": task.key} for more, task in zip(words, tasks, strict=True)]
    return Findings(panels, plan, told, seconds, borrowed)

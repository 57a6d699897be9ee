"""The driver: sends the unfinished tasks of a plan to workers and writes down what comes back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

from lazyscope.errors import LazyscopeError
from lazyscope.evidence.work import Work
from lazyscope.progress import report
from lazyscope.sweep import lock, pool
from lazyscope.sweep.plan import Plan, Task
from lazyscope.sweep.share import Share
from lazyscope.sweep.store import Status, Store

_SETBACKS = 3  # times that workers may die, one after another, before anything is finished in between


@dataclass(frozen=True)
class Summary:
    """What a run did: tasks that had a result already, tasks computed, and (task, message) of those that failed."""

    plan: str
    tasks: int
    reused: int
    computed: int
    failures: tuple[tuple[str, str], ...]

    @property
    def complete(self) -> bool:
        """Whether every task has its result."""
        return self.reused + self.computed == self.tasks


def run(
    plan: Plan,
    store: str | os.PathLike[str],
    *,
    workers: int | None = None,
    backend: str = "loky",
    address: str | None = None,
    sooner: Sequence[str] = (),
) -> Summary:
    """Compute what the store does not have yet, and return what was done.

    Parameters
    ----------
    plan
        The tasks. A name stands for one plan in a store: a changed plan needs another name.
    store
        A file, made if it is missing. Every result is in it for good before the next is waited for.
    workers
        Processes to use: all cores by default. With 1, this process does the work. The numbers are the same.
    backend, address
        "loky" for processes here, "dask" for the cluster whose scheduler is at `address`.
    sooner
        Keys of tasks to begin with, in this order; the others follow, the longest first.

    Examples
    --------
    >>> import tempfile, lazyscope as ls
    >>> from lazyscope import sweep
    >>> plan = sweep.Plan.grid("demo", [ls.QuadraticTarget([2.0, 1.0])], [ls.Trained()], widths=[1, 2], draws=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, again = (sweep.run(plan, f"{folder}/demo.sqlite", workers=1) for _ in range(2))
    >>> first.computed, again.computed, again.reused
    (2, 0, 2)
    """
    pool.check(workers, backend, address)
    with Store.writing(store) as opened:
        opened.check_unchanged(plan)
        finished = opened.finished()
        left = {task.key: task for task in _ordered(plan.tasks, sooner) if task.key not in finished}
        reused = len(plan.tasks) - len(left)
        # the plan is written down when there is somebody to compute it: a cluster that is not there leaves no trace
        with pool.opened(workers, backend, address) if left else nullcontext(pool.nobody) as outcomes:
            opened.enrol(plan)
            failures = _work(left, outcomes, opened, len(plan.tasks))
    return Summary(plan.name, len(plan.tasks), reused, len(plan.tasks) - reused - len(failures), failures)


def _ordered(tasks: Iterable[Task], sooner: Sequence[str]) -> list[Task]:
    """Order tasks so that none of the long ones is left alone at the end: simulations first, then wide networks."""
    rank = {key: place for place, key in enumerate(sooner)}
    last = len(rank)
    return sorted(tasks, key=lambda task: (rank.get(task.key, last), task.work.fidelity != "simulate", -task.work.size))


def _work(left: dict[str, Task], outcomes: pool.Pool, store: Store, total: int) -> tuple[tuple[str, str], ...]:
    """Do the tasks that are left, again if their workers die, and return what the failed ones said."""
    failures: list[tuple[str, str]] = []
    setbacks = 0
    share = Share(task.work for task in left.values())
    report(total - len(left), total, "starting")
    while left:
        try:
            with closing(outcomes(list(left.values()))) as arriving:  # closed at once, whatever ends the loop
                for outcome in arriving:
                    store.add(outcome)
                    task = left.pop(outcome.key)
                    setbacks = 0
                    if outcome.failure is not None:
                        failures.append((_told(task.work), outcome.failure))
                    done = share.after(task.work, outcome.seconds)
                    report(total - len(left), total, task.work.label, done)
        except pool.WorkersLost as loss:
            setbacks += 1
            if setbacks >= _SETBACKS:
                raise LazyscopeError(
                    f"Workers died {setbacks} times without finishing a task ({loss}). {total - len(left)} of {total} "
                    "tasks are done and kept. If memory was short, run again with fewer workers."
                ) from loss
    return tuple(failures)


def _told(work: Work) -> str:
    """Name a piece of work in a message; `number` tells the draws of one kind apart, where they have one."""
    number = getattr(work, "number", None)
    return work.label if number is None else f"{work.label}, draw {number}"


def status(store: str | os.PathLike[str]) -> tuple[list[Status], str | None]:
    """Return how far each plan of a store has come, and who is filling it, if anybody is."""
    with Store.reading(store) as opened:
        return opened.statuses(), lock.holder(Path(store))

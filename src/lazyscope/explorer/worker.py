"""A worker: a process that computes dots, one job after another, a line of JSON for each thing it has to say.

It reads jobs from its standard input and ends when that ends, even in the middle of a job; on Linux the kernel ends it
with its server, whatever it is doing: a worker never outlives its server. A job that is cancelled ends at its next
report of progress; the server kills a worker that has none for too long.
`python -m lazyscope.explorer.worker SERVER` starts one, SERVER being the process that does so.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

Say = Callable[[str, dict[str, Any]], None]
_EVERY = 0.1  # seconds between two reports of progress
_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def compute(
    view: str, state: dict[str, Any], fidelities: list[str], say: Say, go_on: Callable[[], None] = lambda: None
) -> None:
    """Compute the dots of a job, and say them as they come.

    A call that the library refuses is a note, and the others go on. `go_on` is called whenever progress is reported;
    it raises to end the work.

    >>> said = []
    >>> small = {"d": 20, "rho_max": 1.0, "draws": 2}
    >>> compute("quadratic", small, ["exact"], lambda event, data: said.append(event))
    >>> said.count("dots"), said[-1]
    (15, 'done')
    """
    from lazyscope.errors import LazyscopeError
    from lazyscope.explorer.views import VIEWS
    from lazyscope.progress import reporting

    began = time.perf_counter()
    chosen = VIEWS[view]
    here = chosen.state(**state)
    plans = [(fidelity, chosen.plan(here, fidelity)) for fidelity in chosen.fidelities if fidelity in fidelities]
    tasks = [(fidelity, task) for fidelity, plan in plans for task in plan.tasks]
    for _, plan in plans:
        for about, message in plan.notes:
            say("note", {"about": about, "message": message})
    last = 0.0

    def progress(done: int, total: int, what: str, share: float | None) -> None:
        nonlocal last
        go_on()
        now = time.perf_counter()
        if now - last > _EVERY:
            last = now
            say("progress", {"done": i, "total": len(tasks), "what": f"{fidelity} {task.name}: {what}"})

    for i, (fidelity, task) in enumerate(tasks):
        go_on()
        say("progress", {"done": i, "total": len(tasks), "what": f"{fidelity} {task.name}"})
        try:
            with reporting(progress):
                result = task.call.run()
        except LazyscopeError as error:
            say("note", {"about": f"{fidelity} {task.name}", "message": str(error)})
            continue
        for dots in _dots(task, fidelity, result):
            say("dots", dots)
    say("progress", {"done": len(tasks), "total": len(tasks), "what": "done"})
    say("done", {"seconds": time.perf_counter() - began})


def _dots(task: Any, fidelity: str, result: Any) -> Iterator[dict[str, Any]]:
    import numpy as np

    from lazyscope.explorer.views.picture import listed

    claim = task.call.claim()
    for role, name, panel, variable in task.shown:
        values, error = task.call.values(result, variable)
        y = np.ravel(values)
        x = np.ravel(np.broadcast_to(np.asarray(task.x(result), dtype=float), y.shape))
        here = np.isfinite(y)  # elsewhere there is nothing to show
        if not np.any(here):
            continue
        x, y = x[here], y[here]
        yield {
            "name": name,
            "role": role,
            "panel": panel,
            "fidelity": fidelity,
            "x": listed(x),
            "y": listed(y),
            "stderr": [None] * y.size if error is None else listed(np.ravel(error)[here]),
            "claim": claim,
        }


class Cancelled(BaseException):
    """The job is not wanted any more; no `except Exception` on the way shall keep it."""


class Orders:
    """Jobs that came by standard input, one at a time, and the word that the latest is not wanted any more."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self._jobs: queue.Queue[dict[str, Any]] = queue.Queue()
        self._cancelled: str | None = None

    def listen(self, source: IO[str]) -> None:
        """Take orders until there are no more: then the server is gone."""
        for line in source:
            order = json.loads(line)
            if "cancel" in order:
                self._cancel(order["cancel"])
            else:
                self._jobs.put(order)
        os._exit(0)

    def _cancel(self, job: str) -> None:
        """Have a job end at its next report, or at once where it has not begun: a worker imports for a second."""
        self._cancelled = job
        try:
            self._jobs.get_nowait()
        except queue.Empty:  # it is being computed, or has just ended, of which the server hears
            return
        self.say("cancelled", {})

    def next(self) -> dict[str, Any]:
        """Wait for a job."""
        return self._jobs.get()

    def go_on(self, job: str) -> None:
        """Raise where a job is not wanted any more."""
        if self._cancelled == job:
            raise Cancelled


def main() -> None:
    """Serve jobs until standard input ends, or the server whose number is the only argument."""
    end_with(int(sys.argv[1]))
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not be taken for an event
    os.nice(5)  # the page comes first
    speaking = threading.Lock()

    def say(event: str, data: dict[str, Any]) -> None:
        line = json.dumps({"event": event, "data": data}, allow_nan=False) + "\n"
        with speaking:
            out.write(line)
            out.flush()

    orders = Orders(say)
    threading.Thread(target=orders.listen, args=(sys.stdin,), daemon=True).start()
    _warm_up()
    from lazyscope.explorer.tables.shelf import SHELF

    while True:
        job = orders.next()
        try:
            SHELF.folder = None if job.get("shelf") is None else Path(job["shelf"])
            compute(job["view"], job["state"], job["fidelities"], say, partial(orders.go_on, job["job"]))
        except Cancelled:
            say("cancelled", {})
        except MemoryError:
            say("error", {"error": "Out of memory. Use a smaller d or fewer draws."})
        except Exception as error:  # a mistake in the code: said in the page, and the worker lives on
            say("error", {"error": " ".join(f"{type(error).__name__}: {error}".split())})


def end_with(server: int) -> None:
    """End this process with its parent, the server: the kernel kills it, be it in the middle of a matrix product.

    Elsewhere than on Linux the end of standard input has to do. A server that is gone already is noticed here: it would
    never die again.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(0)


def _warm_up() -> None:
    """Import what every job needs, with one thread in the linear algebra: a dot is the same wherever it is computed."""
    import lazyscope.explorer.views
    import lazyscope.runs.verbs  # noqa: F401
    from lazyscope.sweep.worker import hold_one_thread

    hold_one_thread()


if __name__ == "__main__":
    main()

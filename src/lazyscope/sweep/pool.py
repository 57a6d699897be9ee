"""Who computes the tasks: this process, workers of its own (joblib's loky), or a cluster (joblib's Dask backend)."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from lazyscope.checks import whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.sweep.plan import NUMERICS, Task
from lazyscope.sweep.store import Outcome
from lazyscope.sweep.worker import compute

Pool = Callable[[Sequence[Task]], Iterator[Outcome]]
"""Computes tasks, and yields what becomes of each as soon as it is known."""

_CONNECT = 5.0  # seconds to wait for a cluster to answer


class WorkersLost(Exception):
    """Workers died at work; what they had not delivered is to be done again. Told to the driver, never to a user."""


@contextmanager
def opened(workers: int | None, backend: str, address: str | None) -> Iterator[Pool]:
    """Open the pool that was asked for, or refuse what does not go together."""
    if backend not in ("loky", "dask"):
        raise InvalidParameter.of("sweep", "backend", "be loky or dask", repr(backend))
    if backend == "dask":
        if workers is not None:
            raise InvalidParameter.of("sweep", "workers", "be left out: a cluster has those that it has", workers)
        with _cluster(address) as ours:
            yield ours
        return
    if address is not None:
        raise InvalidParameter.of("sweep", "address", "go with the backend dask", address, "Add --backend dask.")
    count = _cores() if workers is None else whole_number(workers, "sweep", "workers")
    yield lambda tasks: _here(tasks) if min(count, len(tasks)) == 1 else _local(tasks, count)


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())  # those that this process may use: containers and affinity are seen


def _here(tasks: Sequence[Task]) -> Iterator[Outcome]:
    """Compute in this process, one after the other."""
    for task in tasks:
        yield compute(task.draw, task.key, NUMERICS[task.draw.fidelity])


def _local(tasks: Sequence[Task], count: int) -> Iterator[Outcome]:
    """Compute on processes of our own."""
    from joblib import Parallel
    from joblib.externals.loky.process_executor import BrokenProcessPool

    # max_nbytes: arrays travel with their task; shared memory would outlive a driver that is killed
    parallel = Parallel(
        n_jobs=min(count, len(tasks)), backend="loky", return_as="generator_unordered", batch_size=1, max_nbytes=None
    )
    try:
        yield from _outcomes(parallel, tasks, driver=os.getpid())
    except BrokenProcessPool as error:
        raise WorkersLost("A worker process ended unexpectedly.") from error


def _outcomes(parallel: Any, tasks: Sequence[Task], driver: int | None) -> Iterator[Outcome]:
    """Yield outcomes as they arrive; if the driver stops early, stop the workers at once and without a word."""
    from joblib import delayed

    work = delayed(compute)
    with _uninterrupted():  # workers inherit it: Ctrl-C, which a terminal sends to all, is the driver's to answer
        arriving = parallel(work(task.draw, task.key, NUMERICS[task.draw.fidelity], driver) for task in tasks)
    try:
        yield from arriving
    finally:
        with _uninterrupted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of what was not fetched: the store knows what is missing
            arriving.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the end of this block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _cluster(address: str | None) -> Iterator[Pool]:
    """Connect to a Dask scheduler."""
    if address is None:
        raise InvalidParameter.of("sweep", "address", "be that of a Dask scheduler, host:port", "none")
    try:
        from distributed import Client
    except ImportError:
        advice = "Install it with: pip install 'lazyscope[dask]'."
        raise InvalidParameter.of("sweep", "backend", "be installed", "dask, which is not", advice) from None
    from joblib import Parallel, parallel_config

    try:
        connect: Any = Client
        client = connect(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        got = f"{address}, where none answers ({' '.join(str(error).split())[:120]})"
        advice = "Start one with `dask scheduler`, or check host and port."
        raise InvalidParameter.of("sweep", "address", "be that of a Dask scheduler", got, advice) from None

    def outcomes(tasks: Sequence[Task]) -> Iterator[Outcome]:
        from distributed import KilledWorker

        with parallel_config(backend="dask", client=client):
            parallel = Parallel(n_jobs=-1, return_as="generator_unordered", batch_size=1)
            try:
                yield from _outcomes(parallel, tasks, driver=None)
            except KilledWorker as error:
                raise WorkersLost(str(error)) from error

    with closing(client):
        yield outcomes

"""Who computes the tasks: this process, workers of its own (joblib's loky), or a cluster (joblib's Dask backend)."""

from __future__ import annotations

import logging
import os
import re
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from multiprocessing import resource_tracker
from typing import Any

from lazyscope.checks import whole_number
from lazyscope.errors import InvalidParameter, LazyscopeError
from lazyscope.numerics.blas import cores
from lazyscope.progress import within
from lazyscope.sweep.belonging import Driver, belong_to
from lazyscope.sweep.plan import NUMERICS, Task
from lazyscope.sweep.store import Outcome
from lazyscope.sweep.worker import compute, threads_given_back

Outcomes = Generator[Outcome, None, None]
Pool = Callable[[Sequence[Task]], Outcomes]
"""Computes tasks, and yields the outcome of each as soon as it is known; to close it early stops the work."""

_CONNECT = 5.0  # seconds to wait for a cluster to answer
_ADDRESS = re.compile(r"((tcp|tls)://)?[^\s/]+:\d{1,5}")


class WorkersLost(Exception):
    """Workers died at work; what they had not delivered is to be done again. Only the driver sees it."""


def check(workers: int | None, backend: str, address: str | None) -> None:
    """Refuse what does not go together, also where nothing is left to compute."""
    if backend not in ("loky", "dask"):
        raise InvalidParameter.of("sweep", "backend", "be loky or dask", repr(backend))
    if backend == "dask" and workers is not None:
        raise InvalidParameter.of("sweep", "workers", "be left out: a cluster has those that it has", workers)
    if backend == "loky" and address is not None:
        raise InvalidParameter.of("sweep", "address", "go with the backend dask", address, "Add --backend dask.")
    if workers is not None:
        whole_number(workers, "sweep", "workers")


@contextmanager
def opened(workers: int | None, backend: str, address: str | None) -> Iterator[Pool]:
    """Open the pool that was asked for."""
    if backend == "dask":
        with _cluster(address) as ours:
            yield ours
        return
    count = cores() if workers is None else int(workers)
    yield _here if count == 1 else lambda tasks: _local(tasks, count)


def nobody(tasks: Sequence[Task]) -> Outcomes:
    """Compute nothing: the pool where nothing is left to do."""
    yield from ()


def _here(tasks: Sequence[Task]) -> Outcomes:
    """Compute in this process, one after the other."""
    for task in tasks:
        # the words of a task that reports its steps stand beside the task that was finished last
        with threads_given_back(), within(f"now {task.work.label}"):
            outcome = compute(task.work, task.key, NUMERICS[task.work.fidelity])
        yield outcome


def _local(tasks: Sequence[Task], count: int) -> Outcomes:
    """Compute on processes of our own."""
    from joblib import Parallel
    from joblib.externals.loky.process_executor import BrokenProcessPool

    # At least two: with one, joblib computes in this process, which a task that runs out of memory would take along.
    some = max(2, min(count, len(tasks)))
    # max_nbytes: arrays travel with their task; shared memory would outlive a driver that is killed
    parallel = Parallel(
        n_jobs=some, backend="loky", return_as="generator_unordered", batch_size=1, max_nbytes=None,
        initializer=belong_to, initargs=(Driver(os.getpid()),),
    )  # fmt: skip
    try:
        yield from _outcomes(parallel, tasks)
    except BrokenProcessPool as error:
        raise WorkersLost("a process ended unexpectedly") from error


def _outcomes(parallel: Any, tasks: Sequence[Task]) -> Outcomes:
    """Yield outcomes as they arrive; if the driver stops early, stop the workers at once and without a word."""
    from joblib import delayed
    from joblib.externals.loky.backend import resource_tracker as lokys_own

    work = delayed(compute)
    for tracker in (resource_tracker, lokys_own):
        with _without_warnings():
            tracker.ensure_running()  # which lets Ctrl-C through again when it starts: before the block, not in it
    with _uninterrupted():  # workers inherit it: Ctrl-C, which a terminal sends to all, is the driver's to answer
        arriving = parallel(work(task.work, task.key, NUMERICS[task.work.fidelity]) for task in tasks)
    try:
        for outcome in arriving:  # noqa: UP028 (`yield from` would close it before the warnings are off)
            yield outcome
    finally:
        with _uninterrupted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of what was not fetched: the store knows what is missing
            arriving.close()


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Have a process that is started inside this block say nothing of what it cleans up after a driver was killed."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker:UserWarning"]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


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
    if address is None or not _ADDRESS.fullmatch(address):
        must = "be that of a Dask scheduler, host:port"
        raise InvalidParameter.of("sweep", "address", must, "none" if address is None else repr(address))
    try:
        from distributed import CancelledError, Client, KilledWorker
    except ImportError:
        advice = "Install it with: pip install 'lazyscope[dask]'."
        raise InvalidParameter.of("sweep", "backend", "be installed", "dask, which is not", advice) from None
    from joblib import Parallel

    connect: Any = Client
    try:
        client = connect(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # none there, a bad port, TLS that is not set up
        got = f"{address}, where none answers ({_first_line(error)})"
        advice = "Start one with `dask scheduler`, or check host and port."
        raise InvalidParameter.of("sweep", "address", "be that of a Dask scheduler", got, advice) from None

    def outcomes(tasks: Sequence[Task]) -> Outcomes:
        try:
            backend = _dask_backend(client)
            parallel = Parallel(n_jobs=-1, backend=backend, return_as="generator_unordered", batch_size=1)
            yield from _outcomes(parallel, tasks)
        except KilledWorker as error:
            raise WorkersLost(_first_line(error)) from error
        except (OSError, CancelledError) as error:
            raise LazyscopeError(
                f"The cluster at {address} was lost, or has no workers ({_first_line(error)}). "
                "What was computed is kept; the same command goes on from there."
            ) from error

    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what it would say of a lost cluster is in our own line
    try:
        with closing(client):
            yield outcomes
    finally:
        logger.setLevel(level)


def _dask_backend(client: Any) -> Any:
    """Return joblib's backend, taught to tell when Dask gives a task up: joblib 1.6 would wait for it forever."""
    import distributed
    from joblib._dask import DaskDistributedBackend

    base: Any = distributed.as_completed

    class Arriving(base):  # type: ignore[misc]
        async def _track_future(self, future: Any) -> None:
            try:
                await super()._track_future(future)
            except OSError as error:  # the connection was lost while a result was fetched: Dask would forget the task
                with self.lock:
                    if self.futures.pop(future, 0):
                        self.queue.put_nowait((future, error))
                async with self.condition:
                    self.condition.notify()

    class Backend(DaskDistributedBackend):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.waiting_futures: Any = Arriving([], loop=client.loop, with_results=True, raise_errors=False)

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)
            future.add_done_callback(lambda done: callback(done.exception()) if done.exception() else None)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            if isinstance(out, BaseException):
                raise out
            return super().retrieve_result_callback(out)

    return Backend(client=client)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:160]

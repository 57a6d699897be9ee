"""Jobs: what takes seconds runs in worker processes, and reports by events.

A job belongs to whoever reads its events: when the last reader leaves, or none comes, it is cancelled. Its worker is
told, and stops where it next reports progress; one that does not stop soon is killed. A worker that dies is an error of
its job. Counts and time are bounded, the number of workers at every moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any

from lazyscope.errors import LazyscopeError

_KEPT = 100  # finished jobs whose end can still be asked for
_LONGEST_LINE = 1 << 20
_ENDS = ("done", "error", "cancelled")  # a worker's last word on a job is exactly one of these

Event = tuple[str, dict[str, Any]]


class TooManyJobs(LazyscopeError):
    """As many jobs wait as the server accepts."""


@dataclass(frozen=True)
class Bounds:
    """How much a server takes on: workers at once, jobs that wait for one, and seconds.

    Seconds that a job may take, that it waits for its first reader, and that its worker has to stop when told, before
    it is killed: to start another takes longer.
    """

    workers: int = max(1, min(4, os.cpu_count() or 1))
    waiting: int = 8
    seconds: float = 120.0
    patience: float = 5.0
    stopping: float = 2.0


@dataclass(eq=False)
class Job:
    """Something to compute, and what has been said of it so far."""

    name: str
    order: dict[str, Any]
    said: list[Event] = field(default_factory=list)
    readers: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will be said."""
        return bool(self.said) and self.said[-1][0] in ("done", "error")

    def say(self, event: str, data: dict[str, Any]) -> None:
        """Tell the readers; only the last of several reports of progress in a row is kept."""
        if self.ended:
            return
        if event == "progress" and self.said and self.said[-1][0] == "progress":
            self.said.pop()
        self.said.append((event, data))
        news, self.news = self.news, asyncio.Event()
        news.set()


class Worker:
    """A process at the other end of two pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls) -> Worker:
        """Start a process, which begins to import at once."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "lazyscope.explorer.worker", str(os.getpid()),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LONGEST_LINE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
            start_new_session=True,  # Ctrl-C is the server's, which ends its workers itself
        )  # fmt: skip
        return cls(process)

    async def serve(self, job: Job) -> bool:
        """Send a job and pass on what the process says, until its end or that of the process; say if it can go on."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(ConnectionError):
            self.process.stdin.write(json.dumps({"job": job.name, **job.order}).encode() + b"\n")
            await self.process.stdin.drain()
        while not job.ended:
            line = await self.process.stdout.readline()
            if not line:
                code = await self.process.wait()
                how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
                job.say("error", {"error": f"The worker {how} before the job was done. Drop the dots again."})
                return False
            said = json.loads(line)
            job.say(said["event"], said["data"])
        return job.said[-1][0] == "done"  # after a mistake, or without memory, another is better

    async def stop(self, job: Job, seconds: float) -> bool:
        """Tell it to leave a job that it has not ended; say whether it did so in time, and can serve another."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                self.process.stdin.write(json.dumps({"cancel": job.name}).encode() + b"\n")
                while line := await self.process.stdout.readline():
                    if json.loads(line)["event"] in _ENDS:
                        return True
        except (TimeoutError, ConnectionError, ValueError):  # busy, gone, or something that is no event
            pass
        return False

    @property
    def alive(self) -> bool:
        """Whether it can serve."""
        return self.process.returncode is None

    async def kill(self) -> None:
        """End it, whatever it is doing."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


class Jobs:
    """All jobs of a server, and the workers that serve them.

    There is a fixed number of places for processes. One is held from before a process starts until it has ended or
    waits in `idle`, and a process is started only while `idle` is empty: all together never exceed the places.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds()
        self.jobs: dict[str, Job] = {}
        self.idle: list[Worker] = []
        self.busy: dict[str, Worker] = {}
        self._places = asyncio.Semaphore(self.bounds.workers)
        self._errands: set[asyncio.Task[None]] = set()
        self._sparing = False
        self._closing = False

    def warm_up(self) -> None:
        """Start a worker before there is a job for it: a page has been opened."""
        if not self.idle and not self._errands:
            self._errand(self._warm_up())

    async def _warm_up(self) -> None:
        async with self._places:
            await self._spare()

    async def _spare(self) -> None:
        """Start a worker for the next job unless one waits; the caller holds a place for it."""
        if self.idle or self._sparing or self._closing:
            return
        self._sparing = True
        try:
            self.idle.append(await Worker.start())
        except OSError:
            pass  # the job that would need it will say so
        finally:
            self._sparing = False

    def submit(self, order: dict[str, Any]) -> Job:
        """Accept a job, or refuse it."""
        going = sum(not job.ended for job in self.jobs.values())
        if going >= self.bounds.workers + self.bounds.waiting:
            raise TooManyJobs(f"There are {going} jobs already. Wait for one of them, or cancel it.")
        self._forget()
        job = Job(secrets.token_hex(8), order)
        self.jobs[job.name] = job
        job.task = self._errand(self._run(job))
        # a task that was cancelled holds its job: without this each would wait for the collector, which comes rarely
        job.task.add_done_callback(lambda _: setattr(job, "task", None))
        return job

    def _forget(self) -> None:
        """Forget the oldest of many jobs that have ended."""
        over = [name for name, job in self.jobs.items() if job.ended][:-_KEPT]
        for name in over:
            del self.jobs[name]

    async def _run(self, job: Job) -> None:
        """Wait for a worker, let it serve, and take it away where it does not come to an end."""
        abandoned = asyncio.create_task(self._abandon(job))
        try:
            job.say("progress", {"done": 0, "total": 0, "what": "waiting for a worker"})
            worker = await self._take()
            self.busy[job.name] = worker
            useful: bool | None = None  # not known where the job does not come to its end
            try:
                async with asyncio.timeout(self.bounds.seconds):
                    useful = await worker.serve(job)
            except TimeoutError:
                said = (
                    f"Stopped after {self.bounds.seconds:g} s, the most a job may take. Use a smaller d or fewer draws."
                )
                job.say("error", {"error": said})
            finally:
                del self.busy[job.name]
                self._errand(self._put_back(worker, job, useful))
        except Exception as error:  # a worker that cannot be started must not leave its readers waiting
            job.say("error", {"error": " ".join(f"{type(error).__name__}: {error}".split())})
        finally:
            abandoned.cancel()

    async def _take(self) -> Worker:
        """Wait for a place, and return a worker that holds it."""
        await self._places.acquire()
        try:
            while self.idle:
                worker = self.idle.pop()
                if worker.alive:
                    return worker
            return await Worker.start()
        except BaseException:  # cancelled too: a start that is cancelled ends its process
            self._places.release()
            raise

    async def _put_back(self, worker: Worker, job: Job, useful: bool | None) -> None:
        """Keep a worker that can go on, or stops when told; kill another, and only then give its place away."""
        try:
            if useful is None and not self._closing:
                stopped = await worker.stop(job, self.bounds.stopping)
                useful = stopped and not self.idle  # one that waits for the next job is enough
            if useful and not self._closing:
                self.idle.append(worker)
            else:
                await worker.kill()
                await self._spare()
        finally:
            self._places.release()

    def _errand(self, what: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(what)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        return task

    async def _abandon(self, job: Job) -> None:
        """Cancel a job whose events no client has asked for."""
        await asyncio.sleep(self.bounds.patience)
        if not job.readers:
            self.cancel(job)

    def cancel(self, job: Job) -> bool:
        """End a job; say whether there was something to end."""
        if job.ended or job.task is None:
            return False
        job.say("error", {"error": "Cancelled."})  # now: a task that has not begun would never say it
        job.task.cancel()
        return True

    async def read(self, job: Job) -> AsyncIterator[Event]:
        """Yield what is said of a job, from the beginning; cancel it when the last reader leaves."""
        job.readers += 1
        try:
            told = 0
            last: Event | None = None
            while True:
                news = job.news
                # of reports in a row the latest replaced the others: it stands in the same place
                if last is not None and told <= len(job.said) and job.said[told - 1] is not last:
                    told -= 1
                while told < len(job.said):
                    last = job.said[told]
                    told += 1
                    yield last
                if job.ended:
                    return
                await news.wait()
        finally:
            job.readers -= 1
            if not job.readers:
                self.cancel(job)

    async def close(self) -> None:
        """End all jobs and all workers."""
        self._closing = True
        for job in self.jobs.values():
            self.cancel(job)
        while self._errands:  # a job that ends leaves its worker to another errand
            await asyncio.gather(*self._errands, return_exceptions=True)
        await asyncio.gather(*(worker.kill() for worker in self.idle))

"""The explorer under fifty clients: sliders, dots, cancelled jobs, forged and broken requests; and servers killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import IO
from urllib.parse import parse_qsl, urlencode, urlsplit

import numpy as np
import psutil

from lazyscope.errors import LazyscopeError
from lazyscope.explorer.api import _REMEMBERED, answered
from lazyscope.explorer.jobs import Bounds
from lazyscope.explorer.views import VIEWS
from soak import web
from soak.tally import Deadline, Tally

GOALS = {"tried": 3000, "cancelled": 1000}
AFTERWARDS = 60.0  # seconds for the last clients to be let go, and for servers to be started and ended
MORE_MEMORY = 1.1  # at the end, over the beginning
Client = Callable[[web.Site, Random], Awaitable[None]]
CROWD: dict[Client, int] = {
    web.mover: 16, web.dropper: 6, web.canceller: 16, web.forger: 2, web.stammerer: 4, web.staller: 6,
}  # fmt: skip
ENDS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def attack(tally: Tally, rng: np.random.Generator, deadline: Deadline) -> None:
    """Let the crowd at one server, then end several at chosen moments."""
    seed = int(rng.integers(2**32))
    with server() as (process, address, errors):
        asyncio.run(crowded(tally, psutil.Process(process.pid), address, Random(seed), deadline))
        tally.check(process.poll() is None, f"the server ended with {process.poll()}")
        ended(tally, process, signal.SIGINT, "after the crowd")
        errors.seek(0)
        said = errors.read()
        tally.findings[:0] = traces(said)  # before all else: they say why a request failed
        tally.check("Traceback" not in said, f"the server said: {said[-2000:]}")
    ends = Random(seed + 1)
    for sign in ENDS:
        if not deadline and sign is not signal.SIGKILL:
            break
        with server() as (process, address, _):
            at_work(tally, process, address, sign, ends)


@contextlib.contextmanager
def server() -> Iterator[tuple[subprocess.Popen[str], str, IO[str]]]:
    """Start the explorer on a free port; yield process, address and what it says to its standard error."""
    words = [sys.executable, "-c", "from lazyscope.cli import main; main()", "explore", "--port", "0", "--no-browser"]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip(), errors
        finally:
            process.kill()
            process.communicate()
            for worker in workers(process.pid):
                worker.kill()


def traces(said: str) -> list[str]:
    """Return the ends of the first tracebacks of a server's standard error."""
    return [f"the server's traceback: …{part[-1500:]}" for part in said.split("Traceback (most recent")[1:6]]


def workers(number: int) -> list[psutil.Process]:
    """Return the workers of a server, dead or alive: they are named after it."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if (words := process.info["cmdline"] or [])[-2:] == ["lazyscope.explorer.worker", str(number)]
        and "-m" in words
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def at_hand(process: psutil.Process) -> int:
    """Return how many workers a server has now. Its other child, the one that reads tables, is none of them."""
    number = 0
    for child in process.children():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            number += child.cmdline()[-2:] == ["lazyscope.explorer.worker", str(process.pid)]
    return number


# -- one server, many clients --------------------------------------------------------------------------------


async def crowded(tally: Tally, process: psutil.Process, address: str, rng: Random, deadline: Deadline) -> None:
    """Fill what the server remembers, then measure it before and after a thousand cancelled jobs and all the rest.

    Code that is compiled or loaded when it is first used stays: a compiler's memory is not what is measured here, so
    that every choice of every view is made once before.
    """
    where = urlsplit(address)
    site = web.Site(str(where.hostname), int(where.port or 0), tally)
    watch = asyncio.create_task(watched(process))
    whole = Deadline(max(0.5 * deadline.left, deadline.left - AFTERWARDS))
    first = Deadline(0.25 * whole.left)

    def filled() -> bool:
        return not first or all(len(known) > _REMEMBERED for known in site.answers.values())

    await every_choice_once(site, whole)
    await crowd(site, rng, filled)
    before = await every_worker_once(site, process)
    alone, known = process.memory_info().rss, remembered(site)

    def done() -> bool:
        return not whole or site.cancelled >= GOALS["cancelled"]

    site.cancelled = 0
    await crowd(site, rng, done)
    await quiet(site, process)
    tally.counts["cancelled"] = site.cancelled
    most = watch.result() if watch.done() else await stopped(watch)
    tally.check(most <= Bounds().workers, f"{most} workers at once, where {Bounds().workers} are allowed")
    grown = remembered(site) - known
    for who, then, now in (("server", alone, process.memory_info().rss), ("all", before, memory(process))):
        tally.counts[f"MB {who} before"], tally.counts[f"MB {who} after"] = then // 10**6, now // 10**6
        what = f"{site.cancelled} jobs submitted and cancelled: {who} {now / 1e6:.0f} MB, {then / 1e6:.0f} MB before"
        tally.check(now <= MORE_MEMORY * then + grown, what)
    judge_numbers(site, rng)


async def crowd(site: web.Site, rng: Random, done: Callable[[], bool]) -> None:
    """Keep fifty clients at it until it is done, and wait for the last of them."""

    async def keep(client: Client, mine: Random) -> None:
        while not done():
            try:
                await client(site, mine)
            except Exception as error:
                site.tally.check(False, f"{client.__name__}: {type(error).__name__}: {error}")
                await asyncio.sleep(0.1)

    await asyncio.gather(
        *(keep(client, Random(rng.getrandbits(64))) for client, number in CROWD.items() for _ in range(number))
    )


async def every_choice_once(site: web.Site, whole: Deadline) -> None:
    """Ask every view for its lines, with each value of each of its choices, one after another, while there is time."""
    for name, view in VIEWS.items():
        for control in view.record().controls:
            values = ["diabetes", "breast_cancer"] if control.kind == "file" else control.choices or []
            for value in values:
                if not whole:
                    return
                query = urlencode({control.name: value})
                web.judge_lines(site, name, query, await site.ask("GET", f"/api/limit/{name}?{query}"))


async def every_worker_once(site: web.Site, process: psutil.Process) -> int:
    """Let as many jobs run at once as there may be workers, and return the memory of all while they do.

    All workers are there then, and have their code loaded. Later one of them may be gone, or may not be.
    """
    state = {"d": 20, "rho_max": 1.0, "draws": 2}
    order = {"view": "quadratic", "state": state, "fidelities": ["exact", "simulate"]}
    await quiet(site, process)
    jobs = [web.strictly((await site.ask("POST", "/api/simulate", order))[1]) for _ in range(Bounds().workers)]

    async def begun(job: dict[str, str]) -> asyncio.StreamWriter:
        reader, writer = await site.open()
        writer.write(site.request("GET", job["events"]))
        with contextlib.suppress(asyncio.IncompleteReadError):
            await asyncio.wait_for(reader.readuntil(b'"fidelity": "simulate"'), web.PATIENCE)
        return writer

    readers = await asyncio.gather(*map(begun, jobs))
    total = memory(process)
    for writer in readers:
        writer.close()  # which cancels the job
    return total


async def quiet(site: web.Site, process: psutil.Process) -> None:
    """Wait until the jobs of clients that have left are gone and a job is accepted at once; a minute at most."""
    until = Deadline(web.PATIENCE)
    while until:
        status, body = await site.ask("POST", "/api/simulate", web.LONG)
        if status == 202:
            await site.ask("DELETE", web.strictly(body)["cancel"])
            if at_hand(process) <= Bounds().workers:
                return
        await asyncio.sleep(0.1)
    site.tally.check(False, f"a minute after the last client: {at_hand(process)} workers, new job: {status}")


async def watched(process: psutil.Process) -> int:
    """Return how many workers there were at most, when cancelled."""
    most = 0
    with contextlib.suppress(asyncio.CancelledError, psutil.NoSuchProcess):
        while True:
            most = max(most, at_hand(process))
            await asyncio.sleep(0.05)
    return most


async def stopped(watch: asyncio.Task[int]) -> int:
    """Stop watching."""
    watch.cancel()
    return await watch


def memory(process: psutil.Process) -> int:
    """Return the bytes of a server, its workers and the process that reads tables."""
    total = 0
    for one in (process, *process.children()):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += one.memory_info().rss
    return total


def remembered(site: web.Site) -> int:
    """Return the bytes of the answers that the server may remember: as many as it keeps, each the largest."""
    return sum(
        min(len(known), _REMEMBERED) * max(map(len, known.values()), default=0) for known in site.answers.values()
    )


def judge_numbers(site: web.Site, rng: Random) -> None:
    """Compute some of the answers again, in this process."""
    for view, known in site.answers.items():
        for query in rng.sample(sorted(known), min(10, len(known))):
            state = VIEWS[view].state(**dict(parse_qsl(query, keep_blank_values=True)))
            with contextlib.suppress(LazyscopeError):
                again = json.loads(answered(VIEWS[view], state))
                said = json.loads(known[query])
                site.tally.check(
                    web.same(said, again), f"GET /api/limit/{view}?{query}: other numbers than the library's"
                )


# -- the end of a server -------------------------------------------------------------------------------------


def at_work(tally: Tally, process: subprocess.Popen[str], address: str, sign: signal.Signals, rng: Random) -> None:
    """Give a server as many jobs as it takes and end it at some moment of their start or work."""
    where = urlsplit(address)
    site = web.Site(str(where.hostname), int(where.port or 0), tally)

    async def submit() -> None:
        for _ in range(rng.randint(1, 4)):
            await site.ask("POST", "/api/simulate", web.LONG)
        await asyncio.sleep(rng.choice([0.0, 0.05, 0.3, 1.5]) * rng.random())

    asyncio.run(submit())
    ended(tally, process, sign, "at work")


def ended(tally: Tally, process: subprocess.Popen[str], sign: signal.Signals, when: str) -> None:
    """End a server; neither it nor a worker may be there after a while that no computation takes."""
    process.send_signal(sign)
    what = f"{sign.name} to `lazyscope explore` {when}"
    try:
        code = process.wait(web.PATIENCE)
    except subprocess.TimeoutExpired:
        tally.check(False, f"{what}: still there after {web.PATIENCE:g} s")
        return
    tally.check(code == (0 if sign is signal.SIGINT else -sign), f"{what}: ended with {code}")
    until = time.monotonic() + 10.0
    while (left := workers(process.pid)) and time.monotonic() < until:
        time.sleep(0.1)
    tally.check(not left, f"{what}: {len(left)} workers outlive it")
    tally.count(f"ended by {sign.name}")

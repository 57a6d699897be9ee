"""Jobs: the library's numbers arrive; workers are freed, replaced and bounded, whatever becomes of them."""

import asyncio
import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import weakref

import pytest

import lazyscope as ls
from lazyscope.explorer.jobs import Bounds, Jobs, TooManyJobs, Worker

SHORT = {"view": "quadratic", "state": {"d": 20, "rho_max": 1.0, "draws": 2}, "fidelities": ["exact"]}
LONG = {"view": "quadratic", "state": {"d": 120}, "fidelities": ["simulate"]}  # minutes


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def run(scenario, **bounds):
    """Run a coroutine function with jobs of its own, which it must leave without processes."""

    async def whole():
        jobs = Jobs(Bounds(**{"workers": 1, "waiting": 2, "seconds": 60.0, "patience": 30.0, **bounds}))
        try:
            await scenario(jobs)
        finally:
            pids = [worker.process.pid for worker in (*jobs.idle, *jobs.busy.values())]
            await jobs.close()
        assert not any(alive(pid) for pid in pids)

    asyncio.run(whole())


async def listened(jobs, job):
    return [said async for said in jobs.read(job)]


async def at_work(jobs, order):
    """Start a job with a reader that stays, and wait until it is being computed."""
    job = jobs.submit(order)
    reader = asyncio.create_task(listened(jobs, job))
    while not (job.said and job.said[-1][1].get("total")):
        await asyncio.sleep(0.02)
    return job, reader, jobs.busy[job.name].process.pid


def test_dots_are_the_librarys_numbers_bit_for_bit():
    async def scenario(jobs):
        job = jobs.submit(SHORT)
        said, late = await listened(jobs, job), await listened(jobs, job)
        again = await listened(jobs, jobs.submit(SHORT))
        assert said[-1][0] == late[-1][0] == "done"
        dots = [data for event, data in said if event == "dots"]
        assert dots == [data for event, data in again if event == "dots"]
        assert dots == [data for event, data in late if event == "dots"]  # who comes late hears everything
        target = ls.QuadraticTarget.exponential(20, seed=100)
        for one in dots:
            regime = {"RF": ls.RandomFeatures, "NT": ls.NeuralTangent, "NN": ls.Trained}[one["name"]]()
            width, draws = round(one["x"][0] * 20), 1 if one["name"] == "NN" else 2
            expected = ls.exact(target, regime, width=width, draws=draws)
            assert one["y"] == [pytest.approx(float(expected.risk), rel=1e-12, abs=1e-14)]
            if draws > 1:
                assert one["stderr"] == [pytest.approx(float(expected.stderr), rel=1e-9, abs=1e-14)]

    run(scenario)


async def no_errands(jobs):
    while jobs._errands:
        await asyncio.sleep(0.01)


def test_a_cancelled_job_leaves_its_worker_to_the_next():
    async def scenario(jobs):
        job, reader, pid = await at_work(jobs, LONG)
        for _ in range(3):  # in the middle of a computation
            assert jobs.cancel(job)
            assert not jobs.cancel(job)
            assert (await reader)[-1] == ("error", {"error": "Cancelled."})
            await no_errands(jobs)
            assert not jobs.busy
            assert [worker.process.pid for worker in jobs.idle] == [pid]
            job, reader, again = await at_work(jobs, LONG)
            assert again == pid
        jobs.cancel(job)
        said = await listened(jobs, jobs.submit(SHORT))
        assert said[-1][0] == "done"
        assert sum(event == "dots" for event, _ in said) == 15  # none of the job before

    run(scenario, stopping=60.0)


def test_a_job_that_is_cancelled_while_its_worker_starts_does_not_make_it_start_again():
    async def scenario(jobs):
        processes = set()
        for _ in range(20):
            job = jobs.submit(LONG)
            while job.name not in jobs.busy:
                await asyncio.sleep(0)
            processes.add(jobs.busy[job.name].process.pid)
            jobs.cancel(job)
            await no_errands(jobs)
        assert len(processes) == 1
        assert (await listened(jobs, jobs.submit(SHORT)))[-1][0] == "done"

    run(scenario, stopping=60.0)


def test_a_worker_that_does_not_stop_is_killed():
    async def scenario(jobs):
        job, reader, pid = await at_work(jobs, LONG)
        os.kill(pid, signal.SIGSTOP)
        assert jobs.cancel(job)
        assert (await reader)[-1] == ("error", {"error": "Cancelled."})
        await no_errands(jobs)
        assert not alive(pid)
        assert (await listened(jobs, jobs.submit(SHORT)))[-1][0] == "done"

    run(scenario, stopping=0.2)


def test_a_job_ends_when_its_reader_leaves_or_none_comes():
    async def scenario(jobs):
        job, reader, pid = await at_work(jobs, LONG)
        reader.cancel()
        await asyncio.wait([job.task], timeout=60.0)
        assert job.said[-1] == ("error", {"error": "Cancelled."})
        unread = jobs.submit(LONG)
        await asyncio.wait([unread.task], timeout=60.0)
        assert unread.said[-1] == ("error", {"error": "Cancelled."})
        await no_errands(jobs)
        assert [worker.process.pid for worker in jobs.idle] == [pid]

    run(scenario, patience=0.5, stopping=60.0)


def test_a_killed_worker_is_an_error_and_the_next_job_has_another():
    async def scenario(jobs):
        _, reader, pid = await at_work(jobs, LONG)
        os.kill(pid, signal.SIGKILL)
        event, data = (await asyncio.wait_for(reader, 60.0))[-1]
        assert event == "error"
        assert "killed by signal 9" in data["error"]
        assert (await listened(jobs, jobs.submit(SHORT)))[-1][0] == "done"
        while not jobs.idle:
            await asyncio.sleep(0.01)
        idle = jobs.idle[0].process
        os.kill(idle.pid, signal.SIGKILL)  # one that waits is not used any more
        await asyncio.wait_for(idle.wait(), 60.0)
        assert (await listened(jobs, jobs.submit(SHORT)))[-1][0] == "done"

    run(scenario)


def test_a_job_has_a_time_limit():
    async def scenario(jobs):
        event, data = (await listened(jobs, jobs.submit(LONG)))[-1]
        assert event == "error"
        assert data["error"].startswith("Stopped after 0.3 s")

    run(scenario, seconds=0.3)


def test_no_more_jobs_wait_than_are_accepted():
    async def scenario(jobs):
        accepted = [jobs.submit(LONG) for _ in range(3)]
        with pytest.raises(TooManyJobs, match="3 jobs already"):
            jobs.submit(LONG)
        for job in accepted:
            jobs.cancel(job)
        await asyncio.wait([job.task for job in accepted])
        assert all(job.said[-1][0] == "error" for job in accepted)
        assert (await listened(jobs, jobs.submit(SHORT)))[-1][0] == "done"

    run(scenario)


def test_there_are_never_more_workers_than_allowed(monkeypatch):
    processes, most = [], []
    start = Worker.start

    async def counted():
        worker = await start()
        processes.append(worker.process)
        most.append(sum(process.returncode is None for process in processes))
        return worker

    monkeypatch.setattr(Worker, "start", counted)

    async def scenario(jobs):
        for turn in range(20):
            jobs.warm_up()
            accepted = [jobs.submit(LONG) for _ in range(4)]
            for _ in range(turn % 5 * turn):  # cancelled before they have a place, a process, or an order
                await asyncio.sleep(0)
            for job in accepted:
                jobs.cancel(job)
            await asyncio.wait([job.task for job in accepted])
        await no_errands(jobs)
        assert len(jobs.idle) <= 1  # one for the next job, not one for each that was cancelled
        assert sum(process.returncode is None for process in processes) == len(jobs.idle)
        assert (await listened(jobs, jobs.submit(SHORT)))[-1][0] == "done"

    run(scenario, workers=2)
    assert max(most) <= 2


@pytest.mark.parametrize("turns", [0, 5])  # before it has begun, and after
def test_a_cancelled_job_that_is_forgotten_leaves_no_memory_behind(turns):
    async def scenario(jobs):
        job = jobs.submit(LONG)
        for _ in range(turns):
            await asyncio.sleep(0)
        jobs.cancel(job)
        await no_errands(jobs)
        kept = weakref.ref(job)
        jobs.jobs.clear()
        del job
        assert kept() is None  # at once, not when cycles are collected

    gc.disable()
    try:
        run(scenario)
    finally:
        gc.enable()


def test_a_worker_that_cannot_be_started_is_an_error_and_leaves_its_place(monkeypatch):
    start = Worker.start

    async def fail():
        raise OSError("no more processes")

    async def scenario(jobs):
        monkeypatch.setattr(Worker, "start", fail)
        jobs.warm_up()
        for _ in range(3):
            assert (await listened(jobs, jobs.submit(SHORT)))[-1] == ("error", {"error": "OSError: no more processes"})
        monkeypatch.setattr(Worker, "start", start)
        assert (await listened(jobs, jobs.submit(SHORT)))[-1][0] == "done"

    run(scenario)


STARTS_A_WORKER = """
import os, subprocess, sys, time
words = [sys.executable, "-m", "lazyscope.explorer.worker", str(os.getpid())]
print(subprocess.Popen(words, stdin=int(sys.argv[1]), stdout=int(sys.argv[2])).pid, flush=True)
time.sleep(600)
"""


def until_closed(reader):
    """Read until nobody holds the other end of a pipe; say whether that came before thirty seconds without a word."""
    while select.select([reader], [], [], 30.0)[0]:
        if not os.read(reader, 65536):
            return True
    return False


@pytest.fixture
def pipes():
    """Two pipes: the standard input of a worker, whose other end stays open here, and its standard output."""
    ends = [*os.pipe(), *os.pipe()]
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


@pytest.mark.parametrize("at_work", [False, True])
def test_a_worker_ends_with_its_server_even_where_its_input_does_not(pipes, at_work):
    stdin, orders, reader, stdout = pipes
    words = [sys.executable, "-c", STARTS_A_WORKER, str(stdin), str(stdout)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, pass_fds=(stdin, stdout)) as server:
        worker = int(server.stdout.readline())
        os.close(stdout)
        if at_work:
            os.write(orders, json.dumps({"job": "one", **LONG}).encode() + b"\n")
            assert os.read(reader, 10)
        if sys.platform != "linux":
            os.close(orders)  # all that tells a worker there
        server.kill()  # without work, perhaps before the worker has run its first line
    try:
        assert until_closed(reader)
    finally:
        if alive(worker):
            os.kill(worker, signal.SIGKILL)


def test_a_worker_whose_server_is_gone_before_its_first_line_ends_at_once(pipes):
    stdin, *_ = pipes
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    words = [sys.executable, "-m", "lazyscope.explorer.worker", str(gone.pid)]
    assert subprocess.run(words, stdin=stdin, capture_output=True, timeout=60).returncode == 0

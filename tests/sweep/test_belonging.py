"""A worker does not outlive its driver, whenever that dies: before its first task, and whatever it is doing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# The driver dies when loky has started its workers and told them all but their first task, which the thread sends
# whose start is replaced here. What is said on the standard output are the workers.
BEFORE_THE_FIRST_TASK = """
import os, signal
from joblib.externals.loky.process_executor import ProcessPoolExecutor
import lazyscope as ls
from lazyscope import sweep

def die(executor):
    for worker in executor._processes:
        {meanwhile}
    print(*executor._processes, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

ProcessPoolExecutor._start_executor_manager_thread = die
plan = sweep.Plan.grid("a", [ls.QuadraticTarget([2.0, 1.0])], [ls.Trained()], widths=[1, 2])
sweep.run(plan, "a.sqlite", workers=2)
"""

# A worker that never lets another thread of its own run: only the kernel can end it.
BUSY = """
import ctypes, os, pickle, subprocess, sys
from lazyscope.sweep.belonging import Driver, belong_to
if len(sys.argv) == 1:
    told = pickle.dumps(Driver(os.getpid())).hex()
    worker = subprocess.Popen([sys.executable, "-c", os.environ["BUSY"], told], stdout=subprocess.PIPE)
    worker.stdout.readline()
    print(worker.pid, flush=True)
    os.kill(os.getpid(), 9)
belong_to(pickle.loads(bytes.fromhex(sys.argv[1])))
print("here", flush=True)
ctypes.PyDLL(None).sleep(600)  # PyDLL keeps the lock of the interpreter
"""


def killed_driver(script):
    """Run a driver that kills itself; return the workers that it had."""
    said = Path("said")  # a file: the workers hold a pipe open
    with said.open("w") as stream:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=os.environ | {"BUSY": BUSY}, stdout=stream, timeout=100, check=False)
    assert done.returncode == -signal.SIGKILL
    return [int(worker) for worker in said.read_text().splitlines()[0].split()]


def all_gone(workers, alive, seconds=100.0):
    """Wait until no worker is left; the bound is far below the five minutes that loky would let them idle."""
    limit = time.monotonic() + seconds
    while any(map(alive, workers)) and time.monotonic() < limit:
        time.sleep(0.05)
    left = [worker for worker in workers if alive(worker)]
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    return not left


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
def test_no_worker_outlives_a_driver_that_dies_before_the_first_task(here, alive, held):
    """A worker that is held, here by SIGSTOP, meets the death of its driver before it has run a line of ours."""
    meanwhile = "os.kill(worker, signal.SIGSTOP)" if held else "pass"
    workers = killed_driver(BEFORE_THE_FIRST_TASK.format(meanwhile=meanwhile))
    assert len(workers) == 2
    for worker in workers if held else ():
        os.kill(worker, signal.SIGCONT)
    assert all_gone(workers, alive), "workers outlive their driver"


def test_no_worker_outlives_its_driver_though_it_is_busy(here, alive):
    workers = killed_driver(BUSY)
    assert len(workers) == 1
    assert all_gone(workers, alive), "a busy worker outlives its driver"


def test_a_thread_that_ends_takes_no_workers_along(here):
    """The signal comes when the thread that started a worker ends, so only those of the main thread ask for it."""
    script = """
import threading
import lazyscope as ls
from joblib.externals.loky import reusable_executor
from lazyscope import sweep

def run(name):
    plan = sweep.Plan.grid(name, [ls.QuadraticTarget([2.0, 1.0])], [ls.Trained()], widths=[1, 2])
    assert sweep.run(plan, f"{name}.sqlite", workers=2).complete
    workers.append({*reusable_executor._executor._processes})

workers = []
for name in "ab":
    thread = threading.Thread(target=run, args=(name,))
    thread.start()
    thread.join()
assert workers[0] == workers[1], workers
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")

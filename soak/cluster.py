"""Attack on clusters: a Dask scheduler and two workers in network namespaces of their own, whose links are cut.

One namespace is the hub, with the scheduler and a bridge; each worker and the driver have theirs, and a cable to it.
Nothing of it reaches the network of the machine. Whatever is cut or killed, the run ends with the bytes of a quiet
run without a cluster, or with one line; and then the same plan goes on without a cluster to the same bytes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from soak.sweeps import PLAN, ended, environment, exported, group, none_left, said, shown, started
from soak.tally import Deadline, Tally

GOALS = {"tried": 15}
_PORT = 8786
_HUB = "10.213.77.1"  # of the namespaces alone
# A cable that is cut says nothing: Dask notices by the silence, after half a minute unless it is told otherwise.
_SILENCE = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "12s",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "20s",
}


@dataclass(frozen=True)
class Net:
    """A hub and three leaves: `driver`, `one` and `two`."""

    name: str

    def inside(self, leaf: str) -> tuple[str, ...]:
        """Return the words that run a command in a namespace."""
        return ("ip", "netns", "exec", f"{self.name}-{leaf}")

    def cable(self, leaf: str, state: str) -> None:
        """Cut the cable of a leaf (`down`), or mend it (`up`)."""
        _ip("-n", f"{self.name}-hub", "link", "set", f"to-{leaf}", state)


def attack(tally: Tally, rng: np.random.Generator, deadline: Deadline) -> None:
    """Make a cluster, run a plan on it, do it harm; until the time is over."""
    if os.name != "posix" or not shutil.which("ip") or not _may():
        tally.check(True, "")
        tally.count("not tried: no `ip netns` here (apt-get install iproute2, and root)")
        return
    faults = [_nothing, _worker_cut, _worker_killed, _scheduler_killed, _driver_cut, _cut_for_a_moment]
    turn = int(rng.integers(len(faults)))
    with tempfile.TemporaryDirectory() as place:
        plan = Path(place, "a.toml")
        plan.write_text(PLAN.format(d=int(rng.integers(8, 24)), draws=3, steps=300, seed=int(rng.integers(1000))))
        alone = said("run", plan, "--workers", 2, "--store", "quiet.sqlite", folder=plan.parent)
        tally.check(alone.code == 0, f"{plan.read_text()!r} without a cluster: {alone}")
        quiet = exported(plan.with_name("quiet.sqlite"), plan.parent)
        while deadline.left > 20 and tally.tried < 4 * GOALS["tried"]:
            folder = Path(place, str(turn))
            folder.mkdir()
            with _net() as net, ExitStack() as stack:
                _one(tally, rng, plan, folder, net, stack, faults[turn % len(faults)], quiet)
            turn += 1


def _one(
    tally: Tally, rng: np.random.Generator, plan: Path, folder: Path, net: Net, stack: ExitStack,
    fault: Callable[..., None], quiet: bytes,
) -> None:  # fmt: skip
    store = folder / "a.sqlite"
    cluster = _cluster(folder, net, stack)
    args = ("run", plan, "--store", store, "--backend", "dask", "--address", f"{_HUB}:{_PORT}")
    driver = started(*args, folder=folder, prefix=net.inside("driver"), more=_SILENCE)
    wanted = int(rng.integers(0, 40))
    while driver.poll() is None and _kept(store) < wanted:
        time.sleep(0.05)
    what = f"{shown(*args)} with {plan.read_text()!r}, {fault.__name__[1:]} after {wanted} results"
    tally.count(fault.__name__[1:].replace("_", " "))
    fault(net, cluster, rng)
    done = ended(driver, folder)
    tally.check(done.code == 0 or done.one_line, f"{what}: {done}")
    tally.check(none_left(driver.pid), f"{what}: processes outlive their driver")
    if fault in (_nothing, _worker_killed, _worker_cut):  # one worker is left, which is enough
        tally.check(done.code == 0, f"{what}: {done}")
    tally.count("finished" if done.code == 0 else "ended in a line")
    here = said("run", plan, "--workers", 2, "--store", store, folder=folder)
    tally.check(here.code == 0, f"{what}; then without the cluster: {here}")
    same = here.code == 0 and exported(store, folder) == quiet
    tally.check(same, f"{what}: other bytes than those of a quiet run")


def _nothing(net: Net, cluster: dict[str, int], rng: np.random.Generator) -> None:
    """Leave the cluster in peace."""


def _worker_cut(net: Net, cluster: dict[str, int], rng: np.random.Generator) -> None:
    net.cable(("one", "two")[int(rng.integers(2))], "down")


def _worker_killed(net: Net, cluster: dict[str, int], rng: np.random.Generator) -> None:
    os.killpg(cluster[("one", "two")[int(rng.integers(2))]], signal.SIGKILL)


def _scheduler_killed(net: Net, cluster: dict[str, int], rng: np.random.Generator) -> None:
    os.killpg(cluster["hub"], signal.SIGKILL)


def _driver_cut(net: Net, cluster: dict[str, int], rng: np.random.Generator) -> None:
    net.cable("driver", "down")


def _cut_for_a_moment(net: Net, cluster: dict[str, int], rng: np.random.Generator) -> None:
    leaf = ("one", "two", "driver")[int(rng.integers(3))]
    net.cable(leaf, "down")
    time.sleep(float(rng.uniform(0.1, 3.0)))
    net.cable(leaf, "up")


def _kept(store: Path) -> int:
    from lazyscope import sweep

    return sum(plan.done for plan in sweep.status(store)[0]) if store.exists() else 0


def _cluster(folder: Path, net: Net, stack: ExitStack) -> dict[str, int]:
    """Start a scheduler in the hub and a worker in two leaves; return their process groups."""
    dask = (sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", _HUB, "--port", str(_PORT))
    groups = {"hub": _begun(stack, folder / "hub.log", *net.inside("hub"), *dask, "--no-dashboard")}
    for leaf in ("one", "two"):
        work = (
            "--nworkers",
            "1",
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            folder / leaf,
        )
        dask = (sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{_HUB}:{_PORT}", *work)
        groups[leaf] = _begun(stack, folder / f"{leaf}.log", *net.inside(leaf), *dask)
    limit = time.monotonic() + 200
    while any("Registered to" not in (folder / f"{leaf}.log").read_text() for leaf in ("one", "two")):
        if time.monotonic() > limit or not all(map(group, groups.values())):
            raise RuntimeError(f"no cluster: {(folder / 'one.log').read_text()[-600:]}")
        time.sleep(0.1)
    return groups


def _begun(stack: ExitStack, log: Path, *words: object) -> int:
    """Start a process as the leader of a group that ends with the attack."""
    with log.open("w") as stream:
        process = subprocess.Popen(
            list(map(str, words)), stdout=stream, stderr=stream, start_new_session=True,
            env=environment() | _SILENCE | {"DASK_TEMPORARY_DIRECTORY": str(log.parent)},
        )  # fmt: skip

    def end() -> None:
        if group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    stack.callback(end)
    return process.pid


@contextmanager
def _net() -> Iterator[Net]:
    """Make the namespaces and the cables, and take them away again."""
    net, leaves = Net(f"lzs{os.getpid()}"), ("driver", "one", "two")
    hub = f"{net.name}-hub"
    try:
        _ip("netns", "add", hub)
        _ip("-n", hub, "link", "set", "lo", "up")
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "addr", "add", f"{_HUB}/24", "dev", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for i, leaf in enumerate(leaves):
            there = f"{net.name}-{leaf}"
            _ip("netns", "add", there)
            _ip("-n", hub, "link", "add", f"to-{leaf}", "type", "veth", "peer", "name", "cable", "netns", there)
            _ip("-n", hub, "link", "set", f"to-{leaf}", "master", "bridge", "up")
            _ip("-n", there, "addr", "add", f"{_HUB[:-1]}{i + 2}/24", "dev", "cable")
            _ip("-n", there, "link", "set", "cable", "up")
            _ip("-n", there, "link", "set", "lo", "up")
        yield net
    finally:
        for leaf in ("hub", *leaves):
            subprocess.run(["ip", "netns", "del", f"{net.name}-{leaf}"], capture_output=True, check=False)


def _may() -> bool:
    """Whether namespaces with bridges and cables can be made here."""
    try:
        with _net():
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True)

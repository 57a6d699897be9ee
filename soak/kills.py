"""Attack on runs: kill -9 of drivers and workers, at random moments and at chosen ones.

After each death of a driver no process of it is left; what was kept stays kept; and in the end the results are, byte
for byte, those of a quiet run.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import numpy as np

from soak.sweeps import PLAN, ended, exported, group, none_left, said, shown, started
from soak.tally import Deadline, Tally

GOALS = {"tried": 40, "drivers killed": 10, "workers killed": 3}
_KILLS = 8  # of one run, before it is let go to its end


def attack(tally: Tally, rng: np.random.Generator, deadline: Deadline) -> None:
    """Kill one run after another, several times each, until the time is over."""
    while deadline and tally.tried < 3 * GOALS["tried"]:
        with tempfile.TemporaryDirectory() as folder:
            _storm(tally, rng, deadline, Path(folder))


def _storm(tally: Tally, rng: np.random.Generator, deadline: Deadline, folder: Path) -> None:
    plan, store = folder / "a.toml", folder / "a.sqlite"
    plan.write_text(PLAN.format(d=int(rng.integers(8, 30)), draws=4, steps=400, seed=int(rng.integers(1000))))
    args = ("run", plan, "--workers", int(rng.integers(2, 4)), "--store", store)
    held, wounds = 0, []
    moments = [_when_made, _when_workers_appear, _when_a_result_is_in, _at_any_time, _when_the_end_is_near]
    driver = None
    try:
        for _ in range(_KILLS):
            if not deadline:
                break
            driver = driver or started(*args, folder=folder)
            moment = moments[int(rng.integers(len(moments)))]
            victim = "worker" if rng.random() < 0.4 else "driver"
            moment(driver, store, rng)
            time.sleep(float(rng.exponential(0.05)) if rng.random() < 0.5 else 0.0)
            wounds.append(f"{victim} {moment.__name__[1:]}")
            what = f"{shown(*args)} with {plan.read_text()!r}, kills: {', '.join(wounds)}"
            if victim == "worker":
                _kill_a_worker(tally, rng, driver)
                continue
            if driver.poll() is None:
                tally.count("drivers killed")
            driver.kill()
            driver.wait()
            tally.check(none_left(driver.pid), f"{what}: processes outlive their driver")
            driver, now = None, _kept(store)
            tally.check(now >= held, f"{what}: {held} results were kept, {now} are left")
            held = now
        _finish(tally, args, folder, driver, wounds)
    finally:
        if driver is not None and group(driver.pid):
            os.killpg(driver.pid, signal.SIGKILL)


def _finish(tally: Tally, args: tuple[object, ...], folder: Path, driver: Popen[str] | None, wounds: list[str]) -> None:
    """Let the run end; workers that died three times without a result between may have ended it in one line."""
    store = folder / "a.sqlite"
    what = f"{shown(*args)} with {(folder / 'a.toml').read_text()!r}, kills: {', '.join(wounds)}"
    if driver is not None:
        first = ended(driver, folder)
        tally.check(first.code == 0 or first.one_line, f"{what}: {first}")
        tally.check(none_left(driver.pid), f"{what}: processes outlive their driver")
    last = said(*args, folder=folder)
    tally.check(last.code == 0 and last.err == "", f"{what}: {last}")
    quiet = said("run", folder / "a.toml", "--workers", 1, "--store", folder / "quiet.sqlite", folder=folder)
    if last.code == 0 and quiet.code == 0:
        same = exported(store, folder) == exported(folder / "quiet.sqlite", folder)
        tally.check(same, f"{what}: other bytes than those of a quiet run")
        names = {path.name for path in folder.iterdir()}
        clean = names == {"a.toml", "a.sqlite", "quiet.sqlite", "exported.csv", "out.log", "err.log"}
        tally.check(clean, f"{what}: left behind: {sorted(names)}")
    tally.check(quiet.code == 0, f"{what}: the quiet run: {quiet}")


def _kept(store: Path) -> int:
    from lazyscope import sweep

    return sum(plan.done for plan in sweep.status(store)[0]) if store.exists() else 0


def _workers(driver: Popen[str]) -> list[int]:
    """Return the workers of a driver: what its group has beside itself that loky started."""
    found = []
    for pid in group(driver.pid):
        try:
            if b"popen_loky" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def _kill_a_worker(tally: Tally, rng: np.random.Generator, driver: Popen[str]) -> None:
    workers = sorted(_workers(driver))
    if workers:
        try:
            os.kill(workers[int(rng.integers(len(workers)))], signal.SIGKILL)
            tally.count("workers killed")
        except ProcessLookupError:
            tally.count("workers gone before")


def _until(driver: Popen[str], holds: Callable[[], object], pause: float = 0.002) -> None:
    """Wait until something holds, or the driver has ended."""
    while driver.poll() is None and not holds():
        time.sleep(pause)


def _when_made(driver: Popen[str], store: Path, rng: np.random.Generator) -> None:
    """When the lock, the half-made store or the store appears."""
    end = ("-lock", "", "-wal")[int(rng.integers(3))]
    _until(driver, store.with_name(store.name + end).exists, 0.0005)


def _when_workers_appear(driver: Popen[str], store: Path, rng: np.random.Generator) -> None:
    """Between the start of the workers and their first task."""
    _until(driver, lambda: _workers(driver))


def _when_a_result_is_in(driver: Popen[str], store: Path, rng: np.random.Generator) -> None:
    before = _plainly(store)
    _until(driver, lambda: _plainly(store) > before, 0.01)


def _when_the_end_is_near(driver: Popen[str], store: Path, rng: np.random.Generator) -> None:
    """When the log is worked off and the store brought to rest."""
    log = store.with_name(store.name + "-wal")
    _until(driver, log.exists)
    if _plainly(store) > 60:
        _until(driver, lambda: not log.exists(), 0.0005)


def _at_any_time(driver: Popen[str], store: Path, rng: np.random.Generator) -> None:
    time.sleep(float(rng.uniform(0.0, 4.0)))


def _plainly(store: Path) -> int:
    """Return how many results there are, read beside the driver; 0 while there is no answer."""
    if not store.exists():
        return 0
    db = sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=5.0)
    try:
        return int(db.execute("SELECT count(*) FROM results").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        db.close()

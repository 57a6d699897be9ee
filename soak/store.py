"""Attack on stores: a full disk at every stage, kills inside a checkpoint, flipped bits, lost and cut logs.

After each: no wrong result; what was acknowledged is there wherever SQLite promises it; the store opens again or is
refused in one line and left as it was; and with room again the same command gives the bytes of a quiet run.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from soak.sweeps import PLAN, Said, environment, exported, said, shown
from soak.tally import Deadline, Tally

GOALS = {"tried": 200}
_ROWS = 40  # results of the filled store: some 4 MB, so that a checkpoint falls due while it is filled

# Fills a store with given rows, a line for each that is acknowledged. `spoil` is what happens on the way.
_FILL = """
import os, resource, signal, sys
import numpy as np
import lazyscope as ls
from lazyscope import sweep
from lazyscope.sweep.store import Outcome, Store

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

rng = np.random.default_rng(7)
plan = sweep.Plan.grid("a", [ls.QuadraticTarget([2.0, 1.0])], [ls.Trained()], widths=range(1, {rows} + 1))
with Store.writing("{store}") as store:
    store.enrol(plan)
    for i, task in enumerate(plan.tasks):
        row = {{"risk": rng.standard_normal(6_000)}}
        if task.key in store.finished():
            continue
        {spoil}
        store.add(Outcome(task.key, row, None, 0.1, "{{}}"))
        print(i, flush=True)
"""


def attack(tally: Tally, rng: np.random.Generator, deadline: Deadline) -> None:
    """Go round the kinds of fault until the time is over."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        quiet = _quiet(folder)
        kinds = [_limited, _in_checkpoint, _flipped, _log_spoilt, _filled_up]
        if not _may_mount(folder):
            kinds.remove(_filled_up)
            tally.count("tmpfs not tried: may not mount")
        turn = 0
        while deadline and tally.tried < 3 * GOALS["tried"]:
            here = folder / str(turn)
            here.mkdir()
            kinds[turn % len(kinds)](tally, rng, here, quiet)
            shutil.rmtree(here)
            turn += 1


@contextmanager
def _small_disk(folder: Path, size: int) -> Iterator[Path]:
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "lazyscope-soak", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def _may_mount(folder: Path) -> bool:
    try:
        with _small_disk(folder, 2**16):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def _fill(store: Path, spoil: str = "pass") -> Said:
    script = _FILL.format(store=store, spoil=spoil, rows=_ROWS)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment(), timeout=300, check=False
    )
    return Said(done.returncode, done.stdout, done.stderr)


def _rows(store: Path) -> dict[str, bytes]:
    """Return the numbers that a store gives, by their task."""
    from lazyscope.sweep.store import Store

    with Store.reading(store) as opened:
        opened.plan("a")
        return {key: row["risk"].tobytes() for key, row in opened.rows(opened.finished()).items()}


def _quiet(folder: Path) -> dict[str, bytes]:
    """Return what a store holds that nothing happened to."""
    done = _fill(folder / "quiet.sqlite")
    if done.code:
        raise RuntimeError(f"the store could not even be filled quietly: {done}")
    return _rows(folder / "quiet.sqlite")


def _holds(store: Path, quiet: dict[str, bytes], acknowledged: int) -> str:
    """Return what is wrong with a store, which must have what was acknowledged and go on to the whole."""
    try:
        kept = _rows(store) if store.exists() else {}
        if len(kept) < acknowledged:
            return f"{acknowledged} acknowledged, {len(kept)} kept"
        if any(quiet[key] != row for key, row in kept.items()):
            return "a wrong number"
        done = _fill(store)
        if done.code:
            return f"does not go on: {done}"
        if _rows(store) != quiet:
            return "other numbers than those of a quiet run"
        left = sorted(path.name for path in store.parent.iterdir() if path.name.startswith((store.name, ".")))
        return "" if left == [store.name] else f"left behind: {left}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _told(done: Said) -> bool:
    """Whether a script that met a fault ended with one of our own errors, which is one line by construction."""
    return done.code == 1 and done.err.strip().splitlines()[-1].startswith("lazyscope.errors.")


def _limited(tally: Tally, rng: np.random.Generator, here: Path, quiet: dict[str, bytes]) -> None:
    """No file may grow beyond a size, from some result on: every stage from the lock file to the last checkpoint."""
    size = int(np.exp(rng.uniform(np.log(100), np.log(6e6)))) if rng.random() < 0.9 else 0
    after = int(rng.integers(_ROWS))
    spoil = f"limit({size}) if i == {after} else None"
    done = _fill(here / "a.sqlite", spoil)
    what = f"limit of {size} bytes a file from result {after} on"
    tally.count("full by a limit" if done.code else "room enough")
    tally.check(done.code == 0 or _told(done), f"{what}: {done}")
    wrong = _holds(here / "a.sqlite", quiet, len(done.out.split()))
    tally.check(not wrong, f"{what}: {wrong}")


def _in_checkpoint(tally: Tally, rng: np.random.Generator, here: Path, quiet: dict[str, bytes]) -> None:
    """The process dies when a checkpoint has come so far: the limit stops it there, and the kill follows at once."""
    size = int(rng.integers(8192, 2_000_000))
    after = int(rng.integers(5, _ROWS))
    checkpoint = "PASSIVE" if rng.random() < 0.5 else "TRUNCATE"
    spoil = (
        f"i == 0 and store._db.execute('PRAGMA wal_autocheckpoint = 0')\n"
        f"        if i == {after}:\n"
        f"            limit({size})\n"
        f"            try: store._db.execute('PRAGMA wal_checkpoint({checkpoint})')\n"
        f"            finally: os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = _fill(here / "a.sqlite", spoil)
    what = f"killed in a checkpoint ({checkpoint}) at {size} bytes, after {after} results"
    tally.count("killed in a checkpoint")
    wrong = _holds(here / "a.sqlite", quiet, len(done.out.split())) if done.code == -9 else f"no kill: {done}"
    tally.check(not wrong, f"{what}: {wrong}")


def _flipped(tally: Tally, rng: np.random.Generator, here: Path, quiet: dict[str, bytes]) -> None:
    """Some bits of the file are other than written: refused, or right; never wrong, never a traceback."""
    for _ in range(12):
        store = here / "a.sqlite"
        shutil.copy(here.parent / "quiet.sqlite", store)
        whole = store.stat().st_size
        page = 4096 * int(rng.integers(min(whole // 4096, 40) if rng.random() < 0.5 else whole // 4096))
        some = page + rng.integers(4096, size=int(rng.integers(1, 9)))
        places = some if rng.random() < 0.8 else rng.integers(whole, size=64)
        _flip(store, places, rng)
        spoilt = store.read_bytes()
        what = f"bits flipped at {sorted(map(int, places))}"
        outcome = _tried(_rows, store)
        tally.count("flips refused" if isinstance(outcome, str) else "flips without harm")
        if isinstance(outcome, str):
            tally.check(outcome.startswith("refused"), f"{what}: {outcome}")
        else:
            tally.check(all(quiet.get(key) == row for key, row in outcome.items()), f"{what}: a wrong number")
        tally.check(store.read_bytes() == spoilt, f"{what}: looking changed the file")
        outcome = _tried(_going_on, store)
        right = outcome == quiet or (isinstance(outcome, str) and outcome.startswith("refused"))
        tally.check(right, f"{what}: going on: {outcome if isinstance(outcome, str) else 'a wrong number'}")
    status = said("status", store, folder=here)
    tally.check(status.code == 0 or status.one_line, f"{what}: {shown('status', store)}: {status}")


def _going_on(store: Path) -> dict[str, bytes]:
    """Fill a store in this process, as `_FILL` does, and return what it has then."""
    import lazyscope as ls
    from lazyscope import sweep
    from lazyscope.sweep.store import Outcome, Store

    rng = np.random.default_rng(7)
    plan = sweep.Plan.grid("a", [ls.QuadraticTarget([2.0, 1.0])], [ls.Trained()], widths=range(1, _ROWS + 1))
    with Store.writing(store) as opened:
        opened.check_unchanged(plan)
        opened.statuses()
        opened.failures("a")
        opened.versions("a")
        opened.enrol(plan)
        finished = opened.finished()
        for task in plan.tasks:
            row = {"risk": rng.standard_normal(6_000)}
            if task.key not in finished:
                opened.add(Outcome(task.key, row, None, 0.1, "{}"))
        return {key: row["risk"].tobytes() for key, row in opened.rows(task.key for task in plan.tasks).items()}


def _flip(file: Path, places: np.ndarray, rng: np.random.Generator) -> None:
    data = bytearray(file.read_bytes())
    for at in places:
        data[int(at)] ^= 1 << int(rng.integers(8))
    file.write_bytes(data)


def _tried(call: Callable[[Path], dict[str, bytes]], store: Path) -> dict[str, bytes] | str:
    """Return what a call gives, or what it says against it."""
    from lazyscope.errors import LazyscopeError

    try:
        return call(store)
    except LazyscopeError as error:
        return f"refused: {error}" if "\n" not in str(error) else f"more than a line: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _log_spoilt(tally: Tally, rng: np.random.Generator, here: Path, quiet: dict[str, bytes]) -> None:
    """A driver dies with its log not worked off, or half; then the log, or a part of it, is lost or spoilt.

    What the log alone held is lost with it. What is left is right, or refused.
    """
    store, log = here / "a.sqlite", here / "a.sqlite-wal"
    after = int(rng.integers(3, _ROWS))
    half = rng.random() < 0.5
    stop = f"limit({int(rng.integers(8192, 10**6))}); store._db.execute('PRAGMA wal_checkpoint')" if half else "pass"
    spoil = (
        f"i == 0 and store._db.execute('PRAGMA wal_autocheckpoint = 0')\n"
        f"        if i == {after}:\n"
        f"            try: {stop}\n"
        f"            finally: os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = _fill(store, spoil)
    fate = ("lost", "cut", "flipped", "store lost")[int(rng.integers(4))]
    what = f"log {fate} after {after} results{', half worked off' if half else ''}"
    if done.code != -9:
        tally.check(False, f"{what}: no kill: {done}")
        return
    if fate == "lost":
        log.unlink()
    elif fate == "cut":
        os.truncate(log, int(rng.integers(log.stat().st_size)))
    elif fate == "flipped":
        _flip(log, rng.integers(log.stat().st_size, size=int(rng.integers(1, 20))), rng)
    else:
        store.unlink()
    tally.count(f"log {fate}")
    outcome = _tried(_rows, store)
    if isinstance(outcome, str):
        tally.check(outcome.startswith("refused"), f"{what}: {outcome}")
    else:
        tally.check(all(quiet.get(key) == row for key, row in outcome.items()), f"{what}: a wrong number")
    before = {path.name: path.read_bytes() for path in (store, log) if path.exists()}
    done = _fill(store)
    tally.check(done.code == 0 or _told(done), f"{what}: going on: {done}")
    if done.code == 0:
        tally.check(_tried(_rows, store) == quiet, f"{what}: other numbers after going on")
    else:
        after_ = {path.name: path.read_bytes() for path in (store, log) if path.exists()}
        tally.check(after_ == before, f"{what}: refused, but changed: {done}")


def _filled_up(tally: Tally, rng: np.random.Generator, here: Path, quiet: dict[str, bytes]) -> None:
    """The real command on a real disk that is too small; then the disk is made larger, and the command run again."""
    size = int(np.exp(rng.uniform(np.log(8_192), np.log(600_000)))) // 4096 * 4096
    workers = int(rng.integers(1, 3))
    plan = here / "a.toml"
    plan.write_text(PLAN.format(d=int(rng.integers(8, 40)), draws=2, steps=40, seed=int(rng.integers(1000))))
    args = ("run", plan, "--workers", workers, "--store")
    what = f"{shown(*args, 'disk/a.sqlite')} on a disk of {size} bytes, with {plan.read_text()!r}"
    with _small_disk(here, size) as disk:
        store = disk / "a.sqlite"
        for _ in range(2):
            done = said(*args, store, folder=here)
            tally.check(done.code == 0 or done.one_line, f"{what}: {done}")
            if done.code == 0:
                break
            tally.count("disk full" if "the disk is full" in done.err else "disk full, told otherwise")
            held = store.exists()
            tally.check(
                ("is kept" in done.err) == held, f"{what}: the store {'is' if held else 'is not'} there: {done}"
            )
        if store.exists():
            look = said("status", store, folder=here)
            tally.check(look.code == 0 or look.one_line, f"{what}: status: {look}")
        kept = _plainly(store)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        done = said(*args, store, "--json", folder=here)
        tally.check(done.code == 0, f"{what}: with room again: {done}")
        if done.code == 0:
            tally.check(f'"reused": {kept},' in done.out, f"{what}: {kept} were kept, then {done}")
            quietly = said(*args, here / "quiet.sqlite", folder=here)
            same = quietly.code == 0 and exported(here / "quiet.sqlite", here) == exported(store, here)
            tally.check(same, f"{what}: other bytes than those of a quiet run; {quietly}")
            names = sorted(path.name for path in disk.iterdir())
            tally.check(names == ["a.sqlite"], f"{what}: left behind: {names}")


def _plainly(store: Path) -> int:
    """Return how many results a copy of a store has for SQLite alone; 0 where there is no store."""
    if not store.exists():
        return 0
    with tempfile.TemporaryDirectory() as place:
        for path in store.parent.glob("a.sqlite*"):
            if not path.name.endswith(("-shm", "-lock")):
                shutil.copy(path, place)
        with closing(sqlite3.connect(Path(place, store.name))) as db:
            return int(db.execute("SELECT count(*) FROM results").fetchone()[0])

"""A full disk and a crash at the worst moment: what a store was given it still has, and the same command goes on."""

import subprocess
import sys

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import sweep
from lazyscope.errors import LazyscopeError, UnreadableFile
from lazyscope.sweep.store import Store

PLAN = sweep.Plan.grid("a", [ls.QuadraticTarget.exponential(12)], [ls.NeuralTangent()], widths=[1, 2, 3, 4], draws=2)

# A process with a store that is being filled: `big` is a row of about 2 MB, three of which make a checkpoint due.
FILLING = """
import os, resource, signal
import numpy as np
import lazyscope as ls
from lazyscope import sweep
from lazyscope.sweep.store import Outcome, Store

def limit(bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, resource.RLIM_INFINITY))

def die():
    os.kill(os.getpid(), signal.SIGKILL)

plan = sweep.Plan.grid("a", [ls.QuadraticTarget.exponential(12)], [ls.NeuralTangent()], widths=[1, 2, 3, 4], draws=2)
big = {"risk": np.random.default_rng(0).standard_normal(100_000)}
outcomes = [Outcome(task.key, big, None, 0.1, "{}") for task in plan.tasks]
"""
# The log is whole and the file half written, which is how a full disk leaves it too.
IN_A_CHECKPOINT = """
with Store.writing("a.sqlite") as store:
    store.enrol(plan)
    store._db.execute("PRAGMA wal_autocheckpoint = 0")
    for outcome in outcomes[:3]:
        store.add(outcome)
    limit(1_000_000)
    try:
        store._db.execute("PRAGMA wal_checkpoint")
    except Exception:
        die()
"""
# SQLite undoes such a change from its journal, but only where it may write.
IN_A_CHANGE = """
import sqlite3
with Store.writing("a.sqlite") as store:
    store.enrol(plan)
    for outcome in outcomes[:3]:
        store.add(outcome)
db = sqlite3.connect("a.sqlite", isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN")
db.execute("UPDATE results SET result = replace(result, '0', '9') WHERE rowid = 1")
die()
"""


def filling(script):
    done = subprocess.run(
        [sys.executable, "-c", FILLING + script], capture_output=True, text=True, timeout=100, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(("script", "log"), [(IN_A_CHECKPOINT, "-wal"), (IN_A_CHANGE, "-journal")], ids=["wal", "undo"])
def test_a_crash_in_the_middle_of_a_change_loses_nothing(here, script, log):
    assert filling(script) == (-9, "")
    assert (here / f"a.sqlite{log}").stat().st_size > 0
    assert sweep.status("a.sqlite")[0][0].done == 3
    with Store.reading("a.sqlite") as store:
        rows = store.rows(task.key for task in PLAN.tasks)
    given = np.random.default_rng(0).standard_normal(100_000)
    assert [row["risk"].tobytes() for row in rows.values()] == [given.tobytes()] * 3
    summary = sweep.run(PLAN, "a.sqlite", workers=1)
    assert (summary.reused, summary.computed) == (3, 5)
    assert [path.name for path in here.iterdir()] == ["a.sqlite"]


def test_a_full_disk_is_one_true_line_and_the_same_command_goes_on(here):
    """The file may not grow beyond 6 MB: the first checkpoint fails half way, then the log is full too."""
    script = """
limit(6_000_000)
with Store.writing("a.sqlite") as store:
    store.enrol(plan)
    for outcome in outcomes:
        store.add(outcome)
        print("kept", flush=True)
"""
    code, told = filling(script)
    assert code == 1
    assert told.splitlines()[-1].endswith(
        "The store a.sqlite could not be used: disk I/O error. What it holds is kept. Run the same command again."
    )
    kept = sweep.status("a.sqlite")[0][0].done
    assert 0 < kept < len(PLAN.tasks)
    assert sweep.run(PLAN, "a.sqlite", workers=1).reused == kept
    assert [path.name for path in here.iterdir()] == ["a.sqlite"]


def test_a_store_that_found_no_rest_is_brought_to_it_by_the_next_run(here):
    """All results are in, and the disk is full when the log is to be worked off."""
    script = """
sweep.run(plan, "a.sqlite", workers=1)
with Store.writing("a.sqlite") as store:
    store._db.execute("PRAGMA wal_autocheckpoint = 0")
    for outcome in outcomes[:3]:
        store.add(outcome)
    limit(1_000_000)
"""
    assert filling(script) == (0, "")
    assert (here / "a.sqlite-wal").stat().st_size > 0
    assert sweep.run(PLAN, "a.sqlite", workers=1).reused == len(PLAN.tasks)
    assert sweep.status("a.sqlite")[0][0].done == len(PLAN.tasks)
    assert [path.name for path in here.iterdir()] == ["a.sqlite"]


@pytest.mark.parametrize("most", [0, 1000, 5000, 20_000, 40_000])
def test_no_room_for_the_store_itself_leaves_nothing(here, most):
    code, told = filling(f"limit({most})\nsweep.run(plan, 'a.sqlite', workers=1)")
    assert code == 1
    said = "The store a.sqlite could not be used: disk I/O error. Nothing was computed. Run the same command again."
    assert told.splitlines()[-1].endswith(said)
    assert list(here.iterdir()) == []


def test_the_disk_is_called_full_where_sqlite_says_so(here):
    sweep.run(PLAN, "a.sqlite", workers=1)
    must = r"a\.sqlite could not be used: the disk is full\. What it holds is kept\. Make room, and run the same"
    more = sweep.Plan.union("b", [PLAN])
    with pytest.raises(LazyscopeError, match=must), Store.writing("a.sqlite") as store:
        store._db.execute("PRAGMA max_page_count = 1")
        store._db.execute("PRAGMA cache_size = 1")
        for i in range(200):
            store.enrol(sweep.Plan(f"b{i}", more.tasks))
    assert sweep.run(PLAN, "a.sqlite", workers=1).reused == len(PLAN.tasks)


def test_a_log_without_its_store_is_not_taken_for_a_new_ones(here, snapshot):
    assert filling(IN_A_CHECKPOINT)[0] == -9
    (here / "a.sqlite").unlink()
    (here / "a.sqlite-lock").unlink()
    (here / "a.sqlite-shm").unlink()
    before = snapshot()
    with pytest.raises(UnreadableFile, match=r"Got the log a\.sqlite-wal without it instead"):
        sweep.run(PLAN, "a.sqlite", workers=1)
    assert snapshot() == before


def test_half_a_store_of_a_dead_process_is_cleared_away(here):
    for name in (".a.123.part.sqlite", ".a.123.part.sqlite-journal", ".a.b.part.sqlite", ".ab.1.part.sqlite"):
        (here / name).write_bytes(b"half")
    sweep.run(PLAN, "a.sqlite", workers=1)
    assert {path.name for path in here.iterdir()} == {"a.sqlite", ".a.b.part.sqlite", ".ab.1.part.sqlite"}


def test_a_look_from_another_thread_leaves_the_locks_of_a_run(here):
    """To close a file drops all locks that this process has on it: two could then write at once."""
    sweep.run(PLAN, "a.sqlite", workers=1)
    writer = "import sqlite3; sqlite3.connect('a.sqlite', timeout=0).execute('BEGIN IMMEDIATE')"
    with Store.writing("a.sqlite") as store:
        store._db.execute("BEGIN IMMEDIATE")
        sweep.status("a.sqlite")
        done = subprocess.run([sys.executable, "-c", writer], capture_output=True, text=True, check=False)
        store._db.execute("ROLLBACK")
    assert "database is locked" in done.stderr

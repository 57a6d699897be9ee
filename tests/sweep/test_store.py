"""A store gives back the bits it was given, and touches nothing that is not its own."""

import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import sweep
from lazyscope.errors import InvalidParameter, LazyscopeError, UnreadableFile
from lazyscope.sweep import lock
from lazyscope.sweep.store import Outcome, Store

PLAN = sweep.Plan.grid("a", [ls.QuadraticTarget([2.0, 1.0])], [ls.Trained()], widths=[1, 2])


def filled(path="a.sqlite"):
    sweep.run(PLAN, path, workers=1)
    return path


def test_numbers_come_back_bit_for_bit(here):
    rng = np.random.default_rng(0)
    row = {
        "risk": np.frombuffer(rng.bytes(8 * 400)).copy(),
        "edge": np.array([[0.0, -0.0, np.inf, 5e-324], [1e308, 0.1, 1 / 3, -np.inf]]),
        "single": rng.standard_normal((2, 3, 1)).astype(np.float32),
        "count": np.array([2**62, -1]),
        "diverged": np.array([[True, False]]),
        "scalar": np.array(0.3),
    }
    row["risk"][np.isnan(row["risk"])] = 0.0
    with Store.writing("a.sqlite") as store:
        store.enrol(PLAN)
        store.add(Outcome(PLAN.tasks[0].key, row, None, 0.1, "{}"))
        back = store.rows([PLAN.tasks[0].key])[PLAN.tasks[0].key]
    assert {name: (array.dtype, array.shape, array.tobytes()) for name, array in row.items()} == {
        name: (array.dtype, array.shape, array.tobytes()) for name, array in back.items()
    }


def test_a_store_holds_all_that_a_plan_is(here, tiny):
    with Store.writing("a.sqlite") as store:
        store.enrol(PLAN)
        store.enrol(tiny)
    with Store.reading("a.sqlite") as store:
        assert store.names() == ["a", "tiny"]
        assert store.plan("tiny").digest == tiny.digest
        with pytest.raises(InvalidParameter, match=r"be one of the plans of a\.sqlite: a, tiny\. Got none"):
            store.plan()
    again = [task.work.compute() for task in store_plan("tiny").tasks[:6]]
    for row, task in zip(again, tiny.tasks, strict=False):
        assert all(np.array_equal(row[name], values) for name, values in task.work.compute().items())


def store_plan(name):
    with Store.reading("a.sqlite") as store:
        return store.plan(name)


def test_at_rest_it_is_one_plain_file(here):
    filled()
    assert [path.name for path in here.iterdir()] == ["a.sqlite"]
    assert sqlite3.connect("a.sqlite").execute("PRAGMA journal_mode").fetchone() == ("delete",)


def foreign_database(path):
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE results (precious TEXT)")
    db.close()


def damaged_store(path):
    filled(path)
    data = bytearray(path.read_bytes())
    data[4096:20000] = b"\xa5" * (20000 - 4096)
    path.write_bytes(data)


def misnamed_store(path):
    """SQLite names the table that is spoilt in a message that is no text then."""
    filled(path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"tablefailuresfailures", b"table\xf3ailures\xf3ailures"))


def newer_store(path):
    filled(path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (foreign_database, "another database"),
        (lambda path: path.write_text("N,risk\n1,0.5\n" * 100), "file is not a database"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"junk" * 500), "not a database|malformed|another"),
        (lambda path: path.write_bytes(b""), "an empty file"),
        (lambda path: path.mkdir(), "folder"),
        (damaged_store, "damaged"),
        (misnamed_store, "damaged"),
        (newer_store, "layout 99"),
    ],
    ids=["foreign", "text", "junk", "empty", "folder", "damaged", "misnamed", "newer"],
)
def test_what_is_no_store_is_refused_and_left_as_it_is(here, snapshot, make, told):
    path = here / "a.sqlite"
    make(path)
    before = snapshot()
    for use in (lambda: sweep.run(PLAN, path), lambda: sweep.load("a", path), lambda: sweep.export(path, "a.csv")):
        with pytest.raises(LazyscopeError, match=told) as error:
            use()
        assert "\n" not in str(error.value)
    assert snapshot() == before


def test_the_log_of_a_foreign_database_is_not_worked_off(here, snapshot):
    """An ordinary connection would write the log back into the file and remove it when it closes."""
    script = (
        "import os, sqlite3; db = sqlite3.connect('a.sqlite'); db.execute('PRAGMA journal_mode = WAL');"
        "db.execute('CREATE TABLE t (x)'); db.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    before = snapshot()
    assert len(before["a.sqlite-wal"]) > 0
    with pytest.raises(UnreadableFile, match="another database"):
        sweep.run(PLAN, "a.sqlite")
    assert snapshot() == before


def test_places_that_cannot_be_written(here):
    with pytest.raises(InvalidParameter, match="folder that exists"):
        sweep.run(PLAN, "missing/a.sqlite")
    with pytest.raises(LazyscopeError, match=r"could not be locked"):
        sweep.run(PLAN, "/proc/a.sqlite")  # which no permission opens, not even root's
    with pytest.raises(UnreadableFile, match="no such file"):
        sweep.load("a", "missing.sqlite")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"widths": [1, 3]}, "width from 1, 2 to 1, 3"),
        ({"seed": 4}, "seed from 0 to 4"),
        ({"draws": 3}, "number from 0 to 0, 1, 2"),
        ({"regimes": [ls.NeuralTangent()]}, "regime from Trained [0-9a-f]{6} to NeuralTangent [0-9a-f]{6}"),
        ({"problems": [ls.QuadraticTarget([2.0, 1.5])]}, "problem from QuadraticTarget"),
        ({"widths": [2, 1]}, "their order"),
    ],
)
def test_a_plan_that_changed_under_its_name_is_refused(here, snapshot, change, told):
    filled()
    before = snapshot()
    whole = {"name": "a", "problems": [ls.QuadraticTarget([2.0, 1.0])], "regimes": [ls.Trained()], "widths": [1, 2]}
    changed = sweep.Plan.grid(**whole | change)
    with pytest.raises(InvalidParameter, match=f"{told}.* Give the changed plan another name or another store"):
        sweep.run(changed, "a.sqlite")
    assert snapshot() == before
    assert sweep.run(sweep.Plan("b", changed.tasks), "a.sqlite", workers=1).complete


def test_plans_of_one_store_share_their_results(here):
    filled()
    wider = sweep.Plan.grid("wider", [ls.QuadraticTarget([2.0, 1.0])], [ls.Trained()], widths=[1, 2, 3])
    summary = sweep.run(wider, "a.sqlite", workers=1)
    assert (summary.reused, summary.computed) == (2, 1)


def test_results_that_were_altered_are_noticed(here):
    for statement, told in (
        ("UPDATE results SET result = replace(result, '0.', '1.')", "the result of task"),
        ("UPDATE tasks SET specification = replace(specification, 'width', 'Width')", "task "),
        ("UPDATE arrays SET bytes = zeroblob(16)", "array "),
    ):
        filled()
        with sqlite3.connect("a.sqlite") as db:
            db.execute(statement)
        db.close()
        with pytest.raises(UnreadableFile, match=f"{told}[0-9a-f ]+is not what its fingerprint says"):
            sweep.load("a", "a.sqlite")
        (here / "a.sqlite").unlink()


def test_one_driver_at_a_time(here):
    filled()
    with lock.alone(here / "a.sqlite"):
        with pytest.raises(
            InvalidParameter, match=r"one run at a time. Got a.sqlite, which process \d+ on .* is filling"
        ):
            sweep.run(PLAN, "a.sqlite")
        plans, holder = sweep.status("a.sqlite")
        assert (plans[0].done, holder[:8]) == (2, "process ")
    assert sweep.status("a.sqlite")[1] is None
    assert [path.name for path in here.iterdir()] == ["a.sqlite"]


def test_the_lock_of_the_dead_is_free(here):
    script = (
        "import os, time; from pathlib import Path; from lazyscope.sweep import lock\n"
        "with lock.alone(Path('a.sqlite')): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert (here / "a.sqlite-lock").exists()
    assert lock.holder(here / "a.sqlite") is None
    assert sweep.run(PLAN, "a.sqlite", workers=1).complete
    assert [path.name for path in here.iterdir()] == ["a.sqlite"]


def test_a_full_disk_is_one_line_and_keeps_what_is_there(here):
    filled()
    with Store.writing("a.sqlite") as store, pytest.raises(sqlite3.OperationalError, match="full"):
        store._db.execute("PRAGMA max_page_count = 1")
        row = {"risk": np.random.default_rng(0).standard_normal(100_000)}
        store.add(Outcome(PLAN.tasks[0].key, row, None, 0.1, "{}"))
    assert [result.risk.values.tolist() for result in sweep.load("a", "a.sqlite")] == [[0.2, 0.0]]

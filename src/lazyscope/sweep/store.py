"""The store of a sweep: one SQLite file that takes each result as it arrives, and gives it back bit for bit.

One process writes, the driver; others may read meanwhile. A file that is not a store is recognised before SQLite
opens it for writing, and left as it is.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from lazyscope.checks import jsonable
from lazyscope.errors import InvalidParameter, UnreadableFile
from lazyscope.evidence.work import Row
from lazyscope.files import check_folder, replacing
from lazyscope.sweep import lock
from lazyscope.sweep.content import Array, Decoder, array_digest, canonical, defaults, digest, portable
from lazyscope.sweep.opening import APPLICATION, LAYOUT, LOGS, check_new, connected, damaged, recognise, told
from lazyscope.sweep.plan import Plan, Task

_TABLES = """
CREATE TABLE tasks (key TEXT PRIMARY KEY, specification TEXT NOT NULL);
CREATE TABLE arrays (digest TEXT PRIMARY KEY, dtype TEXT NOT NULL, shape TEXT NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE plans (name TEXT PRIMARY KEY, digest TEXT NOT NULL);
CREATE TABLE members (
    plan TEXT NOT NULL REFERENCES plans, position INTEGER NOT NULL, task TEXT NOT NULL REFERENCES tasks,
    PRIMARY KEY (plan, position)
);
CREATE TABLE results (
    task TEXT PRIMARY KEY REFERENCES tasks, result TEXT NOT NULL, digest TEXT NOT NULL,
    seconds REAL NOT NULL, versions TEXT NOT NULL, finished TEXT NOT NULL
);
CREATE TABLE failures (task TEXT PRIMARY KEY REFERENCES tasks, message TEXT NOT NULL, finished TEXT NOT NULL);
"""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a task: a row of results, or the message of the error that it ended with."""

    key: str
    row: Row | None
    failure: str | None
    seconds: float
    versions: str


@dataclass(frozen=True)
class Status:
    """How far a plan has come: its tasks, those with a result, those that failed last time, and seconds of work."""

    plan: str
    tasks: int
    done: int
    failed: int
    seconds: float


class Store:
    """An open store. `writing` makes it if need be and holds it alone; `reading` changes nothing."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._db = path, connection
        self._logging = self._enrolled = False

    # -- opening -----------------------------------------------------------------------------------------

    @classmethod
    @contextmanager
    def writing(cls, path: str | os.PathLike[str]) -> Iterator[Store]:
        """Open a store to fill it; refuse a place that cannot be written, and a file that is something else."""
        file = Path(path)
        if file.is_dir() or (file.exists() and not file.is_file()):
            got = f"the folder {file}" if file.is_dir() else f"{file}, which is none"
            raise InvalidParameter.of("sweep", "store", "be a file", got)
        check_folder(file.parent, "sweep", "store")
        if file.exists():
            recognise(file)  # before even the lock file is made
            if not os.access(file, os.W_OK):
                raise InvalidParameter.of("sweep", "store", "be a file that you may write to", file)
        with told(file), lock.alone(file):
            made = not file.exists()
            if made:
                check_new(file)
                _make(file)
            with cls.reading(file) as look:
                look.check()
            used = not made
            try:
                with connected(file, "rw") as db:
                    store = cls(file, db)
                    try:
                        yield store
                    finally:
                        used = used or store._enrolled
                        store._close_log()
            finally:
                if not used:  # made in vain; the log first, which is nothing alone
                    for end in (*LOGS, "-shm", ""):
                        file.with_name(file.name + end).unlink(missing_ok=True)

    @classmethod
    @contextmanager
    def reading(cls, path: str | os.PathLike[str]) -> Iterator[Store]:
        """Open a store to look at it, also while it is being filled."""
        file = Path(path)
        if not file.is_file():
            got = "a folder" if file.is_dir() else "no such file"
            raise UnreadableFile(f"The store {file} must be a file. Got {got} instead. Check the path.")
        with told(file), connected(file, "ro") as db:
            yield cls(file, db)

    def check(self) -> None:
        """Refuse a file whose pages do not hang together, or whose indices do not belong to its tables."""
        (verdict,) = self._db.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise damaged(self.path, " ".join(str(verdict).split()))

    # -- plans -------------------------------------------------------------------------------------------

    def check_unchanged(self, plan: Plan) -> None:
        """Refuse another plan under a name that is taken, and say how it differs."""
        known = self._db.execute("SELECT digest FROM plans WHERE name = ?", (plan.name,)).fetchone()
        if known is None or known[0] == plan.digest:
            return
        before = [json.loads(text) for _, text in self._members(plan.name)]
        now = [json.loads(task.specification) for task in plan.tasks]
        must = f"stay what it was when {plan.name!r} was first run with {self.path}"
        advice = "Give the changed plan another name or another store."
        raise InvalidParameter.of("sweep", "plan", must, f"a change of {_difference(before, now)}", advice)

    def enrol(self, plan: Plan) -> None:
        """Write down a plan and its tasks, if they are not."""
        if plan.name in self.names():
            return
        arrays = {name: array for task in plan.tasks for name, array in task.arrays.items()}
        with self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO arrays VALUES (?, ?, ?, ?)", map(_array_row, arrays.items()))
            tasks = ((task.key, task.specification) for task in plan.tasks)
            self._db.executemany("INSERT OR IGNORE INTO tasks VALUES (?, ?)", tasks)
            self._db.execute("INSERT INTO plans VALUES (?, ?)", (plan.name, plan.digest))
            members = ((plan.name, i, task.key) for i, task in enumerate(plan.tasks))
            self._db.executemany("INSERT INTO members VALUES (?, ?, ?)", members)
        self._enrolled = True

    def names(self) -> list[str]:
        """Return the names of the plans."""
        return [str(name) for (name,) in self._db.execute("SELECT name FROM plans ORDER BY name")]

    def plan(self, name: str | None = None) -> Plan:
        """Return a plan from what the store has written down; without a name, the only one."""
        names = self.names()
        if name is None and len(names) == 1:
            name = names[0]
        if name not in names:
            must = f"be one of the plans of {self.path}: {', '.join(names) or 'it has none'}"
            raise InvalidParameter.of("sweep", "plan", must, "none" if name is None else repr(name))
        decoder = Decoder(self._arrays())
        try:
            plan = Plan(name, tuple(self._task(key, text, decoder) for key, text in self._members(name)))
        except KeyError as error:
            raise damaged(self.path, f"array {str(error.args[0])[:8]} is missing") from None
        if (
            self._db.execute("SELECT 1 FROM plans WHERE (name, digest) = (?, ?)", (name, plan.digest)).fetchone()
            is None
        ):
            raise damaged(self.path, f"the plan {name!r} is not what its fingerprint says")
        return plan

    def _members(self, name: str) -> list[tuple[str, str]]:
        query = "SELECT key, specification FROM members JOIN tasks ON task = key WHERE plan = ? ORDER BY position"
        rows = self._db.execute(query, (name,)).fetchall()
        for key, text in rows:
            self._verify(text, key, "task", key)
        return rows

    def _verify(self, text: Any, known: Any, what: str, name: Any) -> None:
        if not isinstance(text, str) or digest(text) != known:
            raise damaged(self.path, f"{what} {str(name)[:8]} is not what its fingerprint says")

    def _task(self, key: str, text: str, decoder: Decoder) -> Task:
        written = json.loads(text)
        del written["numerics"]
        return Task(decoder.decode(written), text, key, {})

    def _arrays(self) -> dict[str, Array]:
        arrays = {}
        for name, dtype, shape, data in self._db.execute("SELECT * FROM arrays"):
            try:
                array = np.frombuffer(data, dtype=np.dtype(dtype)).reshape(json.loads(shape))
            except (TypeError, ValueError):  # a type, a shape or a size that was spoilt
                array = None
            if array is None or array_digest(array) != name:
                raise damaged(self.path, f"array {str(name)[:8]} is not what its fingerprint says")
            arrays[name] = array
        return arrays

    # -- results -----------------------------------------------------------------------------------------

    def add(self, outcome: Outcome) -> None:
        """Take an outcome, for good once this returns."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._transaction():
            self._db.execute("DELETE FROM failures WHERE task = ?", (outcome.key,))
            if outcome.row is None:
                self._db.execute("INSERT INTO failures VALUES (?, ?, ?)", (outcome.key, outcome.failure, now))
                return
            text = canonical({name: as_written(array) for name, array in outcome.row.items()})
            values = (outcome.key, text, digest(text), outcome.seconds, outcome.versions, now)
            self._db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)", values)

    def finished(self) -> set[str]:
        """Return the keys of all tasks that have a result."""
        return {key for (key,) in self._db.execute("SELECT task FROM results NOT INDEXED")}

    def rows(self, keys: Iterable[str]) -> dict[str, Row]:
        """Return the results of those of these tasks that have one."""
        rows: dict[str, Row | None] = dict.fromkeys(keys)
        # From the table itself, which holds a result beside its key: a spoilt index could give that of another task.
        for key, text, known in self._db.execute("SELECT task, result, digest FROM results NOT INDEXED"):
            if key in rows:
                self._verify(text, known, "the result of task", key)
                rows[key] = {name: as_array(value) for name, value in json.loads(text).items()}
        return {key: row for key, row in rows.items() if row is not None}

    def failures(self, plan: str) -> dict[str, str]:
        """Return key → message of the tasks of a plan that failed when they were last tried."""
        query = "SELECT key, message FROM failures f JOIN tasks ON f.task = key JOIN members m ON m.task = key "
        return dict(self._db.execute(query + "WHERE plan = ? ORDER BY position", (plan,)))

    def versions(self, plan: str) -> list[str]:
        """Return what computed the results of a plan, each different set of versions once."""
        query = "SELECT DISTINCT versions FROM results r JOIN members m ON r.task = m.task WHERE plan = ? ORDER BY 1"
        return [str(text) for (text,) in self._db.execute(query, (plan,))]

    def statuses(self) -> list[Status]:
        """Return how far each plan has come."""
        query = (
            "SELECT plan, count(*), count(r.task), count(f.task), coalesce(sum(seconds), 0.0) FROM members m "
            "LEFT JOIN results r ON r.task = m.task LEFT JOIN failures f ON f.task = m.task GROUP BY plan ORDER BY plan"
        )
        return [Status(*row) for row in self._db.execute(query)]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._open_log()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk has ended it already
                self._db.execute("ROLLBACK")
            raise

    def _open_log(self) -> None:
        """Before the first change: from now on a commit appends to a log, and readers are never in its way.

        The log is synced (FULL) before a commit returns: what was acknowledged survives the death of the process and
        the loss of power. A sync costs milliseconds, a task seconds.
        """
        if not self._logging:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._logging = True

    def _close_log(self) -> None:
        """At rest the store is one plain file; a reader that is looking on keeps the log a little longer.

        Also where this process wrote nothing: the one before may have found no room to bring the store to rest.
        """
        with suppress(sqlite3.OperationalError):
            if self._db.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA journal_mode = DELETE")


def _make(file: Path) -> None:
    """Make an empty store beside its place, and move it there whole: half a store is never seen."""
    with replacing(file) as part, closing(sqlite3.connect(part)) as db:
        db.executescript(f"BEGIN; {_TABLES} COMMIT;")
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {LAYOUT}")


def _array_row(item: tuple[str, Array]) -> tuple[str, str, str, bytes]:
    name, array = item
    plain = portable(array)
    return name, plain.dtype.str, json.dumps(plain.shape), plain.tobytes()


def as_written(array: Array) -> dict[str, Any]:
    """Write an array by the shortest digits that give back the same bits; ∞ as in every other file of lazyscope."""
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": jsonable(array.ravel())}


def as_array(written: Mapping[str, Any]) -> Array:
    """Read what `as_written` wrote."""
    dtype = np.dtype(written["dtype"])
    number: Callable[[Any], Any] = float if dtype.kind == "f" else dtype.type
    return np.array([number(value) for value in written["values"]], dtype=dtype).reshape(written["shape"])


def _difference(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> str:
    """Name the fields in which two lists of specifications differ, with their values where these are short."""
    told = []
    before, now = ([_flat(task) for task in tasks] for tasks in (before, now))
    for field in dict.fromkeys(name for task in (*now, *before) for name in task):
        old, new = (dict.fromkeys(_shown(_field(task, field)) for task in tasks) for tasks in (before, now))
        if set(old) != set(new):
            told.append(f"{field} from {_listed(old)} to {_listed(new)}")
    return " and ".join(told) if told else "which combinations there are, or their order"


def _flat(task: dict[str, Any]) -> dict[str, Any]:
    """Put the sizes of a run beside its other fields."""
    sizes: dict[str, Any] = task.get("sizes", {})
    return {name: value for name, value in task.items() if name != "sizes"} | sizes


def _field(task: dict[str, Any], name: str) -> Any:
    return task[name] if name in task else defaults(task["kind"]).get(name)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['kind']} {digest(canonical(value))[:6]}"
    return str(value[0]) if isinstance(value, list) else str(value)


def _listed(values: Iterable[str]) -> str:
    shown = list(values)
    return ", ".join(shown[:8]) + (", …" if len(shown) > 8 else "")

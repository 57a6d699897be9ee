"""Reference results: runs of the paper's protocol, shipped as data with their provenance.

A file of `reference/` holds the rows of a sweep by the fingerprints of its tasks, numbers by their shortest exact
digits. A row is lent only to a task with that fingerprint: a change of problem, protocol or numerics asks for new ones.

    python -m lazyscope.experiments.frame.references STORE OUT [COMMIT]
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lazyscope.evidence.work import Row
from lazyscope.sweep import Plan
from lazyscope.sweep.store import Outcome, Store, as_array, as_written


@dataclass(frozen=True, eq=False)
class Reference:
    """Rows by the fingerprint of their task; `provenance` says who computed them when, with what, in how long."""

    provenance: Mapping[str, Any]
    rows: Mapping[str, Row]

    @property
    def when(self) -> str:
        """Date and commit, for people."""
        return f"{self.provenance['date']} ({self.provenance['commit'][:7]})"

    def lend(self, plan: Plan, store: str | os.PathLike[str]) -> set[str]:
        """Put the rows that a plan has use for into a store, unless it has its own; return the keys of those in it."""
        ours = [task.key for task in plan.tasks if task.key in self.rows]
        if not ours:
            return set()
        with Store.writing(store) as opened:
            opened.enrol(plan)
            there = opened.rows(ours)
            for key in ours:
                if key not in there:
                    opened.add(Outcome(key, dict(self.rows[key]), None, 0.0, json.dumps(dict(self.provenance))))
        return {key for key in ours if key not in there or _same(there[key], self.rows[key])}


def _same(row: Row, other: Row) -> bool:
    """Whether two rows are the same to the last bit."""
    return row.keys() == other.keys() and all(np.array_equal(row[name], other[name]) for name in row)


def shipped() -> list[Reference]:
    """Return the reference results of the package."""
    folder = files("lazyscope.experiments.frame") / "reference"
    if not folder.is_dir():
        return []
    return [read(file.read_text(encoding="utf-8")) for file in folder.iterdir() if file.name.endswith(".json")]


def read(text: str) -> Reference:
    """Return the reference that `written` wrote.

    >>> row = {"risk": np.array([0.1, np.inf]), "rank": np.array([2])}
    >>> again = read(written({"commit": "abc", "date": "today"}, {"key": row})).rows["key"]
    >>> again["risk"], again["rank"]
    (array([0.1, inf]), array([2]))
    """
    document = json.loads(text)
    rows = {key: {name: as_array(array) for name, array in row.items()} for key, row in document["rows"].items()}
    return Reference(document["provenance"], rows)


def written(provenance: Mapping[str, Any], rows: Mapping[str, Row]) -> str:
    """Return reference results as JSON, one line for each task, so that a diff shows which task has changed."""
    lines = (
        f"{json.dumps(key)}: " + json.dumps({name: as_written(array) for name, array in row.items()}, allow_nan=False)
        for key, row in rows.items()
    )
    head = json.dumps(dict(provenance), indent=1, ensure_ascii=False)
    return f'{{"provenance": {head},\n"rows": {{\n' + ",\n".join(lines) + "\n}}\n"


def of_store(store: str | os.PathLike[str], commit: str) -> Reference:
    """Return everything that the plans of a store have computed, as a reference of today."""
    with Store.reading(store) as opened:
        keys: Iterable[str] = [task.key for name in opened.names() for task in opened.plan(name).tasks]
        rows = opened.rows(keys)
        versions = [json.loads(text) for name in opened.names() for text in opened.versions(name)]
        seconds = sum(status.seconds for status in opened.statuses())
    provenance = {
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds, 1),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "versions": versions,
    }
    return Reference(provenance, rows)


if __name__ == "__main__":
    store, out, *commit = sys.argv[1:]
    made = of_store(store, *commit or ["unknown"])
    Path(out).write_text(written(made.provenance, made.rows), encoding="utf-8")
    print(f"wrote {out}: {len(made.rows)} tasks")

"""One file for all validations: `summary.json` beside their results, with what each took and where its numbers stand.

A pytest plugin, which `make validate` asks for by `-p`. A run of some of the validations replaces
their entries and leaves the others, so that the parts of a validation may be run on different days.
"""

import datetime
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import scipy

import lazyscope

RESULTS = Path(__file__).parents[1] / "results"
START = time.monotonic()
_FOUND: dict[str, dict] = {}


def provenance(seconds: float) -> dict:
    """When, on what and with which versions something was measured, and how long it took."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "lazyscope": lazyscope.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "seconds": round(seconds, 1),
    }


def pytest_runtest_logreport(report):
    """Note a validation: its outcome and how long its call took; set-up counts to it, too."""
    entry = _FOUND.setdefault(report.nodeid, {"outcome": "passed", "seconds": 0.0})
    entry["seconds"] = round(entry["seconds"] + report.duration, 1)
    if not report.passed:
        entry["outcome"] = report.outcome


def pytest_sessionfinish(session):
    """Write the summary."""
    if _FOUND:
        write(RESULTS, _FOUND, time.monotonic() - START)


def write(folder: Path, found: dict[str, dict], seconds: float) -> dict:
    """Merge what was found into the summary of a folder, longest first, and return the whole."""
    path = folder / "summary.json"
    kept = json.loads(path.read_text(encoding="utf-8"))["validations"] if path.exists() else {}
    now = provenance(seconds)
    for name, entry in found.items():
        own = f"{name.rpartition('::')[2]}.json"
        numbers = own if (folder / own).exists() else None
        kept[name] = entry | {"date": now["date"], "machine": now["machine"], "numbers": numbers}
    order = sorted(kept, key=lambda name: -kept[name]["seconds"])
    minutes = round(sum(entry["seconds"] for entry in kept.values()) / 60.0, 1)
    whole = {"last run": now, "minutes of all": minutes, "validations": {name: kept[name] for name in order}}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return whole

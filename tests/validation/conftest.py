"""Slow validations leave what they measured, with provenance, in tests/validation/results."""

import datetime
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import pytest
import scipy

import lazyscope


@pytest.fixture
def keep(request):
    """Write what a validation measured beside it, under the test's own name, with its date, machine and duration."""
    start = time.monotonic()

    def write(**measured):
        folder = Path(__file__).parent / "results"
        folder.mkdir(exist_ok=True)
        record = {
            "validation": request.node.name,
            "measured": measured,
            "provenance": {
                "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "lazyscope": lazyscope.__version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scipy": scipy.__version__,
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                "seconds": round(time.monotonic() - start, 1),
            },
        }
        (folder / f"{request.node.name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    return write

"""Slow validations leave what they measured, with provenance, in tests/validation/results."""

import json
import time

import pytest
from tests.validation.summary.plugin import RESULTS, provenance


@pytest.fixture
def keep(request):
    """Write what a validation measured beside it, under the test's own name, with its date, machine and duration."""
    start = time.monotonic()

    def write(**measured):
        RESULTS.mkdir(exist_ok=True)
        took = provenance(time.monotonic() - start)
        record = {"validation": request.node.name, "measured": measured, "provenance": took}
        (RESULTS / f"{request.node.name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    return write

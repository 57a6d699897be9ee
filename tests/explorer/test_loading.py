"""Imports are done before the first answer: of threads that import at once, one may get a module that is half made."""

import subprocess
import sys
from pathlib import Path

ANSWERS_ALL = """
import sys
from lazyscope.errors import LazyscopeError
from lazyscope.explorer.api import answered
from lazyscope.explorer.loading import load
from lazyscope.explorer.views import VIEWS
from tests.explorer.conftest import STATES

load()
before = set(sys.modules)
for view, state in STATES:
    if view != "data":  # tables are read by a process of their own
        try:
            answered(VIEWS[view], VIEWS[view].state(**state))
        except LazyscopeError:
            pass
new = set(sys.modules) - before
print(*sorted(name for name in new if name.partition(".")[0] not in sys.stdlib_module_names))
"""


def test_no_answer_imports_anything():
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", ANSWERS_ALL]
    assert subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout.split() == []

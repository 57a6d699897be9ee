"""What all tests need."""

import os
import signal

import pytest

os.environ["LAZYSCOPE_PROGRESS"] = "0"  # lines of progress come by the clock: what a test compares has none of them


def pytest_configure(config):
    """Let Ctrl-C be tested: whoever starts us in the background has it ignored, and child processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


LONG = (
    "tests/explorer/crowd/", "tests/sweep/test_crashes.py", "tests/plugins/", "tests/explorer/", "tests/sweep/",
    "docs/test_papers.py", "docs/test_lessons.py", "docs/", "README.md",
)  # fmt: skip
"""Begun first, in this order: what takes long or waits for processes of its own must not be what ends last.

The crowd asks for every view, and so compiles what a fresh clone has not compiled yet. Crashes and plugins need none of
it, and the rest of the explorer begins after them: two processes that need the same code would compile it twice. Pages
and lessons, each a unit of seconds, begin before the rest: what ends last are the doctests of modules, which are short.
"""

SHARED = {
    "server": ("test_crowd", "test_browser", "test_accessibility", "test_honest_page", "test_tables_browser"),
    "answers": ("test_api", "test_export"),
}
"""Tests of the page that is served: one server, which knows the answers after the first time, does for all of them.

So do those that ask for answers without one: what they compile, they compile once.
"""

SEVERAL = ("test_registry", "test_design", "test_margin_dots", "test_ridge_dots", "test_sizes")
"""Tests of several experiments, each named in brackets."""


def pytest_collection_modifyitems(items):
    """Put what takes long first."""
    last = len(LONG)
    items.sort(key=lambda item: next((k for k, path in enumerate(LONG) if item.nodeid.startswith(path)), last))


def together(nodeid):
    """Say with which others a test runs in one worker, so that what they share is made once.

    A file shares its browser and other fixtures, tests of the page their server, an experiment its tiny numbers.
    """
    path, _, test = nodeid.partition("::")
    if path.startswith(("docs/", "tests/evidence/")):  # nothing is shared, and some take long
        return nodeid
    stem = path.rpartition("/")[2].removesuffix(".py")
    for name, stems in SHARED.items():
        if stem in stems:
            return name
    if not path.startswith("tests/experiments/"):
        return path
    if stem not in SEVERAL:
        return stem.removeprefix("test_").replace("_", "-")
    return test.partition("[")[2].rstrip("]") or path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Have a worker more than there are cores: tests of servers, kills and clusters wait for other processes."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give tests that belong `together` to one worker (xdist's own groups are lost on pytest 9.2)."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return together(nodeid)

    config.option.loadscopereorder = False
    return Together(config, log)

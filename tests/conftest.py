"""What all tests need."""

import os
import signal

import pytest

os.environ["LAZYSCOPE_PROGRESS"] = "0"  # lines of progress come by the clock: what a test compares has none of them


def pytest_configure(config):
    """Let Ctrl-C be tested: whoever starts us in the background has it ignored, and child processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


LONG = ("tests/sweep/", "tests/explorer/", "tests/plugins/", "docs/test_papers.py")
"""Begun first: what takes long or waits for processes of its own must not be what everybody waits for at the end."""


def pytest_collection_modifyitems(items):
    """With `--dist loadgroup`, tests that share a fixture of their module run in one worker: it is made once."""
    for item in items:
        # pytest has no public way to ask for the scope of a fixture
        made = getattr(item, "_fixtureinfo", None)
        shared = made and any(one[-1].scope == "module" for one in made.name2fixturedefs.values() if one)
        if shared and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))

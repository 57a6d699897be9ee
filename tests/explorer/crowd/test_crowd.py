"""Many clients at once, and clients that send nonsense. tests/validation has the same at full length."""

import urllib.request

import psutil

from lazyscope.explorer.views import VIEWS

from .clients import crowd
from .malformed import attack


def warm(address):
    """Let every view answer once: the first time some of them compile code, or load it."""
    for view in VIEWS:
        urllib.request.urlopen(f"{address}api/limit/{view}", timeout=300).read()


def test_fifty_clients_are_served_at_once(server):
    address = server[1]
    warm(address)
    took, errors = crowd(address, clients=50, seconds=2.0)
    assert errors == []
    assert len(took) >= 50


def test_malformed_requests_are_refused_and_leave_no_trace(server):
    process, address = server
    warm(address)
    attack(address, 1)
    memory = psutil.Process(process.pid).memory_info().rss
    statuses = attack(address, 6)
    assert sum(statuses.values()) > 45
    assert all(400 <= status < 500 for status in statuses), statuses
    assert psutil.Process(process.pid).memory_info().rss < memory + 20e6
    warm(address)

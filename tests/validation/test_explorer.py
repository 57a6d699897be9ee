"""The explorer under load, at full length: fifty clients for 20 s, a thousand malformed requests."""

import statistics

import psutil
import pytest

from ..explorer.conftest import explore  # noqa: TID252 (tests are no package that could be named)
from ..explorer.crowd.clients import crowd  # noqa: TID252 (tests are no package that could be named)
from ..explorer.crowd.malformed import attack  # noqa: TID252 (tests are no package that could be named)
from ..explorer.crowd.test_crowd import warm  # noqa: TID252 (tests are no package that could be named)

pytestmark = pytest.mark.slow


def test_fifty_clients_for_twenty_seconds(keep):
    with explore("--no-browser") as (_, address):
        warm(address)
        took, errors = crowd(address, clients=50, seconds=20.0)
    took.sort()
    keep(
        answers=len(took),
        errors=len(errors),
        median_ms=round(1e3 * statistics.median(took), 1),
        p95_ms=round(1e3 * took[int(0.95 * len(took))], 1),
    )
    assert errors == []
    assert statistics.median(took) < 0.150
    assert len(took) > 50 * 2 * 20 * 0.9


def test_a_thousand_malformed_requests(keep):
    with explore("--no-browser") as (process, address):
        warm(address)
        attack(address, 10)
        server = psutil.Process(process.pid)
        before = server.memory_info().rss
        statuses = attack(address, 110)
        after = server.memory_info().rss
        warm(address)
    sent = sum(statuses.values())
    keep(requests=sent, statuses=dict(statuses), memory_before_mb=before / 1e6, memory_after_mb=after / 1e6)
    assert sent >= 1000
    assert all(400 <= status < 500 for status in statuses), statuses
    assert after < before + 20e6

"""Malformed requests, made by schemathesis from the API's own schema."""

import collections
from urllib.parse import parse_qsl, urlsplit

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from pydantic import ValidationError
from schemathesis import GenerationMode

from lazyscope.explorer.views import VIEWS


def means_something(case):
    """Whether what goes over the wire is a valid query after all: a number sent as a list of one is a number there."""
    sent = case.as_transport_kwargs()
    parts = urlsplit(requests.Request("GET", sent["url"], params=sent.get("params")).prepare().url)
    view = VIEWS.get(parts.path.rpartition("/")[2])
    if view is None or parts.path.split("/")[2] not in ("limit", "exact", "simulate"):
        return False
    try:
        view.state(**dict(parse_qsl(parts.query, keep_blank_values=True)))
    except ValidationError:
        return False
    return True


def attack(address, examples):
    """Send about that many malformed requests to every operation; return how often each status came back.

    The statuses of requests that are valid on the wire are not counted, and those are not sent.
    """
    schema = schemathesis.openapi.from_url(address + "openapi.json")
    statuses = collections.Counter()

    def one(operation):
        @settings(
            max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        def send(case):
            if not means_something(case):
                answer = case.call(timeout=60)
                statuses[answer.status_code] += 1
                assert 400 <= answer.status_code < 500, case.as_curl_command()

        send()

    for found in schema.get_all_operations():
        try:
            one(found.ok())
        except Unsatisfiable:
            continue  # nothing can be wrong about a GET without parameters
    return statuses

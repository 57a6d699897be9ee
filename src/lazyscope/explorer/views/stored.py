"""Dots that come with the package, for pictures that have no line: what trains for a minute is there at once.

They are kept beside this file with the state, the versions and the time behind them. `tests/explorer/store.py` computes
them anew, by the very plan of their view.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from lazyscope.explorer.views.controls import State

FILE = "stored.json"


@cache
def _read() -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))["pictures"]
    return kept


def dots(view: str, state: State) -> dict[str, Any] | None:
    """Return the dots of a state, in the shape of `schemas.Kept`, or None; what has no effect may differ."""
    asked = state.in_effect()
    matching = (entry for entry in _read() if entry["view"] == view and entry["state"] == asked)
    return next(
        ({name: entry[name] for name in ("dots", "notes", "command", "python", "about")} for entry in matching), None
    )

"""Compute the dots that come with the package anew: `python tests/explorer/store.py`."""

import json
import time
from importlib.metadata import version
from pathlib import Path

from lazyscope.explorer.views import VIEWS, stored
from lazyscope.explorer.worker import compute

STATES = (("beyond", {"what": "samples"}), ("beyond", {"what": "samples", "flip": 0.1}))


def make(view, some):
    """Compute the dots of a picture."""
    chosen = VIEWS[view]
    state = chosen.state(**some)
    said = {"dots": [], "note": []}
    began = time.process_time()
    compute(view, state.model_dump(), ["simulate"], lambda event, data: said.get(event, []).append(data))
    seconds = time.process_time() - began
    plan = chosen.plan(state, "simulate")
    about = f"Dots that come with the package: {seconds:.0f} s of work, lazyscope {version('lazyscope')}."
    return {
        "view": view, "state": state.model_dump(), "about": about, "dots": said["dots"], "notes": said["note"],
        "command": plan.command, "python": plan.python,
    }  # fmt: skip


def main() -> None:
    """Compute all of them, and write them."""
    versions = {name: version(name) for name in ("lazyscope", "numpy", "scipy")}
    whole = {"versions": versions, "pictures": [make(view, some) for view, some in STATES]}
    text = json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    Path(stored.__file__).with_name(stored.FILE).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

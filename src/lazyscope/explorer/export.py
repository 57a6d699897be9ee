"""The page in one file: its lines precomputed on a grid of values, its scripts inside; no server, no network.

Controls have stops where the grid has values; the others stay at their defaults. Dots are kept for the state that each
view opens with. Numbers are rounded to six digits, and grids that lines share are stored once.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from lazyscope.errors import LazyscopeError
from lazyscope.explorer.pages import MODULES, plotly, text
from lazyscope.explorer.schemas import Control
from lazyscope.explorer.views import VIEWS
from lazyscope.explorer.views.base import View
from lazyscope.explorer.worker import compute
from lazyscope.files import check_output, replacing
from lazyscope.progress import report

SUFFIXES = (".html", ".htm")
_DIGITS = 6
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const))", re.MULTILINE)


def write(path: Path, views: Sequence[View] = tuple(VIEWS.values()), *, dots: bool = True) -> None:
    """Write the page, all of it or nothing; report progress."""
    check_output(path, SUFFIXES, "lazyscope explore", "--export")
    page = assembled(data(views, dots=dots))
    with replacing(path) as part:
        part.write_text(page, encoding="utf-8")


def data(views: Sequence[View], *, dots: bool = True) -> dict[str, Any]:
    """Return everything that the page shows: views with stops, answers, claims, and dots."""
    total = sum(_count(view) for view in views) + len(views) * dots
    claims: dict[str, Any] = {}
    answers: dict[str, dict[str, Any]] = {}
    done = 0
    for view in views:
        answers[view.name] = {"keys": list(view.export), "grids": [], "answers": {}}
        for state in _states(view):
            if done % 20 == 0:
                report(done, total, f"lines of {view.title}")
            done += 1
            key = _key(view, state)
            if key in answers[view.name]["answers"]:
                continue  # it differs in what has no effect
            answers[view.name]["answers"][key] = _answer(view, state, answers[view.name]["grids"], claims)
    for view in views if dots else ():
        report(done, total, f"dots of {view.title}")
        done += 1
        answers[view.name]["answers"][_key(view, _opening(view))]["kept"] = _dots(view)
    report(total, total, "done")
    return {"views": [_view(view) for view in views], "answers": answers, "claims": claims}


def _opening(view: View) -> dict[str, Any]:
    """Return what a view opens with, of the values that have stops."""
    usual = view.state().model_dump()
    return {name: usual[name] for name in view.export}


def _key(view: View, state: dict[str, Any]) -> str:
    """Return what the page finds an answer by: every value that has an effect."""
    usual = view.state().model_dump()
    idle = {
        control.name
        for control in view.record().controls
        if control.name == state.get("axis")
        or any({**usual, **state}[name] != value for name, value in (control.when or {}).items())
    }
    return "|".join("" if name in idle else _said(value) for name, value in state.items())


def _count(view: View) -> int:
    size = 1
    for values in view.export.values():
        size *= len(values)
    return size


def _states(view: View) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*view.export.values()):
        yield dict(zip(view.export, values, strict=True))


def _said(value: Any) -> str:
    """Return a value as the page's links say it: as JavaScript writes numbers.

    >>> _said(1.0), _said(0.25), _said(True), _said(1e-5)
    ('1', '0.25', 'true', '0.00001')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return format(Decimal(repr(value)), "f").removesuffix(".0") if isinstance(value, float) else str(value)


def _answer(view: View, state: dict[str, Any], grids: list[Any], claims: dict[str, Any]) -> dict[str, Any]:
    try:
        answer = view.lines(view.state(**state))
    except LazyscopeError as error:
        return {"error": str(error)}
    claims.update({claim["key"]: claim for claim in answer["claims"]})
    for line in answer["lines"]:
        grid = _rounded(line["x"])
        if grid not in grids:
            grids.append(grid)
        line["x"], line["y"] = grids.index(grid), _rounded(line["y"])
    answer["claims"] = [claim["key"] for claim in answer["claims"]]
    return answer


def _rounded(values: list[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.{_DIGITS}g}") for value in values]


def _view(view: View) -> dict[str, Any]:
    """Describe a view as the server does, its controls restricted to what the file has answers for."""
    record = view.record().model_dump()
    kept = (control for control in view.record().controls if control.name in view.export or control.kind == "time")
    record["controls"] = [_control(view, control) for control in kept]
    usual = view.state().model_dump()
    record["presets"] = [
        {**preset, "state": {name: value for name, value in preset["state"].items() if name in view.export}}
        for preset in record["presets"]
        if all(value in view.export.get(name, [usual[name]]) for name, value in preset["state"].items())
    ]
    return record


def _control(view: View, control: Control) -> dict[str, Any]:
    if control.kind == "time":  # every answer has all times
        return control.model_dump()
    stops = list(view.export[control.name])
    shown = control.model_dump()
    shown["when"] = {name: value for name, value in (control.when or {}).items() if name in view.export}
    if control.kind in ("choice", "file"):
        named = dict(zip(control.choices or (), control.names or control.choices or (), strict=True))
        shown |= {"choices": stops, "names": [named[str(stop)] for stop in stops]}
    else:
        shown["stops"] = stops
    return shown


def _dots(view: View) -> dict[str, Any]:
    """Compute the dots of the state that a view opens with, in its quickest fidelity."""
    dots: dict[str, Any] = {"dots": [], "notes": [], "about": "Dots of the values that this page opens with."}
    state = view.state()
    quick = view.fidelities[0]
    plan = view.plan(state, quick)

    def say(event: str, said: dict[str, Any]) -> None:
        if event == "dots":
            dots["dots"].append({**said, **{name: _rounded(said[name]) for name in ("x", "y", "stderr")}})
        elif event == "note":
            dots["notes"].append(said)

    compute(view.name, state.model_dump(), [quick], say)
    return {**dots, "command": plan.command, "python": plan.python}


def assembled(parts: dict[str, Any]) -> str:
    """Return the page with everything inside.

    Modules become one script: each imports those before it only, and no two name the same thing.
    """
    script = "\n".join(_EXPORT.sub("", _IMPORT.sub("", text(name))) for name in MODULES)
    assert "</script" not in script.lower()
    page = text("index.html")
    for pattern, inside in (
        (r'<link rel="icon"[^>]*>\n', ""),
        (r'<link rel="stylesheet"[^>]*>', f"<style>\n{text('style.css')}</style>"),
        (r'<script src="/plotly[^>]*></script>', f"<script>{_script(plotly().read_text(encoding='utf-8'))}</script>"),
        (
            r'<script type="module"[^>]*></script>',
            f'<script type="application/json" id="lazyscope-data">{_inert(parts)}</script>\n'
            f'<script type="module">\n{script}</script>',
        ),
    ):
        (match,) = re.finditer(pattern, page)  # once, or the page has changed without this
        page = page[: match.start()] + inside + page[match.end() :]
    policy = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">'
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}', 1)


def _inert(data: dict[str, Any]) -> str:
    """Return JSON that no parser of HTML takes for anything else."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _script(source: str) -> str:
    """Return a script that does not end before its end."""
    return re.sub(r"</(script)", r"<\\/\1", source, flags=re.IGNORECASE)

"""Results out of a store: the Datasets that the verbs would return, a table, a netCDF file.

Nothing here depends on when, where or in which order the tasks were computed: equal plans give equal bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lazyscope.errors import LazyscopeError, NotConverged
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.files import check_output, points, replacing, tidy, write_csv
from lazyscope.runs.assembly import assemble
from lazyscope.sweep.content import canonical
from lazyscope.sweep.plan import Plan, Task
from lazyscope.sweep.store import Store

if TYPE_CHECKING:
    import xarray as xr

EXPORT_SUFFIXES = (".csv", ".nc")


@dataclass(frozen=True, eq=False)
class _Collected:
    """The results of a plan: a Dataset for each group, the dimension of its problem, and what had to be left out."""

    plan: Plan
    versions: list[str]
    datasets: list[xr.Dataset]
    dimensions: list[int]
    omitted: list[str]


def load(plan: Plan | str | None, store: str | os.PathLike[str], *, partial: bool = False) -> list[xr.Dataset]:
    """Return the results of a plan as the verbs would: a Dataset for each problem, regime, fidelity and setting.

    `plan` may be its name, or None for the only one of the store. `partial` takes, of a plan that is not finished, the
    widths that have all their draws.
    """
    return _collect(plan, store, partial).datasets


def export(
    store: str | os.PathLike[str], path: str | os.PathLike[str], plan: str | None = None, *, partial: bool = False
) -> list[str]:
    """Write the results of a plan to `.csv` (a row for each width) or `.nc` (all there is, a group for each Dataset).

    Returns a line for each thing that `partial` had to leave out.
    """
    out = Path(path)
    check_output(out, EXPORT_SUFFIXES, "sweep", "out")
    collected = _collect(plan, store, partial)
    with replacing(out) as part:
        if out.suffix.lower() == ".csv":
            _write_csv(part, collected)
        else:
            _tree(collected).to_netcdf(part, engine="h5netcdf")
    return collected.omitted


def _collect(plan: Plan | str | None, store: str | os.PathLike[str], partial: bool) -> _Collected:
    with Store.reading(store) as opened:
        whole = plan if isinstance(plan, Plan) else opened.plan(plan)
        rows = opened.rows(task.key for task in whole.tasks)
        failed = opened.failures(whole.name)
        versions = opened.versions(whole.name)
    if len(rows) < len(whole.tasks) and not partial:
        raise LazyscopeError(
            f"The sweep {whole.name!r} has no result yet for {len(whole.tasks) - len(rows)} of its {len(whole.tasks)} "
            f"tasks, {len(failed)} of which failed. Run it again, or take the complete widths only, as partial."
        )
    collected = _Collected(whole, versions, [], [], [])
    for group in _groups(whole.tasks):
        name = f"{_run(group[0]).fidelity} {_run(group[0]).regime}"
        missing = dict.fromkeys(_run(task).whole("width") for task in group if task.key not in rows)
        if missing:
            collected.omitted.append(f"{name}: N = {', '.join(map(str, missing))} (not finished)")
        complete = [task for task in group if _run(task).whole("width") not in missing]
        if complete:
            _append(collected, complete, rows, name, partial)
    if not collected.datasets:
        raise LazyscopeError(f"The sweep {whole.name!r} has no complete width yet. Run it again.")
    return collected


def _append(collected: _Collected, tasks: Sequence[Task], rows: dict[str, Row], name: str, partial: bool) -> None:
    try:
        collected.datasets.append(assemble([_run(task) for task in tasks], [rows[task.key] for task in tasks]))
    except NotConverged as error:
        if not partial:
            raise
        collected.omitted.append(f"{name}: {error}")
    else:
        collected.dimensions.append(_run(tasks[0]).d)


def _run(task: Task) -> Run:
    """Return the run of a task; the other kinds of work belong to figures, which read their rows themselves."""
    if not isinstance(task.work, Run):
        raise LazyscopeError(f"{task.work.label} is the work of a figure: its results are those that the figure wrote.")
    return task.work


def _groups(tasks: Sequence[Task]) -> list[list[Task]]:
    """Return the tasks of one Dataset together: all but width and draw is the same, and every width has all draws."""
    settings: dict[str, dict[int, list[Task]]] = {}
    for task in tasks:
        written = json.loads(task.specification) | {"number": None}
        written["sizes"] = written["sizes"] | {"width": None}
        settings.setdefault(canonical(written), {}).setdefault(_run(task).whole("width"), []).append(task)
    groups: dict[tuple[str, tuple[int, ...]], list[Task]] = {}
    for setting, widths in settings.items():
        for some in widths.values():
            numbers = tuple(sorted(_run(task).number for task in some))
            groups.setdefault((setting, numbers), []).extend(some)
    return list(groups.values())


def _write_csv(path: Path, collected: _Collected) -> None:
    rows, comments = [], [_title(collected), *(f"computed with {text}" for text in collected.versions)]
    for i, (result, d) in enumerate(zip(collected.datasets, collected.dimensions, strict=True)):
        at = result.attrs
        comments.append(
            f"group {i}: {at['fidelity']}; {at['problem']}; {at['regime']}; {at['theorem']}; {at['claim']}; "
            f"{at['citations']}; {at['arguments']}"
        )
        same = {"group": i, "fidelity": at["fidelity"], "problem": at["problem"], "model": at["regime"]}
        rows += [same | row for row in (tidy([result], d) if "rho" in result.coords else _points(result))]
    write_csv(path, rows, comments)


def _points(result: xr.Dataset) -> list[dict[str, Any]]:
    """Return a row for each size of a problem of open dimension, with what has one value there."""
    names = [name for name, variable in result.data_vars.items() if variable.dims == result.risk.dims]
    return [{"regime": result.attrs["label"], **row} for row in points(result[names])]


def _title(collected: _Collected) -> str:
    return f"sweep {collected.plan.name}: {len(collected.plan.tasks)} tasks, fingerprint {collected.plan.digest}"


def _tree(collected: _Collected) -> xr.DataTree:
    import xarray as xr

    root = xr.Dataset(attrs={"sweep": _title(collected), "computed_with": "\n".join(collected.versions)})
    names = (
        f"{i:03}-{result.attrs['fidelity']}-{result.attrs['label']}" for i, result in enumerate(collected.datasets)
    )
    return xr.DataTree.from_dict({"/": root, **dict(zip(names, collected.datasets, strict=True))})

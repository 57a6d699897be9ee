"""What a figure leaves behind: the picture twice, its numbers twice, and how they came about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lazyscope import files
from lazyscope.experiments.frame import tables
from lazyscope.experiments.frame.compute import Numbers
from lazyscope.experiments.frame.experiment import Findings
from lazyscope.files import jsonable
from lazyscope.runs import pictures
from lazyscope.sweep.worker import versions

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".csv", ".nc", ".json")


def write(numbers: Numbers, picture: Figure, stem: Path, command: str, about: dict[str, Any]) -> list[Path]:
    """Write what a figure of panels leaves behind; return the paths."""
    rows, comments = tables.long_rows(numbers.panels), [command, *_comments(numbers)]
    return _write(stem, picture, numbers.panels, rows, comments, provenance(numbers, command, about))


def write_findings(found: Findings, picture: Figure, stem: Path, command: str, about: dict[str, Any]) -> list[Path]:
    """Write what an experiment leaves behind; return the paths."""
    shown = {name: jsonable(data.attrs) for name, data in found.panels.items()}
    comments = [command, *(f"{name}: {key}: {value}" for name, at in shown.items() for key, value in at.items())]
    origin: dict[str, Any] = {"command": command, **about, "versions": json.loads(versions()), "panels": shown}
    if found.plan is not None:
        origin["sweep"] = {
            "name": found.plan.name,
            "digest": found.plan.digest,
            "seconds": round(found.seconds, 1),
            "tasks": [{"label": task.work.label, "key": task.key} for task in found.plan.tasks],
        }
    return _write(
        stem,
        picture,
        found.panels,
        [{"panel": name, **row} for name, data in found.panels.items() for row in files.points(data)],
        comments,
        origin,
    )


def _write(
    stem: Path,
    picture: Figure,
    panels: Mapping[str, xr.Dataset],
    rows: Sequence[Mapping[str, Any]],
    comments: Sequence[str],
    origin: dict[str, Any],
) -> list[Path]:
    """Write PNG, PDF, CSV, netCDF and the provenance as JSON, each whole or not at all."""
    import xarray as xr

    paths = {suffix: stem.with_name(stem.name + suffix) for suffix in SUFFIXES}
    with ExitStack() as all_or_none:  # each is in place only when all are written, the provenance first
        parts = {suffix: all_or_none.enter_context(files.replacing(path)) for suffix, path in paths.items()}
        for suffix in (".png", ".pdf"):
            pictures.save(picture, parts[suffix])
        files.write_csv(parts[".csv"], rows, comments)
        plain = {name: value for name, value in origin.items() if isinstance(value, (str, int, float))}
        xr.DataTree.from_dict({"/": xr.Dataset(attrs=plain), **panels}).to_netcdf(parts[".nc"], engine="h5netcdf")
        text = json.dumps(origin, indent=1, ensure_ascii=False)
        parts[".json"].write_text(text + "\n", encoding="utf-8")
    return list(paths.values())


def written_by(stem: Path, figure: str, preset: str) -> bool:
    """Return whether the files of this stem are those of an earlier run of this figure, by their provenance."""
    try:
        origin = json.loads(stem.with_name(stem.name + ".json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(origin, dict) and (origin.get("figure"), origin.get("preset")) == (figure, preset)


def _comments(numbers: Numbers) -> list[str]:
    """Return the lines above the rows of the CSV file: problem, seed, and what each series rests on."""
    lines = []
    for name, data in numbers.panels.items():
        lines.append(f"{name}: {data.attrs['problem']}; seed {data.attrs['seed']}; {data.attrs['citations']}")
        lines += [f"{name}: {line}" for line in data.attrs["theorems"].split("\n")]
    references = {reference.when: reference for reference in numbers.borrowed.values()}
    return lines + [f"some rows come from the reference runs of {when}" for when in references]


def provenance(numbers: Numbers, command: str, about: dict[str, Any]) -> dict[str, Any]:
    """Return what the figure rests on: its tasks by fingerprint, and where each of their results is from."""
    layout = numbers.layout
    compared, far = tables.outliers(numbers.panels)
    references = {reference.when: dict(reference.provenance) for reference in numbers.borrowed.values()}
    return {
        "command": command,
        **about,
        "versions": json.loads(versions()),
        "sweep": {"name": layout.plan.name, "digest": layout.plan.digest, "seconds": round(numbers.seconds, 1)},
        "agreement": {"dots": compared, "beyond": far},
        "panels": {
            name: {key: data.attrs[key] for key in ("title", "problem", "d", "seed", "citations")}
            | {"theorems": data.attrs["theorems"].split("\n")}
            for name, data in numbers.panels.items()
        },
        "references": references,
        "tasks": [
            {"panel": panel, "series": label, "fidelity": fidelity, "width": N, "draw": draw}
            | {"key": task.key}
            | ({"reference": numbers.borrowed[task.key].when} if task.key in numbers.borrowed else {})
            for (panel, label, fidelity, N), tasks in layout.tasks.items()
            for draw, task in enumerate(tasks)
        ],
    }

"""The files of an experiment: the picture as PNG and PDF, its numbers as CSV and netCDF, and their provenance."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lazyscope import files
from lazyscope.checks import jsonable
from lazyscope.experiments.frame.experiment import AnyExperiment, Findings
from lazyscope.experiments.frame.verdict import Answer
from lazyscope.runs import pictures
from lazyscope.sweep.worker import versions

SUFFIXES = (".png", ".pdf", ".csv", ".nc", ".json")


def write(experiment: AnyExperiment, found: Findings, stem: Path, command: str, about: dict[str, Any]) -> list[Path]:
    """Write PNG, PDF, CSV, netCDF and the provenance as JSON, each whole or not at all; return the paths."""
    import xarray as xr

    paths = {suffix: stem.with_name(stem.name + suffix) for suffix in SUFFIXES}
    picture, origin = experiment.plot(found.panels), provenance(experiment, found, command, about)
    comments = [f"{name}: {key}: {value}" for name, at in origin["panels"].items() for key, value in at.items()]
    comments += [f"some rows come from the reference runs of {when}" for when in origin.get("references", ())]
    lines = [line for comment in comments for line in comment.split("\n")]
    with ExitStack() as all_or_none:  # each is in place only when all are written, the provenance first
        parts = {suffix: all_or_none.enter_context(files.replacing(path)) for suffix, path in paths.items()}
        for suffix in (".png", ".pdf"):
            pictures.save(picture, parts[suffix])
        files.write_csv(parts[".csv"], experiment.rows(found.panels), [command, *lines])
        plain = {name: str(value) for name, value in origin.items() if isinstance(value, (str, bool))}
        xr.DataTree.from_dict({"/": xr.Dataset(attrs=plain), **found.panels}).to_netcdf(parts[".nc"], engine="h5netcdf")
        parts[".json"].write_text(json.dumps(origin, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return list(paths.values())


def written_by(stem: Path, figure: str, preset: str) -> bool:
    """Return whether the files of this stem are those of an earlier run of this figure, by their provenance."""
    try:
        origin = json.loads(stem.with_name(stem.name + ".json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(origin, dict) and (origin.get("figure"), origin.get("preset")) == (figure, preset)


def provenance(experiment: AnyExperiment, found: Findings, command: str, about: dict[str, Any]) -> dict[str, Any]:
    """Return what the numbers rest on: the tasks by fingerprint, and where the result of each is from."""
    ending = experiment.verdict(found.panels)[-1]
    origin: dict[str, Any] = {
        "command": command,
        **about,
        "versions": json.loads(versions()),
        "verdict": [str(ending)],
        **({"holds": ending.holds} if isinstance(ending, Answer) else {}),
        "panels": {name: jsonable(data.attrs) for name, data in found.panels.items()},
    }
    if found.plan is None:
        return origin
    lenders = {reference.when: dict(reference.provenance) for reference in found.borrowed.values()}
    tasks = [
        {**task} | ({"reference": found.borrowed[task["key"]].when} if task["key"] in found.borrowed else {})
        for task in found.tasks
    ]
    sweep = {"name": found.plan.name, "digest": found.plan.digest, "seconds": round(found.seconds, 1), "tasks": tasks}
    return origin | {"sweep": sweep, "references": lenders}

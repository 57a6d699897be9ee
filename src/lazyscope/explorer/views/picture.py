"""Answers in the making: grids, axes, lines with their claims, notes on what has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.claim import Claim
from lazyscope.evidence.run import Run
from lazyscope.explorer.views.controls import State
from lazyscope.problems import Problem
from lazyscope.regimes import Regime

MOMENT = "now"
"""What the mark at the time of the slider is called."""

NEAR = (0.9, 0.94, 0.97, 0.985, 0.995, 1.0, 1.005, 1.015, 1.03, 1.06, 1.1)
"""Where a peak is looked at more closely, as shares of its place."""


@dataclass(frozen=True)
class Grid:
    """The values of an axis, as numbers, as the command line's grammar and as Python."""

    values: FloatArray
    option: str
    python: str

    @classmethod
    def linear(cls, low: float, high: float, count: int) -> Grid:
        """Return equal steps.

        >>> Grid.linear(0.5, 2.0, 4).option
        '0.5:2.0:4'
        """
        return cls(
            np.linspace(low, high, count), f"{low!r}:{high!r}:{count}", f"np.linspace({low!r}, {high!r}, {count})"
        )

    @classmethod
    def logarithmic(
        cls, low: float, high: float, count: int, around: float | None = None, also: float | None = None
    ) -> Grid:
        """Return equal ratios, closer together around a place where the curve has a peak; `also` is one more value."""
        whole = np.geomspace(low, high, count)
        option, python = f"{low!r}:{high!r}:{count}log", f"np.geomspace({low!r}, {high!r}, {count})"
        peak = () if around is None or not low < around < high else (around * ratio for ratio in NEAR)
        near = [float(f"{value:.6g}") for value in peak] + ([] if also is None else [also])
        near = sorted({value for value in near if low < value < high} - {*whole.tolist()})
        if not near:
            return cls(whole, option, python)
        values = np.sort(np.concatenate([whole, near]))
        return cls(values, ",".join([option, *map(repr, near)]), f"np.sort(np.r_[{python}, {near}])")


@dataclass
class Picture:
    """An answer while it is being made."""

    problem: str
    x: dict[str, Any]
    panels: list[dict[str, Any]]
    lines: list[dict[str, Any]] = field(default_factory=list)
    marks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)
    claims: dict[str, dict[str, Any]] = field(default_factory=dict)
    at: float | None = None
    frames: dict[str, Any] | None = None

    def line(
        self,
        name: str,
        role: str,
        x: Any,
        y: Any,
        claim: Claim | dict[str, Any],
        *,
        panel: int = 0,
        dash: str = "solid",
        band: tuple[Any, Any] | None = None,
    ) -> None:
        """Add a curve, with a band around it if there is one; say where it is infinite."""
        known = record(claim) if isinstance(claim, Claim) else claim
        self.claims.setdefault(known["key"], known)
        ends = [place for place, value in zip(listed(x), listed(y), strict=True) if value is None]
        if ends:
            self.note(
                name, f"Infinite at {', '.join(f'{end:g}' for end in ends[:3] if end is not None)}: no point there."
            )
        values = {"name": name, "role": role, "panel": panel, "dash": dash, "x": listed(x), "y": listed(y)}
        around = {} if band is None else {"low": listed(band[0]), "high": listed(band[1])}
        self.lines.append({**values, "claim": known["key"], **around})

    def note(self, about: str, message: str) -> None:
        """Say what has no line, and why."""
        self.notes.append({"about": about, "message": message})

    def mark(self, x: float, label: str) -> None:
        """Add a vertical line."""
        self.marks.append({"x": x, "label": label})

    def moment(self, time: float, title: str, x: Any, rows: list[str], columns: list[str], values: Any) -> None:
        """Read the picture at a time, mark it, and show a matrix, (times, rows, columns), at this time."""
        self.at = time
        self.mark(time, MOMENT)
        matrix = np.asarray(values, dtype=np.float64).round(4).tolist()
        self.frames = {
            "control": "time", "mark": MOMENT, "title": title, "x": listed(x),
            "rows": rows, "columns": columns, "values": matrix,
        }  # fmt: skip

    def answer(self, view: str, state: State, command: str, python: str) -> dict[str, Any]:
        """Return the answer, in the shape of `schemas.Answer`."""
        return {
            "view": view,
            "problem": self.problem,
            "x": self.x,
            "panels": self.panels,
            "lines": self.lines,
            "marks": self.marks,
            "notes": self.notes,
            "claims": list(self.claims.values()),
            "arguments": state.model_dump(),
            "command": command,
            "python": python,
            "at": self.at,
            "frames": self.frames,
        }


def axis(label: str, *, log: bool = False, range_: tuple[float, float] | None = None) -> dict[str, Any]:
    """Return an axis, in the shape of `schemas.Axis`."""
    return {"label": label, "log": log, "range": None if range_ is None else list(range_)}


def listed(values: Any) -> list[float | None]:
    """Return numbers as JSON has them: what is not finite is None.

    >>> listed(np.array([0.5, np.inf]))
    [0.5, None]
    """
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if np.all(np.isfinite(array)):
        finite: list[float | None] = array.tolist()
        return finite
    return [value if np.isfinite(value) else None for value in array.tolist()]


def record(claim: Claim) -> dict[str, Any]:
    """Return a claim, in the shape of `schemas.ClaimRecord`."""
    return {
        "key": claim.key,
        "title": claim.title,
        "theorem": claim.theorem,
        "citations": list(claim.citations),
        "assumptions": list(claim.assumptions),
        "erratum": claim.erratum,
    }


def curve(
    problem: Problem, regime: Regime, axes: Mapping[str, Any], method: str | None = None
) -> tuple[Claim, dict[str, FloatArray]]:
    """Compute the row of a limit along one axis; labelling it would take longer than the numbers do."""
    sizes = {name: tuple(np.atleast_1d(np.asarray(values, dtype=np.float64)).tolist()) for name, values in axes.items()}
    run = Run("limit", problem, regime, sizes, method)
    return run.claim, {name: np.ravel(value) for name, value in run.compute().items()}

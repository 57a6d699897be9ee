"""A verdict that can fail: the answer of an experiment says yes or no, and faults are planted to see it say no."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.evidence.work import Row, Work
from lazyscope.experiments.frame.types import DataArray, Panels


class Answer(str):
    """The last line of a verdict; `holds` says whether all is as the experiment expects.

    >>> answer(False, "Both agree.", "They differ.").holds
    False
    """

    __slots__ = ("holds",)
    holds: bool


def answer(holds: bool, yes: str, no: str) -> Answer:
    """Return the line for yes or the line for no; its attribute `holds` says which one it is."""
    line = Answer(yes if holds else no)
    line.holds = bool(holds)
    return line


@dataclass(frozen=True, eq=False)
class Fault:
    """A mistake that a verdict must see: `words` say what is wrong, `plant(preset, rows)` returns the panels with it.

    `rows` are those of the right work at this preset. The test of the registry plants every fault that an experiment
    declares, at its tiny preset, and wants the answer to be no. Without the fault it must be yes. Where the preset is
    too small for that, the answer must not have the words `seen`, which it has with the fault; or `right` gives the
    panels that theory alone would make, with which the answer must be yes.
    """

    words: str
    plant: Callable[[Any, Sequence[Row]], Panels]
    seen: str = ""
    right: Callable[[Any, Sequence[Row]], Panels] | None = None


Data = Callable[[Any, Sequence[Row]], Panels]
Worked = Callable[[Any], Sequence[Work]]


def wrong_work(words: str, data: Data, work: Worked, wrong: Callable[[Any], Any]) -> Fault:
    """Return the fault that the work is done at another preset, `wrong(preset)`, and read as if it were this one."""
    return Fault(words, lambda preset, rows: data(preset, [piece.compute() for piece in work(wrong(preset))]))


def wrong_rows(words: str, data: Data, name: str, change: Callable[[int, Any], Any], seen: str = "") -> Fault:
    """Return the fault that one number of every row is wrong: change(k, value) in place of the value in the k-th row.

    Rows without this number stay as they are.
    """

    def planted(preset: Any, rows: Sequence[Row]) -> Panels:
        changed = [
            {**row, name: np.asarray(change(k, row[name]))} if name in row else row for k, row in enumerate(rows)
        ]
        return data(preset, changed)

    return Fault(words, planted, seen)


def wrong_numbers(words: str, data: Data, panel: str, name: str, change: Callable[[DataArray], Any]) -> Fault:
    """Return the fault that a variable of one panel has other values, as a wrong formula would give it."""

    def planted(preset: Any, rows: Sequence[Row]) -> Panels:
        panels = dict(data(preset, rows))
        panels[panel] = panels[panel].assign({name: change(panels[panel][name])})
        return panels

    return Fault(words, planted)

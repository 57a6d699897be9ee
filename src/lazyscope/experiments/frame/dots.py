"""Dots beside the limit: features of several widths on n samples in d dimensions, and the judgement on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.draws import over_draws, split
from lazyscope.experiments.frame.verdict import Answer, answer
from lazyscope.problems import Problem
from lazyscope.regimes import Regime

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Setting:
    """Features of some widths on n samples in d dimensions, several draws."""

    problem: Problem
    regime: Regime
    d: int
    samples: int
    widths: tuple[int, ...]
    draws: int

    measured: ClassVar[tuple[str, ...]]
    kept: ClassVar[tuple[str, ...]] = ()  # of these every draw is shown too
    method: ClassVar[str | None] = None

    @property
    def sizes(self) -> dict[str, tuple[Any, ...]]:
        """The sizes of a trial."""
        return {"width": self.widths, "samples": (self.samples,), "d": (self.d,)}

    @property
    def trials(self) -> list[Run]:
        """The work, width by width."""
        first = Run("simulate", self.problem, self.regime, self.sizes, self.method)
        return [part.at(number=number) for part in first.parts() for number in range(self.draws)]

    def columns(self, rows: Sequence[Row], expected: xr.Dataset, shown: NDArray[np.bool_]) -> dict[str, Any]:
        """Return mean, standard error and limit of all that is measured, NaN where there is no dot to show."""
        dims, columns = ("width", "ridge")[: shown.ndim], {}
        for name in self.measured:
            values = np.array([row[name] for row in rows]).reshape(len(self.widths), self.draws, *shown.shape[1:])
            mean, error = over_draws(values, axis=1)
            theory = expected[name].values.astype(np.float64)
            for ending, column in (("", mean), ("_stderr", error), ("_expected", theory)):
                columns[f"{name}{ending}"] = (dims, np.where(shown, column, np.nan))
            if name in self.kept:
                columns[f"{name}_draws"] = (("width", "draw"), values)
        return columns

    def about(self, expected: xr.Dataset) -> dict[str, Any]:
        """Return the attributes of the dots."""
        words = {"problem": str(self.problem), "regime": str(self.regime), "d": self.d, "samples": self.samples}
        return words | {"draws": self.draws, "seed": 0, "citations": expected.attrs["citations"]}


S = TypeVar("S", bound=Setting)


def all_trials(settings: Mapping[str, Setting]) -> list[Run]:
    """Return the work of several panels, one after the other."""
    return [trial for setting in settings.values() for trial in setting.trials]


def by_panel(settings: Mapping[str, S], rows: Sequence[Row]) -> Iterator[tuple[str, S, Sequence[Row]]]:
    """Yield each panel with the rows of its own trials."""
    own = split(rows, [setting.trials for setting in settings.values()])
    yield from zip(settings, settings.values(), own, strict=True)


def agreement(count: int, far: Sequence[str], rule: str, most: int) -> Answer:
    """Return in one line whether all dots obey a rule; at most so many of the others are named."""
    named = "; ".join(far[:most])
    return answer(
        not far,
        f"Theory and simulation agree: all {count} dots within {rule}.",
        f"Theory and simulation differ: {len(far)} of {count} dots beyond {rule}: {named}.",
    )

"""Dots beside the limit: features of several widths on n samples in d dimensions, and the judgement on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.draws import over_draws, split
from lazyscope.experiments.frame.judgement import Dot
from lazyscope.experiments.frame.types import Dataset, Panels
from lazyscope.problems import Problem
from lazyscope.regimes import Regime

Prediction = tuple[NDArray[np.float64], NDArray[np.float64]]
"""What theory predicts for the dots, with a last axis over draws (of length 1 where all draws share a prediction),
and what the prediction leaves out, without that axis."""


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

    def columns(self, rows: Sequence[Row], expected: Dataset, shown: NDArray[np.bool_]) -> dict[str, Any]:
        """Return mean, standard error, every draw and the limit of all that is measured, NaN where there is no dot."""
        dims, columns = ("width", "ridge")[: shown.ndim], {}
        for name in self.measured:
            values = np.array([row[name] for row in rows]).reshape(len(self.widths), self.draws, *shown.shape[1:])
            values = np.where(shown[..., None], np.moveaxis(values, 1, -1), np.nan)
            mean, error = over_draws(values)
            theory = np.where(shown, expected[name].values.astype(np.float64), np.nan)
            for ending, column in (("", mean), ("_stderr", error), ("_expected", theory)):
                columns[f"{name}{ending}"] = (dims, column)
            columns[f"{name}_draws"] = ((*dims, "draw"), values)
        return columns

    def predicted(self, predictions: Mapping[str, Prediction]) -> dict[str, Any]:
        """Return the columns of predictions: the mean of those of all draws, each of them, and what they leave out."""
        columns: dict[str, Any] = {}
        for name, (values, allowance) in predictions.items():
            dims = ("width", "ridge")[: allowance.ndim]
            of_draws = np.broadcast_to(values, (*allowance.shape, self.draws))
            columns[f"{name}_predicted"] = (dims, of_draws.mean(axis=-1))
            columns[f"{name}_predicted_draws"] = ((*dims, "draw"), of_draws.copy())
            columns[f"{name}_allowance"] = (dims, allowance)
        return columns

    def about(self, expected: Dataset) -> dict[str, Any]:
        """Return the attributes of the dots."""
        words = {"problem": str(self.problem), "regime": str(self.regime), "d": self.d, "samples": self.samples}
        return words | {"draws": self.draws, "seed": 0, "citations": expected.attrs["citations"]}


S = TypeVar("S", bound=Setting)


class Settled(Protocol):
    """A preset with what is simulated for each panel: its `settings`, each with its own `trials`."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What is simulated."""


def trials(preset: Settled) -> list[Run]:
    """Return the work of all panels, one after the other."""
    return [trial for setting in preset.settings.values() for trial in setting.trials]


def by_panel(settings: Mapping[str, S], rows: Sequence[Row]) -> Iterator[tuple[str, S, Sequence[Row]]]:
    """Yield each panel with the rows of its own trials."""
    own = split(rows, [setting.trials for setting in settings.values()])
    yield from zip(settings, settings.values(), own, strict=True)


def held(panels: Panels, names: Sequence[str]) -> Iterator[Dot]:
    """Yield the dots of panels with their predictions; bias and variance may leave out a tenth of the whole risk.

    Panels of the same d and n have seen the same random numbers at each width.
    """
    for panel, data in panels.items():
        for name in names:
            values = {end: data[f"{name}{end}"].values for end in ("_draws", "_predicted_draws", "_allowance")}
            scale = data["risk_predicted" if name in ("bias", "variance") else f"{name}_predicted"].values
            for at in np.ndindex(scale.shape):
                draws = values["_draws"][at]
                if np.all(np.isnan(draws)):
                    continue
                N, ridge = int(data.width[at[0]]), f", {ridge_name(float(data.ridge[at[1]]))}" if len(at) > 1 else ""
                where = f"{name} at {f'{panel}, ' if panel else ''}N = {N}{ridge}"
                stream = (data.attrs["d"], data.attrs["samples"], N)
                allowance = float(values["_allowance"][at])
                limit = float(data[f"{name}_expected"].values[at])
                yield Dot(where, draws, values["_predicted_draws"][at], allowance, float(scale[at]), stream, limit)


def ridge_name(ridge: float) -> str:
    """λ in words for a legend.

    >>> ridge_name(0.0), ridge_name(0.01)
    ('λ → 0', 'λ = 0.01')
    """
    return f"λ = {ridge:g}" if ridge else "λ → 0"

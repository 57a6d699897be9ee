"""The data lens: the four regimes on a table of data, what theory says of it, and a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray, whole_number, whole_numbers
from lazyscope.errors import InvalidParameter, LazyscopeError
from lazyscope.lenses.data import forecast, verdict
from lazyscope.lenses.data.budget import Budget, seconds_of
from lazyscope.lenses.data.measuring import Measured, measure, middle_of
from lazyscope.lenses.data.outlook import Outlook, outlook
from lazyscope.lenses.data.preparing import folds as folds_of
from lazyscope.lenses.data.preparing import whole
from lazyscope.lenses.data.quadratic.part import QuadraticPart, Whitening, directions, strongest
from lazyscope.lenses.data.regimes import NAMES
from lazyscope.lenses.data.table import Table, Task
from lazyscope.lenses.page import write
from lazyscope.progress import report

if TYPE_CHECKING:
    import xarray as xr

WIDTHS = (32, 128, 512)
_MOST_ROWS = 10_000
_FOR_REPORT = (0.05, 1.2)  # of the budget: the last fit may take longer than expected; seconds of a core, for pictures
_FOR_THEORY = 0.15  # of the budget, for the quadratic part and the forecasts
_FOR_OUTLOOK = 0.4  # seconds of a core, for the smallest forecast of more rows
_FORECAST_WIDTHS = (8, 16, 32, 64, 128, 256, 512)
_FOR_QUADRATIC = 0.3  # of what is left for theory
_TRIED = 6  # directions, on which the quadratic part is timed


@dataclass(frozen=True, eq=False, repr=False)
class DataLens:
    """What the lens saw: measured errors, the quadratic part, what theory says of both, and the verdict.

    `verdict` is the sentence; `dataset` holds all numbers; `save` writes the report.
    """

    about: str
    task: Task
    measured: Measured
    middle: int
    seed: int
    part: QuadraticPart | None
    forecast: Mapping[str, FloatArray] = field(default_factory=dict)
    forecast_widths: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=lambda: NAMES)
    outlook: Outlook | None = None

    @property
    def verdict(self) -> str:
        """The answer in up to three sentences: on training, on boosted trees, and on more rows."""
        said = [verdict.sentence(self.measured, self.middle), verdict.boosting(self.measured, self.middle)]
        if self.outlook is not None and self.outlook.advice.learns and verdict.learns(self.measured):
            said.append(f"For random features, {self.outlook.advice.of_rows}")
        return " ".join(part for part in said if part)

    @property
    def samples(self) -> int:
        """The training rows in each fold on which the regimes are compared; 0 where they are not."""
        return self.measured.samples

    @property
    def error_name(self) -> str:
        """What `error` means here."""
        return "error: unexplained variance" if self.task == "regression" else "error: share of wrong classes"

    def __str__(self) -> str:
        return f"{self.about}\n{self.verdict}"

    def __repr__(self) -> str:  # what a notebook shows: no arrays
        return f"<DataLens: {self.about}. {self.verdict}>"

    @property
    def dataset(self) -> xr.Dataset:
        """All numbers, labelled: error and seconds by regime, width and samples; NaN where nothing was measured."""
        from lazyscope.lenses.data.numbers import dataset

        return dataset(self)

    def html(self) -> str:
        """Return the report, one self-contained HTML page."""
        from lazyscope.lenses.report import data_page

        return data_page(self)

    def save(self, path: str | Path) -> Path:
        """Write the report."""
        return write(path, self.html)


def data_lens(
    table: Table,
    *,
    widths: Sequence[int] = WIDTHS,
    folds: int = 5,
    budget: str | float | Budget = "2m",
    seed: int = 0,
    rows: int = _MOST_ROWS,
) -> DataLens:
    """Look at a table: train, estimate, predict, judge. A `Budget` may already be running.

    >>> from lazyscope.lenses.data.table import from_arrays
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((120, 4))
    >>> lens = data_lens(from_arrays(X, X[:, 0] * X[:, 1]), widths=[16], folds=2)
    >>> lens.part.significant, sorted(lens.dataset.data_vars)[:3]
    (True, ['baseline', 'boosted', 'error'])
    """
    clock = budget if isinstance(budget, Budget) else Budget(seconds_of(budget, "lens"))
    clock.kept = _for_report(clock)
    sizes = tuple(int(width) for width in np.atleast_1d(whole_numbers(widths, "lens", "widths")))
    if len(set(sizes)) != len(sizes):
        raise InvalidParameter.of("lens", "widths", "be different numbers", sizes)
    seed = whole_number(seed, "lens", "seed", least=0)
    table, notes = _fewer_rows(table, whole_number(rows, "lens", "rows", least=10), seed)
    parts = folds_of(table, folds, seed)
    measured = measure(parts, table.task, sizes, clock, seed, kept=_FOR_THEORY * clock.seconds)
    clock.kept = _for_report(clock)
    ahead, more = _ahead(table, clock, seed)
    part, told = _quadratic(table, clock)
    notes += (*more, *told)
    expected: dict[str, FloatArray] = {}
    shown: tuple[int, ...] = ()
    if part is not None and clock.left > 0:
        shown = tuple(width for width in _FORECAST_WIDTHS if width <= max(32, 16 * len(part.beta)))  # flat beyond
        begun = clock.left
        # the next width takes some four times as long as all before it
        enough = lambda: clock.left < 4.0 * (begun - clock.left)  # noqa: E731
        try:
            expected = forecast.unexplained(part, shown, seed, enough=enough)
        except LazyscopeError as error:
            notes += (f"no forecast: {error}",)
        shown = shown[: len(next(iter(expected.values()), ()))]
    left_out = {cell for cell in measured.skipped if cell not in measured.losses}
    if left_out and measured.samples:  # without a comparison the verdict says so itself
        planned = len(left_out) + len(measured.losses)
        notes += (f"{len(left_out)} of {planned} settings did not fit into {clock.seconds:g} s",)
    return DataLens(
        about=str(table),
        task=table.task,
        measured=measured,
        middle=middle_of(sizes),
        seed=seed,
        part=part,
        forecast=expected,
        forecast_widths=shown,
        notes=notes,
        outlook=ahead,
    )


def _crowded(clock: Budget) -> float:
    """Return wall time over processor time so far, from 1 to 8: more than 1 where others use the cores, too."""
    return float(np.clip(clock.spent / max(time.process_time(), 0.1), 1.0, 8.0))


def _for_report(clock: Budget) -> float:
    """Return the seconds that are kept for the report."""
    return min(_FOR_REPORT[0] * clock.seconds + _FOR_REPORT[1] * _crowded(clock), 0.45 * clock.seconds)


def _fewer_rows(table: Table, most: int, seed: int) -> tuple[Table, tuple[str, ...]]:
    n = len(table.X)
    if n <= most:
        return table, table.notes
    kept = np.sort(np.random.default_rng(seed).permutation(n)[:most])
    return (
        replace(table, X=table.X.iloc[kept].reset_index(drop=True), y=table.y[kept]),
        (*table.notes, f"{most:,} of {n:,} rows, drawn at random"),
    )


def _ahead(table: Table, clock: Budget, seed: int) -> tuple[Outlook | None, tuple[str, ...]]:
    """Return the forecast of more rows, from a kernel matrix that the time left allows, or a note why there is none."""
    report(0, 1, "forecast")
    if clock.left < max(0.2 * _FOR_THEORY * clock.seconds, _FOR_OUTLOOK * _crowded(clock)):
        return None, ("no forecast of more rows: no time was left",)
    try:
        return outlook(table, clock.left / _FOR_THEORY, seed), ()
    except LazyscopeError as error:
        return None, (f"no forecast of more rows: {error}",)


def _affordable(n: int, d: int, clock: Budget, run: Callable[[int], object]) -> int:
    """Return how many directions the rows and the time left allow; the time is known from a run on a few."""
    most = directions(n, d)
    if most <= _TRIED:
        return most

    def flops(m: int) -> float:
        p = m * (m + 3) / 2.0
        return 4.0 * n * p**2 + 20.0 * p**3 + 1e7

    with clock.measuring("quadratic", flops(_TRIED)):
        run(_TRIED)
    allowed = _FOR_QUADRATIC * clock.left / clock.rates["quadratic"]
    return max(_TRIED, max((m for m in range(1, most + 1) if flops(m) <= allowed), default=0))


def _quadratic(table: Table, clock: Budget) -> tuple[QuadraticPart | None, tuple[str, ...]]:
    """Estimate β and B; of several classes, those of the one with the largest quadratic part."""
    report(0, 1, "quadratic part")
    if clock.left <= 0:
        return None, ("no time was left for the quadratic part",)
    X = whole(table)
    n, d = X.shape
    targets, classes = _targets(table)

    def estimate(m: int) -> tuple[Whitening, tuple[int, QuadraticPart]]:
        whitening = Whitening.of(X, m)
        return whitening, strongest(whitening(X), targets)

    most = _affordable(n, d, clock, estimate)
    if most == 0:
        return None, ("too few rows to estimate the quadratic part",)
    whitening, (best, part) = estimate(most)
    part = replace(part, columns=whitening.there)
    notes: tuple[str, ...] = ()
    if not part.whole:
        notes = (f"the quadratic part is seen in the leading {len(part.beta)} principal directions of {part.columns}, "
                 f"{whitening.kept:.0%} of their variance",)  # fmt: skip
    if len(targets) > 1:
        notes += (f"the quadratic part is that of class {classes[best]} against the rest, the largest",)
    return part, notes


def _targets(table: Table) -> tuple[list[Any], Any]:
    """Return the target, or ±1 for each class against the rest, and the classes."""
    if table.task == "regression":
        return [table.y], None
    classes = np.unique(table.y)
    return [np.where(table.y == c, 1.0, -1.0) for c in (classes if len(classes) > 2 else classes[1:])], classes

"""Measured errors of the regimes: over widths, over numbers of samples, fold by fold, within a budget of time.

The error is the squared error over the variance of the target (1 is the best constant), or the share of rows put into
the wrong class. What matters most is measured first: the regimes that the verdict compares, at the middle width, then
at the others, the quadratic model, then fewer samples, then wider and wider random features until they reach the
trained network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.data import regimes
from lazyscope.lenses.data.budget import Budget, OutOfTime
from lazyscope.lenses.data.preparing import Fold
from lazyscope.lenses.data.table import Task
from lazyscope.progress import report, within

_COMPARED = ("RF", "NT", "NN")
LAZY = ("RF", "NT")
"""Regimes that are ridge regression, so that there is a forecast of them."""

_SHARES = (0.5, 0.25, 0.125)  # of the training rows
_FEWEST = 40
_WIDEST = 16384


@dataclass(frozen=True, order=True)
class Cell:
    """One regime at one width on so many training rows."""

    regime: str
    width: int
    samples: int


@dataclass
class Measured:
    """Losses of each cell and of the best constant, row by row in each fold; seconds; what the budget left out.

    `squared` are the squared errors of the lazy regimes as shares of the best constant's, which forecasts are of: for
    numbers those are the losses, for classes those of targets ±1, each against the rest.
    """

    constant: list[FloatArray]
    losses: dict[Cell, list[FloatArray]] = field(default_factory=dict)
    seconds: dict[Cell, float] = field(default_factory=dict)
    skipped: list[Cell] = field(default_factory=list)
    squared: dict[Cell, list[FloatArray]] = field(default_factory=dict)

    @property
    def baseline(self) -> FloatArray:
        """The error of the best constant in each fold."""
        return np.array([part.mean() for part in self.constant])

    @property
    def errors(self) -> dict[Cell, FloatArray]:
        """The error of each cell in each fold."""
        return {cell: np.array([part.mean() for part in parts]) for cell, parts in self.losses.items()}

    def mean(self, cell: Cell) -> tuple[float, float]:
        """Return the mean over folds and its standard error."""
        return spread(self.losses[cell])

    def at(self, samples: int) -> dict[str, list[Cell]]:
        """Return the cells measured on so many rows, by regime, narrow before wide."""
        cells: dict[str, list[Cell]] = {}
        for cell in sorted(self.losses):
            if cell.samples == samples:
                cells.setdefault(cell.regime, []).append(cell)
        return cells


def measure(folds: Sequence[Fold], task: Task, widths: Sequence[int], budget: Budget, seed: int) -> Measured:
    """Fit and test whatever the budget allows."""
    n, d = min(len(fold.y) for fold in folds), folds[0].X.shape[1]
    outputs = len(np.unique(folds[0].y)) if task == "classification" else 1
    unit = float(np.var(np.concatenate([fold.y_test for fold in folds]))) if task == "regression" else 1.0
    result = Measured([_constant(fold, task) / unit for fold in folds])
    plan = _plan(sorted(widths), n)
    for done, cell in enumerate(plan):
        report(done, len(plan), f"{regimes.NAMES[cell.regime]}, width {cell.width}, {cell.samples} rows")
        _run(result, cell, folds, task, unit, budget, d, outputs, seed)
    width = 2 * max(widths)
    while _worth_wider(result, n, middle_of(widths)) and width <= _WIDEST:
        cell = Cell("RF", width, n)
        report(len(plan), len(plan) + 1, f"{regimes.NAMES['RF']}, width {width}")
        if not _run(result, cell, folds, task, unit, budget, d, outputs, seed):
            break
        width *= 2
    if not result.losses:
        must = "be long enough for one fit of every fold"
        raise InvalidParameter.of("lens", "budget", must, f"{budget.seconds:g} s", "Allow more time, or fewer rows.")
    return result


def middle_of(widths: Sequence[int]) -> int:
    """Return the width at which regimes are compared: the middle one, chosen before anything is measured."""
    return sorted(widths)[len(widths) // 2]


def spread(parts: Sequence[FloatArray]) -> tuple[float, float]:
    """Return the mean over folds, and its standard error: over folds or over rows, whichever is the larger.

    Five folds are few to tell a spread from, and rows do not know of the training sets that they share.

    >>> spread([np.array([1.0, 2.0]), np.array([2.0, 3.0])])
    (2.0, 0.5)
    """
    means, rows = np.array([part.mean() for part in parts]), np.concatenate(parts)
    among_folds = means.std(ddof=1) / np.sqrt(len(means))
    return float(means.mean()), float(max(among_folds, rows.std(ddof=1) / np.sqrt(len(rows))))


def _plan(widths: Sequence[int], n: int) -> list[Cell]:
    middle = middle_of(widths)
    others = [width for width in widths if width != middle]
    sizes = [int(share * n) for share in _SHARES if share * n >= _FEWEST]
    at_all = [Cell(regime, width, n) for width in (middle, *others) for regime in _COMPARED]
    at_fewer = [Cell(regime, middle, size) for size in sizes for regime in (*_COMPARED, "QM")]
    return [*at_all, *(Cell("QM", width, n) for width in (middle, *others)), *at_fewer]


def _run(
    result: Measured, cell: Cell, folds: Sequence[Fold], task: Task, unit: float, budget: Budget, d: int, outputs: int,
    seed: int,
) -> bool:  # fmt: skip
    """Measure one cell in all folds, or leave it out where the time would not do."""
    units = regimes.cost(cell.regime, cell.width, cell.samples, d, outputs)
    if not budget.fits(cell.regime, units * len(folds)):
        result.skipped.append(cell)
        return False
    losses, squared, start = [], [], budget.left
    for k, fold in enumerate(folds):
        if not budget.fits(cell.regime, units * (len(folds) - k)):
            result.skipped.append(cell)
            return False
        X, y = fold.first(cell.samples)
        try:
            with budget.measuring(cell.regime, units), within(), budget.ending():
                model = regimes.fit(cell.regime, task, cell.width, X, y, seed)
        except OutOfTime:
            result.skipped.append(cell)
            return False
        losses.append(_losses(model.predict(fold.X_test), fold.y_test, task) / unit)
        if cell.regime in LAZY:
            squared.append(losses[-1] if task == "regression" else _squared(model, fold))
    result.losses[cell] = losses
    if squared:
        result.squared[cell] = squared
    result.seconds[cell] = start - budget.left
    return True


def _worth_wider(result: Measured, n: int, middle: int) -> bool:
    """Whether all random features so far lag behind the trained network of the middle width."""
    network, features = Cell("NN", middle, n), result.at(n).get("RF", [])
    if network not in result.losses or not features:
        return False
    return min(result.mean(cell)[0] for cell in features) > result.mean(network)[0]


def _constant(fold: Fold, task: Task) -> FloatArray:
    if task == "regression":
        return _losses(fold.y.mean(), fold.y_test, task)
    names, counts = np.unique(fold.y, return_counts=True)
    return _losses(names[np.argmax(counts)], fold.y_test, task)


def _squared(model: Any, fold: Fold) -> FloatArray:
    """Return the squared errors of the targets ±1 behind a classifier, summed over classes, over their variances."""
    names = np.unique(fold.y)
    Y = np.where(fold.y_test[:, None] == (names if len(names) > 2 else names[1:]), 1.0, -1.0)
    values = np.asarray(model.decision_function(fold.X_test)).reshape(Y.shape)
    return np.asarray(np.sum((values - Y) ** 2, axis=1) / np.sum(np.var(Y, axis=0)))


def _losses(predicted: Any, wanted: Any, task: Task) -> FloatArray:
    losses = (predicted - wanted) ** 2 if task == "regression" else predicted != wanted
    return np.asarray(losses, dtype=np.float64)

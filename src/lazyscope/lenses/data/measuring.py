"""Measured errors of the regimes: over widths, over numbers of samples, fold by fold, within a budget of time.

The error is the squared error over the variance of the target (1 is the best constant), or the share of rows put into
the wrong class. Regimes are ranked only where all of them were measured, so that rows are fitted to the budget first:
RF, NT and NN at the middle width on a few rows, in every fold; then on four times as many, again and again, as long as
their times allow. What is left goes to boosted trees for reference, the quadratic model, the other widths, fewer
samples, and wider and wider random features until they reach the trained network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.data import regimes
from lazyscope.lenses.data.budget import Budget, OutOfTime
from lazyscope.lenses.data.preparing import Fold
from lazyscope.lenses.data.table import Task
from lazyscope.progress import report, within

COMPARED = ("RF", "NT", "NN")
LAZY = ("RF", "NT")
"""Regimes that are ridge regression, so that there is a forecast of them."""

_SHARES = (0.5, 0.25, 0.125)  # of the training rows
_FEWEST = 40
_PILOT = 100  # rows on which regimes are timed, and compared if nothing else fits; at most twice as many
_FOR_ROWS = 0.8  # of what is left, for the comparison on more rows
_DOUBT = 1.3  # factor by which a fit on more rows may take longer than its flops say
_GROWTH = 4  # times the rows from one comparison to the next: the time of the next is known, and a trend is seen
_WORTH_MORE = 1.3  # times the rows, for a comparison to be made again
_WIDEST = 16384
# flops a second, as `regimes.cost` counts them, on one core; for what has not been timed yet
_USUAL = {"RF": 8e9, "NT": 4e10, "NN": 5e10, "QM": 2e10, regimes.BOOSTED: 6e9}


@dataclass(frozen=True, order=True)
class Cell:
    """One regime at one width on so many training rows; boosted trees have width 0."""

    regime: str
    width: int
    samples: int


@dataclass
class Measured:
    """Losses of each cell and of the best constant, row by row in each fold; seconds; what the budget left out.

    `samples` are the training rows on which RF, NT and NN were all measured at the middle width (0: on none), `rows`
    those at hand; `needed` are seconds that would do for a comparison where there is none, or for one on all rows.
    `squared` are the squared errors of the lazy regimes as shares of the best constant's, which forecasts are of: for
    numbers those are the losses, for classes those of targets ±1, each against the rest.
    """

    constant: list[FloatArray]
    losses: dict[Cell, list[FloatArray]] = field(default_factory=dict)
    seconds: dict[Cell, float] = field(default_factory=dict)
    skipped: list[Cell] = field(default_factory=list)
    squared: dict[Cell, list[FloatArray]] = field(default_factory=dict)
    samples: int = 0
    rows: int = 0
    needed: float = 0.0
    budget: float = np.inf

    @property
    def baseline(self) -> FloatArray:
        """The error of the best constant in each fold."""
        return np.array([part.mean() for part in self.constant])

    @property
    def errors(self) -> dict[Cell, FloatArray]:
        """The error of each cell in each fold."""
        return {cell: np.array([part.mean() for part in parts]) for cell, parts in self.losses.items()}

    @property
    def reference(self) -> Cell | None:
        """The cell of boosted trees on the rows of the comparison, if they were measured."""
        cell = Cell(regimes.BOOSTED, 0, self.samples)
        return cell if cell in self.losses else None

    def mean(self, cell: Cell) -> tuple[float, float]:
        """Return the mean over folds and its standard error."""
        return spread(self.losses[cell])

    def before(self, width: int) -> int:
        """The rows, nearest to a quarter, on which the regimes were compared before; 0 where they were not."""
        sizes = {cell.samples for cell in self.losses if 2 * cell.samples <= self.samples}
        sizes = {n for n in sizes if all(Cell(name, width, n) in self.losses for name in COMPARED)}
        return min(sizes, key=lambda n: abs(log(_GROWTH * n / self.samples)), default=0)

    def at(self, samples: int) -> dict[str, list[Cell]]:
        """Return the cells of the four regimes measured on so many rows, by regime, narrow before wide."""
        cells: dict[str, list[Cell]] = {}
        for cell in sorted(self.losses):
            if cell.samples == samples and cell.regime != regimes.BOOSTED:
                cells.setdefault(cell.regime, []).append(cell)
        return cells


@dataclass(frozen=True, eq=False)
class _Bench:
    """What every fit needs: folds, task, the unit of the losses, the budget and the seed."""

    folds: Sequence[Fold]
    task: Task
    unit: float
    budget: Budget
    seed: int

    @property
    def outputs(self) -> int:
        return len(np.unique(self.folds[0].y)) if self.task == "classification" else 1

    def flops(self, cell: Cell) -> float:
        """Return the flops of a fit in one fold."""
        return regimes.cost(cell.regime, cell.width, cell.samples, self.folds[0].X.shape[1], self.outputs)

    def expected(self, cell: Cell, folds: int | None = None) -> float:
        """Return the seconds that some folds of a cell, or all, can be expected to take."""
        return self._rate(cell.regime) * self.flops(cell) * (len(self.folds) if folds is None else folds)

    def _rate(self, regime: str) -> float:
        """Return the seconds per flop: as timed last, or the usual ones, times how much slower other regimes were."""
        known = self.budget.rates
        if regime in known:
            return known[regime]
        slower = max((known[name] * _USUAL[name] for name in _USUAL if name in known), default=1.0)
        return max(1.0, slower) / _USUAL[regime]


def measure(
    folds: Sequence[Fold], task: Task, widths: Sequence[int], budget: Budget, seed: int, kept: float = 0.0
) -> Measured:
    """Fit and test whatever the budget allows, and keep some seconds of it once there is a comparison."""
    unit = float(np.var(np.concatenate([fold.y_test for fold in folds]))) if task == "regression" else 1.0
    bench, middle = _Bench(folds, task, unit, budget, seed), middle_of(widths)
    result = Measured([_constant(fold, task) / unit for fold in folds], budget=budget.seconds)
    result.rows = min(len(fold.y) for fold in folds)
    _compare(result, bench, middle, kept)
    if result.samples < result.rows:
        wanted = [Cell(name, middle, result.rows if result.samples else _pilot(result.rows)) for name in COMPARED]
        more = _DOUBT * sum(map(bench.expected, wanted)) / _FOR_ROWS
        result.needed = (budget.spent + more) / (1.0 - budget.kept / budget.seconds)
    if result.samples == 0:
        return result
    plan = _plan(sorted(widths), result.samples, bench.outputs)
    earlier = result.before(middle)
    if result.samples < result.rows and earlier:  # so that the trend of boosted trees is seen, too
        plan.insert(1, Cell(regimes.BOOSTED, 0, earlier))
    for done, cell in enumerate(plan):
        report(done, len(plan), _words(cell))
        _run(result, cell, bench)
    width = 2 * max(widths)
    while _worth_wider(result, middle) and width <= _WIDEST:
        cell = Cell("RF", width, result.samples)
        report(len(plan), len(plan) + 1, _words(cell))
        if not _run(result, cell, bench):
            break
        width *= 2
    return result


def _compare(result: Measured, bench: _Bench, middle: int, kept: float) -> None:
    """Measure RF, NT and NN at the middle width: on a few rows first, then on as many as the time allows."""
    size = _pilot(result.rows)
    if not _warm_up(bench, middle):
        return
    while True:
        for k, name in enumerate(COMPARED):
            cell = Cell(name, middle, size)
            report(k, len(COMPARED), _words(cell))
            if not _run(result, cell, bench):
                return
        if result.samples == 0:
            bench.budget.kept += kept
        result.samples = size
        most = _GROWTH * size if _WORTH_MORE * _GROWTH * size < result.rows else result.rows
        larger = _affordable(bench, middle, size, most)
        if larger < min(result.rows, _WORTH_MORE * size) or larger == size:
            return
        size = larger


def _warm_up(bench: _Bench, middle: int) -> bool:
    """Fit RF, NT and NN twice on a few rows: the first fit loads compiled code, the second tells the speed."""
    X, y = bench.folds[0].first(max(_FEWEST, bench.outputs))
    try:
        with within(), bench.budget.ending():
            for name in COMPARED:
                units = bench.flops(Cell(name, middle, len(y)))
                for _ in range(2):
                    with bench.budget.measuring(name, units):
                        regimes.fit(name, bench.task, middle, X, y, bench.seed)
    except OutOfTime:
        return False
    return True


def _pilot(n: int) -> int:
    """Return the first size: n halved until it is below 200.

    >>> _pilot(8000), _pilot(353), _pilot(90)
    (125, 176, 90)
    """
    while n >= 2 * _PILOT:
        n //= 2
    return n


def _affordable(bench: _Bench, middle: int, size: int, n: int) -> int:
    """Return the most rows on which the comparison can be expected to end within its share of what is left."""

    def fits(rows: int) -> bool:
        cells = [Cell(name, middle, rows) for name in COMPARED]
        return _DOUBT * sum(map(bench.expected, cells)) <= _FOR_ROWS * bench.budget.left

    if fits(n):
        return n
    low, high = size, n
    while high - low > 0.05 * low:
        rows = (low + high) // 2
        low, high = (rows, high) if fits(rows) else (low, rows)
    return low


def middle_of(widths: Sequence[int]) -> int:
    """Return the width at which regimes are compared: the middle one, chosen before anything is measured."""
    return sorted(widths)[len(widths) // 2]


def spread(parts: Sequence[FloatArray]) -> tuple[float, float]:
    """Return the mean over folds, and its standard error: over folds or over rows, whichever is the larger.

    Five folds are too few for a reliable spread, and rows of one fold share a training set, which their spread ignores.

    >>> spread([np.array([1.0, 2.0]), np.array([2.0, 3.0])])
    (2.0, 0.5)
    """
    means, rows = np.array([part.mean() for part in parts]), np.concatenate(parts)
    among_folds = means.std(ddof=1) / np.sqrt(len(means))
    return float(means.mean()), float(max(among_folds, rows.std(ddof=1) / np.sqrt(len(rows))))


def _words(cell: Cell) -> str:
    if cell.regime == regimes.BOOSTED:
        return f"{regimes.REFERENCE}, {cell.samples} rows"
    return f"{regimes.NAMES[cell.regime]}, width {cell.width}, {cell.samples} rows"


def _plan(widths: Sequence[int], n: int, classes: int) -> list[Cell]:
    """Return what is measured after the comparison, the most informative first."""
    middle = middle_of(widths)
    others = [width for width in widths if width != middle]
    sizes = [int(share * n) for share in _SHARES if share * n >= max(_FEWEST, classes)]
    at_others = [Cell(regime, width, n) for width in others for regime in COMPARED]
    at_fewer = [Cell(regime, middle, size) for size in sizes for regime in (*COMPARED, "QM")]
    quadratic = [Cell("QM", width, n) for width in (middle, *others)]
    return [Cell(regimes.BOOSTED, 0, n), quadratic[0], *at_others, *quadratic[1:], *at_fewer]


def _run(result: Measured, cell: Cell, bench: _Bench) -> bool:
    """Measure one cell in all folds; skip it, and return False, where the time does not suffice."""
    if cell in result.losses:
        return True
    units, budget, folds = bench.flops(cell), bench.budget, bench.folds
    losses, squared, start = [], [], budget.left
    for k, fold in enumerate(folds):
        if bench.expected(cell, len(folds) - k) > budget.left:
            result.skipped.append(cell)
            return False
        X, y = fold.first(cell.samples)
        try:
            with budget.measuring(cell.regime, units), within(), budget.ending():
                model = regimes.fit(cell.regime, bench.task, cell.width, X, y, bench.seed)
        except OutOfTime:
            result.skipped.append(cell)
            return False
        losses.append(_losses(model.predict(fold.X_test), fold.y_test, bench.task) / bench.unit)
        if cell.regime in LAZY:
            squared.append(losses[-1] if bench.task == "regression" else _squared(model, fold))
    result.losses[cell] = losses
    if squared:
        result.squared[cell] = squared
    result.seconds[cell] = start - budget.left
    return True


def _worth_wider(result: Measured, middle: int) -> bool:
    """Whether all random features so far lag behind the trained network of the middle width."""
    features = result.at(result.samples)["RF"]
    network = Cell("NN", middle, result.samples)
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

"""Draws: work that is repeated, and what is made of its rows: means, standard errors, exponents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

import numpy as np

from lazyscope.checks import FloatArray, whole_number, whole_numbers
from lazyscope.evidence.work import Measurement, Row, Work
from lazyscope.experiments.frame.types import Dataset
from lazyscope.progress import report

D = TypeVar("D", bound=Work)


class Draw(Measurement):
    """One draw, a frozen dataclass, known by its `number` among those that have the other fields in common.

    Its label is `words`, a format string in which {0} is the draw and {draw} its number counted from 1; its size is the
    product of the fields named in `costs`.
    """

    words: ClassVar[str]
    costs: ClassVar[tuple[str, ...]] = ()
    number: int

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return self.words.format(self, draw=self.number + 1)

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return prod(int(attrgetter(name)(self)) for name in self.costs)


def over_widths(owner: str, widths: Any, draws: int, draw: Callable[[int, int], D]) -> list[D]:
    """Return draw(width, number) for every width and number, which are checked here for the report `owner`."""
    some = np.atleast_1d(whole_numbers(widths, owner, "widths")).tolist()
    numbers = range(whole_number(draws, owner, "draws"))
    return [draw(width, number) for width in some for number in numbers]


def computed(draws: Sequence[Work]) -> list[Row]:
    """Compute draw after draw, and report."""
    rows = []
    for i, draw in enumerate(draws):
        report(i, len(draws), draw.label)
        rows.append(draw.compute())
    report(len(draws), len(draws), "done")
    return rows


def grouped(draws: Sequence[Work], rows: Sequence[Row], field: str) -> dict[Any, list[Row]]:
    """Return the rows by a field of their draws, in the order of its first appearance."""
    groups: dict[Any, list[Row]] = {}
    for draw, row in zip(draws, rows, strict=True):
        groups.setdefault(getattr(draw, field), []).append(row)
    return groups


def table(draws: Sequence[Work], rows: Sequence[Row], name: str, field: str = "width") -> FloatArray:
    """Return one number of all rows, (…, field, draw), for draws that differ in this field and in number alone."""
    values = np.array([[row[name] for row in group] for group in grouped(draws, rows, field).values()], dtype=float)
    return np.moveaxis(values, (0, 1), (-2, -1))


def split(rows: Sequence[Row], parts: Sequence[Sequence[D]]) -> list[Sequence[Row]]:
    """Return the rows of each part of the work, which the sweep has done one after the other.

    >>> split([{}, {}, {}], [[1], [2, 3]])
    [[{}], [{}, {}]]
    """
    ends = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    return [rows[start:end] for start, end in pairwise(ends)]


def over_draws(values: FloatArray, axis: int = -1) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard error over an axis; with one draw the standard error is NaN.

    >>> over_draws(np.array([[1.0, 3.0]]))
    (array([2.]), array([1.]))
    """
    draws, mean = values.shape[axis], values.mean(axis=axis)
    return mean, values.std(axis=axis, ddof=1) / np.sqrt(draws) if draws > 1 else np.full_like(mean, np.nan)


def averaged(name: str, dims: Any, values: FloatArray, axis: int = -1) -> dict[str, Any]:
    """Return a column `name` of a panel and one `name`_stderr: mean and standard error over draws.

    >>> averaged("risk", "width", np.array([[1.0, 3.0]]))
    {'risk': ('width', array([2.])), 'risk_stderr': ('width', array([1.]))}
    """
    mean, stderr = over_draws(values, axis)
    return {name: (dims, mean), f"{name}_stderr": (dims, stderr)}


def dataset(columns: Mapping[str, Any], coords: Any = None, attrs: Mapping[str, Any] | None = None) -> Dataset:
    """Return a panel of labelled numbers; xarray, which is slow to import, is imported here."""
    import xarray as xr

    return xr.Dataset(columns, coords, attrs)


def attributes(source: Any, *names: str) -> dict[str, Any]:
    """Return fields of a preset or a draw as attributes of a panel: numbers and words as they are, a problem in words.

    >>> from lazyscope.problems import LinearTarget
    >>> from types import SimpleNamespace
    >>> attributes(SimpleNamespace(problem=LinearTarget(noise=0.5), d=3), "problem", "d")["d"]
    3
    """
    values = {name: getattr(source, name) for name in names}
    return {name: value if isinstance(value, (int, float, str)) else str(value) for name, value in values.items()}


def exponents(widths: FloatArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the slope of log size against log width, mean and standard error over draws; sizes is (…, width, draw).

    The slope is −inf where a size is exactly zero, and NaN from a single width.

    >>> m = np.array([1e2, 1e3, 1e4])
    >>> sizes = np.stack([2.0 * m**-0.25, 3.0 * m**-0.25], axis=-1)
    >>> slope, stderr = exponents(m, sizes)
    >>> print(f"{slope:.4f} {stderr:.4f}")
    -0.2500 0.0000
    """
    x = np.log(np.asarray(widths, dtype=np.float64))
    if len(x) < 2:
        return np.full(sizes.shape[:-2], np.nan), np.full(sizes.shape[:-2], np.nan)
    x = x - x.mean()
    zero = np.any(sizes <= 0.0, axis=(-2, -1))
    logs = np.log(np.where(sizes > 0.0, sizes, 1.0))
    slopes = np.einsum("w,...wd->...d", x, logs) / (x @ x)
    slope, spread = over_draws(slopes)
    return np.where(zero, -np.inf, slope), np.where(zero, 0.0, spread)


def provenance(name: str, theorem: str, citations: str, seed: int) -> dict[str, Any]:
    """Return the attributes that tell what a report is: its key, what it measures, and on which theorem."""
    told = {"label": name, "claim": f"report {name}", "fidelity": "simulate", "theorem": theorem}
    return told | {"citations": citations, "regime": f"seed {seed}"}

"""Exponents: how a size falls or grows with the width, fitted on logarithms, one fit for every draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.progress import report


class Measurement(Protocol):
    """One draw of a report."""

    @property
    def label(self) -> str:
        """A few words for a progress bar."""

    def compute(self) -> dict[str, Any]:
        """Do the work."""


def computed(plan: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Compute draw after draw, and report."""
    rows = []
    for i, one in enumerate(plan):
        report(i, len(plan), one.label)
        rows.append(one.compute())
    report(len(plan), len(plan), "done")
    return rows


def over_draws(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard error over the last axis; the latter is NaN from a single draw.

    >>> over_draws(np.array([[1.0, 3.0]]))
    (array([2.]), array([1.]))
    """
    draws = table.shape[-1]
    mean = table.mean(axis=-1)
    return mean, table.std(axis=-1, ddof=1) / np.sqrt(draws) if draws > 1 else np.full_like(mean, np.nan)


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

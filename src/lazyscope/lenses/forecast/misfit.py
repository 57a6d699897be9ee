"""How far the formula is from these very rows: what a part of the pool knows of itself, and what the pool says of it.

The leave-one-out error of m rows is that of kernel ridge regression on m − 1 rows, whatever their law. The whole pool
forecasts the same number through the deterministic equivalents, which suppose that rows are alike. Where a few are much
longer than the others and the ridge is small, the two differ. Their distance δ, in log risk, joins the band.

δ is taken as a function of the share of the rows that the fit uses up, df₁/n, which is 1 at interpolation. At N = ∞ a
forecast for all P rows is their leave-one-out error itself, so that δ enters with the weight 1 − n/P; with N ≤ n
features it enters in full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.forecast import curve
from lazyscope.lenses.forecast.curve import Functions
from lazyscope.lenses.forecast.pool import Pool

LARGEST_PART = 300
"""Rows of a part: where no quarters are asked for, a check that costs next to nothing."""

_TINY = 1e-300
_RIDGES = np.geomspace(1e-8, 10.0, 19)  # of the mean of the kernel's diagonal


@dataclass(frozen=True, eq=False)
class Misfit:
    """|δ| over df₁/m, ascending, and m/P."""

    used: FloatArray
    distance: FloatArray
    part: float

    def at(self, df1: FloatArray, n: FloatArray, N: FloatArray, rows: float) -> FloatArray:
        """Return what joins the band at n rows and N features of a pool of so many rows."""
        with np.errstate(invalid="ignore"):
            features = np.where(np.isinf(N), 1.0, np.maximum(1.0 - n / N, 0.0))
        weight = (1.0 - np.minimum(n / rows, 1.0) * features) / (1.0 - self.part)
        return np.asarray(np.interp(df1 / n, self.used, self.distance) * np.minimum(weight, 1.0))


def misfit(parts: list[Pool], own: Functions, rows: int, diagonal: float, energy: FloatArray) -> Misfit:
    """Return the distance of the parts' own errors, mean over parts and targets, from what the pool forecasts."""
    m = float(np.mean([part.rows for part in parts]))
    n, N, ridge = np.array(m), np.array(np.inf), diagonal * _RIDGES
    forecast = curve.errors(own, n, N, ridge)
    known = [curve.errors(Functions.of(part), np.array(float(part.rows)), N, ridge).risk[0] for part in parts]
    both = [np.sum(risk / energy[:, None], axis=0) for risk in (np.mean(known, axis=0), forecast.risk[0])]
    used = forecast.degrees_of_freedom / m
    distance = np.abs(np.log(np.maximum(both[0], _TINY) / np.maximum(both[1], _TINY)))
    return Misfit(used[::-1], np.where(both[0] > 0.0, distance, 0.0)[::-1], m / rows)

"""The verb `forecast`: every n, N and λ from one decomposition of a user's own kernel matrix."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import (
    FloatArray,
    arithmetic,
    fits_in_memory,
    jsonable,
    non_negative_numbers,
    positive_numbers,
    whole_numbers,
)
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.lenses.forecast import curve, extrapolate
from lazyscope.lenses.forecast.curve import Functions
from lazyscope.lenses.forecast.extrapolate import Extrapolation
from lazyscope.lenses.forecast.misfit import LARGEST_PART, Misfit, misfit
from lazyscope.lenses.forecast.pool import pool
from lazyscope.lenses.forecast.rows import Rows, rows_of
from lazyscope.progress import report
from lazyscope.regimes import NeuralTangent

if TYPE_CHECKING:
    import xarray as xr

CITATIONS = ("defilippis2024dimension",)
THEOREM = "Deterministic equivalents (Theorem 3.3), read from the leave-one-out errors of one kernel matrix"
ASSUMPTIONS = (
    "rows are independent and alike: the new ones come from where these came from",
    "objective Σ(y − f)² + λ‖a‖², f = N^−½ Σ a_jφ_j, E[φφ] = K; ridge = 0 is λ → 0",
    "no limit is taken: the relative error falls with n and N, and is largest near N = n at small λ",
)
SURE = 1.73
"""Standard errors of log risk: a band of 90 % by Student's t of a jackknife of twenty groups."""

_RIDGES = np.geomspace(1e-9, 1e4, 53)  # of the mean of the kernel's diagonal, for the best one
_AT_ONCE = 1 << 21  # numbers in an array
_LARGEST_RIDGE = 1e8  # of the trace of the kernel: nothing is learnt from there on


@dataclass(frozen=True, eq=False)
class Forecaster:
    """A decomposed pool, ready to answer for any n, N and λ at once.

    `most` is the largest n that it continues to; `widened` the factor that the rehearsal found for bands beyond P;
    `misfit` what joins every band where rows are not alike, unless they are too few to tell.
    """

    rows: int
    own: Functions
    beyond: Extrapolation | None
    widened: float
    misfit: Misfit | None
    energy: FloatArray
    diagonal: float

    @classmethod
    def of(cls, rows: Rows, most: float, largest_ridge: float = 0.0) -> Forecaster:
        """Decompose; the kernel of the rows is overwritten. Only n > P asks for whole quarters, a tenth more work."""
        K, Y = rows.K, rows.Y
        P, diagonal = len(K), float(np.mean(np.diagonal(K)))
        variance = np.var(Y, axis=0)
        report(0, 2, f"kernel of {P:,} rows")
        if most > P and P < extrapolate.LEAST_ROWS:
            must = f"be at most the number of rows, unless there are {extrapolate.LEAST_ROWS} of them"
            raise InvalidParameter.of("forecast", "samples", must, f"{most:g} for {P} rows")
        enough = P >= extrapolate.LEAST_ROWS
        parts = extrapolate.rehearsed(K, Y, None if most > P else LARGEST_PART) if enough else []
        report(1, 2, f"kernel of {P:,} rows")
        table = pool(K, Y, 10.0 * P * min(largest_ridge, _LARGEST_RIDGE * P * diagonal))
        own = Functions.of(table)
        beyond = extrapolate.continued(table, most) if most > P else None
        widened = extrapolate.missed(parts, own, diagonal) if most > P else 1.0
        distance = misfit(parts, own, P, diagonal, variance) if parts else None
        return cls(P, own, beyond, widened, distance, variance, diagonal)

    def at(self, n: Any, N: Any, ridge: Any) -> dict[str, Any]:
        """Return risk, its copies without each group of rows, band and degrees of freedom at sizes that broadcast."""
        sizes = np.broadcast_arrays(*(np.asarray(size, dtype=np.float64) for size in (n, N, ridge)))
        shape, block = sizes[0].shape, max(1, _AT_ONCE // int(np.prod(self.own.shape)))
        points = int(np.prod(shape))
        # all that `_some` returns, in parts and then whole: two arrays over groups and targets, seven over points
        _fits(points, 2.0 * 8.0 * points * (2.0 * float(np.prod(self.own.shape)) + 7.0))
        flat = [size.ravel() for size in sizes]
        parts = []
        for start in range(0, max(points, 1), block):
            report(start, points, f"error at {points:,} sizes")
            parts.append(self._some(*(size[start : start + block] for size in flat)))
        forecast = {name: np.concatenate([part[name] for part in parts], axis=-1) for name in parts[0]}
        return {name: value.reshape(*value.shape[:-1], *shape) for name, value in forecast.items()}

    def _some(self, n: FloatArray, N: FloatArray, ridge: FloatArray) -> dict[str, Any]:
        P = float(self.rows)
        ridge = np.minimum(ridge, _LARGEST_RIDGE * P * self.diagonal)
        own = curve.errors(self.own, np.minimum(n, P), N, ridge)
        copies, df1, residual = own.risk, own.degrees_of_freedom, own.residual
        apart, more = np.zeros(copies.shape[1:]), n > P
        if self.beyond is not None and np.any(more):
            farther, distance = self.beyond.errors(self.own, np.where(more, n, P), N, ridge)
            copies, apart = np.where(more, farther.risk, copies), np.where(more, distance, 0.0)
            df1 = np.where(more, farther.degrees_of_freedom, df1)
            residual = np.where(more, farther.residual, residual)
        widened = 1.0 + (self.widened - 1.0) * np.where(more, 1.0 - P / n, 0.0)
        unlike = np.zeros(n.shape) if self.misfit is None else self.misfit.at(df1, n, N, P)
        with np.errstate(invalid="ignore"):  # infinite at N = n without a ridge
            stderr = np.sqrt(curve.spread(copies) ** 2 + apart**2 + unlike**2) * widened
        return {
            "copies": copies, "risk": copies[0], "stderr": np.where(np.isfinite(copies[0]), stderr, 0.0),
            "degrees_of_freedom": df1, "extrapolated": more, "residual": residual, "apart": apart * widened,
            "widened": widened, "misfit": unlike,
        }  # fmt: skip

    def overall(self, found: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
        """Return the errors of all targets added, over the best constant's, (1 + groups, …), and the standard error."""
        shares = np.sum(found["copies"], axis=1) / np.sum(self.energy)
        with np.errstate(invalid="ignore"):
            apart = np.mean(found["apart"] ** 2, axis=0)
            stderr = np.sqrt((curve.spread(shares) ** 2 + found["misfit"] ** 2) * found["widened"] ** 2 + apart)
        return shares, np.where(np.isfinite(shares[0]), stderr, 0.0)

    def best_ridge(self, n: Any, N: Any) -> FloatArray:
        """Return the λ with the least error, summed over targets: a grid, then a parabola through its least values."""
        n, N = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(N, dtype=np.float64))
        grid = self.diagonal * _RIDGES
        risk = self.at(n[..., None], N[..., None], grid)["risk"]
        whole = np.log(np.sum(risk, axis=0))
        best = np.clip(np.argmin(whole, axis=-1), 1, len(grid) - 2)
        before, here, after = (np.take_along_axis(whole, best[..., None] + k, axis=-1)[..., 0] for k in (-1, 0, 1))
        bend = before - 2.0 * here + after
        shift = np.where(bend > 0.0, 0.5 * (before - after) / np.where(bend > 0.0, bend, 1.0), 0.0)
        return np.asarray(grid[best] * np.exp(np.clip(shift, -1.0, 1.0) * np.log(grid[1] / grid[0])))

    def answer(self, given: Mapping[str, FloatArray]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is found over the sizes asked for, each an axis, and these as arguments; best ridge if none."""
        axes = np.ix_(*(np.atleast_1d(size) for size in given.values()))
        arguments: dict[str, Any] = jsonable({name: size.tolist() for name, size in given.items()})
        if "ridge" in given:
            return self.at(*axes), arguments
        n, N = axes
        best = self.best_ridge(n, N)
        return {**self.at(n, N, best), "best_ridge": best}, {**arguments, "ridge": "best"}


def forecast(
    X: Any = None,
    y: Any = None,
    regime: Any = None,
    *,
    samples: Any,
    width: Any = np.inf,
    ridge: Any = "best",
    gram: Any = None,
    scale: Any = "auto",
    bias: float = 0.0,
    intercept: bool = False,
    task: str | None = None,
) -> xr.Dataset:
    """Forecast the test error on your own data at every number of rows, width and ridge, from one kernel matrix.

    `forecast(X, y, regime, samples=…)` for rows, `forecast(gram=K, y=y, samples=…)` for a kernel matrix as it is.
    Nothing is trained. One eigendecomposition of the P rows answers for every n ≤ P; beyond it is an extrapolation,
    flagged, with a band that a rehearsal on quarters of the rows has set (docs/forecast.md).

    Parameters
    ----------
    X, y :
        Rows, (P, d), and targets: numbers (P,) or several columns (P, T), or the names of classes, each of which is
        forecast against the rest as ±1. Classes that are numbers need `task="classification"`.
    regime :
        `RandomFeatures(σ)`, `NeuralTangent(σ)` (width = inf), or a function k(X, X′) that returns a kernel matrix.
    samples, width, ridge :
        n, N and λ of Σ(y − f)² + λ‖a‖², f = N^−½ Σ a_jφ_j: numbers or sequences, which become dimensions. N = inf is
        the kernel. ridge="best" finds the λ with the least error at each n and N, the variable `best_ridge`.
    gram :
        K = E[φφ] at the rows, instead of X and a regime.
    scale, bias, intercept :
        Weights w ~ N(0, scale²), "auto" for 1/√E‖x‖²; standard deviation of offsets; whether f has a free constant. As
        in `RandomFeaturesRegressor`, which has bias=0.3 and a constant.
    task :
        "classification" where classes are numbers; otherwise told by the type of y.

    Returns
    -------
    xarray.Dataset
        Over (samples, width, ridge[, target]): `risk`, the mean squared error on a new row, noise included; `share`
        of the best constant's; `low` and `high`, a band of 90 % of the risk; `degrees_of_freedom`; `extrapolated`; with
        several targets `overall`, the share of all of them, with its band.

    Examples
    --------
    >>> import lazyscope as ls
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = ls.forecast(
    ...     X, y, ls.RandomFeatures("relu"), samples=[50, 200, 400], width=[100, np.inf], intercept=True
    ... )
    >>> print(found.share.values.round(2))
    [[0.58 0.57]
     [0.52 0.51]
     [0.5  0.5 ]]
    """
    given = asked(samples, width, ridge, regime)
    with arithmetic("A forecast of these numbers"):
        rows = rows_of(X, y, regime, gram, scale=scale, bias=bias, intercept=intercept, task=task)
        known = Forecaster.of(rows, float(np.max(given["samples"])), float(np.max(given.get("ridge", 0.0))))
        found, arguments = known.answer(given)
    label = "a kernel matrix" if gram is not None else str(regime) if hasattr(regime, "label") else "a kernel function"
    return dataset(known, rows, given, found, {"regime": label, "arguments": json.dumps(arguments)})


def _fits(points: int, size: float) -> None:
    """Refuse more sizes than memory has room for."""
    fits_in_memory(size, f"A forecast at {points:,} sizes", "Use fewer values of samples, width or ridge.")


def asked(samples: Any, width: Any, ridge: Any, regime: Any) -> dict[str, FloatArray]:
    """Return the sizes that are asked for, checked; no ridge where the best one is to be found."""
    n = whole_numbers(samples, "forecast", "samples").astype(np.float64)
    N = positive_numbers(width, "forecast", "width", "Pass N, for example width=[50, 200, inf].")
    _check_width(regime, N)
    sizes = {"samples": n, "width": N}
    if isinstance(ridge, str):
        if ridge != "best":
            raise InvalidParameter.of("forecast", "ridge", 'be "best", or numbers λ ≥ 0', repr(ridge))
    else:
        sizes["ridge"] = non_negative_numbers(ridge, "forecast", "ridge", 'Pass λ, a sequence of values, or "best".')
    points = math.prod(size.size for size in sizes.values()) * (1 if "ridge" in sizes else len(_RIDGES))
    _fits(points, 2.0 * 8.0 * points * 9.0)  # for one target and no groups, before any work
    return sizes


def _check_width(regime: Any, N: FloatArray) -> None:
    if isinstance(regime, NeuralTangent) and not np.all(np.isinf(N)):
        wrong = np.atleast_1d(N)[np.isfinite(np.atleast_1d(N))][0]
        raise NoTheorem.of(
            "The forecast of the tangent model", "width = inf", f"{wrong:g}",
            "Leave the width out: narrow networks lie above, by a correction in n/(Nd).",
        )  # fmt: skip


_LONG_NAMES = {
    "samples": "n, number of rows",
    "width": "N, number of neurons",
    "ridge": "ridge λ",
    "risk": "mean squared error on a new row, noise included",
    "share": "risk / risk of the best constant",
    "low": "lower end of the band, 90 %",
    "high": "upper end of the band, 90 %",
    "overall": "risk / risk of the best constant, targets added",
    "overall_low": "its lower end, 90 %",
    "overall_high": "its upper end, 90 %",
    "degrees_of_freedom": "df₁, how many directions the fit uses",
    "extrapolated": "whether more rows are asked for than there are",
    "best_ridge": "ridge λ with the least error",
    "baseline": "mean squared error of the best constant",
    "residual": "relative residual of the equation for κ",
}


def dataset(
    known: Forecaster,
    rows: Rows,
    given: Mapping[str, FloatArray],
    found: Mapping[str, FloatArray],
    about: Mapping[str, str],
) -> xr.Dataset:
    """Return the labelled result; a size that was one number is no dimension, and one target neither."""
    import xarray as xr

    from lazyscope import __version__

    def labelled(name: str, dims: tuple[str, ...], values: Any) -> tuple[tuple[str, ...], Any, dict[str, str]]:
        return dims, values, {"long_name": _LONG_NAMES[name]}

    sizes = tuple(given)
    factor = np.exp(SURE * found["stderr"])
    baseline = known.energy.reshape(-1, *[1] * len(sizes))
    by_target = {
        "risk": found["risk"], "share": found["risk"] / baseline, "low": found["risk"] / factor,
        "high": found["risk"] * factor,
    }  # fmt: skip
    shares, stderr = known.overall(found)
    dims = (*sizes, "target")
    variables = {name: labelled(name, dims, np.moveaxis(values, 0, -1)) for name, values in by_target.items()}
    for name in ("degrees_of_freedom", "extrapolated", "residual", "best_ridge"):
        if name in found:
            variables[name] = labelled(name, sizes, found[name])
    if rows.names is not None:
        factor = np.exp(SURE * stderr)
        for name, values in (("", shares[0]), ("_low", shares[0] / factor), ("_high", shares[0] * factor)):
            variables[f"overall{name}"] = labelled(f"overall{name}", sizes, values)
    variables["baseline"] = labelled("baseline", ("target",), known.energy)
    coordinates: dict[str, Any] = {name: labelled(name, (name,), np.atleast_1d(size)) for name, size in given.items()}
    coordinates["target"] = list(rows.names or ("y",))
    attributes = {
        "claim": "forecast", "fidelity": "forecast", "theorem": THEOREM, "citations": ",".join(CITATIONS),
        "assumptions": "; ".join(ASSUMPTIONS), "problem": rows.about, "label": "forecast", **about, "rows": known.rows,
        "band_widened": known.widened, "notes": "; ".join(rows.notes), "lazyscope_version": __version__,
    }  # fmt: skip
    result = xr.Dataset(variables, coordinates, attributes)
    single = [name for name, size in given.items() if np.ndim(size) == 0]
    result = result.squeeze(single)
    return result if rows.names is not None else result.squeeze("target", drop=True)

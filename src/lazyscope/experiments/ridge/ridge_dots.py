"""What the experiments on ridge regression share: dots beside the limit, against N/n, and the judgement on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.evidence.work import Row
from lazyscope.experiments.frame import dots
from lazyscope.experiments.frame.dots import Setting
from lazyscope.experiments.frame.verdict import Answer
from lazyscope.problems import LinearTarget
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.pictures import scale_colour
from lazyscope.runs.verbs import limit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

MEASURED = ("risk", "bias", "variance", "train")
_STANDARD_ERRORS = 4.0
_FINITE_SIZE = 10.0  # times value/d: what the mean of draws may be off by; the validation measures half of it


@dataclass(frozen=True, eq=False)
class RidgeSetting(Setting):
    """Random features with several ridges."""

    ridges: tuple[float, ...] = ()
    measured = MEASURED

    @property
    def sizes(self) -> dict[str, tuple[Any, ...]]:
        """The sizes of a trial, which computes all ridges at once."""
        return {**super().sizes, "ridge": self.ridges}

    def data(self, rows: Sequence[Row], lines: NDArray[np.float64] | None = None) -> xr.Dataset:
        """Return dots, `risk` and its like with standard errors, and the limit: at the dots, and along `lines` of N/n.

        Without `lines`, the limit is not drawn. Where it is infinite there is no dot.
        """
        import xarray as xr

        ratio = np.array(self.widths) / self.samples
        expected = self._limit(ratio)
        columns = self.columns(rows, expected, np.isfinite(expected.risk.values))
        coordinates: dict[str, Any] = {
            "width": list(self.widths),
            "ridge": list(self.ridges),
            "ratio": (("width",), ratio),
        }
        if lines is not None:
            coordinates["line"] = lines
            along = self._limit(lines)
            columns |= {f"{name}_limit": (("line", "ridge"), along[name].values) for name in MEASURED}
        return xr.Dataset(columns, coordinates, self.about(expected))

    def _limit(self, ratio: NDArray[np.float64]) -> xr.Dataset:
        psi2 = self.samples / self.d
        return limit(self.problem, self.regime, psi1=ratio * psi2, psi2=psi2, ridge=list(self.ridges))


def settings_of(
    targets: Mapping[str, LinearTarget],
    d: int,
    psi2: float,
    ratios: Sequence[float],
    draws: int,
    ridges: tuple[float, ...],
) -> dict[str, RidgeSetting]:
    """Return ReLU features of widths N/n on n = ψ₂d samples of each target, by its name."""
    n, features = round(psi2 * d), RandomFeatures("relu")
    widths = widths_at(ratios, n)
    return {name: RidgeSetting(target, features, d, n, widths, draws, ridges) for name, target in targets.items()}


def widths_at(ratios: Sequence[float], samples: int) -> tuple[int, ...]:
    """Return the whole numbers N nearest to N/n, without repetition.

    >>> widths_at((0.1, 0.12, 2.0), 10)
    (1, 20)
    """
    return tuple(sorted({max(1, round(ratio * samples)) for ratio in ratios}))


def ratios_around_one(low: float, high: float, points: int) -> NDArray[np.float64]:
    """N/n for a line, finer near the threshold.

    >>> grid = ratios_around_one(0.1, 10.0, 101)
    >>> bool(grid[0] == 0.1 and 1.0 in grid and grid[-1] == 10.0)
    True
    """
    near = 1.0 + np.concatenate([-np.geomspace(0.3, 1e-4, points // 4), np.geomspace(1e-4, 0.3, points // 4)])
    return np.unique(np.concatenate([np.geomspace(low, high, points), near, [1.0, low, high]]))


def ridge_name(ridge: float) -> str:
    """λ in words for a legend.

    >>> ridge_name(0.0), ridge_name(0.01)
    ('λ → 0', 'λ = 0.01')
    """
    return f"λ = {ridge:g}" if ridge else "λ → 0"


def colours_of(data: xr.Dataset) -> dict[float, Any]:
    """Return a colour for each ridge."""
    ridges = [float(ridge) for ridge in data.ridge.values]
    return {ridge: scale_colour(i / max(1, len(ridges) - 1)) for i, ridge in enumerate(ridges)}


def draw(axes: Axes, data: xr.Dataset, name: str, colours: Mapping[float, Any]) -> None:
    """Draw a line and dots for each ridge against N/n."""
    look: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.5}
    for ridge, colour in colours.items():
        at = data.sel(ridge=ridge)
        values = np.ma.masked_invalid(at[f"{name}_limit"].values)
        axes.plot(at.line, values, color=colour, label=ridge_name(ridge), linestyle="-" if ridge else "--")
        axes.errorbar(at.ratio, at[name], at[f"{name}_stderr"], color=colour, **look)


def threshold(axes: Axes) -> None:
    """Mark N = n, and make the axis of N/n one that people read."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.axvline(1.0, color="#999999", linewidth=0.9, linestyle=":", zorder=0)


def peak(data: xr.Dataset, ridge: float) -> float | None:
    """Return N/n where the limit of the risk peaks between two valleys, None where it only falls."""
    curve = data.risk_limit.sel(ridge=ridge).values
    tops = 1 + np.flatnonzero((curve[1:-1] >= curve[:-2]) & (curve[1:-1] > curve[2:]))
    return float(data.line.values[tops[np.argmax(curve[tops])]]) if tops.size else None


def agreement(panels: Mapping[str, xr.Dataset], names: Sequence[str] = MEASURED) -> Answer:
    """Return in one line whether dots and limit agree, within 4 standard errors plus a finite-size term of 10/d."""
    count, far = 0, []
    for data in panels.values():
        for name in names:
            values, error, expected = (data[f"{name}{end}"].values for end in ("", "_stderr", "_expected"))
            allowed = _STANDARD_ERRORS * np.nan_to_num(error) + _FINITE_SIZE / data.attrs["d"] * expected
            count += int(np.count_nonzero(np.isfinite(values)))
            for i, j in np.argwhere(np.abs(values - expected) > allowed):
                where = f"N = {data.width.values[i]}, {ridge_name(float(data.ridge.values[j]))}"
                far.append(f"{name} at {where} ({values[i, j]:.4g}, limit {expected[i, j]:.4g})")
    return dots.agreement(count, far, "4 standard errors plus 10/d of the limit", most=6)

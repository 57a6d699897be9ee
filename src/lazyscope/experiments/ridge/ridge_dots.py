"""What the figures of ridge regression share: dots of one setting beside the limit, and the judgement on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.problems import LinearTarget
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.verbs import limit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

MEASURED = ("risk", "bias", "variance", "train")
_STANDARD_ERRORS = 4.0
_FINITE_SIZE = 10.0  # times value/d: what the mean of draws may be off by; the validation measures half of it


@dataclass(frozen=True, eq=False)
class Setting:
    """Random features of some widths on n samples in d dimensions, several draws, several ridges."""

    problem: LinearTarget
    regime: RandomFeatures
    d: int
    samples: int
    widths: tuple[int, ...]
    ridges: tuple[float, ...]
    draws: int

    @property
    def trials(self) -> list[Run]:
        """The work, width by width."""
        sizes = {"width": self.widths, "samples": (self.samples,), "d": (self.d,), "ridge": self.ridges}
        first = Run("simulate", self.problem, self.regime, sizes)
        return [part.at(number=number) for part in first.parts() for number in range(self.draws)]

    def data(self, rows: Sequence[Row], lines: NDArray[np.float64] | None = None) -> xr.Dataset:
        """Return dots, `risk` and its like with standard errors, and the limit: at the dots, and along `lines` of N/n.

        Without `lines`, the limit is not drawn. Where it is infinite there is no dot.
        """
        import xarray as xr

        columns: dict[str, Any] = {}
        expected = self._limit(np.array(self.widths) / self.samples)
        shape = (len(self.widths), self.draws, len(self.ridges))
        for name in MEASURED:
            values = np.array([row[name] for row in rows]).reshape(shape)
            theory = expected[name].values
            shown = np.isfinite(expected.risk.values)
            columns[name] = (("width", "ridge"), np.where(shown, values.mean(axis=1), np.nan))
            error = (
                values.std(axis=1, ddof=1) / np.sqrt(self.draws) if self.draws > 1 else np.full(theory.shape, np.nan)
            )
            columns[f"{name}_stderr"] = (("width", "ridge"), np.where(shown, error, np.nan))
            columns[f"{name}_expected"] = (("width", "ridge"), np.where(shown, theory, np.nan))
        coordinates: dict[str, Any] = {
            "width": list(self.widths),
            "ridge": list(self.ridges),
            "ratio": (("width",), np.array(self.widths) / self.samples),
        }
        if lines is not None:
            coordinates["line"] = lines
            along = self._limit(lines)
            columns |= {f"{name}_limit": (("line", "ridge"), along[name].values) for name in MEASURED}
        about = {"problem": str(self.problem), "regime": str(self.regime), "d": self.d, "samples": self.samples}
        return xr.Dataset(
            columns, coordinates, {**about, "draws": self.draws, "citations": expected.attrs["citations"]}
        )

    def _limit(self, ratio: NDArray[np.float64]) -> xr.Dataset:
        psi2 = self.samples / self.d
        return limit(self.problem, self.regime, psi1=ratio * psi2, psi2=psi2, ridge=list(self.ridges))


def widths_at(ratios: Sequence[float], samples: int) -> tuple[int, ...]:
    """Return the whole numbers N nearest to N/n, without repetition.

    >>> widths_at((0.1, 0.12, 2.0), 10)
    (1, 20)
    """
    return tuple(sorted({max(1, round(ratio * samples)) for ratio in ratios}))


def all_trials(settings: Mapping[str, Setting]) -> list[Run]:
    """Return the work of several panels, one after the other."""
    return [trial for setting in settings.values() for trial in setting.trials]


def by_panel(settings: Mapping[str, Setting], rows: Sequence[Row]) -> Iterator[tuple[str, Setting, Sequence[Row]]]:
    """Yield each panel with the rows of its own trials."""
    start = 0
    for name, setting in settings.items():
        end = start + len(setting.widths) * setting.draws
        yield name, setting, rows[start:end]
        start = end


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


def draw(axes: Axes, data: xr.Dataset, name: str, colours: Mapping[float, Any], label: bool = True) -> None:
    """Draw a line and dots for each ridge against N/n."""
    for ridge, colour in colours.items():
        one = data.sel(ridge=ridge)
        label_of = ridge_name(ridge) if label else None
        if "line" in data.dims:
            values = np.ma.masked_invalid(one[f"{name}_limit"].values)
            axes.plot(one.line, values, color=colour, label=label_of, linestyle="--" if ridge == 0.0 else "-")
        axes.errorbar(
            one.ratio, one[name], one[f"{name}_stderr"], linestyle="", marker="o", markersize=4.5, color=colour
        )


def threshold(axes: Axes) -> None:
    """Mark N = n, and make the axis of N/n one that people read."""
    from matplotlib.ticker import StrMethodFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.axvline(1.0, color="#999999", linewidth=0.9, linestyle=":", zorder=0)


def peak(data: xr.Dataset, ridge: float) -> float | None:
    """Return N/n where the limit of the risk peaks between two valleys, None where it only falls."""
    curve = data.risk_limit.sel(ridge=ridge).values
    tops = 1 + np.flatnonzero((curve[1:-1] >= curve[:-2]) & (curve[1:-1] > curve[2:]))
    return float(data.line.values[tops[np.argmax(curve[tops])]]) if tops.size else None


def far_away(data: xr.Dataset, names: Sequence[str] = MEASURED) -> tuple[int, list[str]]:
    """Return how many dots there are, and name those beyond 4 standard errors plus a finite-size term of 10/d."""
    count, far = 0, []
    for name in names:
        dots, error, expected = (data[f"{name}{end}"].values for end in ("", "_stderr", "_expected"))
        allowed = _STANDARD_ERRORS * np.nan_to_num(error) + _FINITE_SIZE / data.attrs["d"] * expected
        count += int(np.count_nonzero(np.isfinite(dots)))
        for i, j in np.argwhere(np.abs(dots - expected) > allowed):
            where = f"N = {data.width.values[i]}, {ridge_name(float(data.ridge.values[j]))}"
            far.append(f"{name} at {where} ({dots[i, j]:.4g}, limit {expected[i, j]:.4g})")
    return count, far


def agreement(panels: Mapping[str, xr.Dataset], names: Sequence[str] = MEASURED) -> str:
    """Return in one line whether dots and limit agree."""
    found = [far_away(data, names) for data in panels.values()]
    count, far = sum(n for n, _ in found), [line for _, lines in found for line in lines]
    rule = "4 standard errors plus 10/d of the limit"
    if not far:
        return f"Theory and simulation agree: all {count} dots within {rule}."
    return f"Theory and simulation differ: {len(far)} of {count} dots beyond {rule}: {'; '.join(far[:6])}."

"""The picture of a forecast: the error against rows, width or ridge; one line for each value of another size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.runs import pictures

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

_MANY = 8  # lines that a legend can tell apart
_LETTERS = {"samples": "n", "width": "N", "ridge": "λ"}
_WORDS = {"samples": "rows n", "width": "width N, number of neurons", "ridge": "ridge λ"}


def overall(result: xr.Dataset) -> xr.Dataset:
    """Return share, low and high over all targets: their errors added, over the best constant's."""
    if "overall" in result:
        shares = result[["overall", "overall_low", "overall_high"]]
        shares = shares.rename(overall="share", overall_low="low", overall_high="high")
    else:
        shares = result[["share"]].assign(low=result.low / result.baseline, high=result.high / result.baseline)
    return shares.assign(extrapolated=result.extrapolated)


def check(sizes: dict[str, Any]) -> None:
    """Refuse a picture that would have no axis, before anything is computed."""
    pictures.check_axes(sizes)


def picture(result: xr.Dataset) -> Figure:
    """Draw the share of the best constant's error that is left, dashed where it is extrapolated."""
    from matplotlib.ticker import FuncFormatter, StrMethodFormatter

    shares = overall(result)
    finite = {name: np.isfinite(shares[name].values) for name in _LETTERS if name in shares.dims}
    along = max((name for name in finite), key=lambda name: (np.count_nonzero(finite[name]), name == "samples"))
    others = [name for name in finite if name != along and shares.sizes[name] > 1]
    lines = shares.isel({along: np.nonzero(finite[along])[0]}).isel(dict.fromkeys(others[1:], 0))
    lines = lines.squeeze([name for name in lines.dims if lines.sizes[name] == 1 and name != along])
    with pictures.canvas(6.4, 4.4) as figure:
        axes = figure.add_subplot()
        count = lines.sizes[others[0]] if others else 1
        for i in np.unique(np.linspace(0, count - 1, min(count, _MANY)).round().astype(int)):
            curve = lines.isel({others[0]: i}) if others else lines
            label = f"{_LETTERS[others[0]]} = {_size(float(curve[others[0]]))}" if others else None
            colour = pictures.scale_colour(i / max(count - 1, 1))
            _line(axes, curve, along, label, colour)
        axes.fill_between(
            curve[along].values, curve.low.values, curve.high.values, color=colour, alpha=0.18, linewidth=0,
            label="its band, 90 %",
        )  # fmt: skip
        values = lines.share.values[np.isfinite(lines.share.values)]
        if values.size and values.max() > 0.5:  # farther up it would press all lines to the ground
            axes.axhline(1.0, label="best constant", **pictures.FLOOR)
        if values.size and values.max() > 5.0 * values.min():
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
            axes.yaxis.set_minor_formatter(FuncFormatter(lambda y, _: ""))
        x = lines[along].values
        if np.all(x > 0) and x.max() > 5.0 * x.min():
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        rows = int(result.attrs["rows"])
        if along == "samples" and x.min() < rows < x.max():
            axes.axvline(rows, color="#777777", linewidth=0.9, linestyle=":")
            axes.annotate(
                "rows at hand", (rows, 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0),
                textcoords="offset points", fontsize=8, color="#555555",
            )  # fmt: skip
        fixed = [
            f"{_LETTERS[n]} = {_size(float(lines[n]))}" for n in _LETTERS if n in lines.coords and not lines[n].dims
        ]
        best = ["best ridge"] if "best_ridge" in result else []
        title = "\n".join((result.attrs["problem"], ", ".join((result.attrs["regime"], *fixed, *best))))
        axes.set(xlabel=_WORDS[along], ylabel=pictures.RISK, title=title)
        axes.legend()
    return figure


def _line(axes: Any, curve: xr.Dataset, along: str, label: str | None, colour: Any) -> None:
    x, y = curve[along].values, np.ma.masked_invalid(curve.share.values)
    known = ~curve.extrapolated.values
    axes.plot(x, np.ma.masked_where(~known, y), color=colour, label=label, marker="" if known.sum() > 1 else "o")
    if not known.all():
        joined = ~known
        joined[:-1] |= ~known[1:]  # from the last known point on
        axes.plot(x, np.ma.masked_where(~joined, y), color=colour, linestyle="--")


def _size(value: float) -> str:
    return "∞" if np.isinf(value) else f"{value:,.4g}"

"""Pictures: risk against N/d, theory as lines and finite networks as dots. No global state, no display."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.errors import InvalidParameter
from lazyscope.files import replacing, tidy

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lazyscope.problems import SizedProblem

# Okabe and Ito's colours, told apart by every common form of colour vision; a marker each for print in grey.
BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
SKY, _GREY = "#56B4E9", "#777777"
LOOKS: dict[str, dict[str, Any]] = {
    "RF": {"color": BLUE, "marker": "o"},
    "RF, isotropic weights": {"color": BLUE, "marker": "o"},
    "RF, optimal weights": {"color": ORANGE, "marker": "s"},
    # NT and NN coincide from N = d on: open triangles around full diamonds leave both to be seen
    "NT": {
        "color": GREEN,
        "marker": "^",
        "markersize": 8.5,
        "markerfacecolor": "none",
        "markeredgecolor": GREEN,
        "markeredgewidth": 1.3,
    },
    "NN": {"color": RED, "marker": "D", "markersize": 4.5},
    "MF": {"color": PURPLE, "marker": "v"},
    "RF+NT": {"color": SKY, "marker": "P"},
}


def look_of(label: str) -> dict[str, Any]:
    """Return colour and marker of a regime; a regime of somebody else's package is grey.

    >>> look_of("RF+NT")["marker"], look_of("mine")["color"]
    ('P', '#777777')
    """
    return LOOKS.get(label, {"color": _GREY, "marker": "X"})


FLOOR: dict[str, Any] = {"color": "#333333", "linestyle": (0, (1, 2)), "linewidth": 1.4}
_DASHED: dict[str, Any] = {"color": "#333333", "linestyle": "--", "linewidth": 1.1}
RATIO = "N/d"
RISK = "risk / risk of the best constant"
# Without these a file would differ from one run to the next.
_NO_DATE: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}


@contextmanager
def style() -> Iterator[None]:
    """Draw in lazyscope's style inside this block, whatever the user's own settings are."""
    import matplotlib as mpl

    with as_file(files("lazyscope.runs") / "lazyscope.mplstyle") as path, mpl.rc_context(fname=path):
        yield


@contextmanager
def canvas(width: float | None = None, height: float | None = None) -> Iterator[Figure]:
    """Give a figure to draw on in lazyscope's style: of this width and height in inches, or of the usual size."""
    from matplotlib.figure import Figure

    with style():
        yield Figure(figsize=None if width is None or height is None else (width, height))


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format of its suffix: all of it, or nothing."""
    with style(), replacing(path) as part:
        figure.savefig(part, metadata=_NO_DATE[path.suffix.lower()])


def check_ratios(rho: Iterable[float]) -> None:
    """Refuse a picture of `curves` that would be empty: it may be asked before anything is computed."""
    if not any(np.isfinite(ratio) for ratio in rho):
        must = "have a regime with a finite N/d to show"
        raise InvalidParameter.of("the picture", "rho", must, "none", "Pass one, or ask for no picture.")


def check_axes(axes: Mapping[str, Any]) -> None:
    """Refuse a picture of `grid` that would have no axis: name → values of the dimensions that it could have."""
    if not any(_count(values) > 1 for values in axes.values()):
        must = "have a dimension with at least two finite values to show"
        raise InvalidParameter.of("the picture", "result", must, "none", "Pass a range, or ask for no picture.")
    if all(np.asarray(values).dtype.kind not in "iuf" for values in axes.values() if _count(values) > 1):
        must = "have two numbers along one of its dimensions"
        raise InvalidParameter.of("the picture", "result", must, "names", "Pass a range, or ask for no picture.")


def check_times(times: Any) -> None:
    """Refuse a picture of `against_time` that would have no line."""
    count = int(np.count_nonzero(np.asarray(times) > 0.0))
    if count < 2:
        must = "have at least two positive times to show"
        raise InvalidParameter.of("the picture", "times", must, count, "Pass a range, or no picture.")


def curves(results: Sequence[xr.Dataset], problem: SizedProblem, *, geometric: bool = False) -> Figure:
    """Draw what `limit` (lines) or `exact` (dots with their standard errors) returned, each regime in its colour."""
    check_ratios(ratio for result in results if result.sizes for ratio in np.atleast_1d(result.rho.values).tolist())
    with canvas() as figure:
        axes = figure.add_subplot()
        for result in results:
            _curve(axes, result, problem.d)
        _dress(axes, str(problem), geometric)
        axes.legend()
    return figure


_SHORT = {"psi1": "N/d", "psi2": "n/d", "ridge": "ridge λ", "width": "N", "times": "t = steps/d", "step_size": "η"}
_MANY = 8  # lines that a legend can tell apart


def grid(result: xr.Dataset, shown: Sequence[str]) -> Figure:
    """Draw a result over ratios: all of `shown` along its longest dimension, or the first for each value of another.

    Limits are lines, simulations dots with their standard errors; `compare` has both in one colour. The vertical axis
    is logarithmic where the first spans more than a decade, as a risk does at its peak.
    """
    from matplotlib.ticker import StrMethodFormatter

    check_axes({str(name): at for name, at in result.indexes.items()})
    finite = {str(name): at for name, at in result.indexes.items() if _count(at) > 1}
    numbers = [name for name in finite if np.asarray(finite[name]).dtype.kind in "iuf"]
    along = max(numbers, key=lambda name: len(finite[name]))
    others = [str(name) for name, at in result.indexes.items() if len(at) > 1 and name != along]  # ∞ has a line too
    lines = result.isel(dict.fromkeys(others[1:], 0)).isel({along: np.isfinite(result[along].values)})
    lines = lines.squeeze([name for name in lines.dims if lines.sizes[name] == 1 and name != along])
    x = lines[along].values
    with canvas() as figure:
        axes = figure.add_subplot()
        if others:
            values = lines[others[0]].values
            for i in np.unique(np.linspace(0, len(values) - 1, min(len(values), _MANY)).round().astype(int)):
                value = values[i]
                label = value if isinstance(value, str) else f"{_SHORT.get(others[0], others[0])} = {value:.4g}"
                _series(axes, lines.isel({others[0]: i}), along, shown[0], label, scale_colour(i / (len(values) - 1)))
        else:
            for name, colour in zip(shown, cycle((BLUE, ORANGE, GREEN, RED)), strict=False):
                _series(axes, lines, along, name, name, colour)
        first = lines[shown[0]].values
        first = first[np.isfinite(first) & (first > 0)]
        if first.size and first.max() > 20 * first.min():
            axes.set_yscale("log")
        if np.all(x > 0) and x.max() > 5 * x.min():
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        fixed = [f"{_SHORT[n]} = {float(lines[n]):.4g}" for n in _SHORT if n in lines.coords and not lines[n].dims]
        title = "\n".join((result.attrs["problem"], ", ".join((result.attrs["regime"], *fixed))))
        axes.set(xlabel=_SHORT.get(along, along), ylabel=shown[0] if others else "", title=title)
        axes.legend()
    return figure


def against_time(result: xr.Dataset) -> Figure:
    """Draw risks along training: gradient flow as lines, one colour for each regime, and finite steps dashed."""
    from matplotlib.ticker import StrMethodFormatter

    check_times(result.time.values)
    later = result.isel(time=result.time.values > 0.0)
    with canvas() as figure:
        axes = figure.add_subplot()
        for label in later.regime.values.tolist():
            at = later.sel(regime=label)
            axes.plot(at.time, at.risk, label=label, color=look_of(label)["color"])
        for label in later.regime.values.tolist() if "finite_step" in later else ():
            axes.plot(later.time, later.finite_step.sel(regime=label), **_DASHED)
        if "finite_step" in later:
            axes.plot([], [], label="SGD, finite steps", **_DASHED)
        title = f"{result.attrs['problem']}\n{result.attrs['regime']}"
        axes.set(xlabel="time t = Σε", ylabel=RISK, xscale="log", yscale="log", title=title)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.legend()
    return figure


def _count(values: Any) -> int:
    """Return how many places an axis has: finite numbers, or names."""
    array = np.asarray(values)
    return int(np.count_nonzero(np.isfinite(array))) if array.dtype.kind in "iuf" else len(array)


def _series(axes: Axes, data: xr.Dataset, along: str, name: str, label: str, colour: Any) -> None:
    """Draw one variable: a line for a limit, dots for a simulation, both where they are compared."""
    x = data[along].values
    fidelity = data.attrs["fidelity"]
    if fidelity != "simulate":
        axes.plot(x, np.ma.masked_invalid(data[name].values), label=label, color=colour)
    if fidelity != "limit":
        dots = "simulate" if fidelity == "compare" else name
        error = "stderr" if dots in ("risk", "simulate") else f"{dots}_stderr"
        stderr = data[error].values if error in data else None
        joined = {"linestyle": ""} if fidelity == "compare" else {"linestyle": ":", "linewidth": 0.8, "label": label}
        axes.errorbar(x, np.ma.masked_invalid(data[dots].values), stderr, marker="o", color=colour, **joined)


def scale_colour(fraction: float) -> tuple[float, float, float, float]:
    """Return a colour of a scale that is even to the eye, from dark (0) to light enough (1)."""
    from matplotlib import colormaps

    red, green, blue, alpha = colormaps["viridis"](0.85 * fraction)
    return float(red), float(green), float(blue), float(alpha)


def _curve(axes: Axes, result: xr.Dataset, d: int) -> None:
    label = result.attrs["label"]
    if not result.sizes:
        axes.axhline(float(result.risk), label=label, **FLOOR)
        return
    rows = sorted((row for row in tidy([result], d) if np.isfinite(row["rho"])), key=lambda row: float(row["rho"]))
    rho, risk = [row["rho"] for row in rows], [row["risk"] for row in rows]
    look = look_of(label)
    if result.attrs["fidelity"] == "limit":
        axes.plot(rho, risk, label=label, color=look["color"], marker=look["marker"] if len(rho) == 1 else "")
    else:
        stderr = [row["stderr"] for row in rows] if "stderr" in rows[0] else None
        axes.errorbar(rho, risk, stderr, linestyle=":", linewidth=0.8, **look)
        axes.plot([], [], label=label, linestyle=":", linewidth=0.8, **look)  # no error bar in the legend


def _dress(axes: Axes, title: str, geometric: bool) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axes.set(xlabel=RATIO, ylabel=RISK, title=title)
    if geometric:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))

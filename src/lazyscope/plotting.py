"""Pictures: risk against N/d, theory as lines and finite networks as dots. No global state, no display."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
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
_BLUE, _ORANGE, _GREEN, _RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
LOOKS: dict[str, dict[str, Any]] = {
    "RF": {"color": _BLUE, "marker": "o"},
    "RF, isotropic weights": {"color": _BLUE, "marker": "o"},
    "RF, optimal weights": {"color": _ORANGE, "marker": "s"},
    # NT and NN coincide from N = d on: open triangles around full diamonds leave both to be seen
    "NT": {
        "color": _GREEN,
        "marker": "^",
        "markersize": 8.5,
        "markerfacecolor": "none",
        "markeredgecolor": _GREEN,
        "markeredgewidth": 1.3,
    },
    "NN": {"color": _RED, "marker": "D", "markersize": 4.5},
}
FLOOR: dict[str, Any] = {"color": "#333333", "linestyle": (0, (1, 2)), "linewidth": 1.4}
RATIO = "N/d"
RISK = "risk / risk of the best constant"
# Without these a file would differ from one run to the next.
_NO_DATE: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}


@contextmanager
def style() -> Iterator[None]:
    """Draw in lazyscope's style inside this block, whatever the user's own settings are."""
    import matplotlib as mpl

    with as_file(files("lazyscope") / "lazyscope.mplstyle") as path, mpl.rc_context(fname=path):
        yield


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format of its suffix: all of it, or nothing."""
    with style(), replacing(path) as part:
        figure.savefig(part, metadata=_NO_DATE[path.suffix.lower()])


def curves(results: Sequence[xr.Dataset], problem: SizedProblem, *, geometric: bool = False) -> Figure:
    """Draw what `limit` (lines) or `exact` (dots with their standard errors) returned, a colour a regime."""
    from matplotlib.figure import Figure

    if not any(np.isfinite(result.rho).any() for result in results if result.sizes):
        must = "have a regime with a finite N/d to show"
        raise InvalidParameter.of("the picture", "rho", must, "none", "Pass one, or ask for no picture.")
    with style():
        figure = Figure()
        axes = figure.add_subplot()
        for result in results:
            _curve(axes, result, problem.d)
        _dress(axes, str(problem), geometric)
        axes.legend()
    return figure


def _curve(axes: Axes, result: xr.Dataset, d: int) -> None:
    label = result.attrs["label"]
    if not result.sizes:
        axes.axhline(float(result.risk), label=label, **FLOOR)
        return
    rows = sorted((row for row in tidy([result], d) if np.isfinite(row["rho"])), key=lambda row: float(row["rho"]))
    rho, risk = [row["rho"] for row in rows], [row["risk"] for row in rows]
    look = LOOKS[label]
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

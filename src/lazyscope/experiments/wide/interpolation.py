"""The smallest network that fits n random labels exactly: RF from N = n, NT from about n/d, NN from n/(d + 1).

Of labels y ~ N(0, I_n), p independent features leave ‖P⊥y‖²/‖y‖², a Beta((n − p)/2, p/2) variable: its mean is 1 − p/n
and its variance 2p(n − p)/(n²(n + 2)), whatever the features are. A trained network has as many parameters as labels at
its threshold too, and does better below it: it chooses its features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.work import Row
from lazyscope.experiments.wide.interpolation_numbers import InterpolationDraw, assemble, plan
from lazyscope.runs.pictures import LOOKS, style
from lazyscope.training.linear.interpolate import KINDS, Kind

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SLOPES = {"RF": "N = n", "NT": "N = (n − 1)/d", "NN": "N = (n − 1)/(d + 1)"}
_FAR = 3.0  # standard errors


@dataclass(frozen=True)
class Size:
    """Numbers of labels, ascending; dimension; draws of data, labels and weights; σ."""

    cost: str
    n: tuple[int, ...]
    d: int
    draws: int
    activation: str = "tanh"


PRESETS = {
    "quick": Size("half a minute", (36, 72, 144), 10, 8),
    "paper": Size("about twenty minutes", (48, 96, 192, 384), 20, 24),
}


def _plan(size: Size, n: int) -> list[InterpolationDraw]:
    return plan(n, size.d, size.activation, list(KINDS), None, size.draws, 0)


def work(size: Size) -> list[InterpolationDraw]:
    """Return the fits of every n, regime, width and draw."""
    return [draw for n in size.n for draw in _plan(size, n)]


def parameters(kind: Kind | str, N: FloatArray, d: int) -> FloatArray:
    """Return how many parameters a network has: N; Nd and an offset; N(d + 1) and an offset.

    >>> [float(parameters(kind, np.array(7.0), 10)) for kind in KINDS]
    [7.0, 71.0, 78.0]
    """
    return N if kind == "RF" else N * (d if kind == "NT" else d + 1) + 1.0


def data(size: Size, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return a panel for each n: shares and residuals against N, the smallest N that fits, and what theory says."""
    left, panels = list(rows), {}
    for n in size.n:
        some = _plan(size, n)
        own, left = left[: len(some)], left[len(some) :]
        panels[f"n = {n}"] = _with_theory(assemble(some, own), some, own, size)
    return panels


def _with_theory(found: xr.Dataset, some: list[InterpolationDraw], rows: list[Row], size: Size) -> xr.Dataset:
    """Add p/n, the mean of residual² with its expectation and standard error for linear models, and z."""
    n = found.attrs["n"]
    by: dict[tuple[str, int], list[float]] = {}
    for one, row in zip(some, rows, strict=True):
        by.setdefault((one.kind, one.width), []).append(float(row["residual"]) ** 2)
    kinds, widths = found.kind.values.tolist(), found.width.values
    squares = np.array([[np.mean(by[kind, int(N)]) for N in own] for kind, own in zip(kinds, widths, strict=True)])
    p = np.array([parameters(kind, own, size.d) for kind, own in zip(kinds, widths, strict=True)])
    part = np.minimum(p / n, 1.0)
    stderr = np.sqrt(2.0 * part * (1.0 - part) / (n + 2.0) / size.draws)
    off = np.abs(squares - (1.0 - part))
    z = np.divide(off, stderr, out=np.where(off > 1e-12, np.inf, 0.0), where=stderr > 0.0)
    linear = np.array([kind != "NN" for kind in kinds])[:, None]
    dims = ("kind", "point")
    values: dict[str, Any] = {
        "parameters_per_label": (dims, p / n),
        "residual_squared": (dims, squares),
        "expected": (dims, np.broadcast_to(1.0 - part, squares.shape)),
        "expected_stderr": (dims, stderr),
        "z": (dims, np.where(linear, z, 0.0)),
    }
    found = found.assign(values)
    found.attrs |= {"citations": "montanari2020interpolation"}
    return found


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw shares against N and residuals against p/n for the most labels, and the smallest N against n."""
    from matplotlib.figure import Figure

    largest = list(data.values())[-1]
    with style():
        figure = Figure(figsize=(14.4, 4.5))
        first, second, third = figure.subplots(1, 3)
        _draw_shares(first, largest)
        _draw_residuals(second, largest)
        _draw_smallest(third, data)
        n, d = largest.attrs["n"], largest.attrs["d"]
        first.set_title(f"{n} random labels, d = {d}, σ = {largest.attrs['activation']}")
        second.set_title("What is left, against parameters per label")
        third.set_title("The smallest network that fits")
    return figure


def _draw_shares(axes: Axes, found: xr.Dataset) -> None:
    for kind in found.kind.values.tolist():
        one, look = found.sel(kind=kind), LOOKS[kind]
        least, N = float(one.threshold), one.width.values
        share = one.fits.values
        axes.plot([0.4 * least, least, least, 2.0 * least], [0, 0, 1, 1], color=look["color"], linewidth=1.0, zorder=2)
        error = np.sqrt(share * (1.0 - share) / found.attrs["draws"])
        axes.errorbar(N, share, error, linestyle="", zorder=3, **look)
        right = kind != "NN"
        axes.annotate(f"{kind}\nN = {least:g}", (least, 0.5), xytext=(6 if right else -6, 0), va="center",
                      ha="left" if right else "right", textcoords="offset points", color=look["color"])  # fmt: skip
    axes.set(xscale="log", xlabel="N, neurons", ylabel="share of draws fitted exactly")


def _draw_residuals(axes: Axes, found: xr.Dataset) -> None:
    x = np.linspace(0.0, 1.0, 200)
    axes.plot(np.append(x, 1.7), np.append(np.sqrt(1.0 - x), 0.0), color="#333333", linewidth=1.2, zorder=2,
              label="any fixed features, √(1 − p/n)")  # fmt: skip
    for kind in found.kind.values.tolist():
        one = found.sel(kind=kind)
        shown = one.parameters_per_label.values <= 1.7
        root = np.sqrt(one.residual_squared.values[shown])
        axes.plot(one.parameters_per_label.values[shown], root, linestyle="", label=_NAMES[kind], zorder=3,
                  **LOOKS[kind])  # fmt: skip
    axes.set(xlabel="p/n, parameters per label", ylabel="residual, ‖y − f‖/‖y‖", xlim=(0.4, 1.7))
    axes.set_ylim(-0.02, 0.85)
    axes.legend(loc="upper right")


_NAMES = {"RF": "RF, p = N", "NT": "NT, p = Nd + 1", "NN": "NN, p = N(d + 1) + 1, trained"}


def _draw_smallest(axes: Axes, data: Mapping[str, xr.Dataset]) -> None:
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    panels = list(data.values())
    n, d = np.array([one.attrs["n"] for one in panels], dtype=float), panels[0].attrs["d"]
    for kind in panels[0].kind.values.tolist():
        smallest, error = (
            np.array([float(one[name].sel(kind=kind)) for one in panels]) for name in ("smallest", "smallest_stderr")
        )
        per_neuron = {"RF": 1.0, "NT": float(d), "NN": d + 1.0}[kind]
        line = (n - (kind != "RF")) / per_neuron
        axes.plot(n, line, color=LOOKS[kind]["color"], linewidth=1.1, zorder=2)
        axes.errorbar(n, smallest, error, linestyle="", label=f"{kind}; line: {_SLOPES[kind]}", zorder=3, **LOOKS[kind])
    axes.set(xscale="log", yscale="log", xlabel="n, labels", ylabel="smallest N that fits, mean over draws")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xticks(n)
    axes.set_ylim(None, 4.0 * n[-1])
    axes.legend(loc="upper left")


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return the smallest N and the width of the transition for each n and regime, and whether they are as counted."""
    told = [
        f"{'n':>5}{'':>5}{'parameters ≥ n from':>21}{'smallest N that fits':>23}{'transition':>12}{'largest z':>11}"
    ]
    wrong, z_all = [], 0.0
    for one in data.values():
        n = one.attrs["n"]
        for kind in one.kind.values.tolist():
            at = one.sel(kind=kind)
            least, smallest, z = float(at.threshold), float(at.smallest), float(at.z.max())
            cell = f"{smallest:.2f} ± {float(at.smallest_stderr):.2f}"
            shown = f"{z:>11.1f}" if kind != "NN" else f"{'':>11}"
            told.append(f"{n:>5}{kind:>5}{least:>21g}{cell:>23}{float(at.transition):>12g}{shown}")
            z_all = max(z_all, z)
            if not least <= smallest <= (least if kind != "NN" else 1.1 * least + 1.0) or z > _FAR:
                wrong.append(f"{kind} at n = {n}")
    if wrong:
        return [*told, f"Not as counted: {', '.join(wrong)}."]
    return [
        *told,
        f"RF and NT fit from their count of parameters on; below it, within {z_all:.1f} standard errors of √(1 − p/n).",
        "Trained networks fit within one neuron and 10% of theirs.",
    ]

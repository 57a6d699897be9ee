"""Pictures: frames of risk against N/d (lines, crosses, dots) and against samples seen (traces)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Line2D, Panels
from lazyscope.runs.pictures import FLOOR, LOOKS, RATIO, RISK, canvas

DARK = "#222222"
"""The colour of what belongs to no regime."""
DASHES = (0, (4, 3))
_APART = 0.052  # least distance between the names of two traces, as a share of the height
_MOST_TRACES = 3  # widths of each regime on the right: the narrowest, one between, the widest


def frames(
    size: tuple[float, float], *drawn: tuple[Callable[..., None], *tuple[str, ...]], rows: int = 1
) -> Callable[[Panels], Figure]:
    """Return a plot of frames side by side, in one row or several: (draw, panel, …) draws one, draw(axes, panel, …)."""

    def plot(data: Panels) -> Figure:
        with canvas(*size) as figure:
            places = figure.subplots(rows, len(drawn) // rows).flat
            for axes, (draw, *names) in zip(places, drawn, strict=True):
                draw(axes, *(data[name] for name in names))
        return figure

    return plot


def two_frames(data: Dataset, *, lowest: float) -> Figure:
    """Draw the layout of the paper's Figures 1 and 2."""
    with canvas(11.5, 4.9) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.15, 1.0))
        left.set_ylim(lowest - 0.03, 1.03)  # first: the names of the traces look for their places in it
        against_width(left, data)
        against_samples(right, data)
        left.set_title(f"{data.attrs['title']}, d = {data.attrs['d']}")
        right.set_title("On the way there: risk against samples (dashed: n → ∞)")
        figure.legend(**_legend(data))
    return figure


def small_multiples(panels: Panels, columns: int, *, lowest: float) -> Figure:
    """Draw one frame for each panel, with one legend for all."""
    rows = -(-len(panels) // columns)
    with canvas(3.8 * columns, 0.7 + 3.0 * rows) as figure:
        frames = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, data in zip(frames.flat, panels.values(), strict=False):
            against_width(axes, data)
            axes.set_title(data.attrs["title"])
            axes.label_outer()
        frames[0, 0].set_ylim(lowest - 0.03, 1.06)
        figure.legend(**_legend(next(iter(panels.values()))))
    return figure


def against_width(axes: Axes, data: Dataset) -> None:
    """Draw `limit` as lines, `exact` as crosses and `simulate` as dots with their standard errors."""
    ratio = data.width / data.attrs["d"]
    for label in data.series.values.tolist():
        at, look = data.sel(series=label), _large(label)
        axes.plot(at.rho, at.limit, color=look["color"], zorder=2)
        axes.errorbar(ratio, at.simulated, at.simulated_stderr.fillna(0.0), linestyle="", zorder=3, **look)
        axes.plot(ratio, at.exact, markeredgecolor=shade(look["color"], 0.55), zorder=4, **_CROSS)
    if "bayes" in data:
        axes.axhline(float(data.bayes), **FLOOR)
    axes.set(xlabel=RATIO, ylabel=RISK, xscale="log", xlim=(0.088, 11.4))
    axes.xaxis.set_major_formatter("{x:g}")


_CROSS: dict[str, Any] = {"marker": "x", "linestyle": "", "markersize": 4, "markeredgewidth": 1.1}


def _large(label: str) -> dict[str, Any]:
    """Return the look of a regime with markers on which a cross can be seen."""
    size = LOOKS[label].get("markersize", 5.5)
    return LOOKS[label] | {"markersize": min(1.35 * size, 9.0)}


def shade(color: str, strength: float) -> tuple[float, float, float]:
    """Return a colour made darker (strength below 1: towards black) or paler (above 1: towards white)."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(color))
    mixed = rgb * strength if strength <= 1.0 else 1.0 - (1.0 - rgb) * (2.0 - strength)
    return float(mixed[0]), float(mixed[1]), float(mixed[2])


def against_samples(axes: Axes, data: Dataset) -> None:
    """Draw the traces of some widths, paler where narrower, and the prediction for n → ∞ as dashed lines."""
    labels: list[tuple[float, str, Any]] = []
    last = 0.0
    for label in ("NT", "NN"):
        series = data.sel(series=label)
        shown = [N for N in data.width.values.tolist() if np.isfinite(series.trace.sel(width=N)).any()]
        for k, N in enumerate(_few(shown)):
            color = shade(LOOKS[label]["color"], (1.45, 1.0, 0.6)[k])
            trace = series.trace.sel(width=N).values
            inside = np.isfinite(trace)
            samples = series.samples.values[inside]
            axes.plot(samples, trace[inside], color=color, linewidth=1.6, zorder=3)
            at = series.sel(width=N)
            floor = float(at.limit_at_width) if np.isfinite(at.limit_at_width) else float(at.exact)
            axes.axhline(floor, color=color, linestyle=DASHES, linewidth=1.0, zorder=2)
            labels.append((float(trace[inside][-1]), f"{label}, N = {N}", color))
            last = max(last, float(samples[-1]))
    if "bayes" in data:
        axes.axhline(float(data.bayes), **FLOOR)
    axes.set(xlabel="samples seen", xscale="log", xlim=(1e3, last) if last > 1e4 else None)
    name_ends(axes, labels)


def _few(widths: list[int]) -> list[int]:
    """Return the narrowest, one between and the widest.

    >>> _few([10, 25, 50, 100, 1000])
    [10, 50, 1000]
    """
    if len(widths) <= _MOST_TRACES:
        return widths
    return [widths[0], widths[len(widths) // 2], widths[-1]]


def against_declared(
    axes: Axes, sizes: tuple[Any, Any, Any], fitted: float, power: float, name: str, at_most: str = "", **look: Any
) -> None:
    """Draw widths, sizes and standard errors as dots, and the declared power of the width dashed from the first dot.

    The label has the fitted exponent, and in brackets the declared one.
    """
    m, size, stderr = (np.asarray(values) for values in sizes)
    label = f"{name}: m$^{{{fitted:+.2f}}}$ ({at_most}{power:+.2f})".replace("-", "−")
    axes.errorbar(m, size, stderr, linestyle="", label=label, **look)
    axes.plot(m, size[0] * (m / m[0]) ** power, color=look["color"], linestyle="--", linewidth=1.0)


def entry(label: str, **look: Any) -> Line2D:
    """Return an entry of a legend: a line or a marker of this look, which is drawn nowhere else."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **look)


def ticks_at(axes: Axes, values: Any) -> None:
    """Make the horizontal axis a logarithmic one with ticks at these values alone, written out."""
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()


def name_ends(axes: Axes, labels: list[tuple[float, str, Any]]) -> None:
    """Write the name of each trace beside its end, moved up where names would touch."""
    on_axis = np.log if axes.get_yscale() == "log" else np.asarray
    low, high = on_axis(axes.get_ylim())
    height = -np.inf
    for risk, text, color in sorted(labels, key=lambda label: label[0]):
        height = max(float((on_axis(risk) - low) / (high - low)), height + _APART)
        axes.text(1.02, height, text, color=color, transform=axes.transAxes, va="center", fontsize=9.5)


def _legend(data: Dataset) -> dict[str, Any]:
    """Return one entry for each regime, and the key to lines, crosses and dots."""
    handles = [entry(label, **_large(label)) for label in data.series.values.tolist()]
    if "bayes" in data:
        handles.append(entry("Bayes", **FLOOR))
    handles += [
        entry("limit, N, d → ∞", color=DARK),
        entry(f"exact, d = {data.attrs['d']}, n = ∞", markeredgecolor=DARK, **_CROSS),
        entry("simulated, n finite", color=DARK, marker="o", markersize=7.5, linestyle=""),
    ]
    return {"handles": handles, "loc": "outside lower center", "ncols": 4 if len(handles) > 6 else 3}

"""The pictures of a data lens, as SVG that an HTML page can hold."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.lenses.data.measuring import spread
from lazyscope.lenses.data.regimes import REFERENCE
from lazyscope.runs import pictures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lazyscope.lenses.data.lens import DataLens

_LOOKS: dict[str, dict[str, Any]] = {
    **{
        name: {"color": pictures.LOOKS[name]["color"], "marker": pictures.LOOKS[name]["marker"]}
        for name in ("RF", "NT", "NN")
    },
    "QM": {"color": pictures.LOOKS["RF, optimal weights"]["color"], "marker": "v"},
}


_LABEL = 0.1  # of the horizontal axis, for a number below it
_BESIDE = 0.02  # of the horizontal axis, between markers of one width or number of rows


def svg(figure: Figure, salt: str) -> str:
    """Return a figure as an <svg> element; the salt keeps the names inside it apart from those of other pictures.

    Inside HTML it needs no namespaces, and without them and its metadata the page holds no address at all.
    """
    import matplotlib as mpl

    text = io.StringIO()
    with pictures.style(), mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return re.sub(
        r"^.*?(?=<svg )|<metadata>.*?</metadata>| xmlns(:\w+)?=\"[^\"]*\"", "", text.getvalue(), flags=re.DOTALL
    )


def against_width(lens: DataLens) -> Figure:
    """Draw the error of each regime against its width, at all samples."""
    return _curves(lens, "width", lens.measured.at(lens.samples), "width N, number of neurons")


def against_samples(lens: DataLens) -> Figure | None:
    """Draw the error of each regime against the number of training rows, at the middle width."""
    cells: dict[str, list[Any]] = {}
    for cell in sorted(lens.measured.losses, key=lambda cell: cell.samples):
        if cell.width == lens.middle:
            cells.setdefault(cell.regime, []).append(cell)
    if not any(len(line) > 1 for line in cells.values()):
        return None
    return _curves(lens, "samples", cells, f"training rows n, at width {lens.middle}")


def more_rows(lens: DataLens) -> Figure | None:
    """Draw the squared error of the lazy regimes against rows: forecasts as lines, dashed beyond, fits as dots."""
    if lens.outlook is None:
        return None
    squared = lens.measured.squared
    least = min((cell.samples for cell in squared), default=lens.measured.rows)
    n, lines = lens.outlook.along_samples(least, lens.middle)
    with pictures.canvas(6.4, 4.2) as figure:
        axes = figure.add_subplot()
        for name, (share, factor) in lines.items():
            look = _LOOKS[name]
            label = f"{lens.names[name]}, N = {lens.middle}" if name == "RF" else "tangent kernel"
            known = int(np.count_nonzero(n <= lens.outlook.rows))
            axes.plot(n[:known], share[:known], color=look["color"], label=f"{label}, forecast")
            axes.plot(n[known - 1 :], share[known - 1 :], color=look["color"], linestyle="--")
            axes.fill_between(n, share / factor, share * factor, color=look["color"], alpha=0.12, linewidth=0)
            cells = sorted((c for c in squared if (c.regime, c.width) == (name, lens.middle)), key=lambda c: c.samples)
            if cells:
                mean, error = np.transpose([spread(squared[cell]) for cell in cells])
                dots = {**look, "linestyle": "", "label": f"{lens.names[name]}, measured"}
                axes.errorbar([cell.samples for cell in cells], mean, error, **dots)
        axes.axvline(lens.outlook.rows, color="#777777", linewidth=0.9, linestyle=":")
        axes.set(xlabel="training rows n", ylabel="squared error / best constant's", ylim=(0, None))
        _powers(axes, sorted({*(cell.samples for cell in squared), lens.outlook.rows, int(n[-1])}))
        _legend(axes)
    return figure


def _curves(lens: DataLens, along: str, cells: dict[str, list[Any]], label: str) -> Figure:
    with pictures.canvas(6.4, 4.2) as figure:
        axes = figure.add_subplot()
        highest = 0.0
        ticks = {getattr(cell, along) for line in cells.values() for cell in line}
        step = _BESIDE * np.log(max(2.0, max(ticks) / min(ticks)))
        for k, name in enumerate(name for name in lens.names if name in cells):
            x = [getattr(cell, along) for cell in cells[name]]
            mean, error = np.transpose([lens.measured.mean(cell) for cell in cells[name]])
            beside = np.array(x) * np.exp(step * (k - 1.5))  # so that no marker hides another
            axes.errorbar(beside, mean, error, label=lens.names[name], **_LOOKS[name])
            highest = max(highest, float(np.max(mean + error)))
        trees = lens.measured.reference
        if trees is not None and along == "width":
            height = lens.measured.mean(trees)[0]
            axes.axhline(height, label=f"{REFERENCE}, for reference", color="#555555", linestyle="-.", linewidth=1.0)
            highest = max(highest, height)
        if lens.outlook is not None and lens.task == "regression" and along == "width":
            N, lines = lens.outlook.along_width(lens.samples, sorted(ticks))
            axes.plot(
                N,
                lines["RF"][0],
                color=_LOOKS["RF"]["color"],
                linewidth=1.0,
                label="random features, forecast",
                zorder=1,
            )
        constant = float(lens.measured.baseline.mean())
        if constant < 2.0 * highest:  # farther up it would press all curves to the ground; the text has its height
            axes.axhline(constant, label="best constant", **pictures.FLOOR)
        axes.set(xlabel=label, ylabel=lens.error_name, ylim=(0, None))
        _powers(axes, sorted(ticks))
        _legend(axes)
    return figure


def _powers(axes: Axes, ticks: Sequence[int]) -> None:
    """Make the horizontal axis logarithmic, with a mark where something was measured."""
    axes.set_xscale("log")
    marks = legible(ticks)
    axes.set_xticks(marks, [f"{mark:,}" for mark in marks])
    axes.set_xticks([], minor=True)


def legible(ticks: Sequence[int]) -> list[int]:
    """Return those of the ticks, in order, whose labels do not touch on a logarithmic axis; the last one stays.

    >>> legible([125, 472, 500, 945, 1890, 2000, 3781])
    [125, 500, 945, 2000, 3781]
    """
    apart = _LABEL * np.log(ticks[-1] / ticks[0])
    kept: list[int] = []
    for tick in reversed(ticks):
        if not kept or np.log(kept[-1] / tick) > apart:
            kept.append(tick)
    return kept[::-1]


def _legend(axes: Axes) -> None:
    """Put the legend above the axes, where it hides nothing."""
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)


def spectrum(lens: DataLens) -> Figure:
    """Draw the eigenvalues of the estimated B, the largest first."""
    assert lens.part is not None
    values = lens.part.spectrum
    with pictures.canvas(6.4, 3.2) as figure:
        axes = figure.add_subplot()
        axes.bar(np.arange(1, len(values) + 1), values, color=pictures.LOOKS["NN"]["color"], width=0.7)
        axes.axhline(0.0, color="#444444", linewidth=0.8)
        axes.set(xlabel="number", ylabel="eigenvalue of B", title="Spectrum of the quadratic part")
        axes.locator_params(axis="x", integer=True)
    return figure


def forecasts(lens: DataLens) -> Figure:
    """Draw what theory says each regime could reach on these data with infinitely many samples."""
    with pictures.canvas(6.4, 4.2) as figure:
        axes = figure.add_subplot()
        for name, values in lens.forecast.items():
            axes.plot(lens.forecast_widths, values, label=lens.names[name], linestyle="--", **_LOOKS[name])
        assert lens.part is not None
        axes.axhline(lens.part.rest, label="noise and higher orders", **pictures.FLOOR)
        axes.set(
            xlabel="width N, number of neurons", ylabel="unexplained variance", ylim=(0, 1.05),
        )  # fmt: skip
        _powers(axes, lens.forecast_widths)
        _legend(axes)
    return figure

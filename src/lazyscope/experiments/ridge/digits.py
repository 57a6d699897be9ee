"""Double descent on real images: random features and a trained network on scikit-learn's digits, against N/n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lazyscope.evidence.work import Row
from lazyscope.experiments.ridge.digits_numbers import PIXELS, DigitsDraw
from lazyscope.runs.pictures import LOOKS, style

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FITS: dict[Literal["features", "network"], str] = {
    "features": "Random features, least norm",
    "network": "Trained network, both layers",
}
_SHOWN = {
    "risk": ("test error, squared", LOOKS["NN"]["color"], "D"),
    "error": ("share of wrong signs", LOOKS["RF"]["color"], "o"),
    "train": ("training error", LOOKS["NT"]["color"], "^"),
}
_LITTLE = 1e-2  # training error, in the mean over draws, from where on a fit of labels ±1 interpolates


@dataclass(frozen=True)
class Size:
    """Training images, widths of both fits, draws, and the share of labels that are flipped."""

    cost: str
    draws: int
    samples: int = 400
    features: tuple[int, ...] = (20, 40, 80, 160, 240, 320, 360, 400, 440, 500, 640, 1000, 2000, 4000)
    network: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 40, 80)
    flip: float = 0.1


PRESETS = {"quick": Size("two minutes", draws=6), "paper": Size("fifteen minutes", draws=40)}


def work(size: Size) -> list[DigitsDraw]:
    """Return one fit for each way, width and split."""
    return [
        DigitsDraw(fit, N, size.samples, size.flip, number=number)
        for fit in _FITS
        for N in getattr(size, fit)
        for number in range(size.draws)
    ]


def data(size: Size, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return means over splits, with standard errors, a panel for each way to fit."""
    import xarray as xr

    panels: dict[str, xr.Dataset] = {}
    start = 0
    for fit in _FITS:
        widths = getattr(size, fit)
        part = rows[start : start + len(widths) * size.draws]
        start += len(part)
        columns = {}
        for name in _SHOWN:
            values = np.array([row[name] for row in part]).reshape(len(widths), size.draws)
            columns[name] = ("width", values.mean(axis=1))
            columns[f"{name}_stderr"] = ("width", values.std(axis=1, ddof=1) / np.sqrt(size.draws))
        coordinates = {
            "width": list(widths),
            "ratio": ("width", np.array(widths) / size.samples),
            "parameters": ("width", [DigitsDraw(fit, N).parameters for N in widths]),
        }
        threshold = size.samples if fit == "features" else (size.samples - 1) / (PIXELS + 2)
        about = {"samples": size.samples, "flip": size.flip, "draws": size.draws, "threshold": threshold / size.samples}
        panels[fit] = xr.Dataset(columns, coordinates, about)
    return panels


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw a frame for each way to fit, with its threshold."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(9.8, 4.6))
        frames = figure.subplots(1, 2, sharey=True)
        for axes, (fit, title) in zip(frames, _FITS.items(), strict=True):
            _frame(axes, data[fit], title)
        handles, labels = frames[0].get_legend_handles_labels()
        one = data["features"].attrs
        title = f"Digits, odd against even, n = {one['samples']} images, {one['flip']:.0%} of their labels flipped"
        figure.legend(handles, labels, loc="outside upper center", ncols=len(_SHOWN), title=title)
    return figure


def _frame(axes: Axes, one: xr.Dataset, title: str) -> None:
    from matplotlib.ticker import StrMethodFormatter

    for name, (label, colour, marker) in _SHOWN.items():
        values = np.where(one[name].values > 1e-4, one[name].values, np.nan)  # below it: an interpolation
        look = {"color": colour, "marker": marker, "linewidth": 1.2, "markersize": 5}
        axes.errorbar(one.ratio, values, one[f"{name}_stderr"], label=label, **look)
    axes.axvline(one.attrs["threshold"], color="#555555", linewidth=1.0, linestyle=":", zorder=0)
    axes.set(xscale="log", yscale="log", ylim=(5e-3, 40.0), xlabel="N/n, neurons per image", title=title)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    words = "N = n" if one.attrs["threshold"] == 1.0 else f"N({PIXELS} + 2) + 1 = n"
    axes.annotate(
        f"as many parameters\nas labels: {words}", (one.attrs["threshold"], 30.0), xytext=(9, 0), va="top",
        textcoords="offset points", fontsize=9, color="#555555",
    )  # fmt: skip


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return where each fit begins to interpolate and where its test error peaks, and whether the two are near."""
    lines = [f"{'':<10}{'N':>6}{'N/n':>8}{'params/n':>10}{'test error':>20}{'wrong signs':>14}{'training':>11}"]
    apart, where = [], []
    for fit in _FITS:
        one = data[fit]
        fitted = one.parameters.values / one.attrs["samples"]
        for i, N in enumerate(one.width.values):
            risk = f"{float(one.risk[i]):>11.4g} ± {float(one.risk_stderr[i]):<6.2g}"
            ratios = f"{float(one.ratio[i]):>8.3f}{fitted[i]:>10.2f}"
            lines.append(f"{fit:<10}{N:>6}{ratios}{risk}{float(one.error[i]):>14.3f}{float(one.train[i]):>11.2e}")
        peak, first = int(np.argmax(one.risk.values)), int(np.argmax(one.train.values < _LITTLE))
        if not 0.5 <= one.width.values[peak] / one.width.values[first] <= 2.0:
            apart.append(f"{fit} (peak at N = {one.width.values[peak]}, interpolates from {one.width.values[first]})")
        where.append(f"{fit} at N/n = {float(one.ratio[peak]):.3g}, parameters/n = {fitted[peak]:.2f}")
    end = (
        "Both peak where they begin to interpolate, within a factor of two"
        if not apart
        else f"Not at the threshold: {', '.join(apart)}"
    )
    return [*lines, f"{end}: {'; '.join(where)}."]

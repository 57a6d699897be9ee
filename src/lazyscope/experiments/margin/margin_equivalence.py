"""Nonlinear against noisy linear features in max-margin classification: the talk's conjecture, tested.

Both kinds see the same weights, inputs and labels in each draw; the paired difference must vanish as d grows. So do all
activations: their differences move together, and one unlucky set of draws shows in all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope.experiments.frame import Experiment, Preset, Row, answer, canvas, judgement
from lazyscope.experiments.frame.dots import by_panel, held, trials
from lazyscope.experiments.frame.drawing import entry
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.experiments.margin import margin_dots
from lazyscope.problems import LinearLabels
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.pictures import LOOKS

_COLOURS = {"relu": LOOKS["RF"]["color"], "tanh": LOOKS["NN"]["color"], "sign": LOOKS["NT"]["color"]}
_MARKERS = {"relu": "o", "tanh": "D", "sign": "^"}
_PANELS = {"error": "test error", "margin": "margin κ"}


@dataclass(frozen=True)
class MarginEquivalencePreset(Preset):
    """Activations, widths as N/d, dimensions, of which only the last is run at every width, and draws."""

    d: tuple[int, ...]
    draws: int
    psi1: tuple[float, ...] = (1.25, 2.0, 3.0, 5.0)
    common: float = 3.0
    activations: tuple[str, ...] = ("relu", "tanh", "sign")
    psi2: float = 2.0
    signal: float = 4.0

    @property
    def settings(self) -> dict[str, margin_dots.MarginSetting]:
        """What is simulated: both kinds of features, all widths in the last dimension and one in the others."""
        settings = {}
        for name in self.activations:
            for d in self.d:
                widths = tuple(round(r * d) for r in (self.psi1 if d == self.d[-1] else (self.common,)))
                for kind, surrogate in (("nonlinear", False), ("noisy linear", True)):
                    regime = RandomFeatures(name, surrogate=surrogate)
                    settings[f"{name}, {kind}, d = {d}"] = margin_dots.MarginSetting(
                        LinearLabels(self.signal), regime, d, round(self.psi2 * d), widths, self.draws
                    )
        return settings


PRESETS = {
    "quick": MarginEquivalencePreset("one minute", (25, 50, 100, 200), 16),
    "paper": MarginEquivalencePreset(
        "half an hour", (50, 100, 200, 400), 60, (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
    ),
}


def data(preset: MarginEquivalencePreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return the limit of each activation, and the dots of each setting."""
    panels = {}
    psi1 = np.geomspace(0.5, 1.15 * max(preset.psi1), 200)
    for name in preset.activations:
        panels[f"{name}, limit"] = margin_dots.lines(
            LinearLabels(preset.signal), RandomFeatures(name), psi1, preset.psi2
        )
    return panels | {name: setting.data(own) for name, setting, own in by_panel(preset.settings, rows)}


def pairs(data: Panels) -> list[dict[str, Any]]:
    """Return the paired differences, nonlinear minus noisy linear, a row for each setting and width.

    Where one sample or one neuron would change a number by so much, `…_allowance`, they may differ by it.
    """
    table = []
    for key, panel in data.items():
        if ", nonlinear, " not in key:
            continue
        other = data[key.replace("nonlinear", "noisy linear")]
        for i, N in enumerate(panel.width.values.tolist()):
            row: dict[str, Any] = {"activation": key.split(",")[0], "d": panel.attrs["d"], "psi1": N / panel.attrs["d"]}
            for name in _PANELS:
                gaps = panel[f"{name}_draws"].values[i] - other[f"{name}_draws"].values[i]
                stderr = float(gaps.std(ddof=1) / np.sqrt(gaps.size))
                allowance = float(panel[f"{name}_allowance"][i])
                row |= {name: float(gaps.mean()), f"{name}_stderr": stderr, f"{name}_allowance": allowance}
            table.append(row)
    return table


def plot(data: Panels) -> Figure:
    """Draw both kinds on their common limit, and their paired difference against d."""
    differences = pairs(data)
    last = max(row["d"] for row in differences)
    with canvas(10.4, 7.4) as figure:
        frames = figure.subplots(2, 2)
        for row, (name, label) in enumerate(_PANELS.items()):
            _on_the_limit(frames[row, 0], data, name, last)
            frames[row, 0].set_ylabel(label)
            _against_d(frames[row, 1], differences, name)
            frames[row, 1].set_ylabel(f"difference in {label}")
        frames[0, 0].set_title(f"limits, and dots at d = {last}")
        frames[0, 1].set_title("nonlinear − noisy linear, N = 3d (± 2 stderr, same draws for all σ)")
        frames[1, 0].set_xlabel("N/d, features per dimension")
        frames[1, 1].set_xlabel("d, dimension")
        frames[0, 0].legend(handles=_key(data), ncols=2)
    return figure


def _key(data: Panels) -> list[Any]:
    """Return a colour for each activation, and what lines, full and open markers stand for."""
    dark, known = "#333333", [name for name in _COLOURS if f"{name}, limit" in data]
    return [
        *(entry(f"σ = {name}", color=_COLOURS[name], marker=_MARKERS[name]) for name in known),
        entry("limit", color=dark),
        entry("nonlinear", color=dark, marker="o", linestyle=""),
        entry("noisy linear", marker="o", linestyle="", **_open(dark)),
    ]


def _open(colour: str) -> dict[str, Any]:
    return {"markersize": 9.0, "markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.0}


def _on_the_limit(axes: Axes, data: Panels, name: str, d: int) -> None:
    for activation, colour in _COLOURS.items():
        if f"{activation}, limit" not in data:
            continue
        line = data[f"{activation}, limit"]
        axes.plot(line.psi1, line[name], color=colour)
        for kind, hollow in (("nonlinear", False), ("noisy linear", True)):
            panel = data[f"{activation}, {kind}, d = {d}"]
            look = {"color": colour, "marker": _MARKERS[activation], **(_open(colour) if hollow else {})}
            axes.errorbar(panel.psi1, panel[name], panel[f"{name}_stderr"], linestyle="", label=kind, **look)


def _against_d(axes: Axes, differences: Sequence[Mapping[str, Any]], name: str) -> None:
    from matplotlib.ticker import NullLocator

    axes.axhline(0.0, color="#333333", linewidth=1.0)
    dimensions = sorted({row["d"] for row in differences})
    for shift, (activation, colour) in enumerate(_COLOURS.items()):
        shown = [row for row in differences if row["activation"] == activation]
        here = {
            d: min((r for r in shown if r["d"] == d), key=lambda r: abs(r["psi1"] - 3.0)) for d in dimensions if shown
        }
        aside = [d * 1.04 ** (shift - 1) for d in here]
        gaps, errors = ([row[key] for row in here.values()] for key in (name, f"{name}_stderr"))
        look = {"color": colour, "marker": _MARKERS[activation], "linestyle": ""}
        axes.errorbar(aside, gaps, [2.0 * error for error in errors], **look)
    axes.set_xscale("log")
    axes.set_xticks(dimensions)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())


def verdict(data: Panels) -> list[str]:
    """Return the paired differences, and whether the conjecture stands."""
    table = [f"{'σ':<6}{'d':>5}{'N/d':>7}{'difference in error':>24}{'in margin':>24}"]
    differences = pairs(data)
    far = 0
    for row in differences:
        cells = "".join(f"{row[name]:>+14.4f} ± {row[f'{name}_stderr']:.4f}" for name in _PANELS)
        table.append(f"{row['activation']:<6}{row['d']:>5}{row['psi1']:>7.2f}{cells}")
        far += sum(abs(row[name]) > 4.0 * row[f"{name}_stderr"] + row[f"{name}_allowance"] for name in _PANELS)
    z = [row[name] / row[f"{name}_stderr"] for row in differences for name in _PANELS]
    table.append(
        f"in standard errors: {np.sqrt(np.mean(np.square(z))):.2f} in root mean square, the mean {np.mean(z):+.2f}"
    )
    count, within = len(differences) * len(_PANELS), "4 standard errors and what one sample changes"
    same = f"Equivalent: all {count} differences are zero within {within}."
    if far:
        same = f"Not equivalent: {far} of {count} differences beyond {within}."
    dots = {key: panel for key, panel in data.items() if "limit" not in key}
    table += [*judgement.table(held(dots, tuple(_PANELS))), margin_dots.HOW]
    ending = margin_dots.agreement(dots)
    return [*table, same, answer(ending.holds and not far, ending, ending if not ending.holds else same)]


_TITLE = "Nonlinear against noisy linear features at the largest margin (the same, Conjecture)"
_FAULTS = margin_dots.faults(data, lambda right: replace(right, signal=0.25 * right.signal))
EXPERIMENT = Experiment("margin-equivalence", _TITLE, PRESETS, trials, data, plot, verdict, place=42, faults=_FAULTS)

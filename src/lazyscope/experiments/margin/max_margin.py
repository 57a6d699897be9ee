"""Error and margin of the max-margin classifier against ψ₁ = N/d at n = 2d, ReLU, d = 200 and 400: the talk's plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lazyscope.experiments.frame import Experiment, Preset, Row, canvas
from lazyscope.experiments.frame.dots import by_panel, held, trials
from lazyscope.experiments.frame.judgement import table
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.experiments.margin import margin_dots
from lazyscope.limits.margin.separability import separability_threshold
from lazyscope.problems import LinearLabels
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.pictures import FLOOR, LOOKS

_DOTS = (
    {"color": LOOKS["RF"]["color"], "marker": "o"},
    {"color": LOOKS["NN"]["color"], "marker": "D", "markersize": 4.5},
)
_PANELS = {"error": "test error", "margin": "margin κ"}


@dataclass(frozen=True)
class MaxMarginPreset(Preset):
    """Two dimensions, widths as N/d, draws, samples per dimension, signal."""

    psi1: tuple[float, ...]
    draws: int
    d: tuple[int, int] = (200, 400)
    psi2: float = 2.0
    signal: float = 4.0

    @property
    def problem(self) -> LinearLabels:
        """Logistic labels."""
        return LinearLabels(self.signal)

    @property
    def settings(self) -> dict[str, margin_dots.MarginSetting]:
        """What is simulated, a setting for each dimension."""
        regime = RandomFeatures("relu")
        return {
            f"d = {d}": margin_dots.MarginSetting(
                self.problem, regime, d, round(self.psi2 * d), tuple(round(r * d) for r in self.psi1), self.draws
            )
            for d in self.d
        }


PRESETS = {
    "quick": MaxMarginPreset("one minute", (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0), 16),
    "paper": MaxMarginPreset("ten minutes", (0.9, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0), 40),
}


def data(preset: MaxMarginPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return the limit, and the dots of each dimension."""
    regime = RandomFeatures("relu")
    at = separability_threshold(preset.problem, regime, psi2=preset.psi2)
    psi1 = float(at.psi1) * np.geomspace(1.0001, max(preset.psi1) * 1.1 / float(at.psi1), 300)
    panels = {"limit": margin_dots.lines(preset.problem, regime, psi1, preset.psi2)}
    panels["limit"].attrs["threshold"] = float(at.psi1)
    return panels | {name: setting.data(own) for name, setting, own in by_panel(preset.settings, rows)}


def plot(data: Panels) -> Figure:
    """Draw error and margin side by side, the limit as a line."""
    with canvas(10.0, 4.3) as figure:
        for axes, (name, label) in zip(figure.subplots(1, 2), _PANELS.items(), strict=True):
            _panel(axes, data, name)
            axes.set(xlabel="N/d, features per dimension", ylabel=label)
            axes.set_ylim(bottom=0.0 if name == "margin" else None)
        figure.axes[0].legend(loc="upper right")
        figure.axes[0].set_title(f"{data['limit'].attrs['problem']}, n/d = {float(data['limit'].psi2):g}, ReLU")
    return figure


def _panel(axes: Axes, data: Panels, name: str) -> None:
    line = data["limit"]
    threshold = line.attrs["threshold"]
    axes.axvspan(0.0, threshold, color="#eeeeee", zorder=0, linewidth=0)
    axes.plot(line.psi1, line[name], color="#333333", label="limit, N, n, d → ∞")
    if name == "error":
        axes.axhline(float(line.bayes), label="Bayes", **FLOOR)
    else:
        axes.text(threshold / 2, 0.02, "not separable", rotation=90, ha="center", va="bottom", color="#777777")
    for (panel, measured), look in zip(list(data.items())[1:], _DOTS, strict=True):
        shown = measured.isel(width=measured.separable.values > 0.5)
        error = shown[f"{name}_stderr"]
        axes.errorbar(shown.psi1, shown[name], error, linestyle="", label=f"simulated, {panel}", **look)
    axes.set_xlim(left=0.0)


def verdict(data: Panels) -> list[str]:
    """Return every dot with its limit and its prediction, and whether they agree."""
    dots = dict(list(data.items())[1:])
    share = min(float(panel.separable.min()) for panel in dots.values())
    return [
        *table(held(dots, tuple(_PANELS))),
        margin_dots.HOW,
        f"At least {share:.0%} of the draws of each dot are separable; in the limit data are from N/d = "
        f"{data['limit'].attrs['threshold']:.4f} on.",
        f"Bayes error {float(data['limit'].bayes):.4f}, which nothing beats.",
        margin_dots.agreement(dots),
    ]


_TITLE = "Error and margin of the max-margin classifier on ReLU features (Thermodynamic limits, Comparison)"
_FAULTS = margin_dots.faults(data, lambda right: replace(right, signal=0.25 * right.signal))
EXPERIMENT = Experiment("max-margin", _TITLE, PRESETS, trials, data, plot, verdict, place=41, faults=_FAULTS)

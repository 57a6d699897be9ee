"""ReLU features against noisy linear ones, in two dimensions: one limit, the same dots (M: Mei & Montanari 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lazyscope.evidence.statement import Statement
from lazyscope.experiments.frame import Experiment, Preset, Row, canvas
from lazyscope.experiments.frame.dots import by_panel, held, trials
from lazyscope.experiments.frame.judgement import table
from lazyscope.experiments.frame.types import Dataset, Figure, Panels
from lazyscope.experiments.ridge import ridge_dots
from lazyscope.problems import LinearTarget
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.pictures import LOOKS

_KINDS = {"ReLU": False, "noisy linear": True}
_LOOKS = {
    "ReLU": {"color": LOOKS["RF"]["color"], "marker": "o", "markersize": 4.5},
    "noisy linear": {
        "color": LOOKS["NN"]["color"],
        "marker": "s",
        "markersize": 8,
        "markerfacecolor": "none",
        "markeredgecolor": LOOKS["NN"]["color"],
        "markeredgewidth": 1.3,
    },
}


@dataclass(frozen=True)
class EquivalencePreset(Preset):
    """Two dimensions, samples per dimension, widths as N/n, draws in each, ridge and noise."""

    d: tuple[int, ...]
    draws: tuple[int, ...]
    psi2: float = 2.0
    ratios: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 1.0, 1.3, 2.0, 4.0)
    ridge: float = 0.001
    noise: float = 0.5

    @property
    def settings(self) -> dict[str, ridge_dots.RidgeSetting]:
        """What is simulated: both kinds of features in each dimension."""
        panels = {}
        for d, draws in zip(self.d, self.draws, strict=True):
            n = round(self.psi2 * d)
            widths = ridge_dots.widths_at(self.ratios, n)
            for kind, surrogate in _KINDS.items():
                regime = RandomFeatures("relu", surrogate=surrogate)
                target = LinearTarget(noise=self.noise)
                panels[f"{kind}, d = {d}"] = ridge_dots.RidgeSetting(target, regime, d, n, widths, draws, (self.ridge,))
        return panels


PRESETS = {
    "quick": EquivalencePreset("one minute", (25, 100), (60, 30)),
    "paper": EquivalencePreset("ten minutes", (50, 400), (120, 24)),
}


def data(preset: EquivalencePreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return lines and dots, a panel for each kind of features and each dimension."""
    lines = ridge_dots.ratios_around_one(0.08, 6.0, 160)
    return {name: setting.data(own, lines) for name, setting, own in by_panel(preset.settings, rows)}


def plot(data: Panels) -> Figure:
    """Draw test and training error, a column for each dimension."""
    dimensions = list(dict.fromkeys(panel.attrs["d"] for panel in data.values()))
    with canvas(9.6, 6.4) as figure:
        frames = figure.subplots(2, len(dimensions), sharex=True, sharey="row", squeeze=False)
        for column, d in enumerate(dimensions):
            for row, (name, title) in enumerate({"risk": "test error", "train": "training error"}.items()):
                axes = frames[row, column]
                for kind, look in _LOOKS.items():
                    at = data[f"{kind}, d = {d}"].isel(ridge=0)
                    if kind == "ReLU":
                        axes.plot(at.line, at[f"{name}_limit"], color="#333333", label="limit")
                    axes.errorbar(at.ratio, at[name], at[f"{name}_stderr"], linestyle="", label=kind, **look)
                ridge_dots.threshold(axes)
                axes.set(yscale="log")
                if column == 0:
                    axes.set_ylabel(title)
            frames[0, column].set_title(f"d = {d}")
            frames[1, column].set_xlabel("N/n, neurons per sample")
            frames[0, column].legend()
    return figure


def verdict(data: Panels) -> list[str]:
    """Return the gaps between the two kinds and to the limit, and whether they agree."""
    lines = [f"{'d':>5}{'N/n':>7}{'ReLU':>20}{'noisy linear':>20}{'limit':>10}{'gap / stderr':>14}"]
    worst = 0.0
    for d in dict.fromkeys(panel.attrs["d"] for panel in data.values()):
        relu, linear = (data[f"{kind}, d = {d}"].isel(ridge=0) for kind in _KINDS)
        for i, ratio in enumerate(relu.ratio.values):
            a, b = ((float(at.risk[i]), float(at.risk_stderr[i])) for at in (relu, linear))
            z = (a[0] - b[0]) / float(np.hypot(a[1], b[1]))
            worst = max(worst, abs(z))
            pair = f"{a[0]:>11.4f} ± {a[1]:.4f}{b[0]:>11.4f} ± {b[1]:.4f}"
            lines.append(f"{d:>5}{ratio:>7.2f}{pair}{float(relu.risk_expected[i]):>10.4f}{z:>+14.1f}")
    return [
        *lines,
        f"Largest gap between the two: {worst:.1f} standard errors.",
        *table(held(data, ("risk",))),
        ridge_dots.HOW,
        ridge_dots.agreement(data, ("risk", "train")),
    ]


_TITLE = "ReLU features and noisy linear ones, in two dimensions (the same)"
_FAULTS = ridge_dots.faults(
    data,
    lambda right: replace(right, noise=2.0 * right.noise),
    lambda right: replace(right, ridge=10.0 * right.ridge),
)
EXPERIMENT = Experiment("equivalence", _TITLE, PRESETS, trials, data, plot, verdict, place=24, faults=_FAULTS)

STATEMENTS = (
    Statement(
        "Theorem (Mei and Montanari 2019)",
        "noisy linear features b₁⟨w, x⟩ + b⋆z have the same ridge risk as σ(⟨w, x⟩)",
        ("mei2019generalization",),
        figure="equivalence",
    ),
)

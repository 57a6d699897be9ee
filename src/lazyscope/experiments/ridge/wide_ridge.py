"""At a fixed ridge the widest network is the best: risk against N/n up to N/n = ∞ (M: Mei & Montanari 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lazyscope.experiments.frame import Experiment, Preset, Row, answer, canvas
from lazyscope.experiments.frame.dots import by_panel, held, ridge_name, trials
from lazyscope.experiments.frame.judgement import table
from lazyscope.experiments.frame.types import Dataset, Figure, Panels
from lazyscope.experiments.ridge import ridge_dots
from lazyscope.problems import LinearTarget
from lazyscope.runs.pictures import FLOOR
from lazyscope.runs.verbs import limit


@dataclass(frozen=True)
class WideRidgePreset(Preset):
    """Dimension, samples per dimension, widths as N/n, draws, ridges, and the two levels of noise."""

    d: int
    psi2: float = 2.0
    ratios: tuple[float, ...] = (0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 5.0, 10.0, 16.0)
    draws: int = 12
    ridges: tuple[float, ...] = (0.001, 0.01, 0.1)
    noises: tuple[float, ...] = (0.2, 0.7)

    @property
    def settings(self) -> dict[str, ridge_dots.RidgeSetting]:
        """What is simulated, a panel for each level of noise."""
        targets = {f"τ = {noise:g}": LinearTarget(noise=noise) for noise in self.noises}
        return ridge_dots.settings_of(targets, self.d, self.psi2, self.ratios, self.draws, self.ridges)


PRESETS = {"quick": WideRidgePreset("one minute", d=60), "paper": WideRidgePreset("ten minutes", d=200, draws=24)}


def data(preset: WideRidgePreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return lines, dots and the limit N/n = ∞, a panel for each level of noise."""
    panels, lines = {}, ridge_dots.ratios_around_one(0.08, 200.0, 240)
    for name, setting, own in by_panel(preset.settings, rows):
        psi2 = setting.samples / setting.d
        widest = limit(setting.problem, setting.regime, psi1=np.inf, psi2=psi2, ridge=list(setting.ridges))
        panels[name] = setting.data(own, lines).assign(risk_widest=("ridge", widest.risk.values))
    return panels


def plot(data: Panels) -> Figure:
    """Draw a frame for each level of noise, the widest network dotted."""
    with canvas(9.6, 4.3) as figure:
        frames = figure.subplots(1, len(data), sharey=True, squeeze=False).flat
        for axes, (name, panel) in zip(frames, data.items(), strict=True):
            colours = ridge_dots.colours_of(panel)
            ridge_dots.draw(axes, panel, "risk", colours)
            ridge_dots.threshold(axes)
            for ridge, colour in colours.items():
                axes.axhline(float(panel.risk_widest.sel(ridge=ridge)), **{**FLOOR, "color": colour})
            axes.plot([], [], label="N/n = ∞", **FLOOR)
            axes.set(yscale="log", xlabel="N/n, neurons per sample", title=ridge_dots.title(name, panel))
            axes.legend()
        figure.axes[0].set_ylabel("test error")
    return figure


def verdict(data: Panels) -> list[str]:
    """Return the lowest risk at finite N/n and the one at ∞, for each ridge, and whether dots and limit agree."""
    lines, above = [f"{'':<10}{'ridge':>8}{'peak':>10}{'best, N/n ≤ 200':>18}{'N/n = ∞':>10}"], []
    for name, panel in data.items():
        for j, ridge in enumerate(panel.ridge.values):
            curve, widest = panel.risk_limit.values[:, j], float(panel.risk_widest[j])
            peak = float(np.max(curve[panel.line.values > 0.5]))
            lines.append(f"{name:<10}{ridge:>8g}{peak:>10.4f}{np.min(curve):>18.4f}{widest:>10.4f}")
            if widest > np.min(curve):
                above.append(f"{name}, {ridge_name(float(ridge))}")
    best = f"Not the widest: {'; '.join(above)}." if above else "The widest network has the lowest risk at every ridge."
    ending = ridge_dots.agreement(data)
    lines += [*table(held(data, ("risk",))), ridge_dots.HOW]
    return [*lines, best, answer(ending.holds and not above, ending, best if ending.holds else ending)]


_TITLE = "At a fixed ridge the widest network is the best (the same)"
_FAULTS = ridge_dots.faults(
    data,
    lambda right: replace(right, noises=tuple(2.0 * tau for tau in right.noises)),
    lambda right: replace(right, ridges=tuple(10.0 * ridge for ridge in right.ridges)),
)
EXPERIMENT = Experiment("wide-ridge", _TITLE, PRESETS, trials, data, plot, verdict, place=23, faults=_FAULTS)

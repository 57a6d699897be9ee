"""Risk against ridge at high and at low signal-to-noise ratio, the minimum marked (M: Mei & Montanari 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope.experiments.frame import Experiment, Preset, Row, canvas
from lazyscope.experiments.frame.dots import by_panel, held, trials
from lazyscope.experiments.frame.judgement import table
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.experiments.ridge import ridge_dots
from lazyscope.limits.ridge.optimal import optimal_ridge
from lazyscope.problems import LinearTarget
from lazyscope.runs.pictures import scale_colour
from lazyscope.runs.verbs import limit

_LINE = np.geomspace(3e-5, 10.0, 240)


@dataclass(frozen=True)
class RidgeSnrPreset(Preset):
    """Dimension, samples per dimension, widths as N/n, draws, ridges, and signal-to-noise ratios F₁²/τ²."""

    d: int
    psi2: float = 2.0
    ratios: tuple[float, ...] = (1.0, 2.0, 10.0)
    draws: int = 16
    ridges: tuple[float, ...] = (1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    snr: tuple[float, ...] = (25.0, 0.5)

    @property
    def settings(self) -> dict[str, ridge_dots.RidgeSetting]:
        """What is simulated, a panel for each ratio."""
        targets = {f"SNR = {snr:g}": LinearTarget(noise=snr**-0.5) for snr in self.snr}
        return ridge_dots.settings_of(targets, self.d, self.psi2, self.ratios, self.draws, self.ridges)


PRESETS = {"quick": RidgeSnrPreset("half a minute", d=80), "paper": RidgeSnrPreset("five minutes", d=300, draws=32)}


def data(preset: RidgeSnrPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return dots, lines over λ for each width and for N/n = ∞, and their minima."""
    panels = {}
    for name, setting, own in by_panel(preset.settings, rows):
        psi2 = setting.samples / setting.d
        psi1 = [*(np.array(setting.widths) / setting.d), np.inf]
        theory = limit(setting.problem, setting.regime, psi1=psi1, psi2=psi2, ridge=[0.0, *_LINE])
        best = optimal_ridge(setting.problem, setting.regime, psi1=psi1, psi2=psi2)
        panels[name] = (
            setting.data(own)
            .assign(
                risk_limit=(("shape", "line"), theory.risk.values[:, 1:]),
                risk_ridgeless=("shape", theory.risk.values[:, 0]),
                best_ridge=("shape", best.ridge.values),
                best_risk=("shape", best.risk.values),
            )
            .assign_coords(line=_LINE, shape=[*(np.array(setting.widths) / setting.samples), np.inf])
        )
    return panels


def plot(data: Panels) -> Figure:
    """Draw a frame for each signal-to-noise ratio; stars are the best ridges, at the left edge where that is 0."""
    with canvas(9.6, 4.4) as figure:
        frames = figure.subplots(1, len(data), squeeze=False).flat
        for axes, (name, panel) in zip(frames, data.items(), strict=True):
            for i, ratio in enumerate(panel["shape"].values):
                _line(axes, panel, i, float(ratio), scale_colour(i / (panel.sizes["shape"] - 1)))
            axes.plot([], [], marker="*", markersize=11, color="#333333", linestyle="", label="best ridge")
            axes.set(xscale="log", yscale="log", xlabel="ridge λ", title=ridge_dots.title(name, panel))
            axes.set_xlim(_LINE[0] * 0.8, _LINE[-1])
            axes.legend()
        figure.axes[0].set_ylabel("test error")
    return figure


def _line(axes: Axes, panel: Dataset, i: int, ratio: float, colour: Any) -> None:
    label = "N/n = ∞" if np.isinf(ratio) else f"N/n = {ratio:g}"
    axes.plot(panel.line, panel.risk_limit[i], color=colour, label=label)
    if np.isfinite(ratio):
        dots = panel.isel(width=i)
        axes.errorbar(panel.ridge, dots.risk, dots.risk_stderr, linestyle="", marker="o", markersize=4.5, color=colour)
    ridge = max(float(panel.best_ridge[i]), _LINE[0])
    axes.plot(ridge, panel.best_risk[i], marker="*", markersize=13, color=colour, linestyle="", zorder=5, clip_on=False)


def verdict(data: Panels) -> list[str]:
    """Return the best ridges and their risks, and whether dots and limit agree."""
    lines = [f"{'':<12}{'N/n':>6}{'best ridge':>14}{'risk there':>12}{'risk at λ → 0':>16}"]
    for name, panel in data.items():
        for i, ratio in enumerate(panel["shape"].values):
            ridge = float(panel.best_ridge[i])
            zero = float(panel.risk_ridgeless[i])
            lines.append(f"{name:<12}{ratio:>6g}{ridge:>14.4g}{float(panel.best_risk[i]):>12.4f}{zero:>16.4f}")
    lines += [*table(held(data, ("risk",))), ridge_dots.HOW]
    return [*lines, ridge_dots.agreement(data, ("risk", "train"))]


_TITLE = "The best ridge at high and at low signal-to-noise ratio (the same)"
_FAULTS = ridge_dots.faults(
    data,
    lambda right: replace(right, snr=tuple(0.25 * s for s in right.snr)),
    lambda right: replace(right, ridges=tuple(10.0 * ridge for ridge in right.ridges)),
)
EXPERIMENT = Experiment("ridge-snr", _TITLE, PRESETS, trials, data, plot, verdict, place=22, faults=_FAULTS)

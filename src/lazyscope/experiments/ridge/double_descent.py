"""Double descent: risk, bias, variance and training error against N/n (M: Mei & Montanari 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lazyscope.experiments.frame import Experiment, Preset, Row, canvas
from lazyscope.experiments.frame.dots import by_panel, held, ridge_name, trials
from lazyscope.experiments.frame.judgement import table
from lazyscope.experiments.frame.types import Dataset, Figure, Panels
from lazyscope.experiments.ridge import ridge_dots
from lazyscope.problems import LinearTarget

_TITLES = {"risk": "Test error", "bias": "Bias", "variance": "Variance", "train": "Training error"}
_LOWEST, _HIGHEST = {"risk": 0.1, "bias": 0.03, "variance": 0.003, "train": 0.003}, 12.0


@dataclass(frozen=True)
class DoubleDescentPreset(Preset):
    """Dimension, samples per dimension, widths as N/n, draws, ridges and noise."""

    d: int
    psi2: float = 2.0
    ratios: tuple[float, ...] = (0.1, 0.2, 0.4, 0.6, 0.75, 0.85, 1.0, 1.2, 1.4, 1.75, 2.5, 4.0, 8.0)
    draws: int = 16
    ridges: tuple[float, ...] = (0.0, 0.001, 0.01, 0.1)
    noise: float = 0.5

    @property
    def settings(self) -> dict[str, ridge_dots.RidgeSetting]:
        """What is simulated."""
        target = {"double descent": LinearTarget(noise=self.noise)}
        return ridge_dots.settings_of(target, self.d, self.psi2, self.ratios, self.draws, self.ridges)


PRESETS = {
    "quick": DoubleDescentPreset("half a minute", d=80),
    "paper": DoubleDescentPreset("ten minutes", d=300, draws=24),
}


def data(preset: DoubleDescentPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return lines and dots."""
    lines = ridge_dots.ratios_around_one(0.08, 12.0, 240)
    return {name: setting.data(own, lines) for name, setting, own in by_panel(preset.settings, rows)}


def plot(data: Panels) -> Figure:
    """Draw four frames, one legend."""
    panel = data["double descent"]
    colours = ridge_dots.colours_of(panel)
    with canvas(9.6, 6.9) as figure:
        frames = figure.subplots(2, 2, sharex=True)
        for axes, (name, title) in zip(frames.flat, _TITLES.items(), strict=True):
            ridge_dots.draw(axes, panel, name, colours)
            ridge_dots.threshold(axes)
            axes.set(yscale="log", title=title, ylim=(_LOWEST[name], _HIGHEST))
        for axes in frames[1]:
            axes.set_xlabel("N/n, neurons per sample")
        handles, labels = frames[0, 0].get_legend_handles_labels()
        ratio = panel.attrs["samples"] / panel.attrs["d"]
        title = f"ReLU features, {panel.attrs['problem']}, n/d = {ratio:g}, d = {panel.attrs['d']} (dots), ∞ (lines)"
        figure.legend(handles, labels, loc="outside upper center", ncols=len(colours), title=title)
    return figure


def verdict(data: Panels) -> list[str]:
    """Return every risk, simulated, in the limit and predicted at its own sizes, and whether they agree."""
    panel = data["double descent"]
    peaks = {ridge_name(float(r)): ridge_dots.peak(panel, float(r)) for r in panel.ridge.values}
    named = ", ".join(f"{'none' if at is None else f'{at:.2f}'} ({name})" for name, at in peaks.items())
    lines = [*table(held({"": panel}, ("risk",))), ridge_dots.HOW, f"Peak of the limit, as N/n: {named}."]
    return [*lines, ridge_dots.agreement({"": panel})]


_TITLE = "Ridge regression on random features: test error, bias, variance, training (Mei & Montanari)"
_FAULTS = ridge_dots.faults(
    data,
    lambda right: replace(right, noise=2.0 * right.noise),
    lambda right: replace(right, ridges=tuple(10.0 * ridge for ridge in right.ridges)),
)
EXPERIMENT = Experiment("double-descent", _TITLE, PRESETS, trials, data, plot, verdict, place=21, faults=_FAULTS)

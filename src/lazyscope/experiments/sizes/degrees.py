"""The staircase: which degree is learnt from d^κ samples, and by d^κ neurons.

With n ~ d^κ and N = ∞, or with N ~ d^κ and n = ∞, random features learn the degrees below κ and nothing above
(Ghorbani, Mei, Misiakiewicz and Montanari 2021; Mei, Misiakiewicz and Montanari 2022); N neurons of the tangent model,
with d features each, learn one degree more. The formula for given n, N and d says what is between the steps, and how
near to them one is in d = 30.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Experiment, Preset, Row, canvas, dataset, wrong_work
from lazyscope.experiments.frame.dots import trials
from lazyscope.experiments.frame.draws import split
from lazyscope.experiments.frame.judgement import Dot, judged
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.experiments.sizes.judged import DotSetting, Sizes, dots_of
from lazyscope.limits.spectral.harmonic import steps
from lazyscope.problems import HarmonicTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures
from lazyscope.runs.pictures import scale_colour
from lazyscope.runs.verbs import limit

_ENERGIES = (0.0, 1 / 3, 1 / 3, 1 / 3)  # one third each in degrees 1, 2 and 3
_SIGMA = "relu2"  # has a part in each of them
_LAST = 3.4  # of κ
_TREADS = (0.5, 1.5, 2.5)  # κ in the middle of a tread, where finite d and the step are compared
_NARROWEST = 2  # N/d from which on there is a formula for the tangent model
_CITED = "defilippis2024dimension,ghorbani2021linearized,mei2022hypercontractivity"


@dataclass(frozen=True)
class DegreesPreset(Preset):
    """Sizes of the dots, the other size, draws; N of the tangent model; dimensions, the first of the dots; ridge."""

    sizes: tuple[int, ...]
    other: int
    draws: int
    tangent: tuple[int, ...]
    dimensions: tuple[int, ...] = (30, 100, 1000, 100_000)
    ridge: float = 0.1
    points: int = 171

    @property
    def settings(self) -> dict[str, DotSetting]:
        """What is drawn: fits as n grows and as N grows, and the best fits (n = ∞) as N grows, for RF and for NT."""
        along: dict[str, tuple[Sizes, ...]] = {
            "samples": tuple((self.other, n) for n in self.sizes),
            "neurons": tuple((N, self.other) for N in self.sizes),
            "neurons, n = ∞": tuple((N, np.inf) for N in self.sizes),
            "tangent, n = ∞": tuple((N, np.inf) for N in self.tangent),
        }
        target = HarmonicTarget(self.dimensions[0], np.array(_ENERGIES))
        return {name: DotSetting(target, _regime(name), self.ridge, at, self.draws) for name, at in along.items()}


def _regime(panel: str) -> RandomFeatures | NeuralTangent:
    return NeuralTangent(_SIGMA) if panel.startswith("tangent") else RandomFeatures(_SIGMA)


PRESETS = {
    "quick": DegreesPreset("a minute", (12, 30, 75, 190, 480, 1200), 1000, 12, (75, 120, 190, 300)),
    "paper": DegreesPreset(
        "half an hour", (8, 15, 30, 60, 120, 240, 480, 960, 1800, 3000), 4000, 24, (60, 90, 150, 240, 400, 600)
    ),
}


def data(preset: DegreesPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return lines at every d, the steps, dots and, where n = ∞ can be computed, crosses: for n, for N, for N of NT."""
    settings = preset.settings
    parts = dict(zip(settings, split(rows, [setting.trials for setting in settings.values()]), strict=True))
    first, other = preset.dimensions[0], float(preset.other)
    lowest = 1.01 + np.log(_NARROWEST) / np.log(first)
    panels = {}
    for panel in ("samples", "neurons", "tangent"):
        low, high = (lowest, _LAST - 0.8) if panel == "tangent" else (0.2, _LAST)
        kappa = np.linspace(low, high, preset.points)
        lines = np.array([_line(preset, d, panel, kappa, np.inf) for d in preset.dimensions])
        columns: dict[str, Any] = {"line": (("d", "kappa"), lines)}
        columns["steps"] = (("kappa",), steps(_ENERGIES, kappa + (panel == "tangent")))
        if panel in settings:
            columns |= settings[panel].columns(parts[panel], "size")
            columns["line_of_dots"] = (("kappa",), _line(preset, first, panel, kappa, other))
        if f"{panel}, n = ∞" in settings:
            drawn = f"{panel}, n = ∞"
            columns |= settings[drawn].columns(parts[drawn], "size", "exact_")
        sizes = list(preset.tangent if panel == "tangent" else preset.sizes)
        about = {"other": preset.other, "ridge": preset.ridge, "draws": preset.draws, "citations": _CITED}
        words = {"problem": str(settings["samples"].problem), "regime": str(_regime(panel))}
        coordinates = {"d": list(preset.dimensions), "kappa": kappa, "size": sizes}
        panels[panel] = dataset(columns, coordinates, words | about)
    return panels


def _line(preset: DegreesPreset, d: int, panel: str, kappa: FloatArray, other: float) -> FloatArray:
    """Return the risk against κ: n = d^κ at N = `other`, or N = d^κ at n = `other`."""
    names = ("samples", "width") if panel == "samples" else ("width", "samples")
    sizes: dict[str, Any] = {names[0]: float(d) ** kappa, names[1]: other}
    target = HarmonicTarget(d, np.array(_ENERGIES))
    theory = limit(target, _regime(panel), **sizes, ridge=preset.ridge)
    return np.asarray(theory.risk.values, dtype=np.float64)


def plot(data: Panels) -> Figure:
    """Draw the risk against log n/log d, against log N/log d, and the latter for the tangent model."""
    with canvas(13.2, 4.9) as figure:
        frames = figure.subplots(1, 3, sharey=True, width_ratios=(1.0, 1.0, 0.55))
        for axes, (panel, curves) in zip(frames, data.items(), strict=True):
            _frame(axes, curves, panel)
        frames[0].set_ylabel("risk (predicting 0: 1)")
        handles, labels = frames[1].get_legend_handles_labels()  # which has dots and crosses
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


_TITLES = {
    "samples": ("n", "Samples: n = d^κ, N = ∞"),
    "neurons": ("N", "Neurons: N = d^κ, n = ∞"),
    "tangent": ("N", "Tangent model: N = d^κ, n = ∞"),
}


def _frame(axes: Axes, curves: Dataset, panel: str) -> None:
    first, (free, title) = int(curves.d.values[0]), _TITLES[panel]
    axes.plot(curves.kappa, curves.steps, color="#999999", linewidth=1.2, linestyle=":", label="d → ∞: the steps")
    for k, d in enumerate(curves.d.values.tolist()):
        colour = scale_colour(1.0 - k / max(1, curves.d.size - 1))
        axes.plot(curves.kappa, curves.line.sel(d=d), color=colour, label=f"d = {d:,}")
    at = np.log(curves["size"].values) / np.log(first)
    look: dict[str, Any] = {"linestyle": "", "color": "#222222", "zorder": 4}
    if "risk" in curves:
        label = f"d = {first}, {curves.attrs['other']:,} instead of ∞"
        dashed: dict[str, Any] = {"color": scale_colour(1.0), "linestyle": "--", "linewidth": 1.2, "label": label}
        axes.plot(curves.kappa, curves.line_of_dots, **dashed)
        axes.errorbar(
            at, curves.risk, curves.stderr, marker="o", markersize=5, label="simulated, on the dashed line", **look
        )
    if "exact_risk" in curves:
        cross: dict[str, Any] = {"marker": "x", "markersize": 7, "markeredgecolor": "#222222", "markeredgewidth": 1.4}
        axes.errorbar(at, curves.exact_risk, curves.exact_stderr, label="exact, n = ∞", capsize=0, **cross, **look)
    axes.set(xlabel=f"log {free} / log d", title=title, ylim=(-0.03, 1.1))
    axes.set_xlim(min(1.0, float(curves.kappa[0])), float(curves.kappa[-1]))


def verdict(data: Panels) -> list[str]:
    """Return the dots with the formula at their own sizes, how near lines are to the steps, and whether dots agree."""
    lines = [f"{'':<22}{'N':>7}{'n':>7}{'drawn':>20}{'formula':>10}{'z':>7}"]
    everything: list[Dot] = []
    for panel, curves in data.items():
        for prefix, other in (("", curves.attrs["other"]), ("exact_", np.inf)):
            if f"{prefix}risk" not in curves:
                continue
            dots = dots_of(curves, f"{prefix}{panel}", prefix)
            everything += dots
            for k, size in enumerate(curves["size"].values.tolist()):
                N, n = (other, size) if panel == "samples" else (size, other)
                mean, error, formula = (float(curves[f"{prefix}{key}"][k]) for key in ("risk", "stderr", "expected"))
                name, cell = f"{'exact' if prefix else 'simulated'}, {panel}", f"{mean:.4f} ± {error:.4f}"
                lines.append(f"{name:<22}{N:>7g}{n:>7g}{cell:>20}{formula:>10.4f}{dots[k].z:>7.1f}")
    for panel, curves in data.items():
        treads = [kappa for kappa in _TREADS if kappa > float(curves.kappa[0])]
        at = curves.sel(kappa=treads, method="nearest")
        off = np.abs(at.line - at.steps).mean("kappa").values
        told = ", ".join(f"{value:.3f} (d = {d:,})" for value, d in zip(off, curves.d.values.tolist(), strict=True))
        places = ", ".join(f"{kappa:g}" for kappa in treads)
        lines.append(f"{panel}: mean distance to the steps at κ = {places}: {told}")
    return [*lines, judged(everything).answer()]


_TITLE = "The staircase: risk against log n / log d and log N / log d, and its dots in d = 30"
_FAULTS = (
    wrong_work("a ridge ten times too large", data, trials, lambda right: replace(right, ridge=10.0 * right.ridge)),
)
EXPERIMENT = Experiment("degrees", _TITLE, PRESETS, trials, data, plot, verdict, place=26, faults=_FAULTS)

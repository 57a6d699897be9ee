"""The bridge: from the formula for given n, N and d to the limit of Mei and Montanari, at a distance of order 1/d.

A linear target on the sphere with n = ψ₂d samples, N = ψ₁d neurons and the ridge nλ/d has, for d → ∞, the risk of
`LinearTarget` with ψ₁, ψ₂ and λ (Mei and Montanari 2019). At d = 20 the two differ by some percent, and draws tell
which of them describes the finite size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.run import Run
from lazyscope.experiments.frame import Experiment, Preset, Row, answer, dataset, wrong_work
from lazyscope.experiments.frame.drawing import frames
from lazyscope.experiments.frame.draws import exponents
from lazyscope.experiments.frame.judgement import judged
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.experiments.sizes.judged import DotSetting, dots_of
from lazyscope.problems import HarmonicTarget, LinearTarget
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.pictures import scale_colour
from lazyscope.runs.verbs import limit

_SIGMA = "relu"
_RATE, _TOLERANCE = -1.0, 0.02  # of the exponent fitted from d = 100 on
_CITED = "defilippis2024dimension,mei2019generalization"


@dataclass(frozen=True)
class BridgePreset(Preset):
    """Dimension, ratios N/d and draws of the dots; n/d, λ and noise; dimensions, ratios and ridges of the rate."""

    d: int
    draws: int
    psi1: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0)
    psi2: int = 3
    ridge: float = 0.01
    noise: float = 0.5
    lines: tuple[int, ...] = (20, 40, 160)
    dimensions: tuple[int, ...] = (100, 316, 1000, 3162, 10_000, 31_623, 100_000)
    ratios: tuple[int, ...] = (1, 3, 10)
    ridges: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)

    def target(self, d: int) -> HarmonicTarget:
        """The linear target in d dimensions."""
        return HarmonicTarget(d, np.array([0.0, 1.0]), self.noise)

    @property
    def setting(self) -> DotSetting:
        """What is simulated."""
        n = self.psi2 * self.d
        sizes = tuple((round(ratio * self.d), n) for ratio in self.psi1)
        return DotSetting(self.target(self.d), RandomFeatures(_SIGMA), self.psi2 * self.ridge, sizes, self.draws)

    def formula(self, d: int, psi1: Any, ridge: Any) -> FloatArray:
        """Return the risk in d dimensions, against N/d and λ."""
        regime, n = RandomFeatures(_SIGMA), self.psi2 * d
        scaled = self.psi2 * np.asarray(ridge)
        return np.asarray(limit(self.target(d), regime, width=np.asarray(psi1) * d, samples=n, ridge=scaled).risk)

    def limit(self, psi1: Any, ridge: Any) -> FloatArray:
        """Return the same for d → ∞, by the theorem of Mei and Montanari."""
        target, regime = LinearTarget(noise=self.noise), RandomFeatures(_SIGMA)
        return np.asarray(limit(target, regime, psi1=psi1, psi2=self.psi2, ridge=ridge).risk)


PRESETS = {
    "quick": BridgePreset("a minute", 20, 200),
    "paper": BridgePreset("ten minutes", 40, 1000),
}


def work(preset: BridgePreset) -> list[Run]:
    """Return the trials of every width."""
    return preset.setting.trials


def data(preset: BridgePreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return the risk against N/d, lines and dots, and the distance to the limit against d."""
    along = np.geomspace(0.3, 15.0, 121)
    columns: dict[str, Any] = preset.setting.columns(rows, "psi1")
    columns |= {
        "there": (("psi1",), preset.limit(np.array(preset.psi1), preset.ridge)),
        "line": (("d", "along"), np.array([preset.formula(d, along, preset.ridge) for d in preset.lines])),
        "line_limit": (("along",), preset.limit(along, preset.ridge)),
    }
    coordinates = {"psi1": list(preset.psi1), "d": list(preset.lines), "along": along}
    about = {"d": preset.d, "psi2": preset.psi2, "ridge": preset.ridge, "draws": preset.draws, "citations": _CITED}
    about |= {"problem": str(preset.target(preset.d)), "regime": str(preset.setting.regime)}
    far = np.array([preset.formula(d, preset.ratios, preset.ridges) for d in preset.dimensions])
    distance = dataset(
        {"distance": (("d", "psi1", "ridge"), np.abs(far - preset.limit(preset.ratios, preset.ridges)))},
        {"d": list(preset.dimensions), "psi1": list(preset.ratios), "ridge": list(preset.ridges)},
        {"citations": _CITED, "psi2": preset.psi2, "noise": preset.noise},
    )
    return {"risk": dataset(columns, coordinates, about), "distance": distance}


def rates(distance: Dataset) -> FloatArray:
    """Return the exponent of d with which the distance falls, for each N/d and λ: by least squares over all d."""
    values = distance.distance.transpose("psi1", "ridge", "d").values[..., None]
    return exponents(distance.d.values.astype(np.float64), values)[0]


def _risks(axes: Axes, panel: Dataset) -> None:
    for k, d in enumerate(panel.d.values.tolist()):
        colour = scale_colour(1.0 - k / panel.d.size)
        axes.plot(panel.along, panel.line.sel(d=d), color=colour, label=f"d = {d}", linewidth=1.6)
    dashed: dict[str, Any] = {"color": "#222222", "linestyle": "--", "linewidth": 1.3}
    axes.plot(panel.along, panel.line_limit, label="Mei and Montanari, d → ∞", **dashed)
    look: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5, "color": "#222222", "zorder": 4}
    axes.errorbar(panel.psi1, panel.risk, panel.stderr, label=f"simulated, d = {panel.attrs['d']}", **look)
    axes.set(xscale="log", xlabel="N/d, neurons per dimension", ylabel="risk (predicting 0: 1)")
    axes.set_title(f"ReLU features, linear target, n = {panel.attrs['psi2']} d, λ = {panel.attrs['ridge']:g}")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend()


def _distances(axes: Axes, panel: Dataset) -> None:
    markers = dict(zip(panel.psi1.values.tolist(), ("o", "s", "^", "D"), strict=False))
    for k, ridge in enumerate(panel.ridge.values.tolist()):
        for psi1, marker in markers.items():
            label = f"λ = {ridge:g}" if psi1 == panel.psi1.values[0] else None
            look = {"color": scale_colour(k / max(1, panel.ridge.size - 1)), "marker": marker, "linewidth": 1.0}
            axes.plot(panel.d, panel.distance.sel(psi1=psi1, ridge=ridge), label=label, markersize=5, **look)
    d = np.array([panel.d.values[0], panel.d.values[-1]], dtype=float)
    axes.plot(d, 0.06 / d, color="#888888", linestyle=":", label="∝ 1/d")
    shapes = ", ".join(f"{marker} {psi1:g}" for psi1, marker in zip(markers, "●■▲◆", strict=False))
    axes.set(
        xscale="log", yscale="log", xlabel="d", ylabel="|risk − limit|", title=f"Distance to the limit; N/d: {shapes}"
    )
    axes.legend()


plot = frames((11.0, 4.6), (_risks, "risk"), (_distances, "distance"))
"""The risk at finite d, its dots and its limit; and the distance between the two against d."""


def verdict(data: Panels) -> list[str]:
    """Return the measured rates, the dots against formula and limit, and whether both are as they should be."""
    panel, distance = data["risk"], data["distance"]
    fitted = rates(distance)
    lines = [f"{'N/d':>6}" + "".join(f"{f'λ = {ridge:g}':>12}" for ridge in distance.ridge.values)]
    for psi1, row in zip(distance.psi1.values, fitted, strict=True):
        lines.append(f"{psi1:>6g}" + "".join(f"{rate:>12.4f}" for rate in row))
    low, high = int(distance.d.values[0]), int(distance.d.values[-1])
    lines.append(f"exponent of d in |risk − limit|, d = {low:,} … {high:,}")
    dots, limit_z = dots_of(panel, "dot"), ((panel.risk - panel.there) / panel.stderr).values
    judgement, z = judged(dots), np.array([dot.z for dot in dots])
    lines.append(f"{'N/d':>6}{'simulated':>20}{'formula':>10}{'z':>7}{'limit':>10}{'z':>7}")
    for k, psi1 in enumerate(panel.psi1.values):
        at = panel.isel(psi1=k)
        cell = f"{float(at.risk):.4f} ± {float(at.stderr):.4f}"
        own, there = f"{float(at.expected):.4f}", f"{float(at.there):.4f}"
        lines.append(f"{psi1:>6g}{cell:>20}{own:>10}{z[k]:>7.1f}{there:>10}{limit_z[k]:>7.1f}")
    near, far = (float(np.sqrt(np.mean(values**2))) for values in (z, limit_z))
    rate = float(fitted.flat[np.argmax(np.abs(fitted - _RATE))])
    last = float(distance.distance.isel(d=-1).max())
    words = f"the rate farthest from −1 is {rate:.3f}, the largest distance at d = {high:,} is {last:.1e}"
    lines.append(str(judgement.answer()))
    told = f"at d = {panel.attrs['d']} dots are {near:.1f} standard errors from the formula, {far:.1f} from the limit"
    fine = abs(rate - _RATE) <= _TOLERANCE and judgement.answer().holds and near < far
    ending = f"The limit is {'reached' if fine else 'NOT reached'} like 1/d: {words}; {told}."
    return [*lines, answer(fine, ending, ending)]


_TITLE = "The bridge: the limit of Mei and Montanari, reached like 1/d"
_FAULTS = (
    wrong_work("labels with 30 % more noise", data, work, lambda right: replace(right, noise=1.3 * right.noise)),
)
EXPERIMENT = Experiment("bridge", _TITLE, PRESETS, work, data, plot, verdict, place=28, faults=_FAULTS)

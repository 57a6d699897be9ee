"""Proposition 1 of Limitations of Lazy Training, seen: flat points of the population risk are saddles or the minimum.

L(W, c) = E(f⋆ − Σ⟨w_i,x⟩² − c)² in a dimension small enough to have all its critical points, one for each set of at
most N eigendirections of B, and to follow descents from many starts, half of them next to a saddle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, dataset, wrong_rows
from lazyscope.experiments.frame.drawing import frames
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.experiments.frame.verdict import wrong_numbers
from lazyscope.limits.flow.saddle import critical_points, gradient, strict_saddle
from lazyscope.problems import QuadraticTarget
from lazyscope.regimes import Trained
from lazyscope.runs.pictures import LOOKS, scale_colour
from lazyscope.runs.verbs import limit
from lazyscope.weights import generator

_STEP = 0.004  # of a descent, over the largest eigenvalue: a tenth of what is stable near the minimum
_NEAR = 1e-3  # of a start next to a saddle
_LOOKS = 40  # points on the way, evenly in log time
_CLOSED = 1e-7  # what Hessian and closed form may differ by
_FLAT = 1e-3  # gradient below which a point has to be a saddle, or close to the minimum
_MINIMUM = 0.01  # excess risk, of the best constant's, of what is close to it


@dataclass(frozen=True, eq=False)
class SaddleDraw(Draw):
    """One descent: gradient, smallest curvature and risk on its way. Even numbers start next to a saddle."""

    eigenvalues: tuple[float, ...]
    width: int
    steps: int
    number: int = 0
    seed: int = 0

    words = "descent {0.number}"
    costs = ("steps",)

    def compute(self) -> Row:
        """Return what `strict_saddle` says at points of the descent."""
        b, rng = np.array(self.eigenvalues), generator(self.seed, self.number, self.width)
        problem = QuadraticTarget(b)
        saddles = [(W, c) for _, W, c in critical_points(b, self.width)]
        if self.number % 2:
            W, c = rng.standard_normal((b.size, self.width)) * np.sqrt(b.max() / b.size), 0.0
        else:
            W, c = saddles[int(rng.integers(len(saddles)))]
            W = W + _NEAR * rng.standard_normal(W.shape)
        wanted = np.unique(np.geomspace(1, self.steps, _LOOKS).astype(int))
        looks = []
        for step in range(self.steps + 1):
            if step in wanted:
                at = strict_saddle(problem, W, c)
                looks.append((step, at.risk, at.gradient, at.smallest_curvature))
            slope, along_c = gradient(b, W, c)
            W, c = W - _STEP / b.max() * slope, c - _STEP / b.max() * along_c
        names = ("step", "risk", "gradient", "curvature")
        return dict(zip(names, np.array(looks, dtype=np.float64).T, strict=True))


@dataclass(frozen=True)
class SaddlePreset(Preset):
    """Eigenvalues of B, ascending, neurons, descents and their steps."""

    eigenvalues: tuple[float, ...]
    width: int
    descents: int
    steps: int = 3000


PRESETS = {
    "quick": SaddlePreset("half a minute", (0.15, 0.3, 0.5, 0.7, 1.0), 2, 40),
    "paper": SaddlePreset("five minutes", (0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0), 3, 200, 6000),
}


def work(preset: SaddlePreset) -> list[SaddleDraw]:
    """Return the descents."""
    return [SaddleDraw(preset.eigenvalues, preset.width, preset.steps, k) for k in range(preset.descents)]


def data(preset: SaddlePreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return all critical points with their curvature by both ways, and the points of all descents."""
    b = np.array(preset.eigenvalues)
    problem = QuadraticTarget(b)
    points = [(len(S), strict_saddle(problem, W, c)) for S, W, c in critical_points(b, preset.width)]
    columns: dict[str, Any] = {
        "learnt": ("point", [size for size, _ in points]),
        "risk": ("point", [at.risk for _, at in points]),
        "gradient": ("point", [at.gradient for _, at in points]),
        "curvature": ("point", [at.smallest_curvature for _, at in points]),
        "closed_form": ("point", [float(at.closed_form or 0.0) for _, at in points]),
    }
    about = {"d": b.size, "width": preset.width, "citations": "ghorbani2019limitations"}
    floor = float(limit(problem, Trained(), rho=preset.width / b.size).risk)
    walked = {name: (("descent", "look"), np.array([row[name] for row in rows])) for name in rows[0]}
    return {
        "critical": dataset(columns, attrs=about | {"floor": floor}),
        "descents": dataset(walked, attrs=about | {"floor": floor}),
    }


def _critical(axes: Axes, panel: Dataset) -> None:
    floor, N = panel.attrs["floor"], panel.attrs["width"]
    axes.axhline(0.0, color="#888888", linewidth=0.8)
    for size in range(N + 1):
        at = panel.isel(point=panel.learnt.values == size)
        colour = scale_colour(size / N)
        axes.plot(at.risk, at.curvature, linestyle="", marker="o", color=colour, label=f"{size} directions learnt")
        axes.plot(at.risk, at.closed_form, linestyle="", marker="x", markeredgecolor="#222222", markersize=5)
    axes.plot([], [], linestyle="", marker="x", markeredgecolor="#222222", markersize=5, label="closed form")
    axes.axvline(floor, color=LOOKS["NN"]["color"], linestyle="--", label="Theorem 3's minimum")
    axes.set(xlabel="risk / risk of the best constant", ylabel="smallest curvature / 8‖B‖")
    axes.set_title(f"Every critical point, d = {panel.attrs['d']}, N = {N}")
    axes.legend(fontsize=9, loc="lower left")


def _flat(axes: Axes, panel: Dataset) -> None:
    excess = (panel.risk.values - panel.attrs["floor"]).ravel()
    steep, curvature = panel.gradient.values.ravel(), panel.curvature.values.ravel()
    near = excess < _MINIMUM
    axes.axhline(0.0, color="#888888", linewidth=0.8)
    look: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4}
    axes.plot(steep[~near], curvature[~near], color=LOOKS["RF"]["color"], label="on the way", **look)
    axes.plot(steep[near], curvature[near], color=LOOKS["NN"]["color"], label="within 1 % of the minimum", **look)
    axes.set(xscale="log", xlabel="gradient / 8‖B‖$^{3/2}$", ylabel="smallest curvature / 8‖B‖")
    axes.set_title("Where the gradient is small")
    axes.legend(fontsize=9)


def _ways(axes: Axes, panel: Dataset) -> None:
    for k in range(panel.sizes["descent"]):
        colour = LOOKS["NT"]["color"] if k % 2 else LOOKS["RF, optimal weights"]["color"]
        axes.plot(panel.step[k], panel.risk[k], color=colour, linewidth=0.9)
    axes.plot([], [], color=LOOKS["RF, optimal weights"]["color"], label="from next to a saddle")
    axes.plot([], [], color=LOOKS["NT"]["color"], label="from random weights")
    axes.axhline(panel.attrs["floor"], color=LOOKS["NN"]["color"], linestyle="--", label="Theorem 3's minimum")
    axes.set(xscale="log", xlabel="steps of gradient descent", ylabel="risk / risk of the best constant")
    axes.set_title("Descents leave the saddles")
    axes.legend(fontsize=9)


plot = frames((13.5, 4.6), (_critical, "critical"), (_flat, "descents"), (_ways, "descents"))
"""The critical points, gradient against curvature on descents, and the risk on their way."""


def verdict(data: Panels) -> list[str]:
    """Return how many points are what, and whether every flat point is a strict saddle or close to the minimum."""
    critical, walked = data["critical"], data["descents"]
    floor = critical.attrs["floor"]
    excess = critical.risk.values - floor
    saddles = critical.curvature.values[excess > 1e-9]
    minima = critical.curvature.values[excess <= 1e-9]
    gap = float(np.max(np.abs(np.minimum(critical.curvature.values, 0.0) - critical.closed_form.values)))
    steep, curvature = walked.gradient.values, walked.curvature.values
    above = walked.risk.values - floor
    flat = (steep < _FLAT) & (above > _MINIMUM)
    worst = float(np.max(curvature[flat], initial=-np.inf))
    ended = np.mean(above[:, -1] < _MINIMUM)
    lines = [
        f"critical points: {saddles.size} above the minimum, the flattest with curvature {saddles.max():.4f}; "
        f"{minima.size} at it, {minima.min():+.1e} or more",
        f"Hessian against closed form: {gap:.1e} apart at most",
        f"descents: {int(flat.sum())} points with gradient below {_FLAT:g} and more than 1 % above the minimum, "
        f"curvature {worst:.4f} or less; {ended:.0%} of the descents end within 1 %",
    ]
    fine = saddles.max() < -1e-6 and minima.min() > -1e-6 and gap < _CLOSED and worst < 0.0 and ended == 1.0
    ends = "strict saddles or the minimum."
    return [*lines, answer(fine, f"Flat points are {ends}", f"Flat points are NOT all {ends}")]


_TITLE = "Proposition 1: every flat point of the population risk is a strict saddle or the minimum (Limitations, §2.3)"
_FAULTS = (
    wrong_rows("curvatures of another sign", data, "curvature", lambda k, curvature: np.abs(curvature)),
    wrong_rows("descents that stop above the minimum", data, "risk", lambda k, risk: risk + 0.5),
    wrong_numbers("a closed form twice as large", data, "critical", "closed_form", lambda values: 2.0 * values),
)
EXPERIMENT = Experiment("saddle", _TITLE, PRESETS, work, data, plot, verdict, place=19, faults=_FAULTS)

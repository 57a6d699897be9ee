"""The landscape, drawn and judged: error terms and slacks against the width, descents, and where they end (§4).

Lemma 1, Theorem 2 and Corollary 3 of Bai & Lee (2019) at five kinds of points; two descents off the saddle W = 0; and
the ends of descents with several regularisers, whose norms Theorem 4 bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.evidence.statement import stated
from lazyscope.experiments.beyond.landscape.draws import (
    INEQUALITIES,
    POINTS,
    DescentDraw,
    LandscapeDraw,
    assemble_landscape,
)
from lazyscope.experiments.frame import Experiment, Preset, Row, answer, canvas, dataset, wrong_rows
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.limits import declared
from lazyscope.problems import SparseParity
from lazyscope.runs.pictures import BLUE, GREEN, ORANGE, PURPLE, RED
from lazyscope.training.taylor.landscape import COROLLARY_3

__all__ = ["POINTS", "DescentDraw", "LandscapeDraw", "assemble_landscape"]

_POINTS = {
    "the saddle": ("W = 0", PURPLE, "P"),
    "half way": ("W⋆/2", BLUE, "o"),
    "random": ("random", ORANGE, "s"),
    "both": ("0.7(W⋆ + random)", GREEN, "^"),
    "the opposite": ("W⋆ of −f⋆", RED, "D"),
}
_STATEMENTS = {"Lemma 1": (BLUE, "o"), "Theorem 2": (ORANGE, "s"), "Corollary 3": (GREEN, "^")}
_MODELS = {"quadratic model": (BLUE, "o"), "randomised network": (ORANGE, "s")}
_REGULARISERS = (1e-4, 1e-3, 1e-2, 1e-1)  # λ₀ = λ‖W⋆‖⁸ of the ends
_TOLERANCE = 0.06
_SETTLED = 0.3  # ‖∇L_λ‖‖W⋆‖_F and −λ_min‖W⋆‖²_F up to which an end counts as a stationary point


@dataclass(frozen=True)
class LandscapePreset(Preset):
    """Widths and draws of the inequalities; width of the descents, and how often they are looked at."""

    widths: tuple[int, ...]
    descent_width: int = 200
    draws: int = 2
    samples: int = 100
    signs: int = 6
    looks: int = 9
    d: int = 8
    steps: int = 200

    @property
    def parts(self) -> tuple[list[LandscapeDraw], list[DescentDraw], list[DescentDraw]]:
        """The inequalities, two descents that are followed, and those of which the end counts."""
        problem = SparseParity(self.d)
        inequalities = [
            LandscapeDraw(problem, m, self.samples, self.signs, number=number)
            for m in self.widths
            for number in range(self.draws)
        ]

        def descent(randomized: bool, **other: Any) -> DescentDraw:
            return DescentDraw(problem, self.descent_width, randomized, steps=self.steps, **other)

        followed = [descent(randomized, looks=self.looks) for randomized in (False, True)]
        ends = [descent(randomized, looks=2, lam=lam) for randomized in (False, True) for lam in _REGULARISERS]
        return inequalities, followed, ends


PRESETS = {
    "quick": LandscapePreset("half a minute", (100, 320, 1000, 3200)),
    "paper": LandscapePreset("five minutes", (100, 320, 1000, 3200, 10_000, 32_000), 500, draws=4, signs=16, looks=17),
}


def work(preset: LandscapePreset) -> list[LandscapeDraw | DescentDraw]:
    """Return the inequalities at each width, two descents, clean and under random signs, and the ends."""
    return [draw for part in preset.parts for draw in part]


def data(preset: LandscapePreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return sides and errors over (`statement`, `point`, `width`), what the descents saw, and where others ended."""
    plan, followed, last = preset.parts
    count, most = len(plan), len(plan) + len(followed)
    of_plan, descents, ended = rows[:count], rows[count:most], rows[most:]
    names = ("risk", "gradient", "smallest", "norm", "certified", "error")
    models = list(_MODELS)
    variables: dict[str, Any] = {name: (("model", "look"), np.array([row[name] for row in descents])) for name in names}
    variables["OPT"] = ("model", np.array([float(row["OPT"]) for row in descents]))
    coordinates = {"model": models, "step": ("look", descents[0]["step"])}
    attributes = {"width": preset.descent_width, "problem": str(SparseParity(preset.d))}
    shape, dims = (len(models), len(_REGULARISERS)), ("model", "lam0")
    at_end: dict[str, Any] = {name: (dims, np.array([row[name][-1] for row in ended]).reshape(shape)) for name in names}
    OPT = np.array([float(row["OPT"]) for row in ended]).reshape(shape)
    bounds = [
        declared.stationary_norm(COROLLARY_3, float(row["OPT"]) - row["risk"][-1], row["error"][-1], draw.lam)
        for row, draw in zip(ended, last, strict=True)
    ]
    at_end |= {"OPT": (dims, OPT), "norm_bound": (dims, np.array(bounds).reshape(shape))}
    return {
        "inequalities": assemble_landscape(plan, of_plan),
        "descents": dataset(variables, coordinates, attributes),
        "ends": dataset(at_end, {"model": models, "lam0": list(_REGULARISERS)}, attributes),
    }


def plot(data: Panels) -> Figure:
    """Draw error terms and slacks against the width; risk, curvature and final norms of the descents."""
    with canvas(13.4, 8.2) as figure:
        frames = figure.subplots(2, 3)
        for axes, statement in zip(frames[0, :2], ("Lemma 1", "Theorem 2"), strict=True):
            _draw_errors(axes, data["inequalities"], statement)
        _draw_slacks(frames[0, 2], data["inequalities"])
        _draw_descents(frames[1, 0], frames[1, 1], data["descents"])
        _draw_ends(frames[1, 2], data["ends"])
    return figure


def _draw_errors(axes: Axes, panel: Dataset, statement: str) -> None:
    m, power = panel.width.values, declared.LANDSCAPE[statement]
    largest = 0.0
    for point, (name, colour, marker) in _POINTS.items():
        at = panel.sel(statement=statement, point=point)
        if np.all(at.error > 0):
            label = f"{name}: m$^{{{float(at.exponent):.2f}}}$".replace("-", "−")
            axes.plot(m, at.error, color=colour, marker=marker, linewidth=1.0, label=label)
            largest = max(largest, float(at.error[0]))
    bound = f"at most m$^{{−{-power:g}}}$"
    axes.plot(m, 1.5 * largest * (m / m[0]) ** power, color="#444444", linestyle="--", label=bound)
    axes.set(xscale="log", yscale="log", xlabel="m, neurons", ylabel="error term", title=f"{statement}: its error")
    low, high = axes.get_ylim()
    axes.set_ylim(low * (low / high) ** 0.55, high)  # room for the legend
    axes.legend(loc="lower left", fontsize=9)


def _draw_slacks(axes: Axes, panel: Dataset) -> None:
    m = panel.width.values
    for statement, (colour, marker) in _STATEMENTS.items():
        least = panel.slack.sel(statement=statement).min("point")
        axes.plot(m, least, color=colour, marker=marker, linewidth=1.0, label=statement)
    axes.axhline(0.0, color="#444444", linestyle="--", label="below: broken")
    axes.set(xscale="log", xlabel="m, neurons", ylabel="right side − left side", title="The least slack of all points")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(-0.1, 1000.0)
    axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.79), ncols=2)


def _draw_descents(left: Axes, right: Axes, panel: Dataset) -> None:
    for name, (colour, marker) in _MODELS.items():
        at = panel.sel(model=name)
        left.plot(at.step, at.risk, color=colour, marker=marker, label=name)
        right.plot(at.step, at.smallest, color=colour, marker=marker, label=name)
    left.axhline(float(panel.OPT[0]), color="#444444", linestyle="--", label="OPT, the risk of W⋆")
    right.axhline(0.0, color="#444444", linestyle="--")
    left.set(xlabel="step", ylabel="risk L$_λ$", title=f"A descent from near the saddle, m = {panel.attrs['width']}")
    right.set(xlabel="step", ylabel="λ$_{min}$(∇²L$_λ$) ‖W⋆‖$^2_F$", title="Its smallest curvature")
    left.legend()
    right.legend()


def _draw_ends(axes: Axes, panel: Dataset) -> None:
    for name, (colour, marker) in _MODELS.items():
        at = panel.sel(model=name)
        open_one: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": colour, "markersize": 10}
        face = {} if marker == "o" else open_one
        axes.plot(panel.lam0, at.norm, color=colour, marker=marker, linestyle="", label=name, **face)
    axes.plot(panel.lam0, panel.norm_bound.min("model"), color="#444444", linestyle="--", label="Theorem 4: at most")
    axes.set(xscale="log", xlabel="λ‖W⋆‖$^8$", ylabel="‖Ŵ‖ / ‖W⋆‖, 2,4-norms", title="Norms at the end of descents")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="lower left")


def verdict(data: Panels) -> list[str]:
    """Return exponents and the least slack of each statement; say whether all hold, and descents end as stated."""
    panel: Any = data["inequalities"]
    lines = [
        f"{'statement':<13}{'exponents of the error':>34}{'declared':>10}{'least slack':>13}{'sampled, rms z':>16}"
    ]
    wrong = []
    for statement in INEQUALITIES.values():
        at = panel.sel(statement=statement)
        slopes = at.exponent.values[np.isfinite(at.exponent.values)]
        spread = at.exponent_stderr.values[np.isfinite(at.exponent.values)]
        power = declared.LANDSCAPE[statement]
        shown = " ".join(f"{slope:.2f}" for slope in slopes)
        z = float(np.sqrt(np.mean(at.z.values**2)))
        lines.append(f"{statement:<13}{shown:>34}{f'≤ {power:.2f}':>10}{float(at.slack.min()):>13.3g}{z:>12.2f}")
        if np.any(slopes > power + _TOLERANCE + 2 * np.nan_to_num(spread)) or float(at.slack.min()) < 0:
            wrong.append(statement)
    for name in data["descents"].model.values.tolist():
        at = data["descents"].sel(model=name)
        risk, low, OPT = float(at.risk[-1]), float(at.smallest[-1]), float(at.OPT)
        start = float(at.smallest[0])
        lines.append(f"{name}: risk {risk:.4f}, OPT {OPT:.4f}; smallest eigenvalue {start:.3g} → {low:.3g}")
        if risk > OPT or np.any(at.risk - OPT > at.certified):
            wrong.append(f"the descent of the {name}")
    ends = data["ends"]
    settled = (ends.gradient <= _SETTLED) & (ends.smallest >= -_SETTLED)
    largest, bound = float(ends.norm.max()), float(ends.norm_bound.min())
    count = f"{int(settled.sum())} of {settled.size} settled"
    lines.append(f"ends of descents ({count}): ‖Ŵ‖ at most {largest:.3f} ‖W⋆‖, Theorem 4 says {bound:.3f} or more")
    if np.any((ends.norm > ends.norm_bound).where(settled, False)) or not bool(settled.any()):
        wrong.append("the norms at the ends")
    told = "Every inequality holds, its error falls with m, and descents end below OPT, within Theorem 4's norm."
    return [*lines, answer(not wrong, told, f"Not as declared: {', '.join(wrong)}.")]


_TITLE = (
    "Lemma 1, Theorem 2 and Corollary 3 against the width, descents off the saddle, Theorem 4's norm (the same, §4)"
)
_FAULTS = (
    wrong_rows("a descent that goes up", data, "risk", lambda k, risk: risk + 5.0, seen="the descent of"),
    wrong_rows("ends four times as long as W⋆", data, "norm", lambda k, norm: 4.0 + 0.0 * norm, seen="the norms"),
    wrong_rows("slacks of another sign", data, "slack", lambda k, slack: -slack, seen="Corollary 3"),
)
EXPERIMENT = Experiment("landscape", _TITLE, PRESETS, work, data, plot, verdict, place=33, faults=_FAULTS)

_THEOREM_4 = (
    "a stationary point of second order has a risk near OPT and a norm of order ‖W⋆‖: bounds with what is measured"
)
STATEMENTS = stated(
    "landscape",
    "bai2020beyond",
    {
        "Lemma 1": "where the risk of f^Q exceeds OPT, the gradient or the curvature along W⋆Σ′ leads down",
        "Theorem 2": "the same for the network under random signs, with an error that falls with m",
        "Corollary 3": "the same with the regulariser λ‖W‖⁸",
        "Theorem 4": _THEOREM_4,
    },
)

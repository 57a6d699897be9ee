"""What laziness costs: samples needed against d for targets of degree 2, 3 and 4 of a single direction.

Lazy methods pay for the degree, d^k, SGD for the information exponent, d^max(k−1,1), and one giant step for the linear
part alone, d. Lines of lazy methods are the deterministic equivalents, with nothing fitted; theory has an exponent and
no constant for SGD and the giant step, whose lines go through the middle of their dots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.experiments.beyond.sample_complexity.feature_learners import LAZY, needed_in_theory
from lazyscope.experiments.beyond.sample_complexity.numbers import SampleComplexityDraw, assemble
from lazyscope.experiments.frame import Experiment, Preset, Row, answer, canvas, wrong_rows
from lazyscope.experiments.frame.drawing import entry, name_ends
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.problems import MultiIndex
from lazyscope.runs.pictures import LOOKS

LEVEL, LINEAR = 0.5, 0.45
"""Risks to be reached: on he_k, and on he₁ + he_k, where the best linear function has ½."""
_ALLOWED = {"kernel": 0.3, "NT": 0.3, "SGD": 0.25, "giant step": 0.5}
"""How far a measured exponent may be from the declared one, beside its 95 % interval."""
_APART = 1.0
"""The width of a 95 % interval from which on it may hold two neighbouring powers of d, and decides nothing."""
_LOOKS = {"kernel": ("RF", "o"), "NT": ("NT", "^"), "SGD": ("NN", "D"), "giant step": ("RF, optimal weights", "s")}
_WORDS = {
    "kernel": "RF kernel, N = ∞",
    "NT": "NT kernel, N = ∞",
    "SGD": "trained: one-pass SGD",
    "giant step": "one giant step, on he$_1$ + he$_k$",
}

_REACH = (7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 450)  # dimensions of a line
_HEIGHT = (15.0, 2e7)
Dimensions = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class CostPreset(Preset):
    """Dimensions of each learner by degree, data sets of each, the most samples, neurons of the giant step."""

    dimensions: Mapping[int, Dimensions]
    draws: int
    most: int = 12_000
    most_sgd: int = 4_000_000
    width: int = 400


PRESETS = {
    "quick": CostPreset(
        "two minutes",
        {
            2: {"kernel": (16, 32, 64), "NT": (16, 32, 64), "SGD": (32, 64, 128), "giant step": (32, 64, 128)},
            3: {"kernel": (10, 14, 20), "NT": (10, 14, 20), "SGD": (48, 96, 192), "giant step": (32, 64, 128)},
            4: {"kernel": (10, 13), "NT": (10, 13), "SGD": (12, 16, 24), "giant step": (32, 64, 128)},
        },
        draws=2,
    ),
    "paper": CostPreset(
        "five minutes",
        {
            2: {
                "kernel": (16, 32, 64),
                "NT": (16, 32, 64),
                "SGD": (32, 64, 128, 256),
                "giant step": (32, 64, 128, 256),
            },
            3: {
                "kernel": (10, 14, 20, 28),
                "NT": (10, 14, 20),
                "SGD": (48, 96, 192, 384),
                "giant step": (32, 64, 128, 256),
            },
            4: {"kernel": (10, 13, 16), "NT": (10, 13, 16), "SGD": (16, 24, 36), "giant step": (32, 64, 128)},
        },
        draws=3,
        width=600,
    ),
}


def _draws(preset: CostPreset, degree: int, learner: str) -> list[SampleComplexityDraw]:
    alone = learner != "giant step"
    link, level = (f"he{degree}", LEVEL) if alone else (f"he1+he{degree}", LINEAR)
    most = preset.most_sgd if learner == "SGD" else preset.most
    return [
        SampleComplexityDraw(MultiIndex(d, link), learner, level, preset.width, most, number)
        for d in preset.dimensions[degree][learner]
        for number in range(preset.draws)
    ]


def work(preset: CostPreset) -> list[SampleComplexityDraw]:
    """Return one draw for each degree, learner, d and data set."""
    return [
        draw for degree, learners in preset.dimensions.items() for learner in learners
        for draw in _draws(preset, degree, learner)
    ]  # fmt: skip


def data(preset: CostPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return, for each degree and learner, n(d) with its exponent, measured and in theory."""
    panels, start = {}, 0
    for degree, learners in preset.dimensions.items():
        for learner in learners:
            draws = _draws(preset, degree, learner)
            panel = assemble(draws, rows[start : start + len(draws)]).sel(learner=learner)
            if learner in LAZY:
                first, targets = draws[0], [MultiIndex(d, f"he{degree}") for d in _REACH]
                line = [needed_in_theory(target, learner, first.level, first.sigma) for target in targets]
                panel = panel.assign_coords(line_d=np.array(_REACH, dtype=float)).assign(line=("line_d", line))
            panels[f"degree {degree}, {learner}"] = panel.assign_attrs(degree=degree, learner=learner)
            start += len(draws)
    return panels


def plot(data: Panels) -> Figure:
    """Draw n(d), lines of theory and dots, with one frame for each degree, all on the same scales."""
    degrees = sorted({int(panel.attrs["degree"]) for panel in data.values()})
    with canvas(13.2, 5.0) as figure:
        frames = figure.subplots(1, len(degrees), sharex=True, sharey=True, squeeze=False)[0]
        for axes, degree in zip(frames, degrees, strict=True):
            _draw(axes, degree, [panel for panel in data.values() if panel.attrs["degree"] == degree])
        frames[0].set_ylabel("n, samples needed")
        figure.legend(**_legend(list(dict.fromkeys(str(panel.attrs["learner"]) for panel in data.values()))))
    return figure


def _draw(axes: Axes, degree: int, panels: Sequence[Dataset]) -> None:
    ends = []
    for panel in panels:
        learner, d = str(panel.attrs["learner"]), panel.d.values.astype(float)
        look, marker = _LOOKS[learner]
        colour = LOOKS[look]["color"]
        kept = np.isfinite(panel.needed.values)
        if not kept.any():
            continue  # the verdict says who did not reach the level
        dots, exponent = panel.needed.values[kept], float(panel.theory_exponent)
        error = dots * np.nan_to_num(panel.needed_stderr.values[kept])
        wide: dict[str, Any] = (
            {"markersize": 9.0, "markerfacecolor": "none"} if learner == "kernel" else {}
        )  # NT's lie upon them
        axes.errorbar(d[kept], dots, error, color=colour, marker=marker, linestyle="", zorder=3, **wide)
        if learner in LAZY:
            x, line = panel.line_d.values, panel.line.values
        else:
            x = np.array(_REACH, dtype=float)
            line = np.exp(float(np.mean(np.log(dots) - exponent * np.log(d[kept])))) * x**exponent
        axes.plot(x, line, color=colour, zorder=2, **_line(learner))
        name = "d" if exponent == 1 else f"d$^{{{exponent:g}}}$"
        if learner != "NT" and line[-1] <= _HEIGHT[1]:  # that of NT lies on that of the kernel
            ends.append((float(line[-1]), name, colour))
        elif learner != "NT":  # it leaves the frame through its upper side
            out = float(np.exp(np.interp(np.log(_HEIGHT[1]), np.log(line), np.log(x))))
            axes.annotate(name, (out, _HEIGHT[1]), (0, 3), textcoords="offset points", ha="center", color=colour,
                          fontsize=9.5, annotation_clip=False)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="d, inputs", ylim=_HEIGHT, xlim=(_REACH[0], _REACH[-1]))
    name_ends(axes, ends)
    axes.set_title(f"degree {degree}: y = he$_{degree}$(⟨u, x⟩)", pad=14)


def _line(learner: str) -> dict[str, Any]:
    """Return the look of a line: dashed where theory has an exponent alone, broad where another lies upon it."""
    return {"linestyle": "-" if learner in LAZY else "--", "linewidth": 4.0 if learner == "kernel" else None}


def _legend(learners: Sequence[str]) -> dict[str, object]:
    handles = [
        entry(_WORDS[learner], color=LOOKS[_LOOKS[learner][0]]["color"], marker=_LOOKS[learner][1], **_line(learner))
        for learner in learners
    ]
    return {"handles": handles, "loc": "outside lower center", "ncols": len(handles),
            "title": "dots: measured; lines: theory (dashed: its exponent alone)"}  # fmt: skip


def verdict(data: Panels) -> list[str]:
    """Compare every exponent with its theory; say what laziness costs at the largest dimension that SGD went to."""
    lines = [f"{'':<24}{'exponent, 95%':>22}{'theory':>9}   n(d)"]
    wrong, open_ = [], []
    for name, panel in data.items():
        measured, low, high = (float(panel[key]) for key in ("exponent", "exponent_low", "exponent_high"))
        theory, learner = float(panel.theory_exponent), str(panel.attrs["learner"])
        told = ", ".join(
            f"{n:.0f} (d = {d})" for d, n in zip(panel.d.values, panel.needed.values, strict=True) if np.isfinite(n)
        )
        lines.append(f"{name:<24}{f'{measured:.2f} [{low:.2f}, {high:.2f}]':>22}{theory:>9g}   {told}")
        missed = int(panel.missed.sum())
        if missed:
            lines.append(f"{'':<24}{missed} of {panel.draw.size} data sets did not reach the level")
        if not abs(measured - theory) <= _ALLOWED[learner] + max(high - measured, 0.0):
            wrong.append(f"{name}: d^{measured:.2f} for d^{theory:g}")
        if high - low > _APART:
            open_.append(name)
    if open_:
        lines.append(f"Too few dimensions to tell one power of d from the next: {'; '.join(open_)}.")
    gaps = list[str]()
    for degree in sorted({int(panel.attrs["degree"]) for panel in data.values()}):
        lazy, sgd = data.get(f"degree {degree}, kernel"), data.get(f"degree {degree}, SGD")
        if lazy is not None and sgd is not None:
            gap = float(lazy.exponent - sgd.exponent)
            # two independent fits, each with its 95 % interval
            error = float(np.hypot(*(0.5 * (panel.exponent_high - panel.exponent_low) for panel in (lazy, sgd))))
            cost = f"d^({gap:.1f} ± {error:.1f})"
            if error > 1.0:  # d and 1 cannot be told apart
                lines.append(f"Degree {degree}: what laziness costs, {cost}, is not decided.")
                continue
            gaps.append(f"{cost} at degree {degree}")
            if not gap + error >= 0.5:
                wrong.append(f"degree {degree}: laziness costs {cost} alone")
    if not gaps:
        wrong.append("no degree decides what laziness costs")
    told = f"Laziness costs a factor of {', '.join(gaps)} in samples (95 %); theory says d."
    return [*lines, answer(not wrong, told, f"Not as declared: {'; '.join(wrong)}.")]


_TITLE = "The cost of laziness: samples needed against d, degrees 2 to 4, kernels, SGD and one giant step"
_FAULTS = (wrong_rows("errors that never fall", data, "error", lambda k, error: 0.0 * error + 1.0, seen="d^nan"),)
EXPERIMENT = Experiment("cost-of-laziness", _TITLE, PRESETS, work, data, plot, verdict, place=54, faults=_FAULTS)

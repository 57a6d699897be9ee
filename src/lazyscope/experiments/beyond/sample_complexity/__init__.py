"""Samples needed against d: kernels, quadratic model and networks on 2-XOR and a monomial (Bai & Lee 2019, §5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.evidence.statement import Statement
from lazyscope.evidence.work import Row
from lazyscope.experiments.beyond.sample_complexity.learners import LEARNERS
from lazyscope.experiments.beyond.sample_complexity.numbers import (
    SampleComplexityDraw,
    assemble,
    curves,
    gain,
    sample_complexity,
)
from lazyscope.experiments.frame.drawing import canvas
from lazyscope.experiments.frame.experiment import Experiment, Preset
from lazyscope.experiments.frame.verdict import Fault, answer
from lazyscope.limits import declared
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.runs.pictures import LOOKS

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _GREEN, _RED = (LOOKS[name]["color"] for name in ("RF", "RF, optimal weights", "NT", "NN"))
_LOOKS = {
    "NTK": (_GREEN, "^"),
    "NTK, max margin": ("#56B4E9", "v"),
    "quadratic kernel": ("#CC79A7", "P"),
    "quadratic model": (_BLUE, "o"),
    "randomised network": (_ORANGE, "s"),
    "trained network": (_RED, "D"),
}
_TITLES = {"xor": "2-XOR, error {level:.0%}", "monomial": "(βᵀx)², relative squared error {level:g}"}
_WANTED = ("quadratic model", "randomised network")
_GAP = 0.5  # what the exponents of these must be smaller by, on 2-XOR
_CORE = ("NTK", "quadratic model", "randomised network", "trained network")


@dataclass(frozen=True)
class SampleComplexityPreset(Preset):
    """Dimensions and data sets of both problems, the learners, and where the costly kernels end."""

    xor: tuple[int, ...]
    monomial: tuple[int, ...]
    draws: int = 3
    monomial_draws: int = 2
    learners: tuple[str, ...] = _CORE
    width: int = 256
    randomized_width: int = 512  # on the monomial, where what signs leave of f^L counts as error
    most: int = 12_000
    costly: int = 64  # the largest d of kernels beside the NTK


PRESETS = {
    "quick": SampleComplexityPreset("a minute and a half", (16, 32, 64, 96), (16, 32, 64)),
    "paper": SampleComplexityPreset(
        "seven minutes",
        (16, 24, 32, 48, 64, 96),
        (16, 24, 32, 48, 64),
        draws=4,
        monomial_draws=4,
        learners=tuple(LEARNERS),
        randomized_width=1024,
    ),
}


def _xor(preset: SampleComplexityPreset) -> list[SampleComplexityDraw]:
    return [
        SampleComplexityDraw(SparseParity(d), learner, 0.05, preset.width, preset.most, number)
        for learner in preset.learners
        for d in preset.xor
        if learner in _CORE or d <= preset.costly
        for number in range(preset.draws)
    ]


def _monomial(preset: SampleComplexityPreset) -> list[SampleComplexityDraw]:
    """α = 1/√3 gives (βᵀx)² the mean square 1 of a label."""
    return [
        SampleComplexityDraw(
            RidgeMonomial(d, 2, alpha=3**-0.5),
            learner,
            0.2,
            preset.randomized_width if learner == "randomised network" else preset.width,
            preset.most,
            number,
        )
        for learner in _CORE
        if learner in preset.learners
        for d in preset.monomial
        for number in range(preset.monomial_draws)
    ]


def work(preset: SampleComplexityPreset) -> list[SampleComplexityDraw]:
    """Return one draw for each problem, learner, d and data set."""
    return _xor(preset) + _monomial(preset)


def data(preset: SampleComplexityPreset, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return n(d) with exponents for both problems, and the error against n in the largest dimension of 2-XOR."""
    xor, monomial = _xor(preset), _monomial(preset)
    return {
        "xor": assemble(xor, rows[: len(xor)]),
        "monomial": assemble(monomial, rows[len(xor) :]),
        "curves": curves(xor, rows[: len(xor)], max(preset.xor)),
    }


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw n(d) for both problems, fits as lines and slopes 1 and 2 beside them; error against n on the right."""
    with canvas(14.4, 4.9) as figure:
        for axes, panel in zip(figure.subplots(1, 3), ("xor", "monomial", "curves"), strict=True):
            if panel == "curves":
                _curves(axes, data[panel], float(data["xor"].attrs["level"]))
            else:
                _needed(axes, data[panel], _TITLES[panel].format(level=data[panel].attrs["level"]))
    return figure


def _needed(axes: Axes, panel: xr.Dataset, title: str) -> None:
    d = panel.d.values.astype(float)
    for name in panel.learner.values.tolist():
        at = panel.sel(learner=name)
        colour, marker = _LOOKS[name]
        half = float(at.exponent_high - at.exponent_low) / 2
        label = f"{name}: d$^{{{float(at.exponent):.2f} \\pm {half:.2f}}}$"
        kept = np.isfinite(at.needed.values)
        if not np.any(kept):
            continue  # the verdict says who did not reach the level
        error = at.needed.values * np.nan_to_num(at.needed_stderr.values)
        axes.errorbar(d[kept], at.needed[kept], error[kept], color=colour, marker=marker, linestyle="", label=label)
        middle = np.exp(np.mean(np.log(at.needed.values[kept])))
        center = np.exp(np.mean(np.log(d[kept])))
        axes.plot(d[kept], middle * (d[kept] / center) ** float(at.exponent), color=colour, linewidth=1.1)
    ends = d[[0, -1]]
    # references through the outer corners, clear of the dots
    top, bottom = float(np.nanmax(panel.needed[:, 0])) * 1.8, float(np.nanmin(panel.needed[:, 0])) / 1.9
    for start, learner, words in ((top, "NTK", "d²"), (bottom, "quadratic model", "d")):
        power = declared.SAMPLES[learner]
        axes.plot(ends, start * (ends / ends[0]) ** power, color="#888888", linestyle=(0, (4, 3)), linewidth=1.0)
        axes.annotate(words, (ends[-1], start * (ends[-1] / ends[0]) ** power), color="#666666", xytext=(5, -4),
                      textcoords="offset points")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="d, inputs", ylabel="n, samples needed", title=title)
    axes.set_xticks(d)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1, title="fitted exponent, 95%")


def _curves(axes: Axes, panel: xr.Dataset, level: float) -> None:
    for name in panel.learner.values.tolist():
        colour, marker = _LOOKS[name]
        at = panel.sel(learner=name)
        axes.plot(at.samples, np.maximum(at.error, 1e-3), color=colour, marker=marker, label=name)
    axes.axhline(level, color="#888888", linestyle=(0, (4, 3)), linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="n, samples", ylabel="share misclassified")
    axes.set_title(f"2-XOR at d = {panel.attrs['d']}")
    axes.xaxis.set_minor_formatter("")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1, title="mean over data sets")


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return n(d), exponents and gains over the tangent kernel; say whether 2-XOR separates them by a half."""
    lines: list[str] = []
    for panel in ("xor", "monomial"):
        result = data[panel]
        lines += [_TITLES[panel].format(level=result.attrs["level"]), _head(result)]
        lines += [_line(result, name) for name in result.learner.values.tolist()]
    gains = {name: gain(data["xor"], name) for name in _WANTED}
    short = [name for name, (_, low, _) in gains.items() if not low >= _GAP]
    missed = int(sum(int(np.sum(data[panel].missed)) for panel in ("xor", "monomial")))
    if missed:
        lines.append(f"{missed} data sets did not reach the level.")
    told = ", ".join(f"{gained:.2f} [{low:.2f}, {high:.2f}]" for gained, low, high in gains.values())
    separated = f"2-XOR: exponents smaller than the NTK's by {told}: at least {_GAP:g}."
    return [*lines, answer(not short, separated, f"Not separated by {_GAP:g} on 2-XOR: {', '.join(short)}.")]


def _head(panel: xr.Dataset) -> str:
    return f"{'n(d)':<20}" + "".join(f"{f'd = {d}':>9}" for d in panel.d.values) + f"{'exponent, 95%':>22}{'gain':>7}"


def _line(panel: xr.Dataset, name: str) -> str:
    at: Any = panel.sel(learner=name)
    numbers = "".join(f"{value:>9.0f}" if np.isfinite(value) else f"{'–':>9}" for value in at.needed.values)
    interval = f"{float(at.exponent):.2f} [{float(at.exponent_low):.2f}, {float(at.exponent_high):.2f}]"
    return f"{name:<20}{numbers}{interval:>22}{gain(panel, name)[0]:>7.2f}"


def _needing(preset: SampleComplexityPreset, power: Callable[[str], float]) -> list[Row]:
    """Return the rows of learners that reach the level at n = 4dᵖ exactly."""
    rows = []
    for draw in work(preset):
        n = 4.0 * draw.problem.d ** power(draw.learner)
        rows.append({"samples": np.array([0.5 * n, n]), "error": np.array([2.0 * draw.level, draw.level])})
    return rows


_TITLE = "Samples needed against d: kernels, the quadratic model and networks (the same, §5.2)"
_FAULTS = (
    Fault(
        "a quadratic model that needs as many samples as the kernel",
        lambda preset, rows: data(preset, _needing(preset, lambda learner: 2.0)),
        right=lambda preset, rows: data(preset, _needing(preset, lambda learner: 2.0 if learner == "NTK" else 1.0)),
    ),
)
EXPERIMENT = Experiment(
    "sample-complexity", _TITLE, PRESETS, work, data, plot, verdict, place=35, report=sample_complexity, faults=_FAULTS
)

STATEMENTS = (
    Statement(
        "§5.2",
        "2-XOR and one polynomial: the quadratic model needs ~d samples where the tangent kernel needs ~d²",
        ("bai2020beyond",),
        "sample_complexity",
        figure="sample-complexity",
    ),
)

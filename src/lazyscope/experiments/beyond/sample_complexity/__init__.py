"""Samples needed against d: kernels, quadratic model and networks on 2-XOR and monomials (Bai & Lee 2019, §5.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.evidence.statement import stated
from lazyscope.experiments.beyond.sample_complexity.learners import LEARNERS
from lazyscope.experiments.beyond.sample_complexity.numbers import (
    SampleComplexityDraw,
    assemble,
    curves,
    gain,
    sample_complexity,
)
from lazyscope.experiments.frame import Experiment, Preset, Row, answer, canvas
from lazyscope.experiments.frame.drawing import DASHES, entry
from lazyscope.experiments.frame.draws import split
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.experiments.frame.verdict import Fault
from lazyscope.limits import declared
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.runs.pictures import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, scale_colour

_LOOKS = {
    "NTK": (GREEN, "^"),
    "NTK, max margin": (SKY, "v"),
    "quadratic kernel": (PURPLE, "P"),
    "quadratic model": (BLUE, "o"),
    "randomised network": (ORANGE, "s"),
    "trained network": (RED, "D"),
}
_TITLES = {
    "xor": "2-XOR, error {level:.0%}",
    "noisy": "2-XOR, a tenth of the labels flipped, error {level:.0%}",
    "monomial": "(βᵀx)², relative squared error {level:g}",
    "cubic": "(βᵀx)³, relative squared error {level:g}",
}
_DEGREES = {"xor": 2, "noisy": 2, "monomial": 2, "cubic": 3}
_REFERENCE: dict[str, Any] = {"color": "#888888", "linestyle": DASHES}
_FLIP = 0.1
_WANTED = ("quadratic model", "randomised network")
_GAP = 0.5  # by how much their exponents on 2-XOR must be below that of the NTK
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
    noisy: tuple[int, ...] = (12, 24, 48)
    cubic: tuple[int, ...] = (6, 9, 13, 18)


PRESETS = {
    "quick": SampleComplexityPreset("two minutes", (16, 32, 64, 96), (16, 32, 64)),
    "paper": SampleComplexityPreset(
        "ten minutes",
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


def _noisy(preset: SampleComplexityPreset) -> list[SampleComplexityDraw]:
    """2-XOR with flipped labels; the error is that against the true ones."""
    return [
        SampleComplexityDraw(SparseParity(d, flip=_FLIP), learner, 0.05, preset.width, preset.most, number)
        for learner in ("NTK", *_WANTED)
        for d in preset.noisy
        for number in range(preset.monomial_draws)
    ]


def _cubic(preset: SampleComplexityPreset) -> list[SampleComplexityDraw]:
    """The power p = 3; α = 1/√15 gives (βᵀx)³ the mean square 1 of a label, up to 1/d."""
    return [
        SampleComplexityDraw(
            RidgeMonomial(d, 3, alpha=15**-0.5), learner, 0.2, preset.randomized_width, preset.most, number
        )
        for learner in ("NTK", "quadratic model")
        for d in preset.cubic
        for number in range(preset.monomial_draws)
    ]


_PARTS = {"xor": _xor, "monomial": _monomial, "noisy": _noisy, "cubic": _cubic}


def work(preset: SampleComplexityPreset) -> list[SampleComplexityDraw]:
    """Return one draw for each problem, learner, d and data set."""
    return [draw for part in _PARTS.values() for draw in part(preset)]


def data(preset: SampleComplexityPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return n(d) with exponents for four problems, and the error against n in the largest dimension of 2-XOR."""
    plans = {name: part(preset) for name, part in _PARTS.items()}
    own = dict(zip(plans, split(rows, list(plans.values())), strict=True))
    panels = {name: assemble(plan, own[name]) for name, plan in plans.items()}
    return {**panels, "curves": curves(plans["xor"], own["xor"], max(preset.xor))}


def plot(data: Panels) -> Figure:
    """Draw n(d) for four problems, what the quadratic model saves against d, and error against n; one legend."""
    with canvas(13.2, 8.4) as figure:
        frames = figure.subplots(2, 3)
        for axes, panel in zip((*frames[0], frames[1, 0]), _TITLES, strict=True):
            _needed(axes, data[panel], panel)
        _saved(frames[1, 1], data)
        _curves(frames[1, 2], data["curves"], float(data["xor"].attrs["level"]))
        known = [name for name in _LOOKS if name in data["xor"].learner.values]
        handles = [entry(name, color=_LOOKS[name][0], marker=_LOOKS[name][1]) for name in known]
        handles.append(entry("exponents of §5.2", **_REFERENCE))
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _needed(axes: Axes, panel: Dataset, name: str) -> None:
    d = panel.d.values.astype(float)
    for learner in panel.learner.values.tolist():
        at = panel.sel(learner=learner)
        colour, marker = _LOOKS[learner]
        kept = np.isfinite(at.needed.values)
        if not np.any(kept):
            continue  # the verdict says who did not reach the level
        half = float(at.exponent_high - at.exponent_low) / 2
        label = f"d$^{{{float(at.exponent):.2f} \\pm {half:.2f}}}$"
        error = at.needed.values * np.nan_to_num(at.needed_stderr.values)
        axes.errorbar(d[kept], at.needed[kept], error[kept], color=colour, marker=marker, linestyle="", label=label)
        middle, center = (np.exp(np.mean(np.log(values))) for values in (at.needed.values[kept], d[kept]))
        axes.plot(d[kept], middle * (d[kept] / center) ** float(at.exponent), color=colour, linewidth=1.1)
    ends = d[[0, -1]]
    # references through the outer corners, clear of the dots
    first = panel.needed.values[:, 0][np.isfinite(panel.needed.values[:, 0])]
    top, bottom = (1.8 * first.max(), first.min() / 1.9) if first.size else (np.nan, np.nan)
    for start, power in zip((top, bottom), declared.polynomial_samples(_DEGREES[name]), strict=True):
        axes.plot(ends, start * (ends / ends[0]) ** power, linewidth=1.0, **_REFERENCE)
    axes.set(xscale="log", yscale="log", xlabel="d, inputs", ylabel="n, samples needed")
    axes.set_title(_TITLES[name].format(level=panel.attrs["level"]))
    _dimensions(axes, d)
    axes.legend(loc="upper left", fontsize=9, handletextpad=0.3, borderaxespad=0.2)


def _dimensions(axes: Axes, d: Any) -> None:
    axes.set_xticks(d)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")


def _saved(axes: Axes, data: Panels) -> None:
    """n_Q/n_L, which §5.2 has as p/d."""
    styles = {"xor": "o", "noisy": "s", "monomial": "^", "cubic": "D"}
    for k, (name, marker) in enumerate(styles.items()):
        ratio = data[name].needed.sel(learner="quadratic model") / data[name].needed.sel(learner="NTK")
        words = _TITLES[name].split(", relative")[0].split(", error")[0].replace(" a tenth of the labels", "")
        axes.plot(ratio.d, ratio, color=scale_colour(k / 3), marker=marker, linewidth=1.0, label=words)
    low, high = (f(float(f(data[name].d)) for name in styles) for f in (min, max))
    d = np.array([low, high])
    axes.plot(d, 8.0 / d, linewidth=1.0, **_REFERENCE)
    axes.set(xscale="log", yscale="log", xlabel="d, inputs", ylabel="n of the quadratic model / n of the NTK")
    axes.set_title("What the quadratic model saves (dashed: 1/d)")
    _dimensions(axes, [8, 16, 32, 64])
    axes.legend(loc="lower left", fontsize=9)


def _curves(axes: Axes, panel: Dataset, level: float) -> None:
    for name in panel.learner.values.tolist():
        colour, marker = _LOOKS[name]
        at = panel.sel(learner=name)
        axes.plot(at.samples, np.maximum(at.error, 1e-3), color=colour, marker=marker)
    axes.axhline(level, color="#333333", linestyle=":", linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="n, samples", ylabel="share misclassified")
    axes.set_title(f"2-XOR at d = {panel.attrs['d']}: the error on the way")
    axes.xaxis.set_minor_formatter("")


def verdict(data: Panels) -> list[str]:
    """Return n(d), exponents and gains over the tangent kernel; say whether 2-XOR separates them by a half."""
    lines: list[str] = []
    for panel in _TITLES:
        result = data[panel]
        dimensions = "".join(f"{f'd = {d}':>9}" for d in result.d.values)
        lines.append(_TITLES[panel].format(level=result.attrs["level"]))
        lines.append(f"{'n(d)':<20}{dimensions}{'exponent, 95%':>22}{'gain':>7}")
        lines += [_line(result, name) for name in result.learner.values.tolist()]
    gains = {name: gain(data["xor"], name) for name in _WANTED}
    short = [name for name, (_, low, _) in gains.items() if not low >= _GAP]
    missed = int(sum(int(np.sum(data[panel].missed)) for panel in _TITLES))
    if missed:
        lines.append(f"{missed} data sets did not reach the level.")
    told = ", ".join(f"{gained:.2f} [{low:.2f}, {high:.2f}]" for gained, low, high in gains.values())
    separated = f"2-XOR: exponents smaller than the NTK's by {told}: at least {_GAP:g}."
    return [*lines, answer(not short, separated, f"Not separated by {_GAP:g} on 2-XOR: {', '.join(short)}.")]


def _line(panel: Dataset, name: str) -> str:
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

_SAYS = "2-XOR and one polynomial: the quadratic model needs ~d samples where the tangent kernel needs ~d²"
STATEMENTS = stated("sample-complexity", "bai2020beyond", {"§5.2": _SAYS})

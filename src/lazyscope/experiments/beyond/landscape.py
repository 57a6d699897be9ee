"""Landscape: error terms of Lemma 1 and Theorem 2 against the width, descents off the saddle (Bai & Lee 2019, §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.evidence.work import Row
from lazyscope.experiments.beyond.landscape_numbers import DescentDraw, LandscapeDraw, assemble_landscape
from lazyscope.problems import SparseParity
from lazyscope.runs.pictures import LOOKS, style

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _GREEN, _RED = (LOOKS[name]["color"] for name in ("RF", "RF, optimal weights", "NT", "NN"))
_POINTS = {
    "the saddle": ("#CC79A7", "P"),
    "half way": (_BLUE, "o"),
    "random": (_ORANGE, "s"),
    "both": (_GREEN, "^"),
    "the opposite": (_RED, "D"),
}
_DECLARED = {"Lemma 1": -1.0, "Theorem 2": -0.25}
_TOLERANCE = 0.06


@dataclass(frozen=True)
class Size:
    """Widths and draws of the inequalities; widths and steps of the descents."""

    cost: str
    widths: tuple[int, ...]
    descent_width: int = 200
    draws: int = 2
    samples: int = 100
    signs: int = 6
    looks: int = 9
    d: int = 8


PRESETS = {
    "quick": Size("half a minute", (100, 320, 1000, 3200)),
    "paper": Size("five minutes", (100, 320, 1000, 3200, 10_000, 32_000), 500, draws=4, signs=16, looks=17),
}


def _inequalities(size: Size) -> list[LandscapeDraw]:
    problem = SparseParity(size.d)
    return [
        LandscapeDraw(problem, m, size.samples, size.signs, number=number)
        for m in size.widths
        for number in range(size.draws)
    ]


def _descents(size: Size) -> list[DescentDraw]:
    problem = SparseParity(size.d)
    return [DescentDraw(problem, size.descent_width, randomized, looks=size.looks) for randomized in (False, True)]


def work(size: Size) -> list[LandscapeDraw | DescentDraw]:
    """Return the inequalities at each width, and two descents: clean, and under random signs."""
    return [*_inequalities(size), *_descents(size)]


def data(size: Size, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return both sides and errors over (`statement`, `point`, `width`), and what the descents saw."""
    import xarray as xr

    plan, descents = _inequalities(size), rows[-2:]
    names = ("risk", "gradient", "smallest", "norm", "certified")
    variables: dict[str, Any] = {name: (("model", "look"), np.array([row[name] for row in descents])) for name in names}
    variables["OPT"] = ("model", np.array([float(row["OPT"]) for row in descents]))
    coordinates = {"model": ["quadratic model", "randomised network"], "step": ("look", descents[0]["step"])}
    attributes = {"width": size.descent_width, "problem": str(SparseParity(size.d))}
    return {
        "inequalities": assemble_landscape(plan, rows[: len(plan)]),
        "descents": xr.Dataset(variables, coordinates, attributes),
    }


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw both error terms against the width, both sides at every point, and risk and curvature of the descents."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(14.4, 4.7))
        first, second, third = figure.subplots(1, 3)
        _draw_errors(first, data["inequalities"])
        _draw_sides(second, data["inequalities"])
        _draw_descents(third, data["descents"])
    return figure


def _draw_errors(axes: Axes, found: xr.Dataset) -> None:
    m = found.width.values
    for statement, filled in (("Lemma 1", True), ("Theorem 2", False)):
        for point, (colour, marker) in _POINTS.items():
            one = found.sel(statement=statement, point=point)
            if not np.all(one.error > 0):
                continue
            face = {} if filled else {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.3}
            label = f"{statement}, {point}: m$^{{{float(one.exponent):.2f}}}$".replace("-", "−")
            axes.plot(m, one.error, color=colour, marker=marker, linewidth=1.0, label=label, **face)
    axes.set(xscale="log", yscale="log", xlabel="m, neurons", ylabel="error term", title="What the statements add")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=8.5)


def _draw_sides(axes: Axes, found: xr.Dataset) -> None:
    for point, (colour, marker) in _POINTS.items():
        for statement, filled in (("Lemma 1", True), ("Theorem 2", False)):
            one = found.sel(statement=statement, point=point)
            face = {} if filled else {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.3}
            axes.plot(one.left, one.right, color=colour, marker=marker, linestyle="",
                      label=point if filled else None, **face)  # fmt: skip
    shown = found.sel(statement=["Lemma 1", "Theorem 2"])
    low, high = float(shown.right.min()) - 0.5, float(shown.right.max()) + 0.2
    axes.plot([low, high], [low, high], color="#888888", linestyle=(0, (4, 3)), linewidth=1.0)
    axes.set(xlabel="left side: mean curvature along W⋆Σ′", ylabel="right side, without the error term")
    axes.set_title("Above the diagonal the inequality holds")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, title="full: Lemma 1, open: Theorem 2")


def _draw_descents(axes: Axes, found: xr.Dataset) -> None:
    other = axes.twinx()
    for name, colour, marker in (("quadratic model", _BLUE, "o"), ("randomised network", _ORANGE, "s")):
        one = found.sel(model=name)
        axes.plot(one.step, one.risk, color=colour, marker=marker, label=f"{name}: risk")
        other.plot(one.step, one.smallest, color=colour, marker=marker, linestyle=":", linewidth=1.2,
                   markerfacecolor="none", markeredgecolor=colour, label="smallest eigenvalue")  # fmt: skip
    axes.axhline(float(found.OPT[0]), color="#333333", linestyle=(0, (1, 2)), linewidth=1.2)
    axes.annotate("OPT", (float(found.step[-1]), float(found.OPT[0])), xytext=(-4, 4), ha="right", color="#333333",
                  textcoords="offset points")  # fmt: skip
    other.axhline(0.0, color="#bbbbbb", linewidth=0.8)
    other.grid(visible=False)
    other.spines["right"].set_visible(True)
    axes.set(xlabel="step", ylabel="risk L$_λ$", title=f"Descent from near the saddle, m = {found.attrs['width']}")
    other.set_ylabel("λ$_{min}$(∇²L$_λ$) ‖W⋆‖$^2_F$ (dotted)")
    handles = [*axes.get_legend_handles_labels()[0], *other.get_legend_handles_labels()[0][:1]]
    labels = [*axes.get_legend_handles_labels()[1], "smallest eigenvalue of the Hessian"]
    axes.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1)


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return exponents and the least slack of each statement; say whether all hold and descents end below OPT."""
    found: Any = data["inequalities"]
    lines = [
        f"{'statement':<13}{'exponents of the error':>34}{'declared':>10}{'least slack':>13}{'sampled, rms z':>16}"
    ]
    wrong = []
    for statement in found.statement.values.tolist():
        one = found.sel(statement=statement)
        slopes = one.exponent.values[np.isfinite(one.exponent.values)]
        spread = one.exponent_stderr.values[np.isfinite(one.exponent.values)]
        declared = _DECLARED.get(statement, _DECLARED["Theorem 2"])
        shown = " ".join(f"{slope:.2f}" for slope in slopes)
        z = float(np.sqrt(np.mean(one.z.values**2)))
        lines.append(f"{statement:<13}{shown:>34}{f'≤ {declared:.2f}':>10}{float(one.slack.min()):>13.3g}{z:>12.2f}")
        if np.any(slopes > declared + _TOLERANCE + 2 * np.nan_to_num(spread)) or float(one.slack.min()) < 0:
            wrong.append(statement)
    for name in data["descents"].model.values.tolist():
        one = data["descents"].sel(model=name)
        risk, low, OPT = float(one.risk[-1]), float(one.smallest[-1]), float(one.OPT)
        start = float(one.smallest[0])
        lines.append(f"{name}: risk {risk:.4f}, OPT {OPT:.4f}; smallest eigenvalue {start:.3g} → {low:.3g}")
        if risk > OPT or np.any(one.risk - OPT > one.certified):
            wrong.append(f"the descent of the {name}")
    told = "Every inequality holds, its error falls with m, and descents end below OPT."
    return [*lines, told if not wrong else f"Not as declared: {', '.join(wrong)}."]

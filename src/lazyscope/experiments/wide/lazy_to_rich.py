"""From lazy to rich: risk, and how far training leaves its linearisation, against the output scale α.

For α → ∞ a network f = α(h − h₀) + c ends where the tangent model of its weights does, for α → 0 at the floor of
Theorem 3; movement, drift of the tangent kernel and distance to the tangent model fall like 1/α (Chizat, Oyallon and
Bach 2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.evidence.work import Row
from lazyscope.experiments.exponents import exponents
from lazyscope.experiments.wide.lazy_to_rich_numbers import LazyToRichDraw, assemble
from lazyscope.limits.flow.curve import flow
from lazyscope.problems import QuadraticTarget
from lazyscope.regimes import Trained
from lazyscope.runs.pictures import LOOKS, RISK, scale_colour, style
from lazyscope.runs.verbs import exact

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _GREEN, _RED = (LOOKS[name]["color"] for name in ("RF", "RF, optimal weights", "NT", "NN"))
_SHOWN = {
    "movement": ("weights, ‖W − W₀‖/‖W₀‖", _RED, "D"),
    "drift": ("tangent kernel, ‖K − K₀‖/‖K₀‖", _BLUE, "o"),
    "distance": ("network − tangent model, over ‖f⋆‖", _GREEN, "^"),
    "curvature": ("network − its linearisation, over ‖f⋆‖", _ORANGE, "s"),
}
_TOLERANCE = 0.05  # of an exponent, as fitted over finite α
_NEAR = 0.03  # of a risk
_FINE = tuple(np.geomspace(0.001, 10_000.0, 15).round(4).tolist())


@dataclass(frozen=True)
class Size:
    """Dimension, N = d/2, scales, draws, and the scale from which on training counts as lazy."""

    cost: str
    d: int
    draws: int
    alpha: tuple[float, ...] = (0.003, 0.03, 0.3, 3.0, 30.0, 300.0, 1000.0, 3000.0)
    lazy: float = 300.0

    @property
    def problem(self) -> QuadraticTarget:
        """The paper's target."""
        return QuadraticTarget.exponential(self.d)

    @property
    def width(self) -> int:
        """N."""
        return round(self.d / 2)


PRESETS = {
    "quick": Size("a minute and a half", d=30, draws=4),
    "paper": Size("about half an hour", d=60, draws=12, alpha=_FINE),
}


def work(size: Size) -> list[LazyToRichDraw]:
    """Return one training for each scale and draw."""
    return [
        LazyToRichDraw(size.problem, size.width, alpha, number=number)
        for alpha in size.alpha
        for number in range(size.draws)
    ]


def data(size: Size, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return what each scale leads to, with exponents at the lazy end; and the first draw along training."""
    import xarray as xr

    found = assemble(work(size), list(rows))
    lazy = np.array(size.alpha) >= size.lazy
    last = np.array([[row[name][-1] for row in rows] for name in _SHOWN]).reshape(-1, len(size.alpha), size.draws)
    slope, spread = exponents(np.array(size.alpha)[lazy], last[:, lazy])
    line = np.geomspace(size.alpha[0], size.alpha[-1], 60)
    closed = [float(exact(size.problem, Trained(alpha=a), width=size.width, draws=size.draws).risk) for a in line]
    found = found.assign(
        exact_line=("line", np.array(closed)),
        exponent=("quantity", slope),
        exponent_stderr=("quantity", spread),
    ).assign_coords(line=line, quantity=list(_SHOWN))
    found.attrs |= {"d": size.d, "lazy_from": size.lazy, "citations": "chizat2019lazy, ghorbani2019limitations"}
    first = {alpha: rows[k * size.draws] for k, alpha in enumerate(size.alpha)}
    points = found.sizes["point"]
    paths = [
        flow(size.problem, Trained(alpha=alpha), width=size.width, times=row["time"][-points:]).risk.values
        for alpha, row in first.items()
    ]
    training: dict[str, Any] = {
        "time": np.array([row["time"][-points:] for row in first.values()]),
        "risk": np.array([row["risk"][-points:] for row in first.values()]),
        "flow": np.array(paths),
        "alignment": np.array([row["alignment"][-points:] for row in first.values()]),
    }
    along = xr.Dataset(
        {name: (("alpha", "point"), values) for name, values in training.items()}, {"alpha": list(first)}
    )
    return {"alpha": found, "training": along}


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw the risk in the end, what laziness means, and the way there, for every α."""
    from matplotlib.figure import Figure

    found = data["alpha"]
    with style():
        figure = Figure(figsize=(14.4, 4.9))
        first, second, third = figure.subplots(1, 3)
        _draw_risk(first, found)
        _draw_laziness(second, found)
        _draw_training(third, data["training"])
        first.set_title(f"Where training ends, d = {found.attrs['d']}, N = d/2")
        second.set_title("How far it leaves its linearisation")
        third.set_title("On the way there (lines: gradient flow)")
    return figure


def _draw_risk(axes: Axes, found: xr.Dataset) -> None:
    axes.plot(found.line, found.exact_line, color="#333333", label="closed form, endless training")
    for name, level, below in (("NT", float(found.tangent), False), ("NN", float(found.floor), True)):
        axes.axhline(level, color=LOOKS[name]["color"], linestyle=(0, (4, 3)), linewidth=1.2)
        words, where = ("NN, Theorem 3", "right") if below else ("NT of the same weights", "left")
        x = float(found.line[-1] if below else found.line[0])
        axes.annotate(words, (x, level), xytext=(0, 4), textcoords="offset points", ha=where,
                      color=LOOKS[name]["color"], fontsize=9.5)  # fmt: skip
    for k, alpha in enumerate(found.alpha.values):
        axes.errorbar(alpha, found.end[k], found.end_stderr[k], color=_colour(found, k), marker="o", linestyle="",
                      markersize=7.0, zorder=3, label="SGD, mean ± standard error" if k == 0 else None)  # fmt: skip
    axes.set(xscale="log", xlabel="α, output scale", ylabel=RISK, ylim=(-0.01, None))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _draw_laziness(axes: Axes, found: xr.Dataset) -> None:
    alpha = found.alpha.values
    lazy = alpha >= found.attrs["lazy_from"]
    for name, (words, colour, marker) in _SHOWN.items():
        last = found[name].isel(point=-1).values
        slope = f"{float(found.exponent.sel(quantity=name)):.2f}".replace("-", "−")
        # in the lazy regime two and two coincide: open markers around full ones leave both to be seen
        open_one = {"markerfacecolor": "none", "markeredgecolor": colour, "markersize": 9.5, "markeredgewidth": 1.3}
        look = open_one if name in ("movement", "distance") else {}
        axes.plot(alpha, last, color=colour, marker=marker, linestyle="", label=f"{words}: α$^{{{slope}}}$", **look)
        ends = np.array([1.0, alpha[-1]])
        axes.plot(ends, last[-1] * alpha[-1] / ends, color=colour, linestyle="--", linewidth=1.0)
    axes.axvspan(alpha[lazy][0], alpha[-1], color="#f0f0f0", zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="α, output scale", ylabel="at the end of training")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=9.5,
                title="fitted where shaded; dashed: 1/α")  # fmt: skip


def _draw_training(axes: Axes, along: xr.Dataset) -> None:
    for k, alpha in enumerate(along.alpha.values):
        one, colour = along.isel(alpha=k), _colour(along, k)
        axes.plot(one.time, one.flow, color=colour, linewidth=1.4)
        axes.plot(one.time, one.risk, color=colour, linestyle="", marker="o", markersize=4.0, label=f"α = {alpha:g}")
    axes.set(xscale="log", yscale="log", xlabel="t = Σε, time of the tangent model's flow", ylabel=RISK)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, title="dots: SGD, one draw", fontsize=9.5)


def _colour(found: xr.Dataset, k: int) -> Any:
    return scale_colour(k / max(1, found.sizes["alpha"] - 1))


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return risks against α beside their closed form and both ends, and the exponents of laziness."""
    found = data["alpha"]
    lines = [f"{'α':>8}{'SGD':>20}{'closed form':>13}{'movement':>10}{'drift':>10}{'distance':>10}{'alignment':>11}"]
    wrong = []
    for k, alpha in enumerate(found.alpha.values):
        one = found.isel(alpha=k)
        last = one.isel(point=-1)
        cell = f"{float(one.end):.5f} ± {float(one.end_stderr):.5f}"
        rest = f"{float(last.movement):>10.4g}{float(last.drift):>10.4g}{float(last.distance):>10.4g}"
        lines.append(f"{alpha:>8g}{cell:>20}{float(one.exact):>13.5f}{rest}{float(last.alignment):>11.4f}")
        if abs(float(one.end / one.exact) - 1.0) > _NEAR:
            wrong.append(f"the closed form at α = {alpha:g}")
    for name, level, k in (("NN", float(found.floor), 0), ("NT", float(found.tangent), -1)):
        off = float(found.end[k]) / level - 1.0
        lines.append(f"α = {float(found.alpha[k]):g} against {name}, {level:.5f}: {off:+.2%}")
        if abs(off) > _NEAR:
            wrong.append(f"the end at {name}")
    for name in _SHOWN:
        one = found.sel(quantity=name)
        lines.append(f"{name} ∝ α^{float(one.exponent):.3f} ± {float(one.exponent_stderr):.3f} (declared −1)")
        if abs(float(one.exponent) + 1.0) > _TOLERANCE + 2.0 * float(one.exponent_stderr):
            wrong.append(f"the exponent of {name}")
    told = f"Both ends are within {_NEAR:.0%} of NT and NN, every α of its closed form, and laziness falls like 1/α."
    return [*lines, told if not wrong else f"Not as predicted: {', '.join(wrong)}."]

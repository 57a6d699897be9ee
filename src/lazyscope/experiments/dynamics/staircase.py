"""Eigendirections are learned one after another, the largest first: a staircase from small initial weights.

With second layer 1 and K = WWᵀ/N small, direction i grows like κ_i e^{16λ_it − 8∫s}, λ_i the eigenvalues of B/√d. κ_i
is the squared distance of row i of W₀/√N from the span of the rows before it, whose neurons are taken. s is what the
offset has still to make up for, ċ = −2s, so that ∫s is half the trace learned so far. Half of λ_i is reached at

    16λ_i t_i = log(λ_i/κ_i) + 4Σ_{j<i}λ_j + 2λ_i    (i ≤ N; later directions are never learned).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.work import Row
from lazyscope.experiments.dynamics.traces import StairsDraw
from lazyscope.experiments.exponents import over_draws
from lazyscope.limits.flow.curve import beginning, flow
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD
from lazyscope.regimes import Trained
from lazyscope.runs.pictures import LOOKS, RISK, scale_colour, style
from lazyscope.runs.verbs import limit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TOLERANCE = 0.01  # of the formula for t_i, which leaves out what is small with κ and λ
_FAR = 3.0  # standard errors
_MARKERS = ("o", "s", "D", "^", "v", "P")


@dataclass(frozen=True)
class Size:
    """Dimension, eigenvalues that are not 0, neurons, streams of samples, scale of W₀, time and step size."""

    cost: str
    d: int
    streams: int
    eigenvalues: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
    width: int = 4
    init: float = 1e-3
    until: float = 120.0
    step_size: float = 0.0025
    batch: int = 100

    @property
    def problem(self) -> QuadraticTarget:
        """A target of few directions."""
        return QuadraticTarget(np.append(self.eigenvalues, np.zeros(self.d - len(self.eigenvalues))))

    @property
    def protocol(self) -> SGD:
        """Constant steps."""
        steps = round(self.until / self.step_size)
        return SGD(steps, self.batch, (self.step_size,), decay=(), test=1, second_layer="fixed")


PRESETS = {
    "quick": Size("half a minute", d=40, streams=6),
    "paper": Size("about five minutes", d=100, streams=24, step_size=0.001),
}


def work(size: Size) -> list[StairsDraw]:
    """Return the streams: all of them train the same initial weights."""
    shown = len(size.eigenvalues)
    return [
        StairsDraw(size.problem, size.width, shown, size.protocol, size.init, number) for number in range(size.streams)
    ]


def data(size: Size, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return shares and risk along the flow (`line`) and along SGD (`time`), and the times at which each is half."""
    import xarray as xr

    line, times = np.geomspace(0.01 * size.until, size.until, 400), rows[0]["time"]
    shown, ask = len(size.eigenvalues), np.unique(np.append(line, times))
    path = flow(
        size.problem, Trained(init=size.init), width=size.width, times=ask, second_layer="fixed", tolerance=1e-5
    )
    on_line = np.isin(ask, line)
    lasting = min(size.width, shown)
    values, kappa = path.eigenvalue.values[:lasting], initial_sizes(size)[:lasting]
    formula = (np.log(values / kappa) + 4.0 * (np.cumsum(values) - values) + 2.0 * values) / (16.0 * values)
    learned, learned_stderr = over_draws(np.stack([row["learned"] for row in rows], axis=-1))
    risk, risk_stderr = over_draws(np.stack([row["risk"] for row in rows], axis=-1))
    ratios = np.stack(
        [half_time(times, row["learned"][:, :lasting]) / path.reached.values[:lasting] for row in rows], axis=-1
    )
    ratio, ratio_stderr = over_draws(ratios)
    variables: dict[str, Any] = {
        "flow_learned": (("line", "direction"), path.learned.values[on_line, :shown]),
        "flow_risk": ("line", path.risk.values[on_line]),
        "learned": (("time", "direction"), learned),
        "learned_stderr": (("time", "direction"), learned_stderr),
        "risk": ("time", risk),
        "risk_stderr": ("time", risk_stderr),
        "reached": ("learned_direction", path.reached.values[:lasting]),
        "formula": ("learned_direction", formula),
        "ratio": ("learned_direction", ratio),  # SGD over flow
        "ratio_stderr": ("learned_direction", ratio_stderr),
        "floor": float(limit(size.problem, Trained(), rho=size.width / size.d).risk),
        "levels": ("step", _levels(size)),
    }
    coordinates: dict[str, Any] = {
        "line": line,
        "time": times,
        "direction": np.arange(1, shown + 1),
        "learned_direction": np.arange(1, lasting + 1),
        "eigenvalue": ("direction", path.eigenvalue.values[:shown]),
    }
    attributes = {
        "problem": str(size.problem),
        "d": size.d,
        "width": size.width,
        "init": size.init,
        "step_size": size.step_size,
        "batch": size.batch,
        "streams": size.streams,
        "seed": 0,
        "citations": "ghorbani2019limitations",
    }
    return {"staircase": xr.Dataset(variables, coordinates, attributes)}


def initial_sizes(size: Size) -> FloatArray:
    """κ_i, largest eigenvalue first: squared distances of the rows of W₀/√N from the span of those before."""
    start = beginning(size.problem, size.width, None, "drawn", "fixed", 0, 0, size.init)
    assert start.W is not None
    rows = start.W[::-1][: min(size.width, len(size.eigenvalues))]
    return np.asarray(np.diagonal(np.linalg.qr(rows.T)[1]) ** 2)


def _levels(size: Size) -> FloatArray:
    """The risk with the first k directions learned, k = 0, 1, …, N."""
    squares = np.square(size.eigenvalues)
    return np.asarray(1.0 - np.append(0.0, np.cumsum(squares))[: size.width + 1] / squares.sum())


def half_time(times: FloatArray, learned: FloatArray) -> FloatArray:
    """Return when each column first is one half; log p/(1 − p) is a straight line of t for a single direction.

    >>> t = np.linspace(0.0, 10.0, 21)
    >>> half_time(t, 1.0 / (1.0 + np.exp(-3.0 * (t[:, None] - 4.2)))).round(6)
    array([4.2])
    """
    found = []
    for share in learned.T:
        above = share >= 0.5
        k = int(np.argmax(above))
        if not above.any() or k == 0:
            found.append(np.inf if not above.any() else times[0])
            continue
        p = np.clip(share[k - 1 : k + 1], 1e-12, 1.0 - 1e-12)
        low, high = np.log(p / (1.0 - p))
        found.append(times[k - 1] - low / (high - low) * (times[k] - times[k - 1]))
    return np.array(found)


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw the shares against time, the staircase of the risk, and the times against the eigenvalues."""
    from matplotlib.figure import Figure

    one = data["staircase"]
    with style():
        figure = Figure(figsize=(14.4, 4.6))
        first, second, third = figure.subplots(1, 3, width_ratios=(1.25, 1.1, 0.9))
        _draw_shares(first, one)
        _draw_risk(second, one)
        _draw_times(third, one)
        first.set_title(f"N = {one.attrs['width']} neurons, d = {one.attrs['d']}: the largest first")
        figure.legend(**_legend(one))
    return figure


def _colour(one: xr.Dataset, k: int) -> Any:
    return scale_colour(k / max(1, one.sizes["direction"] - 1))


def _draw_shares(axes: Axes, one: xr.Dataset) -> None:
    for k in range(one.sizes["direction"]):
        colour, share, error = _colour(one, k), one.learned[::2, k], one.learned_stderr[::2, k]
        axes.plot(one.line, one.flow_learned[:, k], color=colour, zorder=2)
        axes.errorbar(one.time[::2], share, error, color=colour, linestyle="", marker=_MARKERS[k % 6], zorder=3,
                      markersize=4.5)  # fmt: skip
    axes.set(xscale="log", xlabel="t = Σε, time of gradient flow", ylabel="share of the eigendirection learned")
    axes.set_xlim(2.0, float(one.line[-1]))


def _draw_risk(axes: Axes, one: xr.Dataset) -> None:
    for level in one.levels.values:
        axes.axhline(float(level), color="#bbbbbb", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    colour = LOOKS["NN"]["color"]
    axes.plot(one.line, one.flow_risk, color=colour, zorder=2)
    axes.errorbar(one.time[::2], one.risk[::2], one.risk_stderr[::2], color=colour, linestyle="", marker="D",
                  markersize=4.0, zorder=3)  # fmt: skip
    for k, level in enumerate(one.levels.values):
        axes.annotate(f"{k} learned" if k else "none learned", (2.1, float(level)), xytext=(0, -3), va="top",
                      textcoords="offset points", color="#555555", fontsize=9)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="t = Σε, time of gradient flow", ylabel=RISK)
    axes.set_xlim(2.0, float(one.line[-1]))
    axes.set_ylim(0.5 * float(one.levels[-1]), 1.6)
    axes.set_title("The risk, step by step (dashed: whole steps)")


def _draw_times(axes: Axes, one: xr.Dataset) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter, StrMethodFormatter

    lasting = one.sizes["learned_direction"]
    values = one.eigenvalue.values[:lasting]
    axes.plot(values, one.formula, color="#333333", linestyle="--", linewidth=1.2, zorder=2)
    for k in range(lasting):
        reached, error = float(one.reached[k]), float(one.reached[k] * one.ratio_stderr[k])
        axes.errorbar(values[k], reached * float(one.ratio[k]), error, color=_colour(one, k), marker=_MARKERS[k % 6],
                      linestyle="", markersize=7.0, zorder=3)  # fmt: skip
        axes.plot(values[k], reached, color="#111111", marker="x", linestyle="", markersize=5.0,
                  markeredgewidth=1.1, markeredgecolor="#111111", zorder=4)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="λ, eigenvalue of B/√d", ylabel="time at which half is learned")
    axes.set_title("Twice the eigenvalue, half the time")
    for axis, ticks in ((axes.xaxis, values), (axes.yaxis, (5.0, 10.0, 20.0, 50.0, 100.0, 200.0))):
        axis.set_major_locator(FixedLocator([float(tick) for tick in ticks]))
        axis.set_major_formatter(StrMethodFormatter("{x:.2g}"))
        axis.set_minor_formatter(NullFormatter())


def _legend(one: xr.Dataset) -> dict[str, Any]:
    from matplotlib.lines import Line2D

    dark = "#222222"
    handles = [
        Line2D([], [], color=_colour(one, k), marker=_MARKERS[k % 6], label=f"λ$_{k + 1}$ = {value:.3f}")
        for k, value in enumerate(one.eigenvalue.values)
    ]
    handles += [
        Line2D([], [], color=dark, label="gradient flow"),
        Line2D([], [], color=dark, marker="o", linestyle="", label=f"SGD, ε = {one.attrs['step_size']:g}"),
        Line2D(
            [], [], color="#111111", marker="x", markeredgecolor="#111111", linestyle="", label="flow, half learned"
        ),
        Line2D([], [], color="#333333", linestyle="--", linewidth=1.2, label="formula for small W₀"),
    ]
    return {"handles": handles, "loc": "outside lower center", "ncols": 5}


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return the times of every direction by flow, formula and SGD; say whether order and formula are kept."""
    one = data["staircase"]
    lines = [f"{'direction':<11}{'λ':>8}{'t: flow':>10}{'formula':>10}{'flow/formula':>14}{'SGD/flow':>19}{'z':>6}"]
    wrong = []
    for k in range(one.sizes["learned_direction"]):
        reached, formula = float(one.reached[k]), float(one.formula[k])
        ratio, error = float(one.ratio[k]), float(one.ratio_stderr[k])
        z, relation = abs(ratio - 1.0) / error, reached / formula
        cell = f"{ratio:.4f} ± {error:.4f}"
        times = f"{reached:>10.3f}{formula:>10.3f}{relation:>14.4f}"
        lines.append(f"{k + 1:<11}{float(one.eigenvalue[k]):>8.4f}{times}{cell:>19}{z:>6.1f}")
        if not abs(relation - 1.0) <= _TOLERANCE:
            wrong.append(f"the formula of direction {k + 1}")
        if not abs(ratio - 1.0) <= _FAR * error + one.attrs["step_size"]:
            wrong.append(f"SGD on direction {k + 1}")
    if not (np.all(np.diff(one.reached.values) > 0.0) and np.all(np.diff((one.reached * one.ratio).values) > 0.0)):
        wrong.append("the order of the eigenvalues")
    last, floor = float(one.flow_risk[-1]), float(one.floor)
    lines.append(f"risk at the end: flow {last:.5f}, floor of Theorem 3 {floor:.5f}")
    told = "Directions are learned in the order of their eigenvalues, at the times of the formula; SGD follows."
    return [*lines, told if not wrong else f"Not as predicted: {', '.join(wrong)}."]

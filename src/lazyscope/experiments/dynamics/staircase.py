"""Eigendirections are learned one after another, the largest first: a staircase from small initial weights.

The times at which half of each is learned, by SGD and by gradient flow, stand beside the formula for small weights of
`limits.flow.staircase`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, averaged, canvas, dataset, wrong_rows
from lazyscope.experiments.frame.drawing import DARK, DASHES, entry
from lazyscope.experiments.frame.draws import attributes
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.limits.flow.curve import flow
from lazyscope.limits.flow.staircase import half_learned, initial_sizes, levels
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD
from lazyscope.regimes import Trained
from lazyscope.runs.pictures import LOOKS, RISK, scale_colour
from lazyscope.runs.verbs import limit
from lazyscope.training.sgd import population
from lazyscope.training.sgd.loop import measured
from lazyscope.training.sgd.square import SquareNetworks
from lazyscope.training.sgd.stream import law_of

_TOLERANCE = 0.01  # of the formula for t_i, which leaves out what is small with κ and λ
_FAR = 3.0  # standard errors
_MARKERS = ("o", "s", "D", "^", "v", "P")


_POINTS, _EARLIEST = 80, 0.005  # of a staircase, log-spaced from this share of the steps on


@dataclass(frozen=True, eq=False)
class StairsDraw(Draw):
    """SGD from the weights of (seed, 0, N), on the stream `number`; second layer 1, the first trained (Theorem 3).

    Weights start at `init` times the usual ones. The share of direction i is ⟨v_i, Gv_i⟩/λ_i(B), largest eigenvalue
    first, as in `flow`.

    >>> protocol = SGD(steps=400, batch=20, step_sizes=(0.01,), decay=(), test=1, second_layer="fixed")
    >>> row = StairsDraw(QuadraticTarget([4.0, 1.0, 0.0]), 2, 2, protocol).compute()
    >>> row["learned"].shape == (row["time"].size, 2), bool(row["learned"][-1, 0] > 0.8)
    (True, True)
    """

    problem: QuadraticTarget
    width: int
    directions: int
    protocol: SGD
    init: float = 1.0
    number: int = 0
    seed: int = 0

    words = "staircase, stream {draw}"
    costs = ("width", "problem.d", "protocol.steps")

    def compute(self) -> Row:
        """Train; return `time` = Σε, `risk`, and `learned`, points × directions."""
        law, (size,) = law_of(self.problem), self.protocol.step_sizes
        assert law.gamma is not None
        W = self.init * weights.generator(self.seed, 0, self.width).standard_normal((self.width, law.d))
        start = np.asarray(W / np.sqrt(law.d), dtype=np.float32)
        pack = SquareNetworks([start], [self.width], [size], True)
        top = np.argsort(-law.gamma, kind="stable")[: self.directions]
        points = np.geomspace(max(1.0, _EARLIEST * self.protocol.steps), self.protocol.steps, _POINTS)
        steps = np.unique(points.round().astype(int))

        def shares() -> list[float]:
            G = pack.form(0)
            assert law.gamma is not None
            return [population.risk(law, G, float(pack.c[0])), *(np.diagonal(G)[top] / law.gamma[top])]

        table = measured(law, (pack,), self.protocol, weights.generator(self.seed, self.number, 0), steps, shares)
        return {"time": table[:, 0], "risk": table[:, 1], "learned": table[:, 2:]}


@dataclass(frozen=True)
class StaircasePreset(Preset):
    """Dimension, eigenvalues that are not 0, neurons, streams of samples, scale of W₀, time and step size."""

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
    "quick": StaircasePreset("half a minute", d=40, streams=6),
    "paper": StaircasePreset("about five minutes", d=100, streams=24, step_size=0.001),
}


def work(preset: StaircasePreset) -> list[StairsDraw]:
    """Return the streams: all of them train the same initial weights."""
    shown = len(preset.eigenvalues)
    return [
        StairsDraw(preset.problem, preset.width, shown, preset.protocol, preset.init, number)
        for number in range(preset.streams)
    ]


def data(preset: StaircasePreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return shares and risk along the flow (`line`) and along SGD (`time`), and the times at which each is half."""
    line, times = np.geomspace(0.01 * preset.until, preset.until, 400), rows[0]["time"]
    shown, ask = len(preset.eigenvalues), np.unique(np.append(line, times))
    path = flow(
        preset.problem, Trained(init=preset.init), width=preset.width, times=ask, second_layer="fixed", tolerance=1e-5
    )
    on_line = np.isin(ask, line)
    lasting = min(preset.width, shown)
    kappa = initial_sizes(preset.problem, preset.width, shown, preset.init)
    formula = half_learned(path.eigenvalue.values[:lasting], kappa)
    ratios = np.stack(
        [half_time(times, row["learned"][:, :lasting]) / path.reached.values[:lasting] for row in rows], axis=-1
    )
    variables: dict[str, Any] = {
        "flow_learned": (("line", "direction"), path.learned.values[on_line, :shown]),
        "flow_risk": ("line", path.risk.values[on_line]),
        **averaged("learned", ("time", "direction"), np.stack([row["learned"] for row in rows], axis=-1)),
        **averaged("risk", "time", np.stack([row["risk"] for row in rows], axis=-1)),
        "reached": ("learned_direction", path.reached.values[:lasting]),
        "formula": ("learned_direction", formula),
        **averaged("ratio", "learned_direction", ratios),  # SGD over flow
        "floor": float(limit(preset.problem, Trained(), rho=preset.width / preset.d).risk),
        "levels": ("step", levels(np.array(preset.eigenvalues), preset.width)),
    }
    coordinates: dict[str, Any] = {
        "line": line,
        "time": times,
        "direction": np.arange(1, shown + 1),
        "learned_direction": np.arange(1, lasting + 1),
        "eigenvalue": ("direction", path.eigenvalue.values[:shown]),
    }
    about = attributes(preset, "problem", "d", "width", "init", "step_size", "batch", "streams")
    about |= {"seed": 0, "citations": "ghorbani2019limitations"}
    return {"staircase": dataset(variables, coordinates, about)}


def half_time(times: FloatArray, learned: FloatArray) -> FloatArray:
    """Return when each column first is one half; log p/(1 − p) is a straight line of t for a single direction.

    >>> t = np.linspace(0.0, 10.0, 21)
    >>> half_time(t, 1.0 / (1.0 + np.exp(-3.0 * (t[:, None] - 4.2)))).round(6)
    array([4.2])
    """
    halves = []
    for share in learned.T:
        above = share >= 0.5
        k = int(np.argmax(above))
        if not above.any() or k == 0:
            halves.append(np.inf if not above.any() else times[0])
            continue
        p = np.clip(share[k - 1 : k + 1], 1e-12, 1.0 - 1e-12)
        low, high = np.log(p / (1.0 - p))
        halves.append(times[k - 1] - low / (high - low) * (times[k] - times[k - 1]))
    return np.array(halves)


def plot(data: Panels) -> Figure:
    """Draw the shares against time, the staircase of the risk, and the times against the eigenvalues."""
    panel = data["staircase"]
    with canvas(14.4, 4.6) as figure:
        first, second, third = figure.subplots(1, 3, width_ratios=(1.25, 1.1, 0.9))
        _draw_shares(first, panel)
        _draw_risk(second, panel)
        _draw_times(third, panel)
        first.set_title(f"N = {panel.attrs['width']} neurons, d = {panel.attrs['d']}: the largest first")
        figure.legend(**_legend(panel))
    return figure


def _colour(panel: Dataset, k: int) -> Any:
    return scale_colour(k / max(1, panel.sizes["direction"] - 1))


def _draw_shares(axes: Axes, panel: Dataset) -> None:
    for k in range(panel.sizes["direction"]):
        colour, share, error = _colour(panel, k), panel.learned[::2, k], panel.learned_stderr[::2, k]
        axes.plot(panel.line, panel.flow_learned[:, k], color=colour, zorder=2)
        axes.errorbar(panel.time[::2], share, error, color=colour, linestyle="", marker=_MARKERS[k % 6], zorder=3,
                      markersize=4.5)  # fmt: skip
    axes.set(xscale="log", xlabel="t = Σε, time of gradient flow", ylabel="share of the eigendirection learned")
    axes.set_xlim(2.0, float(panel.line[-1]))


def _draw_risk(axes: Axes, panel: Dataset) -> None:
    for level in panel.levels.values:
        axes.axhline(float(level), color="#bbbbbb", linewidth=0.8, linestyle=DASHES, zorder=1)
    colour = LOOKS["NN"]["color"]
    axes.plot(panel.line, panel.flow_risk, color=colour, zorder=2)
    axes.errorbar(panel.time[::2], panel.risk[::2], panel.risk_stderr[::2], color=colour, linestyle="", marker="D",
                  markersize=4.0, zorder=3)  # fmt: skip
    for k, level in enumerate(panel.levels.values):
        axes.annotate(f"{k} learned" if k else "none learned", (2.1, float(level)), xytext=(0, -3), va="top",
                      textcoords="offset points", color="#555555", fontsize=9)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="t = Σε, time of gradient flow", ylabel=RISK)
    axes.set_xlim(2.0, float(panel.line[-1]))
    axes.set_ylim(0.5 * float(panel.levels[-1]), 1.6)
    axes.set_title("The risk, step by step (dashed: whole steps)")


def _draw_times(axes: Axes, panel: Dataset) -> None:
    from matplotlib.ticker import FixedLocator

    lasting = panel.sizes["learned_direction"]
    values = panel.eigenvalue.values[:lasting]
    axes.plot(values, panel.formula, color="#333333", linestyle="--", linewidth=1.2, zorder=2)
    for k in range(lasting):
        reached, error = float(panel.reached[k]), float(panel.reached[k] * panel.ratio_stderr[k])
        axes.errorbar(values[k], reached * float(panel.ratio[k]), error, color=_colour(panel, k),
                      marker=_MARKERS[k % 6], linestyle="", markersize=7.0, zorder=3)  # fmt: skip
        axes.plot(values[k], reached, color="#111111", marker="x", linestyle="", markersize=5.0,
                  markeredgewidth=1.1, markeredgecolor="#111111", zorder=4)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="λ, eigenvalue of B/√d", ylabel="time at which half is learned")
    axes.set_title("Twice the eigenvalue, half the time")
    for axis, ticks in ((axes.xaxis, values), (axes.yaxis, (5.0, 10.0, 20.0, 50.0, 100.0, 200.0))):
        axis.set_major_locator(FixedLocator([float(tick) for tick in ticks]))
        axis.set_major_formatter("{x:.2g}")
        axis.set_minor_formatter("")


def _legend(panel: Dataset) -> dict[str, Any]:
    handles = [
        entry(f"λ$_{k + 1}$ = {value:.3f}", color=_colour(panel, k), marker=_MARKERS[k % 6])
        for k, value in enumerate(panel.eigenvalue.values)
    ]
    handles += [
        entry("gradient flow", color=DARK),
        entry(f"SGD, ε = {panel.attrs['step_size']:g}", color=DARK, marker="o", linestyle=""),
        entry("flow, half learned", color="#111111", marker="x", markeredgecolor="#111111", linestyle=""),
        entry("formula for small W₀", color="#333333", linestyle="--", linewidth=1.2),
    ]
    return {"handles": handles, "loc": "outside lower center", "ncols": 5}


def verdict(data: Panels) -> list[str]:
    """Return the times of every direction by flow, formula and SGD; say whether order and formula are kept."""
    panel = data["staircase"]
    lines = [f"{'direction':<11}{'λ':>8}{'t: flow':>10}{'formula':>10}{'flow/formula':>14}{'SGD/flow':>19}{'z':>6}"]
    wrong = []
    for k in range(panel.sizes["learned_direction"]):
        reached, formula = float(panel.reached[k]), float(panel.formula[k])
        ratio, error = float(panel.ratio[k]), float(panel.ratio_stderr[k])
        z, relation = abs(ratio - 1.0) / error, reached / formula
        cell = f"{ratio:.4f} ± {error:.4f}"
        times = f"{reached:>10.3f}{formula:>10.3f}{relation:>14.4f}"
        lines.append(f"{k + 1:<11}{float(panel.eigenvalue[k]):>8.4f}{times}{cell:>19}{z:>6.1f}")
        if not abs(relation - 1.0) <= _TOLERANCE:
            wrong.append(f"the formula of direction {k + 1}")
        if not abs(ratio - 1.0) <= _FAR * error + panel.attrs["step_size"]:
            wrong.append(f"SGD on direction {k + 1}")
    if not (
        np.all(np.diff(panel.reached.values) > 0.0) and np.all(np.diff((panel.reached * panel.ratio).values) > 0.0)
    ):
        wrong.append("the order of the eigenvalues")
    last, floor = float(panel.flow_risk[-1]), float(panel.floor)
    lines.append(f"risk at the end: flow {last:.5f}, floor of Theorem 3 {floor:.5f}")
    told = "Directions are learned in the order of their eigenvalues, at the times of the formula; SGD follows."
    return [*lines, answer(not wrong, told, f"Not as predicted: {', '.join(wrong)}.")]


_TITLE = "Eigendirections learned one after another, the largest first, from small weights (the same, §2.3)"
_FAULTS = (
    wrong_rows(
        "the first two directions mistaken for one another",
        data,
        "learned",
        lambda k, learned: learned[:, [1, 0, *range(2, learned.shape[1])]],
        seen="the order",
    ),
)
EXPERIMENT = Experiment("staircase", _TITLE, PRESETS, work, data, plot, verdict, place=52, faults=_FAULTS)

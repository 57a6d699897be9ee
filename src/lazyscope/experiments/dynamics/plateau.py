"""SGD on a committee of neurons: it falls, rests on a plateau on which all neurons are alike, and then they part.

Lines are the order-parameter equations, d → ∞; dots are SGD in d dimensions from the same overlaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import (
    Draw,
    Experiment,
    Preset,
    Row,
    answer,
    averaged,
    canvas,
    dataset,
    over_draws,
    wrong_rows,
)
from lazyscope.experiments.frame.drawing import entry
from lazyscope.experiments.frame.draws import attributes
from lazyscope.experiments.frame.judgement import Dot, judged
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.limits.sgd.order_parameters.path import machine_of, order_parameters
from lazyscope.problems import MultiIndex
from lazyscope.protocols import SGD
from lazyscope.regimes import Trained
from lazyscope.runs.pictures import LOOKS, RISK, scale_colour
from lazyscope.training.sgd.loop import measured
from lazyscope.training.sgd.network import Networks
from lazyscope.training.sgd.stream import law_of

_FAR = 3.0  # standard errors of the mean over runs
_TIME = 0.1  # of the time at which the plateau ends, in the mean over runs
_APART = 0.5  # R_11 − R_12 that counts as neurons that have parted
_ALIKE = 0.15  # and the most that still counts as alike, in the middle of the plateau
_POINTS = 18


@dataclass(frozen=True, eq=False)
class PlateauDraw(Draw):
    """SGD of N = r neurons on a committee, from weights whose overlaps are exactly Q = `norm`·I and R = diag(`first`).

    >>> draw = PlateauDraw(MultiIndex(60, "committee-erf2", indices=2), "erf2", 0.25, (0.15, 0.05), 0.5, 2.0)
    >>> row = draw.compute()
    >>> row["R"].shape == (row["time"].size, 2, 2), bool(row["risk"][-1] < row["risk"][0])
    (True, True)
    """

    problem: MultiIndex
    activation: str
    norm: float
    first: tuple[float, ...]
    step_size: float
    until: float
    number: int = 0
    seed: int = 0
    points: int = _POINTS

    words = "plateau, d = {0.problem.d}, run {0.number}"
    costs = ("problem.d", "problem.d")

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Return weights, rows, with these overlaps: what they have beside the target is orthogonal to it."""
        r, d, first = self.problem.indices, self.problem.d, np.array(self.first)
        W = np.zeros((r, d))
        W[:, :r] = np.diag(first)
        W[:, r:] = np.sqrt(self.norm - first**2)[:, None] * np.linalg.qr(rng.standard_normal((d - r, r)))[0].T
        return W

    def compute(self) -> Row:
        """Train; return `time` = steps/d, `risk`, and the overlaps `R`, (points, N, r)."""
        N, d = self.problem.indices, self.problem.d
        rng = weights.generator(self.seed, self.number, N)
        regime, law = Trained(self.activation), law_of(self.problem)
        steps = round(self.until * d)
        protocol = SGD(steps, 1, (self.step_size / (2.0 * d),), decay=(), test=1, second_layer="sum")
        start = self.start(rng)
        pack = Networks([start.astype(np.float32)], [N], protocol.step_sizes, regime.activation, True, True)
        machine = machine_of(self.problem, regime, N)

        def state() -> FloatArray:
            W = pack.state.T.astype(np.float64)
            now = machine.shape.start(W @ W.T, W[:, :N])
            now[-1] += float(pack.c[0])
            return now

        points = np.unique(np.geomspace(max(1.0, 0.002 * steps), steps, self.points).round().astype(int))
        table = measured(law, (pack,), protocol, rng, points, lambda: state().tolist())
        states = table[:, 1:]
        risk = machine.squared_error(states) / self.problem.energy
        return {"time": points / float(d), "risk": risk, "R": machine.shape.split(states)[1]}


@dataclass(frozen=True)
class PlateauPreset(Preset):
    """Dimensions and runs of each, η, the start, and how long."""

    dimensions: tuple[int, ...]
    runs: int
    activation: str = "erf2"
    norm: float = 0.25
    first: tuple[float, ...] = (0.15, 0.05)
    step_size: float = 0.5
    until: float = 150.0

    def problem(self, d: int) -> MultiIndex:
        """A committee of as many neurons as the network has."""
        return MultiIndex(d, f"committee-{self.activation}", indices=len(self.first))


PRESETS = {
    "quick": PlateauPreset("half a minute", (250,), 12),
    "paper": PlateauPreset("about ten minutes", (250, 1000), 40),
}


def work(preset: PlateauPreset) -> list[PlateauDraw]:
    """Return the runs of every dimension, all from the same overlaps."""
    return [
        PlateauDraw(
            preset.problem(d), preset.activation, preset.norm, preset.first, preset.step_size, preset.until, number
        )
        for d in preset.dimensions
        for number in range(preset.runs)
    ]


def parted(times: FloatArray, R: FloatArray) -> float:
    """Return when R_11 − R_12 first is one half, between two times by a straight line; ∞ if never.

    >>> t = np.array([1.0, 2.0, 3.0])
    >>> R = np.zeros((3, 2, 2))
    >>> R[:, 0, 0] = [0.1, 0.4, 0.8]
    >>> parted(t, R)
    2.25
    """
    gap = R[:, 0, 0] - R[:, 0, 1]
    k = int(np.argmax(gap >= _APART))
    if gap[k] < _APART or k == 0:
        return float(times[0]) if gap[k] >= _APART else np.inf
    share = (_APART - gap[k - 1]) / (gap[k] - gap[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))


def data(preset: PlateauPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return, for each d, risk and overlaps by SGD (`time`) and by the equations (`line`, and at the same times)."""
    panels = {}
    for k, d in enumerate(preset.dimensions):
        some = rows[k * preset.runs : (k + 1) * preset.runs]
        times = some[0]["time"]
        line = np.geomspace(0.5 * times[0], preset.until, 300)
        ask = np.unique(np.concatenate([line, times]))
        start = (preset.norm * np.eye(len(preset.first)), np.diag(preset.first))
        path = order_parameters(
            preset.problem(d), Trained(preset.activation), times=ask, step_size=preset.step_size, overlaps=start
        )
        on_line, at = np.isin(ask, line), np.isin(ask, times)
        ends, end_stderr = over_draws(np.array([parted(times, row["R"]) for row in some]))
        risks = np.stack([row["risk"] for row in some], axis=-1)
        variables: dict[str, Any] = {
            "line_risk": ("line", path.risk.values[on_line]),
            "line_R": (("line", "neuron", "index"), path.R.values[on_line]),
            "theory": ("time", path.risk.values[at]),
            **averaged("risk", "time", risks),
            "risks": (("time", "run"), risks),
            **averaged("R", ("time", "neuron", "index"), np.stack([row["R"] for row in some], axis=-1)),
            "parted": parted(times, path.R.values[at]),
            "parted_sgd": float(ends),
            "parted_stderr": float(end_stderr),
            "plateau": ("end", [float(path.plateau_begin), float(path.plateau_end)]),
        }
        about = {"problem": str(preset.problem(d)), "d": d, **attributes(preset, "runs", "step_size")}
        about["citations"] = "saad1995online,goldt2019dynamics"
        coordinates: dict[str, Any] = {"line": line, "time": times, "end": ["begin", "end"]}
        panels[f"d = {d}"] = dataset(variables, coordinates, about)
    return panels


def plot(data: Panels) -> Figure:
    """Draw the risk, and the overlaps of the first neuron with each direction of the target, against time."""
    with canvas(11.5, 4.6) as figure:
        left, right = figure.subplots(1, 2)
        _draw_risk(left, data)
        _draw_overlaps(right, data)
        figure.legend(**_legend(data))
    return figure


def _markers(data: Panels) -> list[tuple[str, Dataset, str]]:
    return [(name, panel, "oDs^"[k % 4]) for k, (name, panel) in enumerate(data.items())]


def _draw_risk(axes: Axes, data: Panels) -> None:
    first = next(iter(data.values()))
    colour = LOOKS["NN"]["color"]
    begin, end = first.plateau.values
    if np.isfinite(end):
        axes.axvspan(begin, end, color="#eeeeee", zorder=0)
        height = float(np.interp(np.sqrt(begin * end), first.line, first.line_risk))
        axes.annotate("plateau:\nneurons alike", (np.sqrt(begin * end), 2.5 * height), ha="center", color="#555555")
    axes.plot(first.line, first.line_risk, color=colour, zorder=2)
    for k, (_, panel, marker) in enumerate(_markers(data)):
        axes.errorbar(panel.time, panel.risk, panel.risk_stderr, zorder=3, **_dots(k, len(data), marker))
    axes.set(xscale="log", yscale="log", xlabel="t = steps/d", ylabel=RISK)
    axes.set_ylim(bottom=5e-4)
    axes.set_title("The risk falls, rests, and falls again")


def _draw_overlaps(axes: Axes, data: Panels) -> None:
    first = next(iter(data.values()))
    for m, style in enumerate(("-", "--")):
        axes.plot(first.line, first.line_R[:, 0, m], color=LOOKS["NN"]["color"], linestyle=style, zorder=2)
        for k, (_, panel, marker) in enumerate(_markers(data)):
            axes.errorbar(
                panel.time, panel.R[:, 0, m], panel.R_stderr[:, 0, m], zorder=3, **_dots(k, len(data), marker)
            )
    begin, end = first.plateau.values
    if np.isfinite(end):
        axes.axvspan(begin, end, color="#eeeeee", zorder=0)
    axes.set(xscale="log", xlabel="t = steps/d", ylabel="overlap of the first neuron with the target")
    axes.set_title("Neurons find the subspace first, then each its own direction")


def _dots(k: int, count: int, marker: str) -> dict[str, Any]:
    """Return the look of the k-th of `count` dimensions: open around the next, as all lie on the line."""
    colour = scale_colour(0.15 + 0.7 * k / max(1, count - 1)) if count > 1 else LOOKS["NN"]["color"]
    last = k == count - 1
    open_ = {} if last else {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.4}
    return {"color": colour, "linestyle": "", "marker": marker, "markersize": 4.5 + 4.5 * (count - 1 - k), **open_}


def _legend(data: Panels) -> dict[str, Any]:
    colour, step = LOOKS["NN"]["color"], next(iter(data.values())).attrs["step_size"]
    handles = [
        entry(f"equations, d → ∞, η = {step:g}; right: R$_{{11}}$", color=colour),
        entry("R$_{12}$", color=colour, linestyle="--"),
    ]
    handles += [
        entry(f"SGD, {name}, {panel.attrs['runs']} runs", **_dots(k, len(data), marker))
        for k, (name, panel, marker) in enumerate(_markers(data))
    ]
    return {"handles": handles, "loc": "outside lower center", "ncols": len(handles)}


def dots_of(name: str, panel: Dataset) -> list[Dot]:
    """Return the risks of SGD before the plateau ends, beside the equations, which leave out relative orders of 1/d.

    Later each run leaves the plateau at a time of its own. All dots are of the same runs: neighbours move together.
    """
    d, end = panel.attrs["d"], float(panel.plateau.sel(end="end"))
    before = np.flatnonzero(panel.time.values < (end if np.isfinite(end) else np.inf))
    return [
        Dot(f"t = {panel.time.values[i]:.3g}", panel.risks.values[i], told, told / d, stream=name, compared=False)
        for i, told in zip(before, panel.theory.values[before].tolist(), strict=True)
    ]


def verdict(data: Panels) -> list[str]:
    """Compare SGD with the equations before the plateau ends, the time at which it ends, and what a plateau is."""
    lines = [f"{'d':>6}{'largest z':>11}{'parted: theory':>16}{'SGD':>18}"]
    wrong = []
    for name, panel in data.items():
        begin, end = panel.plateau.values
        dots = dots_of(name, panel)
        risks, z = judged(dots).answer(), max(abs(dot.z) for dot in dots)
        theory, sgd, error = (float(panel[key]) for key in ("parted", "parted_sgd", "parted_stderr"))
        lines.append(f"{panel.attrs['d']:>6}{z:>11.1f}{theory:>16.2f}{f'{sgd:.2f} ± {error:.2f}':>18}")
        if not risks.holds:
            wrong.append(f"the risk of SGD at {name} ({risks})")
        if not abs(sgd / theory - 1.0) <= _TIME + _FAR * error / theory:
            wrong.append(f"the time at which neurons part at {name}")
        if not np.isfinite(end):
            wrong.append(f"no plateau that ends at {name}")
            continue
        R = panel.line_R.values[:, 0, :]
        gap = np.interp(np.sqrt(begin * end), panel.line, R[:, 0] - R[:, 1])
        if not (abs(gap) < _ALIKE and R[-1, 0] - R[-1, 1] > _APART):
            wrong.append(f"neurons that are alike on the plateau and part after it, at {name}")
    told = "SGD follows the equations on to the plateau, on which all neurons are alike, and leaves it when they part."
    return [*lines, answer(not wrong, told, f"Not as predicted: {', '.join(wrong)}.")]


_TITLE = "A committee of neurons learnt by SGD: plateau and symmetry breaking (Saad and Solla 1995)"
_FAULTS = (
    wrong_rows("risks a fifth too high", data, "risk", lambda k, risk: 1.2 * risk, seen="the risk of SGD"),
    wrong_rows(
        "a clock that runs too fast by half", data, "time", lambda k, time: 1.5 * time, seen="the time at which"
    ),
)
EXPERIMENT = Experiment("plateau", _TITLE, PRESETS, work, data, plot, verdict, place=53, faults=_FAULTS)

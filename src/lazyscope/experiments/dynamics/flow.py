"""Risk along training, with lines: gradient flow, and what a finite step size adds to it (Figure 1, right, of L).

L: Ghorbani, Mei, Misiakiewicz and Montanari 2019, whose right-hand frame has traces of SGD and no theory beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from lazyscope.errors import InvalidParameter
from lazyscope.evidence.run import Run
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, canvas, dataset, wrong_rows
from lazyscope.experiments.frame.drawing import DARK, DASHES, entry, name_ends, shade
from lazyscope.experiments.frame.draws import attributes
from lazyscope.experiments.frame.types import Axes, DataArray, Dataset, Figure, Panels
from lazyscope.limits.flow.curve import flow
from lazyscope.limits.sgd.finite_step import finite_step
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, RandomFeatures, Trained
from lazyscope.runs.pictures import LOOKS, RISK
from lazyscope.runs.side_by_side import as_normal
from lazyscope.runs.verbs import exact

_REGIMES: dict[str, Trained | NeuralTangent] = {"NT": NeuralTangent(), "NN": Trained()}
_FAR = 3.0  # standard errors


@dataclass(frozen=True, eq=False)
class TraceDraw(Draw):
    """One draw of weights and data: the risk of SGD against samples, its prediction, and the flow of ε → 0.

    >>> protocol = SGD(steps=100, batch=20, step_sizes=(0.01,), decay=(), test=1)
    >>> row = TraceDraw(QuadraticTarget([2.0, 1.0, 0.5]), NeuralTangent(), 2, protocol).compute()
    >>> sorted(row), bool(abs(row["simulated"][-1] - row["predicted"][-1]) < 0.1)
    (['flow', 'predicted', 'samples', 'simulated'], True)
    """

    problem: QuadraticTarget
    regime: Trained | NeuralTangent
    width: int
    protocol: SGD
    number: int = 0
    seed: int = 0

    words = "{0.regime.label}, N = {0.width}, ε = {0.protocol.step_sizes[0]:g}, draw {draw}"
    costs = ("width", "problem.d", "protocol.steps")

    def compute(self) -> Row:
        """Train, and predict for the same weights."""
        protocol = self.protocol
        if len(protocol.step_sizes) != 1:
            raise InvalidParameter.of("TraceDraw", "protocol", "have one step size", protocol.step_sizes)
        sizes = {"width": (self.width,)}
        run = Run(
            "simulate", self.problem, self.regime, sizes, None, protocol, number=self.number, seed=self.seed
        ).compute()
        line = finite_step(
            self.problem,
            self.regime,
            width=self.width,
            step_size=protocol.step_sizes[0],
            batch=protocol.batch,
            samples=run["samples"].astype(int),
            decay=protocol.decay,
            second_layer="fixed" if protocol.second_layer == "fixed" else "trained",
            seed=self.seed,
            draw=self.number,
            paths=1,
        )
        return {
            "samples": run["samples"],
            "simulated": run["trace"][0, 0],
            "predicted": line.risk.values,
            "flow": line.flow.values,
        }


def assemble(draws: Sequence[TraceDraw], rows: Sequence[Row]) -> Dataset:
    """Return the mean trace of draws that differ in number alone, beside its prediction.

    Over `point`, with `samples` and `time` = Σε: `simulated` and `stderr`, `predicted` and `flow`, means over the same
    weights; `added` and `added_stderr`, simulated over flow less 1, and `added_predicted`; `finite_size`, the part of
    the noise that the prediction leaves out, some 1/min(N, d) of it (the diffusion has Tr X·I + X where the exact
    covariance has Tr X·I + 2X); z, what of the difference is beyond that, draw by draw, in standard errors as `compare`
    counts them.
    """
    first = draws[0]
    table = {name: np.array([row[name] for row in rows]) for name in ("simulated", "predicted", "flow")}
    difference = table["simulated"] - table["predicted"]
    added = table["simulated"] / table["flow"] - 1.0
    roots = np.sqrt(len(rows))
    means = {name: values.mean(axis=0) for name, values in table.items()}
    finite_size = np.abs(means["predicted"] - means["flow"]) / min(first.width, first.problem.d)
    beyond = np.maximum(np.abs(difference.mean(axis=0)) - finite_size, 0.0)
    values: dict[str, Any] = {
        **means,
        "stderr": table["simulated"].std(axis=0, ddof=1) / roots,
        "added": added.mean(axis=0),
        "added_stderr": added.std(axis=0, ddof=1) / roots,
        "added_predicted": np.mean(table["predicted"] / table["flow"] - 1.0, axis=0),
        "finite_size": finite_size,
        "z": as_normal(beyond, difference.std(axis=0, ddof=1) / roots, len(rows)),
    }
    protocol, samples = first.protocol, rows[0]["samples"]
    clock = np.cumsum([protocol.rate(protocol.step_sizes[0], step) for step in range(protocol.steps)])
    time = clock[(samples / protocol.batch).astype(int) - 1]
    coordinates = {"samples": ("point", samples), "time": ("point", time)}
    return dataset({name: ("point", value) for name, value in values.items()}, coordinates)


@dataclass(frozen=True)
class FlowPreset(Preset):
    """Dimension, widths as N/d, draws; for NT and NN the time of training, a small and a larger step size."""

    d: int
    draws: int
    ratios: tuple[float, ...] = (0.2, 0.5, 2.0)
    until: tuple[float, float] = (40.0, 20.0)
    small: tuple[float, float] = (0.005, 0.002)
    larger: tuple[float, float] = (0.02, 0.005)
    batch: int = 100

    @property
    def problem(self) -> QuadraticTarget:
        """The paper's target."""
        return QuadraticTarget.exponential(self.d)

    @property
    def widths(self) -> list[int]:
        """N."""
        return [round(ratio * self.d) for ratio in self.ratios]

    def draws_of(self, label: str, N: int, size: float) -> list[TraceDraw]:
        """Return the draws of one trace: constant steps, of which theory and simulation see the same number."""
        until = self.until[list(_REGIMES).index(label)]
        protocol = SGD(steps=round(until / size), batch=self.batch, step_sizes=(size,), decay=(), test=1)
        return [TraceDraw(self.problem, _REGIMES[label], N, protocol, number) for number in range(self.draws)]

    def traces(self) -> dict[str, list[tuple[str, int, float]]]:
        """Regime, width and step size of every trace, by panel: all widths at small steps; N = d/2 at both."""
        steps = {label: (small, larger) for label, small, larger in zip(_REGIMES, self.small, self.larger, strict=True)}
        return {
            "widths": [(label, N, steps[label][0]) for label in _REGIMES for N in self.widths],
            "steps": [(label, round(self.d / 2), size) for label in _REGIMES for size in steps[label]],
        }


PRESETS = {
    "quick": FlowPreset("one minute", d=60, draws=5),
    # at d = 200 steps of 0.005 are near the largest that a trained network bears
    "paper": FlowPreset("about ten minutes", d=200, draws=8, small=(0.005, 0.001), larger=(0.02, 0.002)),
}


def work(preset: FlowPreset) -> list[TraceDraw]:
    """Return the draws of every trace; a draw that both panels show is one task."""
    return [draw for some in preset.traces().values() for trace in some for draw in preset.draws_of(*trace)]


def data(preset: FlowPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return traces with their predictions, a panel for widths and one for step sizes; and the flow of RF."""
    left, panels = iter(rows), {}
    for name, some in preset.traces().items():
        ones = [assemble(preset.draws_of(*trace), list(islice(left, preset.draws))) for trace in some]
        panels[name] = _joined(preset, some, ones)
    panels["features"] = _features(preset, float(panels["widths"].time.max()))
    return panels


def _joined(preset: FlowPreset, some: list[tuple[str, int, float]], ones: list[Dataset]) -> Dataset:
    """Put traces together, the last points of each; add where each would end after endless flow."""
    import xarray as xr

    points = min(trace.sizes["point"] for trace in ones)
    whole = xr.concat([trace.isel(point=slice(-points, None)) for trace in ones], "trace")
    labels, widths, sizes = zip(*some, strict=True)
    floors = [float(exact(preset.problem, _REGIMES[label], width=N, draws=preset.draws).risk) for label, N, _ in some]
    whole = whole.assign(floor=("trace", np.array(floors)))
    whole = whole.assign_coords(
        regime=("trace", list(labels)), width=("trace", list(widths)), step_size=("trace", list(sizes))
    )
    known = attributes(preset, "problem", "d", "batch", "draws")
    return whole.assign_attrs(known, seed=0, citations="ghorbani2019limitations")


def _features(preset: FlowPreset, until: float) -> Dataset:
    """Return the flow of random features, which no SGD is simulated for: they are fitted, not trained."""
    times, regime, N = np.geomspace(1e-3 * until, until, 60), RandomFeatures(), preset.widths[-1]
    paths = [flow(preset.problem, regime, times=times, width=N, draw=k).risk.values for k in range(preset.draws)]
    floor = float(exact(preset.problem, regime, width=N, draws=preset.draws).risk)
    values: dict[str, Any] = {"risk": ("time", np.mean(paths, axis=0)), "floor": floor}
    return dataset(values, {"time": times, "width": N}, attributes(preset, "problem", "d"))


def plot(data: Panels) -> Figure:
    """Draw the flow of every width against time with SGD at small steps on it; both step sizes at N = d/2 beside it."""
    with canvas(11.5, 4.9) as figure:
        left, right = figure.subplots(1, 2)
        _draw_widths(left, data["widths"], data["features"])
        _draw_steps(right, data["steps"])
        d, batch = data["widths"].attrs["d"], data["widths"].attrs["batch"]
        left.set_title(f"Gradient flow (lines) and SGD (dots), d = {d}")
        right.set_title(f"What finite steps add, N = d/2, batch {batch}")
        handles = [
            entry(f"SGD, mean of {data['steps'].attrs['draws']} draws", color=DARK, marker="o", linestyle=""),
            entry("left: flow, right: prediction at ε", color=DARK, linewidth=1.6),
            entry("where the flow ends (exact)", color=DARK, linewidth=0.8, linestyle=DASHES),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _draw_widths(axes: Axes, panel: Dataset, features: Dataset) -> None:
    axes.set_ylim(-0.03, 1.03)  # first: the names of the lines look for their places in it
    axes.set(xscale="log", xlabel="t = Σε, time of gradient flow", ylabel=RISK)
    axes.set_xlim(0.1, float(panel.time.max()))
    widths, names = sorted(set(panel.width.values.tolist())), []
    for k in range(panel.sizes["trace"]):
        at = panel.isel(trace=k)
        label, N = str(at.regime.values), int(at.width)
        colour = shade(LOOKS[label]["color"], (1.45, 1.0, 0.6)[widths.index(N) % 3])
        _line(axes, at.time, at.flow, float(at.floor), colour)
        _dots(axes, at, at.simulated, at.stderr, colour)
        names.append((float(at.flow[-1]), f"{label}, N = {N}", colour))
    colour = LOOKS["RF"]["color"]
    _line(axes, features.time, features.risk, float(features.floor), colour)
    name_ends(axes, [*names, (float(features.risk[-1]), f"RF, N = {int(features.width)}", colour)])


def _line(axes: Axes, time: Any, risk: Any, floor: float, colour: Any) -> None:
    axes.plot(time, risk, color=colour, linewidth=1.6, zorder=2)
    axes.axhline(floor, color=colour, linewidth=0.8, linestyle=DASHES, zorder=1)


def _draw_steps(axes: Axes, panel: Dataset) -> None:
    for k in range(panel.sizes["trace"]):
        at = panel.isel(trace=k)
        label, size = str(at.regime.values), float(at.step_size)
        small = size == float(np.min(panel.step_size.values[panel.regime.values == label]))
        colour = shade(LOOKS[label]["color"], 1.45 if small else 1.0)
        axes.plot(at.time, 100.0 * at.added_predicted, color=colour, linewidth=1.6, zorder=2)
        _dots(axes, at, 100.0 * at.added, 100.0 * at.added_stderr, colour)
        axes.plot([], [], label=f"{label}, ε = {size:g}", **_look(label, colour))
    axes.axhline(0.0, color="#333333", linewidth=1.0, linestyle=":", zorder=1)
    axes.set(xscale="log", xlabel="t = Σε, time of gradient flow", ylabel="risk above that of the flow, %")
    axes.set_xlim(0.1, float(panel.time.max()))
    axes.legend(loc="upper left")


def _look(label: str, colour: Any) -> dict[str, Any]:
    edge = {"markeredgecolor": colour} if "markeredgecolor" in LOOKS[label] else {}
    return {**LOOKS[label], "color": colour, **edge}


def _dots(axes: Axes, panel: Dataset, values: DataArray, error: DataArray, colour: Any) -> None:
    """Draw every second dot: all of them would hide the line."""
    every = slice(None, None, -2)
    look = _look(str(panel.regime.values), colour)
    look["markersize"] = min(look["markersize"], 6.5)
    axes.errorbar(panel.time[every], values[every], error[every], linestyle="", zorder=3, **look)


def verdict(data: Panels) -> list[str]:
    """Return how far every trace is from its prediction, and from the flow without the noise of its steps."""
    lines = [f"{'':<14}{'ε':>7}{'end: SGD':>18}{'predicted':>11}{'flow':>9}{'from prediction':>17}{'largest z':>11}"]
    far, seen, compared = 0, set(), 0
    for panel in ("widths", "steps"):
        for k in range(data[panel].sizes["trace"]):
            at = data[panel].isel(trace=k)
            name, size = f"{at.regime.values}, N = {int(at.width)}", float(at.step_size)
            if (name, size) in seen:
                continue
            seen.add((name, size))
            compared += at.sizes["point"]
            last = at.isel(point=-1)
            end = f"{float(last.simulated):.4f} ± {float(last.stderr):.4f}"
            share = float(np.max(np.abs(at.simulated - at.predicted) / at.simulated))
            z = float(at.z.max())
            lines.append(
                f"{name:<14}{size:>7g}{end:>18}{float(last.predicted):>11.4f}{float(last.flow):>9.4f}{share:>16.2%}{z:>11.1f}"
            )
            far += z > _FAR
    rule = f"{_FAR:g} standard errors plus 1/min(N, d) of the noise"
    ending = answer(
        not far,
        f"SGD lies on the prediction: all {compared} dots within {rule}.",
        f"SGD and prediction differ: {far} of {len(seen)} traces leave {rule}.",
    )
    return [*lines, ending]


_TITLE = "Risk along training: gradient flow, and what finite steps add to it (Limitations, Figure 1, right)"
_FAULTS = (wrong_rows("predictions 10 % too high", data, "predicted", lambda k, risk: 1.1 * risk, seen="4 of 4"),)
EXPERIMENT = Experiment("flow", _TITLE, PRESETS, work, data, plot, verdict, place=51, faults=_FAULTS)

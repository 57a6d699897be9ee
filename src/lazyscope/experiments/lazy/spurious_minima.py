"""No spurious minima for N ≥ 2d, or N ≥ d ∧ √(2n): descents from many starts, and the Hessians where they end.

σ = u², second layer fixed (Ghorbani et al. 2019, §1.2; Soltanolkotabi et al. 2019: half of it 1, half −1, N ≥ 2d; Du
and Lee 2018: all of it 1, N ≥ d ∧ √(2n)). An end is bad if it is a minimum, no eigenvalue of its Hessian being
negative, with a risk above the lowest of its width. On random labels there are none long before the bounds. The bounds
2d and d are sharp for some data: `QuadraticRisk.trap` has a bad minimum at N = bound − 1, in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, dataset, wrong_rows
from lazyscope.experiments.frame.drawing import frames
from lazyscope.experiments.frame.draws import split
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.numerics.blas import threads_for
from lazyscope.runs.pictures import LOOKS
from lazyscope.training.factored import QuadraticRisk, enough_neurons, second_layer
from lazyscope.weights import generator

Data = Literal["trap", "random labels"]
_LAYERS = {"v = 1": False, "v = ±1": True}
_ABOVE = 1e-6  # the lowest risk of its width, relative to that of predicting 0
_FLAT = 1e-5  # below which an eigenvalue of the Hessian counts as negative
_OFFSETS = (-4, -3, -2, -1, 0, 1)  # N − bound of the trap


@dataclass(frozen=True)
class SpuriousDraw(Draw):
    """Descents at one width: risks and curvatures where they end, first those from random starts."""

    data: Data
    both: bool
    d: int
    width: int
    starts: int
    number: int = 0
    seed: int = 0

    words = "{0.data}, d = {0.d}, N = {0.width}"
    costs = ("d", "d", "width", "starts")

    @property
    def samples(self) -> int:
        """How many random labels there are: n, so that √(2n) < d."""
        return round(self.d * self.d / 4.0)

    @property
    def bound(self) -> int:
        """The N from which there are no spurious minima."""
        return enough_neurons(self.d, self.both, None if self.data == "trap" else self.samples)

    def compute(self) -> Row:
        """Descend from `starts` random starts and, on the trap, from as many near its minimum."""
        rng = generator(self.seed, self.number, self.d, self.width)
        v, risk = second_layer(self.width, self.both), self._risk()
        begins = [rng.standard_normal((self.d, self.width)) / sqrt(self.d) for _ in range(self.starts)]
        if self.data == "trap":
            begins += [self._near(v, rng) for _ in range(self.starts)]
        with threads_for(0):  # one thread: a descent amplifies the last bit
            ends = [risk.descend(begin, v) for begin in begins]
            values = [risk.value(end, v) for end in ends]
            curvatures = [risk.curvature(end, v) for end in ends]
        return {
            "risk": np.array([value for value, _ in values]) / (0.5 * risk.energy),
            "slope": np.array([np.max(np.abs(gradient)) for _, gradient in values]),
            "curvature": np.array(curvatures),
        }

    def _risk(self) -> QuadraticRisk:
        if self.data == "trap":
            return QuadraticRisk.trap(self.d, -1.0 if self.both else 1.0)
        data = generator(self.seed, self.number, self.d)
        return QuadraticRisk.of_sample(
            data.standard_normal((self.samples, self.d)), data.standard_normal(self.samples) + (not self.both)
        )

    def _near(self, v: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return a start near the trap: neurons of one sign orthogonal to x₁ and to one another, the others small."""
        d, length = self.d, 1.0 / sqrt(self.d - 1.0)
        W = 0.05 * length * rng.standard_normal((d, self.width))
        chosen = np.flatnonzero(v < 0.0 if self.both else v > 0.0)[: d - 1]
        W[1:, chosen] += length * np.linalg.qr(rng.standard_normal((d - 1, d - 1)))[0][:, : len(chosen)]
        return W


def bad(row: Row) -> FloatArray:
    """Say of each end whether it is bad: a minimum above the lowest one."""
    above = row["risk"] > float(np.min(row["risk"])) + _ABOVE
    return np.asarray(above & (row["curvature"] > -_FLAT), dtype=np.float64)


@dataclass(frozen=True)
class SpuriousPreset(Preset):
    """Dimensions, starts at each width, and draws of random labels."""

    d: tuple[int, ...]
    starts: int
    draws: int

    def part(self, data: Data, both: bool, d: int, number: int) -> list[SpuriousDraw]:
        """Return the widths of one problem: around the bound for the trap, all up to it for random labels."""
        bound = SpuriousDraw(data, both, d, 1, self.starts).bound
        widths = [bound + offset for offset in _OFFSETS] if data == "trap" else range(1, bound + 2)
        return [SpuriousDraw(data, both, d, N, self.starts, number) for N in widths]

    @property
    def parts(self) -> list[list[SpuriousDraw]]:
        """All problems: the trap for each second layer and d, then draws of random labels."""
        trap = [self.part("trap", both, d, 0) for both in _LAYERS.values() for d in self.d]
        return trap + [
            self.part("random labels", both, d, number)
            for both in _LAYERS.values()
            for d in self.d
            for number in range(self.draws)
        ]


PRESETS = {
    "quick": SpuriousPreset("two minutes", (6, 7, 8, 9, 10, 11, 12), 10, 2),
    "paper": SpuriousPreset("half an hour", (6, 7, 8, 9, 10, 11, 12, 14, 16), 40, 5),
}


def work(preset: SpuriousPreset) -> list[SpuriousDraw]:
    """Return the descents of every problem and width."""
    return [draw for part in preset.parts for draw in part]


def data(preset: SpuriousPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return the share of bad ends around the bound of the trap, and the smallest N without any, for both data."""
    own = split(rows, preset.parts)
    shape = len(_LAYERS), len(preset.d)
    traps, others = own[: shape[0] * shape[1]], own[shape[0] * shape[1] :]
    half = preset.starts
    shares = np.array([[[bad(row)[part].mean() for row in some] for some in traps]
                       for part in (slice(0, half), slice(half, None))])  # fmt: skip
    trapped = np.array([smallest(part, some) for part, some in zip(preset.parts, traps, strict=False)])
    random = np.array(
        [smallest(part, some) for part, some in zip(preset.parts[len(traps) :], others, strict=True)]
    ).reshape(*shape, preset.draws)
    bounds = np.array([[part[0].bound for part in preset.parts[: len(traps)]]]).reshape(shape)
    random_bounds = np.array([part[0].bound for part in preset.parts[len(traps) :: preset.draws]]).reshape(shape)
    beyond = [_beyond(part, some) for part, some in zip(preset.parts, own, strict=True)]
    slope = max(float(np.max(row["slope"])) for row in rows)
    about = {"citations": "soltanolkotabi2019theoretical,du2018power", "starts": preset.starts, "slope": slope}
    coordinates = {"layer": list(_LAYERS), "d": list(preset.d)}
    return {
        "trap": dataset(
            {"share": (("start", "layer", "d", "offset"), shares.reshape(2, *shape, len(_OFFSETS)))},
            {**coordinates, "start": ["random", "near"], "offset": list(_OFFSETS)}, about,
        ),
        "smallest": dataset(
            {
                "trap": (("layer", "d"), trapped.reshape(shape).astype(float)),
                "trap_bound": (("layer", "d"), bounds.astype(float)),
                "random": (("layer", "d"), random.max(axis=-1).astype(float)),
                "random_bound": (("layer", "d"), random_bounds.astype(float)),
            },
            coordinates, about | {"beyond": int(sum(beyond)), "draws": preset.draws},
        ),
    }  # fmt: skip


def smallest(part: Sequence[SpuriousDraw], rows: Sequence[Row]) -> int:
    """Return the smallest N from which on no end is bad: one more than the last with a bad end, or the first N."""
    with_bad = [draw.width for draw, row in zip(part, rows, strict=True) if np.any(bad(row))]
    return with_bad[-1] + 1 if with_bad else part[0].width


def _beyond(part: Sequence[SpuriousDraw], rows: Sequence[Row]) -> int:
    """Return how many ends are bad at widths that a theorem covers."""
    return sum(int(np.sum(bad(row))) for draw, row in zip(part, rows, strict=True) if draw.width >= draw.bound)


_COLOURS = {"v = 1": LOOKS["NN"]["color"], "v = ±1": LOOKS["RF"]["color"]}
_STARTS = {"near": ("near the trap", "o", "-"), "random": ("random", "D", ":")}


def _draw_shares(axes: Axes, panel: Dataset) -> None:
    for layer, colour in _COLOURS.items():
        for start, (words, marker, line) in _STARTS.items():
            at = panel.sel(layer=layer, start=start)
            look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": line, "markersize": 6.5}
            shift = 0.04 if layer == "v = 1" else -0.04  # the two would cover each other
            label = f"{layer}, starts {words}"
            axes.plot(panel.offset + shift, at.share.mean("d"), label=label, linewidth=1.2, **look)
    axes.axvline(0.0, color="#777777", linewidth=0.9, linestyle=":")
    axes.set(xlabel="N − bound (d for v = 1, 2d for v = ±1)", ylabel="share of ends that are bad minima")
    d = panel.d.values
    axes.set_title(f"A law with a trap, mean over d = {d[0]} … {d[-1]}")
    axes.set_xticks(panel.offset.values)
    axes.legend(loc="center left", bbox_to_anchor=(0.0, 0.55))


def _draw_smallest(axes: Axes, panel: Dataset) -> None:
    d = panel.d.values
    for layer, colour in _COLOURS.items():
        at = panel.sel(layer=layer)
        axes.plot(
            d, at.trap_bound, color=colour, linewidth=1.0, label=f"{layer}: bound {'2d' if '±' in layer else 'd'}"
        )
        axes.plot(d, at.trap, color=colour, marker="o", linestyle="", markersize=7.0, label=f"{layer}: trap")
        aside = d + (0.08 if "±" in layer else -0.08)  # the two would cover each other
        axes.plot(aside, at.random, color=colour, marker="D", linestyle="", markersize=5.0,
                  label=f"{layer}: random labels")  # fmt: skip
    positive = panel.sel(layer="v = 1")
    axes.plot(
        d, positive.random_bound, color="#555555", linestyle=":", label="v = 1: bound √(2n), n = d²/4 random labels"
    )
    axes.set(xlabel="d", ylabel="smallest N without bad ends", ylim=(0.0, 2.2 * d[-1]))
    axes.set_title("The smallest network without spurious minima")
    axes.set_xticks(d)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=9.0)


plot = frames((11.0, 5.0), (_draw_shares, "trap"), (_draw_smallest, "smallest"))
"""The share of bad ends around the bound, and the smallest N without any against d."""


def verdict(data: Panels) -> list[str]:
    """Return the smallest N without bad ends beside the bounds, and whether these hold and are sharp within one."""
    panel = data["smallest"]
    lines = [f"{'':>8}{'d':>4}{'bound':>8}{'trap':>6}{'bound':>12}{'random labels':>15}"]
    for layer in panel.layer.values.tolist():
        for d in panel.d.values.tolist():
            at = panel.sel(layer=layer, d=d)
            cells = f"{float(at.trap_bound):>8.0f}{float(at.trap):>6.0f}{float(at.random_bound):>12.0f}"
            lines.append(f"{layer:>8}{d:>4}{cells}{float(at.random):>15.0f}")
    beyond = int(panel.attrs["beyond"])
    apart = int(np.sum(np.abs(panel.trap - panel.trap_bound) > 1.0))
    early = (panel.random_bound - panel.random).values
    lines.append(f"random labels lose their bad ends {early.min():.0f} to {early.max():.0f} neurons before the bound")
    told = "No bad minimum at a width that the theorems cover; with a trap there are some up to one neuron below."
    no = f"Not as stated: {beyond} bad ends beyond the bounds, {apart} smallest N of the trap not within one of them."
    return [*lines, answer(beyond == 0 and apart == 0, told, no)]


_TITLE = "No spurious minima for N ≥ 2d or N ≥ d ∧ √(2n): where bad ends of descent vanish (Limitations, §1.2)"
_FAULTS = (
    wrong_rows("bad ends at every width", data, "risk", lambda k, risk: risk + 0.1 * (np.arange(risk.size) == 1)),
    wrong_rows("ends that are all saddles", data, "curvature", lambda k, curvature: curvature - 1.0),
)
EXPERIMENT = Experiment("spurious-minima", _TITLE, PRESETS, work, data, plot, verdict, place=19, faults=_FAULTS)

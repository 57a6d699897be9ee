"""From lazy to rich: what an output scale α does to a trained network, along training and in the end.

f = α(h(W) − h(W₀)) + c moves its weights by O(1/α): for α → ∞ it is its own linearisation, NT, and ends at the risk of
NT for the same W₀; for α → 0 it forgets W₀ and ends at the floor of Theorem 3 (Chizat, Oyallon and Bach 2019; Montanari
2019, "lazy limit"). In between, σ = u², the end is a closed form (`exact`, Σ_{i>N}λ_i(B + αK₀)²/‖B‖²).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, positive_numbers, whole_number
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.drawing import DASHES, frames
from lazyscope.experiments.frame.draws import computed, exponents, grouped, provenance
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.limits import declared
from lazyscope.limits.flow.curve import flow
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, Trained
from lazyscope.runs.pictures import BLUE, GREEN, LOOKS, ORANGE, RED, RISK, scale_colour
from lazyscope.runs.verbs import exact, limit
from lazyscope.training.sgd import lazy_to_rich as training

QUANTITIES = training.QUANTITIES
_TRACES = 4  # scales α whose way is drawn
_SHOWN = {
    "movement": ("weights, ‖W − W₀‖/‖W₀‖", RED, "D"),
    "drift": ("tangent kernel, ‖K − K₀‖/‖K₀‖", BLUE, "o"),
    "distance": ("network − tangent model, over ‖f⋆‖", GREEN, "^"),
    "curvature": ("network − its linearisation, over ‖f⋆‖", ORANGE, "s"),
}
_TOLERANCE = 0.05  # of an exponent, as fitted over finite α
_NEAR = 0.03  # of a risk
_FINE = tuple(np.geomspace(0.001, 10_000.0, 15).round(4).tolist())


@dataclass(frozen=True, eq=False)
class LazyToRichDraw(Draw):
    """One training at one α: what it measures on its way, for one draw of the weights and of the data."""

    problem: QuadraticTarget
    width: int
    alpha: float
    init: float = 1.0
    protocol: SGD | None = None
    number: int = 0
    seed: int = 0

    words = "α = {0.alpha:g}, draw {draw}"
    costs = ("width", "problem.d", "plan.steps")

    @property
    def plan(self) -> SGD:
        """The protocol, the usual one for this α where none is given."""
        return self.protocol or training.plan(self.problem, self.alpha, init=self.init)

    def pieces(self) -> list[LazyToRichDraw]:
        """Return itself, the protocol written out."""
        return [replace(self, protocol=self.plan)]

    def compute(self) -> Row:
        """Train."""
        regime = Trained(alpha=self.alpha, init=self.init)
        return {**training.train(self.problem, regime, self.width, self.plan, self.seed, self.number)}


def lazy_to_rich(
    problem: QuadraticTarget,
    *,
    width: int,
    alpha: Any,
    init: float = 1.0,
    draws: int = 1,
    seed: int = 0,
    protocol: SGD | None = None,
) -> Dataset:
    """Return what training with output scale α does, against α and along training, for σ = u².

    Parameters
    ----------
    problem
        A `QuadraticTarget` with B ⪰ 0.
    width
        N.
    alpha
        Output scales, positive: a sequence, which becomes the dimension `alpha`.
    init
        Scale of the initial weights; in the end it counts as init²·α does.
    draws, seed
        Independent repetitions, of the weights and of the data.
    protocol
        `SGD(…)` with one step size, for every α; by default one that suits α.

    Returns
    -------
    xarray.Dataset
        Over (`alpha`, `point`), means over draws: `risk`, `curvature`, `distance`, `movement`, `drift`, `alignment`
        (see their `long_name`) and `time` = Σε. Over `alpha`: `end`, the risk when training ends, `end_stderr`, and
        `exact`, its closed form; `tangent` and `floor`, the risks of NT (same weights) and of Theorem 3.

    Examples
    --------
    >>> import lazyscope as ls
    >>> short = ls.SGD(steps=300, batch=20, step_sizes=(0.005,), decay=())
    >>> found = lazy_to_rich(ls.QuadraticTarget.exponential(12), width=6, alpha=[3.0, 300.0], protocol=short)
    >>> bool(found.movement[0, -1] > 10 * found.movement[1, -1])
    True
    """
    if not isinstance(problem, QuadraticTarget):
        raise NoTheorem.of("This report", "a QuadraticTarget", type(problem).__name__, "Use simulate.")
    N, draws = whole_number(width, "lazy_to_rich", "width"), whole_number(draws, "lazy_to_rich", "draws")
    seed = whole_number(seed, "lazy_to_rich", "seed", least=0)
    scales = np.atleast_1d(positive_numbers(alpha, "lazy_to_rich", "alpha", "Pass scales like [0.1, 1, 10]."))
    if protocol is not None and len(protocol.step_sizes) != 1:
        raise InvalidParameter.of("lazy_to_rich", "protocol", "have one step size", protocol.step_sizes)
    Trained(alpha=float(scales[0]), init=init)
    work = [LazyToRichDraw(problem, N, float(a), init, protocol, k, seed) for a in scales for k in range(draws)]
    return assemble(work, computed(work))


def assemble(work: list[LazyToRichDraw], rows: list[Row]) -> Dataset:
    """Return the report of some draws: every α with the same numbers of draws."""
    first, by_scale = work[0], grouped(work, rows, "alpha")
    scales = sorted(by_scale)
    draws = len(by_scale[scales[0]])
    points = min(len(row["time"]) for row in rows)

    def mean(name: str) -> FloatArray:
        return np.array([np.mean([row[name][-points:] for row in by_scale[a]], axis=0) for a in scales])

    ends = np.array([[row["risk"][-1] for row in by_scale[a]] for a in scales])
    variables: dict[str, Any] = {name: (("alpha", "point"), mean(name)) for name in ("time", *QUANTITIES)}
    mean_end, stderr = over_draws(ends)
    variables["end"] = ("alpha", mean_end)
    if draws > 1:
        variables["end_stderr"] = ("alpha", stderr)
    same = {"width": first.width, "draws": draws, "seed": first.seed}
    closed = [float(exact(first.problem, Trained(alpha=a, init=first.init), **same).risk) for a in scales]
    variables["exact"] = ("alpha", np.array(closed))
    variables["tangent"] = float(exact(first.problem, NeuralTangent(), **same).risk)
    variables["floor"] = float(limit(first.problem, Trained(), rho=first.width / first.problem.d).risk)
    result = dataset(variables, {"alpha": scales})
    for name, words in QUANTITIES.items():
        result[name].attrs["long_name"] = words
    told = provenance("lazy-to-rich", "measured", "ghorbani2019limitations,chizat2019lazy", first.seed)
    return result.assign_attrs(problem=str(first.problem), **same, **told)


@dataclass(frozen=True)
class LazyToRichPreset(Preset):
    """Dimension, N = d/2, scales, draws, and the scale from which on training counts as lazy."""

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
    "quick": LazyToRichPreset("a minute and a half", d=30, draws=4),
    "paper": LazyToRichPreset("about half an hour", d=60, draws=12, alpha=_FINE),
}


def work(preset: LazyToRichPreset) -> list[LazyToRichDraw]:
    """Return one training for each scale and draw."""
    return [
        LazyToRichDraw(preset.problem, preset.width, alpha, number=number)
        for alpha in preset.alpha
        for number in range(preset.draws)
    ]


def data(preset: LazyToRichPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return what each scale leads to, with exponents at the lazy end; and the first draw along training."""
    result = assemble(work(preset), list(rows))
    lazy = np.array(preset.alpha) >= preset.lazy
    last = np.array([[row[name][-1] for row in rows] for name in _SHOWN]).reshape(-1, len(preset.alpha), preset.draws)
    slope, spread = exponents(np.array(preset.alpha)[lazy], last[:, lazy])
    line = np.geomspace(preset.alpha[0], preset.alpha[-1], 60)
    closed = [float(exact(preset.problem, Trained(alpha=a), width=preset.width, draws=preset.draws).risk) for a in line]
    result = result.assign(
        exact_line=("line", np.array(closed)), exponent=("quantity", slope), exponent_stderr=("quantity", spread)
    ).assign_coords(line=line, quantity=list(_SHOWN))
    result.attrs |= {"d": preset.d, "lazy_from": preset.lazy}
    first = {alpha: rows[k * preset.draws] for k, alpha in enumerate(preset.alpha)}
    points = result.sizes["point"]
    for alpha, row in first.items():
        path = flow(preset.problem, Trained(alpha=alpha), width=preset.width, times=row["time"][-points:])
        first[alpha] = row | {"flow": path.risk.values}
    along = dataset(
        {
            name: (("alpha", "point"), np.array([row[name][-points:] for row in first.values()]))
            for name in ("time", "risk", "flow", "alignment")
        },
        {"alpha": list(first)},
    )
    return {"alpha": result, "training": along}


def _draw_risk(axes: Axes, panel: Dataset) -> None:
    axes.plot(panel.line, panel.exact_line, color="#333333", label="closed form")
    for name, level, below in (("NT", float(panel.tangent), False), ("NN", float(panel.floor), True)):
        axes.axhline(level, color=LOOKS[name]["color"], linestyle=DASHES, linewidth=1.2)
        words, where = ("NN, Theorem 3", "right") if below else ("NT of the same weights", "left")
        x = float(panel.line[-1] if below else panel.line[0])
        axes.annotate(words, (x, level), xytext=(0, 4), textcoords="offset points", ha=where,
                      color=LOOKS[name]["color"], fontsize=9.5)  # fmt: skip
    for k, alpha in enumerate(panel.alpha.values):
        axes.errorbar(alpha, panel.end[k], panel.end_stderr[k], color=_colour(panel, k), marker="o", linestyle="",
                      markersize=7.0, zorder=3, label="SGD ± stderr" if k == 0 else None)  # fmt: skip
    axes.set(xscale="log", xlabel="α, output scale", ylabel=RISK, ylim=(-0.01, None))
    axes.set_title(f"Where training ends, d = {panel.attrs['d']}, N = d/2")
    axes.legend(loc="center left")


def _draw_laziness(axes: Axes, panel: Dataset) -> None:
    alpha = panel.alpha.values
    lazy = alpha >= panel.attrs["lazy_from"]
    for name, (words, colour, marker) in _SHOWN.items():
        last = panel[name].isel(point=-1).values
        slope = f"{float(panel.exponent.sel(quantity=name)):.2f}".replace("-", "−")
        # in the lazy regime two and two coincide: open markers around full ones leave both to be seen
        open_one: dict[str, Any] = {
            "markerfacecolor": "none",
            "markeredgecolor": colour,
            "markersize": 9.5,
            "markeredgewidth": 1.3,
        }
        look = open_one if name in ("movement", "distance") else {}
        axes.plot(alpha, last, color=colour, marker=marker, linestyle="", label=f"{words}: α$^{{{slope}}}$", **look)
        ends = np.array([1.0, alpha[-1]])
        axes.plot(ends, last[-1] * (ends / alpha[-1]) ** declared.LAZINESS, color=colour, linestyle="--", linewidth=1.0)
    axes.axvspan(alpha[lazy][0], alpha[-1], color="#f0f0f0", zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="α, output scale", ylabel="at the end of training")
    axes.set_title("How far it leaves its linearisation")
    axes.set_ylim(bottom=float(min(panel[name].isel(point=-1).min() for name in _SHOWN)) / 3e3)
    axes.legend(loc="lower left", title="fitted where shaded; dashed: 1/α", alignment="left")


def _draw_training(axes: Axes, along: Dataset) -> None:
    shown = np.unique(np.linspace(0, along.sizes["alpha"] - 1, _TRACES).astype(int))
    for k in shown.tolist():
        at, colour = along.isel(alpha=k), _colour(along, k)
        axes.plot(at.time, at.flow, color=colour, linewidth=1.4)
        words = f"α = {float(at.alpha):g}"
        axes.plot(at.time, at.risk, color=colour, linestyle="", marker="o", markersize=4.0, label=words)
    axes.set(xscale="log", yscale="log", xlabel="t = Σε, time of the tangent model's flow", ylabel=RISK)
    axes.set_title("On the way there (lines: gradient flow)")
    axes.legend(loc="lower left", title="dots: SGD, one draw")


def _colour(panel: Dataset, k: int) -> Any:
    return scale_colour(k / max(1, panel.sizes["alpha"] - 1))


plot = frames((13.2, 4.8), (_draw_risk, "alpha"), (_draw_laziness, "alpha"), (_draw_training, "training"))
"""The risk in the end, what laziness means, and the way there, for every α."""


def verdict(data: Panels) -> list[str]:
    """Return risks against α beside their closed form and both ends, and the exponents of laziness."""
    panel = data["alpha"]
    lines = [f"{'α':>8}{'SGD':>20}{'closed form':>13}{'movement':>10}{'drift':>10}{'distance':>10}{'alignment':>11}"]
    wrong = []
    for k, alpha in enumerate(panel.alpha.values):
        at = panel.isel(alpha=k)
        last = at.isel(point=-1)
        cell = f"{float(at.end):.5f} ± {float(at.end_stderr):.5f}"
        rest = f"{float(last.movement):>10.4g}{float(last.drift):>10.4g}{float(last.distance):>10.4g}"
        lines.append(f"{alpha:>8g}{cell:>20}{float(at.exact):>13.5f}{rest}{float(last.alignment):>11.4f}")
        if abs(float(at.end / at.exact) - 1.0) > _NEAR:
            wrong.append(f"the closed form at α = {alpha:g}")
    for name, level, k in (("NN", float(panel.floor), 0), ("NT", float(panel.tangent), -1)):
        off = float(panel.end[k]) / level - 1.0
        lines.append(f"α = {float(panel.alpha[k]):g} against {name}, {level:.5f}: {off:+.2%}")
        if abs(off) > _NEAR:
            wrong.append(f"the end at {name}")
    for name in _SHOWN:
        at = panel.sel(quantity=name)
        lines.append(f"{name} ∝ α^{float(at.exponent):.3f} ± {float(at.exponent_stderr):.3f} (declared −1)")
        if abs(float(at.exponent) - declared.LAZINESS) > _TOLERANCE + 2.0 * float(at.exponent_stderr):
            wrong.append(f"the exponent of {name}")
    told = f"Both ends are within {_NEAR:.0%} of NT and NN, every α of its closed form, and laziness falls like 1/α."
    return [*lines, answer(not wrong, told, f"Not as predicted: {', '.join(wrong)}.")]


_TITLE = "Risk and laziness against the output scale α, from NT to NN (Thermodynamic limits, Lazy training)"
_FAULTS = (wrong_rows("a target 5 % too small", data, "risk", lambda k, risk: 1.05**2 * risk),)
EXPERIMENT = Experiment(
    "lazy-to-rich", _TITLE, PRESETS, work, data, plot, verdict, place=61, report=lazy_to_rich, faults=_FAULTS
)

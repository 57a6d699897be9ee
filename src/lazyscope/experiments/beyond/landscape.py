"""The landscape over widths, points and descents: the work, and labelled numbers made of it (Bai & Lee 2019, §4).

`LandscapeDraw` measures the three inequalities at five kinds of points against W⋆ of Theorem 7, at margin 2;
`DescentDraw` follows a descent from near the saddle W = 0 and looks at gradient and smallest eigenvalue on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.statement import Statement
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.drawing import canvas
from lazyscope.experiments.frame.draws import Draw, exponents, provenance, table
from lazyscope.experiments.frame.experiment import Experiment, Preset
from lazyscope.experiments.frame.verdict import answer, wrong_rows
from lazyscope.limits import declared
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.runs.pictures import LOOKS
from lazyscope.training.taylor.construction import express, monomials
from lazyscope.training.taylor.descent import Descent, descend
from lazyscope.training.taylor.landscape import Inequality, landscape
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import Risk
from lazyscope.training.taylor.signs import norm_24, random_signs
from lazyscope.training.taylor.stationarity import certificate, stationarity
from lazyscope.weights import generator

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = Callable[[FloatArray, np.random.Generator], FloatArray]

_MARGIN = 2.0
_BLUE, _ORANGE, _GREEN, _RED = (LOOKS[name]["color"] for name in ("RF", "RF, optimal weights", "NT", "NN"))
_POINTS = {
    "the saddle": ("#CC79A7", "P"),
    "half way": (_BLUE, "o"),
    "random": (_ORANGE, "s"),
    "both": (_GREEN, "^"),
    "the opposite": (_RED, "D"),
}
_TOLERANCE = 0.06


def _random(W_star: FloatArray, rng: np.random.Generator) -> FloatArray:
    W = rng.standard_normal(W_star.shape)
    return np.asarray(W * (norm_24(W_star) / norm_24(W)))


POINTS: dict[str, Point] = {
    "the saddle": lambda W_star, rng: np.zeros_like(W_star),
    "half way": lambda W_star, rng: 0.5 * W_star,
    "random": _random,
    "both": lambda W_star, rng: 0.7 * (W_star + _random(W_star, rng)),
    "the opposite": lambda W_star, rng: np.roll(W_star, len(W_star) // 2, axis=0),
}
"""Points W by their names, from W⋆: zero, W⋆/2, random rows of the same norm, a mixture, and W⋆ of −f⋆."""

_INEQUALITIES = {"clean": "Lemma 1", "network": "Theorem 2", "regularized": "Corollary 3"}
_NUMBERS = ("left", "right", "error", "slack", "stderr", "sampled", "sampled_stderr")


@dataclass(frozen=True, eq=False)
class LandscapeDraw(Draw):
    """One initialisation of one width: the three statements at every point of `POINTS`; λ = lam/‖W⋆‖⁸_{2,4}."""

    problem: SparseParity | RidgeMonomial
    width: int
    samples: int = 100
    signs: int = 8
    lam: float = 0.01
    number: int = 0
    seed: int = 0

    words = "landscape, m = {0.width}"
    costs = ("width", "samples")

    def compute(self) -> Row:
        """Do the work; arrays of the row are (statement, point), the bound of Lemma 1's error (point,)."""
        setting = _Setting.of(self)
        points = []
        for build in POINTS.values():
            W = build(setting.W_star, setting.rng)
            options: dict[str, Any] = {"signs": self.signs, "lam": setting.lam}
            points.append(landscape(setting.risk, W, setting.W_star, setting.rng, **options))
        row = {
            name: np.array(
                [[getattr(_statement(point, statement), name) for point in points] for statement in _INEQUALITIES]
            )
            for name in _NUMBERS
        }
        row["bound"] = np.array([point.clean.bound for point in points])
        return row | {"OPT": np.asarray(points[0].OPT)}


def _statement(statements: Any, name: str) -> Inequality:
    inequality: Inequality = getattr(statements, name)
    return inequality


@dataclass(frozen=True, eq=False)
class _Setting:
    """The risk, W⋆ and λ that both kinds of work begin with."""

    risk: Risk
    W_star: FloatArray
    lam: float
    rng: np.random.Generator

    @classmethod
    def of(cls, draw: LandscapeDraw | DescentDraw) -> _Setting:
        problem, rng = draw.problem, generator(draw.seed, draw.number, draw.width)
        model = TaylorModel.symmetric(draw.width, problem.d, "relu3", rng, Bx=problem.Bx)
        data = np.random.default_rng(np.random.SeedSequence(draw.seed, spawn_key=(draw.number, 0)))
        X, y = problem.sample(draw.samples, data)
        W_star = sqrt(_MARGIN) * express(model, monomials(problem), rng)
        risk = Risk(model, X, y, "logistic" if problem.classification else "square", orders=2)
        return cls(risk, W_star, draw.lam / norm_24(W_star) ** 8, rng)


@dataclass(frozen=True, eq=False)
class DescentDraw(Draw):
    """One descent on L_λ, λ = lam/‖W⋆‖⁸_{2,4}, clean or of the network under random signs, looked at `looks` times."""

    problem: SparseParity | RidgeMonomial
    width: int
    randomized: bool = False
    samples: int = 200
    steps: int = 200
    looks: int = 9
    signs: int = 4
    lam: float = 0.01
    number: int = 0
    seed: int = 0

    costs = ("width", "samples", "steps")

    def __post_init__(self) -> None:
        if self.looks < 2:
            raise InvalidParameter.of("DescentDraw", "looks", "be at least 2, the start and the end", self.looks)

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"descent, m = {self.width}{', random signs' if self.randomized else ''}"

    def compute(self) -> Row:
        """Do the work; arrays of the row are over looks.

        `risk` is L_λ, `smallest` λ_min ‖W⋆‖²_F and `gradient` ‖∇L_λ‖ ‖W⋆‖_F, the units of a risk; `norm` is
        ‖W‖_{2,4}/‖W⋆‖_{2,4} and `certified` what Corollary 3 makes of them, a bound on L_λ − OPT.
        """
        setting = _Setting.of(self)
        clean = replace(setting.risk, lam=setting.lam)
        risk = replace(clean, orders=None) if self.randomized else clean
        reach = float(np.linalg.norm(setting.W_star))
        when = np.unique(np.round(self.steps * np.linspace(0.0, 1.0, self.looks) ** 2).astype(int))
        draws = [random_signs(risk.model.m, setting.rng) for _ in range(self.signs)]
        rows: list[list[float]] = []

        def look(step: int, W: FloatArray) -> None:
            if step not in when:
                return
            some = [Sigma for draw in draws for Sigma in (draw, -draw)] if self.randomized else [None]
            stationary = stationarity([risk.at(W, Sigma, derivatives=2) for Sigma in some])
            here = clean.at(W, derivatives=2)
            rows.append(
                [
                    step,
                    stationary.risk,
                    stationary.gradient * reach,
                    stationary.smallest * reach**2,
                    norm_24(W) / norm_24(setting.W_star),
                    certificate(stationary, here, setting.W_star, setting.lam),
                ]
            )

        how = Descent(steps=self.steps, start=0.02)
        descend(risk, reach, setting.rng, signs=self.randomized, how=how, watch=look)
        OPT = replace(clean, lam=0.0).at(setting.W_star, derivatives=0).value
        names = ("step", "risk", "gradient", "smallest", "norm", "certified")
        return dict(zip(names, np.array(rows).T, strict=True)) | {"OPT": np.asarray(OPT)}


def assemble_landscape(plan: Sequence[LandscapeDraw], rows: Sequence[Row]) -> xr.Dataset:
    """Return means over draws, over (`statement`, `point`, `width`); the least `slack`, and the exponent of `error`."""
    import xarray as xr

    widths = list(dict.fromkeys(draw.width for draw in plan))
    dims = ("statement", "point", "width")
    of_draws = {name: table(plan, rows, name) for name in _NUMBERS}  # (statement, point, width, draw)
    variables: dict[str, Any] = {name: (dims, table.mean(axis=-1)) for name, table in of_draws.items()}
    variables["slack"] = (dims, of_draws["slack"].min(axis=-1))
    # where no neuron has both rows, Σ′ changes nothing: what differs is rounding
    rounding = 1e-12 * (1.0 + np.abs(of_draws["left"]))
    z = (of_draws["sampled"] - of_draws["left"]) / np.maximum(of_draws["sampled_stderr"], rounding)
    z[2] = z[1]  # the regulariser adds its closed form to both
    variables["z"] = (dims, np.sqrt(np.mean(z**2, axis=-1)))
    if len(widths) > 1:
        slope, spread = exponents(np.array(widths), of_draws["error"])
        there = np.isfinite(slope)  # an error that is zero at every width has no exponent
        variables["exponent"] = (dims[:2], np.where(there, slope, np.nan))
        variables["exponent_stderr"] = (dims[:2], np.where(there, spread, np.nan))
    variables["bound"] = (dims[1:], table(plan, rows, "bound").mean(axis=-1))
    first = plan[0]
    attributes = {
        **provenance("landscape", "Lemma 1, Theorem 2, Corollary 3", "bai2020beyond", first.seed),
        "problem": str(first.problem),
        "samples": first.samples,
        "draws": len(plan) // len(widths),
        "seed": first.seed,
    }
    return xr.Dataset(
        variables, {"statement": list(_INEQUALITIES.values()), "point": list(POINTS), "width": widths}, attributes
    )


@dataclass(frozen=True)
class LandscapePreset(Preset):
    """Widths and draws of the inequalities; widths and steps of the descents."""

    widths: tuple[int, ...]
    descent_width: int = 200
    draws: int = 2
    samples: int = 100
    signs: int = 6
    looks: int = 9
    d: int = 8


PRESETS = {
    "quick": LandscapePreset("half a minute", (100, 320, 1000, 3200)),
    "paper": LandscapePreset("five minutes", (100, 320, 1000, 3200, 10_000, 32_000), 500, draws=4, signs=16, looks=17),
}


def _inequalities(preset: LandscapePreset) -> list[LandscapeDraw]:
    problem = SparseParity(preset.d)
    return [
        LandscapeDraw(problem, m, preset.samples, preset.signs, number=number)
        for m in preset.widths
        for number in range(preset.draws)
    ]


def _descents(preset: LandscapePreset) -> list[DescentDraw]:
    problem = SparseParity(preset.d)
    return [DescentDraw(problem, preset.descent_width, randomized, looks=preset.looks) for randomized in (False, True)]


def work(preset: LandscapePreset) -> list[LandscapeDraw | DescentDraw]:
    """Return the inequalities at each width, and two descents: clean, and under random signs."""
    return [*_inequalities(preset), *_descents(preset)]


def data(preset: LandscapePreset, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return both sides and errors over (`statement`, `point`, `width`), and what the descents saw."""
    import xarray as xr

    plan, descents = _inequalities(preset), rows[-2:]
    names = ("risk", "gradient", "smallest", "norm", "certified")
    variables: dict[str, Any] = {name: (("model", "look"), np.array([row[name] for row in descents])) for name in names}
    variables["OPT"] = ("model", np.array([float(row["OPT"]) for row in descents]))
    coordinates = {"model": ["quadratic model", "randomised network"], "step": ("look", descents[0]["step"])}
    attributes = {"width": preset.descent_width, "problem": str(SparseParity(preset.d))}
    return {
        "inequalities": assemble_landscape(plan, rows[: len(plan)]),
        "descents": xr.Dataset(variables, coordinates, attributes),
    }


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw both error terms against the width, both sides at every point, and risk and curvature of the descents."""
    with canvas(14.4, 4.7) as figure:
        first, second, third = figure.subplots(1, 3)
        _draw_errors(first, data["inequalities"])
        _draw_sides(second, data["inequalities"])
        _draw_descents(third, data["descents"])
    return figure


def _draw_errors(axes: Axes, panel: xr.Dataset) -> None:
    m = panel.width.values
    for statement, filled in (("Lemma 1", True), ("Theorem 2", False)):
        for point, (colour, marker) in _POINTS.items():
            at = panel.sel(statement=statement, point=point)
            if not np.all(at.error > 0):
                continue
            face = {} if filled else {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.3}
            label = f"{statement}, {point}: m$^{{{float(at.exponent):.2f}}}$".replace("-", "−")
            axes.plot(m, at.error, color=colour, marker=marker, linewidth=1.0, label=label, **face)
    axes.set(xscale="log", yscale="log", xlabel="m, neurons", ylabel="error term", title="What the statements add")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=8.5)


def _draw_sides(axes: Axes, panel: xr.Dataset) -> None:
    for point, (colour, marker) in _POINTS.items():
        for statement, filled in (("Lemma 1", True), ("Theorem 2", False)):
            at = panel.sel(statement=statement, point=point)
            face = {} if filled else {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.3}
            axes.plot(at.left, at.right, color=colour, marker=marker, linestyle="",
                      label=point if filled else None, **face)  # fmt: skip
    shown = panel.sel(statement=["Lemma 1", "Theorem 2"])
    low, high = float(shown.right.min()) - 0.5, float(shown.right.max()) + 0.2
    axes.plot([low, high], [low, high], color="#888888", linestyle=(0, (4, 3)), linewidth=1.0)
    axes.set(xlabel="left side: mean curvature along W⋆Σ′", ylabel="right side, without the error term")
    axes.set_title("Above the diagonal the inequality holds")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, title="full: Lemma 1, open: Theorem 2")


def _draw_descents(axes: Axes, panel: xr.Dataset) -> None:
    other = axes.twinx()
    for name, colour, marker in (("quadratic model", _BLUE, "o"), ("randomised network", _ORANGE, "s")):
        at = panel.sel(model=name)
        axes.plot(at.step, at.risk, color=colour, marker=marker, label=f"{name}: risk")
        other.plot(at.step, at.smallest, color=colour, marker=marker, linestyle=":", linewidth=1.2,
                   markerfacecolor="none", markeredgecolor=colour, label="smallest eigenvalue")  # fmt: skip
    axes.axhline(float(panel.OPT[0]), color="#333333", linestyle=(0, (1, 2)), linewidth=1.2)
    axes.annotate("OPT", (float(panel.step[-1]), float(panel.OPT[0])), xytext=(-4, 4), ha="right", color="#333333",
                  textcoords="offset points")  # fmt: skip
    other.axhline(0.0, color="#bbbbbb", linewidth=0.8)
    other.grid(visible=False)
    other.spines["right"].set_visible(True)
    axes.set(xlabel="step", ylabel="risk L$_λ$", title=f"Descent from near the saddle, m = {panel.attrs['width']}")
    other.set_ylabel("λ$_{min}$(∇²L$_λ$) ‖W⋆‖$^2_F$ (dotted)")
    handles = [*axes.get_legend_handles_labels()[0], *other.get_legend_handles_labels()[0][:1]]
    labels = [*axes.get_legend_handles_labels()[1], "smallest eigenvalue of the Hessian"]
    axes.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1)


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return exponents and the least slack of each statement; say whether all hold and descents end below OPT."""
    panel: Any = data["inequalities"]
    lines = [
        f"{'statement':<13}{'exponents of the error':>34}{'declared':>10}{'least slack':>13}{'sampled, rms z':>16}"
    ]
    wrong = []
    for statement in panel.statement.values.tolist():
        at = panel.sel(statement=statement)
        slopes = at.exponent.values[np.isfinite(at.exponent.values)]
        spread = at.exponent_stderr.values[np.isfinite(at.exponent.values)]
        power = declared.LANDSCAPE[statement]
        shown = " ".join(f"{slope:.2f}" for slope in slopes)
        z = float(np.sqrt(np.mean(at.z.values**2)))
        lines.append(f"{statement:<13}{shown:>34}{f'≤ {power:.2f}':>10}{float(at.slack.min()):>13.3g}{z:>12.2f}")
        if np.any(slopes > power + _TOLERANCE + 2 * np.nan_to_num(spread)) or float(at.slack.min()) < 0:
            wrong.append(statement)
    for name in data["descents"].model.values.tolist():
        at = data["descents"].sel(model=name)
        risk, low, OPT = float(at.risk[-1]), float(at.smallest[-1]), float(at.OPT)
        start = float(at.smallest[0])
        lines.append(f"{name}: risk {risk:.4f}, OPT {OPT:.4f}; smallest eigenvalue {start:.3g} → {low:.3g}")
        if risk > OPT or np.any(at.risk - OPT > at.certified):
            wrong.append(f"the descent of the {name}")
    told = "Every inequality holds, its error falls with m, and descents end below OPT."
    return [*lines, answer(not wrong, told, f"Not as declared: {', '.join(wrong)}.")]


_TITLE = "Both sides of Lemma 1 and Theorem 2 against the width, and descents off the saddle (the same, §4)"
_FAULTS = (wrong_rows("a descent that goes up", data, "risk", lambda k, risk: risk + 5.0, seen="the descent of"),)
EXPERIMENT = Experiment("landscape", _TITLE, PRESETS, work, data, plot, verdict, place=33, faults=_FAULTS)

_SOURCE = ("bai2020beyond",)
STATEMENTS = (
    Statement(
        "Lemma 1",
        "where the risk of f^Q exceeds OPT, the gradient or the curvature along W⋆Σ′ leads down",
        _SOURCE,
        "landscape",
        figure="landscape",
    ),
    Statement(
        "Theorem 2",
        "the same for the network under random signs, with an error that falls with m",
        _SOURCE,
        "landscape",
        figure="landscape",
    ),
    Statement("Corollary 3", "the same with the regulariser λ‖W‖⁸", _SOURCE, "landscape", figure="landscape"),
    Statement(
        "Theorem 4",
        "a stationary point of second order has a risk near OPT: the bound with what is measured at the point",
        _SOURCE,
        "landscape",
        figure="landscape",
    ),
)

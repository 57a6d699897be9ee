"""Expressivity: Theorem 7's W⋆ at finite width, its error, its loss and its norm against the bound (Bai & Lee 2019).

    |L^Q(W⋆) − L(f⋆)| ≤ ε and ‖W⋆‖⁴_{2,4} ≤ 32π ((p−2)³ ∨ 1) α² B_x^{2(p−2)} ‖β‖^{2p}/δ for m large enough,

for f⋆ = α(βᵀx)^p and for sums, 2-XOR among them. The error is a mean over m/2 independent neurons: it falls like
m^{−1/2}, and so does the loss where it is Lipschitz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.checks import FloatArray
from lazyscope.evidence.statement import stated
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, averaged, dataset, wrong_rows
from lazyscope.experiments.frame.drawing import frames
from lazyscope.experiments.frame.draws import attributes, computed, exponents, over_widths, provenance, split, table
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.limits import declared
from lazyscope.numerics.losses import LOSSES
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.runs.pictures import BLUE, GREEN, ORANGE, PURPLE, RED
from lazyscope.training.taylor.construction import expected_norm, express, monomials, norm_bound
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.signs import norm_24
from lazyscope.weights import generator

DELTA = 0.5
"""The δ of Theorem 7 that bounds are stated for."""

_MEASURED = ("error", "worst", "loss", "norm")
_COLOURS = (PURPLE, BLUE, ORANGE, GREEN, RED)
_MARKERS = ("P", "o", "s", "^", "D")
_TOLERANCE = 0.06  # of the exponent −½: means over m/2 neurons with heavy tails, fitted over finite widths


@dataclass(frozen=True, eq=False)
class ExpressivityDraw(Draw):
    """One initialisation of one width: W⋆ for the problem's target, measured on n inputs."""

    problem: RidgeMonomial | SparseParity
    width: int
    samples: int = 200
    activation: Activation | str = "relu3"
    number: int = 0
    seed: int = 0

    words = "expressivity, {0.problem}, m = {0.width}"
    costs = ("width", "samples")

    def compute(self) -> dict[str, FloatArray]:
        """Do the work: build W⋆ and evaluate f^Q at n inputs, 4nmd flops."""
        return {name: np.asarray(value) for name, value in measure(self).items()}


def measure(draw: ExpressivityDraw) -> dict[str, float]:
    """Return what W⋆ achieves on n fresh inputs.

    `error` is the root mean square of f^Q − f⋆ over that of f⋆, `worst` its largest size over the same, `loss`
    |L^Q(W⋆) − L(f⋆)| (logistic for labels, square for numbers) and `norm` ‖W⋆‖⁴_{2,4}.
    """
    problem, rng = draw.problem, generator(draw.seed, draw.number, draw.width)
    model = TaylorModel.symmetric(draw.width, problem.d, as_activation(draw.activation), rng, Bx=problem.Bx)
    X, _ = problem.sample(draw.samples, generator(draw.seed, 0, 0))
    W, wanted = express(model, monomials(problem), rng), problem.target(X)
    values = model.piece(2, W, X)
    loss, size = LOSSES["logistic" if problem.classification else "square"], float(np.sqrt(np.mean(wanted**2)))
    return {
        "error": float(np.sqrt(np.mean((values - wanted) ** 2))) / size,
        "worst": float(np.max(np.abs(values - wanted))) / size,
        "loss": abs(float(np.mean(loss.value(wanted, values) - loss.value(wanted, wanted)))),
        "norm": norm_24(W) ** 4,
    }


def expressivity(
    problem: RidgeMonomial | SparseParity,
    widths: Any = (100, 1000, 10_000),
    *,
    samples: int = 200,
    activation: Activation | str = "relu3",
    draws: int = 4,
    seed: int = 0,
) -> Dataset:
    """Build Theorem 7's W⋆ for a problem's target at several widths, and measure it.

    Parameters
    ----------
    problem
        `RidgeMonomial`, with p − 2 ∈ {0, 1, 2, 4, 6, …} for relu3, or `SparseParity` with k = 2: 2-XOR.
    widths
        m, even.
    samples, activation, draws, seed
        Inputs that errors are taken over, σ, and initialisations.

    Returns
    -------
    xarray.Dataset
        `error`, `worst`, `loss` and `norm` (see `measure`) over `width`, means over draws with `<name>_stderr`;
        `exponent` of the error in m with `exponent_stderr`; `expected_norm` and `norm_bound` at δ = ½.

    Examples
    --------
    >>> result = expressivity(RidgeMonomial(5, 3), [100, 10_000], draws=2)
    >>> bool(result.norm.max() < result.norm_bound), bool(abs(result.exponent + 0.5) < 0.2)
    (True, True)
    """
    plan = over_widths(
        "expressivity", widths, draws, lambda m, k: ExpressivityDraw(problem, m, samples, activation, k, seed)
    )
    return assemble(plan, computed(plan))


def assemble(plan: Sequence[ExpressivityDraw], rows: Sequence[dict[str, Any]]) -> Dataset:
    """Return the report from draws that differ in width and number alone."""
    widths = list(dict.fromkeys(draw.width for draw in plan))
    first = plan[0]
    sigma, terms, Bx = as_activation(first.activation), monomials(first.problem), first.problem.Bx
    variables: dict[str, Any] = {}
    for name in _MEASURED:
        values = table(plan, rows, name)
        variables |= averaged(name, "width", values)
        if name == "error":
            slope, spread = exponents(np.array(widths), values)
            variables |= {"exponent": ((), slope), "exponent_stderr": ((), spread)}
    variables["expected_norm"] = ((), expected_norm(terms, sigma, Bx))
    variables["norm_bound"] = ((), norm_bound(terms, Bx, DELTA))
    told = provenance("expressivity", "Theorem 7", "bai2020beyond", first.seed)
    sizes = {"activation": sigma.name, "draws": len(plan) // len(widths)}
    return dataset(variables, {"width": widths}, told | attributes(first, "problem", "samples", "seed") | sizes)


@dataclass(frozen=True)
class ExpressivityPreset(Preset):
    """Widths, powers p, initialisations."""

    widths: tuple[int, ...]
    powers: tuple[int, ...] = (2, 3, 4)
    draws: int = 6
    samples: int = 200
    d: int = 10


PRESETS = {
    "quick": ExpressivityPreset("seconds", (100, 320, 1000, 3200, 10_000)),
    "paper": ExpressivityPreset("two minutes", (100, 320, 1000, 3200, 10_000, 32_000, 100_000), draws=20),
}


def _problems(preset: ExpressivityPreset) -> dict[str, RidgeMonomial | SparseParity]:
    """α makes E(βᵀx)^{2p} = 1 for βᵀx ~ N(0, 1): (2p − 1)!! is its 2p-th moment."""
    some: dict[str, RidgeMonomial | SparseParity] = {"2-XOR": SparseParity(preset.d)}
    for p in preset.powers:
        some[f"p = {p}"] = RidgeMonomial(preset.d, p, alpha=prod(range(1, 2 * p, 2)) ** -0.5)
    return some


def _of(preset: ExpressivityPreset, problem: RidgeMonomial | SparseParity) -> list[ExpressivityDraw]:
    return [
        ExpressivityDraw(problem, m, preset.samples, number=number)
        for m in preset.widths
        for number in range(preset.draws)
    ]


def work(preset: ExpressivityPreset) -> list[ExpressivityDraw]:
    """Return one draw for each target, width and initialisation."""
    return [draw for problem in _problems(preset).values() for draw in _of(preset, problem)]


def data(preset: ExpressivityPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return errors and norms over (`target`, `width`), and f^Q of the widest network beside its target."""
    import xarray as xr

    plans = {name: _of(preset, problem) for name, problem in _problems(preset).items()}
    own = split(rows, list(plans.values()))
    parts = [assemble(plan, part) for plan, part in zip(plans.values(), own, strict=True)]
    whole = xr.concat(parts, "target", combine_attrs="drop_conflicts").assign_coords(target=list(plans))
    return {"errors": whole, "functions": _functions(preset)}


def _functions(preset: ExpressivityPreset) -> Dataset:
    """f^Q against t = βᵀx for one network of each power, at inputs that share all but their component along β."""
    t, m = np.linspace(-2.0, 2.0, 81), preset.widths[-1]
    powers = [p for p in preset.powers if p > 2] or list(preset.powers)
    found, wanted = np.empty((2, len(powers), len(t)))
    for i, p in enumerate(powers):
        problem = RidgeMonomial(preset.d, p)
        rng = generator(0, p, m)
        model = TaylorModel.symmetric(m, preset.d, "relu3", rng, Bx=problem.Bx)
        rest = rng.standard_normal(preset.d)
        rest -= (rest @ problem.direction) * problem.direction
        rest /= np.linalg.norm(rest)
        X = t[:, None] * problem.direction + np.sqrt(preset.d - t**2)[:, None] * rest
        found[i] = model.piece(2, express(model, monomials(problem), rng), X) / 2.0**p
        wanted[i] = problem.target(X) / 2.0**p
    dims = ("power", "t")
    return dataset({"found": (dims, found), "wanted": (dims, wanted)}, {"power": powers, "t": t}, {"width": m})


def _draw_functions(axes: Axes, panel: Dataset) -> None:
    for i, p in enumerate(panel.power.values.tolist()):
        at, colour = panel.sel(power=p), _COLOURS[(i + 2) % len(_COLOURS)]
        axes.plot(at.t, at.found, color=colour, label=f"p = {p}")
        axes.plot(at.t, at.wanted, color="#333333", linestyle=(0, (1, 2)), linewidth=1.2)
    axes.set(
        xlabel="t = βᵀx", ylabel="f$^Q$(x)/2$^p$", title=f"f$^Q$ built for t$^p$ (dotted), m = {panel.attrs['width']:,}"
    )
    axes.legend(loc="lower right")


def _draw_errors(axes: Axes, panel: Dataset) -> None:
    for i, name in enumerate(panel.target.values.tolist()):
        at, colour, marker = panel.sel(target=name), _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]
        m, error = at.width.values, at.error.values
        exponent = f"{float(at.exponent):.2f}".replace("-", "−")
        label = f"{name}: m$^{{{exponent}}}$"
        axes.errorbar(m, error, at.error_stderr.values, color=colour, marker=marker, linestyle="", label=label)
        middle = np.exp(np.mean(np.log(error / m**declared.EXPRESSIVITY)))
        axes.plot(m, middle * m**declared.EXPRESSIVITY, color=colour, linestyle="--", linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="m, neurons", ylabel="error / size of the target")
    axes.set_title("Error of W⋆; dashed: m$^{−1/2}$")
    axes.legend(loc="lower left", ncols=2)


def _draw_norms(axes: Axes, panel: Dataset) -> None:
    names = panel.target.values.tolist()
    x, widest = np.arange(len(names)), panel.isel(width=-1)
    axes.plot(x, panel.norm_bound, color="#333333", marker="_", markersize=22, markeredgewidth=1.6, linestyle="",
              markeredgecolor="#333333", label=f"bound of Theorem 7, δ = {DELTA:g}")  # fmt: skip
    axes.plot(x, panel.expected_norm, color=_COLOURS[1], marker="_", markersize=22, markeredgewidth=1.6,
              markeredgecolor=_COLOURS[1], linestyle="", label="closed form")  # fmt: skip
    axes.errorbar(x, widest.norm, widest.norm_stderr.values, color=_COLOURS[4], marker="D", linestyle="",
                  label=f"W⋆ at m = {int(widest.width):,}")  # fmt: skip
    axes.set(yscale="log", ylabel="‖W⋆‖$^4_{2,4}$", title="Norm of W⋆")
    axes.set_xticks(x, names)
    axes.set_ylim(top=8.0 * float(panel.norm_bound.max()))  # room for the legend
    axes.legend(loc="upper center")


plot = frames((14.4, 4.6), (_draw_functions, "functions"), (_draw_errors, "errors"), (_draw_norms, "errors"))
"""Functions, errors against the width, and norms between their mean and the theorem's bound."""


def verdict(data: Panels) -> list[str]:
    """Return errors, exponents and norms; say whether errors fall like m^−½ and norms keep the bound."""
    panel: Any = data["errors"]
    lines = [f"{'target':<8}{'error, widest':>14}{'exponent':>16}{'norm⁴':>10}{'closed form':>13}{'bound':>10}"]
    wrong = []
    for name in panel.target.values.tolist():
        at = panel.sel(target=name)
        slope, spread, norm = float(at.exponent), float(at.exponent_stderr), float(at.norm[-1])
        lines.append(
            f"{name:<8}{float(at.error[-1]):>14.4f}{slope:>9.3f} ± {spread:.3f}{norm:>11.4g}"
            f"{float(at.expected_norm):>12.4g}{float(at.norm_bound):>11.4g}"
        )
        if abs(slope - declared.EXPRESSIVITY) > _TOLERANCE + 2 * spread or np.any(at.norm > at.norm_bound):
            wrong.append(name)
    told = "Errors fall like m^−1/2, and every norm keeps the bound of Theorem 7."
    return [*lines, answer(not wrong, told, f"Not as declared: {', '.join(wrong)}.")]


_TITLE = "Quadratic models that express monomials and 2-XOR: errors and norms (the same, Theorem 7)"
_FAULTS = (wrong_rows("an error that does not fall", data, "error", lambda k, error: 0.0 * error + 0.1),)
EXPERIMENT = Experiment(
    "expressivity", _TITLE, PRESETS, work, data, plot, verdict, place=34, report=expressivity, faults=_FAULTS
)

STATEMENTS = stated(
    "expressivity",
    "bai2020beyond",
    {
        "Theorem 7": "a W⋆ of small norm has f^Q ≈ α(βᵀx)^p, p − 2 = 1 or even",
        "Lemma 9": "ReLU random features express (βᵀx)^p, p = 1 or even, in the mean over w₀: what W⋆ is built from",
    },
)

"""Generalisation of quadratic models: M_op and bounds against d, and the gap of trained models (Bai & Lee 2019, §5.1).

Lemma 5 and Theorem 6 bound E[L_P(Ŵ) − L(Ŵ)] by twice the Rademacher complexity of the losses, and that by operator
norms of feature maps and 1/√n. Left and middle, inputs alone; right, f^Q trained on 2-XOR, its gap beside the bounds
at its own ‖Ŵ‖.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.statement import Statement, stated
from lazyscope.experiments.beyond.generalisation.numbers import generalisation
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.drawing import frames, ticks_at
from lazyscope.experiments.frame.draws import exponents
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.problems import SparseParity
from lazyscope.problems.inputs import draw_inputs
from lazyscope.runs.pictures import BLUE, GREEN, ORANGE, RED, SKY
from lazyscope.training.taylor.construction import express, monomials
from lazyscope.training.taylor.descent import descend
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import Risk
from lazyscope.training.taylor.signs import norm_24
from lazyscope.weights import generator

_KINDS = {
    "hypercube": ("hypercube", BLUE, "o"),
    "sphere": ("sphere", SKY, "s"),
    "stretched": ("variances from 1 to 16", GREEN, "^"),
    "one direction": ("on a line", RED, "D"),
}
_BOUNDS = {
    "complexity": ("2 × complexity of f$^Q$", BLUE, "o"),
    "operator": ("Lemma 5, operator norms", ORANGE, "s"),
    "frobenius": ("the same, Frobenius norms", GREEN, "^"),
}
_MEASURED = ("M_op", *_BOUNDS)
_PER_INPUT = 10  # n/d
_TESTED = 20_000
_LAMBDA = 3e-3  # of the regulariser at W⋆, as in `sample-complexity`
_SLOPE = 0.06  # what an exponent of M_op may be off by, over d of a decade


@dataclass(frozen=True, eq=False)
class InputsDraw(Draw):
    """One data set of n = 10d inputs of length 1, of some kind: M_op and the bounds, nothing of labels."""

    kind: str
    d: int
    width: int = 64
    signs: int = 8
    number: int = 0
    seed: int = 0

    words = "{0.kind}, d = {0.d}"
    costs = ("d", "d", "d", "width", "signs")

    def compute(self) -> Row:
        """Return M_op, twice the complexity, and Lemma 5's bound on it with either norm, all without their 1/√n."""
        n, rng = _PER_INPUT * self.d, generator(self.seed, self.number, self.d)
        if self.kind == "one direction":
            X = np.sign(rng.standard_normal((n, 1))) * np.ones(self.d)
        else:
            inputs = np.linspace(1.0, 16.0, self.d) if self.kind == "stretched" else self.kind
            X = draw_inputs(inputs, n, self.d, rng)
        bounds = generalisation(X / sqrt(self.d), width=self.width, signs=self.signs, seed=self.seed + self.number)
        rest = 1.0 / sqrt(n)
        return {
            "M_op": np.array(bounds.M_op),
            "complexity": np.array(2.0 * bounds.complexity),
            "operator": np.array(bounds.lemma5 - rest),
            "frobenius": np.array(bounds.frobenius - rest),
        }


@dataclass(frozen=True, eq=False)
class TrainedDraw(Draw):
    """f^Q trained on n samples of 2-XOR: what its risk is on them and on others, beside the bounds at its ‖Ŵ‖."""

    d: int
    samples: int
    width: int = 64
    signs: int = 8
    number: int = 0
    seed: int = 0

    words = "f^Q trained, n = {0.samples}"
    costs = ("d", "d", "samples", "width", "signs")

    def compute(self) -> Row:
        """Return L, L_P, ‖Ŵ‖, and 2R with R the complexity of the losses: by f^Q's own, and by Lemma 5."""
        problem, rng = SparseParity(self.d), generator(self.seed, self.number, self.samples)
        model = TaylorModel.symmetric(self.width, self.d, "relu3", rng, Bx=problem.Bx)
        W_star = express(model, monomials(problem), rng)
        X, y = problem.sample(self.samples, rng)
        risk = Risk(model, X, y, orders=2, lam=_LAMBDA / norm_24(W_star) ** 8)
        W = descend(risk, float(np.linalg.norm(W_star)), rng)
        fresh = Risk(model, *problem.sample(_TESTED, rng), orders=2)
        bounds = generalisation(X, width=self.width, Bw=norm_24(W), signs=self.signs, seed=self.seed + self.number)
        return {
            "train": np.array(risk.at(W, derivatives=0).data_value),
            "test": np.array(fresh.at(W, derivatives=0).data_value),
            "norm": np.array(norm_24(W) / norm_24(W_star)),
            "by_complexity": np.array(2.0 * (2.0 * bounds.complexity + 1.0 / sqrt(self.samples))),
            "by_lemma5": np.array(2.0 * bounds.lemma5),
        }


_TRAINED = ("train", "test", "norm", "by_complexity", "by_lemma5")


@dataclass(frozen=True)
class GeneralisationPreset(Preset):
    """Dimensions of the inputs, draws, and where f^Q is trained: one d and several n."""

    dimensions: tuple[int, ...]
    draws: int
    d: int
    samples: tuple[int, ...]

    @property
    def parts(self) -> tuple[list[InputsDraw], list[TrainedDraw]]:
        """All draws: of inputs, then of trained models."""
        numbers = range(self.draws)
        return (
            [InputsDraw(kind, d, number=k) for kind in _KINDS for d in self.dimensions for k in numbers],
            [TrainedDraw(self.d, n, number=k) for n in self.samples for k in numbers],
        )


PRESETS = {
    "quick": GeneralisationPreset("a minute", (6, 12, 24, 48), 4, 10, (50, 100, 200, 400, 800)),
    "paper": GeneralisationPreset("ten minutes", (6, 12, 24, 48, 96), 10, 16, (100, 200, 400, 800, 1600, 3200)),
}


def work(preset: GeneralisationPreset) -> list[Draw]:
    """Return all draws."""
    inputs, trained = preset.parts
    return [*inputs, *trained]


def data(preset: GeneralisationPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return the numbers of inputs against d, and those of trained models against n, with exponents."""
    inputs, _ = preset.parts
    shape = (len(_KINDS), len(preset.dimensions), preset.draws)
    d, n = np.array(preset.dimensions), np.array(preset.samples)
    about = {"citations": "bai2020beyond", "draws": preset.draws}
    columns: dict[str, Any] = {}
    for name in _MEASURED:
        values = np.array([row[name] for row in rows[: len(inputs)]]).reshape(shape)
        _with_exponent(columns, name, values, d, ("kind", "d"))
    trained: dict[str, Any] = {}
    for name in _TRAINED:
        risks = np.array([row[name] for row in rows[len(inputs) :]]).reshape(len(n), preset.draws)
        _with_exponent(trained, name, risks, n, ("samples",))
    trained["gap"] = ("samples", trained["test"][1] - trained["train"][1])
    return {
        "inputs": dataset(columns, {"kind": list(_KINDS), "d": d}, about | {"samples_per_d": _PER_INPUT}),
        "trained": dataset(trained, {"samples": n}, about | {"d": preset.d}),
    }


def _with_exponent(
    columns: dict[str, Any], name: str, values: FloatArray, x: FloatArray, dims: tuple[str, ...]
) -> None:
    mean, error = over_draws(values)
    slope, spread = exponents(x, values)
    columns[name], columns[f"{name}_stderr"] = (dims, mean), (dims, np.nan_to_num(error))
    columns[f"{name}_exponent"], columns[f"{name}_exponent_stderr"] = (dims[:-1], slope), (dims[:-1], spread)


def _sizes(axes: Axes, panel: Dataset) -> None:
    d = panel.d.values
    for kind, (label, colour, marker) in _KINDS.items():
        at = panel.sel(kind=kind)
        axes.errorbar(d, at.M_op, at.M_op_stderr, color=colour, marker=marker, linewidth=1.0, label=label)
    axes.plot(d, d**-0.5, color="#222222", linestyle="--", label="1/√d")
    axes.set_title("M$_{x,op}$ of Theorem 6, " + f"n = {panel.attrs['samples_per_d']}d")
    axes.set(yscale="log", xlabel="d, inputs")
    ticks_at(axes, d)
    ticks = (0.1, 0.2, 0.5, 1.0)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.legend(loc="lower left")


def _bounds(axes: Axes, panel: Dataset) -> None:
    d, cube = panel.d.values, panel.sel(kind="hypercube")
    for name, (label, colour, marker) in _BOUNDS.items():
        words = f"{label}: d$^{{{float(cube[f'{name}_exponent']):.2f}}}$".replace("-", "−")
        error = cube[f"{name}_stderr"]
        axes.errorbar(d, cube[name], error, color=colour, marker=marker, linewidth=1.0, label=words)
    axes.set_title("Hypercube, B$_x$ = B$_w$ = 1, " + f"n = {panel.attrs['samples_per_d']}d")
    axes.set(yscale="log", xlabel="d, inputs")
    ticks_at(axes, d)
    axes.legend(loc="lower left")


def _gap(axes: Axes, panel: Dataset) -> None:
    n = panel.samples.values
    error = np.hypot(panel.test_stderr.values, panel.train_stderr.values)
    axes.errorbar(n, panel.gap, error, color=RED, marker="D", label="measured")
    for name, label, colour in (
        ("by_complexity", "bound, complexity of f$^Q$", BLUE),
        ("by_lemma5", "bound, Lemma 5", ORANGE),
    ):
        axes.plot(n, panel[name], color=colour, linestyle="--", label=label)
    axes.set(yscale="log", xlabel="n, samples", ylabel="risk on new samples − on those seen")
    ticks_at(axes, n)
    axes.set_title(f"f$^Q$ trained on 2-XOR, d = {panel.attrs['d']}")
    axes.legend()


plot = frames((13.8, 4.7), (_sizes, "inputs"), (_bounds, "inputs"), (_gap, "trained"))
"""M_op and the bounds against d, and the gap of trained models against n."""


def verdict(data: Panels) -> list[str]:
    """Return exponents and bounds, and whether M_op falls like 1/√d where it should and no bound is broken."""
    inputs, trained = data["inputs"], data["trained"]
    lines = [f"{'inputs':<15}{'M_op at the largest d':>24}{'exponent of d':>18}"]
    wrong = []
    for kind in inputs.kind.values.tolist():
        at = inputs.sel(kind=kind)
        slope, error = float(at.M_op_exponent), float(np.nan_to_num(at.M_op_exponent_stderr))
        lines.append(f"{kind:<15}{float(at.M_op[-1]):>24.3f}{slope:>10.3f} ± {error:.3f}")
        wanted = 0.0 if kind == "one direction" else -0.5
        if not abs(slope - wanted) <= _SLOPE + 2.0 * error:
            wrong.append(f"M_op, {kind}")
    if not bool(np.all(inputs.M_op <= 1.0 + 1e-12)):
        wrong.append("M_op ≤ 1")
    if not bool(np.all((inputs.complexity <= inputs.operator) & (inputs.operator <= inputs.frobenius + 1e-12))):
        wrong.append("complexity ≤ Lemma 5 ≤ Frobenius")
    cube = inputs.sel(kind="hypercube")
    gain = float(cube.frobenius_exponent - cube.operator_exponent)
    error = float(np.nan_to_num(np.hypot(cube.frobenius_exponent_stderr, cube.operator_exponent_stderr)))
    lines.append(f"hypercube: operator norms gain d^{gain:.2f} ± {error:.2f} over Frobenius norms (their limit: d^0.5)")
    if not gain > 2.0 * error:
        wrong.append("the gain of operator norms")
    for n, gap, low, high in zip(
        trained.samples.values, trained.gap.values, trained.by_complexity.values, trained.by_lemma5.values, strict=True
    ):
        lines.append(f"n = {n:<6} gap {gap:.4f}, at most {low:.3f} by the complexity of f^Q and {high:.3f} by Lemma 5")
        if not gap <= low <= high:
            wrong.append(f"the gap at n = {n}")
    if not float(trained.gap[-1]) < 0.5 * float(trained.gap[0]):
        wrong.append("a gap that falls with n")
    return [*lines, answer(not wrong, "Lemma 5 and Theorem 6 hold.", f"Not as stated: {'; '.join(wrong)}.")]


_TITLE = "Generalisation of quadratic models: M_op, Rademacher complexities and gaps (the same, §5.1)"
_FAULTS = (
    wrong_rows("the square of M_op", data, "M_op", lambda k, size: size**2),
    wrong_rows("complexities ten times as large", data, "complexity", lambda k, value: 10.0 * value),
    wrong_rows("a gap above its bounds", data, "test", lambda k, risk: risk + 100.0),
)
EXPERIMENT = Experiment("generalisation", _TITLE, PRESETS, work, data, plot, verdict, place=34, faults=_FAULTS)

_SHOWN = {
    "Lemma 5": "the Rademacher complexity of f^Q is bounded by operator norms of its feature maps",
    "Theorem 6": "f^Q generalises like B_x²B_w²M_op/√n, M_op between 1/√d and 1",
}
_LEMMA_8 = "matrix concentration: E max_r ‖A_r‖ ≤ 4√(log(2md) max_r ‖E A_r²‖)"
STATEMENTS = (
    *stated("generalisation", "bai2020beyond", _SHOWN),
    Statement("Lemma 8", _LEMMA_8, ("bai2020beyond",), "generalisation"),
)

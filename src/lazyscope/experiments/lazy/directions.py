"""What RF, NT and NN have learnt of every eigendirection of B: the central sentence of L (Ghorbani et al. 2019).

"NT learns random directions, NN the principal ones." Each learns a quadratic form G, and Σ_i ‖(B − G)u_i‖²/‖B‖² over
the eigenvectors u_i of B, with the square of the offset, is its risk. Lines are limits, dots means over drawn weights,
and each dot is held to its mean at the same d and N (`limits.directions`): exact for NT and NN, of relative order 1/N
for RF, which is therefore allowed what one neuron more changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray
from lazyscope.evidence.run import Run
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, averaged, canvas, dataset, wrong_rows
from lazyscope.experiments.frame.judgement import Dot, judged
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.limits import directions
from lazyscope.population import minimum, projector, random_features
from lazyscope.problems import QuadraticTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures, Trained
from lazyscope.runs.pictures import LOOKS

_REGIMES: dict[str, RandomFeatures | NeuralTangent | Trained] = {
    "RF": RandomFeatures(),
    "NT": NeuralTangent(),
    "NN": Trained(),
}
_LINES = {"RF": directions.random_features, "NT": directions.neural_tangent, "NN": directions.trained}
_WORDS = {"RF": "RF: the same of all", "NT": "NT: a share of each", "NN": "NN: the N largest"}
_SUM = 1e-10  # what a sum over directions may differ from the risk by


@dataclass(frozen=True, eq=False)
class DirectionsDraw(Draw):
    """One draw of the weights: what one regime learns and misses of every direction of a diagonal B, and its risk."""

    regime: str
    problem: QuadraticTarget
    width: int
    number: int = 0
    seed: int = 0

    words = "directions, {0.regime}, d = {0.problem.d}"
    costs = ("problem.d", "width")

    def compute(self) -> Row:
        """Return G_ii and ‖(B − G)u_i‖²/‖B‖², ascending in b_i, the offset's square over 2‖B‖², and the risk."""
        problem, regime = self.problem, _REGIMES[self.regime]
        size = 0.5 * problem.energy
        order, offset = np.argsort(problem.B, kind="stable"), 0.0  # B is diagonal: its eigenvectors are the axes
        if isinstance(regime, Trained):
            G = minimum.learnt_form(problem, self.width)
        else:
            W = weights.draw(problem, regime, self.width, weights.generator(self.seed, self.number, self.width))
            if isinstance(regime, NeuralTangent):
                G = projector.learnt_form(problem, regime, W)
            else:
                G, offset = random_features.learnt_form(problem, W)
        missed = np.sum((np.diag(problem.B) - G) ** 2, axis=0) / size
        run = Run("exact", problem, regime, {"width": (self.width,)}, number=self.number, seed=self.seed)
        return {
            "learnt": np.diagonal(G)[order],
            "missed": missed[order],
            "offset": np.array(0.5 * offset**2 / size),
            "risk": np.asarray(run.compute()["risk"]),
        }


@dataclass(frozen=True)
class DirectionsPreset(Preset):
    """Dimension, number of neurons and draws."""

    d: int
    width: int
    draws: int


PRESETS = {
    "quick": DirectionsPreset("seconds", 100, 25, 60),
    "paper": DirectionsPreset("a minute", 450, 112, 60),
}


def work(preset: DirectionsPreset) -> list[DirectionsDraw]:
    """Return all draws, regime by regime."""
    problem = QuadraticTarget.exponential(preset.d)
    return [DirectionsDraw(name, problem, preset.width, k) for name in _REGIMES for k in range(preset.draws)]


def data(preset: DirectionsPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return what is learnt and missed of every direction, means and standard errors over draws, with their lines."""
    b, rho = QuadraticTarget.exponential(preset.d).eigenvalues, preset.width / preset.d
    size = float(np.sum(b**2))
    shape = (len(_REGIMES), preset.draws, preset.d)
    drawn = {name: np.array([row[name] for row in rows]).reshape(shape) for name in ("learnt", "missed")}
    risk, offset = (np.array([row[name] for row in rows]).reshape(shape[:2]) for name in ("risk", "offset"))
    lines = [line(b, rho) for line in _LINES.values()]
    expected = [predicted(label, b, preset.width) for label in _REGIMES]
    dims, values = ("regime", "eigenvalue"), dict[str, Any]()
    for k, name in enumerate(drawn):
        unit = size if name == "missed" else 1.0
        values |= averaged(name, dims, drawn[name], axis=1)
        values[f"{name}_line"] = (dims, np.array([line[k] for line in lines]) / unit)
        values[f"{name}_draws"] = (("regime", "draw", "eigenvalue"), drawn[name])
        values[f"{name}_predicted"] = (dims, np.array([pair[0][k] for pair in expected]) / unit)
        values[f"{name}_allowance"] = (dims, np.array([pair[1][k] for pair in expected]) / unit)
    values |= {
        "sum": (("regime", "draw"), drawn["missed"].sum(axis=2) + offset),
        "risk": (("regime", "draw"), risk),
    }
    about = {"d": preset.d, "width": preset.width, "citations": "ghorbani2019limitations"}
    return {"directions": dataset(values, {"regime": list(_REGIMES), "eigenvalue": b}, about)}


def plot(data: Panels) -> Figure:
    """Draw what is learnt along every eigenvector against its eigenvalue, and what of the risk comes from it."""
    panel = data["directions"]
    with canvas(11.5, 4.7) as figure:
        left, right = figure.subplots(1, 2)
        b = panel.eigenvalue.values
        left.plot(b, b, color="#222222", linestyle=":", linewidth=1.3, label="the target itself")
        _frame(left, panel, "learnt", 1.0)
        _frame(right, panel, "missed", float(panel.attrs["d"]))
        left.set_title(f"What is learnt, σ = u², d = {panel.attrs['d']}, N = {panel.attrs['width']}")
        left.set_ylabel("learnt, ⟨u, Gu⟩")
        right.set(ylabel="share of the risk × d", title="What is missed: its mean over directions is the risk")
        left.legend()
        right.legend()
    return figure


def _frame(axes: Axes, panel: Dataset, name: str, unit: float) -> None:
    b = panel.eigenvalue.values
    for label in panel.regime.values.tolist():
        at, colour = panel.sel(regime=label), LOOKS[label]["color"]
        told = f"{label}: risk {float(at.risk.mean()):.3f}" if name == "missed" else _WORDS[label]
        line = unit * at[f"{name}_line"].values
        jump = b.size - panel.attrs["width"] if label == "NN" else b.size  # NN has learnt the directions from here on
        axes.plot(np.insert(b, jump, np.nan), np.insert(line, jump, np.nan), color=colour, label=told, linewidth=1.6)
        look = LOOKS[label] | {"markersize": 3.5, "markeredgewidth": 0.8 if label == "NT" else 0.3}
        axes.errorbar(b, unit * at[name], unit * at[f"{name}_stderr"], linestyle="", elinewidth=0.6, capsize=0, **look)
    axes.set(xlabel="eigenvalue b of B along the direction u")


def predicted(label: str, b: FloatArray, N: int) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Return the means of G_ii and ‖(B − G)u_i‖² over weights at this N and d, and what each leaves out."""
    nothing = np.zeros_like(b), np.zeros_like(b)
    if label == "NT":
        once, twice = directions.projected(b, max(b.size - N, 0))
        return (b - once, twice), nothing
    if label == "NN":
        return directions.trained(b, N / b.size), nothing
    here, more = directions.features_at(b, N), directions.features_at(b, N + 1)
    return here, (np.abs(more[0] - here[0]), np.abs(more[1] - here[1]))


def dots_of(panel: Dataset) -> list[Dot]:
    """Return what is learnt and missed of every direction as dots; all were made from the same weights."""
    dots = []
    for label in panel.regime.values.tolist():
        for name in ("learnt", "missed"):
            at = panel.sel(regime=label)
            drawn, expected, left_out = (at[f"{name}_{end}"].values for end in ("draws", "predicted", "allowance"))
            for i, b in enumerate(panel.eigenvalue.values.tolist()):
                where = f"{name} by {label}, b = {b:.3g}"
                told = float(expected[i]), float(left_out[i])
                dots.append(Dot(where, drawn[:, i], *told, stream="weights", compared=False))
    return dots


def verdict(data: Panels) -> list[str]:
    """Return sums beside risks, what is learnt of small and large directions, and whether all is as predicted."""
    panel = data["directions"]
    d, gap = panel.attrs["d"], float(np.max(np.abs(panel["sum"] - panel.risk)))
    half = d // 2
    lines = [f"{'':>4}{'risk':>10}{'sum':>10}{'learnt of b, lower half':>26}{'upper half':>12}"]
    for label in panel.regime.values.tolist():
        at = panel.sel(regime=label)
        low, high = (
            float(at.learnt[part].sum() / panel.eigenvalue[part].sum()) for part in (slice(0, half), slice(half, None))
        )
        cells = f"{float(at.risk.mean()):>10.4f}{float(at['sum'].mean()):>10.4f}{low:>26.3f}{high:>12.3f}"
        lines.append(f"{label:>4}{cells}")
    lines.append(f"risk minus sum over directions: at most {gap:.1e}")
    judgement = judged(dots_of(panel)).answer()
    sums = "sums are risks" if gap <= _SUM else "sums do NOT equal risks"
    words = f"{judgement}; {sums}."
    return [*lines, answer(judgement.holds and gap <= _SUM, words, words)]


_TITLE = "What RF, NT and NN have learnt of every eigendirection of B"
_FAULTS = (
    wrong_rows("directions of which 5 % more is missed", data, "missed", lambda k, missed: 1.05 * missed),
    wrong_rows("directions in the order of no eigenvalue", data, "learnt", lambda k, learnt: learnt[::-1]),
)
EXPERIMENT = Experiment("directions", _TITLE, PRESETS, work, data, plot, verdict, place=16, faults=_FAULTS)

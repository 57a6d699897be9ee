"""Directions: what RF, NT and NN have learnt of every eigendirection of B, at a given N: Theorems 1–3 term by term."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import LazyscopeError
from lazyscope.explorer.views.base import Drawn, View
from lazyscope.explorer.views.calls import DrawnCall, Plan, Task, lines_of
from lazyscope.explorer.views.controls import State, draws_field, seed_field, slider
from lazyscope.explorer.views.lazy import levels_field, saved
from lazyscope.explorer.views.lazy.quadratic import PAPER, PRESETS, nature
from lazyscope.explorer.views.picture import Picture, axis, curve
from lazyscope.limits import directions
from lazyscope.problems import QuadraticTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures, Regime, Trained

_REGIMES: dict[str, tuple[str, Regime, Any]] = {
    "RF": ("rf", RandomFeatures(), directions.random_features),
    "NT": ("nt", NeuralTangent(), directions.neural_tangent),
    "NN": ("nn", Trained(), directions.trained),
}
_DOTS = 24  # directions that have a dot
_PANELS = {"learnt": "learnt", "missed": "missed × d"}


class DirectionsState(State):
    """Spectrum of B and the number of neurons."""

    levels: str = levels_field(PAPER, "Spectrum of B")
    rho: float = slider(0.25, 0.05, 1.5, "Neurons N/d", "Width of all three.", step=0.05)
    d: int = slider(100, 20, 200, "Dimension d", "Directions of B; dots are for this d.", step=10)
    draws: int = draws_field(usual=20)
    seed: int = seed_field()


def _setting(state: DirectionsState) -> tuple[QuadraticTarget, int, tuple[str, ...]]:
    here = nature(state.levels, state.d)
    assert isinstance(here.problem, QuadraticTarget)
    return here.problem, max(1, round(state.rho * state.d)), here.python


def lines(state: DirectionsState) -> dict[str, Any]:
    """What is learnt along every eigenvector, and what of the risk comes from it, against the eigenvalue."""
    problem, N, source = _setting(state)
    b = problem.eigenvalues
    largest = float(np.max(np.abs(b)))
    panels = [
        axis(_PANELS["learnt"], range_=(min(0.0, 1.1 * float(b[0])) - 0.3, 1.1 * largest)),
        axis(_PANELS["missed"]),
    ]
    picture = Picture(f"{problem}; N = {N}", axis("eigenvalue b of B along the direction u"), panels)
    shown = []
    for name, (role, regime, theory) in _REGIMES.items():
        try:
            claim, row = curve(problem, regime, {"rho": N / problem.d})
        except LazyscopeError as error:
            picture.note(name, str(error))
            continue
        learnt, missed = theory(b, N / problem.d)
        picture.line(name, role, b, learnt, claim)
        picture.line(f"{name}, missed", role, b, problem.d * missed / float(np.sum(b**2)), claim, panel=1)
        shown.append(f"{name} {float(row['risk'][0]):.3f}")
    picture.line("the target", "bayes", b, b, claim, dash="dot")
    told = f"At N/d = {N / problem.d:.3g} the risks, means of the lower frame, are {', '.join(shown)}."
    python = ["import numpy as np", "import lazyscope as ls", "from lazyscope.limits import directions", "", *source]
    python += ["b = problem.eigenvalues", "lines = {'the target': b}"]
    for name, (_, _, theory) in _REGIMES.items():
        if any(line["name"] == name for line in picture.lines):
            python += [f"learnt, missed = directions.{theory.__name__}(b, {N / problem.d!r})"]
            python += [f"lines |= {{{name!r}: learnt, '{name}, missed': problem.d * missed / np.sum(b**2)}}"]
    python += ["print(lines)"]
    answer = picture.answer("directions", state, saved("; ".join([python[2], *python[4:]])), lines_of(python))
    return {**answer, "reading": told}


@dataclass(frozen=True, eq=False)
class Forms(DrawnCall):
    """The quadratic forms that a regime learns from some draws of its weights, in the place of a verb."""

    def run(self) -> dict[str, FloatArray]:
        """Return the eigenvalues, and what is learnt and missed of their directions, (draws, directions)."""
        from lazyscope.experiments.frame.draws import computed
        from lazyscope.experiments.lazy.directions import DirectionsDraw

        problem, given = self.problem, self.arguments
        assert isinstance(problem, QuadraticTarget)
        numbers = range(given["draws"])
        rows = computed([DirectionsDraw(self.regime.label, problem, given["width"], k, given["seed"]) for k in numbers])
        some = np.unique(np.linspace(0, problem.d - 1, _DOTS).round().astype(int))
        return {
            "eigenvalue": problem.eigenvalues[some],
            "learnt": np.stack([row["learnt"][some] for row in rows]),
            "missed": problem.d * np.stack([row["missed"][some] for row in rows]),
        }

    def values(self, result: Mapping[str, FloatArray], variable: str) -> tuple[Any, Any]:
        """Return the mean over draws, and its standard error: none where nothing is drawn."""
        mean, stderr = super().values(result, variable)
        return mean, None if isinstance(self.regime, Trained) else stderr

    def source(self) -> str:
        """Write the draws."""
        width, draws, seed = (self.arguments[name] for name in ("width", "draws", "seed"))
        one = f'DirectionsDraw("{self.regime.label}", problem, {width}, k, {seed})'
        return f"[{one}.compute() for k in range({draws})]"


def plan(state: DirectionsState, fidelity: Drawn) -> Plan:
    """Forms that are learnt at this d, without samples."""
    problem, N, source = _setting(state)
    tasks, notes = [], []
    for name, (role, regime, _) in _REGIMES.items():
        if name == "NN" and float(problem.eigenvalues[0]) < 0.0:
            notes.append((name, "No dots: Theorem 3 assumes B ⪰ 0."))
            continue
        call = Forms("exact", problem, regime, {"width": N, "draws": state.draws, "seed": state.seed})
        shown = [(role, name, 0, "learnt"), (role, f"{name}, missed", 1, "missed")]
        tasks.append(Task(call, name, shown, lambda result: result["eigenvalue"]))
    notes.append((f"d = {problem.d}", "Lines are for d → ∞, dots for this d."))
    head = "from lazyscope.experiments.lazy.directions import DirectionsDraw"
    each = [f"dots[{task.name!r}] = {task.call.source()}" for task in tasks]
    show = "print({name: np.mean([row['learnt'] for row in rows], axis=0).round(4) for name, rows in dots.items()})"
    text = ["import numpy as np", "import lazyscope as ls", head, "", *source, "dots = {}", *each, show]
    return Plan(tuple(tasks), tuple(notes), saved("; ".join([head, *text[4:]])), lines_of(text))


VIEW = View(
    name="directions",
    title="Directions",
    text="Why NN gets below both lazy lines: each learns a quadratic form G, and here is what G has along every "
    "eigenvector u of B, ⟨u, Gu⟩, from the smallest eigenvalue to the largest. RF learns the same of every direction, "
    "NT a share of every direction, and NN the N largest, whole.",
    theorem="Theorems 1–3 of Ghorbani, Mei, Misiakiewicz and Montanari (2019), term by term; σ = u², N, d → ∞.",
    state=DirectionsState,
    lines=lines,
    plan=plan,
    fidelities=("exact",),
    presets={name: dict(preset) for name, preset in PRESETS.items()},
    export={
        "levels": [preset["levels"] for preset in PRESETS.values()],
        "rho": [0.1, 0.25, 0.5, 0.75, 1.0],
    },
)

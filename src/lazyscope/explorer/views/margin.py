"""Max margin: linear labels separated on random features (Montanari, Ruan, Sohn and Yan 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from lazyscope.explorer.views.base import Drawn, View
from lazyscope.explorer.views.calls import Call, Name, Plan, Task, along, lines_of, listing, written
from lazyscope.explorer.views.controls import ActivationName, State, choice, draws_field, seed_field, slider
from lazyscope.explorer.views.picture import Grid, Picture, axis, curve
from lazyscope.explorer.views.remembered import activation
from lazyscope.problems import LinearLabels
from lazyscope.regimes import Bayes, RandomFeatures

_SHOWN = [("error", "test error", 0, "error"), ("margin", "margin", 1, "margin")]
_DOTS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0)  # N/d, or half of n/d
_OTHER = {"psi1": "psi2", "psi2": "psi1"}
_LARGEST = 1000  # N or n of a dot: a margin of a second


class MarginState(State):
    """Which of N/d and n/d is on the axis, the value of the other, and the labels."""

    axis: Literal["psi1", "psi2"] = choice("psi1", "Horizontal axis", "psi1 is N/d, psi2 is n/d.", names=("N/d", "n/d"))
    psi1: float = slider(3.0, 0.1, 10.0, "Neurons N/d", "ψ₁ = N/d, where the axis is n/d.", log=True)
    psi2: float = slider(2.0, 0.1, 10.0, "Samples n/d", "ψ₂ = n/d, where the axis is N/d.", log=True)
    signal: float = slider(4.0, 0.0, 20.0, "Signal ‖β₀‖", "How surely the score decides the label.", step=0.5)
    link: Literal["logistic", "probit", "sign"] = choice(
        "logistic", "Link f₀", "P(y = 1 | x) = f₀(⟨β₀, x⟩); sign has no noise."
    )
    activation: ActivationName = choice("relu", "Activation σ", "σ of the features, by its name in the library.")
    d: int = slider(60, 20, 120, "Dimension d", "Of the dots; lines are for d → ∞.", step=10, group="dots")
    draws: int = draws_field()
    seed: int = seed_field()


@lru_cache(maxsize=64)
def _known(signal: float, link: str) -> LinearLabels:
    """Return the labels, the same object each time: its quadrature is set up once."""
    return LinearLabels(signal, link)


def _problem(state: MarginState) -> tuple[LinearLabels, RandomFeatures, list[str]]:
    labels, regime = _known(state.signal, state.link), RandomFeatures(activation(state.activation))
    python = ["import numpy as np", "import lazyscope as ls", ""]
    python.append(f"problem = {written(labels)}")
    return labels, regime, python


def lines(state: MarginState) -> dict[str, Any]:
    """Test error and margin along the axis, the Bayes error, and where data become separable."""
    labels, regime, python = _problem(state)
    grid = Grid.logarithmic(0.1, 10.0, 81)
    sizes: dict[str, Any] = {"psi1": state.psi1, "psi2": state.psi2}
    claim, result = curve(labels, regime, {**sizes, state.axis: grid.values}, method="margin")
    x = axis({"psi1": "N/d, neurons per dimension", "psi2": "n/d, samples per dimension"}[state.axis], log=True)
    top = max(0.5, 0.5 * float(np.ceil(2.2 * result["margin"].max())))  # in steps, so that the axis stands still
    panels = [axis("test error", range_=(0.0, 0.52)), axis("margin κ", range_=(0.0, top))]
    picture = Picture(f"{labels}; {regime}", x, panels)
    here = np.asarray(result["separable"], dtype=bool)  # elsewhere the only maximiser is a = 0, a coin
    picture.line("test error", "error", grid.values[here], result["error"][here], claim, panel=0)
    picture.line("margin", "margin", grid.values, result["margin"], claim, panel=1)
    floor, bayes = curve(labels, Bayes(), {})
    ends = [0.1, 10.0]
    picture.line("Bayes error", "bayes", ends, [float(bayes["error"][0])] * 2, floor, dash="dot")
    place = _threshold(state.signal, state.link, state.activation, state.axis, sizes[_OTHER[state.axis]])
    if 0.1 < place < 10.0:
        picture.mark(place, "separable →" if state.axis == "psi1" else "← separable")
    call = Call("limit", labels, regime, {**sizes, state.axis: Name(state.axis), "method": "margin"})
    python += [f"{state.axis} = {grid.python}", f"line = {call.source()}", "print(line.to_dataframe())"]
    python.append("print('Bayes', float(ls.bayes(problem).error))")
    commands = (Call("limit", labels, Bayes(), {}).command(), call.command(None, **{str(state.axis): grid.option}))
    return picture.answer("margin", state, " && ".join(commands), lines_of(python))


@lru_cache(maxsize=256)
def _threshold(signal: float, link: str, sigma: str, along: str, other: float) -> float:
    """Where on the axis data become separable."""
    from lazyscope.limits.margin.separability import separability_threshold

    given = {"psi2" if along == "psi1" else "psi1": other}
    return float(separability_threshold(_known(signal, link), RandomFeatures(activation(sigma)), **given)[along])


@dataclass(frozen=True, eq=False)
class Separation(Call):
    """The margins of some draws; their test error where each of them has a classifier to test."""

    def values(self, result: Any, variable: str) -> tuple[Any, Any]:
        """Return a variable with its standard error; no error where a draw is not separable, whose a = 0 is a coin."""
        values, error = super().values(result, variable)
        if variable != "error":
            return values, error
        all_ = result["separable"].values == 1.0
        return np.where(all_, values, np.nan), None if error is None else np.where(all_, error, np.nan)


def plan(state: MarginState, fidelity: Drawn) -> Plan:
    """Margins of drawn data, a call for each place on the axis."""
    labels, regime, python = _problem(state)
    d = state.d
    common: dict[str, Any] = {"d": d, "draws": state.draws, "seed": state.seed, "method": "margin"}
    name, other, fixed = ("width", "samples", state.psi2) if state.axis == "psi1" else ("samples", "width", state.psi1)
    sizes = [{name: max(2, round(share * d)), other: max(2, round(fixed * d))} for share in _DOTS]
    possible = [place for place in sizes if max(place.values()) <= _LARGEST]
    finite = (
        "Lines are for d → ∞. At this d one draw lies beside them by the order of 1/√d, the mean of many by that of "
        "1/d, and some draws are separable a little below the threshold."
    )
    notes = [(f"d = {d}", finite)]
    notes += [("test error", "Dots only where every draw is separable: elsewhere there is no classifier to test.")]
    if len(possible) < len(sizes):
        notes.append(("dots", f"Those with N or n above {_LARGEST} are left out. Use a smaller d."))
    tasks = []
    for place in possible:
        call = Separation("simulate", labels, regime, {**place, **common})
        tasks.append(Task(call, f"N = {place['width']}, n = {place['samples']}", _SHOWN, along(state.axis)))
    commands = [task.call.command() for task in tasks]
    printed = "dot.error.values.round(4), dot.margin.values.round(4)"
    return Plan(tuple(tasks), tuple(notes), " && ".join(commands), listing(python, tasks, printed))


VIEW = View(
    name="margin",
    title="Max margin",
    text="Labels decided by a linear score are separated, with the largest margin, on N random features of d inputs: "
    "below a threshold in N no classifier fits all n samples, above it the margin opens. "
    "The test error goes on falling long after every sample is fitted, and never below the dotted Bayes error.",
    theorem="Montanari, Ruan, Sohn and Yan (2019), by Gordon's inequality: N, n, d → ∞ with N/d = ψ₁ and n/d = ψ₂.",
    state=MarginState,
    lines=lines,
    plan=plan,
    fidelities=("simulate",),
    presets={
        "Talk: logistic, ‖β₀‖ = 4": {"axis": "psi1", "psi2": 2.0, "signal": 4.0, "link": "logistic"},
        "No noise": {"axis": "psi1", "psi2": 2.0, "signal": 4.0, "link": "sign"},
        "Pure noise": {"axis": "psi1", "psi2": 2.0, "signal": 0.0, "link": "logistic"},
        "More data": {"axis": "psi2", "psi1": 3.0, "signal": 4.0, "link": "logistic"},
    },
    export={
        "axis": ["psi1", "psi2"],
        "psi1": [1.0, 3.0, 10.0],
        "psi2": [0.5, 1.0, 2.0, 4.0, 8.0],
        "signal": [0.0, 1.0, 2.0, 4.0, 8.0],
        "link": ["logistic", "probit", "sign"],
        "activation": ["relu", "tanh"],
    },
)

"""Any degree: ridge regression at given n, N, d and λ, for a target with energy in degrees 1 to 4."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.explorer.views.base import Drawn, Value, View
from lazyscope.explorer.views.calls import Call, Name, Plan, Task, at, dictionary, lines_of, listing
from lazyscope.explorer.views.controls import ActivationName, State, choice, draws_field, seed_field, slider, switch
from lazyscope.explorer.views.picture import Grid, Picture, axis
from lazyscope.explorer.views.remembered import activation
from lazyscope.problems import HarmonicTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures

_LOW, _HIGH = 1.0, 1e7  # of n and N
_CURVES = {"samples": ("risk against n", "risk"), "width": ("risk against N", "nn")}
_OTHER = {"samples": "width", "width": "samples"}
_PLAIN: dict[str, Value] = {"regime": "rf", "infinite": False, "e1": 0.5, "e2": 0.5, "e3": 0.0, "e4": 0.0}
_STAIRS: dict[str, Value] = {"e1": 0.4, "e2": 0.3, "e3": 0.2, "e4": 0.1, "activation": "relu3"}  # which sees all four
_DOTS = (10, 30, 100, 300, 1000)  # n or N
_LARGEST, _WIDE = 1500, 1000  # N or n of a dot, a fit of a second; neurons that stand for N = ∞
_DEEPEST = 200  # d of a dot


class DegreesState(State):
    """The energy of each degree, all sizes, and what learns."""

    regime: Literal["rf", "nt"] = choice("rf", "Regime", "Random features, or the tangent model.", names=("RF", "NT"))
    activation: ActivationName = choice("relu", "Activation σ", "σ of the features, by its name in the library.")
    e1: float = slider(0.5, 0.0, 1.0, "Energy of degree 1", "Linear functions of the inputs.", step=0.05)
    e2: float = slider(0.5, 0.0, 1.0, "Energy of degree 2", "Interactions of two inputs, squares.", step=0.05)
    e3: float = slider(0.0, 0.0, 1.0, "Energy of degree 3", "Interactions of three inputs. ReLU sees none.", step=0.05)
    e4: float = slider(0.0, 0.0, 1.0, "Energy of degree 4", "Interactions of four inputs.", step=0.05)
    d: int = slider(30, 10, 1000, "Dimension d", "Inputs lie on the sphere ‖x‖ = √d.", step=1, log=True)
    samples: int = slider(1000, 1, 1_000_000, "Samples n", "n of the curve against N.", step=1, log=True)
    width: int = slider(
        400, 1, 1_000_000, "Neurons N", "N of the curve against n.", step=1, log=True, when={"infinite": False}
    )
    infinite: bool = switch(False, "N = ∞", "Infinitely many neurons: kernel ridge regression.", group="theory")
    ridge: float = slider(
        1e-2, 1e-6, 100.0, "Ridge λ", "Objective Σ(y − f)² + λ‖a‖²; 0 is the limit λ → 0.", log=True, zero=True
    )
    noise: float = slider(0.2, 0.0, 2.0, "Noise τ", "Standard deviation of the noise in a label.", step=0.05)
    learnt: Literal["samples", "width"] = choice(
        "samples", "Learnt", "What is learnt of each degree, against n or against N.", names=("against n", "against N")
    )
    log: bool = switch(False, "Logarithmic risk", "A logarithmic vertical axis.")
    draws: int = draws_field()
    seed: int = seed_field()


def _problem(state: DegreesState) -> tuple[HarmonicTarget, RandomFeatures | NeuralTangent, list[str]]:
    energies = [0.0, state.e1, state.e2, state.e3, state.e4]
    target = HarmonicTarget(state.d, np.array(energies), state.noise)
    regime = (RandomFeatures if state.regime == "rf" else NeuralTangent)(activation(state.activation))
    python = ["import numpy as np", "import lazyscope as ls", ""]
    python.append(f"problem = ls.HarmonicTarget({state.d}, {energies!r}, noise={state.noise!r})")
    return target, regime, python


def _options(state: DegreesState) -> dict[str, Any]:
    """Return the target as the command line writes it."""
    energies = ",".join(f"{energy!r}" for energy in (0.0, state.e1, state.e2, state.e3, state.e4))
    return {"d": state.d, "energies": energies, "noise": state.noise or None}


def _held(state: DegreesState) -> dict[str, float]:
    """Return what is on the axis, n or N, and the value of the other."""
    if state.infinite:
        return {"samples": np.inf}
    narrow = state.regime == "nt" and state.width < _least(state)
    held: dict[str, float] = {} if narrow else {"samples": state.width}
    return held | {"width": state.samples}


def _least(state: DegreesState) -> int:
    """Return the smallest N of the theory: 2d for the tangent model."""
    return 2 * state.d if state.regime == "nt" else 1


def lines(state: DegreesState) -> dict[str, Any]:
    """The risk against n and against N, and what is learnt of each degree against one of them."""
    target, regime, python = _problem(state)
    top = 0.5 * float(np.ceil(2.8 * (target.energy + 0.4 * target.noise**2) + 0.1))  # in steps: the axis stands still
    risk = axis("risk", log=state.log, range_=None if state.log else (0.0, top))
    learnt = axis(f"learnt with {'N' if state.learnt == 'width' else 'n'}", range_=(-0.02, 1.05))
    picture = Picture(f"{target}; {regime}", axis("n or N", log=True, range_=(_LOW, _HIGH)), [risk, learnt])
    calls, commands, runs = {}, [], {}
    for name, held in _held(state).items():
        label, role = _CURVES[name]
        least, yours = float(_least(state)) if name == "width" else _LOW, float(getattr(state, name))
        grid = Grid.logarithmic(least, _HIGH, 86, around=held, also=yours)
        sizes: dict[str, Any] = {_OTHER[name]: held, "ridge": state.ridge}
        places = {each: (value,) for each, value in sizes.items()} | {name: tuple(grid.values.tolist())}
        run = Run("limit", target, regime, places)
        runs[name] = run, grid, run.compute()
        picture.line(label, role, grid.values, np.ravel(runs[name][2]["risk"]), run.claim)
        python.append(f"{name} = {grid.python}")
        infinite = {_OTHER[name]: Name("np.inf")} if np.isinf(held) else {}
        call = calls[label] = Call("limit", target, regime, {**sizes, **infinite, name: Name(name)})
        words = {_OTHER[name]: "inf"} if np.isinf(held) else {}
        commands.append(call.command(_options(state), **words, **{name: grid.option}))
    if state.learnt in runs:
        _learnt(picture, target, *runs[state.learnt])
    if not state.infinite:
        if "samples" not in runs:
            picture.note("risk against n", f"The formula for the tangent model needs N ≥ 2d = {2 * state.d}.")
        picture.mark(float(state.width), "your N")
        picture.mark(float(state.samples), "your n")
    python += [*dictionary("lines", calls), "for name, line in lines.items():", "    print(name, line.to_dataframe())"]
    answer = picture.answer("degrees", state, " && ".join(commands), lines_of(python))
    return {**answer, "reading": _reading(state, target, *runs["samples"][1:]) if "samples" in runs else None}


def _reading(state: DegreesState, target: HarmonicTarget, grid: Grid, row: Row) -> str:
    """Your n and N in words: there the two curves meet."""
    i = int(np.argmin(np.abs(grid.values - state.samples)))  # n is one of the grid
    where = f"At your n = {state.samples:,} and N = {'∞' if state.infinite else f'{state.width:,}'}"
    risk, shares = float(np.ravel(row["risk"])[i]), np.reshape(row["learnt"], (grid.values.size, -1))[i]
    if not np.isfinite(risk):
        return f"{where} the risk is infinite: N = n without a ridge."
    parts = [f"{shares[degree]:.3g} of degree {degree}" for degree in np.flatnonzero(target.energies).tolist()]
    return f"{where}: risk {risk:.3g}; learnt {', '.join(parts) or 'nothing'}."


def _learnt(picture: Picture, target: HarmonicTarget, run: Run, grid: Grid, row: Row) -> None:
    """Add what is learnt of each degree that has energy."""
    shares = np.reshape(row["learnt"], (grid.values.size, -1))
    for degree in np.flatnonzero(target.energies).tolist():
        picture.line(f"degree {degree}", f"degree{degree}", grid.values, shares[:, degree], run.claim, panel=1)


def plan(state: DegreesState, fidelity: Drawn) -> Plan:
    """Fits on drawn data on both curves, a call for each place."""
    target, regime, python = _problem(state)
    common: dict[str, Any] = {"ridge": state.ridge, "draws": state.draws, "seed": state.seed}
    notes, tasks = [], []
    if state.d > _DEEPEST:
        notes.append(("dots", f"None for d above {_DEEPEST}: their fits take too long. Use a smaller d."))
    elif state.infinite:
        notes.append(("dots", f"They have N = {_WIDE} in place of ∞, and lie above the line where n is not far below."))
    for name, held in _held(state).items() if state.d <= _DEEPEST else ():
        label, role = _CURVES[name]
        value = _WIDE if np.isinf(held) else int(held)
        if value > _LARGEST:
            notes.append((label, f"No dots: {'N' if name == 'samples' else 'n'} = {value} is above {_LARGEST}."))
            continue
        for size in (size for size in _DOTS if name == "samples" or size >= _least(state)):
            sizes = {name: size, _OTHER[name]: value}
            call = Call("simulate", target, regime, {"width": sizes["width"], "samples": sizes["samples"], **common})
            where = f"N = {sizes['width']}, n = {sizes['samples']}"
            tasks.append(Task(call, f"{label}, {where}", [(role, label, 0, "risk")], at(size)))
    commands = [task.call.command(_options(state)) for task in tasks]
    return Plan(tuple(tasks), tuple(notes), " && ".join(commands), listing(python, tasks))


VIEW = View(
    name="degrees",
    title="Any degree",
    text="A target is made of linear functions and of interactions of two, three and four inputs, each with its own "
    "energy: degree k has about dᵏ/k! of them, and is learnt when both n and N (for NT: Nd) exceed that number. "
    "Between, the smaller of the two decides, and where they are equal a small ridge lets the risk peak.",
    theorem="Deterministic equivalents at given n, N, d and λ, without a limit (Defilippis et al. 2024; NT: ours).",
    state=DegreesState,
    lines=lines,
    plan=plan,
    fidelities=("simulate",),
    presets={
        "Linear": {**_PLAIN, "e1": 1.0, "e2": 0.0},
        "Interactions of two": {**_PLAIN, "e1": 0.0, "e2": 1.0},
        "Staircase": {**_PLAIN, **_STAIRS, "d": 100, "noise": 0.0, "width": 1_000_000},
        "Peak at N = n": {**_PLAIN, "ridge": 1e-5, "noise": 0.5},
        "Tangent model": {**_PLAIN, "regime": "nt", "width": 400},
        "Kernel, N = ∞": {**_PLAIN, "infinite": True},
    },
    export={
        "regime": ["rf", "nt"],
        "e1": [0.0, 0.5, 1.0],
        "e2": [0.0, 0.5, 1.0],
        "samples": [100, 1000, 10_000],
        "width": [100, 400, 10_000],
        "infinite": [False, True],
        "ridge": [0.0, 1e-2],
    },
)

"""Double descent: random-features ridge regression with N, n and d in proportion (Mei and Montanari 2019)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lazyscope.explorer.views.base import Drawn, View
from lazyscope.explorer.views.calls import Call, Name, Plan, Task, along, lines_of, listing, written
from lazyscope.explorer.views.controls import ActivationName, State, choice, draws_field, seed_field, slider, switch
from lazyscope.explorer.views.lazy import saved
from lazyscope.explorer.views.picture import Grid, Picture, axis, curve
from lazyscope.explorer.views.remembered import activation
from lazyscope.problems import LinearTarget
from lazyscope.regimes import RandomFeatures

_LABELS = {"psi1": "N/d, neurons per dimension", "psi2": "n/d, samples per dimension", "ridge": "ridge λ"}
_SHOWN = {"risk": "risk", "bias": "bias", "variance": "variance", "train": "training error"}
_DASH = {"risk": "solid", "bias": "dash", "variance": "dash", "train": "dot"}
_DOTS = (0.3, 0.5, 0.75, 0.9, 1.1, 1.4, 2.0, 3.0, 5.0)  # of the threshold
_RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
_LARGEST = 1200  # N or n of a dot: a fit of a second


class DescentState(State):
    """Which of N/d, n/d and λ is on the axis, the values of all three, and the target."""

    axis: Literal["psi1", "psi2", "ridge"] = choice(
        "psi1", "Horizontal axis", "psi1 is N/d, psi2 is n/d, ridge is λ.", names=("N/d", "n/d", "ridge λ")
    )
    psi1: float = slider(2.0, 0.05, 20.0, "Neurons N/d", "ψ₁ = N/d.", log=True)
    psi2: float = slider(3.0, 0.05, 20.0, "Samples n/d", "ψ₂ = n/d.", log=True)
    ridge: float = slider(
        1e-3, 1e-6, 10.0, "Ridge λ", "λ of ridge regression; 0 is the limit λ → 0.", log=True, zero=True
    )
    noise: float = slider(
        0.5, 0.0, 2.0, "Noise τ", "Standard deviation of the noise in a label; the signal is 1.", step=0.05
    )
    nonlinear: float = slider(
        0.0, 0.0, 1.0, "Beyond linear F⋆", "Standard deviation of the part of the target that is not linear.", step=0.05
    )
    activation: ActivationName = choice("relu", "Activation σ", "σ of the features, by its name in the library.")
    split: bool = switch(True, "Bias and variance", "Show bias, variance and training error too.")
    best: bool = switch(False, "Best ridge", "Show the risk with the ridge that minimises it at every point.")
    log: bool = switch(False, "Logarithmic risk", "A logarithmic vertical axis.")
    d: int = slider(60, 20, 150, "Dimension d", "Of the dots; lines are for d → ∞.", step=10, group="dots")
    draws: int = draws_field()
    seed: int = seed_field()


def _grid(state: DescentState) -> Grid:
    """The axis; closer together around N = n, where a small ridge lets the risk peak."""
    if state.axis == "ridge":
        return Grid.logarithmic(1e-6, 10.0, 71)
    return Grid.logarithmic(0.1, 20.0, 81, around=state.psi2 if state.axis == "psi1" else state.psi1)


def _problem(state: DescentState) -> tuple[LinearTarget, RandomFeatures, list[str]]:
    target = LinearTarget(noise=state.noise, nonlinear=state.nonlinear)
    python = ["import numpy as np", "import lazyscope as ls", ""]
    python.append(f"problem = {written(target)}")
    return target, RandomFeatures(activation(state.activation)), python


def lines(state: DescentState) -> dict[str, Any]:
    """Risk along the axis, its bias and variance, and the risk at the best ridge."""
    target, regime, python = _problem(state)
    grid = _grid(state)
    top = float(np.ceil(2.5 * (target.energy + 0.4 * target.noise**2)))  # in steps, so that the axis stands still
    panel = axis("risk (predicting 0: 1 + F⋆²)", log=state.log, range_=None if state.log else (0.0, top))
    picture = Picture(f"{target}; {regime}", axis(_LABELS[state.axis], log=True), [panel])
    sizes: dict[str, Any] = {"psi1": state.psi1, "psi2": state.psi2, "ridge": state.ridge}
    claim, result = curve(target, regime, {**sizes, state.axis: grid.values})
    for name in _SHOWN if state.split else ("risk",):
        picture.line(_SHOWN[name], name, grid.values, result[name], claim, dash=_DASH[name])
    call = Call("limit", target, regime, {**sizes, state.axis: Name(state.axis)})
    python += [f"{state.axis} = {grid.python}", f"line = {call.source()}", "print(line.to_dataframe())"]
    command = call.command(None, **{str(state.axis): grid.option})
    best = _best(state, target, regime, grid, picture)
    if best:
        command += " && " + saved("; ".join([*python[3:5], best]))
        python.append(best)
    threshold = {"psi1": state.psi2, "psi2": state.psi1}.get(state.axis)
    if threshold is not None:
        picture.mark(threshold, "N = n")
        picture.at = threshold
    return picture.answer("descent", state, command, lines_of(python))


def _best(state: DescentState, target: LinearTarget, regime: RandomFeatures, grid: Grid, picture: Picture) -> str:
    """Add the risk at the best ridge, for every point of N/d or n/d; return the Python that prints it."""
    if not state.best or state.axis == "ridge":
        return ""
    from lazyscope.evidence.registry import find
    from lazyscope.limits.ridge.optimal import optimal_ridge

    sizes: dict[str, Any] = {"psi1": state.psi1, "psi2": state.psi2}
    result = optimal_ridge(target, regime, **{**sizes, state.axis: grid.values})
    picture.line("risk, best ridge", "best", grid.values, result.risk.values, find("limit", target, regime))
    given = ", ".join(f"{name}={state.axis if name == state.axis else repr(value)}" for name, value in sizes.items())
    return f"print(ls.optimal_ridge(problem, {written(regime)}, {given}).to_dataframe().to_string())"


def plan(state: DescentState, fidelity: Drawn) -> Plan:
    """Fits on drawn data: a call for each place on the axis, or one with every ridge."""
    target, regime, python = _problem(state)
    d = state.d
    common: dict[str, Any] = {"d": d, "draws": state.draws, "seed": state.seed}
    sizes: list[dict[str, Any]] = []
    if state.axis == "ridge":
        sizes = [{"width": _whole(state.psi1 * d), "samples": _whole(state.psi2 * d), "ridge": list(_RIDGES)}]
    else:
        fixed, name = (state.psi2, "width") if state.axis == "psi1" else (state.psi1, "samples")
        other = "samples" if name == "width" else "width"
        places = sorted({_whole(fixed * d * share) for share in _DOTS})
        sizes = [{name: size, other: _whole(fixed * d), "ridge": state.ridge} for size in places]
    possible = [place for place in sizes if max(place["width"], place["samples"]) <= _LARGEST]
    notes = []
    if possible:
        notes.append((f"d = {d}", _finite(target, regime, d, possible)))
    if len(possible) < len(sizes):
        notes.append(("dots", f"Those with N or n above {_LARGEST} are left out. Use a smaller d."))
    wanted = [(name, _SHOWN[name], 0, name) for name in (_SHOWN if state.split else ("risk",))]
    tasks = []
    for place in possible:
        call = Call("simulate", target, regime, {**place, **common})
        tasks.append(Task(call, f"N = {place['width']}, n = {place['samples']}", wanted, along(state.axis)))
    commands = [task.call.command() for task in tasks]
    return Plan(tuple(tasks), tuple(notes), " && ".join(commands), listing(python, tasks))


def _finite(target: LinearTarget, regime: RandomFeatures, d: int, sizes: list[dict[str, Any]]) -> str:
    """Say how far from the line of the risk the means of the dots lie, by the formula for given n, N and d."""
    from lazyscope.limits.spectral.linear_features import spectral_target
    from lazyscope.runs.verbs import limit

    seen = spectral_target(target, regime, d)
    off: list[float] = []
    for place in sizes:
        N, n, ridge = place["width"], place["samples"], np.atleast_1d(place["ridge"])
        line = limit(target, regime, psi1=N / d, psi2=n / d, ridge=ridge).risk.values
        here = limit(seen, RandomFeatures(), width=N, samples=n, ridge=n / d * ridge).risk.values
        finite = np.isfinite(line) & np.isfinite(here)  # neither is where N = n and there is no ridge
        off += (here[finite] / line[finite] - 1.0).tolist()
    low, high = (100.0 * max(0.0, *(sign * share for share in [0.0, *off])) for sign in (-1.0, 1.0))
    return (
        f"Lines are for d → ∞. At this d the mean of many draws lies from {low:.1f} % below to {high:.1f} % above the "
        "line of the risk, by the formula for given n, N and d. A larger d brings it nearer."
    )


def _whole(size: float) -> int:
    return max(1, round(size))


VIEW = View(
    name="descent",
    title="Double descent",
    text="Ridge regression on N random features of d inputs fits n noisy samples of a linear function: the risk peaks "
    "where N = n, the fit just about interpolates, and falls again beyond. Turn the noise up and the peak is variance; "
    "turn the ridge up and it melts.",
    theorem="Theorem of Mei and Montanari (2019): N, n, d → ∞ with N/d = ψ₁ and n/d = ψ₂.",
    state=DescentState,
    lines=lines,
    plan=plan,
    fidelities=("simulate",),
    presets={
        "Peak": {"axis": "psi1", "psi2": 3.0, "ridge": 1e-3, "noise": 0.5, "nonlinear": 0.0},
        "Ridgeless": {"axis": "psi1", "psi2": 3.0, "ridge": 0.0, "noise": 0.5, "nonlinear": 0.0},
        "No peak": {"axis": "psi1", "psi2": 3.0, "ridge": 0.1, "noise": 0.5, "nonlinear": 0.0},
        "More data hurt": {"axis": "psi2", "psi1": 3.0, "ridge": 1e-4, "noise": 0.2, "nonlinear": 0.0},
        "Noise wants a ridge": {"axis": "ridge", "psi1": 10.0, "psi2": 3.0, "noise": 1.0, "nonlinear": 0.0},
    },
    export={
        "axis": ["psi1", "psi2", "ridge"],
        "psi1": [1.0, 2.0, 4.0, 10.0],
        "psi2": [1.0, 2.0, 3.0, 5.0, 10.0],
        "ridge": [0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0],
        "noise": [0.0, 0.2, 0.5, 1.0, 2.0],
    },
)

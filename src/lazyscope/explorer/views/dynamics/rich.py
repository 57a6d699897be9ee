"""Lazy to rich: an output scale α takes the end of training from NT to NN (Chizat, Oyallon and Bach 2019)."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.registry import find
from lazyscope.evidence.run import Run
from lazyscope.experiments.frame.draws import over_draws
from lazyscope.explorer.views.base import Drawn, View
from lazyscope.explorer.views.calls import Call, Plan, Task, at, lines_of, listing, written
from lazyscope.explorer.views.controls import State, choice, seed_field, slider
from lazyscope.explorer.views.dynamics.training import FLOW
from lazyscope.explorer.views.lazy import Nature, levels_field, saved
from lazyscope.explorer.views.lazy.quadratic import PAPER, nature
from lazyscope.explorer.views.picture import Grid, Picture, axis, curve
from lazyscope.problems import QuadraticTarget
from lazyscope.regimes import NeuralTangent, Trained

_ENDS = (1e-3, 1e4)  # of α
_TIMES = (0.001, 1000.0)
_SCALES = (0.01, 1.0, 10.0, 100.0, 1000.0)  # of the dots
_SURE = 2.0  # standard errors of the band
_LARGEST = 60  # d of a dot
_RUNS = 4  # draws of the weights, of line and dots alike


class RichState(State):
    """The scale, the sizes, and what is on the axis: the scale at the end of training, or time at this scale."""

    axis: Literal["alpha", "time"] = choice(
        "alpha", "Horizontal axis", "alpha: where training ends, against α; time: on the way, at this α.",
        names=("α, at the end", "time, at this α"),
    )  # fmt: skip
    scale: float = slider(
        1.0, *_ENDS, "Output scale α", "f = α(h − h₀) + c: large is lazy, small is rich.", log=True,
    )  # fmt: skip
    levels: str = levels_field(PAPER, "Spectrum of B")
    rho: float = slider(0.5, 0.1, 0.9, "Neurons N/d", "Width of the network.", step=0.05)
    d: int = slider(40, 20, 100, "Dimension d", "Of the inputs, of line and dots.", step=10)
    seed: int = seed_field()


_FLOORS: dict[str, tuple[str, NeuralTangent | Trained]] = {"NT": ("nt", NeuralTangent()), "NN": ("nn", Trained())}


def _width(state: RichState) -> int:
    return max(1, round(state.rho * state.d))


def _problem(here: Nature) -> QuadraticTarget:
    assert isinstance(here.problem, QuadraticTarget)
    return here.problem


@lru_cache(maxsize=64)
def _ends(levels: str, d: int, N: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the risk at the end of training for every α, mean and standard error over draws: an eigenvalue problem."""
    problem = _problem(nature(levels, d))
    runs = [
        [Run("exact", problem, Trained(alpha=a), {"width": (N,)}, number=k, seed=seed) for k in range(_RUNS)]
        for a in _grid().values.tolist()
    ]
    risks = np.array([[float(np.squeeze(run.compute()["risk"])) for run in some] for some in runs])
    return over_draws(risks)


@cache
def _grid() -> Grid:
    return Grid.logarithmic(*_ENDS, 36)  # five a decade


def _floors(picture: Picture, problem: QuadraticTarget, N: int, ends: list[float]) -> None:
    """Add both ends of the way: the tangent model and Theorem 3."""
    for name, (role, regime) in _FLOORS.items():
        claim, row = curve(problem, regime, {"rho": N / problem.d})
        picture.line(name, role, ends, [float(row["risk"][0])] * 2, claim, dash="dot")


def _floor_source(N: int) -> str:
    """Return the Python that adds both ends to `lines`."""
    sources = (
        f"{name!r}: np.full(2, float(ls.limit(problem, {written(regime)}, rho={N} / problem.d).risk))"
        for name, (_, regime) in _FLOORS.items()
    )
    return f"lines |= {{{', '.join(sources)}}}"


def lines(state: RichState) -> dict[str, Any]:
    """The risk at the end against α between NT and NN, or along time."""
    here, N = nature(state.levels, state.d), _width(state)
    problem = _problem(here)
    panel = axis("risk (best constant: 1)", range_=(-0.02, 1.08))
    if state.axis == "time":
        return _along(state, here, N, panel)
    grid = _grid()
    picture = Picture(f"{problem}; N = {N}", axis("output scale α", log=True, range_=_ENDS), [panel], at=state.scale)
    mean, stderr = _ends(state.levels, state.d, N, state.seed)
    claim = find("exact", problem, Trained(alpha=1.0))
    band = (mean - _SURE * stderr, mean + _SURE * stderr)
    picture.line("end of training", "risk", grid.values, mean, claim, band=band)
    _floors(picture, problem, N, list(_ENDS))
    picture.note("NT, NN", "Dotted for d → ∞; the line has this d and these weights, so that it may end beside them.")
    picture.mark(state.scale, "your α")
    one = f"ls.exact(problem, ls.Trained(alpha=a), width={N}, draws={_RUNS}, seed={state.seed}).risk"
    python = ["import numpy as np", "import lazyscope as ls", "", *here.python, f"alpha = {grid.python}"]
    python += [f"lines = {{'end of training': np.array([float({one}) for a in alpha])}}"]
    python += [_floor_source(N), "print(lines)"]
    return picture.answer("rich", state, saved("; ".join(python[3:])), lines_of(python))


def _along(state: RichState, here: Nature, N: int, panel: dict[str, Any]) -> dict[str, Any]:
    """The way there, at one scale and for one draw of the weights, beside the tangent model of the same weights."""
    from lazyscope.limits.flow.curve import flow

    grid, problem = Grid.logarithmic(*_TIMES, 60), _problem(here)
    x = axis("t, sum of the step sizes", log=True, range_=_TIMES)
    picture = Picture(f"{problem}; N = {N}, α = {state.scale:g}", x, [panel])
    regimes: dict[str, tuple[str, Trained | NeuralTangent, str]] = {
        "this α": ("risk", Trained(alpha=state.scale), "solid"),
        "NT, same weights": ("nt", NeuralTangent(), "dash"),
    }
    for name, (role, regime, dash) in regimes.items():
        path = flow(problem, regime, width=N, times=grid.values, seed=state.seed)
        picture.line(name, role, grid.values, path.risk.values, FLOW, dash=dash)
    _floors(picture, problem, N, list(_TIMES))
    python = ["import numpy as np", "import lazyscope as ls", "", *here.python, f"t = {grid.python}"]
    calls = {
        name: f"ls.flow(problem, {source}, width={N}, times=t, seed={state.seed}).risk.values"
        for name, source in zip(regimes, (f"ls.Trained(alpha={state.scale!r})", "ls.NeuralTangent()"), strict=True)
    }
    python += [f"lines = {{{', '.join(f'{name!r}: {call}' for name, call in calls.items())}}}"]
    python += [_floor_source(N), "print(lines)"]
    return picture.answer("rich", state, saved("; ".join(python[3:])), lines_of(python))


def plan(state: RichState, fidelity: Drawn) -> Plan:
    """SGD at some scales, to its end, from the weights of the line."""
    from lazyscope.training.sgd.lazy_to_rich import plan as protocol_of

    if state.axis == "time" or state.d > _LARGEST:
        why = "They stand on the curve against α." if state.axis == "time" else f"None for d above {_LARGEST}."
        return Plan((), (("dots", why),), "", "")
    here, N = nature(state.levels, state.d), _width(state)
    problem = _problem(here)
    tasks = []
    for alpha in _SCALES:
        arguments = {"width": N, "draws": _RUNS, "seed": state.seed, "protocol": protocol_of(problem, alpha)}
        call = Call("simulate", problem, Trained(alpha=alpha), arguments)
        tasks.append(Task(call, f"α = {alpha:g}", [("risk", "end of training", 0, "risk")], at(alpha)))
    python = ["import numpy as np", "import lazyscope as ls", "", *here.python]
    shown = [f"print({task.name!r}, float({task.call.source()}.risk))" for task in tasks]
    note = ("SGD", "From the same weights as the line; the bars show the spread over those weights.")
    text = listing(python, tasks, "float(dot.risk), float(dot.stderr)")
    return Plan(tuple(tasks), (note,), saved("; ".join([*here.python, *shown])), text)


VIEW = View(
    name="rich",
    title="Lazy to rich",
    text="One number decides how lazy a network is: multiply its output by α, and training with a large α ends where "
    "the tangent model does, with a small α where Theorem 3 says. Move α to see where it ends between the two, and how "
    "it gets there in time.",
    theorem="Theorem 3 for the target B + αK₀, σ = u²; Chizat, Oyallon and Bach (2019).",
    state=RichState,
    lines=lines,
    plan=plan,
    fidelities=("simulate",),
    presets={
        "Lazy": {"scale": 1000.0},
        "Between": {"scale": 10.0},
        "Rich": {"scale": 0.01},
        "Two levels": {"axis": "alpha", "levels": "0,0,0,0,2,2,2,2", "rho": 0.5},
        "In time": {"axis": "time", "scale": 1.0},
    },
    export={
        "axis": ["alpha", "time"],
        "scale": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0],
        "levels": ["", "0,0,0,0,2,2,2,2"],
        "rho": [0.25, 0.5, 0.75],
    },
)

"""Training: the risk in time of RF, NT and NN on a quadratic target, or of SGD on a committee of neurons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.explorer.views.base import Drawn, View
from lazyscope.explorer.views.calls import DrawnCall, Plan, Task, lines_of, listing, written
from lazyscope.explorer.views.controls import State, choice, moment, own_seed, seed_field, slider
from lazyscope.explorer.views.dynamics import committee
from lazyscope.explorer.views.lazy import levels_field, saved
from lazyscope.explorer.views.lazy.quadratic import PAPER, nature
from lazyscope.explorer.views.picture import Grid, Picture, axis
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, RandomFeatures, Trained

FIRST, LAST, POINTS = 0.05, 150.0, 60
"""Times of the lines."""
_BATCH, _UNTIL = 50, 30.0  # of SGD: samples a step, and when it stops
_SHOWN = 15  # dots of a trace
_DIRECTIONS = 8  # columns of the heat map
_QUADRATIC: dict[str, str | bool] = {"target": "quadratic"}
_COMMITTEE: dict[str, str | bool] = {"target": "committee"}
FLOW = {
    "key": "report/flow",
    "title": "gradient flow on the population risk",
    "theorem": "The limit ε → 0 of Theorem 3's algorithm: a matrix Riccati equation in closed form, for σ = u²",
    "citations": ["ghorbani2019limitations"],
    "assumptions": [
        "σ(u) = u², n = ∞",
        "NN: typical weights, N, d → ∞ at this N/d; RF and NT: means over the weights of the runs",
    ],
    "erratum": "",
}


class TrainingState(State):
    """Which target, its sizes, and the moment that is looked at."""

    target: Literal["quadratic", "committee"] = choice(
        "quadratic",
        "Target",
        "The papers' quadratic target, or a committee of neurons that SGD must tell apart.",
        names=("quadratic", "committee of neurons"),
    )
    time: float = moment(5.0, FIRST, LAST, "Time t", "Sum of the step sizes; for the committee steps over d.")
    levels: str = levels_field(PAPER, "Spectrum of B", when=_QUADRATIC)
    rho: float = slider(0.5, 0.1, 1.5, "Neurons N/d", "Width of all three.", step=0.05, when=_QUADRATIC)
    d: int = slider(60, 20, 100, "Dimension d", "Of the inputs.", step=10, when=_QUADRATIC)
    neurons: int = slider(2, 2, 4, "Neurons", "Of the network, and of the committee.", step=1, when=_COMMITTEE)
    eta: float = slider(0.5, 0.05, 2.0, "Step size η", "SGD on one sample a step.", log=True, when=_COMMITTEE)
    lean: float = slider(
        0.1,
        0.001,
        0.2,
        "Lean at the start",
        "Overlap of a neuron with a direction of its own: the smaller, the longer the plateau.",
        log=True,
        when=_COMMITTEE,
    )
    step: float = slider(
        0.002,
        0.001,
        0.02,
        "Step size ε",
        f"Of SGD, {_BATCH} samples a step; lines are for ε → 0.",
        log=True,
        group="dots",
        when=_QUADRATIC,
    )
    runs: int = slider(
        4,
        2,
        10,
        "Runs of SGD",
        "Independent, in weights and data; RF and NT are means over these weights.",
        step=1,
        group="dots",
    )
    seed: int = seed_field()


def _regimes() -> dict[str, tuple[str, RandomFeatures | NeuralTangent | Trained]]:
    return {"RF": ("rf", RandomFeatures()), "NT": ("nt", NeuralTangent()), "NN": ("nn", Trained())}


@lru_cache(maxsize=64)
def _flows(levels: str, d: int, N: int, runs: int, seed: int) -> dict[str, tuple[FloatArray, FloatArray | None]]:
    """Return the risk of each regime along time, and what NN has learnt of each direction."""
    from lazyscope.limits.flow.curve import flow, linear_risk

    problem: Any = nature(levels, d).problem
    times, found = _grid().values, {}
    for name, (_, regime) in _regimes().items():
        if isinstance(regime, Trained):
            path = flow(problem, regime, width=N, times=times, weights="typical")
            found[name] = path.risk.values, path.learned.values
        else:
            risks = [linear_risk(problem, regime, N, times, own_seed(seed, k)) for k in range(runs)]
            found[name] = np.mean(risks, axis=0), None
    return found


@cache
def _grid() -> Grid:
    return Grid.logarithmic(FIRST, LAST, POINTS)


def _width(state: TrainingState) -> int:
    return max(1, round(state.rho * state.d))


def lines(state: TrainingState) -> dict[str, Any]:
    """The risk along time."""
    if state.target == "committee":
        picture = committee.draw(state.neurons, state.eta, state.lean, state.time, _grid())
        python = committee.python(state.neurons, state.eta, state.lean, _grid())
        return picture.answer("training", state, saved("; ".join(python[3:])), lines_of(python))
    here, N = nature(state.levels, state.d), _width(state)
    x = axis("t, sum of the step sizes", log=True, range_=(FIRST, LAST))
    picture = Picture(f"{here.problem}; N = {N}", x, [axis("risk (best constant: 1)", range_=(-0.02, 1.08))])
    flows, grid = _flows(state.levels, state.d, N, state.runs, state.seed), _grid()
    for name, (role, _) in _regimes().items():
        picture.line(name, role, grid.values, flows[name][0], FLOW)
    learned = flows["NN"][1]
    assert learned is not None
    some = np.unique(np.linspace(0, state.d - 1, _DIRECTIONS).round().astype(int))
    assert isinstance(here.problem, QuadraticTarget)
    columns = [f"b = {here.problem.eigenvalues[::-1][i]:.2g}" for i in some]
    title = "Share that NN has learnt of eigendirections of B"
    picture.moment(state.time, title, grid.values, ["learnt"], columns, learned[:, None, some])
    python = ["import numpy as np", "import lazyscope as ls", "", *here.python, f"t = {grid.python}"]
    python += ["lines = {", *(f"    {name!r}: {_source(name, N, state)}," for name in flows), "}"]
    python += ["for name, line in lines.items():", "    print(name, line.round(4))"]
    shares = f"print('learnt by NN', {_source('NN', N, state, 'learned')}[:, {some.tolist()}].round(4))"
    python.append(shares)
    regimes = [*(f"print({name!r}, {_source(name, N, state)})" for name in flows), shares]
    command = saved("; ".join([*here.python, f"t = {grid.python}", *regimes]))
    return picture.answer("training", state, command, lines_of(python))


def _source(name: str, N: int, state: TrainingState, variable: str = "risk") -> str:
    regime = _regimes()[name][1]
    if isinstance(regime, Trained):
        return f'ls.flow(problem, {written(regime)}, width={N}, times=t, weights="typical").{variable}.values'
    seeds = [own_seed(state.seed, k) for k in range(state.runs)]
    one = f"ls.flow(problem, {written(regime)}, width={N}, times=t, seed=s).risk.values"
    return f"np.mean([{one} for s in {seeds}], axis=0)"


# -- dots ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Traces(DrawnCall):
    """Runs of SGD, each with weights and data of its own: the risk along time, over runs."""

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return [own_seed(self.arguments["seed"], k) for k in range(self.arguments["draws"])]

    @property
    def _each(self) -> Mapping[str, Any]:
        return {name: value for name, value in self.arguments.items() if name not in ("seed", "draws")}

    def run(self) -> dict[str, FloatArray]:
        """Train, a run after another; return `time` and `trace`, (runs, times)."""
        from lazyscope.runs.verbs import simulate

        runs = [simulate(self.problem, self.regime, **self._each, draws=1, seed=seed) for seed in self.seeds]
        protocol = self.arguments["protocol"]
        time = runs[0].samples.values * protocol.step_sizes[0] / protocol.batch
        shown = np.unique(np.searchsorted(time, np.geomspace(FIRST, time[-1], _SHOWN)).clip(max=time.size - 1))
        return {"time": time[shown], "trace": np.stack([run.trace.values[shown] for run in runs])}

    def source(self) -> str:
        """Write the calls."""
        given = "".join(f", {name}={written(value)}" for name, value in self._each.items())
        one = f"ls.simulate(problem, {written(self.regime)}{given}, draws=1, seed=s)"
        return f"[{one} for s in {self.seeds}]"


def plan(state: TrainingState, fidelity: Drawn) -> Plan:
    """Runs of SGD."""
    if state.target == "committee":
        return committee.plan(state.neurons, state.eta, state.lean, state.runs, state.seed)
    here, N = nature(state.levels, state.d), _width(state)
    protocol = SGD(round(_UNTIL / state.step), _BATCH, (state.step,), decay=(), test=1)
    tasks = []
    for name, (role, regime) in _regimes().items():
        if name == "RF":
            continue
        arguments = {"width": N, "protocol": protocol, "draws": state.runs, "seed": state.seed}
        call = Traces("simulate", here.problem, regime, arguments)
        tasks.append(Task(call, name, [(role, name, 0, "trace")], lambda result: result["time"]))
    notes = (
        ("RF", "No dots: random features are fitted, not trained by SGD. Its line is their gradient flow."),
        (
            "SGD",
            "Lines are for ε → 0, that of NN also for d → ∞. On the way down SGD lies above it by more than its bars: "
            "by 0.01 at the values this view opens with, by less where ε is smaller and d larger. `ls.finite_step` "
            "says how far above it ends.",
        ),
    )
    python = ["import numpy as np", "import lazyscope as ls", "", *here.python]
    printed = "np.mean([run.trace for run in runs], axis=0).round(4)"
    shown = [f"print({task.name!r}, np.mean([run.trace for run in {task.call.source()}], axis=0))" for task in tasks]
    return Plan(tuple(tasks), notes, saved("; ".join([*here.python, *shown])), listing(python, tasks, printed, "runs"))


VIEW = View(
    name="training",
    title="Training",
    text="What a network knows at every moment of training: press Play, or move the time. On the quadratic target RF "
    "and NT start at once and stop early, and NN waits until its second layer has grown and then learns the largest "
    "eigendirections first; a committee of neurons rests on a plateau until its neurons part.",
    theorem="Gradient flow for σ = u² (closed form); SGD as a differential equation (Saad and Solla 1995), d → ∞.",
    state=TrainingState,
    lines=lines,
    plan=plan,
    fidelities=("simulate",),
    presets={
        "Paper: Exp(1)": {"target": "quadratic", "levels": "", "rho": 0.5},
        "Two levels": {"target": "quadratic", "levels": "0,0,0,0,2,2,2,2", "rho": 0.5},
        "Plateau": {"target": "committee", "neurons": 2, "eta": 0.5, "lean": 0.1},
        "Long plateau": {"target": "committee", "neurons": 2, "eta": 0.5, "lean": 0.005},
        "Large steps": {"target": "committee", "neurons": 2, "eta": 1.5, "lean": 0.1},
    },
    export={
        "target": ["quadratic", "committee"],
        "levels": ["", "0,0,0,0,2,2,2,2"],
        "rho": [0.25, 0.5, 1.0],
        "neurons": [2, 3],
        "eta": [0.5, 1.5],
        "lean": [0.005, 0.1],
    },
)

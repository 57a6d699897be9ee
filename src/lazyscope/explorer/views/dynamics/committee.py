"""SGD on a committee of neurons: the risk and the overlaps in time, as d → ∞ and in d dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import LazyscopeError
from lazyscope.experiments.frame.draws import computed
from lazyscope.explorer.views.calls import DrawnCall, Plan, Task, lines_of
from lazyscope.explorer.views.lazy import saved
from lazyscope.explorer.views.picture import Grid, Picture, axis, curve, record
from lazyscope.problems import MultiIndex
from lazyscope.regimes import NeuralTangent, RandomFeatures, Trained

_SIGMA, _NORM = "erf2", 0.25  # erf(u/√2), and ‖w‖² at the start
_DIMENSION, _UNTIL = 250, 150.0  # of SGD
_RUNS = 8  # of SGD at most: two seconds each
_OVERLAPS = {"own": ("overlap, own direction", "degree1"), "other": ("overlap, another", "degree3")}


def start(neurons: int, lean: float) -> tuple[float, ...]:
    """Return R_ii of the start, `lean` in the mean: how far each neuron leans to a direction of its own.

    >>> [round(one, 3) for one in start(2, 0.1)]
    [0.15, 0.05]
    """
    return tuple((lean * np.linspace(1.5, 0.5, neurons)).round(6).tolist())


def _problem(neurons: int) -> MultiIndex:
    return MultiIndex(_DIMENSION, f"committee-{_SIGMA}", indices=neurons)


@lru_cache(maxsize=64)
def _path(neurons: int, eta: float, lean: float, times: tuple[float, ...], flow: bool) -> Any:
    """Solve the equations; for the flow, η → 0, time counts ηt."""
    from lazyscope.limits.sgd.order_parameters.path import order_parameters

    overlaps = (_NORM * np.eye(neurons), np.diag(start(neurons, lean)))
    ask = np.array(times) * (eta if flow else 1.0)
    step = 0.0 if flow else eta
    return order_parameters(_problem(neurons), Trained(_SIGMA), times=ask, step_size=step, overlaps=overlaps)


def _claim() -> dict[str, Any]:
    from lazyscope.evidence.registry import claims

    key = "limit/MultiIndex/Trained/one-pass-sgd-along-time"
    return record(next(claim for claim in claims("limit") if claim.key == key))


def draw(neurons: int, eta: float, lean: float, time: float, grid: Grid) -> Picture:
    """Return the picture: SGD, the flow of η → 0, what random features reach, and the overlaps."""
    problem, claim = _problem(neurons), _claim()
    x = axis("t, steps over d", log=True, range_=(float(grid.values[0]), float(grid.values[-1])))
    panels = [axis("risk", log=True, range_=(1e-4, 2.0)), axis("overlap", range_=(-0.1, 1.05))]
    picture = Picture(f"{problem}; as many neurons, σ = {_SIGMA}", x, panels)
    times = tuple(grid.values.tolist())
    path = _path(neurons, eta, lean, times, False)
    picture.line("SGD", "nn", grid.values, path.risk.values, claim)
    slow = _path(neurons, eta, lean, times, True).risk.values
    picture.line("flow, η → 0", "train", grid.values, slow, claim, dash="dash")
    for name, role, regime in (("RF", "rf", RandomFeatures(_SIGMA)), ("NT", "nt", NeuralTangent(_SIGMA))):
        try:
            known, row = curve(problem, regime, {"rho": np.inf})
        except LazyscopeError as error:
            picture.note(name, str(error))
            continue
        ends = [times[0], times[-1]]
        picture.line(f"{name}, N/d → ∞", role, ends, [float(row["risk"][0])] * 2, known, dash="dot")
    R = path.R.values
    for key, values in zip(_OVERLAPS, (R[:, 0, 0], R[:, 0, 1]), strict=True):
        name, role = _OVERLAPS[key]
        picture.line(name, role, grid.values, values, claim, panel=1)
    rows = [f"neuron {i + 1}" for i in range(neurons)]
    columns = [f"direction {m + 1}" for m in range(neurons)]
    picture.moment(time, "Overlaps of neurons and directions", grid.values, rows, columns, R)
    return picture


def python(neurons: int, eta: float, lean: float, grid: Grid) -> list[str]:
    """Return the Python that computes the lines."""
    start_ = f"({_NORM} * np.eye({neurons}), np.diag({list(start(neurons, lean))}))"
    call = 'ls.order_parameters(problem, ls.Trained("erf2"), times={}, step_size={!r}, overlaps=start)'
    rf = f'ls.limit(problem, ls.RandomFeatures("{_SIGMA}"), rho=np.inf).risk.values'
    return [
        "import numpy as np",
        "import lazyscope as ls",
        "",
        f'problem = ls.MultiIndex({_DIMENSION}, "committee-{_SIGMA}", indices={neurons})',
        f"start = {start_}",
        f"t = {grid.python}",
        f"path = {call.format('t', eta)}",
        f"flow = {call.format(f'{eta!r} * t', 0.0)}",
        f"lines = {{'SGD': path.risk.values, 'flow, η → 0': flow.risk.values, 'RF, N/d → ∞': np.repeat({rf}, 2)}}",
        "lines |= {'overlap, own direction': path.R.values[:, 0, 0], 'overlap, another': path.R.values[:, 0, 1]}",
        "print(lines, path.R.values)",
    ]


@dataclass(frozen=True, eq=False)
class Runs(DrawnCall):
    """Runs of SGD in d dimensions from the same overlaps, in the place of a verb."""

    def _draws(self) -> list[Any]:
        from lazyscope.experiments.dynamics.plateau import PlateauDraw

        given = dict(self.arguments)
        numbers = range(given.pop("runs"))
        assert isinstance(self.problem, MultiIndex)
        return [PlateauDraw(self.problem, _SIGMA, _NORM, **given, number=number) for number in numbers]

    def run(self) -> dict[str, FloatArray]:
        """Train; return `time`, `risk`, and both overlaps, (runs, times)."""
        rows = computed(self._draws())
        R = np.stack([row["R"] for row in rows])
        risk = np.stack([row["risk"] for row in rows])
        return {"time": rows[0]["time"], "risk": risk, "own": R[:, :, 0, 0], "other": R[:, :, 0, 1]}

    def claim(self) -> dict[str, Any]:
        """Return what its result rests on."""
        return {**_claim(), "key": "report/plateau", "title": f"one-pass SGD in d = {_DIMENSION}"}

    def source(self) -> str:
        """Write the runs."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items() if name != "runs")
        one = f'PlateauDraw(problem, "{_SIGMA}", {_NORM}, {given}, number=k)'
        return f"[{one}.compute() for k in range({self.arguments['runs']})]"


def plan(neurons: int, eta: float, lean: float, runs: int, seed: int) -> Plan:
    """Runs of SGD from the same overlaps."""
    problem = _problem(neurons)
    arguments = {
        "first": start(neurons, lean), "step_size": eta, "until": _UNTIL, "runs": min(runs, _RUNS), "seed": seed,
    }  # fmt: skip
    call = Runs("simulate", problem, Trained(_SIGMA), arguments)
    shown = [("nn", "SGD", 0, "risk"), *((role, name, 1, key) for key, (name, role) in _OVERLAPS.items())]
    task = Task(call, f"SGD, d = {_DIMENSION}", shown, lambda result: result["time"])
    note = f"SGD in d = {_DIMENSION} leaves a plateau when chance has it, earlier than the equation for d → ∞ says."
    sources = ["from lazyscope.experiments.dynamics.plateau import PlateauDraw", ""]
    define = f'problem = ls.MultiIndex({_DIMENSION}, "committee-{_SIGMA}", indices={neurons})'
    body = [f"runs = {call.source()}", 'print(np.mean([run["risk"] for run in runs], axis=0))']
    text = ["import numpy as np", "import lazyscope as ls", *sources, define, *body]
    return Plan((task,), (("SGD", note),), saved("; ".join([sources[0], define, *body])), lines_of(text))

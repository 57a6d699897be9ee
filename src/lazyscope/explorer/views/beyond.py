"""Beyond linear: random signs take the linear piece of a network away, and leave the quadratic one (Bai, Lee 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lazyscope.activations.derivatives import require_smooth
from lazyscope.evidence import errata
from lazyscope.explorer.views import stored
from lazyscope.explorer.views.base import Drawn, View
from lazyscope.explorer.views.calls import Call, Plan, Task, at, lines_of, listing, word_of, written
from lazyscope.explorer.views.controls import ActivationName, State, choice, draws_field, own_seed, seed_field, slider
from lazyscope.explorer.views.lazy import saved
from lazyscope.explorer.views.picture import Grid, Picture, axis
from lazyscope.explorer.views.remembered import activation
from lazyscope.limits import declared
from lazyscope.population import coupling
from lazyscope.problems import SparseParity
from lazyscope.regimes import NeuralTangent, Taylor

_QUARTER = 0.25
_WIDTHS = (100, 316, 1000, 3162, 10_000)
_TRAINED = 8  # draws of a network that is trained, which takes seconds
_INPUTS = 64  # of a draw
_PIECES = {
    "linear_plain": ("linear piece", "nt"),
    "linear": ("linear piece, random signs", "signs"),
    "quadratic": ("quadratic piece", "nn"),
}
CLAIM = {
    "key": "report/coupling",
    "title": "coupling with the quadratic model",
    "theorem": coupling.THEOREM,
    "citations": list(coupling.CITATIONS),
    "assumptions": list(coupling.ASSUMPTIONS),
    "erratum": errata.QUADRATIC_MODEL.note,
}


class BeyondState(State):
    """Sizes of the pieces against the width, or the error on 2-XOR against the samples."""

    what: Literal["coupling", "samples"] = choice(
        "coupling",
        "Question",
        "Pieces of the network against its width, or samples that 2-XOR takes.",
        names=("pieces against m", "samples for 2-XOR"),
    )
    activation: ActivationName = choice("relu3", "Activation σ", "Twice differentiable, by its name in the library.")
    alpha: float = slider(
        0.25,
        0.0,
        0.5,
        "Displacements 1/mᵅ: α",
        "¼ leaves the quadratic piece of order one; ½ is the tangent regime.",
        step=0.01,
        when={"what": "coupling"},
    )
    d: int = slider(16, 4, 40, "Dimension d", "Of the inputs.", step=2)
    flip: float = slider(
        0.0, 0.0, 0.4, "Flipped labels", "Share of wrong labels in 2-XOR.", step=0.05, when={"what": "samples"}
    )
    width: int = slider(
        200, 50, 500, "Neurons m", "Of the networks that learn 2-XOR.", step=50, group="dots", when={"what": "samples"}
    )
    draws: int = draws_field(f" At most {_TRAINED} where networks are trained.", usual=20)
    seed: int = seed_field()


def lines(state: BeyondState) -> dict[str, Any]:
    """The closed forms against m; for 2-XOR the two sample sizes that the bounds compare."""
    if state.what == "samples":
        return _samples(state)
    grid = Grid.logarithmic(50.0, 20_000.0, 41)
    pieces = coupling.piece_sizes(activation(state.activation), state.d, state.alpha, grid.values)
    ends = [values for values in pieces.values() if np.all(values > 0)]
    decades = (10.0 ** np.floor(np.log10(np.min(ends))), 10.0 ** np.ceil(np.log10(np.max(ends))))
    picture = Picture(
        f"pieces of a network with σ = {state.activation} in d = {state.d}, ‖w_r‖ = m^−{state.alpha:g}",
        axis("m, number of neurons", log=True),
        [axis("root mean square", log=True, range_=decades)],
    )
    for key, values in pieces.items():
        name, role = _PIECES[key]
        picture.line(name, role, grid.values, values, CLAIM)
    call = f'piece_sizes("{state.activation}", {state.d}, {state.alpha!r}, m)'
    python = ["import numpy as np", "from lazyscope.population.coupling import piece_sizes", "", f"m = {grid.python}"]
    python += [f"lines = {call}", "for name, line in lines.items():", "    print(name, line.round(4))"]
    return picture.answer(
        "beyond", state, saved("; ".join([*python[1:2], *python[3:5], "print(lines)"])), lines_of(python)
    )


def _samples(state: BeyondState) -> dict[str, Any]:
    d = state.d
    picture = Picture(
        str(SparseParity(d, flip=state.flip)),
        axis("n, number of samples", log=True, range_=(d / 2.0, 4.0 * d * d)),
        [axis("error / error of a coin", range_=(0.0, 1.1))],
    )
    picture.mark(float(d ** declared.SAMPLES["quadratic model"]), "n = d")
    picture.mark(float(d ** declared.SAMPLES["NTK"]), "n = d²")
    bounds = "By Theorems 6 and 7 about d samples suffice under random signs; NT needs about d² (Wei et al. 2019)."
    picture.note("bounds", bounds)
    picture.claims["samples"] = {
        **CLAIM, "key": "report/samples", "title": "samples to learn 2-XOR", "theorem": "§5.2, by Theorems 6 and 7",
        "erratum": "",
    }  # fmt: skip
    plan_ = _parity_plan(state)
    kept = stored.dots("beyond", state)
    if kept is None:
        picture.note("2-XOR", "No line of theory is known for the error itself. Drop dots: networks are trained.")
    return {**picture.answer("beyond", state, plan_.command, plan_.python), "kept": kept}


@dataclass(frozen=True, eq=False)
class Coupling(Call):
    """The report on coupling at one width, in the place of a verb."""

    def run(self) -> Any:
        """Measure it."""
        from lazyscope.experiments.beyond.coupling import coupling

        return coupling(**self.arguments)

    def source(self) -> str:
        """Write the call."""
        return f"coupling({', '.join(f'{name}={written(value)}' for name, value in self.arguments.items())})"

    def claim(self) -> dict[str, Any]:
        """Return what the report rests on."""
        return CLAIM

    def values(self, result: Any, variable: str) -> tuple[Any, Any]:
        """Return the size of a piece, and its standard error."""
        at = result.sel(quantity=variable)
        return at["size"].values, at["stderr"].values


def plan(state: BeyondState, fidelity: Drawn) -> Plan:
    """Measured pieces, or trained networks."""
    if state.what == "samples":
        return _parity_plan(state)
    require_smooth(activation(state.activation), 2)
    if state.alpha != _QUARTER:
        note = (
            "dots",
            f"The report measures at displacements of size m^−¼. Set α to ¼; it is {state.alpha:g}.",
        )
        return Plan((), (note,), "", "")
    tasks = []
    problem, regime = SparseParity(state.d), Taylor(2, state.activation)
    for i, m in enumerate(_WIDTHS):
        arguments: dict[str, Any] = {"widths": [m], "d": state.d, "activation": state.activation, "samples": _INPUTS}
        arguments |= {"draws": state.draws, "seed": own_seed(state.seed, i)}
        call = Coupling("simulate", problem, regime, arguments)
        shown = [(role, name, 0, key) for key, (name, role) in _PIECES.items()]
        tasks.append(Task(call, f"m = {m}", shown, lambda result: result.width))
    python = ["from lazyscope.experiments.beyond.coupling import coupling", ""]
    source = "; ".join(f"print({task.call.source()}.to_dataframe())" for task in tasks)
    text = listing(python, tasks, 'dot["size"].to_series().to_dict()')
    finite = (
        "Lines are no limits: they are closed forms at this d and each m. The dots scatter around them by their bars."
    )
    return Plan(tuple(tasks), ((f"d = {state.d}", finite),), saved(f"{python[0]}; {source}"), text)


def _parity_plan(state: BeyondState) -> Plan:
    d = state.d
    problem = SparseParity(d, flip=state.flip)
    sigma = activation(state.activation)
    regimes = [("NT", "nt", NeuralTangent(sigma)), ("random signs", "nn", Taylor(2, sigma))]
    counts = [n for n in (d, 2 * d, 4 * d, 8 * d, 16 * d, 32 * d) if n <= 2 * d * d]
    tasks = []
    for i, n in enumerate(counts):
        for label, role, regime in regimes:
            arguments = {"width": state.width, "samples": n}
            arguments |= {"draws": min(state.draws, _TRAINED), "seed": own_seed(state.seed, i)}
            call = Call("simulate", problem, regime, arguments)
            tasks.append(Task(call, f"{label}, n = {n}", [(role, label, 0, "risk")], at(n)))
    python = ["import lazyscope as ls", "", f"problem = {written(problem)}"]
    both = [word_of(regime) for _, _, regime in regimes]
    commands = (task.call.command(regime=both) for task in tasks[:: len(regimes)])
    return Plan(tuple(tasks), (), " && ".join(commands), listing(python, tasks))


VIEW = View(
    name="beyond",
    title="Beyond linear",
    text="Flip the sign of every neuron's displacement at random: the linear piece of the network, which is all that "
    "lazy training keeps, averages out, and the quadratic piece stays as it was. Where displacements shrink like the "
    "fourth root of 1/m, a wide network under random signs is its quadratic model, which learns a parity from far "
    "fewer samples than the tangent model.",
    theorem="Bai and Lee (2020), §3 and Lemmas 10–14 (coupling), §5.2 (2-XOR).",
    state=BeyondState,
    lines=lines,
    plan=plan,
    fidelities=("simulate",),
    presets={
        "Coupling at α = ¼": {"what": "coupling", "alpha": 0.25, "activation": "relu3"},
        "Tangent regime, α = ½": {"what": "coupling", "alpha": 0.5, "activation": "relu3"},
        "2-XOR": {"what": "samples", "d": 16, "flip": 0.0, "activation": "relu3"},
        "2-XOR, noisy labels": {"what": "samples", "d": 16, "flip": 0.1, "activation": "relu3"},
    },
    export={
        "activation": ["relu3", "softplus", "tanh", "square"],
        "what": ["coupling", "samples"],
        "alpha": [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5],
        "d": [4, 10, 16, 24, 40],
        "flip": [0.0, 0.1],
    },
)

"""What the two views of Limitations of Lazy Training share: a spectrum, σ, Γ, and RF, NT and NN against N/d.

A spectrum is the paper's, drawn for each d; or that draw, moved; or a quantile function through a few levels, straight
between them: eigenvalue i of d is its value at (i + ½)/d. To move a draw, what a level differs by from the paper's is
added at its place, in the same way: a level that moves, and moves back, leaves the spectrum as it was.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, LazyscopeError
from lazyscope.explorer.views.base import Drawn
from lazyscope.explorer.views.calls import Call, Name, Plan, Task, dictionary, lines_of, listing
from lazyscope.explorer.views.controls import ActivationName, State, choice, draws_field, seed_field, slider
from lazyscope.explorer.views.lazy.finite import SGD_ENDS, beside
from lazyscope.explorer.views.picture import Grid, Picture, axis, curve
from lazyscope.explorer.views.remembered import activation
from lazyscope.problems import QuadraticTarget
from lazyscope.problems.base import GaussianProblem
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, RandomFeatures, Regime, Trained

Verb = Literal["limit", "exact", "simulate"]
DRAWN = "paper,"
"""What stands before levels that the paper's own draw is moved to."""
LEVELS = r"^((paper,)?-?\d{1,2}(\.\d{1,3})?(,-?\d{1,2}(\.\d{1,3})?){1,11})?$"
RATIO, RISK = "N/d, neurons per dimension", "risk (best constant: 1)"
READ = 0.5
"""N/d that is read out: from N = d on, NT and NN have learnt all."""
_POINTS = 80  # of a line
_SHARES = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)  # N/d of the dots
_TRAINED_DRAWS = 4  # of a network that SGD trains
_LARGEST_TRAINED = 120  # d up to which networks are trained while one waits


def levels_field(paper: str, label: str = "Spectrum", *, when: dict[str, str | bool] | None = None) -> Any:
    """Return the field of a spectrum; `paper` is what its sliders show while it is the paper's own draw."""
    extra: Any = {"label": label, "kind": "levels", "group": "theory", "step": 0.05, "paper": paper, "when": when}
    help_ = "Quantiles of the spectrum, 2 to 12 numbers with commas, straight between; empty: the paper's draw; "
    help_ += f"after '{DRAWN}', {paper.count(',') + 1} numbers that its quantiles, about {paper}, are moved to."
    return Field("", pattern=LEVELS, max_length=100, description=help_, json_schema_extra=extra)


class LazyState(State):
    """The state that both views share."""

    levels: str = levels_field("1,1")
    activation: ActivationName = choice("square", "Activation σ", "σ of the network, by its name in the library.")
    gamma: float = slider(
        0.0, 0.0, 1.0, "Weights Γ, isotropic to optimal",
        "Covariance of the random features: (1 − γ) I/d + γ times the one that suits the problem.", step=0.05,
    )  # fmt: skip
    rho_max: float = slider(
        2.0, 1.0, 10.0, "Axis up to N/d", "Largest number of neurons per dimension.", step=0.5, group="picture"
    )
    d: int = slider(80, 20, 450, "Dimension d", "Of the inputs: lines are for d → ∞, dots for this d.", step=10)
    draws: int = draws_field(f" SGD, which takes longest, has at most {_TRAINED_DRAWS}.")
    seed: int = seed_field()


@dataclass(frozen=True, eq=False)
class Nature:
    """The problem, the Python that builds it, and the options (with the files they read) that ask for it."""

    problem: GaussianProblem
    python: tuple[str, ...]
    options: Mapping[str, Any]
    files: tuple[str, ...] = ()

    def kept_in(self, name: str, array: str) -> Nature:
        """Return the same with the command that writes an array of the problem to the file that the options read."""
        return replace(self, files=(self.saving(name, array),))

    def saving(self, name: str, array: str, *more: str) -> str:
        """Return the shell command that writes an array of this problem to a file."""
        return saved("; ".join([*self.python, *more, f"np.savetxt({name!r}, {array})"]))


def saved(python: str) -> str:
    """Return the shell command that runs a few statements."""
    return "python -c " + shlex.quote(f"import numpy as np, lazyscope as ls; {python}")


def _knots(levels: str) -> list[float]:
    return [float(level) for level in levels.split(",")]


def quantiles(levels: str, d: int) -> tuple[FloatArray, str]:
    """Return d values of the quantile function through some levels, and the Python that computes them.

    >>> quantiles("0,1", 4)[0]
    array([0.125, 0.375, 0.625, 0.875])
    """
    knots = _knots(levels)
    u = (np.arange(d) + 0.5) / d
    python = f"np.interp((np.arange({d}) + 0.5) / {d}, np.linspace(0, 1, {len(knots)}), {knots})"
    return np.interp(u, np.linspace(0, 1, len(knots)), knots), python


def moved(drawn: FloatArray, levels: str, paper: str) -> tuple[FloatArray, tuple[str, ...]]:
    """Return a draw, in its order, whose quantiles `paper` are moved to `levels`, and the Python for `drawn`.

    What is not negative stays so, unless a level is negative.

    >>> moved(np.array([3.0, 1.0]), "1,2.5", "1,3")[0]
    array([2.625, 0.875])
    """
    there, here = _knots(levels), _knots(paper)
    if len(there) != len(here):
        needed = f"have {len(here)} numbers after '{DRAWN}'"
        raise InvalidParameter.of("the spectrum", "levels", needed, DRAWN + levels)
    knots = [round(level - old, 6) for level, old in zip(there, here, strict=True)]
    floor, d = min(0.0, *there), drawn.size
    place = (np.argsort(np.argsort(drawn)) + 0.5) / d
    python = (
        f"place = (np.argsort(np.argsort(drawn)) + 0.5) / {d}",
        f"moved = np.maximum(drawn + np.interp(place, np.linspace(0, 1, {len(knots)}), {knots}), {floor!r})",
    )
    return np.maximum(drawn + np.interp(place, np.linspace(0, 1, len(knots)), knots), floor), python


@dataclass(frozen=True, eq=False)
class Setting:
    """A state with its problem: everything that lines and dots are made from."""

    state: LazyState
    nature: Nature

    def regimes(self) -> Iterator[tuple[str, str, Callable[[], Regime]]]:
        """Yield (label, role, constructor)."""
        sigma = activation(self.state.activation)
        yield "RF", "rf", lambda: RandomFeatures(sigma, self._weights())
        yield "NT", "nt", lambda: NeuralTangent(sigma)
        yield "NN", "nn", lambda: Trained(sigma)

    def _call(self, verb: Verb, regime: Regime, arguments: Mapping[str, Any]) -> Call:
        names = {"weights": Name("Gamma")} if self._law and isinstance(regime, RandomFeatures) else {}
        return Call(verb, self.nature.problem, regime, arguments, names)

    def _weights(self) -> FloatArray | str | None:
        gamma = self.state.gamma
        if gamma in (0.0, 1.0):
            return "optimal" if gamma else None
        best = self.nature.problem.best_weight_covariance()
        return np.asarray((1.0 - gamma) / self.nature.problem.d + gamma * best / best.sum())

    @property
    def _law(self) -> tuple[str, ...]:
        """The Python that defines Γ, where it needs more than a word."""
        gamma = self.state.gamma
        if gamma in (0.0, 1.0):
            return ()
        best = "best = problem.best_weight_covariance()"
        return best, f"Gamma = {1.0 - gamma!r} / problem.d + {gamma!r} * best / best.sum()"

    @property
    def python(self) -> tuple[str, ...]:
        """The Python that stands before every call."""
        return "import numpy as np", "import lazyscope as ls", "", *self.nature.python, *self._law

    def _command(self, call: Call, **instead: Any) -> str:
        """Return the command line of a call, after the commands that write the files it reads."""
        files = list(self.nature.files)
        if call.names or (self.state.gamma and instead.get("regime", "") is None):
            instead["weights"] = "Gamma.csv" if self._law else "optimal"
            if self._law:
                files.append(self.nature.saving("Gamma.csv", "Gamma", *self._law))
        return " && ".join([*files, call.command(self.nature.options, **instead)])

    def rho(self) -> Grid:
        """N/d of the lines, N whole and in equal steps: the limit of a trained network is a function of N."""
        d = self.nature.problem.d
        step = max(1, round(self.state.rho_max * d / _POINTS))
        count = int(self.state.rho_max * d / step)
        return Grid.linear(step / d, count * step / d, count)

    def draw(self) -> tuple[Picture, str, str]:
        """Return a picture with a line for each regime that has a theorem, its command and its Python."""
        rho, panel = self.rho(), axis(RISK, range_=(-0.02, 1.03))
        across = axis(RATIO, range_=(0.0, 1.02 * self.state.rho_max))
        picture = Picture(str(self.nature.problem), across, [panel], at=READ)
        calls = {}
        for label, role, regime in self.regimes():
            try:
                network = regime()
                claim, result = curve(self.nature.problem, network, {"rho": rho.values})
            except LazyscopeError as error:
                picture.note(label, str(error))
                continue
            picture.line(label, role, rho.values, result["risk"], claim)
            calls[label] = self._call("limit", network, {"rho": Name("rho")})
        python = [*self.python, f"rho = {rho.python}", *dictionary("lines", calls)]
        python += ["for name, line in lines.items():", "    print(name, line.risk.values.round(4))"]
        shown = next(iter(calls.values()), self._call("limit", NeuralTangent(), {}))  # all regimes share the command
        given = {"rho": rho.option, "regime": None, "activation": self.state.activation}
        return picture, self._command(shown, **given), lines_of(python)

    def plan(self, verb: Drawn) -> Plan:
        """Return the calls that make the dots, quick ones first."""
        problem = self.nature.problem
        tasks: list[Task] = []
        notes: list[tuple[str, str]] = []
        commands: list[str] = []
        shown: list[tuple[Regime, list[int]]] = []
        for label, role, regime in self.regimes():
            try:
                network, widths = regime(), self._widths(role, verb)
                arguments = self._sizes(role, verb, network)
            except LazyscopeError as error:
                notes.append((label, str(error)))
                continue
            if not widths:
                notes.append((label, f"Left out: {self._why_not(verb)}"))
                continue
            # SGD trains all widths on one stream; every other dot has a call of its own, so that dots appear one by one
            together = [widths] if verb == "simulate" and role != "rf" else [[N] for N in widths]
            for some in together:
                call = self._call(verb, network, {"width": some, **arguments})
                tasks.append(Task(call, label, [(role, label, 0, "risk")], lambda result: result.width / problem.d))
            commands.append(self._command(self._call(verb, network, {"width": widths, **arguments})))
            shown.append((network, widths))
        notes.insert(0, (f"d = {problem.d}", SGD_ENDS if verb == "simulate" else beside(problem, shown)))
        named = [replace(t, name=f"{t.name}, N = {', '.join(map(str, t.call.arguments['width']))}") for t in tasks]
        return Plan(tuple(tasks), tuple(notes), " && ".join(commands), listing(self.python, named))

    def _widths(self, role: str, verb: Drawn) -> list[int]:
        d, square = self.nature.problem.d, activation(self.state.activation).is_square
        shares = [share for share in _SHARES if share <= self.state.rho_max]
        if verb == "simulate":
            if d > _LARGEST_TRAINED:
                return []
            most = 1.0 if role == "rf" else 0.75  # SGD takes for ever at N = d
            shares = [share for share in shares if share <= most]
        if role == "nn" and not square:
            shares = [share for share in shares if share <= 0.5 and d <= _LARGEST_TRAINED]
        return sorted({max(1, round(share * d)) for share in shares})

    def _why_not(self, verb: Drawn) -> str:
        how = "training a network" if verb == "simulate" else "a descent over all weights"
        return f"{how} at d = {self.nature.problem.d} takes minutes. Use d ≤ {_LARGEST_TRAINED}, or `lazyscope sweep`."

    def _sizes(self, role: str, verb: Drawn, regime: Regime) -> dict[str, object]:
        """Return what the call takes beside the widths."""
        state, problem = self.state, self.nature.problem
        once = role == "nn" and (verb == "exact" or not activation(state.activation).is_square)
        draws = 1 if once else min(state.draws, _TRAINED_DRAWS) if verb == "simulate" and role != "rf" else state.draws
        arguments: dict[str, object] = {"draws": draws, "seed": state.seed}
        if verb == "exact":
            return arguments
        if role == "rf":
            return {**arguments, "samples": 200 * problem.d}
        step_size = 0.01 if isinstance(problem, QuadraticTarget) else 0.005
        protocol = replace(SGD.paper(problem, regime), batch=50, step_sizes=(step_size,))
        return {**arguments, "samples": 10_000 * problem.d, "protocol": protocol}

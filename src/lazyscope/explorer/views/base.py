"""What a view is made of: a state, lines at once, and calls of the library's verbs that make its dots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from lazyscope.activations import activation_names
from lazyscope.checks import FloatArray
from lazyscope.evidence import Claim
from lazyscope.explorer.schemas import Control, Preset, ViewRecord
from lazyscope.problems import Problem
from lazyscope.regimes import Regime
from lazyscope.registry import find

Drawn = Literal["exact", "simulate"]
Value = str | float | int | bool
if TYPE_CHECKING:
    ActivationName = str
else:
    ActivationName = Literal[activation_names()]  # the library's list: no other function can be named in a request


class State(BaseModel):
    """The state of a view: bounded numbers and names from a list, so that no request can ask for more."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def slider(
    default: float, low: float, high: float, label: str, help_: str, *, step: float = 0.0, log: bool = False,
    zero: bool = False, group: str = "theory", when: dict[str, str] | None = None,
) -> Any:  # fmt: skip
    """Return the field of a number between bounds; `zero` lets a logarithmic slider end at 0 on its left.

    `when` names the choice under which it has an effect.
    """
    extra: Any = {
        "label": label,
        "kind": "log" if log else "linear",
        "group": group,
        "step": step,
        "low": low,
        "zero": zero,
        "when": when,
    }
    return Field(default, ge=0.0 if zero else low, le=high, description=help_, json_schema_extra=extra)


def choice(default: str, label: str, help_: str, *, names: Sequence[str] | None = None) -> Any:
    """Return the field of a name from a list (a Literal); `names` are what the page calls them."""
    extra: Any = {"label": label, "kind": "choice", "group": "theory", "names": None if names is None else list(names)}
    return Field(default, description=help_, json_schema_extra=extra)


def switch(default: bool, label: str, help_: str, *, group: str = "picture") -> Any:
    """Return the field of a yes or no."""
    return Field(default, description=help_, json_schema_extra={"label": label, "kind": "switch", "group": group})


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a verb that can be made, and written down as Python: the one is the other by construction."""

    verb: Literal["limit", "exact", "simulate"]
    problem: Problem
    regime: Regime
    written: str
    arguments: Mapping[str, Any]

    def run(self) -> Any:
        """Make the call."""
        from lazyscope import verbs

        return getattr(verbs, self.verb)(self.problem, self.regime, **self.arguments)

    def claim(self) -> dict[str, Any]:
        """Return what its result rests on, in the shape of `schemas.ClaimRecord`."""
        return record(find(self.verb, self.problem, self.regime, self.arguments.get("method")))

    def values(self, result: Any, variable: str) -> tuple[Any, Any]:
        """Return a variable of its result, and the standard error: None from a single draw."""
        from lazyscope.trials import stderr_of

        return result[variable].values, stderr_of(result, variable)

    def source(self) -> str:
        """Write the call; the problem is the variable `problem`."""
        given = "".join(f", {name}={written(value)}" for name, value in self.arguments.items())
        return f"ls.{self.verb}(problem, {self.written}{given})"


class Name(str):
    """The name of a variable that the snippet defines: written without quotes."""


def written(value: Any) -> str:
    """Return a value as Python source.

    >>> import lazyscope as ls
    >>> written([1, 0.5]), written(Name("rho")), written(ls.SGD(steps=10))[:16]
    ('[1, 0.5]', 'rho', 'ls.SGD(steps=10)')
    """
    if isinstance(value, Name):
        return str(value)
    if is_dataclass(value):
        changed = [f for f in fields(value) if getattr(value, f.name) != f.default]
        inside = ", ".join(f"{f.name}={getattr(value, f.name)!r}" for f in changed)
        return f"ls.{type(value).__name__}({inside})"
    return repr(value)


@dataclass(frozen=True, eq=False)
class Task:
    """One or more dots of a view: a call, and which of its numbers are shown where."""

    call: Call
    name: str
    shown: Sequence[tuple[str, str, int, str]]
    """(role, name in the legend, panel, variable)."""
    x: Callable[[Any], Any]
    """From the result of the call, the places of the dots."""


@dataclass(frozen=True, eq=False)
class Plan:
    """All dots of a view at a state: tasks, what is left out, and what makes them again."""

    tasks: tuple[Task, ...]
    notes: tuple[tuple[str, str], ...]
    command: str
    python: str


@dataclass(frozen=True)
class Grid:
    """The values of an axis, as numbers, as the command line's grammar and as Python."""

    values: FloatArray
    option: str
    python: str

    @classmethod
    def linear(cls, low: float, high: float, count: int) -> Grid:
        """Return equal steps.

        >>> Grid.linear(0.5, 2.0, 4).option
        '0.5:2.0:4'
        """
        return cls(
            np.linspace(low, high, count), f"{low!r}:{high!r}:{count}", f"np.linspace({low!r}, {high!r}, {count})"
        )

    @classmethod
    def logarithmic(cls, low: float, high: float, count: int, around: float | None = None) -> Grid:
        """Return equal ratios, closer together around a place where the curve has a peak."""
        whole = np.geomspace(low, high, count)
        option, python = f"{low!r}:{high!r}:{count}log", f"np.geomspace({low!r}, {high!r}, {count})"
        if around is None or not low < around < high:
            return cls(whole, option, python)
        near = [float(f"{around * ratio:.6g}") for ratio in _NEAR]
        near = [value for value in near if low < value < high]
        values = np.sort(np.concatenate([whole, near]))
        return cls(values, ",".join([option, *map(repr, near)]), f"np.sort(np.r_[{python}, {near}])")


_NEAR = (0.9, 0.94, 0.97, 0.985, 0.995, 1.0, 1.005, 1.015, 1.03, 1.06, 1.1)


@dataclass
class Picture:
    """An answer while it is being made."""

    problem: str
    x: dict[str, Any]
    panels: list[dict[str, Any]]
    lines: list[dict[str, Any]] = field(default_factory=list)
    marks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)
    claims: dict[str, dict[str, Any]] = field(default_factory=dict)

    def line(
        self,
        name: str,
        role: str,
        x: Any,
        y: Any,
        claim: Claim | dict[str, Any],
        *,
        panel: int = 0,
        dash: str = "solid",
    ) -> None:
        """Add a curve; say where it is infinite."""
        known = record(claim) if isinstance(claim, Claim) else claim
        self.claims.setdefault(known["key"], known)
        ends = [one for one, value in zip(listed(x), listed(y), strict=True) if value is None]
        if ends:
            self.note(
                name, f"Infinite at {', '.join(f'{one:g}' for one in ends[:3] if one is not None)}: no point there."
            )
        values = {"name": name, "role": role, "panel": panel, "dash": dash, "x": listed(x), "y": listed(y)}
        self.lines.append({**values, "claim": known["key"]})

    def note(self, about: str, message: str) -> None:
        """Say what has no line, and why."""
        self.notes.append({"about": about, "message": message})

    def mark(self, x: float, label: str) -> None:
        """Add a vertical line."""
        self.marks.append({"x": x, "label": label})

    def answer(self, view: str, state: State, command: str, python: str) -> dict[str, Any]:
        """Return the answer, in the shape of `schemas.Answer`."""
        return {
            "view": view,
            "problem": self.problem,
            "x": self.x,
            "panels": self.panels,
            "lines": self.lines,
            "marks": self.marks,
            "notes": self.notes,
            "claims": list(self.claims.values()),
            "arguments": state.model_dump(),
            "command": command,
            "python": python,
        }


def axis(label: str, *, log: bool = False, range_: tuple[float, float] | None = None) -> dict[str, Any]:
    """Return an axis, in the shape of `schemas.Axis`."""
    return {"label": label, "log": log, "range": None if range_ is None else list(range_)}


def listed(values: Any) -> list[float | None]:
    """Return numbers as JSON has them: what is not finite is None.

    >>> listed(np.array([0.5, np.inf]))
    [0.5, None]
    """
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if np.all(np.isfinite(array)):
        finite: list[float | None] = array.tolist()
        return finite
    return [value if np.isfinite(value) else None for value in array.tolist()]


def record(claim: Claim) -> dict[str, Any]:
    """Return a claim, in the shape of `schemas.ClaimRecord`."""
    return {
        "key": claim.key,
        "title": claim.title,
        "theorem": claim.theorem,
        "citations": list(claim.citations),
        "assumptions": list(claim.assumptions),
        "erratum": claim.erratum,
    }


def curve(
    problem: Problem, regime: Regime, axes: Mapping[str, Any], method: str | None = None
) -> tuple[Claim, dict[str, FloatArray]]:
    """Evaluate a limit along one axis: the verb without xarray, which labels a line more slowly than it is computed."""
    claim = find("limit", problem, regime, method)
    grids = np.ix_(*(np.atleast_1d(np.asarray(axes[name], dtype=np.float64)) for name in claim.arguments))
    found = claim.evaluate(problem, regime, *grids)
    return claim, {name: np.ravel(value) for name, value in found.items()}


@dataclass(frozen=True, eq=False)
class View:
    """A question with sliders.

    `lines` answers a state at once, `plan` says which calls make its dots in a fidelity. `export` gives the values of
    the state that a static page has answers for; the others stay at their defaults.
    """

    name: str
    title: str
    text: str
    theorem: str
    state: type[State]
    lines: Callable[[Any], dict[str, Any]]
    plan: Callable[[Any, Drawn], Plan]
    fidelities: tuple[Drawn, ...]
    presets: Mapping[str, Mapping[str, Value]]
    export: Mapping[str, Sequence[Value]]

    def record(self) -> ViewRecord:
        """Describe the view to the page."""
        return ViewRecord(
            name=self.name,
            title=self.title,
            text=self.text,
            theorem=self.theorem,
            controls=list(self._controls()),
            presets=[Preset(name=name, state=dict(state)) for name, state in self.presets.items()],
            fidelities=list(self.fidelities),
        )

    def _controls(self) -> Iterator[Control]:
        for name, known in self.state.model_fields.items():
            extra: Any = known.json_schema_extra
            bounds = {type(bound).__name__: bound for bound in known.metadata}
            chosen = list(get_args(known.annotation)) if extra["kind"] == "choice" else None
            high: Any = bounds.get("Le")
            yield Control(
                name=name,
                label=extra["label"],
                help=known.description or "",
                kind=extra["kind"],
                group=extra["group"],
                default=known.default,
                low=extra.get("low"),
                high=None if high is None else high.le,
                step=extra.get("step"),
                zero=extra.get("zero", False),
                choices=chosen,
                names=extra.get("names"),
                when=extra.get("when"),
                paper=extra.get("paper"),
            )


def along(name: str) -> Callable[[Any], Any]:
    """Return the function that finds the places of dots under this name in a result."""
    return lambda result: result[name]


def lines_of(sources: Iterable[str]) -> str:
    """Join lines of Python, with a newline at the end."""
    return "\n".join(sources) + "\n"


def dictionary(name: str, calls: dict[str, Call]) -> Iterator[str]:
    """Yield the lines of a Python dictionary of calls."""
    yield f"{name} = {{"
    for label, call in calls.items():
        yield f"    {label!r}: {call.source()},"
    yield "}"

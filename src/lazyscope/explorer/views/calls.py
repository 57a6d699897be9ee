"""Calls of the library's verbs that make the dots of a view, each of which can be made and written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from lazyscope.evidence.reductions import stderr_name
from lazyscope.evidence.registry import find
from lazyscope.explorer.views.picture import record
from lazyscope.problems import Problem
from lazyscope.regimes import Regime


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
class Call:
    """A call of a verb that can be made, and written down as Python: the one is the other by construction."""

    verb: Literal["limit", "exact", "simulate"]
    problem: Problem
    regime: Regime
    written: str
    arguments: Mapping[str, Any]

    def run(self) -> Any:
        """Make the call."""
        from lazyscope.runs import verbs

        return getattr(verbs, self.verb)(self.problem, self.regime, **self.arguments)

    def claim(self) -> dict[str, Any]:
        """Return what its result rests on, in the shape of `schemas.ClaimRecord`."""
        return record(find(self.verb, self.problem, self.regime, self.arguments.get("method")))

    def values(self, result: Any, variable: str) -> tuple[Any, Any]:
        """Return a variable of its result, and the standard error: None from a single draw."""
        error = stderr_name(variable)
        return result[variable].values, result[error].values if error in result else None

    def source(self) -> str:
        """Write the call; the problem is the variable `problem`."""
        given = "".join(f", {name}={written(value)}" for name, value in self.arguments.items())
        return f"ls.{self.verb}(problem, {self.written}{given})"


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


def along(name: str) -> Callable[[Any], Any]:
    """Return the function that finds the places of dots under this name in a result."""
    return lambda result: result[name]


def dictionary(name: str, calls: dict[str, Call]) -> Iterator[str]:
    """Yield the lines of a Python dictionary of calls."""
    yield f"{name} = {{"
    for label, call in calls.items():
        yield f"    {label!r}: {call.source()},"
    yield "}"


def lines_of(sources: Iterable[str]) -> str:
    """Join lines of Python, with a newline at the end."""
    return "\n".join(sources) + "\n"

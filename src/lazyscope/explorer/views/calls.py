"""Calls of the library's verbs that make the dots of a view, each of which can be made and written down.

Python and command line are made from what problems, regimes and protocols declare of their options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

import numpy as np

from lazyscope.evidence.registry import claims, find
from lazyscope.evidence.results import stderr_name
from lazyscope.experiments.frame.draws import over_draws
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
    if isinstance(value, Regime):
        return _regime(value, {})
    if is_dataclass(value):
        changed = [f for f in fields(value) if getattr(value, f.name) != f.default]
        inside = ", ".join(f"{f.name}={getattr(value, f.name)!r}" for f in changed)
        return f"ls.{type(value).__name__}({inside})"
    return repr(value)


def _changed(regime: Regime) -> dict[str, Any]:
    """Return the options of a regime that are not the usual ones; σ always, by its name."""
    usual, changed = type(regime)(), {}
    for option in regime.options:
        value = getattr(regime, option.name)
        if option.name == "activation":
            changed[option.name] = value.name
        elif not (value is None or np.ndim(value) == 0) or value != getattr(usual, option.name):
            changed[option.name] = value
    return changed


def word_of(regime: Regime) -> str:
    """Return the word that chooses a regime on the command line.

    >>> import lazyscope as ls
    >>> word_of(ls.Taylor(2, "relu3")), word_of(ls.Taylor(2, "relu3", randomized=False))
    ('randomized', 'quadratic')
    """
    fits = (all(getattr(regime, name) == value for name, value in fixed.items()) for fixed in regime.words.values())
    return next(word for word, fit in zip(regime.words, fits, strict=True) if fit)


def _regime(regime: Regime, names: Mapping[str, Name]) -> str:
    """Return a regime as Python source; `names` are variables that stand for values of its options."""
    given = {**_changed(regime), **regime.words[word_of(regime)], **names}
    first = fields(regime)[0].name if fields(regime) else ""  # type: ignore[arg-type]  # regimes are dataclasses
    inside = [written(value) if name == first else f"{name}={written(value)}" for name, value in given.items()]
    return f"ls.{type(regime).__name__}({', '.join(inside)})".replace("'", '"')


def command(verb: str, kind: type[Problem], given: Mapping[str, Any]) -> str:
    """Return a command line; what is None is left out.

    >>> import lazyscope as ls
    >>> command("exact", ls.QuadraticTarget, {"d": 9, "target_seed": 100, "width": [2, 3], "weights": None})
    'lazyscope exact quadratic --d 9 --target-seed 100 --width 2,3'
    """
    options = (f"--{name.replace('_', '-')} {_word(value)}" for name, value in given.items() if value is not None)
    return " ".join(["lazyscope", verb, kind.word, *options])


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(_word, value))
    return value if isinstance(value, str) else repr(value)


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a verb that can be made, and written down as Python: the one is the other by construction.

    `names` are variables of the Python that stand for values of the regime's options.
    """

    verb: Literal["limit", "exact", "simulate"]
    problem: Problem
    regime: Regime
    arguments: Mapping[str, Any]
    names: Mapping[str, Name] = field(default_factory=dict)

    def run(self) -> Any:
        """Make the call."""
        from lazyscope.runs import verbs

        return getattr(verbs, self.verb)(self.problem, self.regime, **self.arguments)

    def claim(self) -> dict[str, Any]:
        """Return what its result rests on, in the shape of `schemas.ClaimRecord`."""
        return record(find(self.verb, self.problem, self.regime, self.arguments.get("method")))

    def values(self, result: Any, variable: str) -> tuple[Any, Any]:
        """Return a variable of its result, and the standard error: None if there is one draw."""
        error = stderr_name(variable)
        return result[variable].values, result[error].values if error in result else None

    def source(self) -> str:
        """Write the call; the problem is the variable `problem`."""
        given = "".join(f", {name}={written(value)}" for name, value in self.arguments.items())
        return f"ls.{self.verb}(problem, {_regime(self.regime, self.names)}{given})"

    def command(self, problem: Mapping[str, Any] | None = None, **instead: Any) -> str:
        """Write the call as a command line.

        `problem` are options that describe the problem, where they are not its own fields; `instead` are values that
        the command line writes in another way, None for what it leaves out.
        """
        kind, given = type(self.problem), problem
        if given is None:
            values = {option.name: getattr(self.problem, option.name) for option in kind.options}
            given = {
                option.name: values[option.name] for option in kind.options if values[option.name] != option.default
            }
        words = {word for claim in claims(self.verb) if issubclass(kind, claim.problem) for word in claim.regime.words}
        asked = {**given, **({"regime": word_of(self.regime)} if len(words) > 1 else {}), **_changed(self.regime)}
        for name, value in self.arguments.items():
            if name == "protocol":
                usual = value.paper(self.problem, self.regime)
                settings = {option.name: getattr(value, option.name) for option in value.options}
                asked |= {name: value for name, value in settings.items() if value != getattr(usual, name)}
            elif name != "method":  # which is the usual one
                asked[name] = value
        return command(self.verb, kind, {**asked, **instead})


class DrawnCall(Call):
    """A call whose result has every draw, along the first axis of each variable."""

    def values(self, result: Any, variable: str) -> tuple[Any, Any]:
        """Return the mean over draws, and its standard error."""
        return over_draws(result[variable], axis=0)


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


def at(place: float) -> Callable[[Any], float]:
    """Return the function that has one place for the dot of every result."""
    return lambda result: place


def dictionary(name: str, calls: dict[str, Call]) -> Iterator[str]:
    """Yield the lines of a Python dictionary of calls."""
    yield f"{name} = {{"
    for label, call in calls.items():
        yield f"    {label!r}: {call.source()},"
    yield "}"


def listing(
    header: Iterable[str], tasks: Iterable[Task], printed: str = "dot.risk.values.round(4)", each: str = "dot"
) -> str:
    """Return the Python that makes all dots and prints what is shown of each."""
    calls = {task.name: task.call for task in tasks}
    ending = (f"for name, {each} in dots.items():", f"    print(name, {printed})")
    return lines_of([*header, *dictionary("dots", calls), *ending])


def lines_of(sources: Iterable[str]) -> str:
    """Join lines of Python, with a newline at the end."""
    return "\n".join(sources) + "\n"

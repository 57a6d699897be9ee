"""Commands from declarations: problems, regimes and protocols name their options, claims say which verb serves what.

A problem, regime or claim of another package is here as soon as it is registered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import click

from lazyscope.activations import Activation
from lazyscope.cli import output
from lazyscope.cli.asking import grammar
from lazyscope.errors import InvalidParameter
from lazyscope.evidence import registry
from lazyscope.evidence.claim import Claim
from lazyscope.files import read_array
from lazyscope.problems.base import Option, Problem, SizedProblem
from lazyscope.protocols import TrainingProtocol
from lazyscope.regimes import Regime
from lazyscope.runs.side_by_side import comparable

Verb = Literal["limit", "exact", "simulate", "compare"]
Spelling = Callable[[str], str]
_MULTIPLE = re.compile(r"(\d*)d(?:/(\d+))?")
_LEAST_RATIO = 0.05  # the smallest N/d by default, or one neuron


def flag(name: str) -> str:
    """Return an option as the command line spells it.

    >>> flag("target_seed")
    '--target-seed'
    """
    return "--" + name.replace("_", "-")


@dataclass(frozen=True)
class Question:
    """A verb and a kind of problem, with the claims that answer."""

    verb: Verb
    kind: type[Problem]
    claims: tuple[Claim, ...]

    @property
    def owner(self) -> str:
        """The command, as its errors name it."""
        return f"lazyscope {self.verb} {self.kind.word}"

    @cached_property
    def regimes(self) -> dict[str, type[Regime]]:
        """The regimes that the verb serves, by the words that choose them."""
        served = {word: claim.regime for claim in self.claims for word in claim.regime.words}
        first = [word for word in str(self.kind.usual.get("regime")).split(",") if word in served]
        return {word: served[word] for word in (*first, *served)}

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The sizes that any of the claims takes."""
        return tuple(dict.fromkeys(name for claim in self.claims for name in claim.arguments))

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """The methods, by which users choose between claims of one pair."""
        return tuple(dict.fromkeys(claim.method for claim in self.claims if claim.method is not None))

    @property
    def default_method(self) -> str | None:
        """The method when the user names none: the first, or None where a regime also has a claim without a method."""
        without = {claim.regime for claim in self.claims if claim.method is None}
        return None if any(claim.method and claim.regime in without for claim in self.claims) else self.methods[0]

    @property
    def columns(self) -> bool:
        """Whether risks depend on N/d or N alone, so that regimes stand side by side in a table."""
        needed = ({*claim.arguments} - {*claim.optional} for claim in self.claims)
        return issubclass(self.kind, SizedProblem) and any(names <= {"rho", "width"} for names in needed)

    @property
    def default_regimes(self) -> list[str]:
        """The words of the regimes that a command serves when the user names none."""
        usual = self.kind.usual.get("regime")
        return list(self.regimes) if usual is None else [word for word in usual.split(",") if word in self.regimes]

    @cached_property
    def regime_options(self) -> dict[str, tuple[Option, list[str]]]:
        """The options of all regimes, with the words of those that have them."""
        options: dict[str, tuple[Option, list[str]]] = {}
        sized = "sized" if issubclass(self.kind, SizedProblem) else "open"
        scaled = {claim.regime for claim in self.claims if claim.scaled}
        for word, regime in self.regimes.items():
            for option in regime.options:
                if option.when in ("", sized) or (option.when == "scaled" and regime in scaled):
                    options.setdefault(option.name, (option, []))[1].append(word)
        return options

    @cached_property
    def protocol_options(self) -> dict[str, tuple[list[Option], list[str]]]:
        """The options of all protocols, with the words of the regimes that follow one of them."""
        found: dict[str, tuple[list[Option], list[str]]] = {}
        for claim in self.claims:
            for option in claim.protocol.options if claim.protocol is not None else ():
                options, words = found.setdefault(option.name, ([], []))
                options += [option] * (option not in options)
                words += [word for word in claim.regime.words if word not in words]
        return found

    def method_of(self, regime: type[Regime], asked: str | None) -> str | None:
        """Return the method to look for: None where no claim of the regime has a method."""
        some = [claim.method for claim in self.claims if issubclass(regime, claim.regime)]
        return asked if any(method is not None for method in some) else None


def questions(verb: Verb) -> dict[str, Question]:
    """Return the questions that a verb answers, by the word of the problem.

    >>> sorted(questions("exact"))
    ['harmonic', 'mixture', 'monomial', 'multi-index', 'quadratic']
    """
    known = registry.claims("simulate" if verb == "compare" else verb)
    if verb == "compare":  # something is simulated, and something else is there to compare it with
        others = {
            (claim.problem, claim.regime) for fidelity in ("limit", "exact") for claim in registry.claims(fidelity)
        }
        known = tuple(c for c in known if (c.problem, c.regime) in others and comparable(c))
    return by_problem(verb, known)


def by_problem(verb: Verb, known: Sequence[Claim]) -> dict[str, Question]:
    """Return the question of each problem that these claims serve."""
    kinds = dict.fromkeys(claim.problem for claim in known if claim.problem.word)
    return {
        kind.word: Question(verb, kind, tuple(claim for claim in known if issubclass(kind, claim.problem)))
        for kind in kinds
    }


# -- options of a command ----------------------------------------------------------------------------------------------


def click_options(options: Iterable[Option], **helps: str) -> list[click.Option]:
    """Return declared options as options of click; `helps` replaces the help of some of them."""
    return [_click(option, helps.get(option.name, option.help), option.default) for option in options]


def _click(option: Option, help_: str, default: Any) -> click.Option:
    if option.type is bool:
        return click.Option([flag(option.name), option.name], is_flag=True, help=help_)
    types: dict[Any, Any] = {int: int, float: float, Path: click.Path(path_type=Path)}
    how = {"type": types.get(option.type), "default": default, "show_default": default is not None}
    return click.Option([flag(option.name), option.name], **how, help=help_)


def parameters(question: Question) -> list[click.Parameter]:
    """Return all options of a command, as problem, regimes, claims and protocols declare them."""
    kind, verb = question.kind, question.verb
    params: list[click.Parameter] = [*click_options(kind.options)]
    if len(question.regimes) > 1:
        which = f"Which of {', '.join(question.regimes)}, with commas"
        params.append(click.Option(["--regime"], help=f"{which}; {','.join(question.default_regimes)} by default."))
    for word, regime in question.regimes.items():
        if regime.flag:
            params.append(click.Option([flag(word), word], is_flag=True, help=f"The same as --regime {word}."))
    for option, _ in question.regime_options.values():
        usual = kind.usual.get(option.name) if option.default is None else option.default
        params.append(_click(option, option.help, usual))
    if question.methods:
        default, text = question.default_method, f"What is fitted: {', '.join(question.methods)}."
        text += " By default neither." * (default is None)
        params.append(click.Option(["--method"], default=default, show_default=default is not None, help=text))
    own = {option.name for option in kind.options}
    params += [_size(question, name) for name in question.arguments if name not in own]
    if verb != "limit":
        draws = 4 if verb == "compare" else kind.usual["draws"]
        what = "of the weights" if verb == "exact" else "of the weights and the data"
        params += [
            click.Option(["--draws"], type=int, default=draws, show_default=True, help=f"Independent draws {what}."),
            click.Option(["--seed"], type=int, default=0, show_default=True, help=f"Seed {what}."),
        ]
    for options, _ in question.protocol_options.values():
        params.append(_click(options[0], " ".join(option.help for option in options), None))
    drawn = verb != "compare" or not question.columns
    params += output.options(f"lazyscope-{verb}-{kind.word}.png" if drawn else "")
    names = [param.name for param in params]
    return [param for i, param in enumerate(params) if param.name not in names[:i]]  # one name, one option for all


def _size(question: Question, name: str) -> click.Option:
    usual = str(question.kind.usual.get(name, "")).replace(",", ", ")
    if name == "rho":
        return click.Option(
            ["--rho"], help=f"N/d: {grammar.GRAMMAR}. By default {_LEAST_RATIO}:2:40, from one neuron on."
        )
    if name == "width":
        few = [claim.sizes["width"] for claim in question.claims if "times" in claim.arguments]
        usual = f"{few[0]:g}" if few else usual
        numbers = grammar.GRAMMAR if question.verb == "limit" else grammar.FINITE
        return click.Option(["--width"], help=f"N: {numbers}. By default {usual}.")
    if name == "samples" and question.verb == "limit":
        return click.Option(["--samples"], help=f"n: {grammar.GRAMMAR}. By default {usual}.")
    if name == "samples":
        having = {word for claim in question.claims if name in claim.optional for word in claim.regime.words}
        own = [word for word in question.regimes if word in having]
        rest = [word for word in question.regimes if word not in having]
        parts = [f"{usual} for {', '.join(rest)}"] * bool(rest) + [f"its own number for each of {', '.join(own)}"]
        text = " and ".join(parts) if own else usual
        return click.Option(["--samples"], type=int, help=f"n: by default {text}.")
    if name == "d":
        return click.Option(["--d"], type=int, default=int(usual), show_default=True, help="Dimension.")
    texts = {"psi1": f"N/d: {grammar.GRAMMAR}.", "psi2": "n/d: likewise."}
    texts |= {"times": f"steps/d: {grammar.GRAMMAR}.", "step_size": "η of SGD: likewise; 0 is the limit η → 0."}
    text = texts.get(name, f"{grammar.GRAMMAR}.")
    if name == "ridge":
        limit = question.verb == "limit"
        text = "λ: likewise, or 0, or optimal." if limit else f"λ: {grammar.FINITE}; 0 is the limit λ → 0."
    return click.Option([flag(name), name], default=usual or None, show_default=bool(usual), help=text)


# -- from options to values --------------------------------------------------------------------------------------------


def read(owner: str, option: Option, spelled: str, value: Any, folder: Path | None = None) -> Any:
    """Return the value of an option: files are read, and lists of numbers understood."""
    if value is None:
        return None
    if option.type is list:
        return tuple(grammar.parse(value, owner, spelled).values) if isinstance(value, str) else value
    kinds = option.type if isinstance(option.type, tuple) else (option.type,)
    words = [word for word in kinds if isinstance(word, str)]
    if (isinstance(value, str) and value in words) or not (words or Path in kinds):
        return value
    if Path not in kinds or not isinstance(value, (str, Path)) or (words and not Path(value).suffix):
        choices = [*words, *["a file (.npy, .csv)"] * (Path in kinds)]
        must = f"be {', '.join(choices[:-1])}{', or ' * bool(choices[:-1])}{choices[-1]}"
        raise InvalidParameter.of(owner, spelled, must, repr(value)[:60])
    return read_array((folder or Path()) / value)


def problem_of(
    owner: str, kind: type[Problem], given: Mapping[str, Any], spelling: Spelling = flag, folder: Path | None = None
) -> Problem:
    """Return the problem that the options of its kind describe."""
    changed = {option.name for option in kind.options if given.get(option.name) not in (None, option.default)}
    for option in kind.options:
        if option.name in changed and changed & {*option.replaces}:
            must = f"stand alone: the file says what {' and '.join(map(spelling, option.replaces))} would draw"
            raise InvalidParameter.of(owner, spelling(option.name), must, "both", "Leave one out.")
    values = {
        option.name: read(owner, option, spelling(option.name), given.get(option.name, option.default), folder)
        for option in kind.options
    }
    return kind.from_options(**values)


def words_of(question: Question, options: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the words of the regimes, and whether they were named; options of others are refused."""
    owner, asked = question.owner, options.get("regime")
    for word, regime in question.regimes.items():
        if regime.flag and options.get(word):
            if asked is not None:
                raise InvalidParameter.of(owner, flag(word), "stand alone: it is a regime itself", f"regime {asked}")
            asked = word
    words = question.default_regimes if asked is None else [word.strip().lower() for word in asked.split(",")]
    known = list(question.regimes)
    if question.verb != "compare" and not {*words} <= {*known}:  # another verb may serve it, as the refusal will say
        known = list({**question.regimes, **_all_regimes(question.kind)})
    if not {*words} <= {*known} or len({*words}) < len(words):
        must = f"name each of {', '.join(known)} at most once, with commas"
        raise InvalidParameter.of(owner, "--regime", must, repr(asked))
    belongs = [
        (option, having)
        for option, having in question.regime_options.values()
        if option.name not in question.kind.usual
    ]
    belongs += [(some[0], having) for some, having in question.protocol_options.values()]
    for option, having in belongs:
        if options.get(option.name) not in (None, option.default) and not {*having} & {*words}:
            must = f"go with the regime {' or '.join(word for word in question.regimes if word in having)}"
            raise InvalidParameter.of(owner, flag(option.name), must, f"regime {','.join(words)}", "Leave it out.")
    return words, asked is not None


def _all_regimes(kind: type[Problem]) -> dict[str, type[Regime]]:
    """Return the regimes that any verb serves with a kind of problem."""
    some = (claim for claim in registry.claims() if issubclass(kind, claim.problem))
    return {word: claim.regime for claim in some for word in claim.regime.words}


def regimes_of(question: Question, words: Sequence[str], options: Mapping[str, Any]) -> dict[str, Callable[[], Regime]]:
    """Return how to make each regime; shared options are checked here, its own options when it is made."""
    given = {
        name: read(question.owner, option, flag(name), options.get(name))
        for name, (option, _) in question.regime_options.items()
    }
    if given.get("activation") is not None:
        given["activation"] = Activation(given["activation"])
    known = question.regimes if {*words} <= {*question.regimes} else _all_regimes(question.kind)
    return {word: _maker(known[word], word, given) for word in words}


def _maker(regime: type[Regime], word: str, given: Mapping[str, Any]) -> Callable[[], Regime]:
    own = {option.name: given.get(option.name) for option in regime.options}
    return lambda: regime.from_options(**{**own, **regime.words[word]})


def protocol_of(
    owner: str, claim: Claim, problem: Problem, regime: Regime, options: Mapping[str, Any]
) -> TrainingProtocol | None:
    """Return the usual protocol of a pair with the changes that were asked for, or None where there are none."""
    if claim.protocol is None:
        return None
    given = {
        option.name: read(owner, option, flag(option.name), options[option.name])
        for option in claim.protocol.options
        if options.get(option.name) is not None
    }
    return replace(claim.protocol.paper(problem, regime), **given) if given else None  # type: ignore[type-var]


def usual_size(kind: type[Problem], name: str, d: int) -> str:
    """Return the default sizes, in the grammar of the command line.

    >>> from lazyscope.problems import LinearTarget, QuadraticTarget
    >>> usual_size(LinearTarget, "samples", 20), usual_size(QuadraticTarget, "width", 9)
    ('60', '1,4,9,18')
    """
    if name == "rho":
        return f"{max(_LEAST_RATIO, 1.0 / d)!r}:2:40"
    items = []
    for item in str(kind.usual.get(name, "")).split(","):
        match = _MULTIPLE.fullmatch(item)
        items.append(item if match is None else str(max(1, int(match[1] or 1) * d // int(match[2] or 1))))
    return ",".join(dict.fromkeys(items))


def axis(owner: str, kind: type[Problem], name: str, text: str | None, d: int) -> grammar.Grid:
    """Return the values of a size, or the usual ones."""
    return grammar.parse(usual_size(kind, name, d) if text is None else text, owner, flag(name))


def sizes_of(question: Question, claim: Claim, problem: Problem, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes that a claim takes: N/d and N as sequences, others as a number if one value was written."""
    d = problem.d if isinstance(problem, SizedProblem) else int(options.get("d") or 1)
    sizes: dict[str, Any] = {}
    for name in claim.arguments:
        if name == "d":
            sizes[name] = d
        elif name == "samples" and question.verb != "limit":
            needed = name not in claim.optional and options["samples"] is None
            sizes[name] = int(usual_size(question.kind, name, d)) if needed else options["samples"]
        elif name == "ridge" and question.verb == "limit" and options["ridge"].strip() == "optimal":
            continue
        else:
            alone = name == "width" and "times" in claim.arguments and options[name] is None  # few neurons, N fixed
            text = f"{claim.sizes[name]:g}" if alone else options[name]
            grid = axis(question.owner, question.kind, name, text, d)
            values = grid.whole if name == "width" and question.verb != "limit" else grid.values
            sizes[name] = values[0] if len(values) == 1 and name not in ("rho", "width") else values
    return sizes

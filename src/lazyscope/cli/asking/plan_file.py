"""A plan of a sweep as a TOML file, in the words of the command line; a list stands for each of its items.

    name = "width"                      # by default the name of the file
    problem = "quadratic"               # any problem, with its options: d and target_seed, or the file B
    d = 450
    regime = ["rf", "nt", "nn"]         # with activation, and what else they have: weights of rf, alpha of nn
    fidelity = ["exact", "simulate"]
    width = "45:4500:5log"              # numbers, or the grammar of --width
    draws = 3                           # with seed
    samples = 500_000                   # that rf is fitted to

    [sgd]                               # what differs from the paper's protocol: steps, batch, step_sizes, decay, …
    steps = 20_000

Tables `[[grid]]` are grids of their own; what stands above them holds for all of them. Particles have a table
`[descent]`, noisy SGD has `[noisy_sgd]`; ridge regression takes `ridge`.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, cast

from lazyscope.activations import Activation
from lazyscope.checks import whole_number
from lazyscope.cli.asking import declared, grammar
from lazyscope.cli.asking.declared import Question
from lazyscope.errors import InvalidParameter, UnreadableFile
from lazyscope.evidence import registry
from lazyscope.evidence.claim import Claim
from lazyscope.evidence.run import Run
from lazyscope.problems import Problem, SizedProblem
from lazyscope.protocols import TrainingProtocol
from lazyscope.regimes import Regime
from lazyscope.sweep import Plan
from lazyscope.sweep.plan import NUMERICS

_NEEDED = ("problem", "regime", "fidelity", "width")
_SIZES = ("width", "draws", "seed", "samples", "d", "ridge", "method")
_MEGABYTES = 10  # a plan is written by hand


def read_plan(path: Path) -> Plan:
    """Read a plan, or refuse it with the key that is wrong."""
    document = _document(path)
    name = document.pop("name", path.stem)
    if not isinstance(name, str) or not name.strip():
        raise InvalidParameter.of(path.name, "name", "be a text that is not empty", repr(name)[:60])
    tables = document.pop("grid", [{}])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidParameter.of(path.name, "grid", "be tables, [[grid]]", repr(tables)[:60])
    drawn = [claim for claim in registry.claims() if claim.fidelity in NUMERICS and claim.arguments]
    known = declared.by_problem("simulate", drawn)
    keys = tuple(dict.fromkeys(["problem", "regime", "fidelity", *_SIZES, *_declared(known.values())]))
    _check_keys(path.name, document, ("name", *keys, "grid"))
    for table in tables:
        _check_keys(path.name, table, keys)
    plans = [list(_Grid(path, document | table, known).plans(name)) for table in tables]
    whole = Plan.union(name, [plan for some in plans for plan in some])
    for table, some in zip((document, *tables), ([whole], *plans), strict=True):
        _check_taken(
            path.name, table, [task.work for plan in some for task in plan.tasks if isinstance(task.work, Run)]
        )
    return whole


def _check_taken(owner: str, table: dict[str, Any], runs: Sequence[Run]) -> None:
    """Refuse a key that nothing in its grid takes; a key above the grids must be taken by some grid."""
    takes = {*_NEEDED, "draws", "seed"}
    for claim, kind in {run.claim.key: (run.claim, type(run.problem)) for run in runs}.values():
        takes |= {*claim.arguments, *(option.name for option in (*kind.options, *claim.regime.options))}
        takes |= {"method"} if claim.method is not None else set()
        takes |= {claim.protocol.word} if claim.protocol is not None else set()
    for key in table:
        if key not in takes:
            got = ", ".join(dict.fromkeys(f"{run.fidelity} of {run.regime.label}" for run in runs))
            raise InvalidParameter.of(owner, key, "go with something that takes it", got, "Leave it out.")


def _declared(questions: Iterable[Question]) -> Iterator[str]:
    """Yield the keys that problems, regimes and protocols declare."""
    for question in questions:
        yield from (option.name for option in question.kind.options)
        yield from question.regime_options
        yield from (claim.protocol.word for claim in question.claims if claim.protocol is not None)


def _document(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MEGABYTES * 1_000_000:
            raise UnreadableFile(
                f"The plan {path} must be a text of at most {_MEGABYTES} MB. Got a larger file instead."
            )
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableFile(f"The plan {path} must be a readable file. Got: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise UnreadableFile(f"The plan {path} must be TOML. Got something else instead: {said}.") from None


def _check_keys(owner: str, table: dict[str, Any], known: Iterable[str]) -> None:
    for key in table:
        if key not in known:
            nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            advice = f"Did you mean {nearest[0]!r}?" if nearest else ""
            raise InvalidParameter.of(owner, key, f"be one of {', '.join(known)}", repr(key), advice)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True)
class _Grid:
    """One grid of a plan file: its keys, the folder that its files are looked up in, and what can be asked."""

    path: Path
    table: dict[str, Any]
    known: Mapping[str, Question]

    def plans(self, name: str) -> Iterator[Plan]:
        """Yield the plan of each problem, regime and setting."""
        for key in _NEEDED:
            if key not in self.table:
                raise self._wrong(key, "be given", "none")
        table, widths = self.table, self._widths()
        questions = self._questions()
        for question in questions:
            open_d = [None] if issubclass(question.kind, SizedProblem) else self._whole("d")
            for problem, regime in product(list(self._problems(question)), list(self._regimes(question))):
                usual = question.default_method if question.methods else None
                method = question.method_of(type(regime), table.get("method", usual))
                claim = self._simulated(problem, regime, method)
                settings = product(_each(table.get("seed", 0)), self._whole("samples"), open_d, self._changes(claim))
                for seed, given, d, changes in settings:
                    how = self._sizes(question, claim, problem, given, d)
                    how |= {"protocol": _protocol(claim, problem, regime, given, changes), "method": method}
                    how |= {"draws": table.get("draws", 1), "seed": seed}
                    yield Plan.grid(name, [problem], [regime], _each(table["fidelity"]), widths=widths, **how)

    def _wrong(self, key: str, must: str, got: object, advice: str = "") -> InvalidParameter:
        return InvalidParameter.of(self.path.name, key, must, got, advice)

    def _widths(self) -> list[float]:
        widths: list[float] = []
        for item in _each(self.table["width"]):
            widths += grammar.parse(item, self.path.name, "width").whole if isinstance(item, str) else [item]
        return widths

    def _whole(self, key: str) -> list[int | None]:
        given = self.table.get(key)
        return [None] if given is None else [whole_number(value, self.path.name, key) for value in _each(given)]

    def _questions(self) -> list[Question]:
        """Return the questions of the problems named; refuse keys that belong to none of them, or to other regimes."""
        words, names = _each(self.table["problem"]), _each(self.table["regime"])
        for word in words:
            if word not in tuple(self.known):
                raise self._wrong("problem", f"be made of {', '.join(self.known)}", repr(word))
        asked = [self.known[word] for word in words]
        regimes = list(dict.fromkeys(word for question in asked for word in question.regimes))
        for name in names:
            if name not in tuple(regimes):
                raise self._wrong("regime", f"be made of {', '.join(regimes)}", repr(name))
        for key in self.table:
            having = [word for word, question in self.known.items() if key in _own(question)]
            if having and not {*having} & {*words}:
                raise self._wrong(key, f"go with a problem that has it: {', '.join(sorted(having))}", ", ".join(words))
            having = [word for question in asked for word in question.regime_options.get(key, (None, []))[1]]
            if having and not {*having} & {*names}:
                must = f"go with the regime {' or '.join(dict.fromkeys(having))}"
                raise self._wrong(key, must, ", ".join(names), "Leave it out.")
        for kind in {claim.protocol for question in self.known.values() for claim in question.claims} - {None}:
            # wrong values are refused here, even if no regime of this grid uses the protocol
            list(self._variants(kind))
        return asked

    def _problems(self, question: Question) -> Iterator[Problem]:
        options = question.kind.options
        for values in product(*(_each(self.table.get(option.name, option.default)) for option in options)):
            given = {option.name: value for option, value in zip(options, values, strict=True)}
            yield declared.problem_of(self.path.name, question.kind, given, str, self.path.parent)

    def _regimes(self, question: Question) -> Iterator[Regime]:
        for word in _each(self.table["regime"]):
            if word not in question.regimes:
                must = f"be served with each problem; {question.kind.word} has {', '.join(question.regimes)}"
                raise self._wrong("regime", must, repr(word), "Write two grids.")
            regime = question.regimes[word]
            options = [option for option, having in question.regime_options.values() if word in having]
            usual = {option.name: question.kind.usual.get(option.name, option.default) for option in options}
            for values in product(*(_each(self.table.get(option.name, usual[option.name])) for option in options)):
                given = {
                    option.name: declared.read(self.path.name, option, option.name, value, self.path.parent)
                    for option, value in zip(options, values, strict=True)
                }
                if "activation" in given:
                    given["activation"] = Activation(given["activation"])
                yield regime.from_options(**{**given, **regime.words[word]})

    def _simulated(self, problem: Problem, regime: Regime, method: str | None) -> Claim | None:
        """Return the claim that simulates a pair, where that is asked for."""
        if "simulate" not in _each(self.table["fidelity"]):
            return None
        return registry.find("simulate", problem, regime, method)

    def _sizes(
        self, question: Question, claim: Claim | None, problem: Problem, samples: int | None, d: Any
    ) -> dict[str, Any]:
        """Return the sizes beside the widths: the usual ones where a claim needs what is not given."""
        sizes: dict[str, Any] = {"samples": samples, "d": d, "ridge": self.table.get("ridge")}
        if isinstance(sizes["ridge"], str):
            sizes["ridge"] = grammar.parse(sizes["ridge"], self.path.name, "ridge").values
        needed = () if claim is None else [name for name in claim.arguments if name not in claim.optional]
        if "d" in needed and d is None:
            sizes["d"] = question.kind.usual["d"]
        at = problem.d if isinstance(problem, SizedProblem) else sizes["d"]
        for name in {"samples", "ridge"} & {*needed}:
            if sizes[name] is None:
                usual = declared.usual_size(question.kind, name, at)
                sizes[name] = float(usual) if name == "ridge" else int(usual)
        return sizes

    def _changes(self, claim: Claim | None) -> list[dict[str, Any]]:
        return [{}] if claim is None or claim.protocol is None else list(self._variants(claim.protocol))

    def _variants(self, kind: Any) -> Iterator[dict[str, Any]]:
        """Yield the changes of each variant of a protocol: one for each value of a list, unless the field is a list."""
        table = self.table.get(kind.word, {})
        if not isinstance(table, dict):
            raise self._wrong(kind.word, f"be a table, [{kind.word}]", repr(table)[:60])
        _check_keys(f"[{kind.word}] of {self.path.name}", table, [field.name for field in fields(kind)])
        lists = [field.name for field in fields(kind) if str(field.type).startswith("tuple")]
        whole = {key: _each(table[key]) for key in lists if key in table}
        variants = {key: _each(value) for key, value in table.items() if key not in lists}
        for values in product(*variants.values()):
            changes = dict(zip(variants, values, strict=True)) | whole
            kind(**changes)
            yield changes


def _own(question: Question) -> set[str]:
    """Return the keys that not every problem has."""
    own = {option.name for option in question.kind.options} | ({"d", "ridge"} & {*question.arguments})
    return own | ({"method"} if question.methods else set())


def _protocol(
    claim: Claim | None, problem: Problem, regime: Regime, samples: int | None, changes: dict[str, Any]
) -> TrainingProtocol | None:
    """Return the usual protocol with its changes; without steps among them, `samples` may say how many there are."""
    if claim is None or claim.protocol is None or not changes:
        return None
    protocol: Any = replace(claim.protocol.paper(problem, regime), **changes)  # type: ignore[type-var]
    if samples is not None and "samples" in claim.optional and "steps" not in changes:
        if samples < protocol.batch:
            raise InvalidParameter.of("Plan", "samples", f"fill at least one batch of {protocol.batch}", samples)
        protocol = replace(protocol, steps=samples // protocol.batch)
    return cast("TrainingProtocol", protocol)

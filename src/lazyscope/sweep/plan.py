"""A plan: the tasks of a sweep, each known by the fingerprint of all that its numbers depend on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lazyscope.checks import whole_number, whole_numbers
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.claim import Fidelity
from lazyscope.evidence.registry import find
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Work
from lazyscope.problems.base import Problem
from lazyscope.protocols import TrainingProtocol
from lazyscope.regimes import Regime
from lazyscope.runs.verbs import run_of
from lazyscope.sweep.content import Array, Encoder, canonical, digest

NUMERICS: dict[str, str] = {"exact": "1", "simulate": "1"}
"""The version of the numbers, by fidelity: part of every fingerprint. Bump it in the commit that changes a result,
be it in the last digit; stored results of the old version are then kept, and never mixed with new ones."""

_MOST = 1_000_000  # tasks of a grid: more must be a mistake
_NAME = re.compile(r"\w[\w .+-]{0,99}")


@dataclass(frozen=True, eq=False)
class Task:
    """A piece of work, its full specification as text, and the fingerprint of that.

    `arrays` are those that the specification names by their digest.
    """

    work: Work
    specification: str
    key: str
    arrays: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Plan:
    """A name and the tasks that go by it; a task that is there twice is one task.

    >>> import lazyscope as ls
    >>> problem, regimes = ls.QuadraticTarget.exponential(20), (ls.RandomFeatures("relu"), ls.Trained())
    >>> plan = Plan.grid("demo", [problem], regimes, ["exact", "simulate"], widths=[5, 10, 40], draws=2)
    >>> len(plan.tasks)
    24
    """

    name: str
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(str(self.name)):
            must = "begin with a letter or a digit, and go on with at most 99 of these, blanks or any of _ . + -"
            raise InvalidParameter.of("Plan", "name", must, repr(self.name))
        if not self.tasks:
            must = "hold at least one task: a problem, a regime, a fidelity and a width"
            raise InvalidParameter.of("Plan", "tasks", must, "none")
        object.__setattr__(self, "tasks", tuple({task.key: task for task in self.tasks}.values()))

    @classmethod
    def of(cls, name: str, some: Iterable[Work]) -> Plan:
        """Return the plan of this work, a task for each piece of it; contradictions are refused here."""
        encoder = Encoder()
        return cls(name, tuple(_task(piece, encoder) for work in some for piece in work.pieces()))

    @classmethod
    def grid(
        cls,
        name: str,
        problems: Sequence[Problem],
        regimes: Sequence[Regime],
        fidelities: Sequence[Fidelity] = ("exact",),
        *,
        widths: Any,
        draws: int = 1,
        seed: int = 0,
        samples: Any = None,
        d: Any = None,
        ridge: Any = None,
        method: str | None = None,
        protocol: TrainingProtocol | None = None,
    ) -> Plan:
        """Return the plan of every combination; one that no verb serves is refused now, before anything is computed.

        Each combination takes what its claim knows of the sizes: random features are fitted to `samples`; SGD follows
        `protocol` or, without one, the paper's on `samples`.
        """
        for fidelity in fidelities:
            if fidelity not in tuple(NUMERICS):
                raise InvalidParameter.of("Plan", "fidelity", f"be {' or '.join(NUMERICS)}", repr(fidelity))
        given = {"samples": samples, "d": d, "ridge": ridge}
        sizes = tuple(dict.fromkeys(whole_numbers(widths, "Plan", "widths").ravel().tolist()))
        numbers = range(whole_number(draws, "Plan", "draws"))
        total = len(problems) * len(regimes) * len(fidelities) * len(sizes) * len(numbers)
        if total > _MOST:
            raise InvalidParameter.of(
                "Plan", "tasks", f"be at most {_MOST:,}", f"{total:,}", "Use fewer draws or widths."
            )
        some = (
            run.at(number=number)
            for problem in problems
            for regime in regimes
            for fidelity in fidelities
            for run in [_run(fidelity, problem, regime, {"width": sizes, **given}, protocol, method, seed)]
            for number in numbers
        )
        return cls.of(name, some)

    @classmethod
    def union(cls, name: str, plans: Iterable[Plan]) -> Plan:
        """Return one plan with the tasks of several."""
        return cls(name, tuple(task for plan in plans for task in plan.tasks))

    @property
    def digest(self) -> str:
        """The fingerprint of the plan: that of its tasks, in order."""
        return digest(" ".join(task.key for task in self.tasks))


def _run(
    fidelity: Fidelity,
    problem: Problem,
    regime: Regime,
    given: Mapping[str, Any],
    protocol: TrainingProtocol | None,
    method: str | None,
    seed: int,
) -> Run:
    """Return the run of one combination, which takes of the grid what its claim knows; a protocol overrides samples."""
    claim = find(fidelity, problem, regime, method)
    if claim.follows(protocol) and "samples" in claim.optional:
        given = {**given, "samples": None}
    how: dict[str, Any] = {"method": method, "protocol": protocol, "seed": seed, "claim": claim}
    return run_of(fidelity, problem, regime, given, **how, shared=True)[0]


def _task(work: Work, encoder: Encoder) -> Task:
    version = work.claim.version if isinstance(work, Run) else work.version  # beside that of all, in NUMERICS
    numerics = f"{work.fidelity} {NUMERICS[work.fidelity]} {version}".strip()
    written = encoder.encode(work) | {"numerics": numerics}
    arrays = {name: encoder.arrays[name] for name in _named(written)}
    specification = canonical(written)
    return Task(work, specification, digest(specification), arrays)


def _named(written: Any) -> set[str]:
    """Return the digests of the arrays that an encoded value names."""
    if isinstance(written, list):
        return set().union(*map(_named, written))
    if isinstance(written, dict):
        return {written["array"]} if "array" in written else _named(list(written.values()))
    return set()

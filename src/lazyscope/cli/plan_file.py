"""A plan of a sweep as a TOML file, in the words of the command line; a list stands for each of its items.

    name = "width"                      # by default the name of the file
    problem = "quadratic"               # or mixture; with d and target_seed, or with files: B, delta, sigma
    d = 450
    regime = ["rf", "nt", "nn"]         # with activation, and weights for rf
    fidelity = ["exact", "simulate"]
    width = "45:4500:5log"              # numbers, or the grammar of --width
    draws = 3                           # with seed
    samples = 500_000                   # that rf is fitted to

    [sgd]                               # what differs from the paper's protocol: steps, batch, step_sizes, decay, test
    steps = 20_000

Tables `[[grid]]` are grids of their own; what stands above them holds for all of them.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from lazyscope.activations import Activation
from lazyscope.checks import whole_number
from lazyscope.cli import grammar
from lazyscope.errors import InvalidParameter, UnreadableFile
from lazyscope.files import read_array
from lazyscope.problems import GaussianMixture, QuadraticTarget, SizedProblem
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, RandomFeatures, Regime, Trained
from lazyscope.sweep import Plan

_OF_PROBLEM = {"quadratic": ("B",), "mixture": ("delta", "sigma")}
_KEYS = (
    "problem", "d", "target_seed", "B", "delta", "sigma", "regime", "activation", "weights", "fidelity", "width",
    "draws", "seed", "samples", "sgd",
)  # fmt: skip
_NEEDED = ("problem", "regime", "fidelity", "width")
_MEGABYTES = 10  # a plan is written by hand
_LISTS = ("step_sizes", "decay")  # of SGD: lists by nature, which make no grid


def read_plan(path: Path) -> Plan:
    """Read a plan, or refuse it with the key that is wrong."""
    document = _document(path)
    name = document.pop("name", path.stem)
    tables = document.pop("grid", [{}])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidParameter.of(path.name, "grid", "be tables, [[grid]]", repr(tables)[:60])
    _check_keys(path.name, document, ("name", *_KEYS, "grid"))
    for table in tables:
        _check_keys(path.name, table, _KEYS)
    return Plan.union(name, [plan for table in tables for plan in _Grid(path, document | table).plans(name)])


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
    """One grid of a plan file: its keys, and the folder that its files are looked up in."""

    path: Path
    table: dict[str, Any]

    def plans(self, name: str) -> Iterator[Plan]:
        """Yield the plan of each problem, regime and setting."""
        for key in _NEEDED:
            if key not in self.table:
                raise self._wrong(key, "be given", "none")
        table, widths = self.table, self._widths()
        settings = list(product(_each(table.get("seed", 0)), self._samples(), self._changes()))
        for problem, regime in product(list(self._problems()), list(self._regimes())):
            for seed, samples, changes in settings:
                yield Plan.grid(
                    name, [problem], [regime], _each(table["fidelity"]), widths=widths, draws=table.get("draws", 1),
                    seed=seed, samples=samples, protocol=_protocol(problem, regime, samples, changes),
                )  # fmt: skip

    def _wrong(self, key: str, must: str, got: object, advice: str = "") -> InvalidParameter:
        return InvalidParameter.of(self.path.name, key, must, got, advice)

    def _widths(self) -> list[float]:
        widths: list[float] = []
        for item in _each(self.table["width"]):
            widths += grammar.parse(item, self.path.name, "width").whole if isinstance(item, str) else [item]
        return widths

    def _samples(self) -> list[int | None]:
        given = self.table.get("samples")
        return [None] if given is None else [whole_number(n, self.path.name, "samples") for n in _each(given)]

    def _problems(self) -> Iterator[SizedProblem]:
        kinds = _each(self.table["problem"])
        for kind in kinds:
            if kind not in tuple(_OF_PROBLEM):
                raise self._wrong("problem", f"be {' or '.join(_OF_PROBLEM)}", repr(kind))
        for kind, keys in _OF_PROBLEM.items():
            for key in keys:
                if key in self.table and kind not in kinds:
                    raise self._wrong(key, f"go with the problem {kind}", ", ".join(kinds))
        for kind in kinds:
            yield from self._quadratic() if kind == "quadratic" else self._mixture()

    def _quadratic(self) -> Iterator[SizedProblem]:
        if "B" in self.table:
            self._stands_alone("B")
            yield from (QuadraticTarget(self._array("B", file)) for file in _each(self.table["B"]))
        else:
            yield from (QuadraticTarget.exponential(*drawn) for drawn in self._drawn(100))

    def _mixture(self) -> Iterator[SizedProblem]:
        Sigma = self._array("sigma", self.table["sigma"]) if "sigma" in self.table else None
        if "delta" in self.table:
            self._stands_alone("delta")
            yield from (GaussianMixture(self._array("delta", file), Sigma) for file in _each(self.table["delta"]))
        else:
            for drawn in self._drawn(0):
                yield GaussianMixture(GaussianMixture.three_level(*drawn).Delta, Sigma)

    def _drawn(self, target_seed: int) -> Iterator[tuple[Any, Any]]:
        yield from product(_each(self.table.get("d", 450)), _each(self.table.get("target_seed", target_seed)))

    def _stands_alone(self, key: str) -> None:
        if "d" in self.table or "target_seed" in self.table:
            must = "stand alone: the file says what d and target_seed would draw"
            raise self._wrong(key, must, "both", "Leave one out, or write two grids.")

    def _array(self, key: str, file: Any) -> Any:
        if not isinstance(file, str):
            raise self._wrong(key, "be the name of a file (.npy, .csv)", repr(file)[:60])
        return read_array(self.path.parent / file)

    def _regimes(self) -> Iterator[Regime]:
        names = _each(self.table["regime"])
        for name in names:
            if name not in ("rf", "nt", "nn"):
                raise self._wrong("regime", "be made of rf, nt and nn", repr(name))
        if "weights" in self.table and "rf" not in names:
            raise self._wrong("weights", "go with the regime rf", ", ".join(names), "Leave it out.")
        for name, activation in product(names, _each(self.table.get("activation", "square"))):
            sigma = Activation(activation)
            if name == "rf":
                yield from (RandomFeatures(sigma, law) for law in self._weights())
            else:
                yield NeuralTangent(sigma) if name == "nt" else Trained(sigma)

    def _weights(self) -> list[Any]:
        laws = []
        for law in _each(self.table.get("weights", "isotropic")):
            if not isinstance(law, str) or (law not in ("isotropic", "optimal") and not Path(law).suffix):
                raise self._wrong(
                    "weights", "be isotropic, optimal, or a file (.npy, .csv) with a covariance", repr(law)
                )
            laws.append(law if law in ("isotropic", "optimal") else self._array("weights", law))
        return laws

    def _changes(self) -> Iterator[dict[str, Any]]:
        """Yield what each variant of `[sgd]` changes: a list makes several, but where a list is what is asked for."""
        table = self.table.get("sgd", {})
        if not isinstance(table, dict):
            raise self._wrong("sgd", "be a table, [sgd]", repr(table)[:60])
        _check_keys(f"[sgd] of {self.path.name}", table, [field.name for field in fields(SGD)])
        decay = table.get("decay", [])
        if not isinstance(decay, list) or not all(isinstance(pair, list) for pair in decay):
            raise self._wrong("sgd.decay", "be a list of pairs [last share of the steps, divisor]", decay)
        whole = {key: _each(table[key]) for key in _LISTS if key in table}
        variants = {key: _each(value) for key, value in table.items() if key not in _LISTS}
        for values in product(*variants.values()):
            changes = dict(zip(variants, values, strict=True)) | whole
            SGD(**changes)  # refused here, whether or not a regime of this grid is trained
            yield changes


def _protocol(problem: SizedProblem, regime: Regime, samples: int | None, changes: dict[str, Any]) -> SGD | None:
    """Return the paper's protocol with its changes; without steps among them, `samples` says how many there are."""
    if not changes:
        return None
    protocol = replace(SGD.paper(problem, regime), **changes)
    if samples is not None and "steps" not in changes:
        if samples < protocol.batch:
            raise InvalidParameter.of("Plan", "samples", f"fill at least one batch of {protocol.batch}", samples)
        protocol = replace(protocol, steps=samples // protocol.batch)
    return protocol

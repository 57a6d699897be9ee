"""A statement of a paper that is measured or computed by a function of its own, and not by a verb."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

# Modules with a STATEMENTS tuple, in the order of the papers. Adding one to them lists it in `lazyscope claims`.
_MODULES = (
    "lazyscope.limits.flow.saddle",
    "lazyscope.limits.flow.curve",
    "lazyscope.limits.margin.separability",
    "lazyscope.experiments.ridge.equivalence",
    "lazyscope.experiments.beyond.coupling",
    "lazyscope.experiments.beyond.landscape",
    "lazyscope.experiments.beyond.generalisation",
    "lazyscope.experiments.beyond.expressivity",
    "lazyscope.experiments.beyond.sample_complexity",
    "lazyscope.experiments.beyond.higher_order",
)


@dataclass(frozen=True)
class Statement:
    """A numbered statement: its `number` in its source, what it `says` in a line, and where it is here.

    `function` is the public function of lazyscope that computes or measures it, `figure` the figure that shows it; one
    of the two may be missing.

    >>> Statement("Lemma 1", "every bad point has a way down", ("bai2020beyond",), "landscape").key
    'report/landscape/lemma-1'
    """

    number: str
    says: str
    citations: tuple[str, ...]
    function: str = ""
    figure: str = ""

    @property
    def key(self) -> str:
        """A stable name: report/function/number."""
        number = self.number.lower().replace("§", "section-").replace(" ", "-").replace(",", "")
        return f"report/{self.function or self.figure}/{number}"

    @property
    def places(self) -> str:
        """Where it is: the function, the figure, or both.

        >>> Statement("Lemma 5", "a bound", ("bai2020beyond",), "generalisation").places
        'lazyscope.generalisation'
        """
        figure = f"lazyscope figure {self.figure}" if self.figure else ""
        return ", ".join(filter(None, (f"lazyscope.{self.function}" if self.function else "", figure)))


def stated(figure: str, citation: str, says: Mapping[str, str]) -> tuple[Statement, ...]:
    """Return what a paper says, number by number, and one figure shows: the function of its name measures it.

    >>> stated("higher-order", "bai2020beyond", {"§6.1": "one piece is left"})[0].places
    'lazyscope.higher_order, lazyscope figure higher-order'
    """
    function = figure.replace("-", "_")
    return tuple(Statement(number, words, (citation,), function, figure) for number, words in says.items())


def statements() -> tuple[Statement, ...]:
    """Return the numbered statements that are implemented beside the claims of the verbs.

    >>> [one.number for one in statements() if one.function == "landscape"]
    ['Lemma 1', 'Theorem 2', 'Corollary 3', 'Theorem 4']
    """
    return tuple(statement for name in _MODULES for statement in importlib.import_module(name).STATEMENTS)

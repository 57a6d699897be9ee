"""A piece of work: what a verb computes at once, a sweep sends to a worker, and a store keeps the numbers of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from numpy.typing import NDArray

Row = dict[str, NDArray[Any]]
"""The numbers of one piece of work: name → array."""


class Work(ABC):
    """A frozen dataclass whose numbers depend on its fields alone: not on the order of work, nor on the machine.

    A subclass says how to compute itself; a sweep can then run and store it (`lazyscope.sweep`). A subclass in another
    package is known to a store as soon as it is imported.
    """

    fidelity: Literal["limit", "exact", "simulate"]
    """Whose version of the numbers it depends on."""

    @property
    def version(self) -> str:
        """Of its own numbers, where they have changed for equal fields: stored ones are then computed anew."""
        return ""

    @property
    @abstractmethod
    def label(self) -> str:
        """A few words for a progress bar."""

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return 1

    def pieces(self) -> Sequence[Self]:
        """Return the same work in pieces that are computed one by one, with every default written out."""
        return [self]

    @abstractmethod
    def compute(self) -> Row:
        """Do the work."""


class Measurement(Work):
    """Work of an experiment, which draws data or weights of its own."""

    fidelity: ClassVar[Literal["simulate"]] = "simulate"  # type: ignore[misc]  # a field of the base, fixed here

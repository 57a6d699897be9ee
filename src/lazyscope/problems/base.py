"""What a problem tells the rest of the package: the more it has, the more of the package serves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from lazyscope.checks import FloatArray, whole_number
from lazyscope.errors import InvalidParameter


@dataclass(frozen=True)
class Option:
    """One option that a problem, a regime or a protocol has on the command line and in sweep plans.

    `name` is the keyword that `from_options` takes, and `--name` on the command line, with - for _. `type` is what its
    text becomes: `int`, `float`, `str`, `bool`, `list` for several numbers, `pathlib.Path` for a file that holds an
    array; a tuple has the words to choose from, and `Path` where it may also be such a file. A `default` of None says
    that the option may be left out. `replaces` names options that must then be left out.

    An option that not every claim knows says `when` it is there: for problems with a dimension of their own ("sized"),
    for those that leave it open ("open"), or where a network with an output scale is served ("scaled").
    """

    name: str
    type: type[Any] | tuple[Any, ...]
    default: Any
    help: str
    replaces: tuple[str, ...] = ()
    when: Literal["", "sized", "open", "scaled"] = ""


class Problem(ABC):
    """A data law and a target. It may leave its dimension open: its limits then depend on ratios of sizes alone.

    A subclass that has a `word` is a command of its own, such as `lazyscope limit quadratic`: `title` and `formula` say
    in a line what it is, `options` are its options there, and `from_options` makes it from their values. `usual` are
    the regimes, the activation, the sizes and the draws of a command that names none; sizes may be multiples of d, such
    as "d/2,d,2d".
    """

    word: ClassVar[str] = ""
    title: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    options: ClassVar[tuple[Option, ...]] = ()
    usual: ClassVar[dict[str, Any]] = {
        "activation": "relu", "psi1": "0.1:10:21log", "psi2": "3", "ridge": "0.001", "d": 100,
        "width": "d/2,d,2d,3d,4d,8d", "samples": "3d", "draws": 4,
    }  # fmt: skip

    @classmethod
    def from_options(cls, **values: Any) -> Self:
        """Return the problem that these options describe; what is None is left to its default."""
        return cls(**{name: value for name, value in values.items() if value is not None})

    @abstractmethod
    def __str__(self) -> str:
        """One short line for tables, figures and provenance."""

    def in_units(self, regime: object) -> Problem:
        """Return the problem in units in which its numbers are of order 1, where no risk of the regime depends on them.

        Units are powers of two: what is computed with them is the same to the last bit.
        """
        return self


class SizedProblem(Problem):
    """A problem in d dimensions."""

    @property
    @abstractmethod
    def d(self) -> int:
        """Input dimension."""


class GaussianProblem(SizedProblem):
    """A problem with Gaussian inputs, or a mixture of them."""

    usual: ClassVar[dict[str, Any]] = {
        "activation": "square", "width": "d/10,d/5,d/2,d,2d", "samples": 1000, "draws": 1
    }  # fmt: skip

    @property
    @abstractmethod
    def covariance(self) -> FloatArray:
        """Covariance Σ of the inputs, averaged over classes: (d, d), or (d,) where it is diagonal."""

    @abstractmethod
    def best_weight_covariance(self) -> FloatArray:
        """Return the Γ, up to scale, that random features of infinite width would want."""


def dimension_of(problem: Problem, d: int | None, owner: str) -> int:
    """Return the problem's own dimension, or the one given where it leaves that open.

    >>> import lazyscope as ls
    >>> dimension_of(ls.LinearTarget(), 20, "simulate"), dimension_of(ls.SparseParity(9), None, "simulate")
    (20, 9)
    """
    if isinstance(problem, SizedProblem):
        if d is not None:
            raise InvalidParameter.of(owner, "d", "be left out: the problem has its own", repr(d)[:60])
        return problem.d
    advice = f"{type(problem).__name__} leaves it open: pass d, for example 200."
    return whole_number(d, owner, "d", advice=advice)

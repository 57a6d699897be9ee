"""The grammar of `--rho` and `--width`: numbers, `inf`, and ranges, separated by commas."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lazyscope.errors import InvalidParameter

GRAMMAR = "a number, inf, start:stop:count, start:stop:countlog, or several of these with commas"
FINITE = GRAMMAR.replace(" inf,", "")
_MOST = 1_000_000
_RANGE = re.compile(r"([^:]+):([^:]+):(\d+)(log)?")


@dataclass(frozen=True)
class Part:
    """One item between commas."""

    values: tuple[float, ...]
    is_range: bool = False
    geometric: bool = False


@dataclass(frozen=True)
class Grid:
    """What the user asked for, item by item."""

    parts: tuple[Part, ...]

    @property
    def values(self) -> list[float]:
        """All the numbers, in the order given."""
        return [value for part in self.parts for value in part.values]

    @property
    def geometric(self) -> bool:
        """Whether a picture of it wants a logarithmic axis."""
        return any(part.geometric for part in self.parts)

    @property
    def whole(self) -> list[float]:
        """As widths: ranges rounded, each rounded value once; a number that was written out stays as it is."""
        return [
            value
            for part in self.parts
            for value in (dict.fromkeys(float(round(v)) for v in part.values) if part.is_range else part.values)
        ]


def parse(text: str, owner: str, option: str) -> Grid:
    """Return the grid that `text` describes.

    >>> parse("0.5,1:3:3,inf", "lazyscope limit", "--rho").values
    [0.5, 1.0, 2.0, 3.0, inf]
    >>> parse("1:100:3log", "lazyscope exact", "--width").whole
    [1.0, 10.0, 100.0]
    >>> parse("1:2", "lazyscope limit", "--rho")
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The --rho parameter of lazyscope limit must be a number, inf, start:stop:count...
    """
    try:
        return Grid(tuple(_part(item.strip()) for item in text.split(",")))
    except ValueError as error:
        got = f"{text!r} ({error})" if str(error) else repr(text)
        raise InvalidParameter.of(owner, option, f"be {GRAMMAR}", got, "An example: 0.1:10:200log,inf.") from None


def _part(item: str) -> Part:
    if ":" not in item:
        return Part((_number(item),))
    match = _RANGE.fullmatch(item)
    if match is None:
        raise ValueError(f"{item!r} is no range")
    start, stop, count = _number(match[1]), _number(match[2]), int(match[3])
    if not 2 <= count <= _MOST:
        raise ValueError(f"the count of a range lies between 2 and {_MOST:,}")
    if float("inf") in (abs(start), abs(stop)):
        raise ValueError("a range is finite")
    if match[4] and not (start > 0 and stop > 0):
        raise ValueError("the ends of a geometric range are positive")
    import numpy as np

    space = np.geomspace if match[4] else np.linspace
    return Part(tuple(space(start, stop, count).tolist()), is_range=True, geometric=bool(match[4]))


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number" if text else "an item is empty") from None
    if value != value:
        raise ValueError("nan is no number")
    return value

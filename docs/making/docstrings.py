"""Docstrings are prose with formulas, in which |, * and a line that begins with "n." mean what they show."""

from __future__ import annotations

import re
from typing import Any

_PROPERTIES: dict[str, list[str]] = {}


def shown(line: str) -> str:
    r"""Return a line of prose in which nothing is markup by accident.

    >>> print(shown("    n. Random features are fitted, |u| and all."))
        n\. Random features are fitted, \|u\| and all.
    >>> shown(">>> x * y")
    '>>> x * y'
    >>> print(shown("The mean of |y| in `a * b`, and **bold**."))
    The mean of \|y\| in `a * b`, and \*\*bold\*\*.
    """
    if line.lstrip().startswith((">>>", "...")):
        return line
    line = re.sub(r"^(\s*)([A-Za-z])\. ", r"\1\2\\. ", line)
    prose, *rest = re.split(r"(`+[^`]*`+)", line)  # code is left alone; what stands between pieces of it is prose
    if any("`" in part for part in rest[1::2]):
        return line  # a piece of code begins here and ends on another line
    parts = [prose, *rest]
    parts[::2] = [part.replace("|", r"\|").replace("*", r"\*") for part in parts[::2]]
    return "".join(parts)


def linked(line: str) -> str:
    """Return a line of prose in which a page of docs/ is a link.

    >>> linked("derived in docs/errata.md; `docs/forecast.md` measures it")
    'derived in :doc:`/errata`; :doc:`/forecast` measures it'
    """
    return re.sub(r"(`?)docs/([a-z-]+)\.md\1", r":doc:`/\2`", line)


def before_napoleon(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what is no markup."""
    lines[:] = [linked(shown(line)) for line in lines]
    _PROPERTIES[name] = list(lines)


def after_napoleon(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Undo napoleon's reading of "formula: meaning" as a type, in properties."""
    if what == "property":
        lines[:] = _PROPERTIES[name]

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
    """
    if line.lstrip().startswith((">>>", "...")):
        return line
    line = re.sub(r"^(\s*)([A-Za-z])\. ", r"\1\2\\. ", line)
    return line if "`" in line else line.replace("|", r"\|").replace("*", r"\*")


def before_napoleon(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what is no markup."""
    lines[:] = [shown(line) for line in lines]
    _PROPERTIES[name] = list(lines)


def after_napoleon(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Undo napoleon's reading of "formula: meaning" as a type, in properties."""
    if what == "property":
        lines[:] = _PROPERTIES[name]

"""Where the rows of `lens` and `forecast` come from: a file of the user, or data that ship with scikit-learn."""

from __future__ import annotations

from pathlib import Path

from lazyscope.cli.asking import unused
from lazyscope.errors import InvalidParameter

EXAMPLES = ("diabetes", "digits", "breast_cancer")


def check(owner: str, data: Path | None, example: str | None) -> None:
    """Refuse two sources or none, and options that describe a file beside an example, which has its own target."""
    if (data is None) == (example is None):
        got = "both" if data else "neither"
        raise InvalidParameter.of(owner, "DATA", "be a file, or --example its replacement", got)
    if data is None:
        unused.refuse(owner, (), ("target", "task", "drop"), "--example", lambda _: ", or name a file")

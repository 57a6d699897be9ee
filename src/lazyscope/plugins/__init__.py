"""What other installed packages bring: claims, activations and experiments, named by entry points.

A package declares them in its `pyproject.toml`, and nothing changes here (docs/extending.md has a skeleton of each):

    [project.entry-points."lazyscope.claims"]
    mine = "my_package.theorems"

A package that breaks costs one line on the terminal and its own contribution, never a traceback and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

CLAIMS = "lazyscope.claims"
ACTIVATIONS = "lazyscope.activations"
EXPERIMENTS = "lazyscope.experiments"


def collect(group: str, take: Callable[[str, Any], object]) -> None:
    """Hand every entry point of a group to `take(name, thing)`, by package and name; say in a line which ones break.

    >>> collect("lazyscope.nothing", print)
    """
    from importlib.metadata import entry_points  # ten milliseconds that most commands need not spend

    points = ((point.dist.name if point.dist else point.value, point) for point in entry_points(group=group))
    for package, point in sorted(points, key=lambda pair: (pair[0], pair[1].name)):
        try:
            take(point.name, point.load())
        except Exception as error:  # whatever a stranger's module may raise
            said = " ".join(f"{type(error).__name__}: {error}".split())
            where = f"The package {package} could not be used ({point.name!r} of {group})"
            logging.getLogger("lazyscope").warning("%s. %s. Mend it or uninstall it.", where, said.rstrip("."))

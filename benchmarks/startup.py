"""What it costs to begin: fresh interpreters, bytecode already compiled."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from benchmarks.harness import Bound, Figure, interleaved, seconds_inside

IMPORT, HELP = Bound(2.0), Bound(3.0)
PLAIN = "import lazyscope"
EVERYTHING = "import lazyscope\nfor name in lazyscope.__all__: getattr(lazyscope, name)"
ESTIMATORS = f"""{EVERYTHING}
from lazyscope import estimators
for name in estimators.__all__: getattr(estimators, name)"""
PEER = "import numpy, xarray"
SCIKIT_LEARN = "import numpy, xarray, sklearn.base, sklearn.model_selection"


def import_time(repeats: int = 7) -> Iterable[Figure]:
    """Seconds of the import statements alone, the interpreter's start left out.

    An estimator inherits from scikit-learn's, which takes longer to load than all the rest: they have a place of their
    own, `lazyscope.estimators`, and a peer of their own.
    """
    codes = {"plain": PLAIN, "everything": EVERYTHING, "estimators": ESTIMATORS, "peer": PEER, "sklearn": SCIKIT_LEARN}
    rounds = [{name: seconds_inside(code) for name, code in codes.items()} for _ in range(repeats + 1)][1:]
    seconds = {name: median(each[name] for each in rounds) for name in codes}
    for name, what in (("plain", "import lazyscope"), ("everything", "import lazyscope, every public name")):
        yield Figure(what, seconds[name], seconds["peer"], "import numpy, xarray", IMPORT)
    what = "import lazyscope, every public name, every estimator"
    yield Figure(what, seconds["estimators"], seconds["sklearn"], SCIKIT_LEARN, IMPORT)


def command_line(repeats: int = 7) -> Iterable[Figure]:
    """The whole process, from the shell's point of view."""
    command = Path(sys.executable).with_name("lazyscope")
    seconds = interleaved(
        {
            "help": lambda: _run(str(command), "--help"),
            "click": lambda: _run(sys.executable, "-c", "import click"),
            "bare": lambda: _run(sys.executable, "-c", "pass"),
        },
        repeats,
    )
    against = 'python -c "import click"'
    yield Figure(
        "lazyscope --help", seconds["help"], seconds["click"], against, HELP, extra={"python": seconds["bare"]}
    )


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

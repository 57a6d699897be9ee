"""What each constant of the flow solver does: its curves with half and with twice of it.

`python -m benchmarks.limits.flow_constants` prints the table of docs/flow-algorithm.md, in some minutes. A cell has the
largest error of the normalised risk, in units of the tolerance 10⁻⁴, and the number of matrices K, over two curves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import lazyscope as ls
from lazyscope.errors import NotConverged
from lazyscope.limits.flow import constants, panels
from lazyscope.limits.flow.curve import beginning
from lazyscope.limits.flow.matrix import solve
from lazyscope.limits.flow.moments import Start

TOLERANCE, FINE = 1e-4, 1e-8
TIMES = np.geomspace(0.01, 1000.0, 200)
TRIED: dict[str, tuple[Any, Any]] = {  # where half and twice mean nothing: of lengths, half and twice the logarithm
    "POINTS": (8, 16),
    "SHORTEST": (1.00025, 1.001),
    "TRUSTED": (1.22, 2.25),
    "GIVE_UP": (1.05, 1.21),
    "AFTER_SUCCESS": ((0.84, 1.26), (0.5, 2.5)),
    "AFTER_FAILURE": ((0.77, 0.92), (0.36, 0.72)),
    "STRIDE": (2, 6),
    "WORST_CONDITION": (1e4, 1e12),
    "LEARNED": (1e-17, 1e-13),
}


def settings() -> dict[str, list[Start]]:
    """Return pairs of starts: few dimensions, many, and two that are hard: atypical weights, one large eigenvalue."""
    few, many = (ls.QuadraticTarget.exponential(d, seed=100) for d in (60, 150))
    spike = ls.QuadraticTarget(np.append(np.full(119, 0.1), 20.0))
    rng, d, N = np.random.default_rng(0), 120, 60
    b = np.sort(rng.exponential(1.0, d)) / np.sqrt(d)
    W = rng.standard_normal((d, N)) * rng.choice([0.02, 3.0], (1, N)) / np.sqrt(d * N)
    return {
        "d = 60": [
            beginning(few, 30, None, "drawn", "trained", 0, 0),
            beginning(few, 120, None, "drawn", "fixed", 0, 0),
        ],
        "d = 150": [
            beginning(many, 75, None, "drawn", "trained", 0, 0),
            beginning(many, 150, None, "drawn", "fixed", 0, 0),
        ],
        "hard": [
            Start(b, W, 0.0, 0.0, -float(b.sum()), True),
            beginning(spike, 40, None, "drawn", "trained", 0, 0, 0.3),
        ],
    }


def cell(starts: list[Start], truth: list[np.ndarray]) -> str:
    """Solve two curves; return their largest error over the tolerance, and the number of matrices."""
    error, matrices = 0.0, 0  # (a copy of a start has nothing cached that depends on a constant)
    for start, line in zip(starts, truth, strict=True):
        try:
            curve = solve(replace(start), TIMES[-1], TOLERANCE)
        except NotConverged:
            return "refused"
        error = max(error, float(np.max(np.abs(curve.at("risk", TIMES) / start.energy - line))))
        matrices += curve.evaluations
    return f"{error / TOLERANCE:.2f} / {matrices}"


def rows() -> Iterator[str]:
    """Yield lines of the table: name, value, what was tried, and a cell for each setting, "=" where nothing changed."""
    pairs = settings()
    truth = {
        name: [solve(s, TIMES[-1], FINE).at("risk", TIMES) / s.energy for s in both] for name, both in pairs.items()
    }
    usual = {name: cell(both, truth[name]) for name, both in pairs.items()}
    yield f"| as they are | | {' | '.join(usual.values())} |"
    for name, value in vars(constants).items():
        if not name.isupper():
            continue
        for tried in TRIED.get(name, _half_and_twice(value)):
            setattr(constants, name, tried)
            panels.rule.cache_clear()
            cells = [cell(both, truth[setting]) for setting, both in pairs.items()]
            setattr(constants, name, value)
            panels.rule.cache_clear()
            shown = ["=" if new == old else new for new, old in zip(cells, usual.values(), strict=True)]
            yield f"| `{name}` = {value} | {tried} | {' | '.join(shown)} |"


def _half_and_twice(value: Any) -> tuple[Any, Any]:
    if isinstance(value, tuple):
        return tuple(0.5 * part for part in value), tuple(2.0 * part for part in value)
    return (value // 2, 2 * value) if isinstance(value, int) else (0.5 * value, 2.0 * value)


if __name__ == "__main__":
    from lazyscope.numerics.blas import threads_for

    with threads_for(0):
        for row in rows():
            print(row, flush=True)

"""The loop of one-pass SGD: packs of models that are trained on the same fresh batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.progress import report
from lazyscope.protocols import SGD
from lazyscope.training.sgd.pack import Int, Pack
from lazyscope.training.sgd.stream import Law, batches


def walk(law: Law, packs: Sequence[Pack], protocol: SGD, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Train; after each step yield how many were made, and t = Σε of the first step size."""
    time = 0.0
    for step, (X, y) in enumerate(batches(law, protocol.batch, protocol.steps, rng)):
        rate = protocol.rate(1.0, step)
        time += rate * protocol.step_sizes[0]
        for pack in packs:
            pack.step(X, y, 1.0 / rate)
        yield step + 1, time


def measured(
    law: Law,
    packs: Sequence[Pack],
    protocol: SGD,
    rng: np.random.Generator,
    points: Int,
    measure: Callable[[], Sequence[float]],
    where: str = "",
) -> FloatArray:
    """Train; return a row (t, *measure()) for each of `points`, the last of which is the number of steps.

    `where` is what a message says of the setting, such as "α = 3".
    """
    rows: list[list[float]] = []
    with np.errstate(over="ignore", invalid="ignore"):  # a model may overflow between two looks at it
        for done, time in walk(law, packs, protocol, rng):
            if done == points[len(rows)]:
                words = f"{where + ', ' if where else ''}step {done:,} of {protocol.steps:,}"
                report(done, 0, words, done / protocol.steps)
                if not all(pack.healthy().all() for pack in packs):
                    at = f" at {where}" if where else ""
                    raise NotConverged(f"SGD diverged{at}. Pass a smaller step size than {protocol.step_sizes[0]:.3g}.")
                rows.append([time, *measure()])
    return np.array(rows)

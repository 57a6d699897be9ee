"""How much of a sweep's work is done. Tasks differ in length by factors of thousands, so counting them misleads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from math import log, sqrt

from lazyscope.evidence.work import Work

Place = tuple[str, str, int]
"""Fidelity, the words of a label without its numbers, size: equal for tasks that take equally long."""

_NUMBERS = re.compile(r"[\d.,]+")
_AGAIN = 1.02  # all tasks are judged anew when so many times as many are finished: large sweeps pay nothing


def _place(work: Work) -> Place:
    return work.fidelity, _NUMBERS.sub("", work.label), max(work.size, 1)


class Share:
    """Learns from finished tasks how long those that are left will take.

    A task takes as long as those of its own words that are nearest in size, times the root of the ratio of the sizes:
    what it costs to begin does not grow with the size, the rest may grow in proportion, and the root lies half-way.
    Where none of its words is finished, it takes as long as the mean of its fidelity, or else of all.

    >>> from types import SimpleNamespace as Task
    >>> long, short = (Task(fidelity="exact", label=f"NT, N = {N}", size=N) for N in (100, 25))
    >>> share = Share([long, long, short, short])
    >>> share.after(long, 6.0)  # 6 of 6 + 6 + 3 + 3 seconds
    0.3333333333333333
    """

    def __init__(self, left: Iterable[Work]) -> None:
        self._left = Counter(map(_place, left))
        self._finished: dict[Place, list[float]] = {}
        self._expected: dict[Place, float] = {}
        self._seconds, self._missing, self._count, self._next = 0.0, 0.0, 0, 1.0

    def after(self, work: Work, seconds: float) -> float:
        """Note that a task is finished, and return the share of the work that is done, from 0 to 1."""
        place = _place(work)
        self._left[place] -= 1
        self._finished.setdefault(place, []).append(seconds)
        self._seconds += seconds
        self._count += 1
        if self._count >= self._next:
            self._next = self._count * _AGAIN
            self._expected = self._judged()
            self._missing = sum(self._left[place] * each for place, each in self._expected.items())
        else:
            self._missing -= self._expected[place]
        return self._seconds / (self._seconds + self._missing) if self._missing > 0.0 else 1.0

    def _judged(self) -> dict[Place, float]:
        """Return the seconds that each task will take."""
        means = {place: sum(some) / len(some) for place, some in self._finished.items()}
        by_words: dict[tuple[str, str], list[tuple[int, float]]] = {}
        by_fidelity: dict[str, list[float]] = {}
        for (fidelity, words, size), mean in means.items():
            by_words.setdefault((fidelity, words), []).append((size, mean))
            by_fidelity.setdefault(fidelity, []).extend(self._finished[fidelity, words, size])
        fallback = {fidelity: sum(some) / len(some) for fidelity, some in by_fidelity.items()}
        expected = {}
        for fidelity, words, size in self._left:
            alike = by_words.get((fidelity, words))
            if alike is None:
                seconds = fallback.get(fidelity, self._seconds / self._count)
            else:
                nearest, mean = min(alike, key=lambda pair: abs(log(size / pair[0])))
                seconds = mean * sqrt(size / nearest)
            expected[fidelity, words, size] = seconds
        return expected

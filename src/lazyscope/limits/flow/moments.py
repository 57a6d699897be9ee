"""What is known of a matrix flow at a moment and on a panel of time, and its spectrum in groups."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.flow.panels import Clock, rule

_MOST = 128  # groups; fewer eigenvalues are not grouped
_SMALLEST = 0.02  # eigenvalues below this share of the largest are not told apart by their logarithm


@dataclass(frozen=True, eq=False)
class Bins:
    """Eigenvalues in groups of neighbours, which stand for their members where a percent is enough."""

    edges: np.ndarray[tuple[int], np.dtype[np.int64]]
    count: FloatArray
    b: FloatArray

    @classmethod
    def each(cls, b: FloatArray) -> Bins:
        """Every eigenvalue for itself."""
        return cls(np.arange(b.size), np.ones_like(b), b)

    @classmethod
    def of(cls, b: FloatArray) -> Bins:
        """Group an ascending spectrum.

        >>> groups = Bins.of(np.sort(np.random.default_rng(0).exponential(1.0, 450)))
        >>> groups.b.size <= 128, float(groups.count.sum())
        (True, 450.0)
        """
        if b.size <= _MOST:
            return cls.each(b)
        place = np.log(b + _SMALLEST * b[-1])
        bin_of = np.minimum((place - place[0]) * (_MOST / max(place[-1] - place[0], 1e-12)), _MOST - 1.0).astype(int)
        edges = np.unique(bin_of, return_index=True)[1]
        count = np.diff(np.append(edges, b.size)).astype(float)
        return cls(edges, count, np.add.reduceat(b, edges) / count)

    def sum(self, values: FloatArray) -> FloatArray:
        """Sum over the groups, along the last axis."""
        return np.asarray(np.add.reduceat(values, self.edges, axis=-1))

    def slices(self) -> list[slice]:
        """Return the groups."""
        ends = [*self.edges.tolist(), None]
        return [slice(i, j) for i, j in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class Moment:
    """The flow at one time. `sums` are Tr K, ⟨B, K⟩ and ‖K‖²; `group_u` is u for groups of eigenvalues."""

    t: float
    s: float
    a: float
    c: float
    tau: float
    theta: float
    u: FloatArray
    group_u: FloatArray
    diagonal: FloatArray
    sums: FloatArray
    slopes: tuple[float, float] = (0.0, 0.0)  # d/d log t of s and a, from before


class Setting(Protocol):
    """What a panel must know of the start."""

    @property
    def b(self) -> FloatArray:
        """Spectrum of B, ascending."""

    @property
    def b0(self) -> float:
        """Constant of the target."""

    @property
    def trained_layer(self) -> bool:
        """Whether a is trained."""

    @property
    def offset_rate(self) -> float:
        """μ of ċ = −2μs."""

    @property
    def energy(self) -> float:
        """2‖B‖²."""

    @property
    def gamma(self) -> float:
        """Mean entry of diag K at the start."""

    @property
    def width(self) -> float:
        """N."""

    @property
    def groups(self) -> Bins:
        """The spectrum in groups."""


@dataclass(frozen=True, eq=False)
class Panel:
    """The flow on one panel of time, at its Chebyshev points: the first axis of every array."""

    clock: Clock
    s: FloatArray
    a: FloatArray
    c: FloatArray
    tau: FloatArray
    theta: FloatArray
    u: FloatArray  # points × d
    group_u: FloatArray
    diagonal: FloatArray  # of K, points × d
    sums: FloatArray  # points × 3: Tr K, ⟨B, K⟩, ‖K‖²
    risk: FloatArray  # 2‖aK − B‖² + s²
    error: float  # of the normalised risk, estimated

    def at(self, name: str, times: FloatArray) -> FloatArray:
        """Interpolate."""
        return np.asarray(rule().at(self.clock.place(times)) @ getattr(self, name))

    @property
    def last(self) -> Moment:
        """The end of the panel."""
        last = rule().derivative[-1] * (self.clock.end / float(self.clock.speed(np.ones(1))[0]))
        return Moment(
            self.clock.end,
            float(self.s[-1]),
            float(self.a[-1]),
            float(self.c[-1]),
            float(self.tau[-1]),
            float(self.theta[-1]),
            self.u[-1],
            self.group_u[-1],
            self.diagonal[-1],
            self.sums[-1],
            (float(last @ self.s), float(last @ self.a)),
        )

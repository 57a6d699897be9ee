"""The nouns of a matrix flow: its start, its state at one moment, a solved panel of time, its spectrum in groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.flow import constants
from lazyscope.limits.flow.panels import Clock, rule
from lazyscope.limits.flow.typical import typical


@dataclass(frozen=True, eq=False)
class Bins:
    """Eigenvalues in groups of neighbours, which stand for their members where a percent is enough."""

    edges: np.ndarray[tuple[int], np.dtype[np.int64]]
    count: FloatArray
    b: FloatArray

    @classmethod
    def each(cls, b: FloatArray) -> Bins:
        """Return one group for each eigenvalue."""
        return cls(np.arange(b.size), np.ones_like(b), b)

    @classmethod
    def of(cls, b: FloatArray) -> Bins:
        """Group an ascending spectrum.

        >>> groups = Bins.of(np.sort(np.random.default_rng(0).exponential(1.0, 450)))
        >>> groups.b.size <= 128, float(groups.count.sum())
        (True, 450.0)
        """
        if b.size <= constants.GROUPS:
            return cls.each(b)
        most, place = constants.GROUPS, np.log(b + constants.GROUP_FLOOR * b[-1])
        bin_of = np.minimum((place - place[0]) * (most / max(place[-1] - place[0], 1e-12)), most - 1.0).astype(int)
        edges = np.unique(bin_of, return_index=True)[1]
        count = np.diff(np.append(edges, b.size)).astype(float)
        return cls(edges, count, np.add.reduceat(b, edges) / count)

    def sum(self, values: FloatArray) -> FloatArray:
        """Return the sum over each group, along the last axis."""
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


@dataclass(frozen=True, eq=False)
class Start:
    """Where the flow starts, in the eigenbasis of B.

    b is the spectrum, ascending; W, (d, N), gives K = WWᵀ, or None stands for typical weights, Gaussian with E K = γI,
    at N = width. μ = offset_rate.
    """

    b: FloatArray
    W: FloatArray | None
    a: float = 1.0
    c: float = 0.0
    b0: float = 0.0
    trained_layer: bool = False
    offset_rate: float = 1.0
    typical_gamma: float = 1.0
    typical_width: float = np.inf

    @property
    def energy(self) -> float:
        """2‖B‖², the risk of the best constant."""
        return 2.0 * float(self.b @ self.b)

    @cached_property
    def gamma(self) -> float:
        """Mean entry of diag K."""
        return self.typical_gamma if self.W is None else float(np.sum(self.W**2)) / self.b.size

    @cached_property
    def width(self) -> float:
        """N, of Gaussian weights: the one with the same ‖K‖² = dγ²(1 + d/N), where the weights are given."""
        if self.W is None:
            return self.typical_width
        d, spread = self.b.size, float(self.moment.sums[2]) / (self.b.size * self.gamma**2) - 1.0
        return min(d / max(spread, 1e-12), float(self.W.shape[1])) if self.W.shape[1] < d else d / max(spread, 1e-12)

    @cached_property
    def groups(self) -> Bins:
        """The spectrum in groups for the guess; one by one, where there are no weights and the guess is the answer."""
        return Bins.of(self.b) if self.W is not None else Bins.each(self.b)

    @cached_property
    def gram(self) -> FloatArray:
        """WᵀW or WWᵀ, the smaller of the two."""
        assert self.W is not None
        return np.asarray(self.W.T @ self.W if self.W.shape[1] < self.b.size else self.W @ self.W.T)

    @cached_property
    def moment(self) -> Moment:
        """The start as a moment of the flow."""
        if self.W is None:
            zero = np.zeros((1, self.b.size))
            usual = typical(zero, zero, self.typical_gamma, self.typical_width)
            k, norm = usual.diagonal[0], float(usual.norm[0])
        else:
            k = np.einsum("ij,ij->i", self.W, self.W)
            norm = float(np.vdot(self.gram, self.gram))
        s = self.a * float(k.sum()) - float(self.b.sum()) - self.b0 + self.c
        still, sums = np.zeros_like(k), np.array([k.sum(), k @ self.b, norm])
        return Moment(0.0, s, self.a, self.c, 0.0, 0.0, still, np.zeros_like(self.groups.b), k, sums)


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

    def weights(self, times: FloatArray) -> FloatArray:
        """Return the matrix that takes values at the points to values at some times within the panel."""
        return rule().at(self.clock.place(times))

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

"""Networks that are trained side by side on one stream of samples.

Model m has width N[m], step size step_size[m] and an offset c[m]. First-layer weights of all models are the columns of
`state`, (d, columns) in Fortran order, so that one product serves them all; those of model m are the columns
first[m] … first[m+1] − 1. Outputs, residuals and the like are (batch, models), in Fortran order too. Float32: what is
measured is good to three digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.numerics.blas import gemm
from lazyscope.numerics.compiled import compiled
from lazyscope.numerics.normals import Float32

Int = NDArray[np.int64]


class Pack(ABC):
    """Models of one kind that see the same stream."""

    def __init__(self, starts: Sequence[Float32], widths: Sequence[int], step_sizes: Sequence[float]) -> None:
        """Take the initial weights of each model as rows, its width N, and its step size."""
        self.N = np.array(widths, dtype=np.float32)
        self.step_size = np.array(step_sizes, dtype=np.float32)
        self.c = np.zeros(len(starts), dtype=np.float32)
        self.alive = np.ones(len(starts), dtype=bool)
        self.first: Int = np.cumsum([0, *map(len, starts)])
        self.state = np.asfortranarray(np.concatenate(starts).T, dtype=np.float32)
        self._kept: dict[str, Float32] = {}

    def __len__(self) -> int:
        return len(self.N)

    @abstractmethod
    def outputs(self, X: Float32) -> Float32:
        """Return f − c of each model on the rows of X, and keep what the step needs of it."""

    @abstractmethod
    def move(self, X: Float32, r: Float32, rate: Float32) -> None:
        """Move all weights, given the outputs just computed on X, the residuals r and the step sizes in force."""

    def step(self, X: Float32, y: Float32, divisor: float) -> None:
        """Make one step on the squared error of the batch (X, y), with step sizes over `divisor`."""
        r = self.outputs(X) + self.c - y[:, None]
        rate = self.step_size / self.step_size.dtype.type(divisor)
        self.move(X, r, rate)
        self.c -= rate * self.c.dtype.type(2.0) * (r.sum(axis=0) / len(r))

    def losses(self, X: Float32, y: Float32) -> FloatArray:
        """Return the squared errors on the rows of X, (n, models)."""
        return np.asarray(self.outputs(X) + self.c - y[:, None], dtype=np.float64) ** 2

    def form(self, m: int) -> FloatArray | None:
        """Return the d×d matrix G of model m where f = ⟨x, Gx⟩ + c, else None."""
        return None

    def columns(self, m: int) -> slice:
        """Return the columns of model m."""
        return slice(int(self.first[m]), int(self.first[m + 1]))

    def healthy(self) -> NDArray[np.bool_]:
        """Say of each model whether all its numbers are finite."""
        finite = np.concatenate([[0], np.cumsum(~np.isfinite(self.state.sum(axis=0)))])
        return np.asarray(np.isfinite(self.c) & (finite[self.first[1:]] == finite[self.first[:-1]]))

    def bury(self, m: int) -> None:
        """Remove a model that has diverged: its infinities reach no other model, and no time is spent on it."""
        self.alive[m] = False
        self.c[m] = self.step_size[m] = 0.0
        self.drop(self.columns(m))
        self.first[m + 1 :] -= self.first[m + 1] - self.first[m]

    def drop(self, columns: slice) -> None:
        """Remove columns of a model that has diverged."""
        self.state = np.asfortranarray(np.delete(self.state, columns, axis=1))

    def buffer(self, name: str, rows: int, columns: int) -> Float32:
        """Return an array that is kept from step to step: fresh memory costs as much as the arithmetic on it."""
        kept = self._kept.get(name)
        if kept is None or kept.shape != (rows, columns) or kept.dtype != self.state.dtype:
            kept = self._kept[name] = np.zeros((rows, columns), dtype=self.state.dtype, order="F")
        return kept

    def times(self, X: Float32, state: Float32, name: str) -> Float32:
        """Return the product of X and `state`, in Fortran order: 2·batch·d·columns flops."""
        out = self.buffer(name, len(X), state.shape[1])
        gemm(1.0, X.T, state, 0.0, out, trans_a=True)
        return out

    def subtract(self, X: Float32, Z: Float32) -> None:
        """Subtract XᵀZ from the state, in place: 2·batch·d·columns flops."""
        gemm(-1.0, X.T, Z, 1.0, self.state)

    def empty(self, X: Float32) -> Float32:
        """Return zeros for sums over the columns of each model, (batch, models)."""
        return np.zeros((len(X), len(self)), dtype=self.state.dtype, order="F")


class SecondLayer(Pack):
    """A pack whose columns have a second-layer weight each, a."""

    a: Float32

    def drop(self, columns: slice) -> None:
        """Remove second-layer weights, too."""
        super().drop(columns)
        self.a = np.delete(self.a, columns)

    def healthy(self) -> NDArray[np.bool_]:
        """Say of each model whether all its numbers are finite, a among them."""
        lost = np.concatenate([[0], np.cumsum(~np.isfinite(self.a))])
        return np.asarray(super().healthy() & (lost[self.first[1:]] == lost[self.first[:-1]]))


@compiled
def add_squares(H: Float32, first: Int, q: Float32) -> None:
    """Add Σ_j H_j² over the columns j of model m to q_m."""
    for m in range(len(first) - 1):
        for j in range(first[m], first[m + 1]):
            for i in range(H.shape[0]):
                q[i, m] += H[i, j] * H[i, j]


@compiled
def add_products(H: Float32, shared: Int, K: Float32, first: Int, q: Float32) -> None:
    """Add Σ_j H_s(j) K_j over the columns j of model m to q_m; s(j) is the column of H that j shares with others."""
    for m in range(len(first) - 1):
        for j in range(first[m], first[m + 1]):
            for i in range(K.shape[0]):
                q[i, m] += H[i, shared[j]] * K[i, j]


@compiled
def add_weighted(H: Float32, a: Float32, first: Int, q: Float32) -> None:
    """Add Σ_j a_j H_j over the columns j of model m to q_m."""
    for m in range(len(first) - 1):
        for j in range(first[m], first[m + 1]):
            for i in range(H.shape[0]):
                q[i, m] += a[j] * H[i, j]


@compiled
def scale(H: Float32, D: Float32, first: Int) -> None:
    """Multiply H_j by D_m for the columns j of model m."""
    for m in range(len(first) - 1):
        for j in range(first[m], first[m + 1]):
            for i in range(H.shape[0]):
                H[i, j] *= D[i, m]


@compiled
def scaled(H: Float32, shared: Int, D: Float32, first: Int, Z: Float32) -> None:
    """Write D_m H_s(j) into Z_j for the columns j of model m."""
    for m in range(len(first) - 1):
        for j in range(first[m], first[m + 1]):
            for i in range(H.shape[0]):
                Z[i, j] = D[i, m] * H[i, shared[j]]

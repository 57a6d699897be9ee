"""Networks with σ = u² trained by SGD on the squared error, many of them side by side on one stream of samples.

    NN:  f = (a/N) Σ⟨w_i,x⟩² + c,          w_i ~ N(0, I/d), a and c start at 0; the gradient of W is multiplied by N
    NT:  f = (2/N) Σ⟨w_i,x⟩⟨v_i,x⟩ + c,    the displacement v and c start at 0; the gradient of v is multiplied by N

(the parametrisation of the paper's scripts). With residuals r on a batch X, rows x, and D = (4ε/batch)·diag(r),

    NN:  W ← (I − aXᵀDX)W                  NT:  V ← V − XᵀDXW.

A step multiplies from the left, and f depends on WWᵀ or WVᵀ alone. So N > d weights may be replaced by the d columns
of R in the factorisation W = RQ, QQᵀ = I: R follows the same steps, V = UQ as well, and f is the same function at
every step, exactly. The cost of a step does not depend on N from there on. Float32: what is measured is good to three
digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.simulate.stream import Float32


def compressed(W: Float32) -> Float32:
    """Return at most d rows with the same WᵀW as the rows of W, (N, d): 2Nd² flops, once.

    >>> W = np.random.default_rng(0).standard_normal((50, 3), dtype=np.float32)
    >>> R = compressed(W)
    >>> R.shape, bool(np.allclose(R.T @ R, W.T @ W, rtol=1e-5))
    ((3, 3), True)
    """
    N, d = W.shape
    return W if d >= N else np.asarray(np.linalg.qr(W.astype(np.float64), mode="r"), dtype=np.float32)


class Pack(ABC):
    """Models of one kind that see the same stream; model m has width N[m] and step size step_size[m].

    Their weights lie side by side in `state`, (d, columns) in Fortran order, so that one product serves them all;
    `owner` is the 0/1 matrix, (columns, models), of what belongs to whom.
    """

    def __init__(self, starts: Sequence[Float32], widths: Sequence[int], step_sizes: Sequence[float]) -> None:
        """Take the initial weights of each model as rows, its width N, and its step size."""
        # Every product in a step goes to one BLAS: NumPy and SciPy each bring their own pool of threads, and the pool
        # that waits spins on the cores that the other needs (25 times slower on two cores).
        from scipy.linalg.blas import sgemm

        self.sgemm = sgemm
        self.N = np.array(widths, dtype=np.float32)
        self.step_size = np.array(step_sizes, dtype=np.float32)
        self.a, self.c = np.zeros(len(starts), dtype=np.float32), np.zeros(len(starts), dtype=np.float32)
        self.alive = np.ones(len(starts), dtype=bool)
        self.state = np.asfortranarray(np.concatenate(starts).T, dtype=np.float32)
        self.columns = [slice(left, right) for left, right in pairwise(accumulate(map(len, starts), initial=0))]
        self.owner = np.zeros((self.state.shape[1], len(starts)), dtype=np.float32, order="F")
        for m, columns in enumerate(self.columns):
            self.owner[columns, m] = 1.0

    @abstractmethod
    def step(self, X: Float32, y: Float32, divisor: float) -> None:
        """Move every model by one step on the batch (X, y), with its step size over `divisor`."""

    @abstractmethod
    def form(self, m: int) -> FloatArray:
        """Return the d×d matrix of model m, with f = ⟨x, form x⟩ + c."""

    def times(self, X: Float32, state: Float32) -> Float32:
        """X state, in Fortran order: 2·batch·d·columns flops."""
        return np.asarray(self.sgemm(1.0, X.T, state, trans_a=1))

    def move(self, X: Float32, Z: Float32) -> None:
        """Subtract XᵀZ from the state, in place: 2·batch·d·columns flops."""
        self.sgemm(-1.0, X.T, Z, beta=1.0, c=self.state, overwrite_c=1)

    def sums(self, H: Float32) -> Float32:
        """Sum the columns of each model, (batch, models)."""
        return np.asarray(self.sgemm(1.0, H, self.owner))

    def spread(self, D: Float32) -> Float32:
        """Give every column the value of its model, (batch, columns)."""
        return np.asarray(self.sgemm(1.0, D, self.owner, trans_b=1))

    def pull(self, r: Float32, divisor: float) -> Float32:
        """Return the diagonals of D for the residuals r, both (batch, models); move c."""
        rate = self.step_size / np.float32(divisor)
        self.c -= rate * np.float32(2.0) * r.mean(axis=0)
        return np.asarray(r * (rate * np.float32(4.0 / len(r))))

    def bury(self, m: int) -> None:
        """Stop a model that has diverged, so that its infinities reach nobody else."""
        self.alive[m] = False
        self.state[:, self.columns[m]] = 0.0
        self.a[m] = self.c[m] = self.step_size[m] = 0.0


class Networks(Pack):
    """NN: 4·batch·d·min(N, d) flops a step and model."""

    def step(self, X: Float32, y: Float32, divisor: float) -> None:
        """W ← (I − aXᵀDX)W, and the scalars a and c by their gradients."""
        H = self.times(X, self.state)
        q: Float32 = self.sums(H * H) / self.N
        r = self.a * q + self.c - y[:, None]
        D = self.pull(r, divisor)
        H *= self.spread(self.a * D)
        self.a -= self.step_size / np.float32(divisor) * np.float32(2.0) * (r * q).mean(axis=0)
        self.move(X, H)

    def form(self, m: int) -> FloatArray:
        """(a/N) WWᵀ."""
        W = self.state[:, self.columns[m]].astype(np.float64)
        return np.asarray(float(self.a[m] / self.N[m]) * (W @ W.T))


class Tangents(Pack):
    """NT: 6·batch·d·min(N, d) flops a step and model. The state is the displacement; the weights stay in `fixed`."""

    def __init__(self, starts: Sequence[Float32], widths: Sequence[int], step_sizes: Sequence[float]) -> None:
        super().__init__(starts, widths, step_sizes)
        self.fixed = self.state.copy(order="F")
        self.state[:] = 0.0

    def step(self, X: Float32, y: Float32, divisor: float) -> None:
        """V ← V − XᵀDXW."""
        H, K = self.times(X, self.fixed), self.times(X, self.state)
        K *= H
        r = self.sums(K) * (np.float32(2.0) / self.N) + self.c - y[:, None]
        H *= self.spread(self.pull(r, divisor))
        self.move(X, H)

    def form(self, m: int) -> FloatArray:
        """(WVᵀ + VWᵀ)/N."""
        W, V = (part[:, self.columns[m]].astype(np.float64) for part in (self.fixed, self.state))
        return np.asarray((W @ V.T + V @ W.T) / float(self.N[m]))

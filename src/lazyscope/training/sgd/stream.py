"""Fresh samples, drawn beside the arithmetic that uses them.

Every problem is sampled in the basis that makes it simple: an isotropic Gaussian, and isotropic initial weights, have
the same law in every basis. A mixture with another Σ is whitened, x = Σ^{1/2}z: the classes of functions are the same,
and SGD descends in the weights that z sees. The quadratic target is centred and divided by √d, as in the paper's
scripts: with it the step sizes of the paper make sense.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import cycle
from math import sqrt

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NoTheorem
from lazyscope.numerics import matrices
from lazyscope.numerics.blas import cores, threads
from lazyscope.numerics.normals import Float32, fill
from lazyscope.problems import GaussianMixture, GaussianProblem, MultiIndex, QuadraticTarget

_CHUNK = 1 << 19  # numbers drawn ahead, 2 MB: many at once, as every call asks for the interpreter's lock


@dataclass(frozen=True, eq=False)
class Law:
    """x_i ~ N(0, 1 − yδ_i) independent, y = ±1; the label is Σγ_i(x_i² − 1), h(x_1 … x_r) + ε or else y itself.

    `basis` takes weights of the problem's own coordinates to those of x; None where they are the same. `index` has h
    and the size of ε; a `quiet` law has no ε.
    """

    d: int
    gamma: FloatArray | None = None
    delta: FloatArray | None = None
    basis: FloatArray | None = None
    index: MultiIndex | None = None
    quiet: bool = False

    def see(self, W: FloatArray) -> FloatArray:
        """Return weights, rows of W in the problem's coordinates, in those of this law."""
        return W if self.basis is None else np.asarray(W @ self.basis)

    @property
    def energy(self) -> float:
        """The risk of the best constant, which is 0."""
        if self.index is not None:
            return self.index.energy
        return 1.0 if self.gamma is None else 2.0 * float(self.gamma @ self.gamma)


@singledispatch
def law_of(problem: GaussianProblem) -> Law:
    """Return the problem in its own basis."""
    raise NoTheorem(f"No simulation is implemented for {type(problem).__name__}.")


@law_of.register
def _(problem: QuadraticTarget) -> Law:
    values, basis = _diagonalised(problem.B)
    return Law(problem.d, gamma=values / sqrt(problem.d), basis=basis)


@law_of.register
def _(problem: GaussianMixture) -> Law:
    values, basis = _diagonalised(problem.whitened)
    if problem.Sigma is not None:  # ⟨w, x⟩ = ⟨Σ^{1/2}w, z⟩
        root = matrices.power(problem.Sigma, 0.5)
        basis = matrices.rows_times(np.eye(problem.d), root) if basis is None else matrices.rows_times(basis.T, root).T
    return Law(problem.d, delta=values, basis=basis)


@law_of.register
def _(problem: MultiIndex) -> Law:
    basis = None
    if problem.indices > 1 and problem.direction is not None:  # u₁ … u_r, and what completes them
        whole, signs = np.linalg.qr(problem.u.T, mode="complete")
        whole[:, : problem.indices] *= np.sign(np.diagonal(signs))
        basis = whole
    elif problem.direction is not None:  # the reflection that exchanges u and the first axis
        difference = problem.u - np.eye(1, problem.d)[0]
        if (size := float(difference @ difference)) > 0.0:
            basis = np.eye(problem.d) - (2.0 / size) * np.outer(difference, difference)
    return Law(problem.d, basis=basis, index=problem)


def _diagonalised(M: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    return (M, None) if M.ndim == 1 else np.linalg.eigh(M)


def draw(law: Law, n: int, rng: np.random.Generator) -> tuple[Float32, Float32]:
    """Return n inputs, (n, d), and their labels, in float32."""
    return Buffer(law, n).draw(rng)


def draw_test(law: Law, n: int, rng: np.random.Generator) -> tuple[Float32, Float32]:
    """Return n inputs and what a network is to say there: labels without their noise."""
    return draw(replace(law, quiet=True), n, rng)


class Buffer:
    """Memory for n samples of a law, to be drawn again and again."""

    def __init__(self, law: Law, n: int) -> None:
        self.law, pairs = law, -(-n * law.d // 2)
        self.numbers = np.empty(2 * pairs, dtype=np.float32)
        self.spare = np.empty_like(self.numbers)
        self.x, self.scratch = (part[: n * law.d].reshape(n, law.d) for part in (self.numbers, self.spare))

    def draw(self, rng: np.random.Generator) -> tuple[Float32, Float32]:
        """Return inputs and labels; the inputs until the next call."""
        law, x = self.law, self.x
        fill(self.numbers, rng, self.spare)
        if law.gamma is not None:
            # einsum, not @: this runs beside the BLAS of the arithmetic and must not wake another one
            np.multiply(x, law.gamma.astype(np.float32), out=self.scratch)
            y = np.einsum("nd,nd->n", self.scratch, x)
            return x, np.asarray(y - np.float32(law.gamma.sum()), dtype=np.float32)
        if law.index is not None:
            y = law.index.h(x[:, 0] if law.index.indices == 1 else x[:, : law.index.indices])
            if law.index.noise and not law.quiet:
                y += np.float32(law.index.noise) * rng.standard_normal(len(x), dtype=np.float32)
            return x, y
        assert law.delta is not None
        y = np.where(rng.random(len(x)) < 0.5, np.float32(-1.0), np.float32(1.0))
        scale = np.sqrt(np.stack([1.0 + law.delta, 1.0 - law.delta])).astype(np.float32)  # y = −1, y = +1
        x *= np.take(scale, (y > 0).astype(int), axis=0, out=self.scratch)
        return x, y


def batches(law: Law, size: int, count: int, rng: np.random.Generator) -> Iterator[tuple[Float32, Float32]]:
    """Yield `count` fresh batches of `size`, drawn in chunks; on a second thread where products leave a core free.

    What is drawn depends on `rng` and `size` alone: the first batches of a longer stream are those of a shorter one.
    Use each before you ask for the next: its memory is used again.
    """
    ahead = max(1, _CHUNK // (size * law.d))
    chunks = -(-count // ahead)
    for start, (X, y) in zip(range(0, count, ahead), _chunks(law, ahead * size, chunks, rng), strict=True):
        for i in range(min(ahead, count - start)):
            batch = slice(i * size, (i + 1) * size)
            yield X[batch], y[batch]


def _chunks(law: Law, n: int, count: int, rng: np.random.Generator) -> Iterator[tuple[Float32, Float32]]:
    """Yield `count` chunks of n samples; where a core is free, the next is drawn while one is used."""
    if threads() >= cores():  # a second thread would take from the products what it saves, and more
        buffer = Buffer(law, n)
        for _ in range(count):
            yield buffer.draw(rng)
        return
    buffers = cycle((Buffer(law, n), Buffer(law, n)))
    with ThreadPoolExecutor(max_workers=1) as pool:
        pending = pool.submit(next(buffers).draw, rng)
        for done in range(1, count + 1):
            drawn = pending.result()
            if done < count:
                pending = pool.submit(next(buffers).draw, rng)
            yield drawn

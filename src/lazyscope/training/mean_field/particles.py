"""Networks as measures: f(x; ρ) = ∫ aσ(⟨w, x⟩) ρ(da, dw) + c, held by particles of mass 1/N (Montanari 2019).

Measures live on Ω = {|a| ≤ A, ‖w‖ ≤ 1} and the risk is the mean square over n given samples, so that it is a convex
function of ρ with a minimum. Particles descend it, each by its own gradient times N and projected to Ω:

    ∂_a = −(2/n)Σ r σ(⟨w,x⟩),   ∂_w = −(2/n)Σ r aσ′(⟨w,x⟩)x,   r = y − f.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope import weights
from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.numerics.blas import gemm, threads_for
from lazyscope.numerics.compiled import compiled
from lazyscope.numerics.normals import Float32
from lazyscope.problems.base import Problem, dimension_of
from lazyscope.progress import report
from lazyscope.regimes import MeanField
from lazyscope.training.sources import source_of

_BLOCK = 1024  # samples at once: what is computed of them stays in the cache, and threads seldom wait for each other
_WORTH_A_THREAD = 4_000_000  # multiplications of a product: a millisecond, where a thread costs a twentieth
_BOLDER = 1.05


@dataclass(frozen=True, eq=False)
class Sample:
    """n samples, in float32, labels centred and scaled to mean square 1: the trivial risk is 1."""

    X: Float32
    y: Float32

    @classmethod
    def of(cls, problem: Problem, n: int, seed: int, number: int, d: int | None = None) -> Sample:
        """Draw from a problem, in the basis in which it is sampled; d where the problem leaves it open.

        >>> import lazyscope as ls
        >>> Sample.of(ls.QuadraticTarget([2.0, 1.0]), 100, 0, 0).X.shape
        (100, 2)
        """
        rng = weights.generator(seed, number, 0)
        return cls.centred(*source_of(problem, dimension_of(problem, d, "Sample"), rng).labelled(n, rng))[0]

    @classmethod
    def centred(cls, X: NDArray[Any], y: NDArray[Any]) -> tuple[Sample, float, float]:
        """Return the sample of these inputs and labels, and the mean and the scale that its labels lost."""
        mean = y.mean()
        y = y - mean
        scale = float(np.sqrt(np.mean(y**2, dtype=np.float64)))
        if not scale > 1e-12 * max(1.0, abs(float(mean))):
            must = "give labels that are not all the same"
            raise InvalidParameter.of("the mean field", "samples", must, f"{len(y)} equal ones", "Draw more samples.")
        X32, y32 = np.array(X, dtype=np.float32), np.asarray(y / scale, dtype=np.float32)
        return cls(X32, y32), float(mean), scale


@dataclass(eq=False)
class Particles:
    """Particles, N of them: a (N,), W (d, N) in Fortran order, and the offset c."""

    a: Float32
    W: Float32
    c: np.float32

    @classmethod
    def start(cls, d: int, N: int, rng: np.random.Generator) -> Particles:
        """Draw w uniform on the sphere, a = 0: f = 0."""
        W = rng.standard_normal((d, N))
        W /= np.linalg.norm(W, axis=0)
        return cls(np.zeros(N, dtype=np.float32), np.asfortranarray(W, dtype=np.float32), np.float32(0.0))

    def __call__(self, X: Float32, sigma: Activation) -> Float32:
        """Return F on the rows of X."""
        return np.asarray(sigma.at(X @ self.W) @ self.a / np.float32(self.a.size) + self.c, dtype=np.float32)

    def mixed(self, other: Particles, share: float) -> tuple[FloatArray, FloatArray, float]:
        """Return (1 − share)·ρ + share·other as masses a/N, positions and offset."""
        first, second = (1.0 - share) / self.a.size, share / other.a.size
        masses = np.concatenate([first * self.a.astype(np.float64), second * other.a.astype(np.float64)])
        W = np.concatenate([self.W, other.W], axis=1).astype(np.float64)
        return masses, W, (1.0 - share) * float(self.c) + share * float(other.c)


def descend(
    sample: Sample,
    regime: MeanField,
    N: int,
    *,
    bound: float,
    steps: int,
    rng: np.random.Generator,
    rate: float | None = None,
) -> tuple[Particles, FloatArray]:
    """Descend from random positions; return the particles and the risk before each step, and after the last.

    The rate grows by 5% a step, and is halved where the risk rises, the steps that raised it being taken back.
    4ndN flops a step in float32 on two threads, and two passes over what is in the cache; nothing of size nN is held.
    """
    d = sample.X.shape[1]
    rho = Particles.start(d, N, rng)
    size = rate if rate is not None else stable_rate(sample, regime.activation, bound)
    descent = Descent(sample, regime.activation, rho)
    risks: list[float] = []
    with threads_for(0):
        while len(risks) <= steps:
            if len(risks) % 50 == 0:
                report(len(risks), 0, f"{N} particles, step {len(risks):,} of {steps:,}", len(risks) / steps)
            last = len(risks) == steps
            risk = descent.step(0.0 if last else size, bound)
            if rate is None and risks and not risk <= risks[-1] * (1.0 + 1e-6):
                descent.undo()
                size *= 0.5
                if size < 1e-12:
                    break
                risks.pop()
                continue
            risks.append(risk)
            size *= _BOLDER if rate is None else 1.0
    if not np.all(np.isfinite(risks)):
        raise NotConverged(f"Particles diverged at the rate {size:.3g}. Pass a smaller one.")
    return rho, np.array(risks)


def stable_rate(sample: Sample, sigma: Activation, bound: float) -> float:
    """Return 1/(2L); L bounds the risk's curvature in (a, w, c), from σ and σ′ along random directions and E xxᵀ."""
    n, d = sample.X.shape
    X = sample.X[: min(n, 2000)].astype(np.float64)
    w = np.random.default_rng(0).standard_normal((d, 16))
    h = X @ (w / np.linalg.norm(w, axis=0))
    spread = float(np.linalg.eigvalsh(X.T @ X / len(X))[-1])
    values, slopes = float(np.mean(sigma(h) ** 2)), float(np.mean(sigma.derivative(h) ** 2))
    return 0.5 / (2.0 * (1.0 + values + bound**2 * slopes * spread))


class _Part:
    """Half of the sample: its share of the gradients, block by block, so that what is computed stays in the cache."""

    def __init__(self, X: Float32, y: Float32, N: int) -> None:
        self.X, self.y = X, y
        self.H = np.empty((min(_BLOCK, max(1, len(X))), N), dtype=np.float32, order="F")
        self.grad_W = np.zeros((X.shape[1], N), dtype=np.float32, order="F")
        self.grad_a = np.zeros(N, dtype=np.float32)

    def gradients(self, sigma: Activation, rho: Particles) -> tuple[float, float]:
        """Add up Xᵀ(r σ′(XW)), σ(XW)ᵀr where σ is not ReLU, Σr² and Σr, with r = y − f(X)."""
        self.grad_W[:], self.grad_a[:] = 0.0, 0.0
        squares, total = 0.0, 0.0
        scaled, relu = rho.a / np.float32(rho.a.size), sigma.name == "relu"
        for begin in range(0, len(self.X), _BLOCK):
            block = self.X[begin : begin + _BLOCK]
            H = self.H if len(block) == len(self.H) else np.empty((len(block), rho.a.size), np.float32, order="F")
            gemm(1.0, block.T, rho.W, 0.0, H, trans_a=True)
            r = self.y[begin : begin + _BLOCK] - rho.c
            if relu:
                relu_block(H, scaled, r)
            else:
                values, slopes = np.asfortranarray(sigma.at(H)), np.asfortranarray(sigma.slope_at(H))
                r -= values @ scaled
                self.grad_a += r @ values
                np.multiply(slopes, r[:, None], out=H)
            gemm(1.0, block.T, H, 1.0, self.grad_W)
            squares += float(r @ r)
            total += float(r.sum())
        return squares, total


class Descent:
    """Gradient descent on the particles, in place: two threads, each with its half of the sample and one BLAS thread.

    The halves are the same, and so are the sums, whatever the number of cores.
    """

    def __init__(self, sample: Sample, sigma: Activation, rho: Particles) -> None:
        self.sample, self.sigma, self.rho = sample, sigma, rho
        n, d = sample.X.shape
        middle = n // 2
        self.parts = [
            _Part(sample.X[half], sample.y[half], rho.a.size) for half in (slice(0, middle), slice(middle, n))
        ]
        self.kept = [(rho.a.copy(), rho.W.copy(), rho.c)] * 2
        self.threads = ThreadPoolExecutor(1) if n * d * rho.a.size > _WORTH_A_THREAD else None

    def undo(self) -> None:
        """Go back to before the last two steps: the first of them raised the risk, which the second saw."""
        a, W, c = self.kept[0]
        self.rho.a[:], self.rho.W[:], self.rho.c = a, W, c
        self.kept = [self.kept[0]] * 2

    def _gradients(self) -> list[tuple[float, float]]:
        first, second = self.parts
        if self.threads is None:
            return [part.gradients(self.sigma, self.rho) for part in self.parts]
        other = self.threads.submit(first.gradients, self.sigma, self.rho)
        return [second.gradients(self.sigma, self.rho), other.result()]

    def step(self, rate: float, bound: float) -> float:
        """Make one step; return the risk before it."""
        rho, n = self.rho, len(self.sample.X)
        squares, totals = zip(*self._gradients(), strict=True)
        grad_W, grad_a = (getattr(self.parts[0], name) for name in ("grad_W", "grad_a"))
        grad_W += self.parts[1].grad_W
        grad_a += self.parts[1].grad_a
        if self.sigma.name == "relu":  # u₊ = uσ′(u), so that the gradient of a is ⟨w, Xᵀ(rσ′(Xw))⟩
            np.einsum("ij,ij->j", rho.W, grad_W, out=grad_a)
        self.kept = [self.kept[1], (rho.a.copy(), rho.W.copy(), rho.c)]
        if rate > 0.0:
            length = np.float32(2.0 * rate / n)
            grad_W *= length * rho.a
            rho.W += grad_W
            grad_a *= length
            rho.a += grad_a
            rho.c += np.float32(2.0 * rate / n * sum(totals))
            np.clip(rho.a, -bound, bound, out=rho.a)
            rho.W /= np.maximum(np.linalg.norm(rho.W, axis=0), np.float32(1.0))
        return float(sum(squares)) / n


@compiled
def relu_block(H: Float32, scaled: Float32, r: Float32) -> None:
    """Subtract Σ_j scaled_j h_ij₊ from r_i, then write r_i 1{h_ij > 0} into H: two passes of vector instructions."""
    rows, columns = H.shape
    zero = np.float32(0.0)
    for j in range(columns):
        weight = scaled[j]
        for i in range(rows):
            h = H[i, j]
            r[i] -= weight * (h if h > zero else zero)
    for j in range(columns):
        for i in range(rows):
            H[i, j] = r[i] if H[i, j] > zero else zero

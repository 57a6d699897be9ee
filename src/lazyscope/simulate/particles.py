"""Networks as measures: f(x; ρ) = ∫ aσ(⟨w, x⟩) ρ(da, dw) + c, held by particles of mass 1/N (Montanari 2019).

Measures live on Ω = {|a| ≤ A, ‖w‖ ≤ 1} and the risk is the mean square over n given samples, so that it is a convex
function of ρ with a minimum. Particles descend it, each by its own gradient times N and projected to Ω:

    ∂_a = −(2/n)Σ r σ(⟨w,x⟩),   ∂_w = −(2/n)Σ r aσ′(⟨w,x⟩)x,   r = y − f.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope import weights
from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.compiled import compiled
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.problems.base import Problem, dimension_of
from lazyscope.progress import report
from lazyscope.regimes import MeanField
from lazyscope.simulate.blas import gemm, threads_for
from lazyscope.simulate.normals import Float32
from lazyscope.simulate.sources import source_of

_BLOCK = 256  # samples at once: what is computed of them stays in the cache
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
    """N particles: a (N,), W (d, N) in Fortran order, and the offset c."""

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
        """F on the rows of X."""
        return np.asarray(sigma.at(X @ self.W) @ self.a / np.float32(self.a.size) + self.c, dtype=np.float32)

    def mixed(self, other: Particles, share: float) -> tuple[FloatArray, FloatArray, float]:
        """Return (1 − share)·ρ + share·other as masses a/N, positions and offset."""
        first, second = (1.0 - share) / self.a.size, share / other.a.size
        masses = np.concatenate([first * self.a.astype(np.float64), second * other.a.astype(np.float64)])
        W = np.concatenate([self.W, other.W], axis=1).astype(np.float64)
        return masses, W, (1.0 - share) * float(self.c) + share * float(other.c)


def descend(
    sample: Sample, regime: MeanField, *, bound: float, steps: int, rng: np.random.Generator, rate: float | None = None
) -> tuple[Particles, FloatArray]:
    """Descend from random positions; return the particles and the risk before each step, and after the last.

    The rate grows by 5% a step, and is halved where the risk rises, the steps that raised it being taken back.
    4ndN flops a step in float32, and two passes over what is in the cache; nothing of size nN is held.
    """
    d = sample.X.shape[1]
    rho = Particles.start(d, regime.particles, rng)
    size = rate if rate is not None else stable_rate(sample, regime.activation, bound)
    descent = Descent(sample, regime.activation, rho)
    risks: list[float] = []
    with threads_for(_BLOCK * d * regime.particles):
        while len(risks) <= steps:
            if len(risks) % 50 == 0:
                report(len(risks), 0, f"{regime.particles} particles, step {len(risks):,} of {steps:,}")
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
    """1/(2L): L bounds the curvature of the risk in (a, w, c), from σ and σ′ along random directions and E xxᵀ."""
    n, d = sample.X.shape
    X = sample.X[: min(n, 2000)].astype(np.float64)
    w = np.random.default_rng(0).standard_normal((d, 16))
    h = X @ (w / np.linalg.norm(w, axis=0))
    spread = float(np.linalg.eigvalsh(X.T @ X / len(X))[-1])
    values, slopes = float(np.mean(sigma(h) ** 2)), float(np.mean(sigma.derivative(h) ** 2))
    return 0.5 / (2.0 * (1.0 + values + bound**2 * slopes * spread))


class Descent:
    """Gradient descent on the particles, in place."""

    def __init__(self, sample: Sample, sigma: Activation, rho: Particles) -> None:
        self.sample, self.sigma, self.rho = sample, sigma, rho
        N, (_, d) = rho.a.size, sample.X.shape
        self.H = np.empty((_BLOCK, N), dtype=np.float32, order="F")
        self.grad_W = np.zeros((d, N), dtype=np.float32, order="F")
        self.grad_a = np.zeros(N, dtype=np.float32)
        self.kept = [(rho.a.copy(), rho.W.copy(), rho.c)] * 2

    def undo(self) -> None:
        """Go back to before the last two steps: the first of them raised the risk, which the second saw."""
        a, W, c = self.kept[0]
        self.rho.a[:], self.rho.W[:], self.rho.c = a, W, c
        self.kept = [self.kept[0]] * 2

    def step(self, rate: float, bound: float) -> float:
        """Make one step; return the risk before it."""
        X, y, rho = self.sample.X, self.sample.y, self.rho
        n, N = len(X), rho.a.size
        self.grad_W[:], self.grad_a[:] = 0.0, 0.0
        total, grad_c = 0.0, 0.0
        scaled = rho.a / np.float32(N)
        for begin in range(0, n, _BLOCK):
            block = X[begin : begin + _BLOCK]
            H = self.H if len(block) == _BLOCK else np.empty((len(block), N), dtype=np.float32, order="F")
            gemm(1.0, block.T, rho.W, 0.0, H, trans_a=True)
            r = np.empty(len(block), dtype=np.float32)
            if self.sigma.name == "relu":
                relu_block(H, scaled, rho.a, float(rho.c), y[begin : begin + _BLOCK], r, self.grad_a)
            else:
                values, slopes = np.asfortranarray(self.sigma.at(H)), np.asfortranarray(self.sigma.slope_at(H))
                r[:] = y[begin : begin + _BLOCK] - values @ scaled - rho.c
                self.grad_a += r @ values
                np.multiply(slopes, r[:, None], out=H)
                H *= rho.a
            gemm(1.0, block.T, H, 1.0, self.grad_W)
            total += float(r @ r)
            grad_c += float(r.sum())
        self.kept = [self.kept[1], (rho.a.copy(), rho.W.copy(), rho.c)]
        if rate > 0.0:
            one = np.float32(2.0 * rate / n)
            self.grad_W *= one
            rho.W += self.grad_W
            self.grad_a *= one
            rho.a += self.grad_a
            rho.c += np.float32(2.0 * rate / n * grad_c)
            np.clip(rho.a, -bound, bound, out=rho.a)
            rho.W /= np.maximum(np.linalg.norm(rho.W, axis=0), np.float32(1.0))
        return total / n


@compiled
def relu_block(H: Float32, scaled: Float32, a: Float32, c: float, y: Float32, r: Float32, grad_a: Float32) -> None:
    """R = y − Σ_j scaled_j h_ij₊ − c; grad_a_j += Σ_i r_i h_ij₊; H ← r_i a_j 1{h_ij > 0}: two passes."""
    rows, columns = H.shape
    for i in range(rows):
        r[i] = y[i] - c
    for j in range(columns):
        weight = scaled[j]
        for i in range(rows):
            r[i] -= weight * max(H[i, j], np.float32(0.0))
    for j in range(columns):
        gradient = np.float32(0.0)
        for i in range(rows):
            h = H[i, j]
            gradient += r[i] * max(h, np.float32(0.0))
            H[i, j] = r[i] * a[j] if h > 0.0 else np.float32(0.0)
        grad_a[j] += gradient

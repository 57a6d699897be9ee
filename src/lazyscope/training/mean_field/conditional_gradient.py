"""The minimum over all measures, by conditional gradient: one particle a step, and a certificate.

min R(ρ) over measures on Ω = {|a| ≤ A, ‖w‖ ≤ 1} is the minimum of a quadratic function over A·conv{±σ(⟨w,·⟩)} (Bach
2017). A step finds the atom s that the gradient likes best, a = ±A and w = argmax |Σ r σ(⟨w,x⟩)|, and then the best
masses of all atoms so far (the fully corrective variant, which needs few). The duality gap ⟨∇R(f), f − s⟩ is an upper
bound of R(f) − min R, if s is the best atom indeed: so it is for σ = u², where w is an eigenvector; for other σ it is
the best of many ascents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import compiled
from lazyscope.progress import report
from lazyscope.training.mean_field.particles import Sample

_DIRECTIONS, _STARTS, _ASCENTS, _CORRECTIONS = 200, 12, 60, 2000


@dataclass(frozen=True, eq=False)
class Minimum:
    """Atoms W, (d, k), with masses that sum to at most A in absolute value; risk and gap step by step.

    `certified` says that the gap bounds the distance to the minimum: the best atom is exact, not searched for.
    """

    masses: FloatArray
    W: FloatArray
    c: float
    risk: FloatArray
    gap: FloatArray
    certified: bool


def minimise(
    sample: Sample, sigma: Activation, *, bound: float, steps: int, rng: np.random.Generator, tolerance: float = 0.0
) -> Minimum:
    """Return the minimum over measures of every width; ends early where the gap falls below the tolerance.

    >>> import lazyscope as ls
    >>> sample = Sample.of(ls.QuadraticTarget([2.0, 1.0, 0.5]), 400, 0, 0)
    >>> end = minimise(sample, ls.Activation("square"), bound=1.0, steps=50, rng=np.random.default_rng(0))
    >>> bool(end.certified and 0.0 < end.gap[-1] < 0.1 * end.gap[0])
    True
    """
    X, y = sample.X.astype(np.float64), sample.y.astype(np.float64)
    n, d = X.shape
    masses, atoms, values = np.zeros(0), np.zeros((d, 0)), np.zeros((n, 0))
    risks, gaps = [], []
    for step in range(steps):
        if step % 20 == 0:
            report(step, 0, f"conditional gradient, step {step} of {steps}")
        f = values @ masses
        r = _centred(y - f)
        w = best_atom(X, r, sigma, rng, atoms)
        value = _centred(sigma(X @ w))
        best = max(abs(float(r @ value)), float(np.max(np.abs(r @ values), initial=0.0)))
        gap = 2.0 / n * (bound * best - float(r @ f))
        risks.append(float(r @ r) / n)
        gaps.append(gap)
        if gap <= tolerance:
            break
        atoms = np.concatenate([atoms, w[:, None]], axis=1)
        values = np.concatenate([values, value[:, None]], axis=1)
        masses = best_masses(values.T @ values / n, values.T @ _centred(y) / n, bound, np.append(masses, 0.0))
        kept = masses != 0.0
        atoms, values, masses = atoms[:, kept], values[:, kept], masses[kept]
    c = float(np.mean(y - sigma(X @ atoms) @ masses))
    return Minimum(masses, atoms, c, np.array(risks), np.array(gaps), sigma.name == "square")


def best_masses(gram: FloatArray, target: FloatArray, bound: float, start: FloatArray) -> FloatArray:
    """Minimise mᵀGm − 2⟨m, t⟩ over Σ|m_i| ≤ bound, by accelerated projected gradients from `start`.

    >>> best_masses(np.eye(2), np.array([3.0, 1.0]), 2.0, np.zeros(2)).round(6)
    array([2., 0.])
    """
    rate = 1.0 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-300)
    return np.asarray(_accelerated(np.ascontiguousarray(gram), target, bound, start, rate, _CORRECTIONS))


@compiled
def _accelerated(
    gram: FloatArray, target: FloatArray, bound: float, start: FloatArray, rate: float, steps: int
) -> FloatArray:
    m, ahead, momentum = start.copy(), start.copy(), 1.0
    for _ in range(steps):
        raw = ahead - rate * (np.dot(gram, ahead) - target)  # and then on Σ|m_i| ≤ bound, by soft thresholding
        size = np.abs(raw)
        cut = 0.0
        if size.sum() > bound:
            falling = np.sort(size)[::-1]
            total = 0.0
            for k in range(falling.size):
                total += falling[k]
                level = (total - bound) / (k + 1.0)
                if falling[k] > level:
                    cut = level
        step = np.sign(raw) * np.maximum(size - cut, 0.0)
        if np.dot(ahead - step, step - m) > 0.0:  # it overshoots: forget the momentum
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = step + (momentum - 1.0) / following * (step - m)
        moved = np.max(np.abs(step - m))
        m, momentum = step, following
        if moved <= 1e-10 * bound:
            break
    return m


def best_atom(
    X: FloatArray, r: FloatArray, sigma: Activation, rng: np.random.Generator, seen: FloatArray
) -> FloatArray:
    """Return the unit vector w with the largest |Σ r σ(⟨w,x⟩)| that is found.

    σ = u²: the eigenvector of Xᵀdiag(r)X with the largest |eigenvalue|, exactly. Else ascents on the sphere from the
    best of some hundred directions, the atoms found so far among them; each halves its step where it overshoots.
    """
    d = X.shape[1]
    if sigma.name == "square":
        values, vectors = np.linalg.eigh((X.T * r) @ X)
        return np.asarray(vectors[:, 0 if -values[0] > values[-1] else -1])
    W = np.concatenate([rng.standard_normal((d, _DIRECTIONS)), (X.T @ r)[:, None], seen], axis=1)
    W /= np.linalg.norm(W, axis=0)
    height = np.abs(r @ sigma(X @ W))
    first = np.argsort(height)[-_STARTS:]
    W, height, step = W[:, first], height[first], np.full(_STARTS, 0.3)
    for _ in range(_ASCENTS):
        H = X @ W
        slope = X.T @ (r[:, None] * sigma.derivative(H)) * np.sign(r @ sigma(H))
        slope -= W * np.sum(W * slope, axis=0)
        size = np.linalg.norm(slope, axis=0)
        ahead = W + step * slope / np.maximum(size, 1e-300)
        ahead /= np.linalg.norm(ahead, axis=0)
        there = np.abs(r @ sigma(X @ ahead))
        better = there > height
        W, height = np.where(better, ahead, W), np.where(better, there, height)
        step = np.where(better, 1.3 * step, 0.5 * step)
        if np.max(step) < 1e-6:
            break
    return np.asarray(W[:, int(np.argmax(height))])


def _centred(values: FloatArray) -> FloatArray:
    """Subtract the mean: what the best offset does."""
    return np.asarray(values - values.mean())

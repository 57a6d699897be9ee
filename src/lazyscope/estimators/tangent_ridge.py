"""Ridge regression on the tangent model, by whichever of four routes is the cheapest.

| route | when | cost |
|---|---|---|
| `primal` | fewer parameters than samples | the Gram matrix of the Jacobian, blocks of samples at a time |
| `direct` | few samples | K, n × n, one decomposition for all ridges, GCV exact |
| `cholesky` | more samples | K, a Cholesky decomposition for each ridge that is tried, tr H_λ by probes |
| `cg` | many of both | products with K alone, one Krylov space for all ridges, tr H_λ by probes (Hutchinson 1990) |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged
from lazyscope.estimators.base import Array
from lazyscope.estimators.tangent import Tangent
from lazyscope.numerics.krylov import shifted_cg
from lazyscope.numerics.ridge import AUTO, Moments, RidgePath, dual
from lazyscope.progress import report

FEW, MANY = 2000, 12000  # samples up to which K is reduced to tridiagonal form, and up to which it is formed
PILOT = 1000  # samples on which the first ridge to try is chosen
_APART = 10.0  # of ridges that are tried one after the other
_LEAST_RIDGE = 1e-6  # that is tried, in units of the mean of the diagonal of K; float32 is good for it
MOST_TRIED = 6
_PROBES = 8
_CG_RIDGES = AUTO[AUTO > 1e-5]  # smaller ones ask for more steps than they are worth on many samples


@dataclass(frozen=True, eq=False)
class TangentFit:
    """The path, V (k, N, d + 1) and the constants (k,) at the best ridge, and how many steps it took."""

    path: RidgePath
    V: FloatArray
    constants: FloatArray
    steps: int


def primal_fit(parts: Any, ridges: FloatArray | None, constant: bool) -> TangentFit:
    """Fit from blocks (Tangent, Y, v); memory the square of the number of parameters."""
    moments = Moments(constant)
    shape = (0, 0)
    for tangent, Y, v in parts:
        shape = (tangent.S.shape[1], tangent.X.shape[1])
        moments.add(tangent.jacobian(), Y, v)
    solved = moments.solve(ridges)
    best = solved.path.best
    V = solved.coefficients[:, best].T.reshape(-1, *shape)
    return TangentFit(solved.path, V, solved.constants[best], 1)


def direct_fit(
    tangent: Tangent, Y: FloatArray, v: FloatArray | None, ridges: FloatArray | None, constant: bool
) -> TangentFit:
    """Fit by the kernel matrix: n²(N + d) flops to form it and 4n³/3 to decompose it."""
    n = len(Y)
    fits_in_memory(8.0 * 4.0 * n * n, f"The {n} × {n} tangent kernel", 'Pass solver="cg".')
    centre = _Centre.of(Y, v, constant)
    K = centre.both_sides(tangent.kernel())
    path = dual(K, centre.targets(Y), centre.n, ridges, constant)
    return _assembled(tangent, Y, centre, path, path.solutions[:, path.best], 1)


def cholesky_fit(
    tangent: Tangent,
    Y: FloatArray,
    v: FloatArray | None,
    ridges: FloatArray | None,
    constant: bool,
    pilot: Tangent,
    rng: np.random.Generator,
    owner: str,
) -> TangentFit:
    """Fit by K and a decomposition for each ridge that is tried: n³/3 flops each, memory 16n² bytes.

    Without candidates the search begins at the best ridge of the first rows, `pilot` (`direct_fit`), goes on by factors
    of ten in the direction in which GCV falls until it rises, and ends at the lowest point of a parabola. What is tried
    is in float32, what is kept in float64.
    """
    n = len(Y)
    fits_in_memory(8.0 * 3.0 * n * n, f"The {n} × {n} tangent kernel", 'Pass solver="cg".')
    centre = _Centre.of(Y, v, constant)
    K = centre.both_sides(tangent.kernel())
    targets = centre.targets(Y)
    probes = np.stack([centre.out(np.where(rng.integers(0, 2, n) == 1, 1.0, -1.0)) for _ in range(_PROBES)], axis=1)
    tried: dict[float, tuple[float, float, FloatArray]] = {}

    def score(ridge: float) -> float:
        if ridge not in tried:
            report(len(tried), MOST_TRIED, f"{owner}: Cholesky, ridge {ridge:.2g}")
            tried[ridge] = _solved(narrow, targets, probes, centre.n, ridge)
        return tried[ridge][0]

    narrow: Array = K if ridges is not None else K.astype(np.float32, order="F")
    if ridges is None:
        rows = len(pilot.S)
        first = direct_fit(pilot, Y[:rows], None if v is None else v[:rows], None, constant).path
        least = _LEAST_RIDGE * float(np.trace(K)) / centre.n
        best = _climb(score, max(float(first.ridges[first.best]), least), least)
        del narrow
        tried[best] = _solved(K, targets, probes, centre.n, best)
    else:
        for ridge in ridges:
            score(float(ridge))
    order = sorted(tried)
    path = RidgePath(
        np.array(order),
        np.stack([tried[ridge][2] for ridge in order], axis=1),
        np.array([tried[ridge][0] for ridge in order]),
        np.array([tried[ridge][1] for ridge in order]),
    )
    return _assembled(tangent, Y, centre, path, path.solutions[:, path.best], len(tried))


def _climb(score: Callable[[float], float], start: float, least: float) -> float:
    """Try ridges from a start on by equal factors until the score has risen on both sides, and the parabola between.

    Return the one with the lowest score.

    >>> round(float(_climb(lambda ridge: (np.log10(ridge) + 2.3) ** 2, 1.0, 1e-9)), 4)
    0.005
    """
    known = {start: score(start)}
    for factor in (1.0 / _APART, _APART):
        for _ in range(MOST_TRIED):
            edge = (min if factor < 1 else max)(known)
            if min(known, key=lambda ridge: known[ridge]) != edge or edge * factor < least:
                break
            known[edge * factor] = score(edge * factor)
    best = min(known, key=lambda ridge: known[ridge])
    below, above = best / _APART, best * _APART
    near = [next((ridge for ridge in known if abs(ridge / side - 1.0) < 1e-6), None) for side in (below, above)]
    if near[0] is None or near[1] is None:
        return best
    left, middle, right = (known[ridge] for ridge in (near[0], best, near[1]))
    bend = left - 2.0 * middle + right
    if not bend > 0.0:
        return best
    between = best * _APART ** (0.5 * (left - right) / bend)
    return between if score(between) < middle else best


def _solved(K: Array, Y: FloatArray, probes: FloatArray, n: float, ridge: float) -> tuple[float, float, FloatArray]:
    """Return GCV, tr H_λ and α = (K + nλ)⁻¹Y for one ridge."""
    from scipy.linalg import cho_factor, cho_solve

    shift = n * max(ridge, 1e-14)
    A = K.copy(order="F")
    A.flat[:: len(A) + 1] += A.dtype.type(shift)
    factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, np.hstack([Y, probes]).astype(K.dtype), check_finite=False).astype(np.float64)
    alpha, k = solved[:, : Y.shape[1]], Y.shape[1]
    freedom = len(K) - shift * float(np.mean(np.einsum("mp,mp->p", probes, solved[:, k:])))
    lost = shift**2 * float(np.sum(alpha**2)) / n
    return (lost / max(1.0 - freedom / n, 1e-12) ** 2 if n > freedom else np.inf), freedom, alpha


def cg_fit(
    tangent: Tangent,
    Y: FloatArray,
    v: FloatArray | None,
    ridges: FloatArray | None,
    constant: bool,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    owner: str,
) -> TangentFit:
    """Fit without the kernel matrix: 4nN(d + 1) flops a step and target; memory nN and 2nR."""
    centre = _Centre.of(Y, v, constant)
    n, m = centre.n, len(Y)

    def times(u: FloatArray) -> FloatArray:
        return centre.out(centre.root * tangent.times(centre.root * centre.out(u)))

    if ridges is None:
        diagonal = np.einsum("ki,ki->k", tangent.S, tangent.S) * _squared_rows(tangent.X) / tangent.S.shape[1]
        ridges = _CG_RIDGES * float(np.sum(diagonal * centre.root**2)) / n
    shifts = n * np.maximum(ridges, 1e-14)
    solved = []
    for k, y in enumerate(centre.targets(Y).T):
        report(k, Y.shape[1] + _PROBES, f"{owner}: conjugate gradients")
        solved.append(shifted_cg(times, np.ascontiguousarray(y), shifts, tol, max_iter))
    alpha = np.stack([system.x for system in solved if system.x is not None], axis=2).transpose(1, 0, 2)
    worst = np.max([system.residual for system in solved], axis=0)
    steps = max(system.steps for system in solved)
    left, probed = np.zeros(len(shifts)), np.zeros(len(shifts))
    for k in range(_PROBES):
        report(Y.shape[1] + k, Y.shape[1] + _PROBES, f"{owner}: trace")
        probe = centre.out(np.where(rng.integers(0, 2, m) == 1, 1.0, -1.0))
        trace = shifted_cg(times, probe, shifts, max(tol, 1e-3), max_iter, solutions=False)
        left += shifts * trace.inner / _PROBES
        probed = np.maximum(probed, trace.residual)
    freedom = m - left  # tr H_λ: what a probe keeps of itself is left over
    lost = shifts**2 * np.einsum("mrk,mrk->r", alpha, alpha)
    scores = np.where(n > freedom, lost / n / np.maximum(1.0 - freedom / n, 1e-12) ** 2, np.inf)
    usable = np.where((worst <= tol) & (probed <= max(tol, 1e-3)), scores, np.inf)
    scores = usable if np.any(np.isfinite(usable)) else scores
    path = RidgePath(ridges, alpha, scores, freedom)
    if worst[path.best] > tol:
        raise NotConverged(
            f"{owner}: conjugate gradients left a residual of {worst[path.best]:.1e} after max_iter = {max_iter} steps "
            f"(tol = {tol:g}). Increase max_iter, or pass a larger ridge than {ridges[path.best]:.2g}."
        )
    return _assembled(tangent, Y, centre, path, alpha[:, path.best], steps)


@dataclass(frozen=True, eq=False)
class _Centre:
    """Weights √v and the projection off √v, which a constant in the model amounts to."""

    root: FloatArray
    n: float
    mean: FloatArray
    constant: bool

    @classmethod
    def of(cls, Y: FloatArray, v: FloatArray | None, constant: bool) -> _Centre:
        weights = np.ones(len(Y)) if v is None else v
        mean = np.average(Y, axis=0, weights=weights) if constant else np.zeros(Y.shape[1])
        return cls(np.sqrt(weights), float(weights.sum()), mean, constant)

    def targets(self, Y: FloatArray) -> FloatArray:
        return (Y - self.mean) * self.root[:, None]

    def out(self, u: FloatArray) -> FloatArray:
        """Return u without its part along √v."""
        return u - self.root * (self.root @ u) / self.n if self.constant else u

    def both_sides(self, K: FloatArray) -> FloatArray:
        """Return C·diag(√v)·K·diag(√v)·C, C the projection; K is overwritten."""
        K *= self.root[:, None]
        K *= self.root
        if self.constant:
            unit = self.root / np.sqrt(self.n)
            w = K @ unit
            w -= 0.5 * unit * float(unit @ w)
            K -= np.multiply.outer(unit, w)
            K -= np.multiply.outer(w, unit)
        return np.asarray(K, order="F")


def _squared_rows(X: Any) -> FloatArray:
    squares = X.multiply(X).sum(axis=1) if hasattr(X, "multiply") else np.einsum("kd,kd->k", X, X)
    return np.asarray(squares, dtype=np.float64).ravel()


def _assembled(
    tangent: Tangent, Y: FloatArray, centre: _Centre, path: RidgePath, alpha: FloatArray, steps: int
) -> TangentFit:
    """Return V = Jᵀ(√v ∘ Cα), and the constant that makes the weighted mean of the residuals zero."""
    V, constants = [], []
    for k in range(Y.shape[1]):
        V.append(tangent.transposed(centre.root * centre.out(np.ascontiguousarray(alpha[:, k]))))
        left = Y[:, k] - tangent.forward(V[-1])
        constants.append(float(centre.root**2 @ left) / centre.n if centre.constant else 0.0)
    return TangentFit(path, np.stack(V), np.array(constants), steps)

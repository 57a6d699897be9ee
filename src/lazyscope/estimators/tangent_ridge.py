"""Ridge regression on the tangent model, by whichever of four routes is the cheapest.

| route | when | cost |
|---|---|---|
| `primal` | fewer parameters than samples | the Gram matrix of the Jacobian, blocks of samples at a time |
| `direct` | few samples | K, n × n, one decomposition for all ridges, GCV exact |
| `cholesky` | more samples | K, a Cholesky decomposition in float32 for each ridge that is tried, tr H_λ by probes |
| `cg` | many of both | products with K alone, one Krylov space for all ridges, tr H_λ by probes (Hutchinson 1990) |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged
from lazyscope.estimators.base import Array
from lazyscope.estimators.tangent import Tangent
from lazyscope.numerics.krylov import shifted_cg
from lazyscope.numerics.ridge import AUTO, Moments, RidgePath, cautious, dual
from lazyscope.progress import report

FEW, MANY = 2000, 12000  # samples up to which K is reduced to tridiagonal form, and up to which it is formed
PILOT = 1000  # samples on which the first ridge to try is chosen
_COLUMNS = 16  # of K at once
_APART = 10.0  # of ridges that are tried one after the other
_LEAST_RIDGE = 1e-6  # that is tried, in units of the mean of the diagonal of K; float32 is good for it
MOST_TRIED = 6
_PROBES = 8
_RESIDUAL, _MOST_REFINED = 1e-12, 30  # of the exact solution, and the steps to it from that of float32
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
    rng: np.random.Generator,
    owner: str,
) -> TangentFit:
    """Fit by K and a decomposition for each ridge that is tried: n³/3 flops each, in float32; memory 16n² bytes.

    Without candidates the search begins at the best ridge of the first rows, goes on by factors of ten in the direction
    in which GCV falls until it rises, and ends at the lowest point of a parabola. α is brought to float64 by conjugate
    gradients on K, with the decomposition before them.
    """
    n = len(Y)
    fits_in_memory(8.0 * 2.5 * n * n, f"The {n} × {n} tangent kernel", 'Pass solver="cg".')
    centre = _Centre.of(Y, v, constant)
    K, targets = tangent.kernel(), centre.targets(Y)
    start = _of_first_rows(K, Y, v, constant, rng) if ridges is None else 0.0
    K = centre.both_sides(K)
    system = _System(K, K.astype(np.float32), targets, _probes(centre, rng), centre.n)
    tried: dict[float, _Tried] = {}
    last: dict[float, Array] = {}  # the decomposition at the ridge tried last, most often the best

    def score(ridge: float) -> float:
        if ridge not in tried:
            report(len(tried), MOST_TRIED, f"{owner}: Cholesky, ridge {ridge:.2g}")
            last.clear()
            last[ridge] = system.decomposed(ridge)
            tried[ridge] = system.solve(ridge, last[ridge], exactly=ridges is not None)
        return tried[ridge].score

    if ridges is None:
        least = _LEAST_RIDGE * float(np.trace(K)) / centre.n
        best = _climb(score, max(start, least), least)
        factor = last[best] if best in last else system.decomposed(best)
        tried[best] = system.solve(best, factor, exactly=True)
    else:
        for ridge in ridges:
            score(float(ridge))
    order = sorted(tried)
    path = RidgePath(
        np.array(order),
        np.stack([tried[ridge].alpha for ridge in order], axis=1),
        np.array([tried[ridge].gcv for ridge in order]),
        np.array([tried[ridge].freedom for ridge in order]),
        centre.n,
    )
    return _assembled(tangent, Y, centre, path, path.solutions[:, path.best], len(tried))


def _of_first_rows(
    K: FloatArray, Y: FloatArray, v: FloatArray | None, constant: bool, rng: np.random.Generator
) -> float:
    """Return the ridge that the first rows choose: nearly that of all, for a hundredth of the work."""
    rows = min(PILOT, len(Y))
    some = np.array(K[:rows, :rows], order="F")
    centre = _Centre.of(Y[:rows], None if v is None else v[:rows], constant)
    some = centre.both_sides(some)
    unit = float(np.trace(some)) / centre.n
    system = _System(some, some, centre.targets(Y[:rows]), _probes(centre, rng), centre.n)

    def score(ridge: float) -> float:
        return system.solve(ridge, system.decomposed(ridge), exactly=False).score

    return _climb(score, 1e-2 * unit, _LEAST_RIDGE * unit)


def _probes(centre: _Centre, rng: np.random.Generator) -> FloatArray:
    """Return random signs without their part along √v, (n, 8)."""
    m = len(centre.root)
    return np.stack([centre.out(np.where(rng.integers(0, 2, m) == 1, 1.0, -1.0)) for _ in range(_PROBES)], axis=1)


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


@dataclass(frozen=True, eq=False)
class _Tried:
    """GCV and the cautious one, tr H_λ and α = (K + nλ)⁻¹Y at one ridge."""

    gcv: float
    score: float
    freedom: float
    alpha: FloatArray


@dataclass(frozen=True, eq=False)
class _System:
    """K in float64 and as it is decomposed, targets, probes of the trace, and the number of samples."""

    K: FloatArray
    narrow: Array
    Y: FloatArray
    probes: FloatArray
    n: float

    def solve(self, ridge: float, factor: Array, *, exactly: bool) -> _Tried:
        """Solve with K + nλ; `exactly` means to the digits of float64, whatever K is decomposed in."""
        from scipy.linalg import lapack

        n, k, shift = self.n, self.Y.shape[1], self._shift(ridge)
        potrs = lapack.spotrs if factor.dtype == np.float32 else lapack.dpotrs

        def back(B: FloatArray) -> FloatArray:
            return np.asarray(potrs(factor, B.astype(factor.dtype), lower=1)[0], dtype=np.float64)

        solved = back(np.hstack([self.Y, self.probes]))
        kept = float(np.mean(np.sum(self.probes * solved[:, k:], axis=0)))
        alpha, freedom = solved[:, :k], len(self.K) - shift * kept
        if exactly and factor.dtype == np.float32:
            better = _refined(self.K, shift, self.Y, alpha, back)
            if better is None:  # so small a ridge that float32 says nothing of it
                return replace(self, narrow=self.K).solve(ridge, self._cholesky(self.K, ridge), exactly=True)
            alpha = better
        lost = shift**2 * float(np.sum(alpha**2)) / n
        gcv = lost / max(1.0 - freedom / n, 1e-12) ** 2 if n > freedom else np.inf
        return _Tried(gcv, float(cautious(gcv, freedom, n)), freedom, alpha)

    def decomposed(self, ridge: float) -> Array:
        """Return the Cholesky factor of K + nλ, in float64 where rounding to float32 leaves none."""
        try:
            return self._cholesky(self.narrow, ridge)
        except NotConverged:
            return self._cholesky(self.K, ridge)

    def _shift(self, ridge: float) -> float:
        return self.n * max(ridge, 1e-14)

    def _cholesky(self, K: Array, ridge: float) -> Array:
        from scipy.linalg import lapack

        A = K.copy(order="F")
        A.reshape(-1, order="F")[:: len(A) + 1] += A.dtype.type(self._shift(ridge))
        potrf = lapack.spotrf if A.dtype == np.float32 else lapack.dpotrf
        factor, failed = potrf(A, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise NotConverged(f"K + nλ is singular to rounding at λ = {ridge:.2g}. Pass a larger ridge.")
        return np.asarray(factor)


def _refined(
    K: FloatArray, shift: float, Y: FloatArray, alpha: FloatArray, back: Callable[[FloatArray], FloatArray]
) -> FloatArray | None:
    """Return (K + s)⁻¹Y by conjugate gradients from α, with an approximate inverse; None where they are slow."""
    from scipy.linalg.blas import dsymm

    def times(P: FloatArray) -> FloatArray:
        return np.asarray(dsymm(1.0, K, P, lower=1) + shift * P)

    wanted = _RESIDUAL * np.linalg.norm(Y, axis=0)
    alpha, left = alpha.copy(), Y - times(alpha)
    step, before = np.zeros_like(Y), np.ones(Y.shape[1])
    for _ in range(_MOST_REFINED):
        if np.all(np.linalg.norm(left, axis=0) <= wanted):
            return alpha
        turned = back(left)
        now = np.sum(left * turned, axis=0)
        step = turned + now / before * step
        image = times(step)
        length = now / np.maximum(np.sum(step * image, axis=0), 1e-300)
        alpha += length * step
        left -= length * image
        before = np.maximum(now, 1e-300)
    return None


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
    path = RidgePath(ridges, alpha, scores, freedom, n)
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
        from scipy.linalg.blas import dsymv

        if np.any(self.root != 1.0):
            K *= self.root[:, None]
            K *= self.root
        if self.constant:
            unit = self.root / np.sqrt(self.n)
            w = dsymv(1.0, K, unit, lower=1)
            w -= 0.5 * unit * float(unit @ w)
            for part in range(0, len(K), _COLUMNS):  # K is in Fortran order: columns at a time stay in cache
                some = slice(part, part + _COLUMNS)
                K[:, some] -= unit[:, None] * w[some] + w[:, None] * unit[some]
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

"""Ridge regression on the tangent model, by whichever of three routes is the cheapest.

| route | when | cost |
|---|---|---|
| `primal` | fewer parameters than samples | the Gram matrix of the Jacobian, blocks of samples at a time |
| `direct` | few samples | K, n × n, one decomposition for all ridges, GCV exact |
| `cg` | many of both | products with K alone, one Krylov space for all ridges, tr H_λ by probes (Hutchinson 1990) |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged
from lazyscope.estimators.tangent import Tangent
from lazyscope.numerics.krylov import shifted_cg
from lazyscope.numerics.ridge import AUTO, Moments, RidgePath, dual
from lazyscope.progress import report

FEW = 6000  # samples up to which K is formed
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
    freedom = np.full(len(shifts), np.nan)
    scores = np.zeros(len(shifts))
    if len(shifts) > 1:
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

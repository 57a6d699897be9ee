"""Linear systems with a symmetric matrix K ⪰ 0, solved by products with K.

| function | what it solves | when |
|---|---|---|
| `solve` | Kx = b, for the energy ⟨b, K⁺b⟩ | K is known by its products, and may be singular |
| `shifted_cg` | (K + s)x = b for many shifts s > 0 | K is known by its products |
| `kernel_ridge` | (K + λ)α = y for many λ ≥ 0 | K is a matrix in memory |

Why not `scipy.sparse.linalg.cg`: it solves for one shift, and stops by the residual. The energy, which is what is asked
for here, converges twice as fast, and its error can be estimated on the way. Benchmarks: `exact_nt_against_sgd` and
`exact_nt_wide` for `solve`; `tangent_products` for the product that a step of `shifted_cg` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray, non_negative_numbers
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.progress import report

_DELAY = 4  # steps whose gain stands for what is still missing
TOLERANCE = 1e-12  # of the energy
RESIDUAL = 1e-4
"""The largest relative residual of a result. The energy errs in its square, over the smallest eigenvalue that counts;
where the last steps gained 1e-12 of the energy it is 1e-6 times the root of an effective condition number, seen to be
below 1e-5 for the kernels here."""

_MOST_STEPS = 1500  # of Lanczos' process
_EVERY = 8  # steps between two looks at the residuals
_SOLVED = 1e-14  # relative residual at which what is left of b is rounding error
_TOO_HARD = "the matrix is too ill-conditioned. Pass a preconditioner, or more steps."
_SINGULAR = "the matrix is singular to rounding, and b is not in its range. Remove what depends on the rest."
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Solution:
    """2⟨b,x⟩ − ⟨x,Kx⟩ ≈ ⟨b,K⁺b⟩, the relative residual ‖b − Kx‖/‖b‖, and the number of products with K.

    That form of the energy is what the model with parameters x explains: it errs in second order, and below.
    `sensitivity`, ‖K‖‖x‖², is how far errors of K move the energy, over their size relative to ‖K‖; `cut` what a
    direct solution may have lost with the eigenvalues that it left out.
    """

    energy: float
    residual: float
    iterations: int
    sensitivity: float = 0.0
    cut: float = 0.0


def solve(
    apply: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    scale: FloatArray | float = 1.0,
    most: int = 5000,
    too_hard: str = _TOO_HARD,
    singular: str = _SINGULAR,
) -> Solution:
    """Solve K x = b for K ⪰ 0, b in its range, with the diagonal preconditioner `scale` (Hestenes & Stiefel).

    Step j adds α_j⟨r_j, z_j⟩ to the energy, so that what the last four steps added bounds, for a linearly
    convergent iteration, what is still missing; it stops when that falls below 1e-12 of the whole and the residual
    below its tolerance. A singular K is no obstacle while b is in its range: x stays there. But once the residual is
    rounding error, or a direction has no curvature beyond rounding, further steps would only amplify it.

    `too_hard` and `singular` end the messages: what the caller knows of K, and what to do.
    """
    x, r = np.zeros_like(b), b.copy()
    z = scale * r
    p = z.copy()
    rho = first = float(np.vdot(r, z))
    gains: list[float] = []
    largest, lost = 0.0, False
    while rho > _SOLVED**2 * first:
        Kp = apply(p)
        curvature, length = float(np.vdot(p, Kp)), float(np.vdot(p, p / scale))
        largest = max(largest, curvature / length)
        if curvature <= b.size * _EPS * largest * length:  # what is left lies in the null space of K, to rounding
            lost = True
            break
        alpha = rho / curvature
        x += alpha * p
        r -= alpha * Kp
        gains.append(alpha * rho)
        settled = len(gains) >= _DELAY and sum(gains[-_DELAY:]) <= TOLERANCE * sum(gains)
        if settled and _relative(r, b) <= RESIDUAL:
            break
        if len(gains) == most:
            raise NotConverged(
                f"Conjugate gradients still gained {sum(gains[-_DELAY:]) / sum(gains):.1e} of the energy in the "
                f"last {_DELAY} of {most} steps (tolerance {TOLERANCE:.0e}): {too_hard}"
            )
        if len(gains) % 10 == 0:
            report(len(gains), 0, f"conjugate gradients, step {len(gains)}")
        z = scale * r
        rho, previous = float(np.vdot(r, z)), rho
        p *= rho / previous
        p += z
    residual = _relative(b - apply(x), b) if gains else 0.0  # not the recursion's r, which rounding lets drift away
    if not residual <= (np.sqrt(TOLERANCE) if lost else RESIDUAL):
        raise NotConverged(f"Conjugate gradients left a relative residual of {residual:.1e}: {singular}")
    sensitivity = largest * float(np.vdot(x, x / scale))
    energy = float(np.vdot(b, x) + np.vdot(x, r))  # ⟨x,Kx⟩ = ⟨x,b⟩ − ⟨x,r⟩
    return Solution(energy, residual, len(gains), sensitivity)


def _relative(r: FloatArray, b: FloatArray) -> float:
    size = float(np.linalg.norm(b))
    return float(np.linalg.norm(r)) / size if size else 0.0


@dataclass(frozen=True, eq=False)
class Shifted:
    """Solutions (R, n) or, where only ⟨b, x⟩ was asked for, none; ⟨b, x_j⟩ (R,); relative residuals (R,); steps."""

    x: FloatArray | None
    inner: FloatArray
    residual: FloatArray
    steps: int


def shifted_cg(
    times: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    shifts: FloatArray,
    tol: float,
    max_iter: int,
    solutions: bool = True,
) -> Shifted:
    """Solve (A + s_j)x_j = b for symmetric A ⪰ 0 and every s_j > 0, from one sequence of products with A.

    The residuals of all shifts are parallel (Jegerlehner 1996), so that a shift costs two vector updates a step, and a
    number ζ_j that says how much smaller its residual is. The smallest shift leads; the others converge before it.

    >>> A, b = np.diag([1.0, 2.0, 3.0]), np.ones(3)
    >>> shifted = shifted_cg(lambda v: A @ v, b, np.array([1.0, 2.0]), 1e-12, 10)
    >>> shifted.x.round(6).tolist(), shifted.steps
    ([[0.5, 0.333333, 0.25], [0.333333, 0.25, 0.2]], 3)
    """
    lead = float(np.min(shifts))
    delta = shifts - lead
    R, n = len(shifts), len(b)
    r = b.copy()
    p = b.copy()
    zeta, zeta_before = np.ones(R), np.ones(R)
    a_before, beta = 1.0, 0.0
    rr = norm = float(b @ b)
    x, direction = (np.zeros((R, n)), np.tile(b, (R, 1))) if solutions else (None, None)
    inner, along = np.zeros(R), np.full(R, norm)  # ⟨b, x_j⟩ and ⟨b, p_j⟩ follow the same recursion as x_j and p_j
    steps = 0
    while steps < max_iter and norm > 0 and np.max(np.abs(zeta)) * np.sqrt(rr / norm) > tol:
        q = times(p) + lead * p
        a = rr / float(p @ q)
        below = a * beta * (zeta_before - zeta) + zeta_before * a_before * (1.0 + delta * a)
        with np.errstate(under="ignore"):  # a shift that has long converged: its ζ may become zero
            zeta_next = np.divide(zeta * zeta_before * a_before, below, out=np.zeros(R), where=below != 0)
            ratio = np.divide(zeta_next, zeta, out=np.zeros(R), where=zeta != 0)
        inner += a * ratio * along
        r -= a * q
        rr_next = float(r @ r)
        beta, rr = rr_next / rr, rr_next
        p *= beta
        p += r
        if x is not None and direction is not None:
            x += (a * ratio)[:, None] * direction
            direction *= (beta * ratio**2)[:, None]
            direction += zeta_next[:, None] * r
        along = zeta_next * float(b @ r) + beta * ratio**2 * along
        zeta_before, zeta, a_before = zeta, zeta_next, a
        steps += 1
    residual = np.abs(zeta) * np.sqrt(rr / norm) if norm > 0 else np.zeros(R)
    return Shifted(x, inner, residual, steps)


@dataclass(frozen=True, eq=False)
class RidgeFits:
    """α, (R, n), a row for each ridge; `residual`, (R,), is ‖(K + λ)α − y‖/‖y‖; `steps` the products with K."""

    alpha: FloatArray
    residual: FloatArray
    steps: int

    def predict(self, K: FloatArray) -> FloatArray:
        """Return f at new inputs, (n′, R), from their kernel with the samples, (n′, n)."""
        return np.asarray(K @ self.alpha.T)


def kernel_ridge(K: FloatArray, y: FloatArray, ridges: Sequence[float], tolerance: float = 1e-10) -> RidgeFits:
    """Solve (K + λ)α = y for every λ ≥ 0 by one Lanczos process: 2n²t flops and 8nt bytes beside K.

    This is min ‖y − f‖² + λ‖f‖²_K, f = Σ α_i K(x_i, ·). After t products with K the residual of every λ is known, and
    a kernel with few large eigenvalues above a flat rest needs t ≈ 60, where a full tridiagonal form would take n.
    Unlike in `shifted_cg` the basis is kept orthogonal, so that λ = 0, interpolation, is solved as well.

    >>> fits = kernel_ridge(np.diag([1.0, 3.0]), np.array([1.0, 1.0]), [0.0, 1.0])
    >>> fits.alpha.round(6)
    array([[1.      , 0.333333],
           [0.5     , 0.25    ]])
    """
    K, y = square_matrix(K, "kernel_ridge"), np.asarray(y, dtype=np.float64)
    if y.shape != (len(K),) or not np.all(np.isfinite(y)) or not np.any(y):
        raise InvalidParameter.of("kernel_ridge", "y", f"be {len(K)} finite numbers, not all zero", f"shape {y.shape}")
    shifts = np.atleast_1d(non_negative_numbers(ridges, "kernel_ridge", "ridges", "0 interpolates."))
    size = float(np.linalg.norm(y))
    Q, coordinates, left = _lanczos(K, y / size, shifts, tolerance)
    alpha = size * (coordinates @ Q)
    residual = np.linalg.norm(alpha @ K + shifts[:, None] * alpha - y, axis=1) / size
    if not np.all(residual <= 100.0 * tolerance):
        worst = int(np.argmax(residual))
        raise NotConverged(
            f"Kernel ridge regression with λ = {shifts[worst]:g} leaves {residual[worst]:.1e} of y after {len(Q)} "
            f"steps (expected {left[worst]:.1e}). Pass a larger ridge: K is singular to rounding, or nearly."
        )
    return RidgeFits(alpha, residual, len(Q))


def _lanczos(
    K: FloatArray, q: FloatArray, shifts: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return an orthonormal basis (t, n), coordinates of every solution in it (R, t), and the residuals promised."""
    from scipy.linalg import eigh_tridiagonal

    n = len(K)
    Q = np.empty((min(n, _EVERY), n))
    diagonal, beside = np.empty(min(n, _MOST_STEPS)), np.empty(min(n, _MOST_STEPS))
    for t in range(min(n, _MOST_STEPS)):
        if t == len(Q):
            Q = np.concatenate([Q, np.empty((min(len(Q), n - len(Q)), n))])
        Q[t] = q
        q = K @ q
        diagonal[t] = Q[t] @ q
        for _ in range(2):  # twice is enough: orthogonal to rounding
            q -= (Q[: t + 1] @ q) @ Q[: t + 1]
        beside[t] = np.linalg.norm(q)
        last = t + 1 == min(n, _MOST_STEPS) or beside[t] <= 1e-14 * np.max(np.abs(diagonal[: t + 1]))
        if last or t % _EVERY == _EVERY - 1:
            values, vectors = eigh_tridiagonal(diagonal[: t + 1], beside[:t])
            gains = values + shifts[:, None]
            gains[np.abs(gains) < np.finfo(np.float64).tiny] = np.finfo(np.float64).tiny
            coordinates = (vectors[0] / gains) @ vectors.T
            left = beside[t] * np.abs(coordinates[:, -1])
            if last or np.all(left <= tolerance):
                return Q[: t + 1], coordinates, left
        q /= beside[t]
    raise AssertionError("unreachable: the last step returns")


def square_matrix(K: FloatArray, owner: str) -> FloatArray:
    """Check a kernel matrix."""
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.size == 0 or not np.all(np.isfinite(K)):
        raise InvalidParameter.of(owner, "K", "be an (n, n) matrix of finite numbers", f"shape {K.shape}")
    return K

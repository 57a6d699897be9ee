"""Deterministic equivalents of ridge regression on N features and n samples (Defilippis et al. 2024).

Features φ_j, j ≤ N, f = N^{−1/2} Σ a_jφ_j, objective Σ_i (y_i − f(x_i))² + λ‖a‖². The integral operator of E[φφ] has
eigenvalues ξ_k, m_k times each, and in its eigenspace k the target has energy β_k²; the labels' noise has variance τ².
With the degrees of freedom df₁(ν) = Σ m ξ/(ξ + ν) and df₂(ν) = Σ m ξ²/(ξ + ν)², ν₂ > 0 is the one solution of

    n − λ/ν₁ = df₁(ν₂),      ν₁ = ν₂(1 − df₁(ν₂)/N).

Let s = ν₂/(ξ + ν₂) be what is not learnt of an eigenspace, r = ν₁/ν₂. Then

    Υ = (N/n)[(1 − r)² + r² df₂/(N − df₂)] = [(df₁ − df₂)² + df₂(N − df₂)]/(n(N − df₂)),
    bias = [Σ β²s² + (df₁ − df₂)/(N − df₂) Σ β²s(1 − s)]/(1 − Υ),      variance = τ² Υ/(1 − Υ),

risk = bias + variance without the noise of the test sample, and the training error is (1 − df₁/n)²(risk + τ²). N = ∞ is
kernel ridge regression, n = ∞ the population risk of N random features. A tail of infinitely many tiny eigenvalues
enters by its trace t alone: t/ν in df₁. Ridgeless, df₁(ν₂) = min(n, N). Since (n − df₁)(N − df₁) = λN/ν₂,

    n(N − df₂)(1 − Υ) = (n − df₁)(N − df₁) + (df₁ − df₂)[(n − df₁) + (N − df₁)]

is a sum of positive terms, and nothing cancels near N = n.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.numerics.compiled import compiled

TOLERANCE = 1e-12
"""Largest relative residual of the root."""

_TINY = 1e-17  # of ν: eigenvalues below act as a tail
_QUADRATIC = 1e-8  # of log ν: where a step is as small, the next one would be its square
_MANY_POINTS = 20_000  # from here on several threads are worth their start
_TAIL = 1e-6  # of n: what the eigenvalues of the tail may add to df₁ beyond their trace


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues ξ, their multiplicities, the energy of the target in each eigenspace, and the trace of the rest.

    `beyond` is the energy of the target that no feature sees; `largest` bounds the eigenvalues of the tail.
    """

    xi: FloatArray
    multiplicity: FloatArray
    energy: FloatArray
    tail: float = 0.0
    beyond: float = 0.0
    largest: float = 0.0

    @property
    def rank(self) -> float:
        """Number of features that are linearly independent: infinite with a tail."""
        return np.inf if self.tail > 0.0 else float(np.sum(self.multiplicity[self.xi > 0.0]))


def risks(
    spectrum: Spectrum, noise: float, N: FloatArray, n: FloatArray, ridge: FloatArray, degrees: int = 0
) -> dict[str, FloatArray]:
    """Return the risk and what it is made of, for sizes that broadcast against one another.

    About ten evaluations of df₁ a point, each of as many terms as there are eigenspaces; memory of the results.
    `degrees` asks for the share that is learnt of so many eigenspaces, `learnt`.
    """
    shape = np.broadcast_shapes(N.shape, n.shape, ridge.shape)
    N, n, ridge = (np.array(np.broadcast_to(size, shape), dtype=np.float64).ravel() for size in (N, n, ridge))
    trace = float(np.sum(spectrum.multiplicity * spectrum.xi)) + spectrum.tail
    if trace <= 0.0:  # features that are zero: nothing is learnt
        return _nothing(spectrum, shape, degrees)
    xi, tail, ridge = spectrum.xi / trace, spectrum.tail / trace, ridge / trace
    seen = xi > 0.0
    parts = (xi[seen], spectrum.multiplicity[seen], spectrum.energy[seen])
    nu, residual, sums = _side_by_side(parts, tail, spectrum.rank, N, n, ridge)
    sums[2] += float(np.sum(spectrum.energy[~seen]))
    check_tail(spectrum, nu * trace, np.minimum(N, n))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = _errors(spectrum, noise**2, nu, sums, N, n, ridge)
        whole = xi[:degrees] + nu[:, None]
        learnt = np.where(whole > 0.0, xi[:degrees] / whole, 0.0)
    values |= {"residual": residual} | ({"learnt": learnt} if degrees else {})
    return {name: value.reshape(*shape, *value.shape[1:]) for name, value in values.items()}


def _side_by_side(
    parts: tuple[FloatArray, FloatArray, FloatArray],
    tail: float,
    rank: float,
    N: FloatArray,
    n: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, ...]:
    """Solve many points on all threads there are: each point is on its own, so that their number changes no bit."""
    if n.size < _MANY_POINTS:
        return _solved(*parts, tail, rank, N, n, ridge)
    from numba import config

    threads = int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    pieces = [tuple(size[k::threads].copy() for size in (N, n, ridge)) for k in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        solved_pieces = list(pool.map(lambda piece: _solved(*parts, tail, rank, *piece), pieces))
    whole = tuple(np.empty((*part.shape[:-1], n.size)) for part in solved_pieces[0])
    for k, some in enumerate(solved_pieces):
        for part, values in zip(whole, some, strict=True):
            part[..., k::threads] = values
    return whole


def _errors(
    spectrum: Spectrum, tau2: float, nu: FloatArray, sums: FloatArray, N: FloatArray, n: FloatArray, ridge: FloatArray
) -> dict[str, FloatArray]:
    """Bias, variance and training error from ν₂ and the sums over eigenspaces there, without a subtraction."""
    df2, gap, once, twice = sums  # gap: df₁ − df₂; once: Σβ²s², twice: Σβ²s(1 − s)
    df1, once = df2 + gap, once + spectrum.beyond
    free_n, free_N = _left(df1, nu, spectrum.rank, N, n, ridge)
    wide, many = np.isinf(N), np.isinf(n)
    unused = free_N + gap  # N − df₂
    # n(N − df₂)(1 − Υ) and n(N − df₂)Υ; over N where that is infinite
    whole = np.where(wide, free_n + gap, free_n * free_N + gap * (free_n + free_N))
    used = np.where(wide, df2, gap**2 + df2 * unused)
    bias = np.where(wide, n * once, n * (unused * once + gap * twice)) / whole
    bias = np.where(many, once + np.where(wide | (gap == 0.0), 0.0, gap / unused * twice), bias)
    variance = np.where(many, 0.0, tau2 * used / whole)
    return errors(bias, variance, np.where(many, 1.0, free_n / n), tau2, df1)


def errors(
    bias: FloatArray, variance: FloatArray, share: FloatArray, tau2: float, df1: FloatArray
) -> dict[str, FloatArray]:
    """Return the risk, its parts, and the training error share²·(risk + τ²), share = 1 − df₁/n.

    At N = n without a ridge bias and variance are infinite, unless there is nothing to err about: 0·∞ is 0 here.
    """
    bias, variance = (np.where(np.isnan(part), 0.0, part) for part in (bias, variance))
    train = np.where(share == 0.0, 0.0, share**2 * (bias + variance + tau2))
    parts = {"bias": bias, "variance": variance, "train": train, "degrees_of_freedom": df1}
    return {"risk": bias + variance, **parts}


def _left(
    df1: FloatArray, nu: FloatArray, rank: float, N: FloatArray, n: FloatArray, ridge: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return n − df₁ and N − df₁: the larger by subtraction, the smaller from (n − df₁)(N − df₁) = λN/ν₂.

    Without a ridge df₁ is min(n, N), or the rank of the features where that is smaller.
    """
    least, most = np.minimum(n, N), np.maximum(n, N)
    free = (ridge == 0.0) | np.isinf(n)
    exact = np.where(free, np.minimum(least, rank), df1)
    large = most - exact
    product = ridge / nu  # over N
    small = np.where(free, least - exact, np.where(np.isinf(N), product, product * N / large))
    return np.where(n <= N, small, large), np.where(n <= N, large, small)


def _nothing(spectrum: Spectrum, shape: tuple[int, ...], degrees: int) -> dict[str, FloatArray]:
    whole = np.full(shape, float(np.sum(spectrum.energy)) + spectrum.beyond)
    names = ("variance", "degrees_of_freedom", "residual")
    values = {"risk": whole, "bias": whole, "train": whole} | {name: np.zeros(shape) for name in names}
    return values | ({"learnt": np.zeros((*shape, degrees))} if degrees else {})


def check_tail(spectrum: Spectrum, nu: FloatArray, least: FloatArray) -> None:
    """Refuse where the eigenvalues of the tail are not small beside ν: they would need to be known one by one."""
    if spectrum.tail <= 0.0:
        return
    with np.errstate(divide="ignore", over="ignore"):
        error = spectrum.tail * spectrum.largest / nu**2 / np.minimum(least, 1e300)
    error[np.isinf(least)] = 0.0  # n = N = ∞: all that features see is learnt, however small its eigenvalue
    if np.any(error > _TAIL):
        raise NotConverged(
            f"The spectrum of the features is known to degree {len(spectrum.xi) - 1} only, and at these sizes the rest "
            f"of it counts (by {float(np.max(error)):.1e} of n). Use fewer samples or features, more dimensions, or a "
            "larger ridge."
        )


@compiled
def _solved(
    xi: FloatArray,
    m: FloatArray,
    energy: FloatArray,
    tail: float,
    rank: float,
    N: FloatArray,
    n: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solve n − λ/ν₁ = df₁(ν) for ν at every point, by Newton's method in log ν kept inside a bracket.

    Returns ν₂, the relative residual, and df₂, df₁ − df₂, Σβ²s², Σβ²s(1 − s) there.

    (n − df₁)(N − df₁) = λN/ν says which df₁ belongs to a ν; it grows with ν, while df₁(ν) falls: one solution.
    For λ = 0 it is df₁ = min(n, N); for n = ∞ it is df₁ = N, whatever λ is. Eigenspaces from which on all ξ < 10⁻¹⁷ν
    enter by their trace, which is the same in float64. All ξ are positive. The equation is made of powers and fractions
    of ν, whose second derivative in log ν is at most twice the first: a step of 10⁻⁸ is followed by one of 10⁻¹⁶.
    """
    nu, residual, sums = np.zeros(n.size), np.zeros(n.size), np.zeros((4, n.size))
    largest, trace, unseen = np.zeros(xi.size + 1), np.zeros(xi.size + 1), np.zeros(xi.size + 1)
    trace[xi.size] = tail
    for k in range(xi.size - 1, -1, -1):  # of eigenspace k and all that follow
        largest[k] = max(largest[k + 1], xi[k])
        trace[k] = trace[k + 1] + m[k] * xi[k]
        unseen[k] = unseen[k + 1] + energy[k]
    for i in range(n.size):
        least = min(n[i], N[i])
        free = ridge[i] == 0.0 or np.isinf(n[i])
        if np.isinf(least) or (free and least >= rank):
            sums[0, i] = np.sum(m)  # ν = 0: everything that features see is learnt
            continue
        low, high = -700.0, 700.0
        x = np.log((1.0 + 2.0 * (0.0 if free else ridge[i])) / least)
        last = False
        while True:
            v = np.exp(x)
            df2, gap, k = 0.0, 0.0, 0  # gap: df₁ − df₂, which is −d df₁/d log ν
            while largest[k] > _TINY * v:
                learnt = xi[k] / (xi[k] + v)
                used = m[k] * learnt
                df2 += used * learnt
                gap += used * (1.0 - learnt)
                k += 1
            gap += trace[k] / v
            df1 = df2 + gap
            if free:
                value, change = least - df1, gap
            elif np.isinf(N[i]):
                value, change = n[i] - ridge[i] / v - df1, ridge[i] / v + gap
            else:  # the smaller solution p of (n − p)(N − p) = λN/ν, written without a cancellation
                c = ridge[i] * N[i] / v
                root = np.sqrt((n[i] - N[i]) ** 2 + 4.0 * c)
                value, change = 2.0 * (n[i] * N[i] - c) / (n[i] + N[i] + root) - df1, c / root + gap
            if last:
                break
            if value > 0.0:
                high = x
            else:
                low = x
            step = x - value / change if change > 0.0 else low - 1.0
            step = min(max(step, x - 4.0), x + 4.0)  # far from the root the slope says little
            if abs(step - x) <= _QUADRATIC:
                last = True
            elif not low < step < high:
                step = 0.5 * (low + high)
                last = high - low <= _QUADRATIC
            x = step
        nu[i], residual[i], sums[0, i], sums[1, i] = v, abs(value) / least, df2, gap
        for j in range(k):
            learnt, missed = xi[j] / (xi[j] + v), v / (xi[j] + v)
            sums[2, i] += energy[j] * missed * missed
            sums[3, i] += energy[j] * learnt * missed
        sums[2, i] += unseen[k]
    return nu, residual, sums

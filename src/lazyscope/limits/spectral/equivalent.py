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

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.numerics.compiled import compiled

TOLERANCE = 1e-12
"""Largest relative residual of the root."""

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
    N, n, ridge = (
        np.ascontiguousarray(np.broadcast_to(size, shape), dtype=np.float64).ravel() for size in (N, n, ridge)
    )
    trace = float(np.sum(spectrum.multiplicity * spectrum.xi)) + spectrum.tail
    if trace <= 0.0:  # features that are zero: nothing is learnt
        return _nothing(spectrum, shape, degrees)
    xi, tail, ridge = spectrum.xi / trace, spectrum.tail / trace, ridge / trace
    nu, residual, sums = _solved(xi, spectrum.multiplicity, spectrum.energy, tail, spectrum.rank, N, n, ridge)
    check_tail(spectrum, nu * trace, np.minimum(N, n))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = _errors(spectrum, noise**2, nu, sums, N, n, ridge)
        whole = xi[:degrees] + nu[:, None]
        learnt = np.where(whole > 0.0, xi[:degrees] / whole, 0.0)
    values |= {"residual": residual} | ({"learnt": learnt} if degrees else {})
    return {name: value.reshape(*shape, *value.shape[1:]) for name, value in values.items()}


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
    # at N = n without a ridge both are infinite, unless there is nothing to err about
    bias, variance = (np.where(np.isnan(part), 0.0, part) for part in (bias, variance))
    share = np.where(many, 1.0, free_n / n)
    train = np.where(share == 0.0, 0.0, share**2 * (bias + variance + tau2))
    return {
        "risk": bias + variance,
        "bias": bias,
        "variance": variance,
        "train": train,
        "degrees_of_freedom": df1,
    }


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
    For λ = 0 it is df₁ = min(n, N); for n = ∞ it is df₁ = N, whatever λ is.
    """
    nu, residual, sums = np.zeros(n.size), np.zeros(n.size), np.zeros((4, n.size))
    for i in range(n.size):
        least = min(n[i], N[i])
        free = ridge[i] == 0.0 or np.isinf(n[i])
        if np.isinf(least) or (free and least >= rank):
            for k in range(xi.size):  # ν = 0: everything that features see is learnt
                if xi[k] > 0.0:
                    sums[0, i] += m[k]
                else:
                    sums[2, i] += energy[k]
            continue
        low, high = -700.0, 700.0
        x = np.log((1.0 + 2.0 * (0.0 if free else ridge[i])) / least)
        for _ in range(200):
            v = np.exp(x)
            df1, slope = tail / v, tail / v  # slope: −d df₁/d log ν
            for k in range(xi.size):
                learnt = xi[k] / (xi[k] + v)
                df1 += m[k] * learnt
                slope += m[k] * learnt * (1.0 - learnt)
            if free:
                value, change = least - df1, slope
            elif np.isinf(N[i]):
                value, change = n[i] - ridge[i] / v - df1, ridge[i] / v + slope
            else:  # the smaller solution p of (n − p)(N − p) = λN/ν, written without a cancellation
                c = ridge[i] * N[i] / v
                root = np.sqrt((n[i] - N[i]) ** 2 + 4.0 * c)
                value, change = 2.0 * (n[i] * N[i] - c) / (n[i] + N[i] + root) - df1, c / root + slope
            residual[i] = abs(value) / least
            if value > 0.0:
                high = x
            else:
                low = x
            step = x - value / change if change > 0.0 else low - 1.0
            step = min(max(step, x - 4.0), x + 4.0)  # far from the root the slope says little
            if abs(step - x) <= 4e-16 * max(1.0, abs(x)):
                break
            if not low < step < high:
                step = 0.5 * (low + high)
                if abs(step - x) <= 4e-16 * max(1.0, abs(x)):
                    break
            x = step
        v = np.exp(x)
        nu[i], sums[1, i] = v, tail / v
        for k in range(xi.size):
            learnt, missed = xi[k] / (xi[k] + v), v / (xi[k] + v)
            sums[0, i] += m[k] * learnt * learnt
            sums[1, i] += m[k] * learnt * missed
            sums[2, i] += energy[k] * missed * missed
            sums[3, i] += energy[k] * learnt * missed
    return nu, residual, sums

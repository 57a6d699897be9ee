"""The error of ridge regression on n rows with N features, from the functions of a pool (Defilippis et al. 2024).

For each (n, N, λ) one scalar equation says at which κ the functions are read,

    (n − df₁)(N − df₁) = λN/κ,      the smaller root df₁ < min(n, N);  N = ∞: n = df₁ + λ/κ,

monotone in κ. With gap = df₁ − df₂, c = gap/(N − df₂), and without a subtraction that cancels near N = n,

    error = n(N − df₂)[(1 − c)G + cM] / [(n − df₁)(N − df₁) + gap((n − df₁) + (N − df₁))],

the mean squared error on a new row, its noise included. On a pool the equation reads ℓ = (P − n)κ + λ/(1 − df₁/N): up
to n = P no ridge ℓ < λ is asked for, and nothing is extrapolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.forecast.pool import Pool

_TINY = 1e-300
_WIDEST = 1e20  # features: from there on they are infinitely many, to rounding
_HALVINGS = 60  # of an interval of at most a few hundred: to rounding


@dataclass(frozen=True, eq=False)
class Functions:
    """κ, df₁, gap, G and M as smooth functions of one variable t that grows with κ: splines of their logarithms.

    On a pool t is log ℓ. G and M have the axes (1 + groups, targets).
    """

    t: FloatArray
    shape: tuple[int, ...]
    size: Any
    error: Any

    @classmethod
    def of(cls, pool: Pool) -> Functions:
        """Return the functions of a pool."""
        return cls.through(pool.log_ridge, pool.kappa, pool.df1, pool.gap, pool.G, pool.M)

    @classmethod
    def through(
        cls, t: FloatArray, kappa: FloatArray, df1: FloatArray, gap: FloatArray, G: FloatArray, M: FloatArray
    ) -> Functions:
        """Return the splines through values at nodes t, the last axis of all."""
        from scipy.interpolate import CubicSpline

        sizes = np.log(np.maximum(np.stack([kappa, df1, gap]), _TINY))
        errors = np.log(np.maximum(np.stack([G, M]), _TINY))
        return cls(t, G.shape[:-1], CubicSpline(t, sizes, axis=-1), CubicSpline(t, errors, axis=-1))

    def sizes(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return κ, df₁ and gap."""
        kappa, df1, gap = np.exp(self.size(t))
        return kappa, df1, gap

    def errors(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return G and M, (1 + groups, targets, …)."""
        G, M = np.exp(self.error(t))
        return G, M


@dataclass(frozen=True, eq=False)
class Errors:
    """What is forecast at each point: the error with all rows and without each group, (1 + groups, targets, …)."""

    risk: FloatArray
    degrees_of_freedom: FloatArray
    kappa: FloatArray
    residual: FloatArray


def errors(functions: Functions, n: FloatArray, N: FloatArray, ridge: FloatArray) -> Errors:
    """Return the errors at sizes that broadcast against one another: sixty evaluations of a spline a point."""
    n, N, ridge = np.broadcast_arrays(n, np.where(N > _WIDEST, np.inf, N), ridge)
    t = _solved(functions, n, N, ridge)
    (kappa, df1, gap), (G, M) = functions.sizes(t), functions.errors(t)
    wide = np.isinf(N)
    with np.errstate(invalid="ignore", divide="ignore"):
        # a ridge that would need a smaller κ than the table has cannot be told from none by its rows
        first, most, _ = functions.sizes(functions.t[:1])
        none = (ridge == 0.0) | (_asked(first, n, N, ridge) > most)
        free_n, free_N = _left(df1, kappa, n, N, ridge, none)
        unused = np.where(wide, 1.0, free_N + gap)  # N − df₂; over N where that is infinite
        whole = np.where(wide, free_n + gap, free_n * free_N + gap * (free_n + free_N))
        c = np.where(wide, 0.0, gap / unused)
        risk = n * unused / whole * ((1.0 - c) * G + c * M)
        residual = np.abs(_asked(kappa, n, N, ridge) - df1) / np.minimum(n, N)
    return Errors(risk, df1, kappa, residual)


def spread(risk: FloatArray) -> FloatArray:
    """Return the standard error of log risk[0], (targets, …), by the jackknife over groups of rows."""
    left_out = np.log(risk[1:])
    groups = len(left_out)
    deviation = left_out - left_out.mean(axis=0)
    return np.asarray(np.sqrt((groups - 1.0) / groups * np.sum(deviation**2, axis=0)))


def _solved(functions: Functions, n: FloatArray, N: FloatArray, ridge: FloatArray) -> FloatArray:
    """Return t where the df₁ that the sizes ask for, which grows with κ, meets df₁(κ), which falls: by halving."""
    low = np.full(n.shape, functions.t[0])
    high = np.full(n.shape, functions.t[-1])
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        kappa, df1, _ = functions.sizes(middle)
        above = _asked(kappa, n, N, ridge) > df1
        high, low = np.where(above, middle, high), np.where(above, low, middle)
    return np.asarray(0.5 * (low + high))


def _asked(kappa: FloatArray, n: FloatArray, N: FloatArray, ridge: FloatArray) -> FloatArray:
    """Return the smaller root p of (n − p)(N − p) = λN/κ; n − λ/κ where N = ∞."""
    with np.errstate(invalid="ignore", over="ignore"):
        c = ridge * N / kappa
        finite = 2.0 * (n * N - c) / (n + N + np.sqrt((n - N) ** 2 + 4.0 * c))
    return np.where(ridge == 0.0, np.minimum(n, N), np.where(np.isinf(N), n - ridge / kappa, finite))


def _left(
    df1: FloatArray, kappa: FloatArray, n: FloatArray, N: FloatArray, ridge: FloatArray, none: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return n − df₁ and N − df₁, positive numbers whose product is λN/κ and whose difference is that of n and N.

    Where there is no ridge, the smaller is what the kernel's rank leaves: zero for a kernel with directions enough.
    """
    least, apart = np.minimum(n, N), np.where(np.isinf(N), 1.0, np.abs(N - n) / N)
    unused = least - np.minimum(least, df1 * (1.0 + 1e-9))
    by_ridge = 2.0 * ridge / kappa / (apart + np.sqrt(apart**2 + 4.0 * ridge / kappa / N))
    small = np.where(none, np.where(unused < 1e-6 * least, 0.0, unused), by_ridge)
    large = small + np.abs(N - n)
    return np.where(n <= N, small, large), np.where(n <= N, large, small)

"""Deterministic equivalents of ridge regression on N features and n samples (Defilippis et al. 2024).

Features φ_j, j ≤ N, f = N^{−1/2} Σ a_jφ_j, objective Σ_i (y_i − f(x_i))² + λ‖a‖². The integral operator of E[φφ] has
eigenvalues ξ_k, m_k times each, and in its eigenspace k the target has energy β_k²; the labels' noise has variance τ².
With the degrees of freedom df₁(ν) = Σ m ξ/(ξ + ν) and df₂(ν) = Σ m ξ²/(ξ + ν)², ν₂ > 0 is the one solution of

    n − λ/ν₁ = df₁(ν₂),      ν₁ = ν₂(1 − df₁(ν₂)/N).

Let s = ν₂/(ξ + ν₂) be what is not learnt of an eigenspace, r = ν₁/ν₂. Then

    Υ = (N/n)[(1 − r)² + r² df₂/(N − df₂)],
    bias = [Σ β²s² + (df₁ − df₂)/(N − df₂) Σ β²s(1 − s)]/(1 − Υ),      variance = τ² Υ/(1 − Υ),

risk = bias + variance without the noise of the test sample, and the training error is (1 − df₁/n)²(risk + τ²). N = ∞ is
kernel ridge regression, n = ∞ the population risk of N random features. A tail of infinitely many tiny eigenvalues
enters by its trace t alone: t/ν in df₁. Ridgeless, df₁(ν₂) = min(n, N).
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


def risks(spectrum: Spectrum, noise: float, N: FloatArray, n: FloatArray, ridge: FloatArray) -> dict[str, FloatArray]:
    """Return the risk and what it is made of, for sizes that broadcast against one another.

    About ten evaluations of df₁ a point, each of as many terms as there are eigenspaces; memory of the results, and of
    one array of `degree` for each.
    """
    shape = np.broadcast_shapes(N.shape, n.shape, ridge.shape)
    sizes = [np.ascontiguousarray(np.broadcast_to(one, shape), dtype=np.float64).ravel() for one in (N, n, ridge)]
    scale = float(np.sum(spectrum.multiplicity * spectrum.xi)) + spectrum.tail
    if scale <= 0.0:  # features that are zero: nothing is learnt
        return _nothing(spectrum, shape, sizes)
    xi, tail = spectrum.xi / scale, spectrum.tail / scale
    nu, residual = _roots(xi, spectrum.multiplicity, tail, spectrum.rank, sizes[0], sizes[1], sizes[2] / scale)
    _check_tail(spectrum, nu * scale, np.minimum(sizes[0], sizes[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = _errors(xi, spectrum, tail, noise**2, nu, sizes[0], sizes[1])
    values["residual"] = residual
    return {name: value.reshape(*shape, *value.shape[1:]) for name, value in values.items()}


def _errors(
    xi: FloatArray, spectrum: Spectrum, tail: float, tau2: float, nu: FloatArray, N: FloatArray, n: FloatArray
) -> dict[str, FloatArray]:
    """Bias, variance and the rest from ν₂, all in shares s of what is not learnt, so that no scale can overflow."""
    m, beta = spectrum.multiplicity, spectrum.energy
    # s = ν/(ξ + ν): 1 where ξ = 0, and 0 where ν = 0 < ξ; 1 − s by itself, as it may be tiny and m huge
    whole = xi + np.maximum(nu, 1e-300)[:, None]
    missed, learnt = np.where(xi == 0.0, 1.0, nu[:, None] / whole), xi / whole
    with_tail = np.where(tail > 0.0, tail / nu, 0.0)
    df2 = (learnt**2) @ m
    difference = (missed * learnt) @ m + with_tail  # df₁ − df₂
    df1 = df2 + difference
    wide, many = np.isinf(N), np.isinf(n)
    r = np.where(wide, 1.0, 1.0 - df1 / N)
    upsilon = np.where(wide, df2 / n, (N / n) * ((1.0 - r) ** 2 + r**2 * df2 / (N - df2)))
    upsilon = np.where(many, 0.0, upsilon)
    narrow = np.where(wide, 0.0, difference / np.where(wide, 1.0, N - df2))
    bias = missed**2 @ beta + narrow * ((missed * learnt) @ beta) + spectrum.beyond
    bias, variance = bias / (1.0 - upsilon), tau2 * upsilon / (1.0 - upsilon)
    # at the interpolation threshold, without a ridge, Υ = 1: a risk of ∞, unless there is nothing to err about
    bias = np.where(np.isnan(bias), 0.0, bias)
    variance = np.zeros_like(bias) if tau2 == 0.0 else variance
    fitted = np.where(many, 0.0, df1 / n)
    train = (1.0 - fitted) ** 2 * (bias + variance + tau2)
    train = np.where(fitted >= 1.0 - 1e-15, 0.0, train)
    return {
        "risk": bias + variance,
        "bias": bias,
        "variance": variance,
        "train": train,
        "degrees_of_freedom": df1,
        "learnt": learnt,
    }


def _nothing(spectrum: Spectrum, shape: tuple[int, ...], sizes: list[FloatArray]) -> dict[str, FloatArray]:
    whole = float(np.sum(spectrum.energy)) + spectrum.beyond
    zero = np.zeros(shape)
    learnt = np.zeros((*shape, len(spectrum.xi)))
    return {
        "risk": zero + whole,
        "bias": zero + whole,
        "variance": zero,
        "train": zero + whole,
        "degrees_of_freedom": zero,
        "learnt": learnt,
        "residual": zero,
    }


def _check_tail(spectrum: Spectrum, nu: FloatArray, least: FloatArray) -> None:
    """Refuse where the eigenvalues of the tail are not small beside ν: they would need to be known one by one."""
    if spectrum.tail <= 0.0:
        return
    with np.errstate(divide="ignore", over="ignore"):
        error = spectrum.tail * spectrum.largest / nu**2 / np.minimum(least, 1e300)
    if np.any(error > _TAIL):
        raise NotConverged(
            f"The spectrum of the features is known to degree {len(spectrum.xi) - 1} only, and at these sizes the rest "
            f"of it counts (by {float(np.max(error)):.1e} of n). Use fewer samples or features, more dimensions, or a "
            "larger ridge."
        )


@compiled
def _roots(
    xi: FloatArray, m: FloatArray, tail: float, rank: float, N: FloatArray, n: FloatArray, ridge: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Solve n − λ/ν₁ = df₁(ν) for ν at every point, by Newton's method in log ν kept inside a bracket.

    F(ν) = n − df₁ − λ/(ν(1 − df₁/N)) increases in ν, from where df₁ = min(n, N). For λ = 0 it is df₁ = min(n, N); for
    n = ∞ it is df₁ = N, whatever λ is.
    """
    nu, residual = np.zeros(n.size), np.zeros(n.size)
    for i in range(n.size):
        least = min(n[i], N[i])
        free = ridge[i] == 0.0 or np.isinf(n[i])
        if np.isinf(least) or (free and least >= rank):
            continue  # ν = 0: everything that features see is learnt
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
                value, change, size = least - df1, slope, least
            elif df1 >= least:
                value, change, size = -1.0, 0.0, 1.0  # left of the bracket
            else:
                r = 1.0 - df1 / N[i]
                pull = ridge[i] / (v * r)
                value = n[i] - df1 - pull
                change = slope + pull * (1.0 + (slope / N[i]) / r)
                size = n[i]
            residual[i] = abs(value) / size
            if value > 0.0:
                high = x
            else:
                low = x
            step = x - value / change if change > 0.0 else low - 1.0
            if not low < step < high:
                step = 0.5 * (low + high) if high < 700.0 or low > -700.0 else 0.0
            if abs(step - x) <= 4e-16 * max(1.0, abs(x)):
                break
            x = step
        nu[i] = np.exp(x)
    return nu, residual

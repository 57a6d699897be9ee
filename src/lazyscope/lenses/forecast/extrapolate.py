"""More rows than there are: the functions of a pool continued below the κ that it reaches, and a band for the cost.

Where df₁ comes near P the functions of a pool bend: df₁(κ) and G(κ) err together there, so that their errors cancel in
the forecast for n ≤ P rows, and not for more. So the part with df₁ < P/2 is kept, and continued from its end κ₀ by

    df₁ = df₁(κ₀) (κ/κ₀)^−s,      G = G(κ₀) [φ + (1 − φ)(κ/κ₀)^b],      0 ≤ φ < 1,  b > 0,

with s fitted over P/16 < df₁ < P/2. φ is the share of the error that stays for ever, as noise does; rows at hand seldom
tell it apart from a slower fall. So log G is averaged over all φ and b, alike beforehand, each weighted by how likely
it makes the table over P/64 (at least 10) < df₁ < P/2. The errors of log G(κ)/G(κ₀) are taken as Gaussian, with the
covariance of the jackknife and 2 % at each node for what no such curve follows.

All that supposes that G still falls at κ₀. The pool's own G, too, falls by luck: where y is noise, by √(2/P) at κ₀ (one
standard deviation). So the curves that end, G(max(κ, κ_m)), are averaged with the one that goes on, weighted by how
likely `chance` finds it that nothing more is learnt from κ_m on. M follows from G. To be continuous at n = P, the error
is multiplied by (pool's/continued error at P)^{P/n}.

The band has two parts: the jackknife over groups of rows, averages done again for each, and the spread of the weighted
curves around their average. It is then widened by what it missed in a rehearsal: quarters of the pool forecast n = P/2
and P, where the whole pool knows the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.lenses.forecast import curve
from lazyscope.lenses.forecast.chance import ends
from lazyscope.lenses.forecast.curve import Functions
from lazyscope.lenses.forecast.pool import Pool, pool

LEAST_ROWS = 80
"""A quarter of fewer rows rehearses nothing."""

_TRUSTED = 2.0  # df₁ < P/2
_FOR_ERRORS, _FOR_SIZES = 64.0, 16.0
_LEAST = 10.0  # degrees of freedom: with fewer, the error is near that of zero
_FEWEST = 6  # nodes of a fit
_SATURATED = 0.02  # s: from there on df₁ does not grow, as the kernel has no more directions
_POWERS, _FLOORS = np.linspace(0.05, 1.2, 24), np.linspace(0.0, 0.975, 40)
_MISFIT = 0.02  # of G, at each node: what no curve of the family follows
_STEP, _DEEPEST = 0.25, 40.0  # of log κ: between nodes, and at most
_QUARTERS = 4
_RIDGES = (1e-3, 1e-1)  # of the mean of the kernel's diagonal: where the rehearsal is done
_WIDEST = 4.0
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """The functions with their continuation, of which the last copy lies one spread of the curves higher; P."""

    functions: Functions
    rows: int

    def errors(
        self, own: Functions, n: FloatArray, N: FloatArray, ridge: FloatArray
    ) -> tuple[curve.Errors, FloatArray]:
        """Return the errors at n > P, and the spread of the ways to continue around their average, in log risk."""
        n, N, ridge = np.broadcast_arrays(n, N, ridge)
        P = np.full(n.shape, float(self.rows))
        found, here = curve.errors(self.functions, n, N, ridge), curve.errors(self.functions, P, N, ridge)
        known = curve.errors(own, P, N, ridge).risk
        with np.errstate(invalid="ignore"):
            joined = np.where(np.isfinite(here.risk), np.concatenate([known, known[:1]]) / here.risk, 1.0) ** (P / n)
            risk = found.risk * joined
            apart = np.abs(np.log(risk[-1] / risk[0]))
        return (
            curve.Errors(risk[:-1], found.degrees_of_freedom, found.kappa, found.residual),
            np.where(np.isfinite(apart), apart, 0.0),
        )


def continued(pool: Pool, most: float) -> Extrapolation:
    """Return the functions of a pool, continued until df₁ = `most`."""
    P = pool.rows
    first = int(np.argmax(pool.df1 < P / _TRUSTED))  # df₁ falls along the table
    x = np.log(pool.kappa) - np.log(pool.kappa[first])
    chosen = _window(pool.df1, first, P / _FOR_SIZES)
    s = float(np.clip(-np.polyfit(x[chosen], np.log(pool.df1[chosen]), 1)[0], _SATURATED, 1.0))
    deep = min(_DEEPEST, np.log(2.0 * most / pool.df1[first]) / s)
    below = -np.arange(_STEP, deep + _STEP, _STEP)[::-1]
    chosen = _window(pool.df1, first, max(P / _FOR_ERRORS, _LEAST))
    g = np.log(np.maximum(pool.G, _TINY))
    shape, spread = _averaged(x[chosen], g[..., chosen], below)
    if s == _SATURATED:  # a kernel of low rank: all its directions are known, and nothing is left to be learnt
        shape, spread = np.zeros_like(shape), np.zeros_like(spread)
    kept = g[..., first:]
    falls = np.concatenate([kept[..., :1] + shape, kept], axis=-1)
    spread = np.concatenate([spread, np.zeros(kept.shape[1:])], axis=-1)
    g, spread = _ended(falls, spread, *ends(pool, first), below.size - first)
    G = np.exp(np.concatenate([g, g[:1] + spread]))
    grows = s if s > _SATURATED else 0.0
    df1 = np.concatenate([pool.df1[first] * np.exp(-grows * below), pool.df1[first:]])
    gap = np.concatenate([grows * df1[: below.size], pool.gap[first:]])
    t = np.concatenate([pool.log_ridge[first] + below, pool.log_ridge[first:]])
    kappa = np.concatenate([pool.kappa[first] * np.exp(below), pool.kappa[first:]])
    functions = Functions.through(t, kappa, df1, gap, G, _smoothed(G, pool.M[:, :, -1:], kappa))
    return Extrapolation(functions, P)


def _window(df1: FloatArray, first: int, least: float) -> slice:
    """Return the nodes of a fit, from the first that is trusted to where df₁ is `least`."""
    return slice(first, max(first + _FEWEST, int(np.argmax(df1 < least))))


def _averaged(x: FloatArray, g: FloatArray, below: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average log G/G(κ₀) at x = `below` over curves weighted by log G = g, (copies, targets, nodes); x[0] = 0.

    Return it for every copy, (copies, targets, below), and its spread with all rows, (targets, below).
    """
    powers, floors = (grid.ravel()[:, None] for grid in np.meshgrid(_POWERS, _FLOORS, indexing="ij"))

    def curves(x: FloatArray) -> FloatArray:
        return np.asarray(np.log(floors + (1.0 - floors) * np.exp(powers * x)))

    fitted, beyond, seen = curves(x[1:]), curves(below), (g - g[..., :1])[..., 1:]
    mean, spread = np.empty((*g.shape[:2], below.size)), np.empty((g.shape[1], below.size))
    for k in range(g.shape[1]):
        left_out = seen[1:, k] - seen[1:, k].mean(axis=0)
        covariance = (1.0 - 1.0 / len(left_out)) * left_out.T @ left_out + _MISFIT**2 * np.eye(x.size - 1)
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        white, data = fitted @ root.T, seen[:, k] @ root.T
        fit = data @ white.T - 0.5 * np.sum(white**2, axis=1)  # log likelihood, but for a constant of each copy
        weight = np.exp(fit - fit.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        mean[:, k] = weight @ beyond
        spread[k] = np.sqrt(weight[0] @ (beyond - mean[0, k]) ** 2)
    return mean, spread


def _ended(
    falls: FloatArray, spread: FloatArray, nodes: NDArray[np.int64], weights: FloatArray, shift: int
) -> tuple[FloatArray, FloatArray]:
    """Average log G = `falls`, (copies, targets, κ), over the nodes where it may end, the last standing for nowhere.

    Return it, and its spread with all rows, (targets, κ), which that of the curve that goes on joins. `shift` is the
    place of the pool's first node.
    """
    ended = [falls]
    for node in nodes[:-1] + shift:
        flat = falls.copy()
        flat[..., :node] = falls[..., node : node + 1]
        ended.append(flat)
    order = np.concatenate([weights[..., -1:], weights[..., :-1]], axis=-1)
    mean = np.einsum("ctk,kctx->ctx", order, ended)
    around = (np.array([average[0] for average in ended]) - mean[0]) ** 2
    around[0] += spread**2
    return mean, np.sqrt(np.einsum("tk,ktx->tx", order[0], around))


def _smoothed(G: FloatArray, highest: FloatArray, kappa: FloatArray) -> FloatArray:
    """Return M = (1/u) ∫₀ᵘ G du, u = 1/κ, from its value at the highest κ; G is a power law between two nodes."""
    u = 1.0 / kappa
    area = -np.diff(G * u)
    growth = -np.diff(np.log(G * u))
    area = np.where(np.abs(growth) < 1e-6, (G * u)[..., :-1], area / np.where(growth == 0.0, 1.0, growth))
    area *= -np.diff(np.log(u))
    top = np.concatenate([highest, highest[:1]])
    whole = np.cumsum(area[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([(top * u[-1] + whole) / u[:-1], top], axis=-1)


def rehearsed(K: FloatArray, Y: FloatArray, largest: int | None = None) -> list[Pool]:
    """Return the pools of four quarters of the rows, drawn at random; K is kept. A sixteenth of its decomposition.

    `largest` cuts them to that many rows.
    """
    parts = np.array_split(np.random.default_rng(0).permutation(len(K)), _QUARTERS)
    kernels = ((K[np.ix_(part, part)], Y[part]) for part in (part[:largest] for part in parts))
    # a part in which a target is nowhere but zero has no error to tell of
    return [pool(kernel, targets) for kernel, targets in kernels if np.any(kernel) and np.all(np.any(targets, axis=0))]


def missed(quarters: list[Pool], own: Functions, diagonal: float) -> float:
    """Return the factor by which bands are to be widened: root mean square of errors over bands in the rehearsal.

    The largest where nothing was rehearsed.
    """
    if not quarters:
        return _WIDEST
    P = float(sum(quarter.rows for quarter in quarters))
    n, N, ridge = np.array([[P / 2.0], [P]]), np.array(np.inf), diagonal * np.array(_RIDGES)
    truth = curve.errors(own, n, N, ridge).risk[0]
    squares = []
    for quarter in quarters:
        found, apart = continued(quarter, P).errors(Functions.of(quarter), n, N, ridge)
        width = np.sqrt(curve.spread(found.risk) ** 2 + apart**2)
        squares.append(np.mean((np.log(found.risk[0] / truth) / np.maximum(width, 1e-6)) ** 2))
    return float(np.clip(np.sqrt(np.mean(squares)), 1.0, _WIDEST))

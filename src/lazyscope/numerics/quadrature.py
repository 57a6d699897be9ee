"""Gaussian expectations to rounding: composite Gauss–Legendre panels that end at every kink.

A plain Gauss–Hermite rule is wrong in the third digit on ReLU at 100 nodes; here each panel sees a smooth
function only, and the error is that of a 24-point Gauss rule on a panel of width one or less. `scipy.integrate.quad`
would do the same for one function at a time; here a rule is made once and serves whole arrays of them. Benchmark:
`limit_curves`, where activations are built anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter

PANEL_NODES = 24
MAX_DEGREE = 400
"""Largest Hermite degree: beyond it √φ(g) underflows before the functions he_k(g)√φ(g) have decayed."""
_MOST_NODES = 200_000
_MOST_HALVINGS = 5
_FARTHEST = 54.0  # √φ(g) underflows float64 just beyond

_LEGENDRE = np.polynomial.legendre.leggauss(PANEL_NODES)


def gaussian_nodes(
    kinks: Sequence[float],
    scale: float,
    degree: int,
    growth: float = 0.0,
    settles: float = np.inf,
    refine: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Return nodes g_q and weights w_q with E[F(g)] ≈ Σ_q w_q F(g_q) √φ(g_q), g ~ N(0,1).

    Exact to rounding for F(g) = σ(scale·g) he_k(g) √φ(g) with k ≤ degree, σ smooth between its kinks and
    σ(u)² ≤ c₀ exp(growth·u²/2), σ a polynomial to rounding beyond |u| = settles. One factor √φ is left to the
    caller: it keeps he_k√φ within float64.
    """
    reach = max(12.0 / np.sqrt(1.0 - growth * scale**2), 2.0 * np.sqrt(degree) + 10.0)
    reach = min(reach, _FARTHEST)
    smooth = min(1.0, 8.0 / np.sqrt(degree + 1.0)) / refine
    sharp = min(smooth, 2.0 / scale / refine)
    edge = min(settles / scale, reach)
    if 2.0 * edge / sharp * PANEL_NODES > _MOST_NODES:
        must = f"be at most about {_MOST_NODES / (48.0 * 12.0):.0f} for this activation"
        raise InvalidParameter.of("Activation", "s (the weight norm)", must, f"{scale:.4g}", "Scale it into σ.")
    breaks = np.array([0.0, -edge, edge, *(k / scale for k in kinks)])
    edges = np.unique(np.concatenate([[-reach, reach], breaks[np.abs(breaks) < reach]]))
    pieces = []
    for left, right in pairwise(edges.tolist()):
        width = sharp if max(abs(left), abs(right)) <= edge else smooth
        pieces.append(np.linspace(left, right, int(np.ceil((right - left) / width)) + 1))
    g, w = panels(np.concatenate([pieces[0][:1], *(piece[1:] for piece in pieces)]))
    return g, w * root_density(g)


def panels(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the composite Gauss–Legendre rule with 24 nodes between each two neighbours of `edges`.

    >>> x, w = panels(np.array([0.0, 1.0, 2.0]))
    >>> print(f"{w @ np.exp(x):.12f} {np.expm1(2.0):.12f}")
    6.389056098931 6.389056098931
    """
    t, w = _LEGENDRE
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * t).ravel(), (half * w).ravel()


def root_density(g: FloatArray) -> FloatArray:
    """√φ(g), φ the standard normal density."""
    return np.asarray(np.exp(-0.25 * g * g) / (2.0 * np.pi) ** 0.25)


def hermite_functions(g: FloatArray, degree: int) -> FloatArray:
    """he_k(g) √φ(g) for k = 0 … degree, shape (degree + 1, g.size), he_k = He_k/√k!.

    √(k+1) he_{k+1} = g he_k − √k he_{k−1}, run on the bounded functions he_k√φ so that nothing overflows.
    """
    table = np.empty((degree + 1, g.size))
    table[0] = root_density(g)
    if degree >= 1:
        table[1] = g * table[0]
    for k in range(1, degree):
        table[k + 1] = (g * table[k] - np.sqrt(k) * table[k - 1]) / np.sqrt(k + 1.0)
    return table


def piecewise_derivative(
    function: Callable[[FloatArray], FloatArray], kinks: Sequence[float], u: FloatArray
) -> FloatArray:
    """σ′(u) of a callable that is smooth between its kinks, by spectral differentiation.

    On each unit interval (cut at kinks, halved until the Chebyshev series has decayed) σ is interpolated and the
    interpolant differentiated: the relative error is near 1e-12 where σ is analytic. At a kink: from the right.

    >>> u = np.array([-1.3, 0.2, 2.0])
    >>> bool(np.allclose(piecewise_derivative(lambda u: np.sin(30 * u), (), u), 30 * np.cos(30 * u), atol=1e-9))
    True
    """
    flat = np.asarray(u, dtype=np.float64).ravel()
    lattice = np.arange(np.floor(flat.min()), np.floor(flat.max()) + 2.0)
    edges = np.unique(np.concatenate([lattice, [k for k in kinks if lattice[0] < k < lattice[-1]]]))
    panel = np.searchsorted(edges, flat, side="right") - 1
    result = np.empty_like(flat)
    for p in np.unique(panel):
        here = panel == p
        result[here] = _derivative_on(function, float(edges[p]), float(edges[p + 1]), flat[here], _MOST_HALVINGS)
    return result.reshape(np.shape(u))


def _derivative_on(
    function: Callable[[FloatArray], FloatArray], a: float, b: float, u: FloatArray, halvings: int
) -> FloatArray:
    """Differentiate on [a, b], in two halves where one polynomial does not resolve the function."""
    chebyshev = np.polynomial.chebyshev
    nodes = chebyshev.chebpts1(PANEL_NODES)
    series = chebyshev.chebfit(nodes, function(0.5 * (a + b) + 0.5 * (b - a) * nodes), PANEL_NODES - 1)
    if halvings and np.max(np.abs(series[-3:])) > 1e-14 * np.max(np.abs(series)):
        middle = 0.5 * (a + b)
        result = np.empty_like(u)
        for left, right, here in ((a, middle, u < middle), (middle, b, u >= middle)):
            if np.any(here):
                result[here] = _derivative_on(function, left, right, u[here], halvings - 1)
        return result
    return np.asarray(chebyshev.chebval((2.0 * u - a - b) / (b - a), chebyshev.chebder(series) * 2.0 / (b - a)))


def growth_rate(function: Callable[[FloatArray], FloatArray]) -> float:
    """Return the coefficient c of u²/2 in log σ², beyond any power and exponential of u; 0 below 0.01.

    Fitted exactly to the envelope of |σ| at |u| = 6, 12, 24, 48 as cu²/2 + βu + p log u + const.

    >>> growth_rate(np.exp), round(growth_rate(lambda u: np.exp(0.1 * u * u)), 6)
    (0.0, 0.4)
    """
    u = np.array([6.0, 12.0, 24.0, 48.0])
    window = u[:, None] + np.linspace(0.0, 4.0, 65)
    rates = []
    for sign in (-1.0, 1.0):
        envelope = np.maximum.accumulate(np.max(np.abs(function(sign * window)), axis=1))  # a decay is no growth
        basis = np.stack([u**2 / 2.0, u, np.log(u), np.ones(4)], axis=1)
        if not np.all(np.isfinite(envelope)):
            return float("inf")
        rates.append(2.0 * np.linalg.solve(basis, np.log(np.maximum(envelope, 1e-300)))[0])
    return float(max(rates)) if max(rates) > 0.01 else 0.0

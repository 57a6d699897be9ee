"""How likely it is that nothing more is learnt: a fall of G that is more than the luck of P rows, and where it ends.

G is looked at where df₁ = 1.5, 3, 6, … < P/2. Hypothesis m says that G falls up to the m-th of these nodes, and is flat
beyond. Where y is noise, the increments of log G have no mean and a covariance C that follows from the eigenvalues of
the kernel (`pool`); where G falls, log G is a random walk in u = log df₁ beforehand, with the drift −ρ and the variance
ρ² a unit of u. So with u cut off at the m-th node,

    log G − log G(first node) ~ N(−ρu, C + ρ² min(u, u′)),      ρ = 2 %, 6 %, 20 %, 60 %.

That nothing is learnt at all, or that something is, are alike beforehand; if something, then that it never ends and
that it ends at some node are alike, each node and each ρ as well as another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.lenses.forecast.pool import Pool

_FIRST = 1.5  # degrees of freedom: one is a constant's
_RATES = np.array([0.02, 0.06, 0.2, 0.6])
_LEAST = 1e-6  # of the variance of log G: what a kernel with equal eigenvalues, where chance does nothing, has left
_TINY = 1e-300


def ends(pool: Pool, last: int) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the nodes where learning may end, and their weights, (copies, targets, nodes): 1 in all.

    Nodes are in the order of growing df₁; the last one, df₁ = P/2, stands for a fall that goes on.
    """
    nodes = _octaves(pool.df1, last)
    g = np.log(np.maximum(pool.G[..., nodes], _TINY))
    seen = (g - g[..., :1])[..., 1:]
    if seen.shape[-1] == 0:
        return nodes, np.ones(g.shape)
    C = pool.chance[np.ix_(nodes, nodes)]
    C = (C - C[:1] - C[:, :1] + C[0, 0])[1:, 1:] + _LEAST * np.eye(len(nodes) - 1)
    u = np.log(pool.df1[nodes[1:]] / pool.df1[nodes[0]])
    evidence = np.stack([_evidence(seen, C, np.minimum(u, end)) for end in (0.0, *u)], axis=-1)
    prior = np.full(len(nodes), 0.25 / max(1, len(nodes) - 2))
    prior[0], prior[-1] = 0.5, 0.25
    weights = np.exp(evidence - evidence.max(axis=-1, keepdims=True)) * prior
    return nodes, weights / weights.sum(axis=-1, keepdims=True)


def _octaves(df1: FloatArray, last: int) -> NDArray[np.int64]:
    """Return the nodes nearest to df₁ = 1.5, 3, 6, …, none twice, and the last one that is trusted."""
    wanted = _FIRST * 2.0 ** np.arange(0.0, np.log2(df1[last] / _FIRST))
    nearest = [int(np.argmin(np.abs(np.log(df1[last:] / value)))) + last for value in wanted]
    return np.array([*dict.fromkeys(k for k in nearest if df1[k] < df1[last] / 1.4), last])


def _evidence(seen: FloatArray, C: FloatArray, u: FloatArray) -> FloatArray:
    """Return the log of the mean likelihood over ρ, (copies, targets)."""
    likelihoods = []
    for rate in _RATES:
        covariance = C + rate**2 * np.minimum(u[:, None], u)
        root = np.linalg.cholesky(covariance)
        white = np.linalg.solve(root, np.moveaxis(seen + rate * u, -1, 0).reshape(u.size, -1))
        likelihoods.append(-0.5 * np.sum(white**2, axis=0) - np.sum(np.log(np.diagonal(root))))
    whole = np.logaddexp.reduce(likelihoods, axis=0).reshape(seen.shape[:-1])
    return np.asarray(whole - np.log(len(_RATES)))

"""Overlaps of the weights with one another and with the target's directions: what a trained network has found."""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.training.sgd.pack import Pack

MOST = 64  # neurons: Q has N² numbers at each point of the trace and each step size


def recorded(pack: Pack, r: int) -> tuple[FloatArray, FloatArray] | None:
    """Return Q = WWᵀ, (models, N, N), and R = WUᵀ, (models, N, r), of models of one width; ∞ where one has diverged.

    In the basis of the law the directions u₁ … u_r are the first axes. There are none beyond `MOST` neurons, nor of
    squares with N > d, whose pack keeps d columns with the same WWᵀ in place of N neurons.
    """
    N = int(pack.N[0])
    if N > MOST or np.any(pack.N != N) or np.any(np.diff(pack.first)[pack.alive] != N):
        return None
    Q, R = np.full((len(pack), N, N), np.inf), np.full((len(pack), N, r), np.inf)
    for m in np.flatnonzero(pack.alive & pack.healthy()):
        W = pack.state[:, pack.columns(int(m))].T.astype(np.float64)
        Q[m], R[m] = W @ W.T, W[:, :r]
    return Q, R

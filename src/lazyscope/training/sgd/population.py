"""Risk of f = ⟨x, Gx⟩ + c on the whole population, in closed form: what σ = u² makes possible."""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.training.sgd.stream import Law


def risk(law: Law, G: FloatArray, c: float) -> float:
    """Return the normalised risk, 2d² flops.

    Quadratic target Σγ_i(x_i² − 1): 2‖diag γ − G‖² + (Tr G + c)². Mixture, C_y = diag(1 − yδ):
    the mean over y = ±1 of (y − Tr(GC_y) − c)² + 2 Tr(GC_yGC_y). A few directions, h of any degree: of
    ⟨x, Gx⟩ + c = Σ_ij G_ij(x_ix_j − δ_ij) + Tr G + c the target knows the first r rows and columns, ⟨G, E h(zzᵀ − I)⟩.
    """
    if law.index is not None:
        r = law.index.indices
        shared = float(np.sum(law.index.curvature * G[:r, :r]))
        rest = 2.0 * float(np.sum(G**2)) - 2.0 * shared + (float(np.trace(G)) + c) ** 2
        return (law.energy + rest) / law.energy
    if law.gamma is not None:
        error = G - np.diag(law.gamma)
        return float(2.0 * np.sum(error**2) + (np.trace(G) + c) ** 2) / law.energy
    assert law.delta is not None
    squares, total = G**2, 0.0
    for y in (-1.0, 1.0):
        C = 1.0 - y * law.delta
        total += 0.5 * ((y - float(np.diagonal(G) @ C) - c) ** 2 + 2.0 * float(C @ squares @ C))
    return total / law.energy

"""The forecast of a user's data on a whole grid: against one eigendecomposition, and against fitting every point."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import lazyscope as ls
from benchmarks.harness import Bound, Figure, footprint, interleaved

P = 2500
DECOMPOSITIONS = Bound(3.0)
AGAINST_FITS = Bound(100.0, at_least=True)
MATRICES = Bound(3.0)

SAMPLES = np.unique(np.geomspace(50, P, 20).round())
WIDTHS = np.unique(np.geomspace(50, 5000, 20).round())
RIDGES = np.geomspace(1e-4, 10.0, 10)


def _rows(d: int = 100) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((P, d)) * np.arange(1, d + 1.0) ** -0.5
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(P)


def _fits(points: list[tuple[int, int, float]]) -> float:
    """Draw features and fit them, a Cholesky factorisation of the smaller Gram matrix a point; tests are left out."""
    from scipy.linalg import cho_factor, cho_solve

    X, y = _rows()
    rng, total = np.random.default_rng(1), 0.0
    for n, N, ridge in points:
        U = np.maximum(X[:n] @ rng.standard_normal((X.shape[1], N)), 0.0) / np.sqrt(N)
        K = U.T @ U if n > N else U @ U.T
        K.flat[:: len(K) + 1] += ridge
        total += float(np.sum(cho_solve(cho_factor(K, overwrite_a=True), U.T @ y[:n] if n > N else y[:n])))
    return total


def forecast_grid(repeats: int = 3, measured: int = 40) -> Iterable[Figure]:
    """`ls.forecast` of 2,500 rows on a 20×20×10 grid of (n, N, λ), from the rows to the Dataset."""
    (X, y), relu = _rows(), ls.RandomFeatures("relu")
    K = X @ X.T + np.eye(P)
    rng = np.random.default_rng(2)
    points = [(int(rng.choice(SAMPLES)), int(rng.choice(WIDTHS)), float(rng.choice(RIDGES))) for _ in range(measured)]
    seconds = interleaved(
        {
            "grid": lambda: ls.forecast(X, y, relu, samples=SAMPLES, width=WIDTHS, ridge=RIDGES),
            "eigh": lambda: np.linalg.eigh(K),
            "fits": lambda: _fits(points),
        },
        repeats,
        warm_up=False,  # a round takes half a minute
    )
    what, total = f"forecast, P = {P:,}, 20×20×10 points", SAMPLES.size * WIDTHS.size * RIDGES.size
    yield Figure(what, seconds["grid"], seconds["eigh"], f"eigh of a full {P}×{P} matrix", DECOMPOSITIONS)
    note = f"{measured} of {total:,} points measured, times {total // measured}"
    peer = seconds["fits"] * total / measured
    yield Figure(what, seconds["grid"], peer, "one fit of every point", AGAINST_FITS, note=note)
    used = footprint(_SETUP, "ls.forecast(X, y, relu, samples=samples, width=widths, ridge=ridges)")
    yield Figure(f"{what}: memory", used.added, 8.0 * P * P, f"one {P}×{P} float64 matrix", MATRICES, unit="B")


_SETUP = """
import lazyscope as ls
from benchmarks.forecast import RIDGES as ridges, SAMPLES as samples, WIDTHS as widths, _rows
relu, (X, y) = ls.RandomFeatures("relu"), _rows()
ls.forecast(X[:50], y[:50], relu, samples=[20, 30], width=[10, 20], ridge=ridges)  # loads what is loaded on first use
"""

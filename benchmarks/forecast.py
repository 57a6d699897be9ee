"""The forecast of a user's data on a whole grid: against one eigendecomposition, and against fitting every point."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

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


def _fits(*, tested: bool) -> float:
    """Draw features and fit them by Cholesky on the smaller Gram matrix, at all (n, N) and one ridge.

    On SciPy's BLAS alone: beside NumPy's, two pools of threads would wait for one another. A fit by itself tells no
    error; where it is `tested`, that is on P rows, since so well a forecast from P rows knows one (docs/forecast.md).
    """
    from scipy.linalg.blas import dgemm, dgemv, dsyrk
    from scipy.linalg.lapack import dposv

    X, y = _rows()
    rng, total = np.random.default_rng(1), 0.0
    for n, N in product(SAMPLES.astype(int), WIDTHS.astype(int)):
        W = rng.standard_normal((N, X.shape[1])).T / np.sqrt(N)
        U = dgemm(1.0, X[:n].T, W, trans_a=1)
        np.maximum(U, 0.0, out=U)
        K = dsyrk(1.0, U, trans=n > N, lower=1)
        K.flat[:: len(K) + 1] += RIDGES[0]
        a = dposv(K, dgemv(1.0, U, y[:n], trans=1) if n > N else y[:n], lower=1, overwrite_a=1)[1]
        if not tested:
            total += float(np.sum(a))
            continue
        V = dgemm(1.0, X.T, W, trans_a=1)
        np.maximum(V, 0.0, out=V)
        total += float(np.mean((dgemv(1.0, V, a if n > N else dgemv(1.0, U, a, trans=1)) - y) ** 2))
    return total


def forecast_grid(repeats: int = 3) -> Iterable[Figure]:
    """`ls.forecast` of 2,500 rows on a 20×20×10 grid of (n, N, λ), from the rows to the Dataset."""
    (X, y), relu = _rows(), ls.RandomFeatures("relu")
    K = X @ X.T + np.eye(P)
    seconds = interleaved(
        {
            "grid": lambda: ls.forecast(X, y, relu, samples=SAMPLES, width=WIDTHS, ridge=RIDGES),
            "eigh": lambda: np.linalg.eigh(K),
            "fits": lambda: _fits(tested=False),
            "tested": lambda: _fits(tested=True),
        },
        repeats,
        warm_up=False,  # a round takes half a minute
    )
    what, ridges = f"forecast, P = {P:,}, 20×20×10 points", RIDGES.size
    yield Figure(what, seconds["grid"], seconds["eigh"], f"eigh of a full {P}×{P} matrix", DECOMPOSITIONS)
    tested = ridges * seconds["tested"] / seconds["grid"]
    note = f"all {SAMPLES.size * WIDTHS.size} sizes measured, times {ridges} ridges; {tested:.0f} with a test of each"
    yield Figure(what, seconds["grid"], ridges * seconds["fits"], "every point fitted once", AGAINST_FITS, note=note)
    used = footprint(_SETUP, "ls.forecast(X, y, relu, samples=samples, width=widths, ridge=ridges)")
    yield Figure(f"{what}: memory", used.added, 8.0 * P * P, f"one {P}×{P} float64 matrix", MATRICES, unit="B")


_SETUP = """
import lazyscope as ls
from benchmarks.forecast import RIDGES as ridges, SAMPLES as samples, WIDTHS as widths, _rows
relu, (X, y) = ls.RandomFeatures("relu"), _rows()
ls.forecast(X[:50], y[:50], relu, samples=[20, 30], width=[10, 20], ridge=ridges)  # loads what is loaded on first use
"""

"""Ridge regression at every size: a grid of (n, N, λ), a curve in any dimension, and all ridges of a simulation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import lazyscope as ls
from benchmarks.harness import Bound, Figure, interleaved

GRID_AGAINST_POINTS = Bound(200.0, at_least=True)
FAR_AGAINST_NEAR = Bound(1.0)
CURVE_AGAINST_EIGH = Bound(1.0)
PATH_AGAINST_FITS = Bound(5.0, at_least=True)

SIZES = np.geomspace(50.0, 5000.0, 100)
RIDGES = np.geomspace(1e-3, 10.0, 20)


class PointByPoint:
    """The printed equation, n − λ/ν₁ = df₁(ν₂), by SciPy's `brentq` in log ν₂ at each point, and the risk there.

    It has a meaning where ν₁ > 0, that is df₁ < N, so that a first `brentq` finds where to begin; sums over the
    eigenspaces are NumPy's.
    """

    def __init__(self, target: ls.HarmonicTarget, points: int) -> None:
        from lazyscope.activations.zonal import spectrum

        rng = np.random.default_rng(0)
        self.xi, self.m, self.tail, _ = spectrum(ls.Activation("relu"), target.d)
        self.energy = np.zeros(len(self.xi))
        self.energy[: target.energies.size] = target.energies
        self.tau2 = target.noise**2
        self.points = [(rng.choice(SIZES), rng.choice(SIZES), rng.choice(RIDGES)) for _ in range(points)]

    def run(self) -> list[float]:
        """Return the risk at every point."""
        from scipy.optimize import brentq

        xi, m, tail, found = self.xi, self.m, self.tail, []

        def df1(x: float) -> float:
            v = np.exp(x)
            return float(m @ (xi / (xi + v)) + tail / v)

        for N, n, ridge in self.points:

            def left(x: float, N: float = N, n: float = n, ridge: float = ridge) -> float:
                used = df1(x)
                return float(n - used - ridge / (np.exp(x) * (1.0 - used / N)))

            start = brentq(lambda x, N=N, n=n: df1(x) - min(n, N), -40.0, 20.0, xtol=1e-13)
            v = np.exp(brentq(left, start + 1e-9, 30.0, xtol=1e-13))
            learnt = xi / (xi + v)
            used, df2 = float(m @ learnt) + tail / v, float(m @ learnt**2)
            upsilon = ((used - df2) ** 2 + df2 * (N - df2)) / (n * (N - df2))
            missed = self.energy @ (1.0 - learnt) ** 2
            missed += (used - df2) / (N - df2) * (self.energy @ (learnt * (1.0 - learnt)))
            found.append(float((missed + self.tau2 * upsilon) / (1.0 - upsilon)))
        return found


def every_size_grid(repeats: int = 5, measured: int = 200) -> Iterable[Figure]:
    """A 100×100×20 grid of (N, n, λ), all of `ls.limit` on a harmonic target, against `brentq` at each point."""
    target, relu = ls.HarmonicTarget(30, np.array([0.0, 0.5, 0.5]), noise=0.3), ls.RandomFeatures("relu")
    peer = PointByPoint(target, measured)
    theirs = np.array(peer.run())
    ours = np.array([float(ls.limit(target, relu, width=N, samples=n, ridge=lam).risk) for N, n, lam in peer.points])
    gap = float(np.max(np.abs(ours / theirs - 1.0)))
    assert gap < 1e-9, f"the two differ by {gap:.1e}"
    seconds = interleaved(
        {"grid": lambda: ls.limit(target, relu, width=SIZES, samples=SIZES, ridge=RIDGES), "points": peer.run}, repeats
    )
    total = SIZES.size**2 * RIDGES.size
    what = "limit at given sizes, 100×100×20 points of (N, n, λ)"
    note = f"{measured} of {total:,} points measured, times {total // measured}"
    peer_seconds = seconds["points"] * total / measured
    extra = {"gap_to_the_peer": gap}
    yield Figure(
        what, seconds["grid"], peer_seconds, "brentq, the printed equation", GRID_AGAINST_POINTS, note=note, extra=extra
    )


def _curve(d: int, regime: Any) -> object:
    """A curve of 1,000 points, from the problem to the Dataset; no spectrum is kept from the last time."""
    from lazyscope.limits.spectral import harmonic

    harmonic._kernel.cache_clear()
    samples = np.geomspace(10.0, 1e6, 1000)
    target = ls.HarmonicTarget(d, np.array([0.0, 0.5, 0.5]), noise=0.3)
    return ls.limit(target, regime("relu"), width=np.inf, samples=samples, ridge=1e-3)


def every_size_curve(repeats: int = 15, curves: int = 10) -> Iterable[Figure]:
    """A curve of 1,000 values of n at d = 10⁵, against the same at d = 30 and against one eigendecomposition.

    Ten curves in a row are one measurement: the two dimensions differ by less than a busy machine's noise in 5 ms.
    """
    A = np.random.default_rng(0).standard_normal((450, 450))
    A = A + A.T
    pieces = {
        "far": lambda: [_curve(100_000, ls.RandomFeatures) for _ in range(curves)],
        "near": lambda: [_curve(30, ls.RandomFeatures) for _ in range(curves)],
        "eigh": lambda: np.linalg.eigh(A),
    }
    seconds = interleaved(pieces, repeats)
    what = "kernel ridge regression, 1,000 values of n, d = 10⁵"
    far, near = seconds["far"] / curves, seconds["near"] / curves
    yield Figure(what, far, near, "the same, d = 30", FAR_AGAINST_NEAR)
    yield Figure(what, far, seconds["eigh"], "eigh of 450×450", CURVE_AGAINST_EIGH)


def every_size_path(repeats: int = 3, n: int = 800, N: int = 1500, ridges: int = 50) -> Iterable[Figure]:
    """A simulation with fifty ridges, drawn, fitted and tested, against a Cholesky fit for each on given features."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.linalg.blas import dgemv, dsyrk

    target, relu = ls.HarmonicTarget(24, np.array([0.0, 0.5, 0.5]), noise=0.3), ls.RandomFeatures("relu")
    shifts = np.geomspace(1e-3, 1e3, ridges)
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((n, 24)), rng.standard_normal((N, 24))
    rows = np.asfortranarray(np.maximum(X @ W.T, 0.0).T)
    y = rng.standard_normal(n)

    def fits() -> list[np.ndarray]:
        found = []
        for shift in shifts:
            K = dsyrk(1.0, rows, trans=1, lower=1)
            K.flat[:: n + 1] += N * shift
            alpha = cho_solve(cho_factor(K, lower=True, overwrite_a=True, check_finite=False), y)
            found.append(dgemv(1.0, rows, alpha))
        return found

    def path() -> object:
        return ls.simulate(target, relu, width=N, samples=n, ridge=shifts)

    seconds = interleaved({"path": path, "fits": fits}, repeats)
    what = f"simulate, n = {n}, N = {N}, {ridges} ridges"
    note = "the peer neither draws nor tests"
    yield Figure(what, seconds["path"], seconds["fits"], f"{ridges} Cholesky fits", PATH_AGAINST_FITS, note=note)

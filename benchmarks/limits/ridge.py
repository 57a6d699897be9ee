"""Random-features ridge regression: the limit on a grid, and all ridges of a simulation, against point by point."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import lazyscope as ls
from benchmarks.harness import Bound, Figure, interleaved

GRID_AGAINST_POINTS = Bound(200.0, at_least=True)
PATH_AGAINST_FITS = Bound(5.0, at_least=True)

PSI = np.geomspace(0.1, 10.0, 100)
RIDGES = np.geomspace(1e-3, 10.0, 20)


class DampedFixedPoint:
    """The paper's two equations for (ν₁, ν₂) = i(b₁, b₂), iterated with damping ½ until a step is below 1e-12."""

    def __init__(self, points: int) -> None:
        sigma = ls.Activation("relu")
        rng = np.random.default_rng(0)
        self.zeta2, self.b_star2 = (sigma.b1 / sigma.b_star) ** 2, sigma.b_star**2
        self.points = [(rng.choice(PSI), rng.choice(PSI), rng.choice(RIDGES)) for _ in range(points)]

    def run(self) -> list[float]:
        """Return −χ = b₁b₂ at every point."""
        from scipy.optimize import fixed_point

        found = []
        for psi1, psi2, ridge in self.points:
            psi, eta, zeta2 = np.array([psi1, psi2]), np.sqrt(psi1 * psi2 * ridge / self.b_star2), self.zeta2

            def damped(b: np.ndarray, psi: np.ndarray = psi, eta: float = eta, zeta2: float = zeta2) -> np.ndarray:
                other = b[::-1]
                return 0.5 * b + 0.5 * psi / (eta + other + zeta2 * other / (1.0 + zeta2 * b[0] * b[1]))

            b = fixed_point(damped, np.sqrt(psi), xtol=1e-12, maxiter=100_000, method="iteration")
            found.append(float(b[0] * b[1]))
        return found


def ridge_grid(repeats: int = 5, measured: int = 200) -> Iterable[Figure]:
    """A 100×100×20 grid of (ψ₁, ψ₂, λ), all of `ls.limit`, against a fixed point for each of its points."""
    from lazyscope.limits.ridge.fixed_point import solve

    target, relu, peer = ls.LinearTarget(noise=0.5), ls.RandomFeatures("relu"), DampedFixedPoint(measured)
    _ = relu.activation.lambda_tilde  # cached from here on, as for any user who asks twice
    # Both are right: at the peer's points both find the same, to what its last step leaves.
    psi1, psi2, ridge = np.array(peer.points).T
    ours = solve(np.sqrt(peer.zeta2), psi1, psi2, ridge / peer.b_star2)
    gap = float(np.max(np.abs(ours.point.c / peer.run() - 1.0)))
    assert gap < 1e-9, f"the two differ by {gap:.1e}"
    seconds = interleaved(
        {"grid": lambda: ls.limit(target, relu, psi1=PSI, psi2=PSI, ridge=RIDGES), "points": peer.run}, repeats
    )
    total = PSI.size**2 * RIDGES.size
    what = "limit of ridge regression, 100×100×20 points"
    note = f"{measured} of {total:,} points measured, times {total // measured}"
    extra = {"largest_residual": float(np.max(ours.residual)), "gap_to_the_peer": gap}
    against = "damped fixed point, SciPy, 1e-12"
    peer_seconds = seconds["points"] * total / measured
    yield Figure(what, seconds["grid"], peer_seconds, against, GRID_AGAINST_POINTS, note=note, extra=extra)


def ridge_path(repeats: int = 3, n: int = 800, N: int = 2000, ridges: int = 50) -> Iterable[Figure]:
    """Fifty ridges from one tridiagonal form, against a Cholesky fit for each, both on the smaller Gram matrix."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.linalg.blas import dgemv, dsyrk

    from lazyscope.numerics.ridge import ridge_path as path

    rng = np.random.default_rng(0)
    Phi, Y = rng.standard_normal((n, N)), rng.standard_normal((n, 1))
    rows = np.asfortranarray(Phi.T)
    shifts = np.geomspace(1e-3, 1e6, ridges)

    def fits() -> list[np.ndarray]:
        found = []
        for shift in shifts:
            K = dsyrk(1.0, rows, trans=1, lower=1)
            K.flat[:: n + 1] += shift
            alpha = cho_solve(cho_factor(K, lower=True, overwrite_a=True, check_finite=False), Y[:, 0])
            found.append(dgemv(1.0, rows, alpha))
        return found

    gap = float(np.max(np.abs(path(Phi, Y, shifts)[0][:, :, 0].T - fits())))
    assert gap < 1e-10, f"the two differ by {gap:.1e}"
    seconds = interleaved({"path": lambda: path(Phi, Y, shifts), "fits": fits}, repeats, warm_up=False)
    what = f"ridge path, n = {n}, N = {N}, {ridges} ridges"
    against = f"{ridges} Cholesky fits"
    yield Figure(what, seconds["path"], seconds["fits"], against, PATH_AGAINST_FITS, extra={"gap_to_the_peer": gap})

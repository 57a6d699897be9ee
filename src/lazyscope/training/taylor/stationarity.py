"""Whether a point is an approximate second-order stationary point, and what Corollary 3 then says (Bai & Lee 2019).

At W let g = ⟨∇L_λ(W), W⟩ and κ = λ_min(∇²L_λ(W)), by Lanczos. As the mean of ∇²L_λ[W⋆Σ′, W⋆Σ′] is at least κ‖W⋆‖²_F,
the proof of Theorem 4 bounds the risk by what was measured at the point itself,

    L_λ(W) − OPT  ≤  ½ (g − κ‖W⋆‖²_F + error + bending − 6λ‖W‖⁸_{2,4}),

`bending` the mean second derivative of λ‖W‖⁸ along W⋆Σ′. At a minimum g = 0 and κ ≥ 0: no worse than W⋆, up to terms
that fall with m and λ. At W = 0, where g = 0 too, κ < 0: the saddle has a way down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.training.taylor.landscape import clean_error
from lazyscope.training.taylor.model import Array
from lazyscope.training.taylor.risk import Point
from lazyscope.training.taylor.signs import norm_24, regularizer_over_signs

_TOLERANCE = 1e-4  # of the smallest eigenvalue, relative to it or to the largest in size that Lanczos saw


@dataclass(frozen=True)
class Stationarity:
    """L_λ, ‖∇L_λ‖_F, ⟨∇L_λ, W⟩ and the smallest eigenvalue of ∇²L_λ at W, with the residual of its eigenvector."""

    risk: float
    gradient: float
    along: float
    smallest: float
    residual: float


def stationarity(points: Sequence[Point], seed: int = 0) -> Stationarity:
    """Measure the mean of the risk over points: one, or one for each of several Σ at one W. Needs `derivatives=2`.

    Each step of Lanczos costs 6nmd flops a point.

    >>> from lazyscope.training.taylor.risk import Risk
    >>> from lazyscope.training.taylor.model import TaylorModel
    >>> model = TaylorModel.symmetric(20, 2, "relu3", np.random.default_rng(0))
    >>> risk = Risk(model, np.eye(2), np.array([1.0, -1.0]), orders=2)
    >>> point = stationarity([risk.at(np.zeros((20, 2)), derivatives=2)])
    >>> point.gradient, point.smallest < 0  # the saddle at W = 0
    (0.0, True)
    """
    if not points:
        raise InvalidParameter.of("stationarity", "points", "hold at least one point", "none")
    gradient = np.mean([point.gradient() for point in points], axis=0, dtype=np.float64)
    smallest, residual = _smallest(points, gradient.shape, seed)
    return Stationarity(
        float(np.mean([point.value for point in points])),
        float(np.linalg.norm(gradient)),
        float(np.sum(gradient * points[0].W)),
        smallest,
        residual,
    )


def _smallest(points: Sequence[Point], shape: tuple[int, ...], seed: int) -> tuple[float, float]:
    """Return λ_min of the mean Hessian and ‖Hv − λv‖."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def product(v: Array) -> Array:
        V = v.reshape(shape)
        return np.asarray(np.mean([point.hessian_product(V) for point in points], axis=0, dtype=np.float64).ravel())

    size = int(np.prod(shape))
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    start = np.random.default_rng(seed).standard_normal(size)
    try:
        values, vectors = eigsh(operator, 1, which="SA", tol=_TOLERANCE, v0=start, ncv=min(size, 48), maxiter=400)
    except ArpackNoConvergence:
        raise NotConverged(
            f"Lanczos did not find the smallest eigenvalue of a Hessian of {size} dimensions in 400 restarts. "
            "Use a smaller width."
        ) from None
    v = vectors[:, 0]
    return float(values[0]), float(np.linalg.norm(product(v) - values[0] * v))


def certificate(measured: Stationarity, clean: Point, W_star: Array, lam: float) -> float:
    """Bound L_λ(W) − OPT by what was measured at W: gradient, smallest eigenvalue, error term and regulariser.

    For the clean risk it is exact; for the network it leaves the coupling out, which falls with m.
    """
    error, _ = clean_error(clean, W_star)
    bending = regularizer_over_signs(clean.W, lam, W_star)
    pull = measured.along - measured.smallest * float(np.sum(np.square(W_star)))
    return 0.5 * (pull + error + bending - 6.0 * lam * norm_24(clean.W) ** 8)

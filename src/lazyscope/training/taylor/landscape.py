"""Landscape: both sides of Lemma 1, Theorem 2 and Corollary 3 of Bai & Lee (2019) at given W and W⋆.

With OPT = L^Q(W⋆), Σ′ random signs, and C = 378 (14/5)³ the constant that the proof of Corollary 3 gives:

    Lemma 1      E_Σ′ ∇²L^Q(W)[W⋆Σ′, W⋆Σ′]  ≤  ⟨∇L^Q(W), W⟩ − 2(L^Q(W) − OPT) + error
    Theorem 2    the same for the randomised risk L(W) = E_Σ L(WΣ) of the network
    Corollary 3  the same for L_λ = L + λ‖W‖⁸_{2,4}, with − λ‖W‖⁸ + Cλ‖W⋆‖⁸ on the right.

So a point without a way down, be it of first or second order, is no worse than W⋆. The left sides are closed forms in
Σ′; what Monte Carlo adds is their check. Lemma 1's error is one term of the left side, the second of its proof:

    (1/n) Σ_i ℓ″_i (1/m) Σ_r σ″(w_{0,r}·x_i)² (w_r·x_i)² (w⋆_r·x_i)²  ≤  B_x⁴ max σ″² ‖W‖²_{2,4} ‖W⋆‖²_{2,4}/m,

and the network's is this and its distance to the quadratic model, in the two sides.

`stationarity` and `certificate` say what that means for one point W. With g = ⟨∇L_λ(W), W⟩ and κ = λ_min(∇²L_λ(W)), by
Lanczos, the mean of ∇²L_λ[W⋆Σ′, W⋆Σ′] is at least κ‖W⋆‖²_F, so that the proof of Theorem 4 bounds the risk by what was
measured at the point itself,

    L_λ(W) − OPT  ≤  ½ (g − κ‖W⋆‖²_F + error + bending − 6λ‖W‖⁸_{2,4}),

`bending` the mean second derivative of λ‖W‖⁸ along W⋆Σ′. At a minimum g = 0 and κ ≥ 0: no worse than W⋆, up to terms
that fall with m and λ. At W = 0, where g = 0 too, κ < 0: the saddle has a way down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lazyscope.activations.derivatives import derivative
from lazyscope.checks import FloatArray, whole_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.training.taylor.model import Array
from lazyscope.training.taylor.risk import Point, Risk
from lazyscope.training.taylor.signs import flipped, norm_24, random_signs, regularizer_over_signs

COROLLARY_3 = 378.0 * (14.0 / 5.0) ** 3
"""C of Corollary 3: from p³q ≤ αp⁴/4 + 27q⁴/4α³ with α = 5/14 (App. B.5)."""
_TOLERANCE = 1e-4  # of the smallest eigenvalue, relative to it or to the largest in size that Lanczos saw


@dataclass(frozen=True)
class Inequality:
    """Both sides of a statement left ≤ right + error; what the statement says is that `error` falls with m.

    `bound` is the proof's own bound of the error, NaN where that has hidden factors. `stderr` is the standard error of
    left − right over signs Σ, zero for the clean risk; `sampled` is the left side by Monte Carlo over Σ′ instead of its
    closed form, and `sampled_stderr` the standard error of their difference.
    """

    left: float
    right: float
    error: float
    bound: float
    stderr: float
    sampled: float
    sampled_stderr: float

    @property
    def slack(self) -> float:
        """Right side less left side; the convexity of ℓ makes it positive."""
        return self.right + self.error - self.left

    @property
    def holds(self) -> bool:
        """Whether the statement holds, up to rounding."""
        return self.slack >= -1e-10 * (abs(self.left) + abs(self.right) + abs(self.error))


@dataclass(frozen=True)
class Landscape:
    """Lemma 1 (`clean`), Theorem 2 (`network`) and Corollary 3 (`regularized`) at one point, and OPT."""

    claim: ClassVar[str] = "report landscape"
    theorem: ClassVar[str] = "Lemma 1, Theorem 2, Corollary 3"
    citations: ClassVar[str] = "bai2020beyond"

    clean: Inequality
    network: Inequality
    regularized: Inequality
    OPT: float


def landscape(
    risk: Risk, W: Array, W_star: Array, rng: np.random.Generator, *, signs: int = 16, lam: float = 0.0
) -> Landscape:
    """Return both sides of Lemma 1, Theorem 2 and Corollary 3 (with λ = `lam`) on the samples and loss of `risk`.

    The network's risk is averaged over `signs` pairs ±Σ, and the left sides are sampled over twice as many Σ′:
    2·signs + 2 expansions to second order.

    >>> from lazyscope import SparseParity
    >>> from lazyscope.training.taylor.construction import express, monomials
    >>> from lazyscope.training.taylor.model import TaylorModel
    >>> problem, rng = SparseParity(4), np.random.default_rng(0)
    >>> model = TaylorModel.symmetric(200, 4, "relu3", rng, Bx=problem.Bx)
    >>> W_star = express(model, monomials(problem), rng)
    >>> sides = landscape(Risk(model, *problem.sample(50, rng)), 0.5 * W_star, W_star, rng, lam=1e-4)
    >>> sides.clean.holds, sides.network.holds, sides.regularized.holds
    (True, True, True)
    """
    signs = whole_number(signs, "landscape", "signs", least=2)
    quadratic, network = replace(risk, orders=2, lam=0.0), replace(risk, orders=None, lam=0.0)
    clean, OPT = quadratic.at(W, derivatives=2), quadratic.at(W_star, derivatives=0).value
    error, bound = clean_error(clean, W_star)
    at_clean = _sides([clean], W_star, rng, each=2 * signs)
    draws = (random_signs(risk.model.m, rng) for _ in range(signs))
    at_network = _sides(
        (network.at(W, Sigma, derivatives=2) for draw in draws for Sigma in (draw, -draw)), W_star, rng, each=1
    )
    lemma = at_clean.inequality(OPT, error, bound)
    # left − right of the network, over that of the clean risk: what the coupling costs
    apart = abs(float(np.mean(at_network.left - at_network.right(OPT))) - (lemma.left - lemma.right))
    theorem = at_network.inequality(OPT, error + apart, float("nan"))
    return Landscape(lemma, theorem, _regularized(theorem, W, W_star, lam), OPT)


def clean_error(clean: Point, W_star: Array) -> tuple[float, float]:
    """Return the error term of Lemma 1 at W, exactly, and the bound that its proof gives."""
    model, here = clean.risk.model, clean.expansion
    curved = clean.risk._loss.curvature(clean.risk.y, here.values) * here.along_over_signs(W_star)
    # max σ″² over neurons and samples: the proof goes on to bound it by O(d), up to logarithms
    steepest = float(np.max(derivative(model.sigma, model.W0 @ clean.risk.X.T, 2) ** 2))
    bound = model.Bx**4 * steepest * norm_24(clean.W) ** 2 * norm_24(W_star) ** 2 / model.m
    return float(np.mean(curved)), bound


@dataclass(frozen=True, eq=False)
class _Sides:
    """Return for each Σ: the closed left side, ⟨∇L, W⟩, L, and left sides at single Σ′, (Σ, Σ′)."""

    left: FloatArray
    along: FloatArray
    value: FloatArray
    tried: FloatArray

    def right(self, OPT: float) -> FloatArray:
        return np.asarray(self.along - 2.0 * (self.value - OPT))

    def inequality(self, OPT: float, error: float, bound: float) -> Inequality:
        gaps = (self.left - self.right(OPT)).reshape(-1, min(2, len(self.left))).mean(axis=1)  # Σ and −Σ together
        stderr = float(np.std(gaps, ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
        off = (self.tried - self.left[:, None]).ravel()
        sampled_stderr = float(np.std(off, ddof=1) / np.sqrt(len(off)))
        left, right, sampled = (float(np.mean(values)) for values in (self.left, self.right(OPT), self.tried))
        return Inequality(left, right, error, bound, stderr, sampled, sampled_stderr)


def _sides(points: Iterable[Point], W_star: Array, rng: np.random.Generator, each: int) -> _Sides:
    """Return both sides at all points, visited one by one, as each holds tables of m × n numbers."""
    rows = []
    for point in points:
        tried = [point.curvature(flipped(W_star, random_signs(len(W_star), rng))) for _ in range(each)]
        along = float(np.sum(np.multiply(point.gradient(), point.W, dtype=np.float64)))
        rows.append((point.curvature_over_signs(W_star), along, point.value, tried))
    left, along_all, value, tried_all = zip(*rows, strict=True)
    return _Sides(np.array(left), np.array(along_all), np.array(value), np.array(tried_all))


def _regularized(theorem: Inequality, W: Array, W_star: Array, lam: float) -> Inequality:
    """Corollary 3: λ‖W‖⁸ adds its own second derivative left, and 8λ‖W‖⁸ − 2λ‖W‖⁸ right, beside what is printed."""
    bent, norm, norm_star = regularizer_over_signs(W, lam, W_star), norm_24(W) ** 8, norm_24(W_star) ** 8
    return replace(
        theorem,
        left=theorem.left + bent,
        sampled=theorem.sampled + bent,
        right=theorem.right + (8.0 - 2.0 - 1.0) * lam * norm + COROLLARY_3 * lam * norm_star,
    )


@dataclass(frozen=True)
class Stationarity:
    """L_λ, ‖∇L_λ‖_F, ⟨∇L_λ, W⟩ and the smallest eigenvalue of ∇²L_λ at W, with the residual of its eigenvector."""

    risk: float
    gradient: float
    along: float
    smallest: float
    residual: float


def stationarity(points: Sequence[Point]) -> Stationarity:
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
    smallest, residual = _smallest(points, gradient.shape)
    return Stationarity(
        float(np.mean([point.value for point in points])),
        float(np.linalg.norm(gradient)),
        float(np.sum(gradient * points[0].W)),
        smallest,
        residual,
    )


def _smallest(points: Sequence[Point], shape: tuple[int, ...]) -> tuple[float, float]:
    """Return λ_min of the mean Hessian and ‖Hv − λv‖."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def product(v: Array) -> Array:
        V = v.reshape(shape)
        return np.asarray(np.mean([point.hessian_product(V) for point in points], axis=0, dtype=np.float64).ravel())

    size = int(np.prod(shape))
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
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

"""Six ways to learn from n samples, side by side: kernels of a wide network, its quadratic model, and networks.

Kernels (m = ∞, in closed form): ridge regression with the tangent kernel K₁, best of a few ridges in hindsight, which
favours it; its largest margin; ridge regression with the kernel K₂ of quadratic features. Trained, m finite: the
quadratic model f^Q; the network under random signs (Bai & Lee 2019, §3.1); the network from a small initialisation, all
of W₀ + W free to turn, here W₀ = 0. These three share loss, descent and regulariser λ‖W‖⁸_{2,4}, with Theorem 4's
λ = λ₀/‖W⋆‖⁸_{2,4}: W⋆, from Theorem 7, gives lengths and no direction.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.numerics.hard_margin import kernel_margin
from lazyscope.numerics.krylov import kernel_ridge
from lazyscope.population.infinite_width import InfiniteWidthKernel
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.training.taylor.construction import express, monomials, neuron_length
from lazyscope.training.taylor.descent import descend
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import Risk
from lazyscope.training.taylor.signs import flipped, norm_24, random_signs

Target = SparseParity | RidgeMonomial
Learner = Callable[[Target, FloatArray, FloatArray, FloatArray, int, np.random.Generator], FloatArray]
"""(problem, X, y, X_test, m, rng) → predictions, (candidates, n_test): where there are several, the best counts."""

SIGMA = Activation("relu3")
LAMBDA = {"logistic": 3e-3, "square": 3e-4}
"""λ₀, the regulariser at W⋆: without noise a square loss can be brought to zero, and a margin has to stop somewhere."""

_RIDGES = (1e-4, 1e-2, 1e-1, 1.0)  # over K's diagonal; 1e-4 interpolates, whatever the test can see
_JITTER = 1e-4  # the same for a margin: samples of the hypercube may coincide, with noise under both labels


def _ridge(order: int) -> Learner:
    def learn(
        problem: Target, X: FloatArray, y: FloatArray, X_test: FloatArray, m: int, rng: np.random.Generator
    ) -> FloatArray:
        kernel = InfiniteWidthKernel(SIGMA, order, problem.Bx)
        K = kernel(X)
        fits = kernel_ridge(K, y, [ridge * K[0, 0] for ridge in _RIDGES], tolerance=1e-8)
        return fits.predict(kernel(X_test, X)).T

    return learn


def _margin(
    problem: Target, X: FloatArray, y: FloatArray, X_test: FloatArray, m: int, rng: np.random.Generator
) -> FloatArray:
    kernel = InfiniteWidthKernel(SIGMA, 1, problem.Bx)
    K = kernel(X)
    return kernel_margin(K, y, _JITTER * K[0, 0]).predict(kernel(X_test, X))[None]


def _quadratic(
    problem: Target, X: FloatArray, y: FloatArray, X_test: FloatArray, m: int, rng: np.random.Generator
) -> FloatArray:
    risk, reach = _risk(problem, X, y, m, rng, orders=2)
    W = descend(risk, reach, rng)
    return risk.model.piece(2, W, X_test)[None]


def _randomized(
    problem: Target, X: FloatArray, y: FloatArray, X_test: FloatArray, m: int, rng: np.random.Generator
) -> FloatArray:
    risk, reach = _risk(problem, X, y, m, rng, orders=None)
    W = descend(risk, reach, rng, signs=True)
    # one draw of signs for each hundred test inputs: the risk is a mean over signs
    parts = np.array_split(X_test, max(1, len(X_test) // 100))
    return np.concatenate([risk.model.network(flipped(W, random_signs(m, rng)), part) for part in parts])[None]


def _trained(
    problem: Target, X: FloatArray, y: FloatArray, X_test: FloatArray, m: int, rng: np.random.Generator
) -> FloatArray:
    drawn = TaylorModel.symmetric(m, problem.d, SIGMA, rng, Bx=problem.Bx, dtype=np.float32)
    model = TaylorModel(np.zeros_like(drawn.W0), drawn.a, SIGMA, problem.Bx)
    length = neuron_length(problem, SIGMA, m)
    loss = _loss(problem)
    risk = Risk(model, X, y, loss, orders=None, lam=LAMBDA[loss] / (m * length**4) ** 2)
    return model.network(descend(risk, sqrt(m) * length, rng), X_test)[None]


LEARNERS: dict[str, Learner] = {
    "NTK": _ridge(1),
    "NTK, max margin": _margin,
    "quadratic kernel": _ridge(2),
    "quadratic model": _quadratic,
    "randomised network": _randomized,
    "trained network": _trained,
}
"""By name; the first three take no width."""

KERNELS = tuple(LEARNERS)[:3]


def error(problem: Target, values: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the error of each row: misclassified inputs, or squared error over that of the best constant.

    >>> error(SparseParity(3), np.array([[0.2, -3.0], [1.0, 1.0]]), np.array([1.0, -1.0]))
    array([0. , 0.5])
    """
    if problem.classification:
        return np.asarray(np.mean(np.where(values < 0, -1.0, 1.0) != wanted, axis=1))
    return np.asarray(np.mean((values - wanted) ** 2, axis=1) / np.var(wanted))


def _loss(problem: Target) -> str:
    return "logistic" if problem.classification else "square"


def _risk(
    problem: Target, X: FloatArray, y: FloatArray, m: int, rng: np.random.Generator, orders: int | None
) -> tuple[Risk, float]:
    """L_λ in float32 and ‖W⋆‖_F."""
    model = TaylorModel.symmetric(m, problem.d, SIGMA, rng, Bx=problem.Bx, dtype=np.float32)
    W_star = express(model, monomials(problem), rng)
    loss = _loss(problem)
    risk = Risk(model, X, y, loss, orders, LAMBDA[loss] / norm_24(W_star) ** 8)
    return risk, float(np.linalg.norm(W_star))

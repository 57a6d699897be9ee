"""What a forecast is checked by: fits on n rows of a table, tested on rows that they have not seen.

    f = c + N^−½ Σ a_j σ(⟨w_j, x⟩ + b_j),   Σ(y − f)² + λ‖a‖² over n rows drawn at random,   N = ∞: the kernel's.

Features are those of `lazyscope.estimators`, drawn anew for each fit; nothing of the forecast is used but the closed
kernel at N = ∞. Errors are shares of the best constant's, classes one against the rest and added, as in the forecast.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.data.preparing import whole
from lazyscope.lenses.data.table import Table
from lazyscope.lenses.forecast.kernels import gram
from lazyscope.lenses.forecast.of_table import BIAS
from lazyscope.lenses.forecast.rows import targets
from lazyscope.regimes import RandomFeatures
from lazyscope.weights import generator

MOST_TESTED = 1000
"""Rows that a fit is tested on at most."""

_SMALLEST = 1e-10  # of the mean of a kernel's diagonal: what stands for λ → 0


def held_out(
    table: Table, regime: Any, *, samples: int, width: float, ridge: float, draws: int = 4, seed: int = 0
) -> FloatArray:
    """Return the error of each draw, (draws,), as a share of the best constant's.

    A draw has rows, weights and test rows of its own: nN·min(n, N) flops, or n³/3 at N = ∞.

    >>> from lazyscope.lenses.data.table import example
    >>> errors = held_out(example("diabetes"), RandomFeatures("relu"), samples=300, width=100, ridge=1.0)
    >>> bool(0.4 < errors.mean() < 0.6)
    True
    """
    X, (Y, _) = whole(table), targets(table.y, len(table.y), table.task)
    n = whole_number(samples, "held_out", "samples", least=2)
    if n >= len(X):
        raise InvalidParameter.of("held_out", "samples", "leave rows to test on", f"{n} of {len(X)} rows")
    scale = 1.0 / np.sqrt(np.mean(np.einsum("nd,nd->n", X, X)))  # of all rows, as in the forecast
    unit = float(np.sum(np.var(Y, axis=0)))
    errors = []
    for rng in _draws(draws, seed):
        rows = rng.permutation(len(X))[: n + MOST_TESTED]
        seen, new = rows[:n], rows[n:]
        fit = _kernel if np.isinf(width) else _features
        residual = fit(regime, X[seen], Y[seen], X[new], width, ridge, float(scale), rng) - Y[new]
        errors.append(float(np.sum(residual**2)) / len(new) / unit)
    return np.array(errors)


def _draws(draws: int, seed: int) -> Iterator[np.random.Generator]:
    for k in range(whole_number(draws, "held_out", "draws")):
        yield generator(seed, k)


def _features(
    regime: Any, X: FloatArray, Y: FloatArray, X_new: FloatArray, width: float, ridge: float, scale: float, rng: Any
) -> FloatArray:
    """Fit N random features by the estimator, whose λ is a mean's."""
    from lazyscope.estimators.random_features import RandomFeaturesRegressor

    if not isinstance(regime, RandomFeatures):
        must = "be inf for the tangent kernel"
        raise InvalidParameter.of("held_out", "width", must, f"{width:g}")
    state = int(rng.integers(2**31))
    model = RandomFeaturesRegressor(
        int(width), regime.activation, ridge=ridge / len(X), scale=scale, bias=BIAS, random_state=state
    )
    return np.asarray(model.fit(X, Y).predict(X_new)).reshape(len(X_new), -1)


def _kernel(
    regime: Any, X: FloatArray, Y: FloatArray, X_new: FloatArray, width: float, ridge: float, scale: float, rng: Any
) -> FloatArray:
    """Solve f = c + K_new α,  (K + λ)α = Y − c,  1ᵀα = 0."""
    from scipy.linalg import solve

    n = len(X)
    K = gram(regime, np.concatenate([X, X_new]), scale, BIAS)
    λ = max(ridge, _SMALLEST * float(np.mean(np.diagonal(K))))
    both = solve(K[:n, :n] + λ * np.eye(n), np.column_stack([np.ones(n), Y]), assume_a="pos")
    c = both[:, 1:].sum(axis=0) / both[:, 0].sum()
    return np.asarray(K[n:, :n] @ (both[:, 1:] - both[:, :1] * c) + c)

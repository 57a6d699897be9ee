"""Bands of forecasts on tables: how often they hold the truth, over forty pools of each, up to four times their rows.

Truths are means of fits on rows of the whole table, so that a pool is at most a quarter of it where the table is small.
"""

import numpy as np
import pytest
from sklearn import datasets

import lazyscope as ls
from lazyscope.lenses.forecast.kernels import gram
from lazyscope.lenses.forecast.rows import Rows
from lazyscope.lenses.forecast.verb import SURE, Forecaster

pytestmark = pytest.mark.slow

RIDGES = np.array([1e-3, 0.1, 1.0])  # of the mean of the kernel's diagonal
POOLS, WIDTH, BIAS = 40, 100, 0.3


def california():
    """Lognormal columns, a kink, noise that depends on the row."""
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((3000, 8))
    X = np.hstack([np.exp(0.7 * Z[:, :4]), Z[:, 4:]])
    noise = 0.3 * rng.standard_normal(3000) * (1.0 + 0.5 * np.abs(Z[:, 2]))
    return X, np.log1p(X[:, 0] * X[:, 1]) + np.abs(X[:, 4] - 0.5 * X[:, 5]) + noise


def faces():
    """Ten people in twelve hidden directions, seen through 200 pixels."""
    rng = np.random.default_rng(6)
    who = rng.integers(10, size=3000)
    hidden = rng.standard_normal((10, 12))[who] + 0.7 * rng.standard_normal((3000, 12))
    X = np.tanh(hidden @ rng.standard_normal((12, 200)) / 3.0) + 0.1 * rng.standard_normal((3000, 200))
    return X, np.where(who < 5, 1.0, -1.0)


def friedman(make, noise):
    return lambda: make(n_samples=3000, noise=noise, random_state=1)


TABLES = {  # rows of a pool
    "breast cancer": (lambda: datasets.load_breast_cancer(return_X_y=True), 120),
    "diabetes": (lambda: datasets.load_diabetes(return_X_y=True), 100),
    "wine": (lambda: datasets.load_wine(return_X_y=True), 44),
    "Friedman 1": (friedman(datasets.make_friedman1, 1.0), 200),
    "Friedman 2": (friedman(datasets.make_friedman2, 100.0), 200),
    "Friedman 3": (friedman(datasets.make_friedman3, 0.1), 200),
    "california-like": (california, 300),
    "faces-like": (faces, 200),
}


def ridge_errors(train, test, y, z, ridges):
    """Test errors of ridge regression with features in columns."""
    left, s, right = np.linalg.svd(train, full_matrices=False)
    seen, along = test @ right.T, left.T @ y
    return [np.mean((seen @ (s / (s * s + λ) * along) - z) ** 2) for λ in ridges]


def truths(X, y, K, n, scale, ridges, rng):
    """Errors of the kernel and of 100 ReLU features on n rows, a constant among them: means, (2, ridge)."""
    draws = int(np.clip(8000 / n, 20, 120)) if len(y) < 1000 else 24
    level, found = 10.0 * np.mean(np.diagonal(K)), []
    for _ in range(draws):
        rows = rng.permutation(len(y))[: n + 1000]
        train, test, mean = rows[:n], rows[n:], y[rows[:n]].mean()
        w, U = np.linalg.eigh(K[np.ix_(train, train)] + level)
        seen, along = (K[np.ix_(test, train)] + level) @ U, U.T @ (y[train] - mean)
        kernel = [np.mean((seen @ (along / (w + λ)) - y[test] + mean) ** 2) for λ in ridges]
        Z = scale * X[rows] @ rng.standard_normal((X.shape[1], WIDTH)) + BIAS * rng.standard_normal(WIDTH)
        F = np.column_stack([np.maximum(Z, 0.0) / np.sqrt(WIDTH), np.full(len(rows), np.sqrt(level))])
        found.append([kernel, ridge_errors(F[:n], F[n:], y[train] - mean, y[test] - mean, ridges)])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("name", TABLES)
def test_bands_hold_the_truth(name, keep):
    load, P = TABLES[name]
    X, y = load()
    X, y = X - X.mean(axis=0), (y - y.mean()) / y.std()
    X = X / X.std(axis=0)
    K = gram(ls.RandomFeatures("relu"), X, "auto", BIAS)
    level, ridges = 10.0 * np.mean(np.diagonal(K)), RIDGES * np.mean(np.diagonal(K))
    n = np.array([P // 4, P // 2, P, *([4 * P] if P >= 80 and len(y) > 4.5 * P else [])])
    rng, scale = np.random.default_rng(3), 1.0 / np.sqrt(np.mean(np.sum(X**2, axis=1)))
    truth = np.array([truths(X, y, K, int(size), scale, ridges, rng) for size in n])  # (n, N, ridge)
    off, inside = [], []
    for _ in range(POOLS):
        rows = rng.choice(len(y), P, replace=False)
        mine = Rows(K[np.ix_(rows, rows)] + level, (y[rows] - y[rows].mean())[:, None], None, "")
        found = Forecaster.of(mine, float(n[-1])).at(n[:, None, None], np.array([np.inf, WIDTH])[:, None], ridges)
        off.append(np.log(found["risk"][0] / truth))
        inside.append(np.abs(off[-1]) < SURE * found["stderr"][0])
    coverage = np.mean(inside, axis=0)
    keep(
        rows=P, of=len(y), samples=n.tolist(), widths=["inf", WIDTH], ridges=RIDGES.tolist(), pools=POOLS,
        coverage=coverage.round(3).tolist(), bias=np.mean(off, axis=0).round(3).tolist(),
        scatter=np.std(off, axis=0).round(3).tolist(),
        median_and_mean_worst=[float(np.median(np.abs(off))), float(np.mean(np.max(np.abs(off), axis=(1, 2, 3))))],
    )  # fmt: skip
    # forty pools know a share of 0.9 to 0.05; points of a table go together, as they share the pools
    assert np.mean(coverage[..., 1:]) >= 0.8 and np.min(coverage[..., 1:]) >= 0.7
    assert np.mean(coverage[..., 0]) >= 0.6  # nearly no ridge: docs/forecast.md

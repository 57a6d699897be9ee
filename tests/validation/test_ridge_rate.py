"""Random-features ridge regression approaches its limit at the declared rate, d = 100 … 800: risk and training."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.evidence.run import Run
from lazyscope.limits.ridge.regression import CLAIMS
from lazyscope.problems import LinearTarget

pytestmark = pytest.mark.slow

POINTS = [(0.5, 1.5, 0.0), (1.0, 1.25, 0.5), (0.3, 0.6, 0.8), (0.75, 0.5, 1.0), (2.0, 1.0, 0.5), (1.5, 0.5, 0.2)]
RIDGES = (1e-3, 0.1)
DRAWS = {100: 192, 200: 96, 400: 48, 800: 24}


@pytest.mark.parametrize("inputs", ["sphere", "gaussian"])
def test_ridge_regression_approaches_its_limit(inputs, keep):
    """One draw lies at a distance ∝ d^−½ of the limit, in root mean square; the mean over draws at a distance ∝ 1/d."""
    relu = ls.RandomFeatures("relu")
    mean, scatter = {}, {}  # of (simulated − limit)/limit: name → (size, point)
    for name in ("risk", "train"):
        mean[name], scatter[name] = np.empty((2, len(DRAWS), len(POINTS) * len(RIDGES)))
    for i, (d, draws) in enumerate(DRAWS.items()):
        rows = {"risk": [], "train": []}
        for psi1, psi2, noise in POINTS:
            target = LinearTarget(noise=noise, inputs=inputs)
            sizes = {"width": (round(psi1 * d),), "samples": (round(psi2 * d),), "d": (d,), "ridge": RIDGES}
            found = [Run("simulate", target, relu, sizes, number=k, seed=1).compute() for k in range(draws)]
            theory = ls.limit(target, relu, psi1=psi1, psi2=psi2, ridge=RIDGES)
            for name, table in rows.items():
                table.append(np.array([row[name] for row in found]) / theory[name].values - 1.0)
        for name, table in rows.items():
            every = np.concatenate(table, axis=1)  # (draw, point)
            mean[name][i], scatter[name][i] = every.mean(axis=0), np.sqrt(np.mean(every**2, axis=0))
    d, draws = (np.array(list(values)) for values in (DRAWS.keys(), DRAWS.values()))
    x = np.log(d) - np.mean(np.log(d))
    report = {"points": POINTS, "ridges": RIDGES, "d": d.tolist(), "draws": draws.tolist()}
    for name in ("risk", "train"):
        slopes = x @ np.log(scatter[name]) / (x @ x)
        stderr = scatter[name] / np.sqrt(draws)[:, None]
        report[name] = {
            "slope_of_one_draw": slopes.round(3).tolist(),
            "slope_of_one_draw_mean": float(slopes.mean()),
            "d_times_mean_deviation": (d[:, None] * mean[name]).round(2).tolist(),
            "mean_deviation_in_standard_errors": (mean[name] / stderr).round(2).tolist(),
        }
    keep(**report)
    for name in ("risk", "train"):
        slopes = np.array(report[name]["slope_of_one_draw"])
        # The log of a root mean square over m draws has standard error 1/√(2m): the slope of one point
        error = np.sqrt(np.sum((x / (x @ x)) ** 2 / (2 * draws)))
        # the two ridges of a draw go together: six independent points
        assert abs(slopes.mean() + CLAIMS[0].rate) < 3 * error / np.sqrt(len(POINTS)) + 0.05, name
        assert np.all(np.abs(slopes + CLAIMS[0].rate) < 4 * error + 0.05), name
        # 1/d for the mean, with a constant that d = 100 bounds for the sizes beyond
        stderr = scatter[name] / np.sqrt(draws)[:, None]
        bound = 4 * stderr[1:] + (np.abs(mean[name][0]) + 4 * stderr[0]) * (d[0] / d[1:, None])
        assert np.all(np.abs(mean[name][1:]) < bound), name

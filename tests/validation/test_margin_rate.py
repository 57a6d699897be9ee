"""Simulated margins and errors approach their limits as d^(−1/2), d = 100, 200, 400. Minutes: `make validate`."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.evidence.registry import find
from lazyscope.evidence.run import Run
from lazyscope.problems import LinearLabels
from lazyscope.regimes import GaussianFeatures, IsotropicFeatures, RandomFeatures

pytestmark = pytest.mark.slow

DIMENSIONS = np.array([100, 200, 400])
DRAWS = 16
LOGISTIC, SIGN = LinearLabels(4.0), LinearLabels(1.0, "sign")
NOISY = RandomFeatures("relu", surrogate=True)
POINTS = {
    "relu, logistic, (1.5, 2)": (LOGISTIC, RandomFeatures("relu"), 1.5, 2.0),
    "relu, logistic, (3, 2)": (LOGISTIC, RandomFeatures("relu"), 3.0, 2.0),
    "relu, logistic, (6, 2)": (LOGISTIC, RandomFeatures("relu"), 6.0, 2.0),
    "relu, sign, (2, 1)": (SIGN, RandomFeatures("relu"), 2.0, 1.0),
    "tanh, probit, (1, 0.5)": (LinearLabels(1.5, "probit"), RandomFeatures("tanh"), 1.0, 0.5),
    "noisy linear, logistic, (3, 2)": (LOGISTIC, NOISY, 3.0, 2.0),
    "noisy linear, sign, (1.5, 1)": (SIGN, NOISY, 1.5, 1.0),
    "isotropic, sign, (1, 1)": (SIGN, IsotropicFeatures(), 1.0, 1.0),
    "isotropic, logistic, (2, 1)": (LOGISTIC, IsotropicFeatures(), 2.0, 1.0),
    "spectrum, logistic, (1.2, 1)": (LOGISTIC, GaussianFeatures([0.2, 1.0, 3.0]), 1.2, 1.0),
}


def sizes(d, psi1, psi2):
    return {"width": (round(psi1 * d),), "samples": (round(psi2 * d),), "d": (d,)}


def test_margins_and_errors_approach_their_limits_at_the_declared_rate(keep):
    x = np.log(DIMENSIONS) - np.mean(np.log(DIMENSIONS))
    measured, slopes = {}, {"margin": [], "error": []}
    for name, (problem, regime, psi1, psi2) in POINTS.items():
        theory = ls.limit(problem, regime, psi1=psi1, psi2=psi2, method="margin")
        declared = find("limit", problem, regime, "margin").rate
        rows = {
            d: [
                Run("simulate", problem, regime, sizes(d, psi1, psi2), "margin", number=k, seed=11).compute()
                for k in range(DRAWS)
            ]
            for d in DIMENSIONS.tolist()
        }
        measured[name] = {}
        for variable, found in slopes.items():
            drawn = np.array([[float(row[variable]) for row in rows[d]] for d in DIMENSIONS.tolist()])
            distance = np.sqrt(np.mean((drawn - float(theory[variable])) ** 2, axis=1))
            slope = float(x @ np.log(distance) / (x @ x))
            found.append(slope + declared)
            last = drawn[-1]
            measured[name][variable] = {
                "limit": float(theory[variable]),
                "mean at d = 400": float(last.mean()),
                "stderr": float(last.std(ddof=1) / np.sqrt(DRAWS)),
                "rms distance": distance.tolist(),
                "slope": slope,
            }
    pooled = {variable: float(np.mean(values)) for variable, values in slopes.items()}
    keep(dimensions=DIMENSIONS.tolist(), draws=DRAWS, points=measured, slope_minus_declared=pooled)
    # the log of a root mean square over 16 draws has standard error 1/√32: a slope of three of them 0.18
    one = 1 / np.sqrt(2 * DRAWS) / np.linalg.norm(x)
    for variable, values in slopes.items():
        assert np.max(np.abs(values)) < 3.5 * one + 0.05, (variable, values)
        assert abs(pooled[variable]) < 3 * one / np.sqrt(len(POINTS)) + 0.05, (variable, pooled)
        for name in POINTS:
            entry = measured[name][variable]
            gap = abs(entry["mean at d = 400"] - entry["limit"])
            assert gap < 3.5 * entry["stderr"] + 1 / 400, (name, variable, gap)  # the mean is O(1/d) away itself

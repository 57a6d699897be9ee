"""One giant step and ridge regression on drawn data."""

import numpy as np
import pytest

import lazyscope as ls


def test_many_samples_and_no_ridge_is_exact():
    """Ten draws of both, each with its own step: two means; the fit of N = 20 to 20,000 adds N/n = 0.1 per cent."""
    problem, regime = ls.MultiIndex(12, "relu", noise=0.1), ls.GiantStep("softplus", 1.0, 200)
    found = ls.simulate(problem, regime, width=20, samples=20_000, ridge=0, draws=10, seed=1)
    exact = ls.exact(problem, regime, width=20, draws=10, seed=2)
    error = np.hypot(float(found.stderr), float(exact.stderr))
    assert abs(float(found.risk - exact.risk)) < 3.0 * error + 0.001


def test_directions_anywhere_and_several_of_them():
    u = np.linalg.qr(np.random.default_rng(0).standard_normal((10, 2)))[0].T
    turned = ls.MultiIndex(10, "committee-relu", indices=2, direction=u)
    plain = ls.MultiIndex(10, "committee-relu", indices=2)
    regime, ask = ls.GiantStep("relu", 1.0, 500), {"width": 30, "samples": 3000, "ridge": 0.01, "draws": 6}
    one, other = (ls.simulate(problem, regime, **ask) for problem in (turned, plain))
    assert abs(float(one.risk - other.risk)) < 3.0 * np.hypot(float(one.stderr), float(other.stderr))
    assert float(one.risk) < 1.0 - plain.energies[1] / plain.energy  # more than a linear function


def test_a_population_is_not_drawn():
    with pytest.raises(ls.InvalidParameter, match="finite for a simulation"):
        ls.simulate(ls.MultiIndex(5, "relu"), ls.GiantStep(), width=3, samples=10, ridge=0.1)

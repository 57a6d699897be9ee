"""The largest gap between NT and NN over all spectra, by a search that knows nothing of its formula."""

import numpy as np
import pytest
from scipy.optimize import minimize

import lazyscope as ls
from lazyscope.limits.gap import largest_gap, widest_apart


def gap(b, width):
    problem = ls.QuadraticTarget(b)
    rho = width / len(b)
    return float(ls.limit(problem, ls.NeuralTangent(), rho=rho).risk - ls.limit(problem, ls.Trained(), rho=rho).risk)


@pytest.mark.parametrize("width", [1, 3, 7])
def test_the_largest_gap_is_attained_and_no_search_exceeds_it(width):
    d, rng = 8, np.random.default_rng(width)
    bound = float(largest_gap(np.array(width / d)))
    assert gap(widest_apart(d, width), width) == pytest.approx(bound, abs=1e-12)
    found = [
        -minimize(lambda root: -gap(root**2 + 1e-12, width), rng.standard_normal(d), method="Powell").fun
        for _ in range(6)
    ]
    assert max(found) <= bound + 1e-9
    assert max(found) == pytest.approx(bound, abs=1e-3)


def test_equal_eigenvalues_have_no_gap():
    assert [gap(np.ones(12), N) for N in (1, 6, 11)] == pytest.approx([0.0] * 3, abs=1e-12)

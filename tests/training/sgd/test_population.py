"""The closed form of the risk of a quadratic function, against samples."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.training.sgd import population
from lazyscope.training.sgd.stream import draw, law_of

PROBLEMS = [ls.QuadraticTarget.exponential(7), ls.GaussianMixture(np.linspace(-0.5, 0.6, 7))]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_it_is_the_mean_squared_error(problem):
    law, rng = law_of(problem), np.random.default_rng(1)
    G = rng.standard_normal((7, 7)) / 7
    G, c, n = G + G.T, 0.3, 400_000
    X, y = draw(law, n, rng)
    losses = (np.einsum("ni,ij,nj->n", X, G, X) + c - y).astype(np.float64) ** 2 / law.energy
    assert abs(population.risk(law, G, c) - losses.mean()) < 4 * losses.std() / np.sqrt(n)


def test_the_target_itself_has_no_risk_and_zero_has_risk_one():
    law = law_of(PROBLEMS[0])
    assert population.risk(law, np.diag(law.gamma), -law.gamma.sum()) == pytest.approx(0.0, abs=1e-15)
    assert population.risk(law, np.zeros((7, 7)), 0.0) == pytest.approx(1.0, rel=1e-12)

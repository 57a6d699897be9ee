"""Descent on the population risk: closed forms of the flow, SGD with large batches, and what n samples add to a fit."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import weights
from lazyscope.population import descent, random_features
from lazyscope.population.descent.linear import TangentDescent

TARGET = ls.QuadraticTarget.exponential(20, seed=100)
MIXTURE = ls.GaussianMixture.three_level(20, seed=0)


def test_the_square_has_two_routes():
    """Its own gradients in d² numbers, against those of the kernels in N²."""
    own = descent._in_its_basis(MIXTURE)
    rng = np.random.default_rng(0)
    a, W = 0.1 * rng.standard_normal(7), rng.standard_normal((7, 20)) / 4.0
    by_kernels = descent.PopulationRisk(descent.environments(own), ls.Activation("square"))
    for mine, theirs in zip(descent.SquareRisk(own)(a, W), by_kernels(a, W), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("problem", "regime"),
    [
        (MIXTURE, ls.NeuralTangent()),
        (MIXTURE, ls.Trained()),
        (TARGET, ls.NeuralTangent("relu")),
        (TARGET, ls.Trained("relu")),
    ],
    ids=str,
)
def test_sgd_with_large_batches_is_descent(problem, regime):
    """Batches of 2,000 leave a noise of some 1e-3: the path itself, offset and second layers included, is the same."""
    N, protocol = 10, ls.SGD(steps=300, batch=2000, step_sizes=(0.02,), decay=(), test=20_000)
    end = ls.simulate(problem, regime, width=N, protocol=protocol)
    rng = weights.generator(0, 0, N)
    if isinstance(regime, ls.NeuralTangent):
        still = TangentDescent.of(problem, regime, N, rng).risk([(300, 0.02)])
    else:
        (still,) = descent.network_risks(problem, regime, N, rng, [6.0])
    # the risk of other activations is that of 20,000 samples: a standard error of √(2/20,000), 1 %
    assert float(end.risk) == pytest.approx(still, rel=0.04 if regime.activation.name == "relu" else 0.01)


def test_the_term_of_a_fit():
    """The mean over draws of a least-squares fit, Gaussian features and an independent residual: exact for every n."""
    N, n, draws, rng = 8, 40, 400, np.random.default_rng(1)
    added = []
    for _ in range(draws):
        X, r = rng.standard_normal((n, N)), rng.standard_normal(n)
        added.append(float(np.sum(np.linalg.lstsq(X, r, rcond=None)[0] ** 2)))
    error = np.std(added, ddof=1) / np.sqrt(draws)
    assert abs(np.mean(added) - random_features.added(1.0, N, n)) < 4.0 * error
    assert abs(np.mean(added) - N / n) > 2.0 * error  # and not N/n
    with pytest.raises(ls.NoTheorem, match="n > N \\+ 1"):
        random_features.added(1.0, 10, 11)

"""What the figure of a mixture with any Σ draws: whitening, and what its dots are held to."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.lazy.covariance import predicted, stretched
from lazyscope.limits.spectral.gaussian import mixture_at_finite_d


def test_whitening_changes_nothing_for_networks_and_the_best_weights():
    problem = stretched(24)
    twin = ls.GaussianMixture(problem.whitened)
    for regime in (ls.Trained(), ls.RandomFeatures(weights="optimal")):
        before, after = (ls.limit(one, regime, rho=0.5).risk.item() for one in (problem, twin))
        assert np.isclose(before, after, rtol=1e-12)
    before, after = (ls.limit(one, ls.RandomFeatures(), rho=0.5).risk.item() for one in (problem, twin))
    assert before > after + 0.01  # isotropic weights see another problem


@pytest.mark.parametrize("weights", [None, "optimal"])
def test_random_features_have_the_mean_that_the_spectrum_says(weights):
    """Over 60 draws, within 3 standard errors and half of what a neuron changes; the limit is up to 20 of them away."""
    problem, regime = stretched(24), ls.RandomFeatures(weights=weights)
    for N in (12, 48):
        drawn = ls.exact(problem, regime, width=N, draws=60)
        (expected, *_), left_out = predicted(problem, regime, N, 1)
        assert abs(float(drawn.risk) - expected) < 3.0 * float(drawn.stderr) + 0.5 * left_out


def test_what_theorems_5_and_6_leave_out_at_finite_d_is_known():
    problem = stretched(24)
    for regime in (ls.NeuralTangent(), ls.Trained()):
        for N in (1, 6, 12, 24, 30):
            exact = ls.exact(problem, regime, width=N, draws=2).risk_draws.values.ravel()
            np.testing.assert_allclose(predicted(problem, regime, N, 2)[0], exact, rtol=1e-10)


def test_a_spectrum_of_matrices_is_refused():
    mixture = ls.GaussianMixture(0.1 * np.ones((3, 3)))
    with pytest.raises(ls.NoTheorem, match="diagonal"):
        mixture_at_finite_d(mixture, np.full(3, 1 / 3))

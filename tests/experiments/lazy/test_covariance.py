"""What the figure of a mixture with any Σ draws: whitening, and the finite-size term that its verdict allows."""

import numpy as np

import lazyscope as ls
from lazyscope.experiments.lazy.covariance import stretched


def test_whitening_changes_nothing_for_networks_and_the_best_weights():
    problem = stretched(24)
    twin = ls.GaussianMixture(problem.whitened)
    for regime in (ls.Trained(), ls.RandomFeatures(weights="optimal")):
        before, after = (ls.limit(one, regime, rho=0.5).risk.item() for one in (problem, twin))
        assert np.isclose(before, after, rtol=1e-12)
    before, after = (ls.limit(one, ls.RandomFeatures(), rho=0.5).risk.item() for one in (problem, twin))
    assert before > after + 0.01  # isotropic weights see another problem


def test_the_allowance_bounds_what_theorem_6_leaves_out():
    """R − R_limit for NN, whose exact form is known, is at most R(1 − R)‖Δ̃‖² at every width."""
    problem = stretched(24)
    largest = np.max(np.abs(problem.whitened))
    for width in (1, 6, 12, 24):
        exact = ls.exact(problem, ls.Trained(), width=width).risk.item()
        limit = ls.limit(problem, ls.Trained(), rho=width / 24).risk.item()
        assert 0.0 < exact - limit < limit * (1.0 - limit) * largest**2

"""Limit and exact side by side where neither Σ nor Γ is the identity, which the contract's examples leave out."""

import numpy as np
import pytest

import lazyscope as ls


def anisotropic(d):
    """Σ, Δ and Γ diagonal with limiting spectra, all different."""
    q = (np.arange(d) + 0.5) / d
    return ls.GaussianMixture((1 + q[::-1]) * 1.2 / np.sqrt(d), 1 + q), 0.5 + q**2


@pytest.mark.parametrize("case", ["relu, Γ", "softplus", "square, optimal"])
def test_theorem_4_with_every_covariance_its_own(case):
    d = 200
    mixture, Gamma = anisotropic(d)
    regime = {
        "relu, Γ": ls.RandomFeatures("relu", weights=Gamma),
        "softplus": ls.RandomFeatures("softplus"),
        "square, optimal": ls.RandomFeatures(weights="optimal"),
    }[case]
    exact = ls.exact(mixture, regime, width=d, draws=12)
    theory = float(ls.limit(mixture, regime, rho=1.0).risk)
    # the mean over draws deviates by O(1/d), here with a constant below 1, besides its standard error
    assert abs(float(exact.risk) - theory) < 4 * float(exact.stderr) + 1 / d


@pytest.mark.parametrize("regime", ["NT, given weights", "NN"])
def test_theorems_5_and_6_with_any_sigma_at_rate_one(regime):
    distance = []
    for d in (100, 400):
        mixture, _ = anisotropic(d)
        if regime == "NN":
            pair = ls.exact(mixture, ls.Trained(), width=d // 2), ls.limit(mixture, ls.Trained(), rho=0.5)
        else:
            W = np.random.default_rng(0).standard_normal((d, d // 2))
            fixed = ls.NeuralTangent(weights=ls.FixedWeights(W))
            pair = ls.exact(mixture, fixed), ls.limit(mixture, fixed)
        distance.append(float(pair[0].risk - pair[1].risk))
    # for given weights nothing is averaged: the distance is the O(1/d) term itself, and its next order is 1/d of it
    assert distance[0] / distance[1] == pytest.approx(4.0, rel=0.1)

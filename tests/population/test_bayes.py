"""The exact Bayes floor against Monte Carlo of the log-likelihood ratio itself."""

import numpy as np
import pytest

import lazyscope as ls


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bayes_by_monte_carlo(seed):
    rng = np.random.default_rng(seed)
    d, n = 6, 200_000
    A, C = rng.standard_normal((2, d, d))
    mixture = ls.GaussianMixture(0.1 * (C + C.T), np.eye(d) + 0.2 * A @ A.T)
    plus, minus = mixture.class_covariance(1), mixture.class_covariance(-1)
    losses = []
    for y, law in [(1.0, plus), (-1.0, minus)]:
        x = rng.standard_normal((n, d)) @ np.linalg.cholesky(law).T
        quadratic = np.einsum("ni,ij,nj->n", x, np.linalg.inv(minus) - np.linalg.inv(plus), x)
        ratio = 0.5 * (quadratic + np.linalg.slogdet(minus)[1] - np.linalg.slogdet(plus)[1])
        losses.append((y - np.tanh(ratio / 2)) ** 2)
    losses = np.concatenate(losses)
    floor = float(ls.bayes(mixture, fidelity="exact").risk)
    assert abs(losses.mean() - floor) < 4 * losses.std() / np.sqrt(2 * n)


def test_no_exact_risk_is_below_the_floor():
    mixture = ls.GaussianMixture(np.array([0.9, -0.6, 0.5, 0.3]))
    floor = float(ls.bayes(mixture, fidelity="exact").risk)
    for regime in (ls.RandomFeatures("relu"), ls.NeuralTangent(), ls.NeuralTangent("relu"), ls.Trained()):
        assert float(ls.exact(mixture, regime, width=40).risk) >= floor


def test_strong_signal_reaches_zero():
    assert float(ls.bayes(ls.GaussianMixture(np.full(2000, 0.5)), fidelity="exact").risk) < 1e-12

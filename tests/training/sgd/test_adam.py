"""Adam for a trained network against its definition, written out in NumPy; whitened mixtures against exact ones."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.activations import Activation
from lazyscope.training.sgd.network import AdamNetworks
from lazyscope.training.sgd.stream import Law, draw


def test_steps_are_those_of_kingma_and_ba():
    """Two models side by side, five batches, in float32: each against its own loop over (a/N, W)."""
    d, widths, rates = 3, [4, 2], [0.01, 0.03]
    rng = np.random.default_rng(0)
    starts = [rng.standard_normal((N, d), dtype=np.float32) for N in widths]
    pack = AdamNetworks(starts, widths, rates, Activation("tanh"))
    batches = [draw(Law(d, gamma=np.array([0.5, 0.2, 0.1])), 6, rng) for _ in range(5)]
    for X, y in batches:
        pack.step(X, y, 1.0)
    for m, (N, rate) in enumerate(zip(widths, rates, strict=True)):
        theta = [starts[m].T.astype(float), np.zeros(N)]
        c, first, second = 0.0, [0.0, 0.0], [0.0, 0.0]
        for t, (X, y) in enumerate(batches, 1):
            H = X.astype(float) @ theta[0]
            r = np.tanh(H) @ theta[1] + c - y
            slope = (2.0 / len(y)) * r[:, None] * theta[1] * (1.0 - np.tanh(H) ** 2)
            gradients = X.T.astype(float) @ slope, (2.0 / len(y)) * np.tanh(H).T @ r
            for i, g in enumerate(gradients):
                first[i] = 0.9 * first[i] + 0.1 * g
                second[i] = 0.999 * second[i] + 0.001 * g**2
                size = rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
                theta[i] = theta[i] - size * first[i] / (np.sqrt(second[i]) + 1e-8)
            c -= rate * 2.0 * float(np.mean(r))
        here = pack.columns(m)
        # ε = 1e-8 shifts where gradients are tiny: the second step on a/N, whose gradient is multiplied by 1/N here
        np.testing.assert_allclose(pack.state[:, here], theta[0], atol=2e-5)
        np.testing.assert_allclose(pack.a[here] / N, theta[1], atol=2e-5)
        assert float(pack.c[m]) == pytest.approx(c, abs=1e-5)


def test_adam_learns_what_plain_steps_do_not():
    """he₃ in five dimensions: the second layer must grow, and plain steps that bear it are too small."""
    problem, risks = ls.MultiIndex(5, "he3"), {}
    for rule, size in (("plain", 0.05), ("adam", 0.01)):
        protocol = ls.SGD(steps=3000, batch=50, step_sizes=(size,), test=4000, rule=rule)
        risks[rule] = float(ls.simulate(problem, ls.Trained("erf"), width=12, protocol=protocol).risk)
    assert risks["adam"] < 0.2 < 0.4 < risks["plain"]


@pytest.mark.parametrize("turned", [False, True])
def test_a_mixture_with_any_covariance_is_whitened(turned):
    """`exact` works in x's own coordinates: a second route. 10⁴ test samples give ±1 %, weights are the same."""
    Sigma = np.array([2.0, 1.0, 0.5, 1.0, 1.5, 3.0, 1.0, 0.7])
    Delta = Sigma * np.linspace(0.2, 0.8, 8)
    if turned:
        Q = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
        Delta, Sigma = Q @ np.diag(Delta) @ Q.T, Q @ np.diag(Sigma) @ Q.T
    problem, regime = ls.GaussianMixture(Delta, Sigma), ls.RandomFeatures("relu")
    exact = float(ls.exact(problem, regime, width=6).risk)
    assert float(ls.simulate(problem, regime, width=6, samples=50_000).risk) == pytest.approx(exact, abs=0.03)
    assert exact < 0.9

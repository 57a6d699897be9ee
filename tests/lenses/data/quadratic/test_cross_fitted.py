"""Cross-fitted shares: right for inputs that are far from Gaussian, where degrees of freedom are not."""

import numpy as np
import pytest

from lazyscope.lenses.data.quadratic.cross_fitted import shares
from lazyscope.lenses.data.quadratic.part import hermite_features


def heavy(n, d, rng):
    """Inputs of unit covariance whose lengths vary a lot: rows differ in leverage, as images do."""
    lengths = np.sqrt(rng.exponential(1.0, (n, 1)))
    return lengths * rng.standard_normal((n, d))


@pytest.mark.parametrize("signal", [0.0, 1.0])
def test_shares_are_those_of_many_fresh_rows(signal):
    """The true share is that of the best quadratic function, fitted here to 200,000 rows of its own."""
    rng = np.random.default_rng(0)
    d = 8

    def draw(n):
        X = heavy(n, d, rng)
        noise = 0.5 * np.linalg.norm(X, axis=1) * rng.standard_normal(n)  # larger where leverage is larger
        return hermite_features(X), X[:, 0] + signal * (X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3])) + noise

    Phi, y = draw(200_000)
    centred, energy = Phi - Phi.mean(axis=0), np.var(y)
    best = [1.0 - np.var(y - centred[:, :k] @ np.linalg.lstsq(centred[:, :k], y, rcond=None)[0]) / energy
            for k in (d, Phi.shape[1])]  # fmt: skip
    z = []
    for _ in range(20):
        Phi, y = draw(400)
        Phi = Phi - Phi.mean(axis=0)
        one = shares(Phi[:, :d], Phi[:, d:], [y])[0]
        z.append([(one.linear - best[0]) / one.linear_stderr,
                  (one.quadratic - (best[1] - best[0])) / one.quadratic_stderr])  # fmt: skip
    # means of twenty in standard errors, 1/√20 each; a share below zero is told as zero, which lifts the mean of one
    # that is zero by 0.4 standard errors
    linear, quadratic = np.mean(z, axis=0)
    assert abs(linear) < 4 / np.sqrt(20) and abs(quadratic - (0.4 if signal == 0 else 0.0)) < 4 / np.sqrt(20)
    assert np.std(z, axis=0)[0] < 2.0


def test_several_targets_share_one_decomposition():
    rng = np.random.default_rng(1)
    Phi = rng.standard_normal((300, 6))
    targets = [Phi[:, 0] + rng.standard_normal(300), Phi[:, 4] + rng.standard_normal(300)]
    together = shares(Phi[:, :3], Phi[:, 3:], targets)
    for one, y in zip(together, targets, strict=True):
        alone = shares(Phi[:, :3], Phi[:, 3:], [y])[0]
        assert (one.linear, one.quadratic) == pytest.approx((alone.linear, alone.quadratic), rel=1e-9)
    assert together[0].linear > 0.3 > together[0].quadratic and together[1].quadratic > 0.3 > together[1].linear

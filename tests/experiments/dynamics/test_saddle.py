"""Critical points are critical, and the gradient is that of the risk."""

import numpy as np

from lazyscope.limits.flow.saddle import critical_points, gradient


def test_every_listed_point_is_critical_and_they_are_all_subsets():
    b = np.array([0.2, 0.5, 0.9, 1.3])
    points = list(critical_points(b, 2))
    assert len(points) == 1 + 4 + 6
    for _, W, c in points:
        slope, along_c = gradient(b, W, c)
        assert np.abs(slope).max() < 1e-12 and abs(along_c) < 1e-12


def test_the_gradient_is_that_of_the_risk():
    """By differences of L = 2‖E‖² + s²."""
    rng, b = np.random.default_rng(0), np.array([0.2, 0.5, 0.9])
    W, c, Z, step = rng.standard_normal((3, 2)), 0.3, rng.standard_normal((3, 2)), 1e-6

    def risk(W, c):
        E = W @ W.T - np.diag(b)
        return 2 * np.sum(E**2) + (np.trace(E) + c) ** 2

    slope, along_c = gradient(b, W, c)
    np.testing.assert_allclose(
        (risk(W + step * Z, c) - risk(W - step * Z, c)) / (2 * step), np.sum(slope * Z), rtol=1e-7
    )
    np.testing.assert_allclose((risk(W, c + step) - risk(W, c - step)) / (2 * step), along_c, rtol=1e-7)

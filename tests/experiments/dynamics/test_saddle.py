"""The verdict on saddles can say no, and critical points are critical."""

import numpy as np

from lazyscope.experiments import load
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


def test_the_verdict_says_no_to_a_flat_point_that_is_no_saddle(tiny):
    experiment, panels = load("saddle"), tiny("saddle").panels
    assert experiment.verdict(panels)[-1].startswith("Flat points are strict")
    for panel, name in (("critical", "curvature"), ("descents", "curvature")):
        wrong = panels[panel].copy(deep=True)
        wrong[name] = np.abs(wrong[name])
        assert "are NOT" in experiment.verdict({**panels, panel: wrong})[-1]
    stuck = panels["descents"].copy(deep=True)
    stuck["risk"] = stuck.risk + 0.5
    assert "are NOT" in experiment.verdict({**panels, "descents": stuck})[-1]

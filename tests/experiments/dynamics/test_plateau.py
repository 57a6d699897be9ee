"""The plateau: SGD on its line, neurons alike on it and apart after it, and a verdict that says where not."""

import numpy as np
import pytest

from lazyscope.experiments.dynamics import plateau


def test_weights_start_at_the_overlaps_that_are_asked_for(sizes):
    draw = plateau.work(sizes["plateau"])[0]
    W = draw.start(np.random.default_rng(0))
    np.testing.assert_allclose(W @ W.T, 0.25 * np.eye(2), atol=1e-12)
    np.testing.assert_allclose(W[:, :2], np.diag([0.05, 0.04]), atol=1e-12)


def test_the_verdict_says_where_sgd_leaves_the_line(tiny):
    """At d = 60 SGD itself is off by 1/d: what must hold is what the verdict makes of faults that are planted."""
    panel = tiny("plateau").panels["d = 60"]
    assert float(panel.line_risk[-1]) < 0.1 * float(np.interp(10.0, panel.line, panel.line_risk))
    assert 2.0 < float(panel.plateau[0]) < float(panel.plateau[1]) < 90.0

    def moved(errors):
        return panel.risks - panel.risk + panel.theory + errors * panel.risk_stderr

    right = panel.assign(risks=moved(1.0), parted_sgd=panel.parted)
    assert plateau.verdict({"d = 60": right})[-1].startswith("SGD follows")
    far = right.assign(risks=moved(20.0))  # of six runs: 4.6 of a normal variable
    assert "the risk of SGD at d = 60 (" in plateau.verdict({"d = 60": far})[-1]
    late = right.assign(parted_sgd=1.2 * panel.parted, parted_stderr=0.01 * panel.parted)
    assert "the time at which neurons part" in plateau.verdict({"d = 60": late})[-1]
    flat = right.assign(plateau=("end", [np.inf, np.inf]))
    assert "no plateau" in plateau.verdict({"d = 60": flat})[-1]
    swapped = right.assign(line_R=right.line_R.isel(index=[1, 0]).drop_vars("index", errors="ignore"))
    assert "alike on the plateau and part after it" in plateau.verdict({"d = 60": swapped})[-1]


def test_neurons_that_never_part_have_no_time():
    times, R = np.array([1.0, 2.0]), np.full((2, 2, 2), 0.3)
    assert plateau.parted(times, R) == np.inf
    R[1, 0, 0] = 1.3
    assert plateau.parted(times, R) == pytest.approx(1.5)

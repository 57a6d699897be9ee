"""Experiments on ridge regression: the verdict can say no, and the limit is where it must be."""

import numpy as np
import pytest

from lazyscope.experiments import load


@pytest.mark.parametrize("name", ["double-descent", "ridge-snr", "wide-ridge", "equivalence"])
def test_the_verdict_agrees_and_says_no_to_wrong_dots(name, tiny):
    data = tiny(name).panels
    assert load(name).verdict(data)[-1].startswith("Theory and simulation agree")
    for key, panel in data.items():
        moved = {**data, key: panel.assign(risk=3.0 * panel.risk)}
        assert load(name).verdict(moved)[-1].startswith("Theory and simulation differ")


def test_double_descent_has_no_dot_where_the_limit_is_infinite(tiny):
    data = tiny("double-descent").panels["double descent"]
    at = data.sel(ridge=0.0, width=40)
    assert np.isnan(at.risk) and np.isfinite(data.sel(ridge=0.001, width=40).risk)
    assert np.isinf(data.risk_limit.sel(ridge=0.0, line=1.0))


def test_ridge_snr_marks_the_minimum(tiny):
    data = tiny("ridge-snr").panels
    for panel in data.values():
        curve = panel.risk_limit.values
        assert np.all(panel.best_risk.values <= curve.min(axis=1) * (1 + 1e-9))
        lowest = panel.line.values[np.argmin(curve, axis=1)]
        inside = panel.best_ridge.values > panel.line.values[0]
        assert np.allclose(np.log(panel.best_ridge.values[inside] / lowest[inside]), 0.0, atol=0.06)
    high, low = data["SNR = 25"], data["SNR = 0.5"]
    assert high.best_ridge.values[-1] == 0.0 and np.all(low.best_ridge.values > 0.1)

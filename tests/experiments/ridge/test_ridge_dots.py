"""Experiments on ridge regression: the verdict can say no, and the limit is where it must be."""

from dataclasses import replace

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments import load
from lazyscope.experiments.frame.dots import held
from lazyscope.experiments.ridge.ridge_dots import RidgeSetting
from lazyscope.limits.spectral.linear_features import spectral_target
from lazyscope.problems import LinearTarget
from lazyscope.regimes import RandomFeatures


@pytest.mark.parametrize("name", ["double-descent", "ridge-snr", "wide-ridge", "equivalence"])
def test_the_verdict_agrees_and_says_no_to_wrong_dots(name, tiny):
    data = tiny(name).panels
    assert load(name).verdict(data)[-1].startswith("Theory and simulation agree")
    for key, panel in data.items():
        moved = {**data, key: panel.assign(risk_draws=3.0 * panel.risk_draws)}
        assert load(name).verdict(moved)[-1].startswith("Theory and simulation differ")


def test_double_descent_has_no_dot_where_the_limit_is_infinite(tiny):
    data = tiny("double-descent").panels["double descent"]
    at = data.sel(ridge=0.0, width=48)
    assert np.isnan(at.risk) and np.isfinite(data.sel(ridge=0.001, width=48).risk)
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


def test_predictions_tend_to_the_limit_and_noisy_linear_features_are_there_already(sizes):
    """At d = 10⁴ one sample more or less is nothing; noisy linear features have the limit's equations at every size."""
    for setting in sizes["equivalence"].settings.values():
        large = replace(setting, d=10_000, samples=20_000, widths=(6_000, 80_000))
        for one, close in ((setting, 1e-9), (large, 1e-3)):
            there = one._limit(np.array(one.widths) / one.samples)
            if one is large or one.regime.surrogate:
                for name, (values, _) in one.predictions().items():
                    assert values[..., 0] == pytest.approx(there[name].values, rel=close)


def test_a_prediction_that_leaves_out_a_tenth_is_none(tiny):
    """At N = n ± 1 without ridge nothing is predicted: one neuron more, and the risk is infinite."""
    panel = tiny("double-descent").panels["double descent"]
    setting = RidgeSetting(LinearTarget(noise=0.5), RandomFeatures("relu"), 24, 48, (49, 96), 2, (0.0,))
    values, allowance = setting.predictions()["risk"]
    assert np.isinf(allowance[0]) and 0.0 < allowance[1] < 0.1 * values[1]
    alone = panel.isel(width=[-1], ridge=[0])
    loose = alone.assign(risk_allowance=0.2 * alone.risk_predicted)
    assert [dot.is_predicted for one in (alone, loose) for dot in held({"": one}, ("risk",))] == [True, False]


def test_what_is_beyond_linear_is_learnt_a_little_at_a_finite_d():
    """The limit counts it as noise; in 24 dimensions its 299 functions are within reach of 144 samples."""
    target, relu, d, N, n, ridge = (
        ls.LinearTarget(noise=0.5, nonlinear=0.7),
        ls.RandomFeatures("relu"),
        24,
        216,
        144,
        0.05,
    )
    found = ls.simulate(target, relu, d=d, width=N, samples=n, ridge=ridge, draws=60)
    seen = spectral_target(target, relu, d)
    near = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))  # what one neuron or sample changes is left out
    here, *others = (
        float(ls.limit(seen, ls.RandomFeatures(), width=N + a, samples=n + b, ridge=n / d * ridge).risk)
        for a, b in near
    )
    allowed = 3.0 * float(found.stderr) + max(abs(other - here) for other in others)
    assert abs(float(found.risk) - here) < allowed
    assert float(ls.limit(target, relu, psi1=N / d, psi2=n / d, ridge=ridge).risk) - here > 2.0 * allowed

"""What is learnt of every eigendirection: sums are risks, lines are means of draws, and a wrong line is found out."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.lazy import directions
from lazyscope.limits import directions as theory


def test_sums_over_directions_are_the_risk_of_exact_to_1e_10(tiny, sizes):
    one, preset = tiny("directions").panels["directions"], sizes["directions"]
    assert float(np.max(np.abs(one["sum"] - one.risk))) < 1e-10
    target = ls.QuadraticTarget.exponential(preset.d)
    for label, regime in {"RF": ls.RandomFeatures(), "NT": ls.NeuralTangent(), "NN": ls.Trained()}.items():
        risk = ls.exact(target, regime, width=preset.width, draws=preset.draws).risk
        assert np.isclose(one.risk.sel(regime=label).mean(), risk, rtol=0, atol=1e-12)
    assert directions.verdict(tiny("directions").panels)[-1].endswith("are learnt as theory says.")


@pytest.mark.parametrize("rho", [0.1, 0.5, 1.0, 2.0])
def test_lines_sum_to_the_theorems(rho):
    target = ls.QuadraticTarget.exponential(200)
    b = target.eigenvalues
    for line, regime in (
        (theory.random_features, ls.RandomFeatures()),
        (theory.neural_tangent, ls.NeuralTangent()),
        (theory.trained, ls.Trained()),
    ):
        learnt, missed = line(b, rho)
        assert np.isclose(missed.sum() / np.sum(b**2), ls.limit(target, regime, rho=rho).risk, rtol=0, atol=1e-10)
        assert np.all(missed >= (b - learnt) ** 2 - 1e-12)  # the diagonal is a part of what is missed


def wrong_tangent(b, rho):
    return rho * b, (1 - rho) ** 2 * b**2


def wrong_network(b, rho):
    return theory.trained(b[::-1], rho)


@pytest.mark.parametrize(("label", "wrong"), [("NT", wrong_tangent), ("NN", wrong_network)])
def test_a_wrong_line_is_found_out(label, wrong, sizes, tiny, monkeypatch):
    """Planted faults: NT that learns a share ρ of each direction, NN that learns the N smallest."""
    preset = sizes["directions"]
    rows = [draw.compute() for draw in preset.trials]
    monkeypatch.setitem(directions._LINES, label, wrong)
    assert "are NOT learnt" in directions.verdict(directions.data(preset, rows))[-1]


def test_a_sum_that_is_not_the_risk_is_found_out(tiny):
    one = tiny("directions").panels["directions"]
    assert "do NOT equal" in directions.verdict({"directions": one.assign(risk=one.risk + 1e-9)})[-1]

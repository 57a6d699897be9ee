"""Staircases: shares that add up to the risk, from the weights of the flow, at the times of the formula."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.dynamics import staircase
from lazyscope.experiments.dynamics.staircase import StairsDraw


def test_the_share_of_the_only_direction_bounds_the_risk():
    """One neuron in one dimension: the risk is 2(g − b)² + (g + c)², the first part of it (1 − share)²."""
    target = ls.QuadraticTarget([0.3])
    plan = ls.SGD(steps=3000, batch=50, step_sizes=(0.01,), decay=(), test=1, second_layer="fixed")
    row = StairsDraw(target, 1, 1, plan, init=0.03).compute()
    share = row["learned"][:, 0]
    assert share[0] < 0.05 and share[-1] == pytest.approx(1.0, abs=0.01)
    assert np.all(row["risk"] >= (1.0 - share) ** 2 - 1e-6)  # the offset can only add
    assert row["risk"][-1] < 1e-3 and row["time"][-1] == pytest.approx(30.0)


def test_staircases_start_from_the_weights_of_the_flow():
    target = ls.QuadraticTarget([2.0, 1.0, 0.0, 0.0, 0.0])
    plan = ls.SGD(steps=200, batch=2000, step_sizes=(1e-3,), decay=(), test=1, second_layer="fixed")
    row = StairsDraw(target, 3, 2, plan, init=0.5, number=4).compute()
    path = ls.flow(target, ls.Trained(init=0.5), width=3, times=row["time"], second_layer="fixed", tolerance=1e-6)
    assert np.allclose(row["learned"], path.learned.values[:, :2], atol=0.02)
    assert np.allclose(row["risk"], path.risk, atol=0.02)


def test_the_staircase_follows_its_formula_and_says_where_not(tiny):
    data = tiny("staircase").panels
    one = data["staircase"]
    assert np.allclose(one.reached / one.formula, 1.0, atol=0.03)  # 1e-4 for κ, not 1e-6: larger corrections
    assert np.all(np.diff(one.reached) > 0.0) and float(one.flow_learned[-1, 2]) < 0.05  # two neurons, two directions
    assert float(one.levels[-1]) == pytest.approx(float(one.floor), abs=1e-12)
    late = {"staircase": one.copy(deep=True)}
    late["staircase"]["reached"][:] = one.reached.values[::-1]
    told = staircase.verdict(late)[-1]
    assert "the order of the eigenvalues" in told and "the formula of direction 1" in told
    slow = {"staircase": one.assign(ratio=one.ratio + 1.0)}
    assert "SGD on direction 2" in staircase.verdict(slow)[-1]

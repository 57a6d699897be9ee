"""Traces of SGD: those of the verbs for the same weights, and shares that add up to the risk."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.dynamics.traces import StairsDraw, TraceDraw, assemble
from lazyscope.limits.sgd.finite_step import finite_step

TARGET = ls.QuadraticTarget.exponential(20)
PLAN = ls.SGD(steps=400, batch=50, step_sizes=(0.01,), decay=((0.2, 10.0),), test=1)


@pytest.mark.parametrize("regime", [ls.Trained(), ls.NeuralTangent()])
def test_traces_and_predictions_are_those_of_the_verbs(regime):
    row = TraceDraw(TARGET, regime, 8, PLAN, number=1, seed=3).compute()
    draws = [ls.simulate(TARGET, regime, width=8, protocol=PLAN, seed=3, draws=n).trace.values for n in (1, 2)]
    assert np.allclose(row["simulated"], 2.0 * draws[1] - draws[0], atol=1e-6)  # the second of two draws
    samples = row["samples"].astype(int)
    line = finite_step(
        TARGET, regime, width=8, step_size=0.01, batch=50, samples=samples, decay=PLAN.decay, seed=3, draw=1, paths=1
    )
    assert np.array_equal(row["predicted"], line.risk) and np.array_equal(row["flow"], line.flow)


def test_means_times_and_what_is_far():
    draws = [TraceDraw(TARGET, ls.NeuralTangent(), 8, PLAN, number) for number in range(4)]
    rows = [draw.compute() for draw in draws]
    found = assemble(draws, rows)
    assert float(found.time[-1]) == pytest.approx(320 * 0.01 + 80 * 0.001)
    assert np.allclose(found.simulated, np.mean([row["simulated"] for row in rows], axis=0))
    moved = [row | {"predicted": row["predicted"] + 0.05} for row in rows]
    assert float(found.z.max()) < 3.0 < float(assemble(draws, moved).z.max())


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


def test_two_step_sizes_are_refused():
    with pytest.raises(ls.InvalidParameter, match="have one step size"):
        TraceDraw(TARGET, ls.Trained(), 8, ls.SGD(steps=10)).compute()

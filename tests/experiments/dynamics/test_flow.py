"""Traces of SGD are those of the verbs for the same weights, and the verdict names what is far from its line."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.dynamics import flow
from lazyscope.experiments.dynamics.flow import TraceDraw, assemble
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


def test_two_step_sizes_are_refused():
    with pytest.raises(ls.InvalidParameter, match="have one step size"):
        TraceDraw(TARGET, ls.Trained(), 8, ls.SGD(steps=10)).compute()


def test_flow_has_a_trace_for_every_width_and_step_size(tiny):
    widths, steps = tiny("flow").panels["widths"], tiny("flow").panels["steps"]
    assert widths.regime.values.tolist() == ["NT", "NN"] and widths.width.values.tolist() == [10, 10]
    assert steps.width.values.tolist() == [10] * 4 and set(steps.step_size.values) == {0.01, 0.02}
    assert np.all(widths.floor <= widths.flow.isel(point=-1) + 1e-6)  # the flow has not ended yet
    added = [float(steps.added_predicted[k, -1]) for k in range(4)]
    assert 0.0 < added[0] < added[1] and 0.0 < added[2] < added[3]  # larger steps, more noise


def test_flow_says_what_is_far(tiny):
    right = {name: data.copy(deep=True) for name, data in tiny("flow").panels.items()}
    for name in ("widths", "steps"):
        right[name]["z"] = np.minimum(right[name].z, 2.0)
    assert flow.verdict(right)[-1].startswith("SGD lies on the prediction: all ")
    right["steps"]["z"][1, 3] = 7.0
    assert "differ: 1 of 4 traces" in flow.verdict(right)[-1]
    assert flow.verdict(right)[-3].endswith("7.0")

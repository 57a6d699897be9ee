"""Training in time and the output scale: lines end where theorems say, dots are the library's runs."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.explorer.views import VIEWS


def shown(view, **state):
    answer = VIEWS[view].lines(VIEWS[view].state(**state))
    return answer, {line["name"]: line for line in answer["lines"]}


def test_training_begins_at_the_best_constant_and_ends_at_theorem_3():
    answer, lines = shown("training", d=40, rho=0.5)
    target = ls.QuadraticTarget.exponential(40, seed=100)
    for line in lines.values():
        assert 0.9 < line["y"][0] < 1.0 and np.all(np.diff(line["y"]) < 1e-6)
    floor = float(ls.limit(target, ls.Trained(), rho=0.5).risk)
    assert lines["NN"]["y"][-1] == pytest.approx(floor, abs=1e-3)  # the flow's own tolerance is 1e-4
    learnt = np.array(answer["frames"]["values"])[:, 0, :]
    assert learnt.shape == (60, 8) and answer["frames"]["x"] == lines["NN"]["x"]
    halves = [np.argmax(learnt[:, k] > 0.5) for k in range(3)]
    assert halves == sorted(halves) and np.all(learnt[-1, :3] > 0.95) and learnt[-1, -1] < 0.2


def test_the_lazy_lines_end_at_the_exact_values_of_their_weights():
    _, lines = shown("training", d=30, rho=0.3, seed=5)
    target = ls.QuadraticTarget.exponential(30, seed=100)
    for name, regime in (("RF", ls.RandomFeatures()), ("NT", ls.NeuralTangent())):
        ends = [float(ls.exact(target, regime, width=9, seed=5 + 10_000 * k).risk) for k in range(4)]
        assert lines[name]["y"][-1] == pytest.approx(np.mean(ends), rel=0.01)  # t = 150 is long, not for ever


def test_dots_of_training_are_runs_of_the_verb_with_their_standard_error():
    view = VIEWS["training"]
    plan = view.plan(view.state(d=20, rho=0.2, step=0.02, runs=3, seed=4), "simulate")
    task = plan.tasks[0]
    result = task.call.run()
    mean, stderr = task.call.values(result, "trace")
    names = {}
    exec(plan.python, names)
    runs = np.array([run.trace.values for run in names["dots"]["NT"]])
    time = names["dots"]["NT"][0].samples.values * 0.02 / 50
    at = np.isin(time, result["time"])
    np.testing.assert_array_equal(mean, runs[:, at].mean(axis=0))
    np.testing.assert_allclose(stderr, runs[:, at].std(axis=0, ddof=1) / 3**0.5, rtol=1e-12)
    assert np.unique(runs[:, -1]).size == 3  # weights and data of their own


def test_a_committee_is_alike_on_its_plateau_and_parts():
    answer, lines = shown("training", target="committee", lean=0.005)
    R = np.array(answer["frames"]["values"])
    assert R.shape == (60, 2, 2)
    np.testing.assert_allclose(R[:, 0, 1], lines["overlap, another"]["y"], atol=1e-4)  # frames have four digits
    t = np.array(answer["frames"]["x"])
    on = np.argmin(np.abs(t - 20.0))
    assert np.ptp(R[on]) < 0.1 < R[on].min()
    assert lines["SGD"]["y"][-1] > shown("training", target="committee", lean=0.2)[1]["SGD"]["y"][-1]
    assert [note["about"] for note in answer["notes"]] == ["NT"]  # Theorem 2 is for σ = u²


def test_dots_of_a_committee_are_within_their_errors():
    """Three runs of a short training: Student's t with two degrees of freedom is above 10 once in a hundred times."""
    from lazyscope.explorer.views.dynamics import committee

    call = committee.plan(2, 0.5, 0.1, 3, 0).tasks[0].call
    short = committee.Runs("simulate", call.problem, call.regime, {**call.arguments, "until": 3.0})
    result = short.run()
    mean, stderr = short.values(result, "risk")
    start = (0.25 * np.eye(2), np.diag([0.15, 0.05]))
    path = ls.order_parameters(call.problem, ls.Trained("erf2"), times=result["time"], step_size=0.5, overlaps=start)
    assert np.median(np.abs(mean - path.risk.values) / stderr) < 3.0


def test_the_end_of_training_goes_from_the_floor_of_theorem_3_to_the_tangent_model():
    answer, lines = shown("rich", d=30, rho=0.5, seed=2)
    target = ls.QuadraticTarget.exponential(30, seed=100)
    end = np.array(lines["end of training"]["y"])
    lazy = float(ls.exact(target, ls.NeuralTangent(), width=15, draws=4, seed=2).risk)
    rich = float(ls.limit(target, ls.Trained(), rho=0.5).risk)
    assert end[0] == pytest.approx(rich, abs=1e-3) and end[-1] == pytest.approx(lazy, rel=0.01)
    assert np.all(np.diff(end) > -1e-12)
    assert answer["marks"] == [{"x": 1.0, "label": "your α"}] and answer["at"] == 1.0


def test_on_the_way_a_large_scale_is_its_tangent_model():
    _, lazy = shown("rich", axis="time", scale=10_000.0, d=30)
    np.testing.assert_allclose(lazy["this α"]["y"], lazy["NT, same weights"]["y"], atol=2e-3)
    _, rich = shown("rich", axis="time", scale=0.01, d=30)
    assert rich["this α"]["y"][-1] < 0.2 * rich["NT, same weights"]["y"][-1]


def test_scales_have_dots_from_the_weights_of_the_line_and_times_have_none():
    view = VIEWS["rich"]
    plan = view.plan(view.state(d=20), "simulate")
    assert [task.call.regime.alpha for task in plan.tasks] == [0.01, 1.0, 10.0, 100.0, 1000.0]
    assert all(task.call.arguments["draws"] == 4 and task.call.arguments["seed"] == 0 for task in plan.tasks)
    assert view.plan(view.state(axis="time"), "simulate").tasks == ()
    assert "above 60" in view.plan(view.state(d=80), "simulate").notes[0][1]

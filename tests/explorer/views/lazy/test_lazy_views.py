"""Spectra that are moved, and directions that are learnt."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.explorer.views import VIEWS
from lazyscope.explorer.views.lazy import moved
from lazyscope.explorer.views.lazy.quadratic import PAPER


def test_a_draw_that_is_moved_by_nothing_is_itself_and_a_little_moves_it_little():
    drawn = np.random.default_rng(0).exponential(size=40)
    np.testing.assert_array_equal(moved(drawn, PAPER, PAPER)[0], drawn)
    levels = [float(level) for level in PAPER.split(",")]
    for step in (0.05, -0.05):
        for i in range(8):
            there = [*levels[:i], levels[i] + step, *levels[i + 1 :]]
            change = moved(drawn, ",".join(map(str, there)), PAPER)[0] - drawn
            assert 0.0 < np.max(np.abs(change)) <= 0.05 + 1e-12 and np.all(np.sign(step) * change >= -1e-12)
    nothing = moved(drawn, "0,0,0,0,0,0,0,0", PAPER)[0]
    assert np.all(nothing >= 0.0)  # no eigenvalue is pushed below zero
    assert np.min(moved(drawn, "-1,0,0,0,0,0,0,0", PAPER)[0]) < 0.0  # but where a level is


@pytest.mark.parametrize("rho", [0.1, 0.5, 1.2])
def test_what_is_missed_of_all_directions_is_the_risk(rho):
    view = VIEWS["directions"]
    answer = view.lines(view.state(rho=rho, d=100))
    lines = {line["name"]: np.array(line["y"]) for line in answer["lines"]}
    target = ls.QuadraticTarget.exponential(100, seed=100)
    for name, regime in (("RF", ls.RandomFeatures()), ("NT", ls.NeuralTangent()), ("NN", ls.Trained())):
        risk = float(ls.limit(target, regime, rho=rho).risk)
        assert lines[f"{name}, missed"].mean() == pytest.approx(risk, abs=1e-12)
        assert f"{name} {risk:.3f}" in answer["reading"]
    np.testing.assert_array_equal(lines["the target"], target.eigenvalues)


def test_directions_of_both_signs_have_no_line_of_nn():
    view = VIEWS["directions"]
    answer = view.lines(view.state(levels="-1,1", d=20))
    assert [note["about"] for note in answer["notes"]] == ["NN"]
    assert {line["name"] for line in answer["lines"]} == {"RF", "RF, missed", "NT", "NT, missed", "the target"}
    assert [task.name for task in view.plan(view.state(levels="-1,1", d=20), "exact").tasks] == ["RF", "NT"]


def test_dots_of_directions_are_those_of_their_python():
    view = VIEWS["directions"]
    plan = view.plan(view.state(d=20, draws=3, seed=1), "exact")
    names = {}
    exec(plan.python, names)
    for task in plan.tasks:
        result = task.call.run()
        mean, _ = task.call.values(result, "learnt")
        np.testing.assert_array_equal(mean, np.mean([row["learnt"] for row in names["dots"][task.name]], axis=0))

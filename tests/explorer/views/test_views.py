"""What views add to the library: remembered constants, grids, Python that is what runs."""

import json
import re
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

import lazyscope as ls
from lazyscope.cli import main
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.explorer.views import VIEWS
from lazyscope.explorer.views.lazy import quantiles
from lazyscope.explorer.views.picture import Grid
from lazyscope.explorer.views.remembered import activation


def test_remembered_constants_are_the_same():
    for name in ls.activation_names():
        plain, kept = ls.Activation(name), activation(name)
        for k in range(4):
            assert kept.lambda_k(k) == plain.lambda_k(k)
        assert kept.lambda_tilde == plain.lambda_tilde
        assert kept.b1 == plain.b1
        assert float(kept.second_moment(1.0)) == float(plain.second_moment(1.0))
        assert kept.name == plain.name


def test_quantiles_are_midpoints_of_a_straight_interpolation():
    values, python = quantiles("0,1,4", 4)
    np.testing.assert_allclose(values, [0.25, 0.75, 1.75, 3.25])
    np.testing.assert_array_equal(eval(python, {"np": np}), values)


def test_grids_are_what_they_say():
    for grid in (
        Grid.linear(0.1, 2.0, 20),
        Grid.logarithmic(0.1, 20.0, 30),
        Grid.logarithmic(0.1, 20.0, 30, around=3.0),
    ):
        np.testing.assert_array_equal(eval(grid.python, {"np": np}), grid.values)
        assert np.all(np.diff(grid.values) > 0)
    assert 3.0 in Grid.logarithmic(0.1, 20.0, 30, around=3.0).values


def test_where_the_risk_is_infinite_there_is_no_point_and_a_note():
    view = VIEWS["descent"]
    answer = view.lines(view.state(ridge=0.0, psi2=3.0, noise=0.5))
    risk = next(line for line in answer["lines"] if line["name"] == "risk")
    assert [x for x, y in zip(risk["x"], risk["y"], strict=True) if y is None] == [3.0]
    assert {"about": "risk", "message": "Infinite at 3: no point there."} in answer["notes"]


def test_regimes_without_a_theorem_are_notes_and_the_others_lines():
    view = VIEWS["quadratic"]
    answer = view.lines(view.state(activation="relu"))
    assert [line["name"] for line in answer["lines"]] == ["RF"]
    assert [note["about"] for note in answer["notes"]] == ["NT", "NN"]
    signed = view.lines(view.state(levels="-1,1", gamma=0.5))
    assert {note["about"] for note in signed["notes"]} == {"RF", "NN"}


def test_the_python_of_dots_is_what_the_worker_runs():
    view = VIEWS["quadratic"]
    plan = view.plan(view.state(d=20, rho_max=1.0, draws=2, gamma=0.5), "exact")
    names = {}
    exec(plan.python, names)
    for task in plan.tasks:
        label = f"{task.name}, N = {task.call.arguments['width'][0]}"
        np.testing.assert_array_equal(names["dots"][label].risk.values, task.call.run().risk.values)


def test_the_command_of_a_parity_prints_its_dots():
    view = VIEWS["beyond"]
    plan = view.plan(view.state(what="samples", d=4, width=50, draws=2, flip=0.1, seed=3), "simulate")
    first = plan.command.split(" && ")[0]
    printed = json.loads(CliRunner().invoke(main, [*shlex.split(first)[1:], "--json"]).stdout)
    risks = [one["data"]["risk"] for one in printed["results"]]
    expected = [float(task.call.run().risk) for task in plan.tasks if task.call.arguments["samples"] == 4]
    assert np.ravel(risks).tolist() == expected


def test_degrees_are_learnt_as_the_verb_says_and_dots_keep_within_reach():
    view = VIEWS["degrees"]
    answer = view.lines(view.state(e3=0.2, activation="relu2", learnt="width", samples=700))
    shown = {line["name"]: line for line in answer["lines"]}
    x = np.array(shown["degree 3"]["x"])
    problem = ls.HarmonicTarget(30, [0.0, 0.5, 0.5, 0.2, 0.0], noise=0.2)
    found = ls.limit(problem, ls.RandomFeatures("relu2"), width=x, samples=700, ridge=0.01)
    for degree in (1, 2, 3):
        np.testing.assert_allclose(shown[f"degree {degree}"]["y"], found.learnt.sel(degree=degree).values, rtol=1e-12)
    assert "degree 4" not in shown and {mark["x"] for mark in answer["marks"]} == {400.0, 700.0}
    assert view.plan(view.state(d=300), "simulate").tasks == ()
    wide = view.plan(view.state(width=10_000), "simulate")
    assert {task.call.arguments["samples"] for task in wide.tasks} == {1000}  # the curve against N alone
    assert wide.notes == (("risk against n", "No dots: N = 10000 is above 1500."),)
    kernel = view.plan(view.state(infinite=True), "simulate")
    assert {task.call.arguments["width"] for task in kernel.tasks} == {1000} and "in place of ∞" in kernel.notes[0][1]
    narrow = view.lines(view.state(regime="nt", width=59))
    assert [line["name"] for line in narrow["lines"]] == ["risk against N"] and narrow["lines"][0]["x"][0] == 60.0
    assert "N ≥ 2d = 60" in narrow["notes"][0]["message"]
    assert all(task.call.arguments["width"] >= 60 for task in view.plan(view.state(regime="nt"), "simulate").tasks)


def test_what_the_pieces_need_is_refused_before_a_worker_starts():
    view = VIEWS["beyond"]
    with pytest.raises((NoTheorem, InvalidParameter)):
        view.plan(view.state(activation="relu"), "simulate")
    elsewhere = view.plan(view.state(alpha=0.3), "simulate")
    assert elsewhere.tasks == ()
    assert "Set α to ¼" in elsewhere.notes[0][1]


def test_stored_dots_are_those_of_their_plan():
    """The cheapest of them, trained again; another machine's linear algebra may round differently."""
    view = VIEWS["beyond"]
    for flip in (0.0, 0.1):
        state = view.state(what="samples", flip=flip)
        kept = view.lines(state)["kept"]
        plan = view.plan(state, "simulate")
        assert len(kept["dots"]) == len(plan.tasks) and kept["command"] == plan.command
    task, dot = plan.tasks[0], kept["dots"][0]
    result = task.call.run()
    assert (dot["name"], dot["x"]) == ("NT", [16.0])
    assert dot["y"][0] == pytest.approx(float(result.risk), rel=1e-3)
    assert dot["stderr"][0] == pytest.approx(float(result.stderr), rel=1e-2)


def test_stored_dots_are_there_whatever_has_no_effect_on_them():
    """The page in one file meets 2-XOR first with the least α, which only the other question has."""
    view = VIEWS["beyond"]
    usual = view.lines(view.state(what="samples"))["kept"]
    assert usual is not None
    assert view.lines(view.state(what="samples", alpha=0.0))["kept"] == usual
    assert view.lines(view.state(what="samples", d=10))["kept"] is None


@pytest.mark.parametrize(
    ("view", "words"), [("descent", "% above"), ("margin", "order of 1/√d"), ("beyond", "no limits")]
)
def test_dots_of_a_finite_d_say_how_they_lie_beside_lines(view, words):
    state = VIEWS[view].state()
    about, message = VIEWS[view].plan(state, "simulate").notes[0]
    assert about == f"d = {state.d}" and words in message


@pytest.mark.parametrize("view", ["quadratic", "mixture"])
def test_the_note_on_exact_dots_says_how_far_off_they_are(view):
    """The range that it names holds the dots within four of their standard errors."""
    state = VIEWS[view].state(d=40, draws=10)
    plan = VIEWS[view].plan(state, "exact")
    about, message = plan.notes[0]
    assert about == "d = 40"
    said = {name: [float(end.replace("−", "-")) for end in ends] for name, *ends in _ranges(message)}
    lines = {line["name"]: (line["x"], line["y"]) for line in VIEWS[view].lines(state)["lines"]}
    for task in plan.tasks:
        result = task.call.run()
        (y,), error = task.call.values(result, "risk")
        x, stderr = float(result.width.item()) / 40, 0.0 if error is None else float(np.nan_to_num(error).item())
        off, room = y - np.interp(x, *lines[task.name]), 4.0 * stderr + 1e-3
        ends = said.get(task.name, [0.0])
        assert min(0.0, *ends) - room <= off <= max(0.0, *ends) + room, (task.name, x, off, stderr, message)
    assert "RF" in said


def _ranges(message):
    """Return (regime, ends …) of a note: `RF by −0.035 to +0.001`, `NT by up to +0.010`."""
    signed = r"[+−]\d\.\d+"
    for name, one, other in re.findall(rf"(RF|NT|NN) by (?:up to )?({signed})(?: to ({signed}))?", message):
        yield (name, one, other) if other else (name, one)

"""The figures flow and staircase at a tiny size: labelled numbers, a picture, a verdict that can say no."""

import numpy as np
import pytest

from lazyscope.experiments import FIGURES, load
from lazyscope.experiments.dynamics import flow, staircase
from lazyscope.experiments.frame.experiment import Experiment, plan_of

SIZES = {
    "flow": flow.Size("tiny", 20, 3, ratios=(0.5,), until=(2.0, 2.0), small=(0.01, 0.01), larger=(0.02, 0.02)),
    "staircase": staircase.Size("tiny", 10, 3, (1.0, 0.5, 0.25), 2, init=0.01, until=20.0, step_size=0.01),
}


@pytest.fixture(scope="module")
def found():
    return {
        name: load(name).data(size, [one.compute() for one in load(name).work(size)]) for name, size in SIZES.items()
    }


@pytest.mark.parametrize("name", SIZES)
def test_the_figures_are_experiments_whose_work_a_sweep_takes(name):
    assert name in FIGURES
    module = load(name)
    assert isinstance(module, Experiment) and set(module.PRESETS) == {"quick", "paper"}
    for preset in module.PRESETS.values():
        plan, tasks = plan_of("stem", module.work(preset)[:3])
        assert plan is not None and len(tasks) == 3


@pytest.mark.parametrize("name", SIZES)
def test_a_picture_and_a_verdict(found, name, tmp_path):
    module = load(name)
    module.plot(found[name]).savefig(tmp_path / "figure.png")
    assert all(len(line) < 140 for line in module.verdict(found[name]))
    for data in found[name].values():
        assert all(np.all(np.isfinite(values)) for values in data.data_vars.values())


def test_flow_has_a_trace_for_every_width_and_step_size(found):
    widths, steps = found["flow"]["widths"], found["flow"]["steps"]
    assert widths.regime.values.tolist() == ["NT", "NN"] and widths.width.values.tolist() == [10, 10]
    assert steps.width.values.tolist() == [10] * 4 and set(steps.step_size.values) == {0.01, 0.02}
    assert np.all(widths.floor <= widths.flow.isel(point=-1) + 1e-6)  # the flow has not ended yet
    added = [float(steps.added_predicted[k, -1]) for k in range(4)]
    assert 0.0 < added[0] < added[1] and 0.0 < added[2] < added[3]  # larger steps, more noise


def test_flow_says_what_is_far(found):
    right = {name: data.copy(deep=True) for name, data in found["flow"].items()}
    for name in ("widths", "steps"):
        right[name]["z"] = np.minimum(right[name].z, 2.0)
    assert flow.verdict(right)[-1].startswith("SGD lies on the prediction: all ")
    right["steps"]["z"][1, 3] = 7.0
    assert "differ: 1 of 4 traces" in flow.verdict(right)[-1]
    assert flow.verdict(right)[-3].endswith("7.0")


def test_the_staircase_follows_its_formula_and_says_where_not(found):
    data = found["staircase"]
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

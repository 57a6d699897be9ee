"""The figures of max-margin classification at a tiny size: labelled numbers, a picture, a verdict that can say no."""

import numpy as np
import pytest
from scipy.special import ndtr

from lazyscope.experiments import FIGURES, load
from lazyscope.experiments.frame.experiment import Experiment, plan_of
from lazyscope.experiments.margin import margin_equivalence, max_margin, separability

SIZES = {
    "max-margin": max_margin.Size("tiny", (1.5, 3.0), 4, d=(16, 32)),
    "margin-equivalence": margin_equivalence.Size("tiny", (12, 24), 4, psi1=(2.0, 3.0), activations=("relu", "tanh")),
    "separability": separability.Size("tiny", (12, 24), 30, relative=(0.5, 0.8, 1.0, 1.3, 1.8)),
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
    assert isinstance(module, Experiment)
    assert set(module.PRESETS) == {"quick", "paper"}
    for preset in module.PRESETS.values():
        assert preset.cost
        plan, tasks = plan_of("stem", module.work(preset)[:40])
        assert plan is not None and len(tasks) == 40


@pytest.mark.parametrize("name", SIZES)
def test_a_picture_and_a_verdict(found, name, tmp_path):
    module = load(name)
    module.plot(found[name]).savefig(tmp_path / "figure.png")
    lines = module.verdict(found[name])
    assert all(len(line) < 140 for line in lines)
    assert lines[-1].startswith("Theory and simulation")
    for data in found[name].values():
        assert all(np.all(np.isfinite(values)) for values in data.data_vars.values())
        assert data.attrs["problem"] and data.attrs["citations"]


@pytest.mark.parametrize("name", SIZES)
def test_the_verdict_says_no_to_what_is_wrong(found, name):
    module = load(name)
    wrong = {key: data.copy(deep=True) for key, data in found[name].items()}
    for data in wrong.values():
        if "margin_expected" in data:
            data["margin_expected"] += 1.0
        if "threshold" in data.attrs:
            data.attrs["threshold"] *= 3.0
    assert "differ" in module.verdict(wrong)[-1]


def test_the_paired_difference_uses_the_same_draws(found):
    table = margin_equivalence.pairs(found["margin-equivalence"])
    assert {row["activation"] for row in table} == {"relu", "tanh"}
    # paired: the same weights, inputs and labels leave less variance than two independent samples would
    data = found["margin-equivalence"]
    one, other = (data[f"tanh, {kind}, d = 24"].margin_draws.values for kind in ("nonlinear", "noisy linear"))
    assert np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(one, other, strict=True)]) > 0.2
    moved = {key: value.copy(deep=True) for key, value in data.items()}
    moved["relu, nonlinear, d = 24"]["error_draws"] += 0.5
    assert any(line.startswith("Not equivalent: 2 of") for line in margin_equivalence.verdict(moved))


def test_a_crossing_is_found_with_its_standard_error():
    rng = np.random.default_rng(0)
    x, draws = np.linspace(0.3, 0.5, 9), 50
    found = np.array(
        [separability.crossing(x, rng.binomial(draws, ndtr((x - 0.41) / 0.03)) / draws, draws) for _ in range(40)]
    )
    assert found[:, 0].mean() == pytest.approx(0.41, abs=4 * found[:, 0].std() / np.sqrt(40))
    # the standard error is the spread of the estimate, itself known to 1/√80
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=4 / np.sqrt(80))

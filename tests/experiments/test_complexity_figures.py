"""The figures landscape, expressivity and sample-complexity, tiny: labelled numbers, a picture, a verdict."""

import numpy as np
import pytest

from lazyscope.experiments import FIGURES, load
from lazyscope.experiments.beyond import expressivity, landscape, sample_complexity
from lazyscope.experiments.frame.experiment import Experiment, plan_of

SIZES = {
    "landscape": (landscape, landscape.Size("tiny", (40, 400), 40, samples=30, signs=2, looks=3, d=4)),
    "expressivity": (expressivity, expressivity.Size("tiny", (100, 1600), (2, 3), draws=4, samples=30, d=4)),
    "sample-complexity": (
        sample_complexity,
        sample_complexity.Size(
            "tiny", (5, 8), (3, 4), 2, learners=sample_complexity._CORE[:3], width=32, randomized_width=32, most=70
        ),
    ),
}


@pytest.fixture(scope="module", params=SIZES)
def found(request):
    module, size = SIZES[request.param]
    return module, module.data(size, [one.compute() for one in module.work(size)])


def test_the_figures_are_experiments_whose_work_a_sweep_takes():
    for name, (module, size) in SIZES.items():
        assert name in FIGURES and load(name) is module
        assert isinstance(module, Experiment) and set(module.PRESETS) == {"quick", "paper"}
        plan, tasks = plan_of("stem", module.work(size))
        assert plan is not None and len(tasks) == len(module.work(size))


def test_no_row_holds_what_a_store_refuses():
    for module, size in SIZES.values():
        row = module.work(size)[0].compute()
        assert all(np.all(np.isfinite(values)) for values in row.values())


def test_a_picture_and_a_verdict(found, tmp_path):
    module, data = found
    module.plot(data).savefig(tmp_path / "figure.png")
    lines = module.verdict(data)
    assert all(len(line) < 120 for line in lines)
    assert any("exponent" in line for line in lines)


def test_the_verdict_says_no(found):
    module, data = found
    wrong = {name: panel.copy(deep=True) for name, panel in data.items()}
    for panel in wrong.values():
        if "exponent" in panel:
            panel["exponent"][...] = 0.7
    assert module.verdict(wrong)[-1].startswith("Not ")


def test_the_verdict_of_landscapes_sees_a_broken_inequality_and_a_bad_descent():
    module, size = SIZES["landscape"]
    data = module.data(size, [one.compute() for one in module.work(size)])
    data["inequalities"]["slack"][0, 0, 0] = -1.0
    assert "Lemma 1" in module.verdict(data)[-1]
    data["descents"]["risk"][:, -1] = 5.0
    assert "descent" in module.verdict(data)[-1]


def test_full_presets_hold_every_learner_and_the_dimensions_of_the_issue():
    paper, quick = sample_complexity.PRESETS["paper"], sample_complexity.PRESETS["quick"]
    assert set(paper.learners) == set(sample_complexity.LEARNERS)
    assert (min(quick.xor), max(quick.xor)) == (min(paper.xor), max(paper.xor)) == (16, 96)

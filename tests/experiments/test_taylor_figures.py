"""The figures of Taylor models at a tiny size: labelled numbers, a picture, and a verdict that can say no."""

import pytest

from lazyscope.experiments.beyond import coupling, higher_order
from lazyscope.experiments.frame.experiment import Experiment, plan_of

SIZES = {
    "coupling": (coupling, coupling.Size("tiny", (50, 500), draws=2, samples=8, signs=4)),
    "higher-order": (higher_order, higher_order.Size("tiny", (50, 500), orders=(2, 3), draws=2, samples=8, repeats=8)),
}


@pytest.fixture(params=SIZES)
def found(request):
    module, size = SIZES[request.param]
    return module, module.data(size, [one.compute() for one in module.work(size)])


def test_the_figures_are_experiments_whose_work_a_sweep_takes():
    for module, size in SIZES.values():
        assert isinstance(module, Experiment) and set(module.PRESETS) == {"quick", "paper"}
        plan, tasks = plan_of("stem", module.work(size))
        assert plan is not None and len(tasks) == len(module.work(size))


def test_a_picture_and_a_verdict(found, tmp_path):
    module, data = found
    module.plot(data).savefig(tmp_path / "figure.png")
    lines = module.verdict(data)
    assert all(len(line) < 120 for line in lines)
    assert any("exponent" in line for line in lines)


def test_the_verdict_says_no_to_wrong_exponents(found):
    module, data = found
    for panel in data.values():
        for name in ("exponent", "randomized_exponent"):
            if name in panel:
                panel[name][:] = 0.7
    assert module.verdict(data)[-1].startswith("Not as declared")

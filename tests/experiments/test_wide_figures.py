"""The figures lazy-to-rich, mean-field and interpolation, tiny: numbers, a picture, a verdict that can say no."""

import numpy as np
import pytest
from scipy.stats import beta

from lazyscope.experiments import FIGURES, load
from lazyscope.experiments.frame.experiment import Experiment, plan_of
from lazyscope.experiments.wide import interpolation, lazy_to_rich, mean_field

SIZES = {
    "lazy-to-rich": lazy_to_rich.Size("tiny", 8, 2, alpha=(0.01, 3.0, 300.0, 1000.0)),
    "mean-field": mean_field.Size("tiny", (2, 8, 32), 2, steps=300, samples=200, atoms=60),
    "interpolation": interpolation.Size("tiny", (12, 24), 4, 4),
}


@pytest.fixture(scope="module")
def found():
    return {
        name: load(name).data(size, [one.compute() for one in load(name).work(size)]) for name, size in SIZES.items()
    }


def moved(panels, panel, **changes):
    """The same findings with some variables of one panel replaced."""
    return {**panels, panel: panels[panel].assign(**changes)}


@pytest.mark.parametrize("name", SIZES)
def test_the_figures_are_experiments_whose_work_a_sweep_takes(name):
    assert name in FIGURES
    module = load(name)
    assert isinstance(module, Experiment) and set(module.PRESETS) == {"quick", "paper"}
    for preset in module.PRESETS.values():
        plan, tasks = plan_of("stem", module.work(preset)[:5])
        assert plan is not None and len(tasks) == 5


@pytest.mark.parametrize("name", SIZES)
def test_a_picture_and_a_verdict(found, name, tmp_path):
    module = load(name)
    module.plot(found[name]).savefig(tmp_path / "figure.png")
    assert all(len(line) < 140 for line in module.verdict(found[name]))
    for data in found[name].values():
        assert all(np.all(np.isfinite(values)) for values in data.data_vars.values())


def test_the_protocol_of_a_training_is_part_of_its_fingerprint():
    (piece,) = lazy_to_rich.work(SIZES["lazy-to-rich"])[0].pieces()
    assert piece.protocol is not None and piece.protocol == piece.plan


def test_from_lazy_to_rich(found):
    panels = found["lazy-to-rich"]
    one = panels["alpha"]
    assert np.all(np.diff(one.exact_line) > 0.0)
    assert float(one.exact_line[0]) < 1.1 * float(one.floor) and float(one.exact_line[-1]) > 0.95 * float(one.tangent)
    assert np.allclose(one.exponent, -1.0, atol=0.05)
    assert np.allclose(panels["training"].flow[:, -1], panels["training"].risk[:, -1], rtol=0.1)
    assert "the closed form at α = 3" in lazy_to_rich.verdict(moved(panels, "alpha", end=1.5 * one.end))[-1]
    assert "the end at NT" in lazy_to_rich.verdict(moved(panels, "alpha", tangent=2.0 * one.tangent))[-1]
    assert "the exponent of drift" in lazy_to_rich.verdict(moved(panels, "alpha", exponent=0.5 * one.exponent))[-1]


def test_mean_field(found):
    panels = found["mean-field"]
    minima, between = panels["minima"], panels["between"]
    assert minima.certified.values.tolist() == [False, True]
    assert float(minima.gap.sel(activation="square")[-1]) < 1e-5
    assert np.all(np.diff(between.mixtures, 2) > -1e-9)  # convex, where the straight line is not
    assert np.any(np.diff(between.straight, 2) < -1e-4)
    flat = moved(panels, "particles", exponent=-0.3, exponent_stderr=0.01)
    assert "the rate" in mean_field.verdict(flat)[-1]
    assert "the gap of relu" in mean_field.verdict(moved(panels, "minima", gap=minima.gap + 1.0))[-1]
    bent = moved(panels, "between", mixtures=between.mixtures + between.share * (1.0 - between.share))
    assert "convexity" in mean_field.verdict(bent)[-1]
    beaten = moved(panels, "particles", excess=panels["particles"].excess - 0.5)
    assert "a measure that was beaten" in mean_field.verdict(beaten)[-1]


def test_interpolation(found):
    panels = found["interpolation"]
    one = panels["n = 24"]
    for kind, least in (("RF", 24.0), ("NT", 6.0)):  # 6·4 + 1 ≥ 24
        assert float(one.smallest.sel(kind=kind)) == float(one.threshold.sel(kind=kind)) == least
    far = moved(panels, "n = 24", smallest=one.smallest + 1.0)
    assert interpolation.verdict(far)[-1] == "Not as counted: RF at n = 24, NT at n = 24."
    assert "RF at n = 24" in interpolation.verdict(moved(panels, "n = 24", z=one.z + 4.0))[-1]


def test_what_random_labels_leave_is_a_beta_variable(found):
    """Mean and standard error of ‖P⊥y‖²/‖y‖² against those of Beta((n − p)/2, p/2)."""
    one = found["interpolation"]["n = 24"].sel(kind="RF").isel(point=0)
    law = beta((24 - float(one.width)) / 2, float(one.width) / 2)
    assert float(one.expected) == pytest.approx(law.mean())
    assert float(one.expected_stderr) == pytest.approx(law.std() / 2.0)  # four draws

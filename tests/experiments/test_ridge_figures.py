"""The figures of ridge regression at a tiny size: labelled numbers, a picture, and a verdict that can say no."""

import numpy as np
import pytest

from lazyscope.experiments.frame.experiment import Experiment, plan_of
from lazyscope.experiments.ridge import digits, double_descent, equivalence, ridge_snr, wide_ridge
from lazyscope.experiments.ridge.digits_numbers import DigitsDraw, images

TINY = {
    "double-descent": (double_descent, double_descent.Size("tiny", d=20, ratios=(0.2, 0.6, 1.0, 2.0), draws=6)),
    "ridge-snr": (ridge_snr, ridge_snr.Size("tiny", d=20, ratios=(1.0, 3.0), draws=6)),
    "wide-ridge": (wide_ridge, wide_ridge.Size("tiny", d=20, ratios=(0.2, 1.0, 4.0), draws=6)),
    "equivalence": (equivalence, equivalence.Size("tiny", (10, 20), (6, 6), ratios=(0.3, 1.0, 2.0))),
    "digits": (
        digits,
        digits.Size("tiny", draws=3, samples=120, features=(20, 60, 115, 120, 300), network=(1, 2, 3, 5, 16)),
    ),
}


@pytest.fixture(scope="module", params=TINY)
def found(request):
    module, size = TINY[request.param]
    return module, size, module.data(size, [one.compute() for one in module.work(size)])


def test_they_are_experiments_whose_work_a_sweep_takes():
    for module, size in TINY.values():
        assert isinstance(module, Experiment) and set(module.PRESETS) == {"quick", "paper"}
        plan, tasks = plan_of("stem", module.work(size))
        assert plan is not None and len(tasks) == len(module.work(size))


def test_a_picture_and_a_verdict_that_agrees(found, tmp_path):
    module, _, data = found
    module.plot(data).savefig(tmp_path / "figure.png")
    lines = module.verdict(data)
    assert all(line.strip() for line in lines)
    assert lines[-1].startswith(("Theory and simulation agree", "Both peak where they begin to interpolate"))


def test_the_verdict_says_no_to_wrong_dots(found):
    module, _, data = found
    for name, panel in data.items():
        panel = panel.copy(deep=True)
        panel["risk"][:] = np.sort(panel.risk.values)[::-1] if module is digits else 3.0 * panel.risk.values
        assert module.verdict({**data, name: panel})[-1].startswith(("Theory and simulation differ", "Not at the"))


def test_double_descent_has_no_dot_where_the_limit_is_infinite():
    module, size = TINY["double-descent"]
    data = module.data(size, [one.compute() for one in module.work(size)])["double descent"]
    at = data.sel(ridge=0.0, width=40)
    assert np.isnan(at.risk) and np.isfinite(data.sel(ridge=0.001, width=40).risk)
    assert np.isinf(data.risk_limit.sel(ridge=0.0, line=1.0))


def test_ridge_snr_marks_the_minimum(found):
    module, _, data = found
    if module is not ridge_snr:
        return
    for panel in data.values():
        curve = panel.risk_limit.values
        assert np.all(panel.best_risk.values <= curve.min(axis=1) * (1 + 1e-9))
        lowest = panel.line.values[np.argmin(curve, axis=1)]
        inside = panel.best_ridge.values > panel.line.values[0]
        assert np.allclose(np.log(panel.best_ridge.values[inside] / lowest[inside]), 0.0, atol=0.06)
    high, low = data["SNR = 25"], data["SNR = 0.5"]
    assert high.best_ridge.values[-1] == 0.0 and np.all(low.best_ridge.values > 0.1)


def test_a_fit_of_digits_depends_on_its_fields_alone():
    for fit in ("features", "network"):
        one, again, other = (DigitsDraw(fit, 6, samples=60, number=k).compute() for k in (0, 0, 1))
        assert one["risk"] == again["risk"] != other["risk"]
        assert 0.0 <= one["error"] <= 1.0 and one["train"] >= 0.0
    assert DigitsDraw("network", 6).parameters == 6 * 66 + 1


def test_images_are_what_the_theory_has_for_inputs():
    X, y = images()
    assert np.allclose(np.linalg.norm(X, axis=1), 8.0) and abs(y.mean()) < 0.05


def test_enough_neurons_interpolate():
    wide = DigitsDraw("features", 200, samples=80).compute()
    assert wide["train"] == 0.0
    trained = DigitsDraw("network", 20, samples=80).compute()
    assert trained["train"] < 1e-6

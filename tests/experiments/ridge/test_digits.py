"""Digits: fits that depend on their fields alone, and peak where they begin to interpolate."""

import numpy as np

from lazyscope.experiments.ridge import digits
from lazyscope.experiments.ridge.digits import DigitsDraw, images


def test_the_verdict_agrees_and_says_no_to_another_peak(tiny):
    data = tiny("digits").panels
    assert digits.verdict(data)[-1].startswith("Both peak where they begin to interpolate")
    for name, panel in data.items():
        moved = panel.copy(deep=True)
        moved["risk"][:] = np.sort(panel.risk.values)[::-1]
        assert digits.verdict({**data, name: moved})[-1].startswith("Not at the")


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

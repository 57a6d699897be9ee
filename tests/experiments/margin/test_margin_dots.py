"""Experiments on max-margin classification: the verdict can say no, and pairs share their draws."""

import numpy as np
import pytest

from lazyscope.experiments import load
from lazyscope.experiments.margin import margin_equivalence


@pytest.mark.parametrize("name", ["max-margin", "margin-equivalence", "separability"])
def test_the_verdict_says_no_to_what_is_wrong(name, tiny):
    assert load(name).verdict(tiny(name).panels)[-1].startswith("Theory and simulation")
    wrong = {key: data.copy(deep=True) for key, data in tiny(name).panels.items()}
    for data in wrong.values():
        assert data.attrs["problem"] and data.attrs["citations"]
        if "margin_predicted_draws" in data:
            data["margin_predicted_draws"] += 1.0
        if "predicted" in data:
            data["predicted"] = 1.0 - data.predicted
    assert "differ" in load(name).verdict(wrong)[-1]


def test_the_paired_difference_uses_the_same_draws(tiny):
    table = margin_equivalence.pairs(tiny("margin-equivalence").panels)
    assert {row["activation"] for row in table} == {"relu", "tanh"}
    # paired: the same weights, inputs and labels leave less variance than two independent samples would
    data = tiny("margin-equivalence").panels
    one, other = (data[f"tanh, {kind}, d = 64"].margin_draws.values for kind in ("nonlinear", "noisy linear"))
    assert np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(one, other, strict=True)]) > 0.2
    moved = {key: value.copy(deep=True) for key, value in data.items()}
    moved["relu, nonlinear, d = 64"]["error_draws"] += 0.5
    assert not margin_equivalence.verdict(moved)[-1].holds
    assert any(line.startswith("Not equivalent: 2 of") for line in margin_equivalence.verdict(moved))

"""The figure of a cubic function: bounds and exponents, and a verdict that can say no."""

import numpy as np
import pytest

from lazyscope.experiments.lazy import separation
from lazyscope.limits.declared import cubic_share

BAD = "NOT told apart"


def test_the_verdict_says_no_to_a_planted_fault(tiny):
    panels = tiny("separation").panels
    assert BAD not in separation.verdict(panels)[-1]
    shares, trained = panels["dimensions"], panels["trained"]
    faults = {
        "shares that do not fall": {"dimensions": shares.assign(learnt=0.0 * shares.learnt + 1e-3)},
        "shares beyond the count of parameters": {"dimensions": shares.assign(learnt=30.0 * shares.learnt)},
        "a lazy network that learns": {"trained": trained.assign(risk=0.7 * trained.risk)},
        "a network that learns nothing": {"trained": trained.assign(risk=0.0 * trained.risk + 0.95)},
    }
    for fault, changed in faults.items():
        assert BAD in separation.verdict({**panels, **changed})[-1], fault


def test_exponents_and_their_errors(tiny):
    shares = tiny("separation").panels["dimensions"]
    exact = shares.assign(learnt=shares.learnt * 0.0 + 2.0 * shares.d**-1.5, stderr=shares.stderr * 0.0)
    assert separation.rates(exact) == pytest.approx({"RF": -1.5, "NT": -1.5})
    assert separation.errors(exact) == {"RF": 0.0, "NT": 0.0}


@pytest.mark.parametrize("d", [3, 5, 8])
def test_the_number_of_cubic_harmonics(d):
    """B(d, 3): cubic forms less multiples of |x|², counted."""
    forms = d * (d + 1) * (d + 2) // 6
    assert (d + 4) * d * (d - 1) // 6 == forms - d
    assert cubic_share(forms - d, d) == 3.0 / (d + 2.0) + 1.0


def test_the_part_that_is_linear_but_for_the_radius():
    """3/(d + 2) of he₃'s energy: its overlap with (‖x‖² − d − 2)⟨u, x⟩, over 10⁶ samples good to 1 %."""
    d, rng = 6, np.random.default_rng(0)
    x = rng.standard_normal((1_000_000, d))
    z = x[:, 0]
    h, radial = (z**3 - 3 * z) / np.sqrt(6.0), (np.sum(x**2, axis=1) - d - 2) * z
    share = np.mean(h * radial) ** 2 / np.mean(radial**2)
    assert share == pytest.approx(3.0 / (d + 2.0), rel=0.03)

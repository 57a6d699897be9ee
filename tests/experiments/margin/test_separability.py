"""Separability: where the share of separable draws crosses one half."""

import numpy as np
import pytest
from scipy.special import ndtr

from lazyscope.experiments.margin import separability


def test_a_crossing_is_found_with_its_standard_error():
    rng = np.random.default_rng(0)
    x, draws = np.linspace(0.3, 0.5, 9), 50
    found = np.array(
        [separability.crossing(x, rng.binomial(draws, ndtr((x - 0.41) / 0.03)) / draws, draws) for _ in range(40)]
    )
    assert found[:, 0].mean() == pytest.approx(0.41, abs=4 * found[:, 0].std() / np.sqrt(40))
    # the standard error is the spread of the estimate, itself known to 1/√80
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=4 / np.sqrt(80))

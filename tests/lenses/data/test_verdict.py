"""The sentences of the data lens say what was looked at, and no more."""

from dataclasses import replace

import numpy as np

from lazyscope.lenses.data.quadratic.part import quadratic_part
from lazyscope.lenses.data.verdict import shares


def test_shares_of_some_directions_are_not_told_as_those_of_all():
    """Variances 1, 2 and 1: a quarter linear, half quadratic; of 50 columns, 48 would not have been looked at."""
    z = np.random.default_rng(0).standard_normal((4000, 2))
    y = z[:, 0] + (z[:, 1] ** 2 - 1) + np.random.default_rng(1).standard_normal(4000)
    part = quadratic_part(z, y)
    assert part.whole and shares(part).endswith("noise or of higher order")
    some = shares(replace(part, columns=50))
    assert some.startswith("in 2 of 50 directions ") and some.endswith("directions not looked at")
    assert "noise or of higher order" not in some


def test_an_error_below_a_percent_is_not_told_as_none():
    part = quadratic_part(*_nearly_exact())
    assert "± 0 " not in shares(part) and "± 0." in shares(part)


def _nearly_exact():
    z = np.random.default_rng(2).standard_normal((20_000, 1))
    return z, z[:, 0]

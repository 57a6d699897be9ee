"""Normal numbers: their law, and the transform against the same formula in float64."""

import numpy as np
import pytest
from scipy import stats

# private: its pairs are compared one by one, which the stream of numbers hides
from lazyscope.numerics.normals import _box_muller, standard_normal


@pytest.fixture(scope="module")
def many():
    return standard_normal(4000, 500, np.random.default_rng(7)).ravel().astype(np.float64)


def test_they_are_normal(many):
    assert stats.kstest(many, "norm").pvalue > 1e-3
    for power in range(1, 9):  # E x^p, of variance E x^2p − (E x^p)²
        moment = stats.norm.moment(power)
        error = np.sqrt((stats.norm.moment(2 * power) - moment**2) / many.size)
        assert abs(np.mean(many**power) - moment) < 4 * error


def test_tails_are_as_heavy_as_they_should_be(many):
    for t in (2.0, 3.0, 4.0):
        p = 2 * stats.norm.sf(t)
        assert abs(np.mean(np.abs(many) > t) - p) < 4 * np.sqrt(p / many.size)


def test_neighbours_and_partners_are_independent():
    x = standard_normal(1000, 400, np.random.default_rng(1)).ravel().astype(np.float64)
    half = x.size // 2
    for shift in (1, 2, 400, half):  # x and y of one pair stand half the array apart
        for power in (1, 2):
            a, b = x[:-shift] ** power, x[shift:] ** power
            assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(a.size)


def test_the_transform_is_box_and_mullers_to_float32():
    rng = np.random.default_rng(3)
    k, el = (rng.integers(0, 2**32, size=100_000, dtype=np.uint32) for _ in range(2))
    k[:3], el[:3] = (0, 1, 2**32 - 1), (0, 2**30, 2**32 - 1)  # the ends of both ranges
    x, y = np.empty(k.size, np.float32), np.empty(k.size, np.float32)
    _box_muller(k, el, x, y)
    u = np.minimum((k.astype(np.float32) + np.float32(0.5)) * 2.0**-32, 1.0).astype(np.float64)
    r = np.sqrt(-2 * np.log(u))
    t = ((el & 0x3FFFFFFF).astype(np.float64) * 2.0**-30 - 0.5) * (np.pi / 2)
    across, along = r * np.sin(t), r * np.cos(t) * np.where(el & 0x80000000, -1, 1)
    swap = (el & 0x40000000) != 0
    # 30 bits of the angle round to 24, and ten roundings of 6e-8 each on numbers of order r ≤ 7
    assert x == pytest.approx(np.where(swap, along, across), abs=3e-6)
    assert y == pytest.approx(np.where(swap, across, along), abs=3e-6)
    assert np.all(np.isfinite(x)) and np.abs(x[0]) < 6.8


def test_odd_numbers_of_them_and_one_seed():
    first, again = (standard_normal(3, 5, np.random.default_rng(2)) for _ in range(2))
    assert first.shape == (3, 5) and first.dtype == np.float32
    assert np.array_equal(first, again)

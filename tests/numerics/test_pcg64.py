"""Bits by four lanes against NumPy's own, and where they leave the generator."""

import numpy as np
import pytest

from lazyscope.numerics import pcg64


def numpys(rng, n):
    return rng.integers(0, 2**64 - 1, size=n, dtype=np.uint64, endpoint=True)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6, 7, 8, 1001])
def test_numbers_and_what_follows_them_are_numpys(n):
    ours, theirs = (np.random.default_rng(11) for _ in range(2))
    for rng in (ours, theirs):
        rng.integers(0, 2**32, dtype=np.uint32)  # NumPy keeps the other half of 64 bits for the next call of this kind
    out = np.empty(n, dtype=np.uint64)
    pcg64.fill(out, ours)
    assert np.array_equal(out, numpys(theirs, n))
    assert ours.bit_generator.state == theirs.bit_generator.state
    assert ours.integers(0, 2**32, dtype=np.uint32) == theirs.integers(0, 2**32, dtype=np.uint32)


@pytest.mark.parametrize("kind", [np.random.PCG64DXSM, np.random.Philox, np.random.MT19937])
def test_other_generators_give_their_own_numbers(kind):
    out = np.empty(9, dtype=np.uint64)
    pcg64.fill(out, np.random.Generator(kind(5)))
    assert np.array_equal(out, numpys(np.random.Generator(kind(5)), 9))

"""2-XOR from d = 16 to 96: the exponents of n(d) at 5% error. Minutes: `make validate`."""

import pytest

import lazyscope as ls
from lazyscope.experiments.beyond.sample_complexity.numbers import gain, sample_complexity

pytestmark = pytest.mark.slow


def test_on_two_xor_the_exponents_are_smaller_by_a_half(keep):
    """Issue 6: at least 0.5 smaller than the NTK's, at the low end of the interval."""
    learners = ("NTK", "quadratic model", "randomised network")
    dimensions = (16, 32, 64, 96)
    result = sample_complexity([ls.SparseParity(d) for d in dimensions], learners, draws=3)
    gains = {name: gain(result, name) for name in learners[1:]}
    names = ("exponent", "exponent_low", "exponent_high")
    keep(
        d=list(dimensions),
        needed={name: result.needed.sel(learner=name).values.round(1).tolist() for name in learners},
        exponents={name: [round(float(result[key].sel(learner=name)), 3) for key in names] for name in learners},
        gains={name: [round(value, 3) for value in found] for name, found in gains.items()},
    )
    assert int(result.missed.sum()) == 0
    assert all(low >= 0.5 for _, low, _ in gains.values())

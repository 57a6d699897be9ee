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


def test_he3_costs_a_kernel_three_powers_of_d_and_sgd_two(keep):
    """Exponents of n(d) to reach half of the energy of he₃: kernel 3 ± 0.3, one-pass SGD with plain steps 2 ± 0.25."""
    lazy = ls.sample_complexity([ls.MultiIndex(d, "he3") for d in (10, 14, 20, 28)], ["kernel"], level=0.5, draws=4)
    sgd = ls.sample_complexity(
        [ls.MultiIndex(d, "he3") for d in (64, 128, 256, 384)], ["SGD"], level=0.5, draws=6, most=6_000_000
    )
    found = {name: (float(result.exponent[0]), float(result.exponent_stderr[0]))
             for name, result in (("kernel", lazy), ("SGD", sgd))}  # fmt: skip
    keep(exponents=found, needed={"kernel": lazy.needed.values.tolist(), "SGD": sgd.needed.values.tolist()},
         theory=lazy.theory.values.tolist(), missed=int(sgd.missed.sum()))  # fmt: skip
    assert abs(found["kernel"][0] - 3.0) < 0.3
    assert abs(found["SGD"][0] - 2.0) < 0.25

"""Moment-matched z±, and the k-th Taylor piece that they extract."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.beyond import higher_order as higher_order_experiment
from lazyscope.experiments.beyond.higher_order import HigherOrderDraw, extracted, higher_order
from lazyscope.limits import declared
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.moments import moment_matched


@pytest.mark.parametrize("k", range(1, 13))
def test_moments_agree_exactly_below_k_and_differ_by_one_at_k(k):
    pair = moment_matched(k)
    assert [pair.difference(j) for j in range(k)] == [0] * k
    assert pair.gap > 0
    assert sum(pair.plus_probabilities) == sum(pair.minus_probabilities) == 1
    assert min((*pair.plus_probabilities, *pair.minus_probabilities)) > 0
    with mp.workdps(40):  # scaled, in forty digits: the difference is one
        scale = (mp.mpf(pair.gap.denominator) / pair.gap.numerator) ** (mp.mpf(1) / k)
        laws = [(pair.plus, pair.plus_probabilities, 1), (pair.minus, pair.minus_probabilities, -1)]
        total = mp.fsum(
            sign * mp.mpf(p.numerator) / p.denominator * (scale * mp.mpf(x.numerator) / x.denominator) ** k
            for nodes, odds, sign in laws
            for x, p in zip(nodes, odds, strict=True)
        )
        assert abs(total - 1) < mp.mpf(10) ** -35
        assert pair.scale == pytest.approx(float(scale), rel=1e-14)


def test_the_default_is_the_binomial_law_of_finite_differences():
    # Σ_i (−1)^{k−i} C(k,i) i^k = k!: z₊ has probabilities C(k,i)/2^{k−1} at every other node, gap k!/2^{k−1}
    pair = moment_matched(4)
    assert pair.plus == (-2, 0, 2) and pair.plus_probabilities == (Fraction(1, 8), Fraction(3, 4), Fraction(1, 8))
    assert pair.minus == (-1, 1) and pair.gap == Fraction(24, 8)


def test_any_rational_nodes_serve():
    pair = moment_matched(3, [0, "1/3", 1, 5])
    assert [pair.difference(j) for j in range(3)] == [0] * 3 and pair.gap > 0


@pytest.mark.parametrize("sign", [1, -1])
def test_draws_follow_the_law(sign):
    pair, n = moment_matched(4), 40_000
    z = pair.draw(n, sign, np.random.default_rng(0))
    for j in range(1, 6):
        assert abs(np.mean(z**j) - pair.moment(j, sign)) < 4 * np.std(z**j) / np.sqrt(n) + 1e-12


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_kth_piece_stays_and_the_others_fall(k):
    """Exponents over m = 10²…10⁵: f^(1) falls like m^−1/2k, f^(k) is flat, f^(1) without randomisation grows."""
    result = higher_order(k, [100, 1000, 10_000, 100_000], draws=4, samples=16)
    slope = result.randomized_exponent.values
    assert abs(slope[0] + 1 / (2 * k)) < 0.05
    assert abs(slope[k - 1]) < 0.05
    for j in range(2, k):  # §6.1 has these at most m^−1/2k; they fall like m^−j/2k
        assert abs(slope[j - 1] + j / (2 * k)) < 0.08
    assert slope[k] < -1 / (2 * k) + 0.05  # what follows
    assert abs(float(result.plain_exponent.sel(piece="1")) - (k - 1) / (2 * k)) < 0.05
    assert abs(float(result.plain_exponent.sel(piece=str(k)))) < 0.05


@pytest.mark.parametrize(("k", "name"), [(2, "softplus"), (3, "tanh"), (4, "softplus")])
def test_the_kth_piece_tends_to_its_mean(k, name):
    # f^(k) → ½ E[σ^(k)(g)]/k! (v·x)^k, the Gaussian mean by mpmath
    function = {"softplus": lambda u: mp.log1p(mp.exp(u)), "tanh": mp.tanh}[name]
    mean = float(mp.quad(lambda g: mp.diff(function, g, k) * mp.npdf(g), [-9, 0, 9])) / float(mp.factorial(k))
    rng = np.random.default_rng(0)
    m, v = 200_000, np.array([0.6, 0.8, 0.0])
    model = TaylorModel.symmetric(m, 3, name, rng)
    pair, X = moment_matched(k), np.array([[0.6, 0.8, 0.0], [1.0, 0.0, 0.0]])
    z = np.concatenate([pair.draw(m // 2, sign, rng) for sign in (1, -1)])
    found = model.piece(k, extracted(k, z, v), X)
    spread = np.sqrt(pair.moment(2 * k, 1) + pair.moment(2 * k, -1)) * 2 / np.sqrt(m)  # |σ^(k)| ≤ 2 here
    assert np.all(np.abs(found - 0.5 * mean * (X @ v) ** k) < 4 * spread * np.abs(X @ v) ** k)


def test_declared_exponents_and_reproducibility():
    assert np.allclose(declared.higher_order(3, True), [-1 / 6, -1 / 3, 0.0, -1 / 6])
    rows = [HigherOrderDraw(3, 40, samples=4, repeats=3, seed=2).compute() for _ in range(2)]
    assert all(np.array_equal(rows[0][name], rows[1][name]) for name in rows[0])


def test_bad_input_is_refused_in_one_line():
    with pytest.raises(ls.InvalidParameter, match=r"k parameter of higher_order must be a whole number, at least 2"):
        higher_order(1)
    with pytest.raises(ls.NoTheorem, match=r"order 4 assumes .*Got relu3"):
        higher_order(4, [10, 20], activation="relu3")
    with pytest.raises(ls.InvalidParameter, match=r"nodes parameter of moment_matched must be k \+ 1 = 3 distinct"):
        moment_matched(2, [0, 1, 1])
    with pytest.raises(ls.InvalidParameter, match=r"m parameter .* must be even"):
        higher_order(2, [11], draws=1)


def test_the_verdict_says_no_to_wrong_exponents(tiny):
    wrong = {name: panel.copy(deep=True) for name, panel in tiny("higher-order").panels.items()}
    for panel in wrong.values():
        for name in ("exponent", "randomized_exponent"):
            if name in panel:
                panel[name][...] = 0.7
    assert higher_order_experiment.verdict(wrong)[-1].startswith("Not ")

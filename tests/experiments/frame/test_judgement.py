"""A verdict that can fail: each of its three questions says no to the mistake that it is for, and yes to chance."""

import numpy as np
import pytest

from lazyscope.experiments.frame.judgement import Dot, judged


def right(seed, count=30, draws=8, **more):
    """Dots that are what theory says, with a spread of a tenth."""
    rng = np.random.default_rng(seed)
    return [Dot(f"dot {k}", 1.0 + 0.1 * rng.standard_normal(draws), 1.0, 0.01, **more) for k in range(count)]


def test_chance_is_seldom_called_a_mistake():
    """χ² leaves its range in two figures of a hundred, a draw stands out in one of a thousand."""
    answers = [judged(right(seed, 15)) for seed in range(60)]
    assert sum(not found.as_chance for found in answers) <= 5  # of 1.2 expected
    assert sum(bool(found.strange) for found in answers) <= 1
    assert not any(found.far for found in answers)


def test_dots_that_move_together_count_as_fewer():
    rng = np.random.default_rng(0)
    outside = {True: 0, False: 0}
    for _ in range(30):
        common = rng.standard_normal((4, 16))
        noise = rng.standard_normal((4, 10, 16))
        values = 1.0 + 0.1 * (0.95 * common[:, None] + 0.3 * noise)
        for known in outside:
            dots = [Dot("", values[g, k], 1.0, 0.01, stream=g if known else None) for g in range(4) for k in range(10)]
            outside[known] += not judged(dots).as_chance
    assert outside[True] <= 4 and outside[False] >= 10


@pytest.mark.parametrize("by", [0.05, -0.05])
def test_all_dots_five_percent_off_are_seen(by):
    found = judged([Dot(dot.where, dot.draws + by, 1.0, 0.01) for dot in right(1)])
    assert not found.as_chance and not found.answer().holds


def test_a_single_dot_that_is_far_is_named():
    dots = right(2)
    dots[7] = Dot("the seventh", dots[7].draws + 0.4, 1.0, 0.01)
    answer = judged(dots).answer()
    assert not answer.holds and "too far: the seventh" in answer


def test_a_draw_with_the_weights_of_another_is_seen_though_no_mean_moves():
    rng = np.random.default_rng(3)
    foretold = 1.0 + 0.1 * rng.standard_normal((6, 5))
    drawn = foretold + 0.01 * rng.standard_normal((6, 5))

    def of(measured):
        return judged(Dot("", m, p, 0.001, order=0.01) for m, p in zip(measured, foretold, strict=True))

    assert of(drawn).answer().holds
    swapped = drawn[:, [1, 0, 2, 3, 4]]
    assert np.all(np.abs(of(swapped).z) < 1.0), "exchanged weights leave every mean where it was"
    assert not of(swapped).answer().holds and any("more like draw" in words for words in of(swapped).strange)


def weights_matter(seed, apart, dots=8, draws=6):
    """Return what is measured and predicted where weights move risks `apart` times as far as a draw scatters."""
    rng = np.random.default_rng(seed)
    foretold = 1.0 + 0.01 * apart * rng.standard_normal((dots, draws))
    return foretold + 0.01 * rng.standard_normal((dots, draws)), foretold


def swapped(measured, foretold):
    found = judged(Dot(str(k), m, p, 0.0, order=0.01) for k, (m, p) in enumerate(zip(measured, foretold, strict=True)))
    return [words for words in found.strange if "like draw" in words or "exchanged" in words]


@pytest.mark.parametrize("apart", [0.3, 1.0, 3.0])
def test_right_draws_are_seldom_called_swapped(apart):
    """Beyond 16 is four standard deviations or more, whatever the weights do; 30 pairs are looked at in each figure."""
    assert sum(bool(swapped(*weights_matter(seed, apart))) for seed in range(100)) <= 2


def test_exchanged_draws_are_seen_where_one_of_them_alone_is_not():
    seen = {"one": 0, "both": 0}
    for seed in range(20):
        measured, foretold = weights_matter(seed, 1.5)
        seen["one"] += bool(swapped(measured[:, [1, 1, 2, 3, 4, 5]], foretold))
        seen["both"] += bool(swapped(measured[:, [1, 0, 2, 3, 4, 5]], foretold))
    assert seen["both"] >= 14 and seen["one"] < seen["both"]


def test_a_prediction_that_is_off_for_all_draws_alike_is_no_swap():
    """Whether the mean is right is asked by z: here it is 6 standard errors too high, and nothing is said of draws."""
    measured, foretold = weights_matter(1, 0.3)
    assert not swapped(measured, foretold + 0.025)


def test_what_is_certain_has_no_z_and_a_certain_mistake_is_far():
    dot = Dot("certain", np.full(4, 0.5) + 1e-16 * np.arange(4), 0.5, 0.0)
    assert np.isnan(dot.z) and not dot.is_far and not judged([dot]).strange
    assert Dot("wrong", np.full(4, 0.5), 0.501, 0.0).is_far


def test_a_single_draw_is_held_to_the_order_of_its_spread():
    assert not Dot("", np.array([1.05]), 1.0, 0.01).is_far, "a tenth, where nothing else is known"
    assert Dot("", np.array([1.05]), 1.0, 0.01, order=0.001).is_far
    assert not Dot("", np.array([1.005]), 1.0, 0.01, order=0.001).is_far


def test_zero_to_rounding_is_no_distance():
    small = Dot("", np.array([4.9e-10, 5.0e-10, 4.8e-10]), 3.2e-10, 2e-13, floor=2.8e-10)
    assert small.is_predicted and np.isnan(small.z) and not small.is_far
    assert Dot("", small.draws + 3e-10, 3.2e-10, 2e-13, floor=2.8e-10).is_far


def test_too_few_predictions_are_no_agreement():
    dots = right(4)
    blind = [Dot(dot.where, dot.draws, np.nan, 0.0) for dot in dots[:7]]
    assert judged([*dots, *blind]).enough and not judged([*dots[:20], *blind]).enough
    said = judged([*dots[:20], *blind]).answer()
    assert "too few predicted" in said and said.startswith("Too few dots are predicted to say") and not said.holds

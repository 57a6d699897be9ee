"""The cost of laziness: dots on lines that nothing is fitted to, and a verdict that finds wrong exponents."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.beyond.sample_complexity import feature_learners
from lazyscope.experiments.sizes import cost_of_laziness
from lazyscope.limits import declared
from lazyscope.population.infinite_width import fourier_kernel


@pytest.mark.parametrize("sigma", ["sin", "cos"])
@pytest.mark.parametrize("tangent", [False, True])
def test_fourier_kernels_are_means_over_features(sigma, tangent):
    """4·10⁵ weights: the mean of products of bounded features is within 5/√(4·10⁵) = 0.008 of its limit."""
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((3, 4)), 2.0 * rng.standard_normal((2, 4))
    W = rng.standard_normal((400_000, 4)) / 2.0
    function = {("sin", False): np.sin, ("cos", False): np.cos, ("sin", True): np.cos, ("cos", True): np.sin}
    f = function[sigma, tangent]
    sampled = f(X @ W.T) @ f(Z @ W.T).T / len(W) * (X @ Z.T / 4.0 if tangent else 1.0)
    scale = np.maximum(1.0, np.abs(X @ Z.T / 4.0)) if tangent else 1.0
    assert np.max(np.abs(fourier_kernel(sigma, tangent, X, Z) - sampled) / scale) < 0.008


@pytest.mark.parametrize(
    ("link", "learner", "level", "exponent"),
    [
        ("he2", "kernel", 0.5, 2), ("he4", "NT", 0.5, 4), ("he1+he3", "RF", 0.6, 1), ("he1+he3", "RF", 0.4, 3),
        ("he2", "SGD", 0.5, 1), ("he3", "SGD", 0.5, 2), ("he4", "SGD", 0.5, 3), ("he1+he4", "SGD", 0.5, 1),
        ("he1+he3", "giant step", 0.4, 1), ("he3", "giant step", 0.4, np.inf),
    ],
)  # fmt: skip
def test_exponents_in_theory(link, learner, level, exponent):
    assert declared.few_direction_samples(ls.MultiIndex(9, link), learner, level) == exponent


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_the_lines_of_kernels_have_the_slope_of_the_degree(degree):
    """From d = 100 to 200, where corrections in 1/d are 1 per cent of the exponent; the risk there is the level."""
    sigma = "sin" if degree % 2 else "cos"
    low, high = (ls.MultiIndex(d, f"he{degree}") for d in (100, 200))
    n = [feature_learners.needed_in_theory(problem, "kernel", 0.5, sigma) for problem in (low, high)]
    assert np.log2(n[1] / n[0]) == pytest.approx(degree, abs=0.1)
    ridges = np.array([1e-5, 1e-3, 1e-2, 1e-1, 1.0]) * float(ls.Activation(sigma).second_moment(1.0))
    risk = ls.limit(low, ls.RandomFeatures(sigma), width=np.inf, samples=n[0], ridge=ridges, method="ridge").risk
    assert float(risk.min()) == pytest.approx(0.5, abs=1e-4)


def test_dots_of_a_kernel_lie_on_the_line(tiny):
    """At d = 16 on Gaussian inputs: O(1/d) from the sphere, and two data sets."""
    panel = tiny("cost-of-laziness").panels["degree 2, kernel"]
    assert float(panel.needed[-1] / panel.theory[-1]) == pytest.approx(1.0, abs=0.35)
    assert np.all(np.diff(panel.line) > 0.0)


def test_the_verdict_says_which_exponent_is_wrong_and_knows_the_errors(tiny):
    panels = tiny("cost-of-laziness").panels

    def fitted(learner, exponent, error):
        panel = panels[f"degree 2, {learner}"]
        known = {"exponent": exponent, "exponent_low": exponent - error, "exponent_high": exponent + error}
        return {f"degree 2, {learner}": panel.assign({name: 0.0 * panel.exponent + at for name, at in known.items()})}

    kernel = fitted("kernel", 2.0, 0.1)
    right = cost_of_laziness.verdict(kernel | fitted("SGD", 1.0, 0.1))[-1]
    assert right.holds and "d^(1.0 ± 0.1)" in right
    steep = cost_of_laziness.verdict(kernel | fitted("SGD", 1.7, 0.1))[-1]
    assert "degree 2, SGD: d^1.70 for d^1" in steep and "laziness costs d^(0.3 ± 0.1) alone" in steep
    blurred = cost_of_laziness.verdict(kernel | fitted("SGD", 1.7, 2.0))
    assert any("is not decided" in line for line in blurred), "an interval that says nothing is not agreement"
    assert not blurred[-1].holds and "no degree decides" in blurred[-1]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"learners": ["NTK"]}, "kernel, RF, NT, giant step, SGD for MultiIndex"),
        ({"learners": ["kernel"], "activation": "relu"}, "sin or cos"),
        ({"learners": ["SGD"], "link": "product", "indices": 2}, "one direction or a committee"),
    ],
)
def test_bad_questions_are_refused_in_a_line(given, word):
    problem = {"link": given.pop("link", "he2"), "indices": given.pop("indices", 1)}
    with pytest.raises(ls.InvalidParameter, match=word) as caught:
        ls.sample_complexity([ls.MultiIndex(d, **problem) for d in (6, 8)], level=0.5, draws=2, most=60, **given)
    assert "\n" not in str(caught.value)

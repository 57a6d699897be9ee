"""The threshold of separability: the issue's numbers, the margin on both sides of it, and a minimisation of its own."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from scipy.stats import norm

import lazyscope as ls
from lazyscope.limits.margin.separability import separability_threshold
from lazyscope.problems import LinearLabels
from lazyscope.regimes import GaussianFeatures, IsotropicFeatures, RandomFeatures

LABELS = {
    "logistic": LinearLabels(4.0),
    "sign": LinearLabels(1.0, "sign"),
    "probit": LinearLabels(1.5, "probit"),
    "ramp": LinearLabels(2.0, lambda t: np.clip(0.45 + 0.2 * t, 0.1, 0.8)),
}
ISOTROPIC = IsotropicFeatures()


def margin(problem, regime, psi1, psi2):
    return ls.limit(problem, regime, psi1=psi1, psi2=psi2, method="margin")


@pytest.mark.parametrize(("signal", "expected"), [(0.0, 0.5), (1.0, 0.4389391), (2.0, 0.3449301)])
def test_separability_thresholds_of_the_issue(signal, expected):
    found = separability_threshold(LinearLabels(signal), ISOTROPIC)
    assert float(found.ratio) == pytest.approx(expected, abs=5e-8)
    assert float(found.samples_per_feature) == pytest.approx(1 / float(found.ratio))


@pytest.mark.parametrize("name", LABELS)
def test_below_the_threshold_the_margin_is_zero_and_the_result_says_so(name):
    problem, regime = LABELS[name], RandomFeatures("relu")
    at = separability_threshold(problem, regime, psi2=2.0)
    psi1 = float(at.psi1)
    below, above = margin(problem, regime, psi1 * (1 - 1e-6), 2.0), margin(problem, regime, psi1 * (1 + 1e-6), 2.0)
    assert not bool(below.separable) and bool(above.separable)
    assert (float(below.margin), float(below.error), float(below.alignment)) == (0.0, 0.5, 0.0)
    assert 0.0 < float(above.margin) < 1e-5  # it grows from zero without a jump


@pytest.mark.parametrize("name", LABELS)
def test_the_two_ways_to_ask_for_a_threshold_agree(name):
    psi2 = np.array([0.05, 1.0, 2.0, 40.0])
    one = separability_threshold(LABELS[name], RandomFeatures("tanh"), psi2=psi2)
    other = separability_threshold(LABELS[name], RandomFeatures("tanh"), psi1=one.psi1.values)
    assert other.psi2.values == pytest.approx(psi2, rel=1e-10)
    assert one.ratio.values == pytest.approx(other.ratio.values, rel=1e-10)
    assert np.all(np.diff(one.ratio.values) < 0)  # more samples need more features, but fewer for each


def test_thresholds_at_the_ends():
    assert float(separability_threshold(LinearLabels(3.0, "sign"), ISOTROPIC).ratio) == 0.0
    blind = separability_threshold(LinearLabels(3.0, "sign"), RandomFeatures("square"), psi2=3.0)
    assert float(blind.psi1) == pytest.approx(1.5, rel=1e-12)  # Cover: half as many features as samples
    half = GaussianFeatures([1.0, 2.0], alignment=[0.2, 0.3])
    scaled = GaussianFeatures([7.0, 0.1], alignment=[0.3, 0.2])
    one, other = (float(separability_threshold(LABELS["logistic"], regime).ratio) for regime in (half, scaled))
    assert one == pytest.approx(other, rel=1e-12)  # of the spectrum only what it sees remains


@pytest.mark.parametrize("seen", [0.1, 0.6, 1.0])
def test_the_threshold_by_a_minimisation_of_its_own(seen):
    T, p = LABELS["logistic"].agreement

    def squared(c):
        x = np.sqrt(1 + c**2 * (1 - seen))
        u = -c * np.sqrt(seen) * T / x
        return x**2 * (p @ ((u * u + 1) * ndtr(u) + u * norm.pdf(u)))

    expected = minimize_scalar(squared, bounds=(0.0, 20.0), method="bounded", options={"xatol": 1e-10}).fun
    regime = GaussianFeatures([1.0], alignment=[seen])
    assert float(separability_threshold(LABELS["logistic"], regime).ratio) == pytest.approx(expected, rel=1e-12)

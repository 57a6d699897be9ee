"""The loss of the margin: a closed form in Z and a Gauss rule in T, against quadrature in both."""

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from lazyscope.limits.margin.loss import STEEPEST, compact, loss, normal
from lazyscope.numerics.quadrature import panels
from lazyscope.problems import LinearLabels

LABELS = {
    "logistic": LinearLabels(4.0),
    "sign": LinearLabels(1.0, "sign"),
    "probit": LinearLabels(1.5, "probit"),
    "ramp": LinearLabels(2.0, lambda t: np.clip(0.45 + 0.2 * t, 0.1, 0.8)),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize(("mu", "rho"), [(0.9, 0.6), (0.0, 1.3), (2.5, 0.1)])
def test_the_loss_by_integrating_both_variables(name, mu, rho):
    problem = LABELS[name]

    s = problem.signal
    # panels in t that end where the links have kinks, in x > 0 wherever z = mu − rho t − x has mass
    t, t_weight = panels(np.array([-10, -6, -3, -1.75, -0.875, -0.4, 0, 0.4, 0.875, 1.75, 3, 6, 10.0]))
    x, x_weight = panels(np.linspace(0.0, 30.0, 31))
    density = norm.pdf(t) * (problem.probability(s * t) + 1 - problem.probability(-s * t))
    weight = (t_weight * density)[:, None] * x_weight * norm.pdf(mu - rho * t[:, None] - x)
    expected = [np.sum(weight), np.sum(weight * x), np.sum(weight * x * t[:, None]), np.sum(weight * x**2)]
    assert loss(mu, rho, *compact(problem))[:4] == pytest.approx(expected, abs=1e-11)


def test_the_loss_to_twelve_digits_by_mpmath():
    mu, rho, signal = 0.7, 1.1, 4
    with mpmath.workdps(25):

        def squared(t):
            x = mu - rho * t
            return (x * x + 1) * mpmath.ncdf(x) + x * mpmath.npdf(x)

        expected = mpmath.quad(
            lambda t: mpmath.npdf(t) * 2 / (1 + mpmath.exp(-signal * t)) * squared(t),
            [-mpmath.inf, -3, -1, 0, 1, 3, mpmath.inf],
        )
    assert loss(mu, rho, *compact(LinearLabels(4.0)))[3] == pytest.approx(float(expected), abs=1e-14)


@pytest.mark.parametrize("name", LABELS)
def test_the_compact_rule_and_the_panels_agree_wherever_the_first_is_used(name):
    problem = LABELS[name]
    for mu in (0.0, 0.3, 1.0, 4.0):
        for rho in (0.0, 0.5, STEEPEST):
            fine = loss(mu, rho, *problem.agreement)
            assert loss(mu, rho, *compact(problem)) == pytest.approx(fine, rel=1e-12, abs=1e-13)


def test_slopes_of_the_loss_by_differences():
    T, p = compact(LABELS["logistic"])
    mu, rho, h = 0.8, 0.7, 1e-6
    P0, E0, E1, _, Q0, Q1, P1, P2 = loss(mu, rho, T, p)
    by_mu = (np.array(loss(mu + h, rho, T, p)) - loss(mu - h, rho, T, p)) / (2 * h)
    by_rho = (np.array(loss(mu, rho + h, T, p)) - loss(mu, rho - h, T, p)) / (2 * h)
    assert by_mu[[0, 1, 2, 3]] == pytest.approx([Q0, P0, P1, 2 * E0], abs=1e-8)
    assert by_rho[[0, 1, 2, 3]] == pytest.approx([-Q1, -P1, -P2, -2 * E1], abs=1e-8)


def test_the_normal_law_to_rounding_everywhere():
    x = np.concatenate([np.linspace(-37.0, 37.0, 20_001), [0.0, -4.0, 4.0, -1e-300, 1e-300]])
    below, density = np.empty_like(x), np.empty_like(x)
    normal(0.0, -1.0, x, np.ones_like(x), below, density)
    # x²/2 itself is rounded: a relative error of up to x²·2⁻⁵⁴ of the density, and of Φ below 0
    allowed = 4e-15 + x**2 * 2.0**-53
    with mpmath.workdps(30):
        for k in range(0, x.size, 97):
            assert below[k] == pytest.approx(float(mpmath.ncdf(x[k])), rel=allowed[k], abs=0.0)
    assert np.all(np.abs(density / norm.pdf(x) - 1.0) < allowed)


def test_the_normal_law_far_out_is_zero_or_one_and_never_nan():
    x = np.array([-1e300, -1e10, -50.0, 50.0, 1e10, 1e150])
    below, density = np.empty_like(x), np.empty_like(x)
    normal(0.0, -1.0, x, np.ones_like(x), below, density)
    assert below == pytest.approx([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], abs=1e-300)
    assert density == pytest.approx(np.zeros(6), abs=1e-300)

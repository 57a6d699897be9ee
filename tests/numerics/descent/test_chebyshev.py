"""Runge–Kutta–Chebyshev steps: closed forms, their order, a second solver, and what stiffness costs."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lazyscope.errors import NotConverged
from lazyscope.numerics.descent import chebyshev


def damped(y):
    """A flow down Σy⁴/4, whose path is y₀/√(1 + 2y₀²t)."""
    return -(y**3)


def test_errors_fall_with_the_tolerance_as_those_of_second_order():
    """An error of a step of order h³ held to a tolerance: that of the path goes like its two thirds."""
    begin, times = np.array([1.0, 2.0, -0.5]), np.array([0.5, 3.0])
    true = begin / np.sqrt(1.0 + 2.0 * begin**2 * times[:, None])
    tolerances = 10.0 ** -np.arange(4.0, 9.0)
    errors = [
        np.max(np.abs(chebyshev.solve(damped, begin, times, rtol=tol, atol=tol, most=100_000).states - true))
        for tol in tolerances
    ]
    rate = np.polyfit(np.log(tolerances), np.log(errors), 1)[0]
    assert rate == pytest.approx(2 / 3, abs=0.07) and errors[-1] < 1e-5


@pytest.mark.parametrize("s", [2, 3, 10, 60])
def test_a_step_is_that_of_second_order_and_stable_to_its_end(s):
    """The stability polynomial: 1 + z + z²/2 at small z, and within 1 up to the reach that is claimed."""
    c, f0 = chebyshev._coefficients(s), 1.0  # the polynomial is the step of ẏ = −zy, which no public call shows

    def polynomial(z):
        before, here = f0, f0 - c.first * z * f0
        for mu, nu, mu_f, gamma in zip(c.mu, c.nu, c.mu_f, c.gamma, strict=True):
            before, here = here, (1 - mu - nu) * f0 + mu * here + nu * before - z * (mu_f * here + gamma * f0)
        return here

    small = 1e-3
    assert polynomial(small) == pytest.approx(1 - small + small**2 / 2, abs=small**3)
    inside = np.linspace(0.0, chebyshev._REACH * (s**2 - 1), 2000)
    assert np.max(np.abs(polynomial(inside))) <= 1.0 + 1e-12


def test_a_stiff_flow_is_that_of_another_solver_at_a_fraction_of_its_evaluations():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    A = (Q * np.geomspace(1e-2, 2e3, 30)) @ Q.T

    def flow(y):
        return -A @ y - 0.1 * y**3

    begin, times = rng.standard_normal(30), [1.0, 20.0]
    path = chebyshev.solve(flow, begin, times, rtol=1e-6, atol=1e-7, most=100_000)
    other = solve_ivp(lambda t, y: flow(y), (0.0, 20.0), begin, "DOP853", times, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(path.states, other.y.T, atol=2e-4)
    usual = solve_ivp(lambda t, y: flow(y), (0.0, 20.0), begin, "DOP853", times, rtol=1e-4, atol=1e-5)
    assert path.evaluations < usual.nfev / 10


def test_what_takes_too_long_or_stands_still():
    with pytest.raises(NotConverged, match="more than 50 evaluations"):
        chebyshev.solve(lambda y: -1e6 * y, np.ones(3), [1.0], rtol=1e-6, atol=1e-6, most=50)
    still = chebyshev.solve(np.zeros_like, np.ones(3), [1.0, 2.0], rtol=1e-6, atol=1e-6, most=50)
    np.testing.assert_array_equal(still.states, np.ones((2, 3)))

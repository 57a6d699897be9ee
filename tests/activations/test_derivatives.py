"""Derivatives of activations of any order, and the exponential they stand on, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

from lazyscope import Activation, InvalidParameter, NoTheorem
from lazyscope.activations.derivatives import derivative, require_smooth, smoothness, taylor_coefficients
from lazyscope.numerics.exponential import exp_in_place, tanh_in_place

MP = {
    "square": lambda u: u**2,
    "cube": lambda u: u**3,
    "tanh": mp.tanh,
    "sigmoid": lambda u: 1 / (1 + mp.exp(-u)),
    "softplus": lambda u: mp.log1p(mp.exp(u)),
    "erf": mp.erf,
    "gelu": lambda u: u * mp.ncdf(u),
    "silu": lambda u: u / (1 + mp.exp(-u)),
    "sin": mp.sin,
    "cos": mp.cos,
}
POINTS = (-3.1, -0.2, 0.0, 0.7, 2.5)


@pytest.mark.parametrize("name", MP)
def test_taylor_coefficients_equal_those_of_mpmath(name):
    found = taylor_coefficients(Activation(name), np.array(POINTS), 8)
    with mp.workdps(40):
        wanted = np.array([[float(c) for c in mp.taylor(MP[name], mp.mpf(u), 8)] for u in POINTS]).T
    assert np.max(np.abs(found - wanted)) < 2e-15 * max(1.0, np.max(np.abs(wanted)))


@pytest.mark.parametrize("p", [2, 3, 4, 5])
def test_rectified_powers_have_all_but_the_last_derivative(p):
    sigma = Activation(f"relu{p}")
    assert smoothness(sigma) == p - 1
    u = np.array([-1.0, 0.0, 2.0])
    for k in range(p):
        wanted = np.maximum(u, 0.0) ** (p - k) / float(mp.factorial(p - k))
        assert derivative(sigma, u, k) == pytest.approx(wanted, rel=1e-15)
    with pytest.raises(NoTheorem, match=r"Assumption A"):
        require_smooth(sigma, p)


def test_a_polynomial_brings_its_own_derivatives():
    sigma = Activation(np.polynomial.Polynomial([1.0, 0.0, -2.0, 0.5]))
    u = np.linspace(-2.0, 2.0, 5)
    assert derivative(sigma, u, 2) == pytest.approx(-4.0 + 3.0 * u)
    assert derivative(sigma, u, 4) == pytest.approx(np.zeros(5))
    assert smoothness(sigma) == np.inf


def test_float32_stays_float32_and_a_table_can_be_given():
    u = np.linspace(-2.0, 2.0, 40_001, dtype=np.float32)  # more than one block
    table = np.empty((4, u.size), dtype=np.float32)
    for name in ("tanh", "softplus", "relu4", "erf", "gelu"):
        found = taylor_coefficients(Activation(name), u, 3, out=table)
        assert found is table
        wanted = taylor_coefficients(Activation(name), u.astype(np.float64), 3)
        assert np.max(np.abs(found - wanted)) < 1e-6


def test_what_has_no_derivatives_in_closed_form_is_refused():
    with pytest.raises(InvalidParameter, match=r"derivatives in closed form.*Got <lambda>.*Polynomial"):
        derivative(Activation(lambda u: np.exp(-(u**2))), 0.0, 2)
    for name in ("relu", "abs", "sign", "step"):
        with pytest.raises(NoTheorem, match=rf"Got {name}, which has 0 such derivatives"):
            require_smooth(Activation(name), 1)


def test_the_exponential_is_good_to_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-707.9, 708.9, 20_011), np.linspace(-1.0, 1.0, 5001), [-709.0, -1e6]])
    found = x.copy()
    exp_in_place(found)
    assert np.array_equal(found[-2:], [0.0, 0.0])
    exact = np.exp(x[:-2].astype(np.longdouble))
    assert np.max(np.abs(found[:-2] / exact - 1)) < 2 * np.finfo(np.float64).eps


def test_the_hyperbolic_tangent_is_good_to_rounding():
    u = np.concatenate([np.linspace(-30.0, 30.0, 20_011), [-1e5, 1e5, 0.0]])
    # 2·2⁻⁵² from e^{2u}, halved by the slope of tanh, and four roundings of numbers up to 2: 6e-16
    for dtype, tolerance in ((np.float64, 6e-16), (np.float32, 2e-7)):
        found = u.astype(dtype)
        tanh_in_place(found)
        assert np.max(np.abs(found - np.tanh(u.astype(dtype).astype(np.longdouble)))) <= tolerance

"""Constants of activations against mpmath, closed forms, and each other."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazyscope import Activation, InvalidParameter, NotConverged, activation_names
from lazyscope.numerics.quadrature import hermite_functions, panels, root_density

SMOOTH = ["tanh", "erf", "erf2", "sigmoid", "softplus", "gelu", "silu", "sin", "cos"]

MP = {
    "square": lambda u: u**2,
    "cube": lambda u: u**3,
    "relu": lambda u: max(u, mp.mpf(0)),
    "relu2": lambda u: max(u, mp.mpf(0)) ** 2 / 2,
    "relu3": lambda u: max(u, mp.mpf(0)) ** 3 / 6,
    "relu4": lambda u: max(u, mp.mpf(0)) ** 4 / 24,
    "relu5": lambda u: max(u, mp.mpf(0)) ** 5 / 120,
    "abs": abs,
    "sign": mp.sign,
    "step": lambda u: mp.mpf(u > 0),
    "tanh": mp.tanh,
    "erf": mp.erf,
    "erf2": lambda u: mp.erf(u / mp.sqrt(2)),
    "sigmoid": lambda u: 1 / (1 + mp.exp(-u)),
    "softplus": lambda u: mp.log1p(mp.exp(u)),
    "gelu": lambda u: u * mp.ncdf(u),
    "silu": lambda u: u / (1 + mp.exp(-u)),
    "sin": mp.sin,
    "cos": mp.cos,
}


def mp_mean(function):
    """E[function(g)] by mpmath's tanh-sinh rule with 20 digits, split at 0."""
    with mp.workdps(20):
        return mp.quad(lambda g: function(g) * mp.npdf(g), [-12, -5, 0, 5, 12])


@pytest.mark.parametrize("name", activation_names())
@pytest.mark.parametrize("s", [0.4, 2.5])
def test_hermite_coefficients_agree_with_mpmath_to_1e_12(name, s):
    sigma = Activation(name)
    power = float(mp_mean(lambda g: MP[name](s * g) ** 2))
    assert sigma.second_moment(s) == pytest.approx(power, rel=1e-12)
    c = sigma.hermite_coefficients(s, 7)
    for k in (0, 1, 2, 7):
        oracle = mp_mean(lambda g, k=k: MP[name](s * g) * mp.hermite(k, g / mp.sqrt(2)) / mp.sqrt(2**k * mp.fac(k)))
        assert abs(c[k] - float(oracle)) <= 1e-12 * np.sqrt(power)


def test_relu_constants_of_the_paper():
    relu = Activation("relu")
    assert relu.b1 == pytest.approx(0.5, abs=1e-14)
    assert relu.b_star == pytest.approx(np.sqrt(0.25 - 1 / (2 * np.pi)), abs=1e-14)
    assert relu.b_star == pytest.approx(0.30140513749454, abs=1e-13)
    assert relu.lambda_k(2) == pytest.approx(1 / np.sqrt(2 * np.pi), abs=1e-14)


@pytest.mark.parametrize("name", SMOOTH)
def test_parseval_at_degree_400(name):
    sigma, s = Activation(name), np.array([0.5, 1.0, 2.0])
    energy = np.sum(sigma.hermite_coefficients(s, 400) ** 2, axis=0)
    assert energy == pytest.approx(sigma.second_moment(s), rel=1e-12)


def test_high_coefficients_of_relu_follow_their_closed_form():
    # c_{2k} = (-1)^{k+1} (2k−3)!!/√(2π (2k)!), zero for odd k ≥ 3
    c = Activation("relu").hermite_coefficients(1.0, 400)
    for k in (1, 5, 40, 200):
        log = mp.log(mp.fac2(2 * k - 3)) - mp.log(mp.sqrt(2 * mp.pi)) - mp.log(mp.fac(2 * k)) / 2
        assert c[2 * k] == pytest.approx(float((-1) ** (k + 1) * mp.exp(log)), abs=1e-14)
    assert np.max(np.abs(c[3::2])) < 1e-14


@pytest.mark.parametrize("name", activation_names())
def test_a_name_and_the_same_callable_agree(name):
    named = Activation(name)
    called = Activation(lambda u: named(u), kinks=(0.0,))
    s = np.array([0.4, 1.0, 1.7])
    assert called.hermite_coefficients(s, 30) == pytest.approx(named.hermite_coefficients(s, 30), abs=1e-12)
    assert called.has_derivative == named.has_derivative
    if named.has_derivative:
        u = np.array([-3.2, -0.6, 0.4, 0.9, 2.0])
        assert called.derivative(u) == pytest.approx(named.derivative(u), rel=1e-11, abs=1e-11)
        for mine, theirs in zip(called.slope_moments(s), named.slope_moments(s), strict=True):
            assert mine == pytest.approx(theirs, rel=1e-11)


@pytest.mark.parametrize("name", [n for n in activation_names() if n not in ("sign", "step")])
def test_stein_derivative_raises_the_hermite_index(name):
    # E[σ′(s g) he_k(g)] = √(k+1) c_{k+1}(s)/s, and the slope of E[σ(s g)²] is its finite difference
    sigma, s, h = Activation(name), 1.3, 1e-5
    g, w = panels(np.linspace(-13.0, 13.0, 105))
    table = hermite_functions(g, 5) * root_density(g) * w
    c = sigma.hermite_coefficients(s, 6)
    assert table @ sigma.derivative(s * g) == pytest.approx(np.sqrt(np.arange(1, 7)) * c[1:] / s, abs=1e-11)
    difference = (sigma.second_moment(s + h) - sigma.second_moment(s - h)) / (2 * h)
    assert sigma.second_moment_slope(s) == pytest.approx(difference, rel=1e-8)


def test_kinks_away_from_zero_are_split():
    # E[max(s g − t, 0)] = s φ(t/s) − t (1 − Φ(t/s))
    t = 0.7
    shifted = Activation(lambda u: np.maximum(u - t, 0.0), kinks=(t,))
    for s in (0.2, 1.0, 3.0):
        closed = s * mp.npdf(t / s) - t * (1 - mp.ncdf(t / s))
        assert shifted.hermite(0, s) == pytest.approx(float(closed), abs=1e-14)


@given(st.floats(0.01, 50.0))
@settings(max_examples=50, deadline=None)
def test_tanh_is_bounded_and_odd_at_every_scale(s):
    sigma = Activation("tanh")
    c = sigma.hermite_coefficients(s, 6)
    assert np.max(np.abs(c[::2])) < 1e-14
    assert 0 < c[1] < np.sqrt(2 / np.pi)  # that of sign, its limit
    assert 0 < sigma.second_moment(s) < 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda u: 2.0 * u + 1.0, "must not be linear"),
        (lambda u: 0.0 * u, "must not be linear"),
        (lambda u: np.exp(0.5 * u**2), "grows too fast"),
        (lambda u: np.exp(0.24 * u**2), "c₁ ≈ 0.96"),
        (lambda u: u * np.nan, "NaN"),
        (lambda u: 3.0, "same shape"),
        (lambda u: u[:2], "same shape"),
        (lambda u: "x", "elementwise"),
    ],
)
def test_assumption_a1_is_checked(function, message):
    with pytest.raises(InvalidParameter, match=message):
        Activation(function)


def test_growth_within_a1_is_accepted_and_right():
    # E[exp(g²/5)²] = (1 − 4/5)^{-1/2}
    steep = Activation(lambda u: np.exp(0.2 * u**2))
    assert steep.second_moment(1.0) == pytest.approx(5**0.5, rel=1e-12)
    with pytest.raises(InvalidParameter, match="every weight norm"):
        steep.second_moment(1.2)
    assert Activation(lambda u: np.exp(2 * u)).second_moment(1.0) == pytest.approx(np.exp(8), rel=1e-12)


@pytest.mark.parametrize("kink", [0.3, -1.0, 1.0, 2.0, 0.5])
def test_an_undeclared_kink_is_noticed_wherever_it_is(kink):
    with pytest.raises(NotConverged, match="Pass kinks"):
        Activation(lambda u: np.maximum(u - kink, 0.0))


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(InvalidParameter, match=r"Did you mean 'relu'\?"):
        Activation("Relu")


def test_square_is_recognised_up_to_affine_constants():
    assert Activation(lambda u: 1 - 2 * u**2).is_square
    assert not Activation(lambda u: u**2 + 1e-3 * u).is_square
    assert not Activation("abs").is_square

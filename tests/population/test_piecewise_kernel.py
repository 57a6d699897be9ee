"""Piecewise linear activations: closed forms against the Hermite series, quadrature and mpmath."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

import lazyscope as ls
from lazyscope.activations import Activation
from lazyscope.errors import NotConverged
from lazyscope.numerics.orthant import orthant
from lazyscope.population import network
from lazyscope.population.environment import environments
from lazyscope.population.kernels import PiecewiseKernel, SeriesKernel, pair_kernel

EVERY = slice(None)
ORDERS = ((0, 0), (1, 1), (2, 0), (2, 2), (3, 1))


def shifted(u):
    return np.where(u > 1.0, u, 0.1 * u + 0.9)


def hat(u):
    return np.maximum(0.0, 1.0 - np.abs(u - 0.5)) - 0.3 * u + 0.2


def leaky(u):
    return np.where(u > 0.0, u, 0.2 * u)


SIGMAS = {
    "shifted": Activation(shifted, kinks=(1.0,)),
    "hat": Activation(hat, kinks=(-0.5, 0.5, 1.5)),
    "leaky": Activation(leaky),
}
S = np.array([0.4, 1.0, 1.7])


@pytest.mark.parametrize("sigma", SIGMAS.values(), ids=SIGMAS)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_kernels_are_those_of_the_hermite_series(sigma, order):
    """At cosines up to 0.35 the series of a kinked σ ends: its tail is below 0.35⁵⁰⁰."""
    r = np.array([[0.0, 0.35, -0.2], [0.35, 0.1, -0.35], [-0.2, -0.35, 0.3]])
    closed = pair_kernel(sigma, S, 0.35, order=3)
    assert isinstance(closed, PiecewiseKernel)
    series = SeriesKernel(sigma, S, 0.35, order=3)
    np.testing.assert_allclose(closed(*order, r, EVERY, EVERY), series(*order, r, EVERY, EVERY), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("sigma", SIGMAS.values(), ids=SIGMAS)
def test_parallel_and_opposite_weights_are_integrals_in_one_dimension(sigma):
    closed = PiecewiseKernel(sigma.piecewise, S)
    for sign in (1.0, -1.0):
        found = [closed(p, p, np.full((3, 3), sign), EVERY, EVERY) for p in (0, 1)]
        for i, s in enumerate(S):
            for j, t in enumerate(S):
                places = sorted({x / c for x in (0.0, *sigma.kinks) for c in (s, sign * t)})
                for value, function in zip(found, (sigma, sigma.derivative), strict=True):

                    def integrand(g, s=s, t=sign * t, f=function):
                        return float(f(s * g) * f(t * g)) * np.exp(-0.5 * g * g) / np.sqrt(2.0 * np.pi)

                    wanted = quad(integrand, -9.0, 9.0, points=places, epsabs=1e-12, limit=400)[0]
                    assert value[i, j] == pytest.approx(wanted, abs=2e-11)


@pytest.mark.parametrize("sigma", SIGMAS.values(), ids=SIGMAS)
def test_constants_are_those_of_quadrature(sigma):
    """The quadrature is that of any callable: a wrapper hides that it is linear between kinks."""
    plain = Activation(lambda u: sigma(u), kinks=sigma.kinks)
    object.__setattr__(plain, "piecewise", None)
    np.testing.assert_allclose(sigma.hermite_coefficients(S, 12), plain.hermite_coefficients(S, 12), atol=1e-12)
    np.testing.assert_allclose(sigma.second_moment(S), plain.second_moment(S), rtol=1e-12)
    np.testing.assert_allclose(sigma.second_moment_slope(S), plain.second_moment_slope(S), rtol=1e-10)
    np.testing.assert_allclose(sigma.slope_moments(S), plain.slope_moments(S), rtol=1e-10)
    u = np.linspace(-3.05, 3.05, 41)
    np.testing.assert_allclose(sigma.derivative(u), plain.derivative(u), atol=1e-11)


@pytest.mark.parametrize(
    ("h", "k", "r"), [(0.3, -1.2, 0.4), (0.0, 0.7, -0.9), (-0.5, 0.0, 0.99), (2.0, 2.5, 0.999), (-1.0, 1.0, -0.5)]
)
def test_orthants_are_those_of_mpmath(h, k, r):
    """P(ξ > h, η > k) = ∫_h^∞ φ(x) Φ((rx − k)/√(1−r²)) dx."""
    q = mpmath.sqrt(1 - mpmath.mpf(r) ** 2)
    edges = sorted({h, max(h, k / r), 12.0})
    wanted = mpmath.quad(lambda x: mpmath.npdf(x) * mpmath.ncdf((r * x - k) / q), edges)
    assert float(orthant(h, k, np.array(r))) == pytest.approx(float(wanted), abs=1e-14)


def test_what_is_not_piecewise_linear_is_left_to_the_series():
    assert Activation(np.tanh).piecewise is None and Activation("relu").piecewise is None
    assert Activation(lambda u: np.where(u > 0, u * u, u)).piecewise is None


def test_a_trained_network_of_a_shifted_leaky_relu_is_found():
    """The same function as |u|, made of bends: `exact` of both descends alike; and a shifted one ends in seconds."""
    target = ls.QuadraticTarget.exponential(5, seed=0)
    bent = ls.exact(target, ls.Trained(Activation(lambda u: np.maximum(u, -u))), width=2, seed=1)
    named = ls.exact(target, ls.Trained("abs"), width=2, seed=1)
    assert float(bent.risk) == pytest.approx(float(named.risk), abs=1e-4)  # where the descent stops: 1e-5 a window
    other = ls.exact(target, ls.Trained(SIGMAS["shifted"]), width=2, seed=1)
    assert 0.0 < float(other.risk) < 1.0


def test_a_long_descent_is_told_of_and_one_that_does_not_end_is_refused():
    """By a clock of our own, which is looked at before the descent and at every tenth step."""
    target, sigma = ls.QuadraticTarget.exponential(8, seed=0), Activation("gelu")
    objective = network.PopulationRisk(environments(target), sigma)
    W = np.random.default_rng(0).standard_normal((4, 8)) / 2.0
    a, seconds = network.best_second_layer(objective, W), iter([0.0, 1.0, 1000.0])
    with (
        pytest.warns(UserWarning, match=r"may take up to 3 minutes of a core\. Every step integrates gelu anew"),
        pytest.raises(NotConverged, match=r"made 20 steps in 17 minutes of a core, and has not ended"),
    ):
        network.descend(objective, a, W, clock=lambda: next(seconds))

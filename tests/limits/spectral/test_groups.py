"""The tangent model at finite width: simulations, `exact`, another solver, the two formulas it lies between."""

import numpy as np
import pytest
from scipy.optimize import brentq

import lazyscope as ls
from lazyscope.activations.zonal import tangent_spectrum
from lazyscope.activations.zonal_tangent import grouped_spectrum
from lazyscope.limits.spectral import equivalent, groups
from lazyscope.limits.spectral.equivalent import Spectrum
from lazyscope.limits.spectral.groups import Groups

INF = float("inf")
RELU = ls.NeuralTangent("relu")


def half_and_half(d, noise_variance=0.0):
    return ls.HarmonicTarget(d, [0.0, 0.5, 0.5], noise=np.sqrt(noise_variance))


def test_the_simulations_of_theory_md():
    """d = 16, n = 400, λ = .01, τ² = .1. At N = 1000 those 24 draws lay low; 40 others had 0.0710 ± 0.0019."""
    found = ls.limit(half_and_half(16, 0.1), RELU, width=[50, 200, 1000, INF], samples=400, ridge=0.01).risk.values
    assert abs(found[0] - 0.214) < 2 * 0.012 and abs(found[1] - 0.0922) < 2 * 0.0031
    assert abs(found[2] - 0.0710) < 2 * 0.0019
    assert found[3] == pytest.approx(0.065687, abs=5e-7) and np.all(np.diff(found) < 0.0)


def test_simulations_agree_on_both_sides_of_the_threshold():
    """n/(Nd) = 0.25, 1 and 3; four standard errors of 24 draws."""
    for name, energies in (("relu", [0.0, 0.5, 0.3, 0.0, 0.2]), ("tanh", [0.0, 0.5, 0.0, 0.5])):
        target, regime = ls.HarmonicTarget(10, energies, noise=0.3), ls.NeuralTangent(name)
        for N, n in ((40, 100), (24, 240), (20, 600)):
            ridge = [0.03, 1.0]
            simulated = ls.simulate(target, regime, width=N, samples=n, ridge=ridge, draws=24, seed=4)
            theory = ls.limit(target, regime, width=N, samples=n, ridge=ridge)
            for part, stderr in (("risk", "stderr"), ("train", "train_stderr")):
                away = np.abs(simulated[part] - theory[part]).values
                assert np.all(away < 4.0 * simulated[stderr].values), (name, N, part)


@pytest.mark.parametrize(("name", "energies"), [("relu", [0.0, 0.5, 0.5]), ("tanh", [0.0, 0.5, 0.0, 0.5])])
def test_infinitely_many_samples_are_the_population_risk(name, energies):
    """`exact` draws weights; 16 draws, four standard errors."""
    d, regime = 24, ls.NeuralTangent(name)
    target = ls.HarmonicTarget(d, energies)
    for N in (2 * d, 4 * d):
        exact = ls.exact(target, regime, width=N, draws=16, seed=1)
        theory = float(ls.limit(target, regime, width=N, samples=INF, ridge=0).risk)
        assert abs(float(exact.risk) - theory) < 4.0 * float(exact.stderr)


def _second_route(sigma, d, energies, tau2, N, n, ridge):
    """Nested brackets for (a, c), and the risk from differences of the resolvent in ν."""
    (xi, m, tail, _), (Y, rest) = grouped_spectrum(sigma, d)
    many = 1e30  # the tail as one tiny eigenvalue
    X, Y, m = np.r_[xi - Y, (tail - rest) / many], np.r_[Y, rest / many], np.r_[m, many]
    energy = np.zeros(len(X))
    energy[: len(energies)] = energies

    def shares(nu):
        def q_of(p):
            return brentq(lambda q: N * (1 - q) - np.sum(m * q * Y / (nu + p * X + q * Y)), 1e-12, 1.0, xtol=1e-15)

        def left(p):
            return N * (d - 1) * (1 - p) - np.sum(m * p * X / (nu + p * X + q_of(p) * Y))

        p = brentq(left, 1e-12, 1.0, xtol=1e-15)
        return p, q_of(p)

    def resolvent(nu):
        p, q = shares(nu)
        return 1.0 / (nu + p * X + q * Y)

    def df1(nu):
        p, q = shares(nu)
        return N * (d - 1) * (1 - p) + N * (1 - q)

    nu = np.exp(brentq(lambda x: n - ridge / np.exp(x) - df1(np.exp(x)), -14, 3, xtol=1e-13))
    step = 1e-5 * nu
    slope = (resolvent(nu + step) - resolvent(nu - step)) / (2 * step)
    df2 = df1(nu) + nu * (df1(nu + step) - df1(nu - step)) / (2 * step)
    return (nu**2 * float(energy @ -slope) + tau2) / (1 - df2 / n) - tau2


@pytest.mark.parametrize(
    ("name", "d", "N", "n", "ridge"),
    [
        ("relu", 16, 50, 400, 0.01),
        ("relu", 10, 20, 400, 0.1),
        ("tanh", 12, 30, 200, 1.0),
        ("softplus", 8, 20, 160, 0.1),
    ],
)
def test_the_root_and_its_derivatives_are_those_of_another_solver(name, d, N, n, ridge):
    target = ls.HarmonicTarget(d, [0.1, 0.4, 0.3, 0.2], noise=0.3)
    found = ls.limit(target, ls.NeuralTangent(name), width=N, samples=n, ridge=ridge)
    other = _second_route(ls.Activation(name), d, target.energies, 0.09, N, n, ridge)
    assert float(found.risk) == pytest.approx(other, rel=1e-6)  # differences of step 1e-5, roots to 1e-13


def test_features_that_are_alike_are_random_features_by_the_dozen():
    """Y = ξ/d: no direction is special, and the formula is that of Nd features."""
    xi, m, tail, largest = tangent_spectrum(ls.Activation("relu"), 12)
    seen = Spectrum(xi, m, np.r_[0.1, 0.5, 0.4, np.zeros(len(xi) - 3)], tail, 0.05, largest)
    sizes = [np.array(size) for size in ([30.0, 30.0, 30.0, 30.0], [50.0, 360.0, 900.0, INF], [1e-6, 1e-3, 0.1, 1.0])]
    N, n, ridge = sizes
    mine = groups.risks(Groups(seen, xi / 12, tail / 12, 12), 0.3, N, n, ridge, degrees=3)
    other = equivalent.risks(seen, 0.3, 12 * N, n, ridge, degrees=3)
    for name, values in other.items():
        if name != "residual":
            assert mine[name] == pytest.approx(values, rel=1e-10), name


def test_wide_networks_approach_the_kernel_like_one_over_the_width():
    target, N = half_and_half(12, 0.1), np.array([1e3, 1e4, 1e5, INF])
    found = ls.limit(target, RELU, width=N, samples=[50, 300], ridge=0.01).risk.values
    assert (found[:3] - found[3])[:-1] / (found[:3] - found[3])[1:] == pytest.approx(10.0, rel=0.05)

"""Deterministic equivalents: numbers that simulations confirmed, corners in closed form, a second solver, extremes."""

import numpy as np
import pytest
from scipy.optimize import brentq

import lazyscope as ls
from lazyscope.activations.zonal import spectrum, tangent_spectrum
from lazyscope.limits.spectral.equivalent import Spectrum, risks
from lazyscope.numerics.gegenbauer import coordinate, multiplicities, polynomials

INF = float("inf")
RELU = ls.RandomFeatures("relu")
TANGENT = ls.NeuralTangent("relu")


def half_and_half(d, noise_variance=0.0):
    return ls.HarmonicTarget(d, [0.0, 0.5, 0.5], noise=np.sqrt(noise_variance))


@pytest.mark.parametrize(
    ("d", "n", "N", "ridge", "noise", "risk"),
    [(16, 1500, 800, 0.05, 0.1, 0.029697), (24, 1000, 1000, 0.1, 0.0, 0.120457), (24, 3000, 300, 0.01, 0.3, 0.221608)],
)
def test_random_features_of_two_degrees(d, n, N, ridge, noise, risk):
    found = ls.limit(half_and_half(d, noise), RELU, width=N, samples=n, ridge=ridge)
    assert float(found.risk) == pytest.approx(risk, abs=5e-7)


def test_kernel_ridge_regression_climbs_the_degrees():
    found = ls.limit(half_and_half(30), RELU, width=INF, samples=[30, 120, 465, 930], ridge=1e-3)
    assert found.risk.values == pytest.approx([0.875398, 0.518002, 0.115410, 0.012009], abs=5e-7)
    assert np.all(np.diff(found.learnt.values, axis=0) > 0.0)


def test_a_power_law_at_every_width():
    i = np.arange(1.0, 801.0)
    target = ls.SpectralTarget(i**-1.5, i**-2.2, noise=0.1)
    found = ls.limit(target, ls.RandomFeatures(), width=[50, 100, 300, INF], samples=100, ridge=0.01)
    assert found.risk.values == pytest.approx([0.112132, 0.105097, 0.031443, 0.017003], abs=5e-7)


@pytest.mark.parametrize(
    ("n", "ridge", "noise", "risk"),
    [(1500, 0.05, 0.1, 0.014356), (1500, 0.05, 0.0, 0.003173), (400, 0.01, 0.1, 0.065687)],
)
def test_the_tangent_kernel(n, ridge, noise, risk):
    found = ls.limit(half_and_half(16, noise), TANGENT, width=INF, samples=n, ridge=ridge)
    assert float(found.risk) == pytest.approx(risk, abs=5e-7)
    with pytest.raises(ls.NoTheorem, match="N ≥ 2d = 32"):
        ls.limit(half_and_half(16), TANGENT, width=31, samples=n, ridge=ridge)


@pytest.mark.parametrize(("psi1", "risk"), [(1, 0.6259585), (3, 0.3696813), (10, 0.2591824)])
def test_double_descent_is_its_limit_and_is_approached_like_one_over_d(psi1, risk):
    """Mei and Montanari's λ is λd/n here; the distance of the two falls like 1/d."""
    theory = float(ls.limit(ls.LinearTarget(noise=0.5), RELU, psi1=psi1, psi2=3, ridge=0.1).risk)
    d = np.array([100, 1000, 10_000, 100_000])
    found = [
        float(
            ls.limit(ls.HarmonicTarget(k, [0.0, 1.0], noise=0.5), RELU, width=psi1 * k, samples=3 * k, ridge=0.3).risk
        )
        for k in d.tolist()
    ]
    assert found[-1] == pytest.approx(risk, abs=5e-8) and abs(found[-1] - theory) < 5e-6
    slope = np.polyfit(np.log(d), np.log(np.abs(np.array(found) - theory)), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.02)


@pytest.mark.parametrize(
    ("capacity", "source", "measured", "proved"),
    [(1.5, 0.5, -1.505, -1.5), (2.0, 0.3, -1.199, -1.2), (1.5, 1.5, -3.013, -3.0)],
)
def test_power_laws_fall_with_the_proved_exponents(capacity, source, measured, proved):
    n = np.array([400, 800, 1600, 3200])
    target = ls.SpectralTarget.power_law(capacity, source, terms=2_000_000)
    clean = ls.limit(target, ls.RandomFeatures(), width=INF, samples=n, ridge=0).risk.values
    slope = np.polyfit(np.log(n), np.log(clean), 1)[0]
    assert slope == pytest.approx(measured, abs=5e-4) and slope == pytest.approx(proved, abs=0.02)


def test_the_root_is_that_of_another_solver():
    xi, m, tail, largest = spectrum(ls.Activation("relu"), 20)
    energy = np.r_[0.1, 0.5, 0.3, 0.1, np.zeros(len(xi) - 4)]
    seen = Spectrum(xi, m, energy, tail, 0.0, largest)
    for sizes in ((50.0, 80.0, 1e-3), (300.0, 40.0, 1.0), (77.0, 77.0, 1e-6), (500.0, 900.0, 10.0)):
        n, N, ridge = sizes
        found = risks(seen, 0.2, *(np.array([value]) for value in (N, n, ridge)))
        assert float(found["degrees_of_freedom"][0]) == pytest.approx(_used(xi, m, tail, *sizes), rel=1e-9)


def _used(xi, m, tail, n, N, ridge):
    """df₁ at the root, by bisection of scipy's."""

    def df1(x):
        return float(np.sum(m * xi / (xi + np.exp(x))) + tail / np.exp(x))

    def equation(x):
        return n - df1(x) - ridge / (np.exp(x) * (1 - df1(x) / N))

    low = brentq(lambda x: df1(x) - min(n, N), -60, 20)
    return df1(brentq(equation, low + 1e-9, 30, xtol=1e-14))


@pytest.mark.parametrize("name", ["relu", "erf", "square", "tanh"])
def test_the_spectrum_is_that_of_the_kernel(name):
    """Drawn weights: Σ_k B ξ_k Q_k(t) = E_w[σσ], within four standard errors."""
    sigma, d, t = ls.Activation(name), 8, 0.3
    rng = np.random.default_rng(0)
    w = rng.standard_normal((400_000, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    x, y = np.eye(d)[0] * np.sqrt(d), np.sqrt(d) * np.r_[t, np.sqrt(1 - t * t), np.zeros(d - 2)]
    for kernel, f, factor in ((spectrum, sigma, 1.0), (tangent_spectrum, sigma.derivative, t)):
        xi, m, _, _ = kernel(sigma, d)
        series = float((xi * m) @ polynomials(np.array([t]), d, len(xi) - 1)[:, 0])
        drawn = factor * f(w @ x) * f(w @ y)
        assert abs(series - drawn.mean()) < 4.0 * drawn.std() / np.sqrt(len(w)) + 1e-6


def test_gegenbauer_polynomials_are_orthonormal_and_counted():
    t, w, table = coordinate((), 12, 20)
    q = polynomials(t, 12, 20) * np.sqrt(multiplicities(12, 20))[:, None]
    assert np.allclose((table * w) @ q.T, np.eye(21), atol=1e-10)


def test_infinitely_many_samples_are_the_population_risk():
    """`exact` draws weights; 40 draws, four standard errors."""
    target = half_and_half(30)
    for N in (60, 300):
        exact = ls.exact(target, RELU, width=N, draws=40)
        theory = float(ls.limit(target, RELU, width=N, samples=INF, ridge=0).risk)
        assert abs(float(exact.risk) - theory) < 4.0 * float(exact.stderr)


def test_simulations_agree_at_every_size():
    target = ls.HarmonicTarget(16, [0.0, 0.4, 0.3, 0.2, 0.1], noise=0.3)
    z = []
    for n, N in ((100, 60), (60, 300), (400, 150)):
        ridge = [1e-2, 1.0]
        simulated = ls.simulate(target, RELU, width=N, samples=n, ridge=ridge, draws=12, seed=2)
        theory = ls.limit(target, RELU, width=N, samples=n, ridge=ridge)
        for name, error in (("risk", "stderr"), ("train", "train_stderr")):
            z += ((simulated[name] - theory[name]) / simulated[error]).values.tolist()
    assert np.max(np.abs(z)) < 4.0 and abs(np.mean(z)) < 1.5

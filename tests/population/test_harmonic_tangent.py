"""The exact tangent model on the sphere: quadrature, drawn samples, a closed form, limits and parity."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.activations.zonal_tangent import ZonalTangent
from lazyscope.numerics.gegenbauer import multiplicities, polynomials
from lazyscope.population import harmonic_tangent
from lazyscope.population.environment import Environment
from lazyscope.population.tangent import TangentKernel

INF = float("inf")


def drawn(d, N, seed):
    W = np.random.default_rng(seed).standard_normal((N, d))
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def target_at(problem, x):
    d, degree = problem.d, problem.energies.size - 1
    return np.sqrt(problem.energies * multiplicities(d, degree)) @ polynomials(x[:, 0] / np.sqrt(d), d, degree)


def features_of(sigma, x, W):
    return (sigma.derivative(x @ W.T)[:, :, None] * x[:, None, :]).reshape(len(x), -1)


def ball():
    """Nodes and weights on the 2-sphere of radius √3: Gauss and Legendre times a circle, exact to degree 159."""
    t, w = np.polynomial.legendre.leggauss(80)
    phi = 2 * np.pi * np.arange(160) / 160
    s = np.sqrt(1 - t * t)
    x = np.stack([np.repeat(t, 160), np.outer(s, np.cos(phi)).ravel(), np.outer(s, np.sin(phi)).ravel()], axis=1)
    return np.sqrt(3) * x, np.repeat(w, 160) / 320


@pytest.mark.parametrize("name", ["tanh", "erf", "softplus", "square"])
@pytest.mark.parametrize("N", [1, 4])
def test_it_is_least_squares_on_a_quadrature_of_the_sphere(name, N):
    """Features of these activations are smooth: 12,800 nodes have no error that counts, and no formula is shared."""
    problem, regime = ls.HarmonicTarget(3, [0.1, 0.4, 0.3, 0.2]), ls.NeuralTangent(name)
    found = harmonic_tangent.risk(problem, regime, N, np.random.default_rng(3))["risk"]
    x, w = ball()
    root = np.sqrt(w)
    F, y = features_of(regime.activation, x, drawn(3, N, 3)), target_at(problem, x)
    a = np.linalg.lstsq(root[:, None] * F, root * y, rcond=1e-12)[0]
    assert found == pytest.approx(float(w @ (y - F @ a) ** 2), abs=1e-10)


@pytest.mark.parametrize("name", ["relu", "abs", "tanh"])
def test_blocks_and_right_hand_side_against_drawn_inputs(name):
    rng = np.random.default_rng(5)
    d, N, n, sigma = 5, 3, 60_000, ls.Activation(name)
    problem, W = ls.HarmonicTarget(d, [0.2, 0.4, 0.3, 0.1]), drawn(d, N, 1)
    moments = ZonalTangent.of(sigma, d)
    # private: the matrix is never formed, and is compared with samples entry by entry
    times, _ = harmonic_tangent._product(sigma, moments, W)
    K = np.stack([times(unit.reshape(N, d)).ravel() for unit in np.eye(N * d)])
    x = rng.standard_normal((n, d))
    x *= np.sqrt(d) / np.linalg.norm(x, axis=1, keepdims=True)
    F = features_of(sigma, x, W)
    y = target_at(problem, x)
    for mine, samples in (
        (K, F[:, :, None] * F[:, None, :]),
        (moments.overlaps(problem.energies, W), F * y[:, None]),
    ):
        error = samples.std(axis=0) / np.sqrt(n)
        away = np.abs(samples.mean(axis=0).ravel() - np.ravel(mine)) / (error.ravel() + 1e-15)
        assert np.max(away) < 5.0  # 240 numbers: probability 1e-4


@pytest.mark.parametrize(("name", "d"), [("relu", 24), ("relu", 60), ("abs", 24), ("relu3", 24)])
def test_series_and_closed_forms_of_rectified_activations_agree(name, d):
    """Homogeneous features: the Gaussian kernel times Π d/(d + 2j). The series ends at 160; its own bound is kept."""
    sigma, W = ls.Activation(name), drawn(d, 30, 2)
    moments = ZonalTangent.of(sigma, d)
    first, second, mixed, lost = moments.pairs(W @ W.T)
    gaussian = TangentKernel.of(Environment(1.0, np.ones(d), 0.0), W, sigma)
    factor = np.prod(d / (d + 2.0 * np.arange(sigma.rectified.power)))
    allowed = lost + 1e-12 * moments.across  # a rounding of 1e-15 for each of 160 terms, and of their factors
    for mine, theirs in ((first, gaussian.T11), (second, gaussian.T22), (mixed, gaussian.T31)):
        assert np.max(np.abs(mine - factor * theirs)) < allowed
    assert moments.across == pytest.approx(factor * float(gaussian.m0[0]), rel=1e-11)
    assert moments.along - moments.across == pytest.approx(factor * float(gaussian.along[0]), rel=1e-10, abs=1e-11)


def test_wide_networks_reach_the_tangent_kernel():
    """n = N = ∞: what no degree of the kernel sees remains, degree 3 for ReLU; the approach is from above."""
    target, relu = ls.HarmonicTarget(12, [0.0, 0.4, 0.4, 0.2]), ls.NeuralTangent("relu")
    theory = float(ls.limit(target, relu, width=INF, samples=INF, ridge=0).risk)
    assert theory == pytest.approx(0.2, abs=1e-12)
    above = ls.exact(target, relu, width=[12, 36, 108, 324], draws=2).risk.values - theory
    assert np.all(above > 0.0) and np.all(above[1:] < 0.6 * above[:-1]) and above[-1] < 0.02


def test_the_tangent_model_learns_one_degree_more_than_random_features():
    """N = 2d: about 2d² tangent features against d²/2 quadratic harmonics, but only 2d random ones."""
    for d in (20, 40, 80):
        target = ls.HarmonicTarget(d, [0.0, 0.0, 1.0])
        features = float(ls.exact(target, ls.RandomFeatures("relu"), width=2 * d, draws=2).risk)
        tangent = float(ls.exact(target, ls.NeuralTangent("relu"), width=2 * d, draws=2).risk)
        assert features > 1.0 - 6.0 / d  # N/(d²/2) = 4/d is all that 2d features can learn, and their scatter
        assert tangent < 0.2
        beyond = ls.exact(ls.HarmonicTarget(d, [0.0, 0.0, 0.0, 0.0, 1.0]), ls.NeuralTangent("relu"), width=2 * d)
        assert float(beyond.risk) > 1.0 - 100.0 / d**2  # of d⁴/24 quartic harmonics, at most 2d² are learnt


def test_parity_is_kept_exactly():
    odd = ls.exact(ls.HarmonicTarget(10, [0.3, 0.0, 0.7]), ls.NeuralTangent("tanh"), width=60)
    assert float(odd.risk) == 1.0
    square = ls.exact(ls.HarmonicTarget(30, [0.0, 0.0, 0.0, 1.0]), ls.NeuralTangent("square"), width=25)
    assert float(square.risk) == 1.0 and int(square.iterations) == 0


@pytest.mark.parametrize("d", [2, 3, 24])
@pytest.mark.parametrize("name", ["relu", "tanh", "square", "gelu"])
def test_extremes_are_numbers_or_refusals(d, name):
    for energies in ([1.0], [0.0, 1.0], [0.0, 0.5, 0.3, 0.2], [0.0]):
        for width in (1, 2, 40):
            try:
                found = ls.exact(ls.HarmonicTarget(d, energies), ls.NeuralTangent(name), width=width)
            except ls.NotConverged as error:
                assert "known to" in str(error)
                continue
            assert 0.0 <= float(found.risk) <= sum(energies) * (1 + 1e-12)
            assert float(found.residual) < 1e-4


def test_what_memory_does_not_hold_is_refused():
    with pytest.raises(ls.TooLarge, match="tangent kernel at N = 1000000"):
        ls.exact(ls.HarmonicTarget(30, [0.0, 1.0]), ls.NeuralTangent("relu"), width=1_000_000)

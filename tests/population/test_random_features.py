"""Exact random features: Monte Carlo moments, least squares, degenerate features."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.population.environment import environments
from lazyscope.population.random_features import best_second_layer, explained, moments

D, N = 5, 6


def small_problems():
    rng = np.random.default_rng(2)
    A, C = rng.standard_normal((2, D, D))
    Sigma = np.eye(D) + 0.2 * A @ A.T
    return [
        ls.QuadraticTarget(C + C.T),
        ls.QuadraticTarget(np.arange(1.0, D + 1)),
        ls.GaussianMixture(np.array([0.5, -0.4, 0.3, 0.2, 0.1])),
        ls.GaussianMixture(0.12 * (C + C.T), Sigma),
    ]


def sample(problem, n, rng):
    """Inputs and centred targets."""
    if isinstance(problem, ls.QuadraticTarget):
        x = rng.standard_normal((n, D))
        B = np.diag(problem.B) if problem.B.ndim == 1 else problem.B
        return x, np.einsum("ni,ij,nj->n", x, B, x) - np.trace(B)
    y = rng.choice([-1.0, 1.0], n)
    x = np.empty((n, D))
    for sign in (-1.0, 1.0):
        law = problem.class_covariance(sign)
        L = np.linalg.cholesky(np.diag(law) if law.ndim == 1 else law)
        x[y == sign] = rng.standard_normal((np.sum(y == sign), D)) @ L.T
    return x, y


@pytest.mark.parametrize("problem", small_problems(), ids=str)
@pytest.mark.parametrize("name", ["relu", "tanh", "softplus", "sign", "square"])
def test_moments_against_monte_carlo(problem, name):
    rng = np.random.default_rng(7)
    sigma, n = ls.Activation(name), 200_000
    W = rng.standard_normal((N, D)) / np.sqrt(D)
    centre = sigma.hermite(0)
    U, V = moments(environments(problem), W, sigma, centre)
    x, y = sample(problem, n, rng)
    features = sigma(x @ W.T) - centre
    pairs = features[:, :, None] * features[:, None, :]
    for mine, samples in [(np.triu(U) + np.triu(U, 1).T, pairs), (V, features * y[:, None])]:
        error = samples.std(axis=0) / np.sqrt(n) + 1e-12  # sign² is 1 without any spread
        # 42 numbers: a deviation above 4.5 standard errors has probability 3e-4
        assert np.max(np.abs(samples.mean(axis=0) - mine) / error) < 4.5


@pytest.mark.parametrize("problem", small_problems(), ids=str)
def test_risk_is_what_least_squares_reaches(problem):
    rng = np.random.default_rng(11)
    W = rng.standard_normal((N, D)) / np.sqrt(D)
    regime = ls.RandomFeatures("relu", weights=ls.FixedWeights(W.T))
    sigma = regime.activation
    n = 300_000
    x, y = sample(problem, 2 * n, rng)
    features = sigma(x @ W.T) - sigma.hermite(0)
    a = np.linalg.lstsq(features[:n], y[:n], rcond=None)[0]
    energy = 2 * np.sum(problem.B**2) if isinstance(problem, ls.QuadraticTarget) else 1.0
    losses = (y[n:] - features[n:] @ a) ** 2 / energy
    error = losses.std() / np.sqrt(n)
    # fitting N coefficients on n samples costs about N/n of the risk: below 1e-4 here
    assert abs(losses.mean() - float(ls.exact(problem, regime).risk)) < 4 * error + 1e-4


def test_theory_md_reference_points():
    # the erratum's evidence: d = 450, N = 900, mixture: about 0.58 where the printed formula gives 0.70
    mixture = ls.GaussianMixture.three_level(450, seed=0)
    exact = ls.exact(mixture, ls.RandomFeatures(), width=900, draws=4)
    right = float(ls.limit(mixture, ls.RandomFeatures(), rho=2.0).risk)
    assert abs(float(exact.risk) - right) < 4 * float(exact.stderr) + 1 / 450
    printed = 1 / (1 + 2 / 5 * mixture.Delta.sum() ** 2 / 900)
    assert float(exact.risk) < printed - 0.08


def test_more_features_than_the_class_has_dimensions():
    # the square activation spans d(d+1)/2 quadratic forms and the constant, whatever N is
    target = ls.QuadraticTarget([1.0, 2.0, 3.0])
    result = ls.exact(target, ls.RandomFeatures(), width=[4, 7, 40])
    assert result["rank"].values.tolist() == [4, 7, 7]
    assert result.risk.values[0] > 0.01
    assert result.risk.values[1:] == pytest.approx(0, abs=1e-10)


def test_singular_and_regular_solvers_agree():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((20, 30))
    U, V = A @ A.T, rng.standard_normal(20)
    direct = explained(np.triu(U), V)
    assert direct.rank == 20
    assert direct.energy == pytest.approx(V @ np.linalg.solve(U, V), rel=1e-10)
    # repeat each feature: rank stays, the energy too, though the matrix is singular
    doubled = explained(np.triu(np.kron(np.ones((2, 2)), U)), np.tile(V, 2))
    assert doubled.rank == 20
    assert doubled.energy == pytest.approx(direct.energy, rel=1e-9)


def test_adding_features_lowers_the_risk():
    rng = np.random.default_rng(5)
    target = ls.QuadraticTarget.exponential(20)
    W = rng.standard_normal((20, 40))
    nested = [ls.RandomFeatures("abs", weights=ls.FixedWeights(W[:, :k])) for k in (5, 20, 40)]
    few, some, many = (float(ls.exact(target, regime).risk) for regime in nested)
    assert few > some > many > 0


def test_the_second_layer_absorbs_the_scale_of_a_homogeneous_feature():
    # λ₀ = 0 for sign·, cube: nothing but a_i depends on ‖w_i‖
    rng = np.random.default_rng(5)
    mixture = ls.GaussianMixture.three_level(20)
    W = rng.standard_normal((20, 12))
    plain, scaled = (
        float(ls.exact(mixture, ls.RandomFeatures("cube", weights=ls.FixedWeights(M))).risk)
        for M in (W, W * rng.uniform(0.1, 10, 12))
    )
    assert scaled == pytest.approx(plain, rel=1e-10)


def test_one_seed_one_number_whatever_else_is_asked():
    target = ls.QuadraticTarget.exponential(30)
    regime = ls.RandomFeatures("relu")
    both = ls.exact(target, regime, width=[20, 35], draws=3, seed=9)
    alone = ls.exact(target, regime, width=35, draws=2, seed=9)
    assert np.array_equal(both.risk_draws.sel(width=35).values[:2], alone.risk_draws.values)
    assert float(ls.exact(target, regime, width=35, seed=10).risk) != float(alone.risk_draws[0])
    assert float(both.stderr[0]) == pytest.approx(both.risk_draws.values[0].std(ddof=1) / np.sqrt(3))
    assert "stderr" not in ls.exact(target, regime, width=20)


def test_a_feature_that_hardly_differs_from_a_constant_counts_where_the_others_span_the_constant():
    """(u)₊⁵ at d = 1: a short weight of the other sign, 1e-13 of its feature's constant, is half of what is learnt."""
    result = ls.exact(ls.QuadraticTarget([-0.846]), ls.RandomFeatures("relu5"), width=5, seed=21)
    # second route: 1, (u)₊⁵ and (−u)₊⁵ span 1, |u|⁵ and u⁵, and u² − 1 sees |u|⁵ − E|u|⁵ alone; E|u|⁵ = 8√(2/π), …
    root = np.sqrt(2.0 / np.pi)
    fifth, seventh, tenth = 8 * root, 48 * root, 945
    share = (seventh - fifth) ** 2 / (tenth - fifth**2) / 2
    assert float(result.risk) == pytest.approx(1.0 - share, abs=1e-12)


def test_features_that_are_constants_but_for_rounding_are_refused_where_they_count():
    world, sigma = environments(ls.QuadraticTarget([1.0])), ls.Activation("relu5")
    W = np.array([[1.0], [-1e-3], [-2e-3]])  # the constant is in no feature's span but that of two faint ones
    with pytest.raises(ls.errors.NotConverged, match="2 of 3 features differ from a constant"):
        best_second_layer(world, W, sigma)
    # one faint feature stands for the constant, and the rest is as if it were one
    alone = best_second_layer(world, W[:2], sigma)
    centred = moments(world, W[:1], sigma, sigma.hermite_coefficients(np.ones(1), 0)[0])
    assert alone.energy == pytest.approx(explained(*centred).energy, rel=1e-6)

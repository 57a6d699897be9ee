"""The tangent model: projector and Krylov routes, Monte Carlo, the reference point of theory.md."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.numerics.krylov import solve
from lazyscope.population import projector, tangent
from lazyscope.population.environment import environments
from lazyscope.population.tangent import TangentKernel


def sigma_mixture(d):
    rng = np.random.default_rng(d)
    A, C = rng.standard_normal((2, d, d))
    return ls.GaussianMixture(0.5 * (C + C.T) / d, np.eye(d) + 0.3 * A @ A.T / d)


def indefinite_target(d):
    C = np.random.default_rng(d).standard_normal((d, d))
    return ls.QuadraticTarget(C + C.T)


@pytest.mark.parametrize("width", [3, 12, 20, 31])
@pytest.mark.parametrize(
    "problem", [indefinite_target(20), ls.GaussianMixture.three_level(20), sigma_mixture(20)], ids=str
)
def test_projector_and_krylov_routes_agree(problem, width):
    regime = ls.NeuralTangent()
    closed = projector.quadratic if isinstance(problem, ls.QuadraticTarget) else projector.mixture
    first = closed(problem, regime, width, np.random.default_rng(1))["risk"]
    second = tangent.risk(problem, regime, width, np.random.default_rng(1))["risk"]
    # CG stops when four steps gain 1e-12 of the energy; a linear rate of 0.99 still leaves under 1e-10
    assert second == pytest.approx(first, abs=1e-9)


@pytest.mark.parametrize("name", ["relu", "tanh", "softplus", "abs", "relu3"])
@pytest.mark.parametrize("problem", [indefinite_target(4), sigma_mixture(4)], ids=str)
def test_blocks_and_right_hand_side_against_monte_carlo(problem, name):
    rng = np.random.default_rng(8)
    d, N, n = 4, 3, 200_000
    W = rng.standard_normal((N, d)) / np.sqrt(d)
    sigma = ls.Activation(name)
    for y in environments(problem):
        kernel = TangentKernel.of(y, W, sigma)
        K = np.stack([kernel.times(e.reshape(N, d)).ravel() for e in np.eye(N * d)])
        assert pytest.approx(K.T, abs=1e-12) == K
        np.testing.assert_allclose(kernel.matrix(), K, rtol=1e-12, atol=1e-13)
        C = np.diag(y.C) if y.C.ndim == 1 else y.C
        x = rng.standard_normal((n, d)) @ np.linalg.cholesky(C).T
        features = (sigma.derivative(x @ W.T)[:, :, None] * x[:, None, :]).reshape(n, N * d)
        label = np.full(n, y.m) if y.B is None else y.m + np.einsum("ni,ij,nj->n", x, y.B, x) - np.trace(y.B @ C)
        squares = features**2  # mean squares of products as products of squares: no array of n(Nd)² numbers
        for mine, mean, square in (
            (K, features.T @ features / n, squares.T @ squares / n),
            (kernel.mean, features.mean(axis=0), squares.mean(axis=0)),
            (kernel.rhs, label @ features / n, label**2 @ squares / n),
        ):
            error = np.sqrt((square - mean**2) / n)
            deviation = np.abs(mean.ravel() - np.ravel(mine)) / error.ravel()
            assert np.max(deviation) < 5.0  # 168 numbers: probability 1e-4


def test_relu_matches_a_least_squares_fit():
    # theory.md: at d = 12 the exact risk equals that of a fit on many samples
    rng = np.random.default_rng(0)
    d, N, n = 8, 6, 120_000
    target = ls.QuadraticTarget(rng.exponential(size=d))
    W = rng.standard_normal((d, N)) / np.sqrt(d)
    exact = float(ls.exact(target, ls.NeuralTangent("relu", weights=ls.FixedWeights(W))).risk)
    x = rng.standard_normal((2 * n, d))
    y = (x**2 @ target.B - target.B.sum()) / np.sqrt(target.energy)
    features = ((x @ W > 0)[:, :, None] * x[:, None, :]).reshape(2 * n, N * d)
    features = np.concatenate([features, np.ones((2 * n, 1))], axis=1)
    a = np.linalg.lstsq(features[:n], y[:n], rcond=None)[0]
    losses = (y[n:] - features[n:] @ a) ** 2
    assert abs(losses.mean() - exact) < 4 * losses.std() / np.sqrt(n) + 2 * (N * d / n) * exact


def test_reference_point_of_theory_md():
    # ReLU, d = 200, N = 400: 0.1526, found independently for one draw of B and W. Ours must be draws of the same law.
    results = [
        ls.exact(ls.QuadraticTarget.exponential(200, seed=seed), ls.NeuralTangent("relu"), width=400, seed=seed)
        for seed in range(4)
    ]
    risks = np.array([float(result.risk) for result in results])
    assert abs(0.1526 - risks.mean()) < 4 * risks.std(ddof=1) * np.sqrt(1 + 1 / 4)
    assert max(int(result.iterations) for result in results) < 120


def test_tangent_contains_what_random_features_of_a_homogeneous_activation_reach():
    # for ReLU, σ(w·x) = σ′(w·x)⟨w, x⟩: the tangent class contains the features, and an offset besides
    target = ls.QuadraticTarget.exponential(25)
    for seed in range(3):
        W = ls.FixedWeights(np.random.default_rng(seed).standard_normal((25, 15)))
        lazy = float(ls.exact(target, ls.RandomFeatures("relu", weights=W)).risk)
        assert float(ls.exact(target, ls.NeuralTangent("relu", weights=W)).risk) < lazy


def test_conjugate_gradients_on_a_singular_system():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 10))
    b = A @ rng.standard_normal(10)
    solution = solve(lambda v: A @ (A.T @ v), b)
    assert solution.energy == pytest.approx(b @ np.linalg.lstsq(A @ A.T, b, rcond=1e-12)[0], rel=1e-10)
    assert solution.residual < 1e-6


def test_no_signal_is_no_work():
    assert solve(lambda v: v, np.zeros(5)).iterations == 0


@pytest.mark.parametrize("name", ["tanh", "erf", "sigmoid"])
def test_odd_tangent_features_see_nothing_even(name):
    # σ′ even: σ′(w·x)⟨a, x⟩ is odd, the target even
    target = ls.QuadraticTarget.exponential(10)
    assert float(ls.exact(target, ls.NeuralTangent(name), width=8).risk) == pytest.approx(1.0, abs=1e-12)


def test_parallel_weights_in_one_dimension():
    # d = 1, ReLU, weights of both signs: the class is {a|x| + bx + c}, and x² − 1 keeps 1 − 1/(π − 2) of its energy
    target = ls.QuadraticTarget([2.0])
    W = ls.FixedWeights(np.array([[0.3, -1.2, 2.0, 0.7]]))
    closed = 1 - (2 / np.pi) / (2 * (1 - 2 / np.pi))
    assert float(ls.exact(target, ls.NeuralTangent("relu", weights=W)).risk) == pytest.approx(closed, abs=1e-8)
    # a smooth activation with that many derivatives of it at hand learns the parabola almost entirely
    assert float(ls.exact(target, ls.NeuralTangent("softplus", weights=W)).risk) < 1e-3


def test_a_small_ill_conditioned_system_is_solved_directly():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((40, 40))
    K, b = A @ A.T, rng.standard_normal((20, 2))
    apply = lambda v: (K @ v.ravel()).reshape(v.shape)  # noqa: E731
    assert tangent.solved(apply, b, np.ones((20, 1))).energy == pytest.approx(solve(apply, b).energy, rel=1e-9)
    assert tangent.dense_solution(K, b).energy == pytest.approx(solve(apply, b).energy, rel=1e-9)
    # gelu, d = 3, N = 60: 180 smooth functions of three variables, on which conjugate gradients give up
    target = ls.QuadraticTarget([1e-8, 1.0, 1e4])
    result = ls.exact(target, ls.NeuralTangent("gelu"), width=60)
    assert int(result.iterations) == 180
    assert 0 <= float(result.risk) < float(ls.exact(target, ls.NeuralTangent("gelu"), width=5).risk)

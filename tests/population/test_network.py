"""Trained networks: the closed minima, the descent, its gradient."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.population import minimum, network
from lazyscope.population.environment import environments

RNG = np.random.default_rng(4)


def problems(d=5):
    C = np.random.default_rng(1).standard_normal((d, d))
    return [ls.QuadraticTarget(C + C.T), ls.GaussianMixture(0.1 * (C + C.T), np.eye(d) + 0.2 * C @ C.T)]


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "relu3", "square", "abs"])
@pytest.mark.parametrize("problem", problems(), ids=str)
def test_gradient_is_the_finite_difference(problem, name):
    risk = network.PopulationRisk(environments(problem), ls.Activation(name))
    rng, N, h = np.random.default_rng(6), 4, 1e-5
    a, W = rng.standard_normal(N), rng.standard_normal((N, 5))
    _, grad_a, grad_W = risk(a, W)
    for _ in range(5):
        da, dW = rng.standard_normal(N), rng.standard_normal((N, 5))
        slope = (risk(a + h * da, W + h * dW)[0] - risk(a - h * da, W - h * dW)[0]) / (2 * h)
        assert slope == pytest.approx(float(grad_a @ da + np.sum(grad_W * dW)), rel=1e-6)


@pytest.mark.parametrize("name", ["relu", "softplus"])
@pytest.mark.parametrize("problem", problems(), ids=str)
def test_population_risk_against_monte_carlo(problem, name):
    rng, N, n = np.random.default_rng(2), 3, 400_000
    sigma = ls.Activation(name)
    a, W = rng.standard_normal(N), rng.standard_normal((N, 5)) / 2
    f, y = [], []
    for e in environments(problem):
        C = np.diag(e.C) if e.C.ndim == 1 else e.C
        x = rng.standard_normal((int(n * e.probability), 5)) @ np.linalg.cholesky(C).T
        f.append(sigma(x @ W.T) @ a)
        target = np.full(len(x), e.m)
        y.append(target if e.B is None else target + np.einsum("ni,ij,nj->n", x, e.B, x) - np.trace(e.B @ C))
    residual = np.concatenate(y) - np.concatenate(f)
    losses = (residual - residual.mean()) ** 2
    risk = network.PopulationRisk(environments(problem), sigma)
    assert abs(losses.mean() / risk.energy - risk(a, W)[0]) < 4 * losses.std() / risk.energy / np.sqrt(n)


@pytest.mark.parametrize("problem", problems(), ids=str)
@pytest.mark.parametrize("width", [1, 3, 5])
def test_descent_finds_the_closed_minimum_of_the_square(problem, width):
    closed = minimum.quadratic if isinstance(problem, ls.QuadraticTarget) else minimum.mixture
    floor = closed(problem, ls.Trained(), width, RNG)["risk"]
    found = min(network.risk(problem, ls.Trained(), width, np.random.default_rng(k))["risk"] for k in range(4))
    assert found == pytest.approx(floor, abs=1e-6)
    assert found >= floor - 1e-12


def test_mixture_minimum_cannot_be_beaten_by_other_matrices():
    # R = 1/(1+J), J = ⟨M,Δ⟩²/(2‖M‖² + 2⟨M,ΔMΔ⟩) at any M of rank N is no better than the closed form
    rng = np.random.default_rng(0)
    delta = np.array([0.9, -0.8, 0.7, 0.2, -0.1, 0.05])
    mixture = ls.GaussianMixture(delta)
    D = np.diag(delta)
    for N in (1, 2, 3):
        best = float(ls.exact(mixture, ls.Trained(), width=N).risk)
        for _ in range(200):
            V = rng.standard_normal((6, N))
            M = (V * rng.choice([-1, 1], N)) @ V.T
            J = np.sum(M * D) ** 2 / (2 * np.sum(M**2) + 2 * np.sum(M * (D @ M @ D)))
            assert best - 1e-12 <= 1 / (1 + J)


def test_indefinite_targets_are_served_exactly():
    target = ls.QuadraticTarget([3.0, -2.0, 1.0])
    assert ls.exact(target, ls.Trained(), width=[1, 2, 3, 9]).risk.values == pytest.approx([5 / 14, 1 / 14, 0, 0])


def test_training_beats_both_lazy_regimes_with_relu():
    target = ls.QuadraticTarget.exponential(20)
    trained = ls.exact(target, ls.Trained("relu"), width=10, draws=2)
    tangent = ls.exact(target, ls.NeuralTangent("relu"), width=10, draws=4)
    features = ls.exact(target, ls.RandomFeatures("relu"), width=10, draws=4)
    assert float(trained.risk) < float(tangent.risk) < float(features.risk)
    assert float(trained.risk) == float(trained.risk_draws.min())
    assert trained.converged.values.all()
    assert np.all(trained.gain.values <= 1e-5)


def test_a_wide_scale_of_weight_norms_is_no_obstacle():
    # gelu at norm 400 is ReLU to 1e-5
    W = np.random.default_rng(0).standard_normal((3, 6))
    target = problems()[0]
    risks = []
    for name, scale in [("gelu", 400.0), ("relu", 1.0)]:
        a = np.ones(3) / scale
        risks.append(network.PopulationRisk(environments(target), ls.Activation(name))(a, scale * W[:, :5])[0])
    assert risks[0] == pytest.approx(risks[1], abs=1e-5)

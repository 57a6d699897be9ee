"""The tangent model descends: closed forms of the flow, a limit theorem of SGD, and SGD itself."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import weights
from lazyscope.evidence.run import Run
from lazyscope.limits.sgd.finite_step import finite_step
from lazyscope.population.descent import linear
from lazyscope.population.descent.linear import TangentDescent

TARGET = ls.QuadraticTarget.exponential(20, seed=100)
MIXTURE = ls.GaussianMixture.three_level(20, seed=0)


def descent_of(problem, activation, N, draw=0):
    return TangentDescent.of(problem, ls.NeuralTangent(activation), N, weights.generator(0, draw, N))


@pytest.mark.parametrize("N", [5, 20, 60])
def test_it_follows_its_flow(N):
    """Second route: the closed form for σ = u². Steps of ε differ from the flow by ε·rate, here a thousandth."""
    times = np.array([0.5, 5.0, 50.0])
    model = descent_of(TARGET, "square", N)
    found = [model.risk([(round(t / 1e-4), 1e-4)]) for t in times]
    assert found == pytest.approx(ls.flow(TARGET, ls.NeuralTangent(), width=N, times=times).risk.values, abs=2e-4)


@pytest.mark.parametrize("N", [5, 10])
def test_its_noise_is_that_of_the_limit_theorem(N):
    """Second route: `finite_step`, which has moments of u² in closed form. Both leave out relative orders of 1/d."""
    steps, batch, size = 4000, 20, 0.005
    line = finite_step(TARGET, ls.NeuralTangent(), width=N, step_size=size, batch=batch, samples=[steps * batch])
    model, plan = descent_of(TARGET, "square", N), [(steps, size)]
    noise = float(line.risk[-1] - line.flow[-1])
    assert noise > 0.01  # with N ≥ d weights the risk vanishes, and the noise with it
    assert model.noisy_risk(plan, batch) - model.risk(plan) == pytest.approx(noise, rel=2.0 / min(N, 20))


@pytest.mark.parametrize(("problem", "activation", "size"), [(MIXTURE, "square", 0.004), (TARGET, "relu", 0.1)])
def test_its_noise_is_that_of_sgd(problem, activation, size):
    """Runs with the same weights: the mean difference is within three standard errors and 4/d of the noise."""
    draws, N, protocol = 12, 20, ls.SGD(steps=1500, batch=10, step_sizes=(size,), decay=(), test=20_000)
    away, noise = [], []
    for draw in range(draws):
        run = Run("simulate", problem, ls.NeuralTangent(activation), {"width": (N,)}, None, protocol, draw)
        model, plan = descent_of(problem, activation, N, draw), [(protocol.steps, size)]
        predicted = model.noisy_risk(plan, protocol.batch)
        away.append(float(run.compute()["trace"][0, 0, -1]) - predicted)
        noise.append(predicted - model.risk(plan))
    error = np.std(away, ddof=1) / np.sqrt(draws)
    assert error < 0.2 * np.mean(noise)  # else nothing would be tested
    assert abs(np.mean(away)) < 3.0 * error + 4.0 / problem.d * np.mean(noise)


def test_the_factor_of_its_noise_is_that_of_what_it_has_learnt():
    """Second route: descent in the weights themselves, with every moment by quadrature, which is exact here."""
    problem, N, plan = ls.GaussianMixture([0.6, -0.3]), 3, [(40, 0.01), (20, 0.005)]
    nodes, shares = np.polynomial.hermite_e.hermegauss(8)
    z = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    share = 0.5 * np.tile(np.outer(shares, shares).ravel() / shares.sum() ** 2, 2)
    x = np.concatenate([z * np.sqrt(problem.class_covariance(y)) for y in (1.0, -1.0)])
    label = np.repeat([1.0, -1.0], len(z))
    W = weights.draw(problem, ls.NeuralTangent(), N, weights.generator(0, 0, N))
    features = np.concatenate([2.0 * (x @ w)[:, None] * x / np.sqrt(N) for w in W] + [np.ones((len(x), 1))], axis=1)
    u = np.zeros(features.shape[1])
    for count, size in plan:
        for _ in range(count):
            u -= 2.0 * size * features.T @ (share * (features @ u - label))
    squares, lengths = (features @ u - label) ** 2, np.sum(features**2, axis=1)
    expected = share @ (squares * lengths) / ((share @ squares) * (share @ lengths))
    assert abs(expected - 1.0) > 0.05  # else nothing would be tested
    # private: the factor enters risks as 1 % of them
    assert descent_of(problem, "square", N)._factor(plan) == pytest.approx(expected, rel=1e-8)


def test_random_vectors_see_the_spectrum(monkeypatch):
    """Second route: all eigenvalues. What noise adds is Σθ(1 − q²), nearly: a sum of which a vector knows its share."""
    plan = [(2000, 0.1)]
    dense = descent_of(TARGET, "relu", 20)
    monkeypatch.setattr(linear, "_DENSE", 0)
    probed = descent_of(TARGET, "relu", 20)
    assert dense.count.sum() == pytest.approx(probed.count.sum(), rel=1e-12) == 401
    for power in (1, 2):
        total = dense.modes**power @ dense.count
        assert probed.modes**power @ probed.count == pytest.approx(total, rel=0.02)
    assert probed.noisy_risk(plan, 20) == pytest.approx(dense.noisy_risk(plan, 20), rel=1e-3)


def test_a_square_sees_its_weights_through_their_covariance():
    """N > d weights are replaced by d: the same descent, from what it ends with to what one step changes."""
    problem, N = ls.GaussianMixture.three_level(5, seed=0), 12
    model = descent_of(problem, "square", N)
    whole = ls.exact(problem, ls.NeuralTangent(), width=N, draws=1, seed=0).risk.item()
    assert model.risk([(200_000, 0.02)]) == pytest.approx(whole, abs=1e-6)
    assert model.count.sum() == 26
    few = ls.simulate(
        problem, ls.NeuralTangent(), width=N, protocol=ls.SGD(steps=1, batch=200_000, step_sizes=(0.05,), decay=())
    )
    assert few.risk.item() == pytest.approx(model.risk([(1, 0.05)]), abs=3e-3)


def test_steps_that_are_too_long_diverge():
    with pytest.raises(ls.NotConverged, match="diverges with the step size 3"):
        descent_of(TARGET, "relu", 10).noisy_risk([(1000, 3.0)], 20)

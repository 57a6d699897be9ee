"""Random features and the tangent model on a monomial of the sphere: quadrature, a large sample, parity, refusals."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.weights import generator

KINDS = {"RF": ls.RandomFeatures, "NT": ls.NeuralTangent}


def weights(d, N):
    """The weights that `exact` draws first, with seed 0."""
    W = generator(0, 0, N).standard_normal((N, d))
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def features(kind, sigma, X, W):
    H = X @ W.T
    values = sigma(H) if kind == "RF" else (sigma.derivative(H)[:, :, None] * X[:, None, :]).reshape(len(X), -1)
    return np.column_stack([values, np.ones(len(X))])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["tanh", "softplus", "square"])
@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_it_is_least_squares_with_an_offset_on_a_quadrature_of_the_sphere(kind, name, p):
    """Nodes of Gauss and Legendre times a circle, exact to degree 159, in d = 3: no formula is shared."""
    t, w = np.polynomial.legendre.leggauss(80)
    phi = 2 * np.pi * np.arange(160) / 160
    s = np.sqrt(1 - t * t)
    x = np.stack([np.repeat(t, 160), np.outer(s, np.cos(phi)).ravel(), np.outer(s, np.sin(phi)).ravel()], axis=1)
    x, w = np.sqrt(3) * x, np.repeat(w, 160) / 320
    N, alpha, beta = 3, -0.7, np.array([2.0, 0.0, 0.0])
    problem = ls.RidgeMonomial(3, p, alpha=alpha, beta=beta)
    found = float(ls.exact(problem, KINDS[kind](name), width=N).risk)
    F, y, root = features(kind, ls.Activation(name), x, weights(3, N)), problem.target(x), np.sqrt(w)
    a = np.linalg.lstsq(root[:, None] * F, root * y, rcond=1e-12)[0]
    variance = w @ y**2 - (w @ y) ** 2
    assert found == pytest.approx(float(w @ (y - F @ a) ** 2) / variance, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["erf", "relu"])
def test_exact_against_a_large_sample(kind, name):
    d, N, n, rng = 8, 5, 100_000, np.random.default_rng(2)
    beta = np.eye(d)[0]
    problem, W, sigma = ls.RidgeMonomial(d, 3, beta=beta), weights(d, N), ls.Activation(name)
    exact = float(ls.exact(problem, KINDS[kind](name), width=N).risk)
    X, y = problem.sample(n, rng)
    a = np.linalg.lstsq(features(kind, sigma, X, W), y, rcond=None)[0]
    X, y = problem.sample(n, rng)
    losses = (y - features(kind, sigma, X, W) @ a) ** 2 / np.var(y)
    stderr = np.std(losses - losses.mean() * (y - y.mean()) ** 2 / np.var(y)) / np.sqrt(n)  # of a ratio of two means
    excess = exact * (a.size + 1) / n  # of a least-squares fit, in the mean
    assert abs(losses.mean() - exact - excess) < 3.0 * stderr


def test_an_odd_activation_learns_nothing_of_an_even_power():
    for kind in KINDS.values():
        assert float(ls.exact(ls.RidgeMonomial(10, 4), kind("erf"), width=30).risk) == pytest.approx(1.0, abs=1e-12)


def test_energies_are_those_of_the_monomial():
    """E(βᵀx)^{2p} = ‖β‖^{2p} d^p (2p − 1)!!/(d(d + 2)⋯(d + 2p − 2)) on the sphere ‖x‖ = √d; p = 3."""
    d = 7
    target = ls.HarmonicTarget.of_target(ls.RidgeMonomial(d, 3, alpha=2.0, beta=3.0 * np.eye(d)[1], noise=0.1))
    assert target.energy == pytest.approx(4.0 * 3.0**6 * 15.0 * d**3 / (d * (d + 2.0) * (d + 4.0)), rel=1e-12)
    assert target.noise == 0.1 and np.flatnonzero(target.energies).tolist() == [1, 3]


def test_inputs_off_the_sphere_are_refused():
    for inputs in ("hypercube", np.arange(1.0, 6.0)):
        with pytest.raises(ls.NoTheorem, match=r'x on the sphere.*Pass inputs="sphere"'):
            ls.exact(ls.RidgeMonomial(5, 3, inputs=inputs), ls.RandomFeatures("erf"), width=3)


def test_it_is_not_compared_with_a_simulation_of_other_weights():
    with pytest.raises(ls.NoTheorem, match="the same draws"):
        ls.compare(ls.RidgeMonomial(5, 3), ls.NeuralTangent("relu3"), width=8, samples=20)

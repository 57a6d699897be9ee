"""The network that estimators train: gradients, single steps, schedules and batches."""

import numpy as np
import pytest

from lazyscope.activations import Activation
from lazyscope.estimators.networks.network import TwoLayerNetwork
from lazyscope.estimators.networks.training import Plan, Samples
from lazyscope.estimators.two_layer import TwoLayerRegressor


def network(sigma, kind, k, dtype=np.float64):
    rng = np.random.default_rng(0)
    W, A = rng.standard_normal((6, 4)), rng.standard_normal((6, k))
    return TwoLayerNetwork(W.astype(dtype), A.astype(dtype), Activation(sigma), kind, batch=8)


def batch(k, kind):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.standard_normal((7, 3)), np.ones(7)])
    if kind == "square":
        Y = rng.standard_normal((7, k))
    else:
        labels = rng.integers(0, max(2, k), 7)
        Y = (labels[:, None] == np.arange(k)).astype(float) if k > 1 else labels[:, None].astype(float)
    return X, Y, rng.random(7)


@pytest.mark.parametrize("sigma", ["relu", "tanh", "square", "softplus"])
@pytest.mark.parametrize(("kind", "k"), [("square", 1), ("square", 3), ("logistic", 1), ("logistic", 3)])
def test_the_gradient_is_that_of_differences(sigma, kind, k):
    net, (X, Y, v) = network(sigma, kind, k), batch(k, kind)

    def loss(theta):
        net.theta[:] = theta
        return v @ net.losses(net.outputs(X), Y)

    start = net.theta.copy()
    net.backward(X, net.outputs(X), Y, v)
    h, eye = 1e-6, np.eye(len(start))
    numerical = [(loss(start + h * e) - loss(start - h * e)) / (2 * h) for e in eye]
    np.testing.assert_allclose(net.gradient, numerical, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("sigma", ["relu", "tanh", "gelu"])
def test_float32_follows_float64(sigma):
    X, Y, v = batch(2, "square")
    nets = [network(sigma, "square", 2, dtype) for dtype in (np.float64, np.float32)]
    for net in nets:
        x, y, w = (part.astype(net.theta.dtype) for part in (X, Y, v))
        for _ in range(20):
            net.backward(x, net.outputs(x), y, w)
            net.adam(1e-2, 1e-3)
    np.testing.assert_allclose(nets[1].theta, nets[0].theta, atol=2e-4)


def test_a_step_of_adam_is_the_paper_s():
    net, (X, Y, v) = network("tanh", "square", 1), batch(1, "square")
    theta = net.theta.copy()
    m, u, decay = np.zeros_like(theta), np.zeros_like(theta), 0.01
    decayed = np.ones(len(theta))
    decayed[3:24:4] = decayed[-1] = 0.0  # offsets of the neurons, and the constant
    for t in range(1, 5):
        net.backward(X, net.outputs(X), Y, v)
        g = net.gradient + decay * decayed * theta
        m, u = 0.9 * m + 0.1 * g, 0.999 * u + 0.001 * g * g
        theta -= 0.05 * (m / (1 - 0.9**t)) / (np.sqrt(u / (1 - 0.999**t)) + 1e-8 / np.sqrt(1 - 0.999**t))
        net.adam(0.05, decay)
        np.testing.assert_allclose(net.theta, theta, rtol=1e-10)


def test_a_step_of_sgd_is_nesterov_s():
    net, (X, Y, v) = network("tanh", "square", 1), batch(1, "square")
    theta, velocity = net.theta.copy(), 0.0
    for _ in range(3):
        net.backward(X, net.outputs(X), Y, v)
        velocity = 0.9 * velocity - 0.1 * net.gradient
        theta += 0.9 * velocity - 0.1 * net.gradient
        net.momentum(0.1, 0.0, 0.9)
        np.testing.assert_allclose(net.theta, theta, rtol=1e-12)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_schedules_start_at_the_rate_and_end_at_zero(schedule):
    plan = Plan.of(TwoLayerRegressor(schedule=schedule, learning_rate=0.5))
    assert plan.rate(0.0) == 0.5
    assert plan.rate(1.0) == (0.5 if schedule == "constant" else pytest.approx(0.0, abs=1e-15))


def test_batches_hold_every_sample_once():
    X = np.arange(23.0)[:, None]
    samples = Samples.of(X, X, None, np.float32)
    seen = [float(x[0]) for part, _, _ in samples.batches(np.random.default_rng(0).permutation(23), 5) for x in part]
    assert sorted(seen) == list(range(23))
    sizes = [len(part) for part, _, _ in samples.batches(np.arange(23), 5)]
    assert max(sizes) <= 5 and max(sizes) - min(sizes) <= 1

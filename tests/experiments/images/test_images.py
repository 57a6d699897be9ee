"""Networks on images: gradients against PyTorch's, counts of parameters, and what labels become."""

import numpy as np
import pytest

from lazyscope.experiments.images.images import images, relabelled
from lazyscope.experiments.images.trained_descent import ImageNetworkDraw
from lazyscope.training.layers import Layers


@pytest.mark.parametrize("loss", ["square", "hinge"])
@pytest.mark.parametrize("sizes", [(5, 7, 3), (5, 4, 6, 3, 2)])
def test_loss_and_gradient_are_those_of_torch(loss, sizes):
    torch = pytest.importorskip("torch")
    rng, layers = np.random.default_rng(0), Layers(sizes)
    X, Y = rng.standard_normal((11, sizes[0])), rng.choice([-1.0, 1.0], (11, sizes[-1]))
    theta = layers.start(rng) + 0.1 * rng.standard_normal(layers.parameters)
    value, gradient = layers.loss(theta, X, Y, loss)
    leaves = torch.tensor(theta, requires_grad=True)
    z, at = torch.tensor(X), 0
    for k in range(len(sizes) - 1):
        before, after = sizes[k : k + 2]
        W = leaves[at : at + before * after].reshape(before, after)
        b = leaves[at + before * after : at + before * after + after]
        at += before * after + after
        z = z @ W + b
        z = torch.relu(z) if k < len(sizes) - 2 else z
    Yt = torch.tensor(Y)
    residual = z - Yt if loss == "square" else torch.relu(1.0 - Yt * z)
    total = 0.5 * (residual**2).mean()
    total.backward()
    assert value == pytest.approx(total.item(), rel=1e-12)
    np.testing.assert_allclose(gradient, leaves.grad.numpy(), atol=1e-14)


def test_parameters_are_counted_with_biases():
    assert ImageNetworkDraw("digits", "square", 1, 10, 50, 0.0, 1).layers.parameters == 65 * 10 + 11 * 10
    assert ImageNetworkDraw("mnist", "hinge", 3, 8, 50, 0.0, 1).layers.parameters == 785 * 8 + 2 * 72 + 90


def test_a_wide_network_fits_both_losses_to_zero():
    X, digit = images("digits")
    Y = np.where(digit[:40, None] == np.arange(10), 1.0, -1.0)
    for loss in ("square", "hinge"):
        layers = Layers((64, 60, 10))
        theta = layers.train(X[:40], Y, loss, layers.start(np.random.default_rng(1)), 600)
        assert layers.loss(theta, X[:40], Y, loss)[0] < 1e-6


def test_relabelling_changes_the_share_that_it_says():
    digit = np.zeros(10_000, dtype=np.int64)
    new = relabelled(digit, 0.5, np.random.default_rng(0))
    assert np.mean(new != 0) == pytest.approx(0.45, abs=0.02)  # a tenth of the random ones are right by chance
    assert np.all(relabelled(digit, 0.0, np.random.default_rng(0)) == 0)


def test_one_draw_is_one_number_and_losses_share_their_images():
    one = ImageNetworkDraw("digits", "square", 1, 3, 40, 0.2, 20)
    assert all(np.array_equal(a, b) for a, b in zip(one.compute().values(), one.compute().values(), strict=True))

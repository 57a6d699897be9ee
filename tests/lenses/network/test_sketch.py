"""Kernels by random directions: without bias, and with errors that are right."""

import numpy as np
import torch

import lazyscope as ls
from lazyscope.lenses.network.sketch import GROUPS, alignment, change, drift, inner, jackknife, sketched
from lazyscope.lenses.network.torch_model import TorchModel


def pair():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 20), torch.nn.Tanh(), torch.nn.Linear(20, 2))
    model, rng = TorchModel(net), np.random.default_rng(0)
    x, start = model.array(rng.standard_normal((10, 3))), model.state()
    return model, x, start, start + 0.2 * rng.standard_normal(len(start))


def test_directions_give_the_kernel_and_its_change_within_their_errors():
    model, x, start, now = pair()
    K0, K = (model.kernel(theta, x, 10)[None] for theta in (start, now))
    S0, S = (sketched(model, theta, x, 400) for theta in (start, now))
    assert S.shape == (GROUPS, 10, 10)
    for theta, exact, sketch in ((start, K0, S0), (now, K, S)):
        assert inner(sketch, sketch) > 0 and theta is not None
        # the error of an entry is √((K_ii K_jj + K_ij²)/s) or less: two outputs are averaged
        allowed = np.sqrt((np.outer(np.diag(exact[0]), np.diag(exact[0])) + exact[0] ** 2) / 400)
        z = (sketch.mean(axis=0) - exact[0]) / allowed
        assert np.sqrt(np.mean(z**2)) < 1.5
    Y = np.eye(2)[np.arange(10) % 2]
    for statistic in (change, drift):
        assert abs(statistic(S, S0) - statistic(K, K0)) < 4.0 * jackknife(statistic, S, S0) + 1e-12
    assert abs(alignment(S, Y) - alignment(K, Y)) < 4.0 * jackknife(lambda one: alignment(one, Y), S)


def test_a_kernel_that_has_not_changed_is_not_said_to_have():
    """Noise alone must not look like change: inner products of independent groups have mean zero."""
    rng = np.random.default_rng(0)
    K0 = np.eye(6) + 0.1 * rng.standard_normal((GROUPS, 6, 6))
    drawn = [inner(K - K0, K - K0) for K in (K0 + 0.1 * rng.standard_normal((GROUPS, 6, 6)) for _ in range(400))]
    assert abs(np.mean(drawn)) < 4.0 * np.std(drawn) / np.sqrt(len(drawn))


def test_a_lens_by_directions_tells_its_error_and_its_plan():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 30), torch.nn.Tanh(), torch.nn.Linear(30, 1))
    x = np.random.default_rng(0).standard_normal((20, 3))
    exact, look = (ls.lens(net, x, x[:, 0], orders=1, directions=number) for number in (None, 256))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    truth, seen = exact(1), look(1)
    assert truth.change_stderr == 0.0 < seen.change_stderr
    assert abs(seen.change - truth.change) < 4.0 * seen.change_stderr
    assert "±" in look.verdict and "±" not in exact.verdict
    assert "151 parameters: the tangent kernel of 20 rows by 256 random directions" in str(look.plan)
    assert "by Jacobians" in str(exact.plan) and look.plan.memory < 1e6

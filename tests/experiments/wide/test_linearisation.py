"""A network and its linearisation on the same samples: the closed form against steps, and a verdict that can say no."""

import numpy as np
import pytest

from lazyscope.errors import NotConverged
from lazyscope.experiments.wide import linearisation as experiment
from lazyscope.training.taylor import linearised
from lazyscope.training.taylor.model import TaylorModel


def drawn(n, d, seed):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X * np.sqrt(d) / np.linalg.norm(X, axis=1, keepdims=True)


def network(N, d, sigma, seed):
    rng = np.random.default_rng(seed)
    return TaylorModel(rng.standard_normal((N, d)) / np.sqrt(d), rng.choice([-1.0, 1.0], N), sigma, np.sqrt(d))


def test_the_closed_form_is_gradient_descent_on_the_linearisation():
    """Second route: the same steps, made one by one on ⟨∇f, W⟩; then the two functions differ by what is told."""
    n, d, N = 12, 5, 30
    X, fresh, model = drawn(n, d, 0), drawn(40, d, 1), network(N, d, "erf", 2)
    y = np.random.default_rng(3).standard_normal(n)
    found = linearised.side_by_side(model, X, y, fresh, 0.05)
    H, F = X @ model.W0.T, fresh @ model.W0.T
    slope = model.sigma.derivative
    phi = (model.a * slope(H))[:, :, None] * X[:, None, :] / np.sqrt(N)
    Phi = phi.reshape(n, -1)
    new = ((model.a * slope(F))[:, :, None] * fresh[:, None, :] / np.sqrt(N)).reshape(len(fresh), -1)
    rate, w = 1.0 / np.linalg.eigvalsh(Phi @ Phi.T)[-1], np.zeros(N * d)
    left = []
    for _ in range(int(found["steps"])):
        w -= rate * Phi.T @ (Phi @ w - y)
        left.append(np.linalg.norm(Phi @ w - y) / np.linalg.norm(y))
    assert left[-1] <= 0.05 < left[-2]
    W = np.zeros((N, d))
    at_start = model.sigma(H) @ model.a / np.sqrt(N)
    for _ in range(int(found["steps"])):
        U = X @ (model.W0 + W).T
        residual = model.sigma(U) @ model.a / np.sqrt(N) - at_start - y
        W -= rate * ((slope(U) * residual[:, None] * model.a).T @ X) / np.sqrt(N)
    change = (model.sigma(fresh @ (model.W0 + W).T) - model.sigma(F)) @ model.a / np.sqrt(N)
    wanted = np.linalg.norm(change - new @ w) / np.linalg.norm(new @ w)
    assert float(found["distance"]) == pytest.approx(wanted, rel=1e-8)
    assert float(found["movement"]) == pytest.approx(np.linalg.norm(W) / np.linalg.norm(model.W0), rel=1e-8)


def test_a_network_with_too_few_parameters_is_refused():
    with pytest.raises(NotConverged, match="too few parameters"):
        linearised.side_by_side(network(1, 2, "erf", 0), drawn(8, 2, 0), np.arange(8.0), drawn(4, 2, 1), 0.01)


def test_the_verdict_says_no_to_a_planted_fault(tiny):
    panel = tiny("linearisation").panels["width"]
    assert experiment.verdict({"width": panel})[-1].startswith("Weights move like")
    faults = {
        "distances that do not fall": panel.assign(exponent=0.0 * panel.exponent),
        "weights that do not move less": panel.assign(
            exponent=panel.exponent.where(panel.quantity != "movement", -1.0)
        ),
        "neurons whatever n": panel.assign(needed_exponent=0.0 * panel.needed_exponent),
    }
    for fault, changed in faults.items():
        assert experiment.verdict({"width": changed})[-1].startswith("Not as predicted"), fault


def test_smooth_activations_are_linear_sooner(tiny):
    """For erf second-order terms have random signs and the distance falls like 1/N; for ReLU kinks dominate it."""
    panel = tiny("linearisation").panels["width"].sel(quantity="distance")
    assert np.all(panel.exponent.sel(activation="erf") < panel.exponent.sel(activation="relu"))

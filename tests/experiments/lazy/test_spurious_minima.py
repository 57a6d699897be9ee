"""Bad minima of the quadratic network: risk and Hessian by a second route, the trap in closed form, its bounds."""

import numpy as np
import pytest

from lazyscope.experiments.lazy.spurious_minima import SpuriousDraw, bad
from lazyscope.training.factored import QuadraticRisk, second_layer
from lazyscope.weights import tangent_as_network


def test_risk_gradient_and_hessian_are_those_of_the_network():
    """The risk against the network itself; its derivatives against differences, good to 1e-8 of their size."""
    rng = np.random.default_rng(0)
    d, N, n = 4, 3, 30
    X, y, W, v = rng.standard_normal((n, d)), rng.standard_normal(n), rng.standard_normal((d, N)), second_layer(N, True)
    risk = QuadraticRisk.of_sample(X, y)

    def direct(flat):
        return 0.5 * np.mean((((X @ flat.reshape(d, N)) ** 2) @ v - y) ** 2)

    value, gradient = risk.value(W, v)
    assert value == pytest.approx(direct(W.ravel()), rel=1e-12)
    steps = 1e-5 * np.eye(d * N)
    slopes = np.array([(direct(W.ravel() + e) - direct(W.ravel() - e)) / 2e-5 for e in steps])
    np.testing.assert_allclose(gradient.ravel(), slopes, atol=1e-6 * np.abs(gradient).max())
    rows = [(risk.value(W + e.reshape(d, N), v)[1] - risk.value(W - e.reshape(d, N), v)[1]).ravel() for e in steps]
    hessian = np.array(rows) / 2e-5
    assert risk.curvature(W, v) == pytest.approx(np.linalg.eigvalsh(0.5 * (hessian + hessian.T))[0], rel=1e-6)


def test_the_moments_of_the_trap_are_those_of_its_law():
    d, n, rng = 5, 200_000, np.random.default_rng(1)
    others = rng.standard_normal((n, d - 1))
    others *= np.sqrt(d - 1.0) / np.linalg.norm(others, axis=1, keepdims=True)
    square = 1.0 + rng.choice([-1.0, 1.0], n) / np.sqrt(d - 1.0)
    X = np.column_stack([np.sqrt(square) * rng.choice([-1.0, 1.0], n), others])
    drawn, exact = QuadraticRisk.of_sample(X, square), QuadraticRisk.trap(d)
    # entries are means of products of four inputs, at most 16 each: their spread is below 8, and 300 of them are seen
    assert np.max(np.abs(drawn.T - exact.T)) < 4.0 * 8.0 / np.sqrt(n)
    assert np.max(np.abs(drawn.c - exact.c)) < 4.0 * 8.0 / np.sqrt(n)
    assert drawn.energy == pytest.approx(exact.energy, abs=0.01)


@pytest.mark.parametrize("d", [4, 6, 9])
def test_the_trap_is_a_minimum_of_known_risk_that_one_neuron_more_leaves(d):
    risk = QuadraticRisk.trap(d)
    W = np.zeros((d, d - 1))
    W[1:] = np.eye(d - 1) / np.sqrt(d - 1.0)
    value, gradient = risk.value(W, np.ones(d - 1))
    assert value == pytest.approx(0.5 / (d - 1.0), rel=1e-12) and np.max(np.abs(gradient)) < 1e-14
    assert risk.curvature(W, np.ones(d - 1)) > -1e-12
    assert risk.value(np.eye(d, 1), np.ones(1))[0] == pytest.approx(0.0, abs=1e-14)  # one neuron along x₁ is the target
    wider = np.column_stack([W, np.zeros(d)])
    assert risk.curvature(wider, np.ones(d)) == pytest.approx(-2.0 / (d - 1.0), rel=1e-9)


@pytest.mark.parametrize("both", [False, True])
def test_descents_are_trapped_below_the_bound_and_never_at_it(both):
    bound = SpuriousDraw("trap", both, 6, 1, 4).bound
    below, at = (SpuriousDraw("trap", both, 6, N, 4).compute() for N in (bound - 1, bound))
    assert np.all(bad(below)[4:]) and not np.any(bad(at))


def test_the_bound_of_few_samples():
    assert SpuriousDraw("random labels", False, 8, 1, 1).bound == 6  # √(2·16) = 5.7
    assert SpuriousDraw("random labels", True, 8, 1, 1).bound == 16


def test_the_network_of_two_neurons_tends_to_the_derivative():
    """σ = u²: the central difference is exact, 2⟨a, x⟩⟨w, x⟩, up to rounding."""
    rng = np.random.default_rng(2)
    W, A, x = rng.standard_normal((3, 4)), rng.standard_normal((3, 4)), rng.standard_normal(4)
    V, b = tangent_as_network(W, A, 0.1)
    assert V.shape == (6, 4) and (V @ x) ** 2 @ b == pytest.approx(2.0 * np.sum((A @ x) * (W @ x)), rel=1e-12)

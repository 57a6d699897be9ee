"""Moments of neurons with functions of a few directions: series against quadrature, differences and fits."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.numerics.quadrature import panels
from lazyscope.population.directions import series
from lazyscope.population.kernels import ArcsineKernel, SeriesKernel

D = 8
WEIGHTS = np.random.default_rng(0).standard_normal((5, D)) * np.array([0.2, 0.3, 0.4, 0.6, 1.0])[:, None]
TARGETS = {
    "he3": ls.MultiIndex(D, "he3", direction=np.eye(D)[2]),
    "erf": ls.MultiIndex(D, "erf"),
    "staircase": ls.MultiIndex(D, "staircase", indices=3),
    "committee": ls.MultiIndex(D, "committee-tanh", indices=2, direction=np.eye(D)[[4, 1]]),
    "callable": ls.MultiIndex(D, lambda Z: Z[:, 0] ** 2 * Z[:, 1] - Z[:, 1] ** 3, indices=2),
}


@pytest.mark.parametrize("name", ["he3", "erf"])
@pytest.mark.parametrize("sigma", ["relu", "erf", "softplus"])
def test_one_direction_agrees_with_quadrature_in_the_plane_of_weight_and_direction(name, sigma):
    problem, sigma = TARGETS[name], ls.Activation(sigma)
    edges = np.linspace(-9.0, 9.0, 37)
    g, w = panels(edges)
    w = w * np.exp(-0.5 * g * g) / np.sqrt(2.0 * np.pi)
    for weight, found in zip(WEIGHTS, series.values(problem, WEIGHTS, sigma), strict=True):
        s = np.linalg.norm(weight)
        r = weight @ problem.u / s
        # the field is the outer variable, so that the panels split at the kink of ReLU
        inner = (
            problem.h(r * g[:, None] + np.sqrt(1.0 - r * r) * g).reshape(g.size, g.size)
            if name == "erf"
            else (
                np.polynomial.hermite_e.hermeval(r * g[:, None] + np.sqrt(1.0 - r * r) * g, [0, 0, 0, 1]) / np.sqrt(6.0)
            )
        )
        assert found == pytest.approx(w @ (sigma(s * g) * (inner @ w)), abs=1e-10)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("sigma", ["relu", "erf"])
def test_gradients_are_derivatives_of_values(name, sigma):
    """Central differences in every weight; their error is of order ε² = 1e-10, and rounding of order 1e-11."""
    problem, sigma, step = TARGETS[name], ls.Activation(sigma), 1e-5
    gradient = series.gradients(problem, WEIGHTS, sigma)
    for k in range(D):
        shift = step * np.eye(D)[k]
        up, down = (series.values(problem, WEIGHTS + sign * shift, sigma) for sign in (1.0, -1.0))
        np.testing.assert_allclose(gradient[:, k], (up - down) / (2.0 * step), atol=1e-8)


@pytest.mark.parametrize("regime", [ls.RandomFeatures("relu"), ls.NeuralTangent("erf"), ls.NeuralTangent(),
                                    ls.JointTangent("softplus")])  # fmt: skip
def test_exact_for_several_directions_is_what_a_fit_tends_to(regime):
    """Least squares on samples lies above the population optimum by 2RP/n at most (P coefficients), within noise."""
    problem, n, N = ls.MultiIndex(5, "staircase", indices=3), 60_000, 4
    exact = float(ls.exact(problem, regime, width=N, seed=3).risk)
    from lazyscope import weights

    W = weights.draw(problem, regime, N, weights.generator(3, 0, N))
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, 5))
    fields = X @ W.T
    sigma, columns = regime.activation, []
    if not isinstance(regime, ls.NeuralTangent):
        columns.append(sigma(fields) - float(sigma.hermite(0)))
    if not isinstance(regime, ls.RandomFeatures):
        columns += [np.ones((n, 1)), (sigma.derivative(fields)[:, :, None] * X[:, None]).reshape(n, -1)]
    Phi, y = np.column_stack(columns), problem.h(X[:, :3])
    residual = y - Phi @ np.linalg.lstsq(Phi, y, rcond=1e-10)[0]
    fitted = np.mean(residual**2) / problem.energy  # below the population's, by as much as the test error is above
    spread = np.std(residual**2) / problem.energy / np.sqrt(n)
    assert abs(fitted - exact) < 4.0 * spread + 2.0 * exact * Phi.shape[1] / n


@pytest.mark.parametrize("name", ["erf", "erf2"])
def test_the_arcsine_is_the_series(name):
    s, r = np.array([0.1, 0.7, 1.3]), np.linspace(-0.9, 0.9, 9).reshape(3, 3)
    sigma, rows = ls.Activation(name), slice(0, 3)
    closed = ArcsineKernel(sigma, s)(0, 0, r, rows, rows)
    np.testing.assert_allclose(closed, SeriesKernel(sigma, s, 0.9, 0)(0, 0, r, rows, rows), atol=1e-12)


def test_a_link_whose_series_ends_too_early_is_refused():
    with pytest.raises(ls.NotConverged, match="more Hermite coefficients"):
        series.values(ls.MultiIndex(D, "relu"), np.eye(1, D) + 1e-3, ls.Activation("relu"))


def test_a_link_with_all_coefficients_that_are_known_serves_both_layers():
    """The link has terms of degree 400, the highest known, of the size of rounding; σ′ asks for two degrees more of σ.

    The second route is a product rule for the whole of two dimensions.
    """
    problem = ls.MultiIndex(2, lambda z: np.tanh(1.3 * z) + 0.3 * z**2, direction=np.array([0.6, 0.8]))
    assert problem.coefficients.size > 399
    W = np.array([[0.7, -0.2], [0.4, 0.9]])
    g, w = np.polynomial.hermite_e.hermegauss(90)
    X = np.stack(np.meshgrid(g, g, indexing="ij"), axis=-1).reshape(-1, 2)
    root, y = np.sqrt(np.outer(w, w).ravel() / np.sum(w) ** 2), problem.h(X @ problem.u)
    for regime in (ls.NeuralTangent("softplus"), ls.JointTangent("gelu")):
        sigma, fields = regime.activation, X @ W.T
        columns = [np.ones((len(X), 1)), *(sigma.derivative(fields) * X[:, [k]] for k in range(2))]
        if isinstance(regime, ls.JointTangent):
            columns.append(sigma(fields))
        Phi = root[:, None] * np.column_stack(columns)
        residual = root * y - Phi @ np.linalg.lstsq(Phi, root * y, rcond=1e-13)[0]
        given = type(regime)(sigma, weights=ls.FixedWeights(W.T))
        missed = residual @ residual / problem.energy
        assert ls.exact(problem, given, width=2).risk.item() == pytest.approx(missed, abs=1e-9)

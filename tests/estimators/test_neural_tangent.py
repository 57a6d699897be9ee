"""The tangent model on data: against its explicit Jacobian, ridge regression, and itself by other routes."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_digits, make_classification
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lazyscope.activations import Activation
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.estimators.base import FirstLayer
from lazyscope.estimators.neural_tangent import NeuralTangentClassifier, NeuralTangentRegressor
from lazyscope.estimators.probabilities import misplaced
from lazyscope.estimators.tangent import Tangent
from lazyscope.numerics.krylov import shifted_cg

RIDGES = np.geomspace(1e-4, 1e1, 6)


def tangent(n=40, d=3, N=7, sigma="tanh", dtype=np.float64):
    rng = np.random.default_rng(0)
    layer = FirstLayer(rng.standard_normal((N, d)), 0.3 * rng.standard_normal(N), Activation(sigma))
    X = rng.standard_normal((n, d)).astype(dtype)
    return layer, X, Tangent.of(layer, X, 0.7, 0.4)


@pytest.mark.parametrize("sigma", ["relu", "tanh", "square"])
def test_the_jacobian_is_that_of_differences(sigma):
    layer, X, here = tangent(sigma=sigma)
    N, d = layer.W.shape

    def network(V):
        return layer.sigma(X @ (layer.W + 0.7 * V[:, :d]).T + layer.b + 0.4 * V[:, d]).sum(axis=1) / np.sqrt(N)

    h, J = 1e-6, here.jacobian()
    for j in range(J.shape[1]):
        V = np.zeros(J.shape[1])
        V[j] = h
        column = (network(V.reshape(N, d + 1)) - network(-V.reshape(N, d + 1))) / (2 * h)
        np.testing.assert_allclose(J[:, j], column, atol=1e-8)


@pytest.mark.parametrize("thin", [False, True])
def test_products_and_the_kernel_are_those_of_the_jacobian(thin):
    layer, X, here = tangent(n=200)
    J = here.jacobian()
    if thin:
        here = Tangent.of(layer, sparse.csr_array(X), 0.7, 0.4)
    rng = np.random.default_rng(1)
    u, V = rng.standard_normal(200), rng.standard_normal((7, 4))
    np.testing.assert_allclose(here.kernel(), J @ J.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(here.transposed(u).ravel(), J.T @ u, rtol=1e-12)
    np.testing.assert_allclose(here.forward(V), J @ V.ravel(), rtol=1e-12)
    np.testing.assert_allclose(here.times(u), J @ (J.T @ u), rtol=1e-12)


def test_float32_products_stay_in_float32():
    _, _, here = tangent(dtype=np.float32)
    u = np.ones(40, dtype=np.float32)
    assert here.times(u).dtype == np.float32
    np.testing.assert_allclose(here.times(u), here.kernel() @ u, rtol=1e-4, atol=1e-5)


def test_shifted_conjugate_gradients_solve_every_shift():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((60, 40))
    A, b, shifts = M @ M.T, rng.standard_normal(60), np.array([1e-2, 1.0, 100.0, 1e6, 1e9])
    found = shifted_cg(lambda v: A @ v, b, shifts, 1e-10, 500)
    for shift, x, inner in zip(shifts, found.x, found.inner, strict=True):
        expected = np.linalg.solve(A + shift * np.eye(60), b)
        np.testing.assert_allclose(x, expected, atol=1e-7 * np.linalg.norm(expected))
        assert inner == pytest.approx(b @ expected, rel=1e-7)
    assert np.all(found.residual <= 1e-10) and found.steps < 200
    alone = shifted_cg(lambda v: A @ v, b, shifts, 1e-10, 500, solutions=False)
    np.testing.assert_allclose(alone.inner, found.inner, rtol=1e-12)
    assert alone.x is None and shifted_cg(lambda v: A @ v, 0 * b, shifts, 1e-10, 5).steps == 0


def problem(n=150, d=4, k=1):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    Y = np.sin(X @ rng.standard_normal((d, k))) + X[:, :1] ** 2 + 0.1 * rng.standard_normal((n, k)) + 2.0
    return X, Y[:, 0] if k == 1 else Y


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("solver", ["primal", "direct", "cholesky", "cg"])
def test_every_route_is_ridge_regression_on_the_jacobian(solver, k, constant):
    X, y = problem(k=k)
    v = np.random.default_rng(5).integers(0, 3, len(X)).astype(float)
    model = NeuralTangentRegressor(
        15, ridge=1e-2, solver=solver, tol=1e-10, fit_intercept=constant, random_state=0
    ).fit(X, y, sample_weight=v)
    # private: the features themselves, which the estimator never forms
    J = model._tangent(X).jacobian()
    ridge = Ridge(alpha=v.sum() * 1e-2, fit_intercept=constant, solver="svd").fit(J, y, sample_weight=v)
    np.testing.assert_allclose(model.predict(X), ridge.predict(J), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model.coef_.reshape(ridge.coef_.shape), ridge.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-6, atol=1e-6)


def test_routes_choose_alike():
    X, y = problem(n=300)
    models = {
        solver: NeuralTangentRegressor(40, ridge=RIDGES, solver=solver, tol=1e-8, random_state=0).fit(X, y)
        for solver in ("primal", "direct", "cholesky", "cg")
    }
    assert len({model.ridge_ for model in models.values()}) == 1
    np.testing.assert_allclose(models["primal"].gcv_, models["direct"].gcv_, rtol=1e-6)
    np.testing.assert_allclose(models["primal"].freedom_, models["direct"].freedom_, rtol=1e-6)
    # the probes of the trace: Var(uᵀHu) ≤ 2‖H‖² ≤ 2 tr H for signs u, and there are eight of them
    for solver in ("cholesky", "cg"):
        error = np.abs(models[solver].freedom_ - models["direct"].freedom_)
        assert np.all(error <= 4.0 * np.sqrt(2.0 * models["direct"].freedom_ / 8))


@pytest.mark.parametrize("ridge", [1e-12, 1e-7, 1e-2])
def test_decompositions_in_float32_end_in_the_solution_of_float64(ridge):
    """At the smallest of these float32 cannot decompose K + nλ: 60 neurons on 300 samples leave K singular."""
    X, y = problem(n=300)
    ours = NeuralTangentRegressor(60, ridge=ridge, solver="cholesky", random_state=0).fit(X, y)
    theirs = NeuralTangentRegressor(60, ridge=ridge, solver="direct", random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8 / max(ridge, 1e-8) ** 0.5)


def test_the_search_of_a_ridge_ends_where_gcv_of_all_ridges_is_lowest():
    """Within a factor of two, over which GCV is flat: the search ends at the lowest point of a parabola."""
    X, y = problem(n=600)
    found = NeuralTangentRegressor(200, solver="cholesky", random_state=0).fit(X, y)
    every = NeuralTangentRegressor(200, solver="direct", random_state=0).fit(X, y)
    assert found.n_iter_ <= 6
    exact = NeuralTangentRegressor(200, ridge=found.ridge_, solver="direct", random_state=0).fit(X, y)
    assert exact.gcv_.min() <= 1.05 * every.gcv_.min()


def test_auto_takes_the_cheapest_route():
    X, y = problem(n=300)
    assert NeuralTangentRegressor(5, random_state=0).fit(X, y).solver_ == "primal"
    assert NeuralTangentRegressor(100, random_state=0).fit(X, y).solver_ == "direct"


def test_a_narrow_ridge_and_few_steps_are_refused():
    X, y = problem()
    model = NeuralTangentRegressor(50, ridge=1e-9, solver="cg", max_iter=3, random_state=0)
    with pytest.raises(NotConverged, match=r"left a residual of .* after max_iter = 3 steps"):
        model.fit(X, y)


def test_classes_grids_and_sparse_input():
    X, y = load_digits(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(len(y))[:500]
    X, y = X[mixed], y[mixed]
    model = NeuralTangentClassifier(30, random_state=0).fit(X[:350], y[:350])
    assert model.score(X[350:], y[350:]) > 0.9
    thin = NeuralTangentClassifier(30, random_state=0).fit(sparse.csr_array(X[:350]), y[:350])
    np.testing.assert_allclose(thin.decision_function(sparse.csr_array(X)), model.decision_function(X), atol=1e-6)
    frame, target = load_diabetes(return_X_y=True, as_frame=True)
    grid = {"neuraltangentregressor__activation": ["relu", "tanh"]}
    search = GridSearchCV(make_pipeline(StandardScaler(), NeuralTangentRegressor(20, random_state=0)), grid, cv=3)
    assert search.fit(frame, target).best_score_ > 0.4


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (
            {"solver": "lu"},
            "solver parameter of NeuralTangentRegressor must be one of auto, primal, direct, cholesky, cg",
        ),
        ({"tol": 0.0}, "tol parameter .* must be positive"),
        ({"max_iter": 0}, "max_iter parameter .* whole number"),
        ({"activation": "step"}, "activation parameter .* built on"),
        ({"ridge": -1.0}, "ridge parameter"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(parameters, said):
    X, y = problem(n=20)
    with pytest.raises(InvalidParameter, match=said):
        NeuralTangentRegressor(**parameters).fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_route_by_cholesky_is_the_direct_one(weighted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1100, 6))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(1100)
    v = rng.integers(1, 3, 1100).astype(float) if weighted else None
    routes = {
        solver: NeuralTangentRegressor(300, ridge=1e-3, solver=solver, random_state=0).fit(X, y, sample_weight=v)
        for solver in ("direct", "cholesky")
    }
    direct, cholesky = routes["direct"], routes["cholesky"]
    np.testing.assert_allclose(cholesky.predict(X), direct.predict(X), rtol=1e-8, atol=1e-8)
    # the trace is estimated by eight probes of ±1: variance 2·Σ_{i≠j} H_ij² ≤ 2·tr H², and tr H² ≤ tr H
    allowed = 4.0 * np.sqrt(2.0 * direct.freedom_[0] / 8)
    assert abs(cholesky.freedom_[0] - direct.freedom_[0]) < allowed


def test_the_search_for_a_ridge_ends_near_the_best():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1300, 8))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(1300)
    direct, found = (
        NeuralTangentRegressor(200, solver=solver, random_state=0).fit(X, y) for solver in ("direct", "cholesky")
    )
    lowest = float(np.min(direct.gcv_))
    there = float(np.exp(np.interp(np.log(found.ridge_), np.log(direct.ridges_), np.log(direct.gcv_))))
    assert there < 1.02 * lowest and found.n_iter_ <= 8


def test_conjugate_gradients_tell_the_freedom_of_one_ridge():
    X = np.random.default_rng(0).standard_normal((300, 4))
    direct, cg = (
        NeuralTangentRegressor(100, ridge=1e-2, solver=solver, random_state=0).fit(X, X[:, 0])
        for solver in ("direct", "cg")
    )
    assert abs(cg.freedom_[0] - direct.freedom_[0]) < 4.0 * np.sqrt(2.0 * direct.freedom_[0] / 8)


def test_a_ridge_for_classes_is_lowered_where_left_out_samples_are_then_in_their_class():
    X, y = make_classification(600, 25, n_informative=8, n_redundant=5, n_classes=5, random_state=0)
    X = StandardScaler().fit_transform(X)
    model = NeuralTangentClassifier(100, random_state=0).fit(X, y)
    Y = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    for_squares = NeuralTangentRegressor(100, random_state=0).fit(X, Y)
    assert for_squares.ridge_ / model.ridge_ == pytest.approx(np.sqrt(10.0))
    kernel = Tangent.of(model.layer_, X, 1 / np.sqrt(np.mean(np.sum(X**2, axis=1))), 0.3).kernel()
    before, after = (misplaced(kernel, Y, 600 * each.ridge_, True) for each in (for_squares, model))
    better, worse = np.sum(before & ~after), np.sum(after & ~before)
    assert better - worse > np.sqrt(better + worse)
    given = NeuralTangentClassifier(100, ridge=model.ridge_, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), given.decision_function(X), rtol=1e-8, atol=1e-8)
    place = model.ridges_.tolist().index(model.ridge_)
    assert len(model.ridges_) == 51 and np.all(np.diff(model.ridges_) > 0)
    allowed = 4.0 * np.sqrt(2.0 * given.freedom_[0] / 8)  # eight probes, as above
    assert abs(model.freedom_[place] - given.freedom_[0]) < allowed
    fresh, labels = make_classification(
        600, 25, n_informative=8, n_redundant=5, n_classes=2, class_sep=5, random_state=0
    )
    easy = NeuralTangentClassifier(100, random_state=0).fit(fresh, labels)
    assert len(easy.ridges_) == 50  # too few in the wrong class to choose by

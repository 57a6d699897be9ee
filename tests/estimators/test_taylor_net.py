"""Taylor models on data: what they predict, what they learn, what they refuse."""

import pickle

import numpy as np
import pytest

from lazyscope.errors import InvalidParameter, LazyscopeError
from lazyscope.estimators.taylor import TaylorNetClassifier, TaylorNetRegressor
from lazyscope.simulate.signs import flipped, random_signs


def quadratic(n=600, d=5):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, 10.0 + 3.0 * (X[:, 0] * X[:, 1] - X[:, 2])


def test_what_is_predicted_is_the_mean_over_signs():
    X, y = quadratic(n=100)
    model = TaylorNetRegressor(width=50, max_iter=50, random_state=0).fit(X, y)
    rng, inputs, W = np.random.default_rng(0), model._sphere(X), model.displacements_[0]
    draws = [model._model.network(flipped(W, random_signs(50, rng)), inputs) for _ in range(4000)]
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(len(draws))
    predicted = (model.predict(X) - y.mean()) / y.std()
    z = (mean - predicted) / np.maximum(error, 1e-12)
    assert np.sqrt(np.mean(z**2)) < 1.5  # a hundred inputs share their signs: one standard error, not four


@pytest.mark.parametrize("randomized", [True, False])
def test_the_quadratic_model_learns_a_product(randomized):
    X, y = quadratic()
    model = TaylorNetRegressor(2, 200, randomized=randomized, max_iter=400, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.7
    assert model.loss_ < 0.3 * model.loss_curve_[0] and model.n_iter_ == 400


def test_the_clean_model_has_degree_k_in_what_was_learnt():
    X, y = quadratic(n=60)
    model = TaylorNetRegressor(3, 40, "tanh", randomized=False, max_iter=20, random_state=0).fit(X, y)
    values = model.predict(X) - y.mean()
    model.displacements_ *= 2.0
    np.testing.assert_allclose(model.predict(X) - y.mean(), 8.0 * values, rtol=1e-9)


def test_one_seed_one_model_also_through_pickle():
    X, y = quadratic(n=80)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    one, same, other = (TaylorNetClassifier(max_iter=20, random_state=s).fit(X, labels) for s in (1, 1, 2))
    assert np.array_equal(one.decision_function(X), same.decision_function(X))
    assert not np.array_equal(one.decision_function(X), other.decision_function(X))
    assert one.decision_function(X).shape == (80, 3)
    assert np.array_equal(pickle.loads(pickle.dumps(one)).predict(X), one.predict(X))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"width": 7}, "even"),
        ({"bias": 0.0}, "bias parameter of TaylorNetRegressor must be positive"),
        ({"max_iter": 0}, "max_iter parameter"),
        ({"order": 0}, "order"),
        ({"activation": "relu"}, "assumes σ"),
        ({"order": 3, "randomized": True}, "order 2"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(parameters, said):
    X, y = quadratic(n=30)
    with pytest.raises(LazyscopeError, match=said):
        TaylorNetRegressor(**parameters).fit(X, y)
    with pytest.raises(InvalidParameter, match="at least two classes"):
        TaylorNetClassifier().fit(X, np.zeros(30))

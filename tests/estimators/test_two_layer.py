"""Trained networks on data: what they learn, when they stop, and what a user may do wrong."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.estimators.taylor import TaylorNetClassifier
from lazyscope.estimators.two_layer import TwoLayerClassifier, TwoLayerRegressor


def test_regression_learns_what_is_not_linear():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4))
    Y = np.column_stack([X[:, 0] * X[:, 1], 100.0 * np.abs(X[:, 2])]) + 7.0
    model = TwoLayerRegressor(80, schedule="cosine", learning_rate=0.02, max_iter=60, random_state=0)
    model.fit(X[:1000], Y[:1000])
    assert model.score(X[1000:], Y[1000:]) > 0.9
    np.testing.assert_allclose(
        model.predict(X),
        np.maximum(X @ model.layer_.W.T + model.layer_.b, 0) @ model.coef_.T + model.intercept_,
        rtol=1e-8,
    )
    assert model.n_iter_ == 60 == len(model.loss_curve_) and model.loss_curve_[-1] < 0.1 * model.loss_curve_[0]


def test_one_seed_one_network():
    X, y = load_diabetes(return_X_y=True)
    models = [TwoLayerRegressor(30, schedule="linear", max_iter=5, random_state=s).fit(X, y) for s in (3, 3, 4)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert not np.array_equal(models[0].coef_, models[2].coef_)


def test_early_stopping_keeps_the_best_network_on_held_out_samples():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = TwoLayerClassifier(50, learning_rate=0.03, early_stopping=True, random_state=0).fit(X, y)
    curve = model.validation_curve_
    assert model.n_iter_ == len(curve) < 200
    best = int(np.argmin(curve))
    assert len(curve) - 1 - best >= model.n_iter_no_change - 1  # it waited that long for a better one


def test_training_that_is_not_over_warns_and_a_schedule_does_not():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter = 3 epochs"):
        TwoLayerRegressor(10, max_iter=3).fit(X, y)
    TwoLayerRegressor(10, max_iter=3, schedule="cosine").fit(X, y)  # a warning would be an error here


def test_divergence_is_an_error_with_advice():
    X, y = load_diabetes(return_X_y=True)
    model = TwoLayerRegressor(20, "square", solver="sgd", learning_rate=1e3, random_state=0)
    with pytest.raises(NotConverged, match=r"diverged in epoch .* smaller learning_rate than 1000"):
        model.fit(X, y)


def test_partial_fit_goes_on_where_it_stopped():
    X, y = load_digits(return_X_y=True)
    X = X[:600] / 16
    model = TwoLayerClassifier(40, learning_rate=0.01, random_state=0)
    scores = []
    for epoch in range(12):
        model.partial_fit(X, y[:600], classes=np.arange(10) if epoch == 0 else None)
        scores.append(model.score(X, y[:600]))
    assert scores[-1] > 0.95 > scores[0] and model.n_iter_ == 12
    target = TwoLayerRegressor(40, learning_rate=0.01, random_state=0)
    for _ in range(3):
        target.partial_fit(X, y[:600])
    assert target.n_iter_ == 3


@pytest.mark.parametrize("model", [TwoLayerRegressor, TwoLayerClassifier])
def test_sparse_input_and_weights(model):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300] % 3
    settings = {"max_iter": 4, "schedule": "linear", "precision": "float64", "random_state": 0}
    dense = model(20, **settings).fit(X, y)
    thin = model(20, **settings).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.predict(sparse.csr_array(X)), dense.predict(X), rtol=1e-9)
    v = (np.arange(300) < 150).astype(float)
    half = model(20, **settings).fit(X, y, sample_weight=3.0 * v)
    alone = model(20, **settings).fit(X[:150], y[:150])
    np.testing.assert_allclose(half.predict(X), alone.predict(X), rtol=1e-7)


def test_probabilities_are_those_of_the_scores():
    X, y = load_digits(return_X_y=True)
    for classes in (2, 4):
        kept = y < classes
        model = TwoLayerClassifier(20, max_iter=5, schedule="linear", random_state=0).fit(X[kept], y[kept])
        P, F = model.predict_proba(X[kept]), model.decision_function(X[kept])
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
        if classes == 2:
            np.testing.assert_allclose(P[:, 1], 1.0 / (1.0 + np.exp(-F)))
        else:
            assert np.array_equal(np.argmax(P, axis=1), np.argmax(F, axis=1))


def test_grids_and_pipelines():
    frame, y = load_diabetes(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), TwoLayerRegressor(schedule="cosine", max_iter=20, random_state=0))
    search = GridSearchCV(model, {"twolayerregressor__width": [5, 30]}, cv=3).fit(frame, y)
    assert search.best_score_ > 0.3


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"solver": "lbfgs"}, "solver parameter of TwoLayerRegressor must be one of adam, sgd"),
        ({"schedule": "exp"}, "schedule parameter .* constant, linear, cosine"),
        ({"learning_rate": 0.0}, "learning_rate parameter .* must be positive"),
        ({"weight_decay": "some"}, 'weight_decay parameter .* must be "auto" or a number'),
        ({"weight_decay": -1.0}, "weight_decay parameter .* must be zero or positive"),
        ({"momentum": 1.0}, "momentum parameter .* below 1"),
        ({"batch_size": 0}, "batch_size parameter .* whole number"),
        ({"max_iter": 0}, "max_iter parameter .* whole number"),
        ({"early_stopping": True, "validation_fraction": 1.5}, "validation_fraction parameter .* below 1"),
        ({"early_stopping": True, "validation_fraction": 0.9999}, "validation_fraction parameter .* both sides"),
        ({"precision": "half"}, "precision parameter"),
        ({"activation": "sign"}, "activation parameter .* must have a derivative"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(parameters, said):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(InvalidParameter, match=said) as caught:
        TwoLayerRegressor(**parameters).fit(X, y)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:TwoLayerRegressor stopped after max_iter")
def test_weight_decay_and_epochs_are_chosen_on_samples_held_out():
    """On noise with a little signal, and more neurons than samples, the defaults must not fit the noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 10))
    signal = X[:, 0]
    y = signal + 2.0 * rng.standard_normal(1200)
    chosen, driven = (
        TwoLayerRegressor(100, weight_decay=decay, random_state=0, tol=0.0).fit(X[:200], y[:200])
        for decay in ("auto", 1e-4)
    )
    errors = [np.mean((model.predict(X[200:]) - signal[200:]) ** 2) for model in (chosen, driven)]
    assert errors[0] < 0.5 * errors[1]
    assert chosen.weight_decay_ in (1e-4, 1e-2, 1e-1) and chosen.n_iter_ < driven.n_iter_
    assert int(np.argmin(chosen.validation_curve_)) + 1 == chosen.n_iter_ == len(chosen.loss_curve_)


@pytest.mark.filterwarnings("ignore:TwoLayerRegressor stopped after max_iter")
def test_where_nothing_is_chosen_the_decay_is_the_smallest():
    """With few samples, a schedule, or early stopping, nothing is chosen; the result is that of the number given."""
    X, y = np.random.default_rng(0).standard_normal((80, 3)), np.arange(80.0)
    for rows, options in ((39, {}), (80, {"schedule": "cosine"}), (80, {"early_stopping": True})):
        auto, given = (
            TwoLayerRegressor(10, weight_decay=decay, max_iter=5, random_state=0, **options).fit(X[:rows], y[:rows])
            for decay in ("auto", 1e-4)
        )
        assert np.array_equal(auto.predict(X), given.predict(X)) and auto.weight_decay_ == 1e-4


def test_few_samples_of_many_classes_are_held_out_all_the_same():
    """A fifth of 40 samples is eight, fewer than the ten classes: the split cannot have one of each."""
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TwoLayerClassifier(8, max_iter=2, random_state=0).fit(X, y)
        taylor = TaylorNetClassifier(width=8, max_iter=2, random_state=0).fit(X, y)
    assert len(model.validation_curve_) == 2 and model.predict_proba(X).shape == taylor.predict_proba(X).shape == (
        40,
        10,
    )

"""Taylor models on data: what they predict, what they learn, what they refuse."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from lazyscope.errors import InvalidParameter, LazyscopeError
from lazyscope.estimators.matched import MatchedPairs
from lazyscope.estimators.taylor import TaylorNetClassifier, TaylorNetRegressor
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.signs import flipped, random_signs


def quadratic(n=600, d=5):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, 10.0 + 3.0 * (X[:, 0] * X[:, 1] - X[:, 2])


def test_what_is_predicted_is_the_mean_over_signs():
    X, y = quadratic(n=100)
    model = TaylorNetRegressor(width=50, randomized=True, max_iter=50, random_state=0).fit(X, y)
    rng, inputs, W = np.random.default_rng(0), model._sphere(X), model.displacements_[0]
    draws = [model._model.network(flipped(W, random_signs(50, rng)), inputs) for _ in range(4000)]
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(len(draws))
    predicted = (model.predict(X) - y.mean()) / y.std()
    z = (mean - predicted) / np.maximum(error, 1e-12)
    assert np.sqrt(np.mean(z**2)) < 1.5  # a hundred inputs share their signs: one standard error, not four


@pytest.mark.parametrize("randomized", [True, False])
def test_the_quadratic_model_learns_a_product(randomized):
    X, y = quadratic()
    steps = 400 if randomized else None
    model = TaylorNetRegressor(2, 200, randomized=randomized, max_iter=steps, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > (0.7 if randomized else 0.95)
    assert model.loss_ < 0.3 * model.loss_curve_[0] and (model.n_iter_ == 400) == randomized


def test_the_clean_model_has_degree_k_in_what_was_learnt():
    X, y = quadratic(n=60)
    model = TaylorNetRegressor(3, 40, "tanh", randomized=False, max_iter=20, random_state=0).fit(X, y)
    values = model.predict(X) - y.mean()
    model.displacements_ *= 2.0
    np.testing.assert_allclose(model.predict(X) - y.mean(), 8.0 * values, rtol=1e-9)


def test_order_three_under_matched_factors_learns_the_parity_of_three_signs():
    X = np.random.default_rng(0).choice([-1.0, 1.0], (900, 10))
    y = X[:, 0] * X[:, 1] * X[:, 2] > 0
    model = TaylorNetClassifier(3, 300, "tanh", randomized=True, max_iter=600, random_state=0).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.8  # three seeds reach 0.86 to 0.95; guessing, 0.5
    assert model.displacements_.shape == (1, 150, 11)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_what_matched_factors_predict_is_the_mean_and_tends_to_the_piece_of_order_three():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 4))
    X *= 2.0 / np.linalg.norm(X, axis=1, keepdims=True)
    pairs = MatchedPairs.of(TaylorModel.symmetric(40, 4, "tanh", rng, Bx=2.0), 3)
    w, signs = 0.3 * rng.standard_normal((20, 4)), pairs.signs[:, None]
    u, v = pairs.model.W0[:20] @ X.T, w @ X.T
    draws = []
    for _ in range(4000):
        plus, minus = (pairs.pair.draw(20, sign, rng)[:, None] for sign in (1, -1))
        draws.append(np.sum(signs * (np.tanh(u + plus * v) - np.tanh(u + minus * v)), axis=0))
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(mean - pairs.mean_values(w, X)) < 4.5 * error)  # six inputs: beyond it one time in 20,000
    # σ‴/3! of tanh is −(1 − t²)(1 − 3t²)/3; what follows it is of higher order in w
    t = np.tanh(u)
    piece = np.sum(signs * -(1 - t**2) * (1 - 3 * t**2) / 3.0 * (0.01 * v) ** 3, axis=0)
    np.testing.assert_allclose(pairs.mean_values(0.01 * w, X), piece, rtol=0.02, atol=1e-3 * np.max(np.abs(piece)))


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
        ({"order": 3}, "assumes σ"),
        ({"order": 1, "randomized": True}, "order 2"),
        (
            {"order": 3, "activation": "tanh", "randomized": True, "regularization": 0.1},
            "be zero for the network at orders above 2",
        ),
        ({"randomized": True, "early_stopping": True}, "ends training"),
        ({"early_stopping": "soon"}, "early_stopping parameter of TaylorNetRegressor must be True"),
        ({"tol": -1.0}, "tol parameter of TaylorNetRegressor must be zero or positive"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(parameters, said):
    X, y = quadratic(n=30)
    with pytest.raises(LazyscopeError, match=said):
        TaylorNetRegressor(**parameters).fit(X, y)
    with pytest.raises(InvalidParameter, match="at least two classes"):
        TaylorNetClassifier().fit(X, np.zeros(30))


def test_the_descent_follows_the_gradient_of_its_loss():
    """∇L against differences, with weights, λ and order three, for dense and sparse inputs."""
    from lazyscope.estimators.taylor_descent import Inputs
    from lazyscope.numerics.losses import as_loss

    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 4))
    X *= 2.0 / np.linalg.norm(X, axis=1, keepdims=True)
    model, y, v = TaylorModel.symmetric(6, 4, "tanh", rng, Bx=2.0), rng.standard_normal(9), rng.random(9)
    W, V, h, loss = 0.3 * rng.standard_normal((6, 4)), rng.standard_normal((6, 4)), 1e-6, as_loss("square", "test")
    for inputs in (X, sparse.csr_array(X)):
        samples = Inputs.of(model, 3, inputs, y, v, np.float64)
        value, g, G = samples.loss(W, loss)
        f = model.piece(3, W, X)
        assert value == pytest.approx(float(v @ (0.5 * (f - y) ** 2)) / v.sum(), rel=1e-12)
        ahead, behind = (samples.loss(W + sign * h * V, loss)[0] for sign in (1, -1))
        assert float(np.sum(samples.gradient(g, G) * V)) == pytest.approx((ahead - behind) / (2 * h), rel=1e-7)


@pytest.mark.parametrize("randomized", [False, True])
def test_weights_count_and_sparse_input_is_taken(randomized):
    X, y = quadratic(n=150)
    X[:, 3] = 0.0
    options = {"width": 40, "randomized": randomized, "max_iter": 60, "random_state": 0}
    dense = TaylorNetRegressor(**options).fit(X, y)
    thin = TaylorNetRegressor(**options).fit(sparse.csr_matrix(X), y)
    # L-BFGS carries rounding along its steps
    np.testing.assert_allclose(thin.predict(sparse.csr_matrix(X)), dense.predict(X), rtol=1e-3, atol=1e-3 * y.std())
    # a sample without weight is no sample: its target may be anything
    wild, weights = y.copy(), np.ones(150)
    wild[::5], weights[::5] = 1e3, 0.0
    model = TaylorNetRegressor(**options).fit(X, wild, sample_weight=weights)
    assert model.score(X[weights > 0], y[weights > 0]) > 0.5


def test_a_weight_of_two_is_the_sample_twice():
    X, y = quadratic(n=60)
    options = {"width": 20, "max_iter": 15, "early_stopping": False, "random_state": 0}
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted = TaylorNetRegressor(**options).fit(X, y, sample_weight=weights)
    twice = TaylorNetRegressor(**options).fit(np.vstack([X, X[:20]]), np.concatenate([y, y[:20]]))
    np.testing.assert_allclose(weighted.predict(X), twice.predict(X), rtol=1e-6, atol=1e-6 * y.std())


def test_the_number_of_steps_is_chosen_on_samples_held_out():
    """Noise as large as the signal, more parameters than samples: the descent must end long before it fits them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 8))
    signal = X[:, 0] * X[:, 1]
    y = signal + rng.standard_normal(900)
    stopped, driven = (
        TaylorNetRegressor(width=100, early_stopping=stop, max_iter=150, random_state=0).fit(X[:300], y[:300])
        for stop in (True, False)
    )
    errors = [np.mean((model.predict(X[300:]) - signal[300:]) ** 2) for model in (stopped, driven)]
    assert errors[0] < 0.5 * errors[1] and stopped.n_iter_ < driven.n_iter_


def test_of_few_samples_every_fifth_is_held_out_in_turn():
    """Every sample is held out once, its class in equal shares; of many samples one fifth is."""
    from lazyscope.estimators.taylor import _splits

    labels = np.repeat([0, 1], [60, 40])
    splits = _splits(100, labels, 3, "owner")
    assert sorted(np.concatenate([out for _, out in splits])) == list(range(100))
    assert all(np.count_nonzero(labels[out] == 0) == 12 and not {*rows} & {*out} for rows, out in splits)
    assert [len(out) for _, out in _splits(2000, None, 3, "owner")] == [400]

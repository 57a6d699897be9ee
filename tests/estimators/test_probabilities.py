"""Probabilities of classes: calibrated on fresh data, in the order of the scores, refused where nothing tells them."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss

from lazyscope.errors import InvalidParameter
from lazyscope.estimators.neural_tangent import NeuralTangentClassifier
from lazyscope.estimators.probabilities import left_out, misplaced
from lazyscope.estimators.random_features import RandomFeaturesClassifier
from lazyscope.estimators.tangent import Tangent
from lazyscope.estimators.taylor import TaylorNetClassifier

MODELS = [
    RandomFeaturesClassifier(100, random_state=0),
    NeuralTangentClassifier(40, random_state=0),
    TaylorNetClassifier(width=40, random_state=0),
]


def known_odds(n, seed=0):
    """Classes whose probabilities are known: a logistic of a product and a sum."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    p = 1.0 / (1.0 + np.exp(-2.0 * (X[:, 0] * X[:, 1] + X[:, 2])))
    return X, (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_among_samples_given_a_probability_that_share_is_of_the_class(model):
    X, y, p = known_odds(6000)
    P = model.fit(X[:1500], y[:1500]).predict_proba(X[1500:])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    order = np.argsort(P[:, 1])
    for part in np.array_split(order, 6):  # 750 samples each
        said, true = P[part, 1].mean(), p[1500:][part].mean()
        # the true probabilities are known, so that there is no noise of labels; a model in one parameter is not exact,
        # and the temperature is known from 1,500 samples, or 300, to a tenth: 0.25·0.1·|log-odds| ≤ 0.05, and as much
        # again for the shape
        assert abs(said - true) < 0.1, (said, true)


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: type(model).__name__)
def test_no_worse_than_a_calibration_by_folds(model):
    X, y, _ = known_odds(3500, seed=1)
    train, test = slice(0, 1000), slice(1000, None)
    ours = log_loss(y[test], model.fit(X[train], y[train]).predict_proba(X[test]))
    folds = CalibratedClassifierCV(model, method="sigmoid", cv=5).fit(X[train], y[train])
    theirs = log_loss(y[test], folds.predict_proba(X[test]))
    # their five models are averaged, which is worth something; ours is one fit instead of five
    assert ours < 1.05 * theirs


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_three_classes_keep_the_order_of_the_scores(model):
    X, _, _ = known_odds(400)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.3, 0.6])
    model.fit(X, y)
    P = model.predict_proba(X)
    assert P.shape == (400, 3) and np.array_equal(model.classes_[np.argmax(P, axis=1)], model.predict(X))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(P))


def test_left_out_scores_are_those_of_fits_without_the_sample():
    X, y, _ = known_odds(120)
    Y, slow = np.where(y == 1, 1.0, -1.0)[:, None], np.empty(120)
    for k in range(120):
        rest = np.arange(120) != k
        # the same neurons and the same penalty nλ: `scale` is given, so that nothing depends on the sample left out
        fixed = RandomFeaturesClassifier(40, ridge=1e-2 * 120 / 119, scale=0.5, random_state=0)
        slow[k] = fixed.fit(X[rest], y[rest]).decision_function(X[k : k + 1])[0]
    whole = RandomFeaturesClassifier(40, ridge=1e-2, scale=0.5, random_state=0).fit(X, y)
    quick = left_out(whole.decision_function(X)[:, None], Y, float(whole.freedom_[0]), 120)[:, 0]
    seen = whole.decision_function(X)
    # one leverage for all is an approximation for each sample, and better than none; on average, on which the
    # temperature rests, it takes away most of what the fit knows of its own samples. What it leaves: 1/(1 − h) is
    # convex, and leverages h(1 ± ½) with h = 40/120 make its mean larger by ¼h/(1 − h) = an eighth of h/(1 − h)
    assert np.mean((quick - slow) ** 2) < np.mean((seen - slow) ** 2)
    assert abs(np.mean(Y[:, 0] * quick) - np.mean(Y[:, 0] * slow)) < 0.125 * np.mean(Y[:, 0] * (seen - slow))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_samples_are_misplaced_where_fits_without_them_say_so(k, constant):
    """Each fit has the penalty of the whole: λn = λ′(n − 1)."""
    rng = np.random.default_rng(k)
    X, n, ridge = rng.standard_normal((60, 4)), 60, 0.02
    y = (np.arange(n) if k == 3 else (X[:, 0] + rng.standard_normal(n) > 0).astype(int)) % k
    given = {"scale": 0.5, "fit_intercept": constant, "random_state": 0}
    whole = NeuralTangentClassifier(30, ridge=ridge, **given).fit(X, y)
    Y = np.where(y[:, None] == np.arange(k), 1.0, -1.0)[:, 1 if k == 2 else 0 :]
    kernel = Tangent.of(whole.layer_, X, 0.5, 0.3).kernel()
    wrong = misplaced(kernel, Y, n * ridge, constant)
    others = [np.delete(np.arange(n), i) for i in range(n)]
    single = NeuralTangentClassifier(30, ridge=ridge * n / (n - 1), **given)
    said = [single.fit(X[rest], y[rest]).predict(X[[i]])[0] != y[i] for i, rest in enumerate(others)]
    np.testing.assert_array_equal(wrong, said)
    assert 5 < np.sum(wrong) < 55


def test_what_cannot_be_calibrated_is_refused():
    X, y, _ = known_odds(39)
    with pytest.raises(InvalidParameter, match="be positive for predict_proba"):
        RandomFeaturesClassifier(200, ridge=0.0, random_state=0).fit(X, y).predict_proba(X)
    widest = RandomFeaturesClassifier(200, method="margin", random_state=0).fit(X, y)
    assert not hasattr(widest, "predict_proba")
    assert TaylorNetClassifier(width=20, random_state=0).fit(X, y).temperature_ == 1.0  # 39 samples: none held out

"""Scores and times of the estimators, RF and NT with activation="auto", beside scikit-learn's of the same kind.

| ours | peers |
|---|---|
| `RandomFeatures…` | `Nystroem` + ridge regression, ridge and width of the kernel by cross-validation |
| `NeuralTangent…` | kernel ridge regression, RBF, ridge and width by cross-validation |
| `TwoLayer…` | `MLP…`, by default and with early stopping |

The score is R² or the share of right classes, on standardised columns, over five folds (three times five on tables
below 600 rows, where folds differ most), the same folds for all. Times are of all fits on one core. MNIST is read from
LAZYSCOPE_DATA, a folder with its four IDX files; without it that validation is skipped.
"""

import os
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GridSearchCV, RepeatedKFold, RepeatedStratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from threadpoolctl import threadpool_limits

from lazyscope import estimators

pytestmark = pytest.mark.slow

WIDTH = 200
RIDGES = np.geomspace(1e-4, 1e2, 25)


def mnist():
    """3,000 images, drawn at random from the first 60,000."""
    if "LAZYSCOPE_DATA" not in os.environ:
        pytest.skip("LAZYSCOPE_DATA names no folder with MNIST")
    from lazyscope.experiments.ridge.mnist_images import images

    X, digit = images()
    some = np.random.default_rng(0).permutation(len(digit))[:3000]
    return X[some], digit[some]


DATA = {
    "diabetes": (lambda: load_diabetes(return_X_y=True), False),
    "friedman1": (lambda: make_friedman1(1000, noise=1.0, random_state=0), False),
    "breast_cancer": (lambda: load_breast_cancer(return_X_y=True), True),
    "digits": (lambda: load_digits(return_X_y=True), True),
    "mnist3k": (mnist, True),
}


class KernelRidgeClassifier(KernelRidge):
    """Each class against the rest, ±1, as `RidgeClassifier` has it."""

    def fit(self, X, y):
        """Fit ±1."""
        self.labels_ = LabelBinarizer(neg_label=-1, pos_label=1).fit(y)
        return super().fit(X, self.labels_.transform(y).astype(float))

    def predict(self, X):
        """Return the class of the largest score."""
        return self.labels_.inverse_transform(super().predict(X))

    def score(self, X, y):
        """Return the share of right classes."""
        return float(np.mean(self.predict(X) == y))


def pair(name, classes, d):
    """Return our estimator and its peers, as {name: estimator}."""
    gamma = np.array([0.1, 0.3, 1.0]) / d
    kind = "Classifier" if classes else "Regressor"
    chosen = {} if name == "TwoLayer" else {"activation": "auto"}
    ours = getattr(estimators, f"{name}{kind}")(WIDTH, random_state=0, **chosen)
    if name == "RandomFeatures":
        ridge = (RidgeClassifierCV if classes else RidgeCV)(RIDGES)
        plain = make_pipeline(Nystroem(n_components=WIDTH, random_state=0), ridge)
        return ours, {"Nystroem + ridge": GridSearchCV(plain, {"nystroem__gamma": gamma}, cv=3)}
    if name == "NeuralTangent":
        plain = (KernelRidgeClassifier if classes else KernelRidge)(kernel="rbf")
        return ours, {"kernel ridge": GridSearchCV(plain, {"alpha": np.geomspace(1e-3, 1, 4), "gamma": gamma}, cv=3)}
    network = MLPClassifier if classes else MLPRegressor
    layers = {"hidden_layer_sizes": (WIDTH,), "random_state": 0}
    return ours, {"MLP": network(**layers), "MLP, early stopping": network(**layers, early_stopping=True)}


def scored(model, X, y, splits):
    """Return the score in each fold, and the seconds of processor time of all fits."""
    scores, seconds = [], 0.0
    for train, test in splits:
        begun = time.process_time()
        fitted = make_pipeline(StandardScaler(), clone(model)).fit(X[train], y[train])
        seconds += time.process_time() - begun
        scores.append(fitted.score(X[test], y[test]))
    return np.array(scores), seconds


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", ["RandomFeatures", "NeuralTangent", "TwoLayer"])
def test_scores_are_those_of_the_peer_within_a_standard_error(name, data, keep):
    """Within a standard error of the better peer: of the paired difference or the peer's mean, the larger."""
    load, classes = DATA[data]
    X, y = load()
    repeats = 3 if len(y) < 600 else 1
    folds = (RepeatedStratifiedKFold if classes else RepeatedKFold)(n_splits=5, n_repeats=repeats, random_state=0)
    splits = list(folds.split(X, y))
    ours, peers = pair(name, classes, X.shape[1])
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # MLP… stops after its 200 epochs
        scores, seconds = scored(ours, X, y, splits)
        theirs = {peer: scored(model, X, y, splits) for peer, model in peers.items()}
    best = max(theirs, key=lambda peer: theirs[peer][0].mean())
    peer, peer_seconds = theirs[best]
    paired = peer - scores
    allowed = float(max(_stderr(paired), _stderr(peer)))
    keep(
        width=WIDTH,
        score=float(scores.mean()),
        stderr=_stderr(scores),
        seconds=round(seconds, 2),
        peers={k: [float(s.mean()), _stderr(s), round(t, 2)] for k, (s, t) in theirs.items()},
        best=best,
        allowed=allowed,
    )
    assert scores.mean() >= peer.mean() - allowed
    assert seconds <= peer_seconds


def _stderr(scores):
    return float(np.std(scores, ddof=1) / np.sqrt(len(scores)))

"""Accuracy of the estimators beside scikit-learn's own at equal width. Minutes: `make validate`."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lazyscope.estimators import RandomFeaturesClassifier, TwoLayerClassifier

pytestmark = pytest.mark.slow

WIDTH = 200
DATA = {"digits": load_digits, "breast_cancer": load_breast_cancer}
PAIRS = {
    "RandomFeaturesClassifier": (
        lambda: RandomFeaturesClassifier(WIDTH, random_state=0),
        lambda: make_pipeline(
            Nystroem(n_components=WIDTH, random_state=0), RidgeClassifierCV(np.geomspace(1e-4, 1e2, 25))
        ),
    ),
    "TwoLayerClassifier": (
        lambda: TwoLayerClassifier(WIDTH, random_state=0),
        lambda: MLPClassifier(hidden_layer_sizes=(WIDTH,), random_state=0),
    ),
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", PAIRS)
def test_accuracy_is_that_of_the_peer_within_a_standard_error(name, data, keep):
    """Five folds, three times; the standard error is that of the peer's accuracy over the fifteen."""
    X, y = DATA[data](return_X_y=True)
    splits = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # MLPClassifier stops after its 200 epochs
        ours, theirs = (
            cross_val_score(make_pipeline(StandardScaler(), make()), X, y, cv=splits) for make in PAIRS[name]
        )
    error = [float(np.std(scores, ddof=1) / np.sqrt(len(scores))) for scores in (ours, theirs)]
    keep(
        width=WIDTH,
        accuracy=float(ours.mean()),
        stderr=error[0],
        peer=float(theirs.mean()),
        peer_stderr=error[1],
    )
    assert ours.mean() >= theirs.mean() - error[1]

"""The four regimes as estimators that choose their own regularisation, so that the comparison is fair; and boosting.

RF and NT choose their ridge by generalised cross-validation. The trained network chooses weight decay and the number of
epochs, the quadratic model and boosted trees their number of steps, on a fifth of the training rows; then they are
trained on all of them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lazyscope.lenses.data.table import Task

NAMES = {"RF": "random features", "NT": "tangent model", "QM": "quadratic model", "NN": "trained network"}
BOOSTED = "GB"
REFERENCE = "boosted trees"
_EPOCHS = 150
_STEPS = 120
_TREES = 500


def fit(regime: str, task: Task, width: int, X: Any, y: Any, seed: int) -> Any:
    """Return a fitted estimator."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where the last epoch is the best, it is the one chosen
        return _fitted(regime, task == "classification", width, X, y, seed)


def _fitted(regime: str, classes: bool, width: int, X: Any, y: Any, seed: int) -> Any:
    if regime == BOOSTED:
        return _boosted(classes, X, y, seed)
    if regime == "NN":
        from lazyscope.estimators.two_layer import TwoLayerClassifier, TwoLayerRegressor

        network = TwoLayerClassifier if classes else TwoLayerRegressor
        return network(width, max_iter=_EPOCHS, random_state=seed).fit(X, y)
    if regime == "QM":
        from lazyscope.estimators.taylor import TaylorNetClassifier, TaylorNetRegressor

        model = TaylorNetClassifier if classes else TaylorNetRegressor
        return model(2, width + width % 2, max_iter=_STEPS, random_state=seed).fit(X, y)
    if regime == "RF":
        from lazyscope.estimators.random_features import RandomFeaturesClassifier, RandomFeaturesRegressor

        features = RandomFeaturesClassifier if classes else RandomFeaturesRegressor
        return features(width, random_state=seed).fit(X, y)
    from lazyscope.estimators.neural_tangent import NeuralTangentClassifier, NeuralTangentRegressor

    tangent = NeuralTangentClassifier if classes else NeuralTangentRegressor
    return tangent(width, random_state=seed).fit(X, y)


def cost(regime: str, width: int, n: int, d: int, outputs: int) -> float:
    """Return the flops of a fit, roughly: only ratios between sizes of one regime are used."""
    if regime == "RF":
        small = min(n, width)
        return 2.0 * n * width * d + float(n) * width * small + 1.3 * small**3 + 5e7
    if regime == "NT":
        small = min(n, width * d)
        return float(n) * small * (width + d) + 3.0 * small**3 + 4.0 * outputs * n * width * d + 2e8
    if regime == "QM":
        return outputs * _STEPS * (8.0 * n * width * d + 3e6)
    if regime == BOOSTED:
        return outputs * _TREES * (10.0 * n * d + 3e4 * d + 3e6)
    return 4.0 * _EPOCHS * (6.0 * n * width * (d + outputs) + 1e6 * (10 + n / 200))


def _boosted(classes: bool, X: Any, y: Any, seed: int) -> Any:
    """Fit scikit-learn's histogram booster: the number of trees on a fifth, where a fifth can be held out."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    booster: Any = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    with threadpool_limits(1):  # tables are small, and a second thread that is busy would be waited for at every split
        return _with_best_number(booster, classes, X, y, seed)


def _with_best_number(booster: Any, classes: bool, X: Any, y: Any, seed: int) -> Any:
    fewest = int(np.min(np.unique(y, return_counts=True)[1])) if classes else len(y)
    if fewest < 5:  # a class that cannot be on both sides
        return booster(random_state=seed, early_stopping=False).fit(X, y)
    held = booster(max_iter=_TREES, early_stopping=True, validation_fraction=0.2, random_state=seed).fit(X, y)
    trees = max(1, int(np.argmax(held.validation_score_)))  # the first entry is that of no tree
    return booster(max_iter=trees, early_stopping=False, random_state=seed).fit(X, y)

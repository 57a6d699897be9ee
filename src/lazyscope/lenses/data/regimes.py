"""The four regimes as estimators that choose their own regularisation, so that none has an unfair hand.

RF and NT choose their ridge by generalised cross-validation. The trained network and the Taylor model choose weight
decay, and the number of epochs, on a fifth of the training rows, and are then trained on all of them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.lenses.data.table import Task

NAMES = {"RF": "random features", "NT": "tangent model", "QM": "quadratic model", "NN": "trained network"}
_DECAYS = (1e-4, 1e-2, 1e-1)
_EPOCHS = 150
_STEPS = 400


def fit(regime: str, task: Task, width: int, X: Any, y: Any, seed: int) -> Any:
    """Return a fitted estimator."""
    if regime == "NN":
        return _network(task, width, X, y, seed)
    if regime == "QM":
        from lazyscope.estimators.taylor import TaylorNetClassifier, TaylorNetRegressor

        model = TaylorNetClassifier if task == "classification" else TaylorNetRegressor
        return model(2, width + width % 2, max_iter=_STEPS, random_state=seed).fit(X, y)
    if regime == "RF":
        from lazyscope.estimators.random_features import RandomFeaturesClassifier, RandomFeaturesRegressor

        features = RandomFeaturesClassifier if task == "classification" else RandomFeaturesRegressor
        return features(width, random_state=seed).fit(X, y)
    from lazyscope.estimators.neural_tangent import NeuralTangentClassifier, NeuralTangentRegressor

    tangent = NeuralTangentClassifier if task == "classification" else NeuralTangentRegressor
    return tangent(width, random_state=seed).fit(X, y)


def cost(regime: str, width: int, n: int, d: int, outputs: int) -> float:
    """Return the flops of a fit, roughly: only ratios between sizes of one regime are used."""
    if regime == "RF":
        small = min(n, width)
        return 2.0 * n * width * d + float(n) * width * small + 1.3 * small**3 + 1e7
    if regime == "NT":
        small = min(n, width * d)
        return float(n) * small * (width + d) + 3.0 * small**3 + 4.0 * outputs * n * width * d + 1e7
    if regime == "QM":
        return outputs * _STEPS * (4.0 * min(n, 256) * width * d + 3e6)
    return (len(_DECAYS) + 1) * _EPOCHS * (6.0 * n * width * (d + outputs) + 1e6 * (1 + n / 200))


@dataclass(frozen=True)
class _Choice:
    decay: float
    epochs: int
    loss: float


def _network(task: Task, width: int, X: Any, y: Any, seed: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    from lazyscope.estimators.two_layer import TwoLayerClassifier, TwoLayerRegressor

    model = TwoLayerClassifier if task == "classification" else TwoLayerRegressor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is what is being chosen
        choices = []
        for decay in _DECAYS:
            held = model(
                width, weight_decay=decay, max_iter=_EPOCHS, early_stopping=True, validation_fraction=0.2,
                random_state=seed,
            ).fit(X, y)  # fmt: skip
            curve = held.validation_curve_
            choices.append(_Choice(decay, int(np.argmin(curve)) + 1, float(np.min(curve))))
        best = min(choices, key=lambda choice: choice.loss)
        return model(
            width, weight_decay=best.decay, max_iter=best.epochs, n_iter_no_change=_EPOCHS, random_state=seed
        ).fit(X, y)

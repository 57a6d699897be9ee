"""Classes as targets ±1, one against the rest, and back: what every classifier by regression shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.estimators.probabilities import probabilities, temperature


def classes_of(y: Any, owner: str) -> Any:
    """Return the sorted classes of y; at least two."""
    check_classification_targets(y)
    classes = np.unique(column_or_1d(y, warn=True))
    if len(classes) < 2:
        must = "have at least two classes"
        raise InvalidParameter.of(owner, "y", must, f"one class, {classes.tolist()[0]!r},")
    return classes


def indices_of(y: Any, classes: Any, owner: str) -> Any:
    """Return the index of each label among the classes."""
    y = column_or_1d(y, warn=True)
    indices = np.searchsorted(classes, y)
    indices[indices == len(classes)] = 0
    strange = y[classes[indices] != y]
    if len(strange):
        raise InvalidParameter.of(owner, "y", "hold classes that were named at first", repr(strange.tolist()[0]))
    return indices


def signs(indices: Any, k: int) -> FloatArray:
    """Return ±1 for each class against the rest, (n, k); one column for two classes.

    >>> signs(np.array([0, 1, 2]), 3)[1], signs(np.array([0, 1]), 2)[:, 0]
    (array([-1.,  1., -1.]), array([-1.,  1.]))
    """
    if k == 2:
        return np.where(indices == 1, 1.0, -1.0)[:, None]
    return np.where(indices[:, None] == np.arange(k), 1.0, -1.0)


class LabelledMixin(ClassifierMixin):
    """A classifier whose `_values` are (n, k): the sign decides between two classes, the largest among more."""

    classes_: Any
    _values: Callable[[Any], FloatArray]

    def _labelled(self, X: Any, y: Any, *, reset: bool = True, classes: Any = None) -> Any:
        """Check X and y, set `classes_`, and return X with the index of each label's class."""
        owner = type(self).__name__
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
        if classes is not None:
            self.classes_ = classes_of(classes, owner)
        elif reset:
            self.classes_ = classes_of(y, owner)
        check_classification_targets(y)
        return X, indices_of(y, self.classes_, owner)

    def _labelled_part(self, X: Any, y: Any, classes: Any, first: bool) -> Any:
        """Do the same for a call of partial_fit, the first of which must know all classes."""
        classes = getattr(self, "classes_", None) if classes is None else classes
        if classes is None:
            must = "name all classes in the first call of partial_fit"
            raise InvalidParameter.of(type(self).__name__, "classes", must, None)
        return self._labelled(X, y, reset=first, classes=classes if first else None)

    def _by_target(self, values: FloatArray) -> FloatArray:
        """Return values of each class against the rest, one of them for two classes, as they are."""
        return values

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of each class, (n, k); for two classes that of the second, (n,)."""
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> Any:
        """Return the class of the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)]


class ProbabilityMixin(LabelledMixin):
    """A classifier with calibrated probabilities; `fit` calls `_calibrate` with scores that the fit has not seen."""

    temperature_: float | None

    def _calibrate(self, scores: FloatArray | None, indices: Any, weights: FloatArray | None) -> None:
        """Choose `temperature_`; None where there is nothing to choose it by."""
        self.temperature_ = None if scores is None else temperature(scores, indices, weights)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, (n, k), calibrated as `estimators.probabilities` says."""
        values = self._values(X)
        if self.temperature_ is None:
            must = "be positive for predict_proba: a fit that interpolates leaves nothing to calibrate by"
            advice = 'Pass ridge="auto", or use sklearn.calibration.CalibratedClassifierCV.'
            raise InvalidParameter.of(type(self).__name__, "ridge", must, "a fit without residuals", advice)
        return probabilities(values, self.temperature_)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of `predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny)))

"""The trained network: NN on your data. Both layers are trained by mini-batches.

f(x) = c + Σ_i a_i σ(⟨w_i, x⟩ + b_i)
"""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.estimators.base import sample_weights
from lazyscope.estimators.labels import LabelledMixin
from lazyscope.estimators.networks.both_layers import BothLayers
from lazyscope.estimators.networks.network import Kind
from lazyscope.estimators.probabilities import softmax
from lazyscope.estimators.targets import TargetsMixin


class TwoLayerRegressor(TargetsMixin, BothLayers):
    """A two-layer network, both layers trained on the squared error by mini-batches.

    Targets are scaled to mean 0 and variance 1 for training, so that step sizes need no units.

    Parameters
    ----------
    width : int
        N, the number of neurons.
    activation : str, callable or Activation
        σ; names as in `lazyscope.activation_names`.
    solver : "adam" or "sgd"
        "sgd" has Nesterov's `momentum`.
    learning_rate : float
        Step size at the start.
    schedule : "constant", "linear" or "cosine"
        How it falls: not at all, in which case training stops when the loss has not fallen by `tol` (of itself, or of
        the variance) for `n_iter_no_change` epochs, or to zero over `max_iter` epochs.
    batch_size : int or "auto"
        "auto" is 200, and where there are fewer than 2,000 samples a tenth of them, at least 32.
    max_iter : int
        Largest number of epochs.
    weight_decay : "auto" or float
        Adds (weight_decay/2)‖θ‖² to the loss, offsets left out. "auto" tries 1e-4, 1e-2 and 1e-1 with a fifth of the
        samples held out, and then trains on all of them with the best and as many epochs as were best for it: four
        trainings, which end early. It is 1e-4, and nothing is held out, with fewer than 40 samples, with another
        schedule than "constant", with `early_stopping`, and in `partial_fit`.
    early_stopping : bool
        Hold `validation_fraction` of the samples out, stop when their loss no longer falls, and keep the best network.
    scale, bias : see `RandomFeatureMap`
    precision : "auto", "float32" or "float64"
        "auto" is float32, but the precision of X where an epoch is cheap.
    random_state : int, RandomState or None
        Fixes weights, batches and the split.

    Attributes
    ----------
    layer_ : FirstLayer
        The trained first layer.
    coef_, intercept_ :
        a, (N,) or (k, N), and c.
    n_iter_, loss_, loss_curve_ :
        Epochs, and the mean of |y − f|²/2 in each; `validation_curve_` where samples were held out.
    weight_decay_ : float
        The weight decay that was used.

    Notes
    -----
    `sample_weight` multiplies losses. `partial_fit` makes one epoch on what it is given.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TwoLayerRegressor(50, schedule="cosine", max_iter=60, random_state=0).fit(X[:300], y[:300])
    >>> model.n_iter_, model.score(X[300:], y[300:]) > 0.35
    (60, True)
    """

    _kind: ClassVar[Kind] = "square"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw a network and train it; 6nNd flops an epoch."""
        X, Y, v = self._checked(X, y, sample_weight)
        self.__dict__.pop("_trainer", None)
        self._train(X, self._scaled(Y, v), v)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make one epoch on these samples; the scale of the targets is that of the first call."""
        first = not hasattr(self, "_trainer")
        X, Y, v = self._checked(X, y, sample_weight, reset=first)
        self._continue(X, self._scaled(Y, v) if first else (Y - self._mean) / self._spread, v)
        return self

    def _unit(self) -> float:
        return float(np.mean(self._spread**2))

    def predict(self, X: Any) -> FloatArray:
        """Return f(x), (n,) or (n, k)."""
        return self._unscaled(self._values(X))

    @property
    def coef_(self) -> FloatArray:
        """Second-layer weights a: (N,) or (k, N)."""
        return np.asarray(self._by_target((self._A / sqrt(len(self._A)) * self._spread).T))

    @property
    def intercept_(self) -> Any:
        """The constant c."""
        return self._by_target(self._mean + self._spread * self._c)


class TwoLayerClassifier(LabelledMixin, BothLayers):
    """A two-layer network, both layers trained on the cross-entropy by mini-batches.

    Parameters and attributes are those of `TwoLayerRegressor`; `loss_curve_` holds the cross-entropy of each epoch, and
    `classes_` the classes.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> network = TwoLayerClassifier(50, schedule="cosine", max_iter=30, random_state=0)
    >>> model = make_pipeline(StandardScaler(), network).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95, model.predict_proba(X[:3]).shape
    (True, (3, 2))
    """

    _kind: ClassVar[Kind] = "logistic"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw a network and train it; 6nNd flops an epoch."""
        X, indices = self._labelled(X, y)
        v = sample_weights(sample_weight, X, type(self).__name__)
        self.__dict__.pop("_trainer", None)
        self._train(X, self._shares(indices), v, indices)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one epoch on these samples; the first call names all `classes`."""
        first = not hasattr(self, "_trainer")
        X, indices = self._labelled_part(X, y, classes, first)
        self._continue(X, self._shares(indices), sample_weights(sample_weight, X, type(self).__name__))
        return self

    def _shares(self, indices: Any) -> FloatArray:
        """Return the probabilities that labels stand for: of the second class, or of each."""
        if len(self.classes_) == 2:
            return np.asarray(indices[:, None] == 1, dtype=np.float64)
        return np.asarray(indices[:, None] == np.arange(len(self.classes_)), dtype=np.float64)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, (n, k)."""
        F = self._values(X)
        return softmax(F if F.shape[1] > 1 else np.column_stack([np.zeros_like(F), F]))

    @property
    def coef_(self) -> FloatArray:
        """Second-layer weights a, (1, N) or (k, N)."""
        return np.asarray(self._A.T / sqrt(len(self._A)))

    @property
    def intercept_(self) -> FloatArray:
        """The constants c, (1,) or (k,)."""
        return np.asarray(self._c)

"""Taylor models of a two-layer network on your data: order k, or the network under random signs.

    f^{(k)}(x) = c + (1/√m) Σ_r a_r σ^{(k)}(w_{0,r}·x̃)/k! (w_r·x̃)^k,      x̃ = B_x (sx, β)/‖(sx, β)‖,

on the sphere, where Bai & Lee (2019) have it; the constant β keeps the length of x readable from x̃. With random signs
the network f_{W₀+WΣ} itself is trained. It is a sum over neurons, so that its mean over Σ, which is what is predicted,
is ½(f_{W₀+W} + f_{W₀−W}) exactly. For k > 2 moment-matched factors take the place of signs (`matched`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from lazyscope.checks import FloatArray, real_number, whole_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.estimators.base import Array, blocks, generator, input_scale
from lazyscope.estimators.labels import LabelledMixin, signs
from lazyscope.estimators.matched import MatchedPairs
from lazyscope.estimators.targets import TargetsMixin
from lazyscope.numerics.blas import threads_for
from lazyscope.protocols import NoisySGD
from lazyscope.regimes import Taylor
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.randomized import train

_ATTEMPTS = 5  # with a third of the step size each time


@dataclass(frozen=True)
class _Sphere:
    """Map x to x̃."""

    scale: float
    bias: float

    def __call__(self, X: FloatArray) -> FloatArray:
        wide = np.column_stack([self.scale * X, np.full(len(X), self.bias)])
        return np.asarray(wide * (sqrt(wide.shape[1]) / np.linalg.norm(wide, axis=1, keepdims=True)))


class _TaylorNet(BaseEstimator):
    """What regression and classification share: one training for each column of Y, and the values, (n, k)."""

    def __init__(
        self,
        order: int = 2,
        width: int = 200,
        activation: Any = "relu3",
        *,
        randomized: bool = True,
        max_iter: int = 1000,
        batch_size: int = 256,
        learning_rate: float = 3.0,
        regularization: float = 0.0,
        scale: Any = "auto",
        bias: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.order = order
        self.width = width
        self.activation = activation
        self.randomized = randomized
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.scale = scale
        self.bias = bias
        self.random_state = random_state

    def _train(self, X: FloatArray, Y: FloatArray, loss: str) -> None:
        owner = type(self).__name__
        matched = self.randomized is True and whole_number(self.order, owner, "order") > 2
        regime = Taylor(self.order, self.activation, self.randomized and not matched)
        bias = real_number(self.bias, owner, "bias")
        if bias <= 0:
            raise InvalidParameter.of(owner, "bias", "be positive: x = 0 must have a place on the sphere", f"{bias:g}")
        protocol = NoisySGD(
            steps=whole_number(self.max_iter, owner, "max_iter"),
            batch=whole_number(self.batch_size, owner, "batch_size"),
            step_size=self.learning_rate,
            lam=self.regularization,
            loss=loss,
        )
        self._sphere = _Sphere(input_scale(X, self.scale, None, owner), bias)
        inputs = self._sphere(X.astype(np.float64, copy=False))
        d = inputs.shape[1]
        rng = generator(self.random_state, whole_number(self.width, owner, "width"), d)
        model = TaylorModel.symmetric(self.width, d, regime.activation, rng, Bx=sqrt(d))
        if matched and protocol.lam:
            must = "be zero for the network at orders above 2: the theory of λ‖W‖⁸ is that of order 2"
            raise InvalidParameter.of(owner, "regularization", must, f"{protocol.lam:g}", "Pass randomized=False.")
        self._model: TaylorModel | MatchedPairs = MatchedPairs.of(model, regime.order) if matched else model
        self._order = None if regime.randomized or matched else regime.order
        fits = [_fitted(self._model, inputs, y, self._order, protocol, rng) for y in Y.T]
        self.displacements_ = np.stack([W for W, _ in fits]).astype(np.float64)
        self.loss_curve_ = np.mean([trace for _, trace in fits], axis=0)
        self.n_iter_, self.loss_ = protocol.steps, float(np.mean(self.loss_curve_[-max(1, protocol.steps // 10) :]))

    def _values(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        parts = []
        for part in blocks(X.shape[0], 8 * self.displacements_.shape[1]):
            inputs = self._sphere(X[part].astype(np.float64, copy=False))
            columns = [_mean_values(self._model, W, self._order, inputs) for W in self.displacements_]
            parts.append(np.stack(columns, axis=1))
        return np.concatenate(parts)


def _fitted(
    model: TaylorModel | MatchedPairs,
    X: FloatArray,
    y: FloatArray,
    order: int | None,
    protocol: NoisySGD,
    rng: np.random.Generator,
) -> tuple[Array, FloatArray]:
    """Train, with a third of the step size where it diverges; return the displacements and the loss of each step."""
    for attempt in range(_ATTEMPTS):
        try:
            with threads_for(protocol.batch * model.m * X.shape[1]):
                if isinstance(model, MatchedPairs):
                    return model.train(X, y, protocol, rng)
                fit = train(model, X, y, order, signs=order is None, protocol=protocol, rng=rng)
                return fit.W, fit.trace
        except NotConverged:
            if attempt == _ATTEMPTS - 1:
                raise
            protocol = replace(protocol, step_size=protocol.step_size / 3.0)
    raise AssertionError("unreachable")


def _mean_values(model: TaylorModel | MatchedPairs, W: FloatArray, order: int | None, X: FloatArray) -> FloatArray:
    """Return f^{(order)}; for the network (None) its mean over what is random in it."""
    if isinstance(model, MatchedPairs):
        return model.mean_values(W, X)
    if order is not None:
        return model.expand(W, X, order, derivatives=0).values
    return np.asarray(0.5 * (model.network(W, X) + model.network(-W, X)))


class TaylorNetRegressor(TargetsMixin, _TaylorNet):
    """The Taylor model of order k of a two-layer network, or the network under random signs, on the squared error.

    Targets are scaled to mean 0 and variance 1 for training. Dense input; no `sample_weight`.

    Parameters
    ----------
    order : int
        k; 2 is the quadratic model.
    width : int
        m, the number of neurons; even, as the symmetric start has each of them twice.
    activation : str, callable or Activation
        σ, with k derivatives.
    randomized : bool
        Train the network under random signs, which couples it with the model of order 2, or, for k > 2, under
        moment-matched factors, which leave its k-th Taylor piece; instead of the model f^{(k)} itself.
    max_iter, batch_size, learning_rate :
        Steps of noisy SGD, samples in each, and their size, which falls to zero over the second half of the steps and
        so ends training by itself; where it diverges, training starts again with a third.
    regularization : float
        λ of λ‖B_x W‖⁸_{2,4}; not for k > 2 with `randomized`.
    scale, bias :
        s and β of x̃; see `RandomFeatureMap` for "auto".
    random_state : int, RandomState or None
        Fixes weights, batches and signs.

    Attributes
    ----------
    displacements_ : ndarray
        W, (targets, m, d + 1), or (targets, m/2, d + 1) where neurons move in pairs: k > 2 and `randomized`.
    loss_, loss_curve_, n_iter_ :
        The mean loss over the last tenth of the steps, the loss of each, their number.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 4))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = TaylorNetRegressor(max_iter=300, random_state=0).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.6
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Draw the network and train; 4·batch·m·d flops a step."""
        X, Y, _ = self._checked(X, y, None, sparse=False)
        self._mean, spread = Y.mean(axis=0), Y.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)
        self._train(X, (Y - self._mean) / self._spread, "square")
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return f(x), (n,) or (n, k)."""
        values = self._values(X)
        return self._shaped(self._mean + self._spread * values)


class TaylorNetClassifier(LabelledMixin, _TaylorNet):
    """Classes by the Taylor model of order k, or the network under random signs, on the logistic loss.

    Each class against the rest. Parameters and attributes are those of `TaylorNetRegressor`, and `classes_`.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], (300, 6))
    >>> y = X[:, 0] * X[:, 1] > 0  # the parity of two signs
    >>> TaylorNetClassifier(max_iter=300, random_state=0).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.9
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Draw the network and train, once for each class."""
        X, indices = self._labelled(X, y, sparse=False)
        self._train(X, signs(indices, len(self.classes_)), "logistic")
        return self

"""Taylor models of a two-layer network on your data: order k by L-BFGS, or the network under random signs by SGD.

    f^{(k)}(x) = c + (1/√m) Σ_r a_r σ^{(k)}(w_{0,r}·x̃)/k! (w_r·x̃)^k,      x̃ = B_x (sx, β)/‖(sx, β)‖,

on the sphere, where Bai & Lee (2019) have it; the constant β keeps the length of x readable from x̃. With random signs
the network f_{W₀+WΣ} itself is trained. It is a sum over neurons, so that its mean over Σ, which is what is predicted,
is ½(f_{W₀+W} + f_{W₀−W}) exactly. For k > 2 moment-matched factors take the place of signs (`matched`).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from math import sqrt
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.utils.validation import check_is_fitted, validate_data

from lazyscope.checks import FloatArray, real_number, whole_number
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.estimators.base import Array, NeuronsOnRows, blocks, generator, input_scale, sample_weights
from lazyscope.estimators.labels import ProbabilityMixin, signs
from lazyscope.estimators.matched import MatchedPairs
from lazyscope.estimators.networks.both_layers import shares_can_be_equal
from lazyscope.estimators.targets import TargetsMixin
from lazyscope.estimators.taylor_descent import Descent, Inputs, common_best, descend
from lazyscope.numerics.blas import threads_for
from lazyscope.numerics.losses import as_loss
from lazyscope.protocols import NoisySGD
from lazyscope.regimes import Taylor
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.randomized import train

_ATTEMPTS = 5  # with a third of the step size each time
_FIFTHS, _LEAST = 5, 40  # parts of the samples, on one of which the number of steps is chosen; how many there must be
_FEW = 1000  # samples below which it is chosen on every part
_CHEAP = 1e7  # entries of a product of all samples and neurons, below which float64 costs nothing anybody would notice
_STEPS = {"lbfgs": 200, "sgd": 1000}


@dataclass(frozen=True)
class _Sphere:
    """Map x to x̃; rows of a sparse matrix stay sparse."""

    scale: float
    bias: float

    def __call__(self, X: Any) -> Any:
        ones = np.full((X.shape[0], 1), self.bias)
        if sparse.issparse(X):
            wide = sparse.hstack([self.scale * X, ones], format="csr", dtype=np.float64)
            lengths = np.sqrt(np.asarray(wide.multiply(wide).sum(axis=1), dtype=np.float64).ravel())
            return sparse.diags_array(sqrt(wide.shape[1]) / lengths) @ wide
        wide = np.column_stack([self.scale * X, ones])
        return np.asarray(wide * (sqrt(wide.shape[1]) / np.linalg.norm(wide, axis=1, keepdims=True)))


@dataclass(eq=False, repr=False)
class _TaylorNet(NeuronsOnRows):
    """What regression and classification share: one training for each column of Y, and the values, (n, k)."""

    order: int = 2
    width: int = 200
    activation: Any = "relu3"
    _: KW_ONLY
    randomized: bool = False
    max_iter: int | None = None
    tol: float = 1e-5
    early_stopping: Any = "auto"
    batch_size: int = 256
    learning_rate: float = 3.0
    regularization: float = 0.0
    scale: Any = "auto"
    bias: float = 1.0
    random_state: Any = None

    def _train(self, X: Any, Y: FloatArray, v: FloatArray | None, loss: str, labels: Any = None) -> Any:
        """Train; return rows that were held out and the scores on them of a model that has not seen them, or None."""
        owner = type(self).__name__
        matched = self.randomized is True and whole_number(self.order, owner, "order") > 2
        regime = Taylor(self.order, self.activation, self.randomized and not matched)
        bias = real_number(self.bias, owner, "bias")
        if bias <= 0:
            raise InvalidParameter.of(owner, "bias", "be positive: x = 0 must have a place on the sphere", f"{bias:g}")
        steps = _STEPS["sgd" if regime.randomized or matched else "lbfgs"] if self.max_iter is None else self.max_iter
        protocol = NoisySGD(
            steps=whole_number(steps, owner, "max_iter"),
            batch=whole_number(self.batch_size, owner, "batch_size"),
            step_size=self.learning_rate,
            lam=self.regularization,
            loss=loss,
        )
        self._sphere = _Sphere(input_scale(X, self.scale, v, owner), bias)
        inputs = self._sphere(X.astype(np.float64, copy=False))
        d = inputs.shape[1]
        rng = generator(self.random_state, whole_number(self.width, owner, "width"), d)
        model = TaylorModel.symmetric(self.width, d, regime.activation, rng, Bx=sqrt(d))
        if matched and protocol.lam:
            must = "be zero for the network at orders above 2: the theory of λ‖W‖⁸ is that of order 2"
            raise InvalidParameter.of(owner, "regularization", must, f"{protocol.lam:g}", "Pass randomized=False.")
        self._model: TaylorModel | MatchedPairs = MatchedPairs.of(model, regime.order) if matched else model
        self._order = None if regime.randomized or matched else regime.order
        if self._order is not None:
            return self._descend(model, inputs, Y, v, protocol, rng, labels)
        if self.early_stopping is True:
            must = 'be False or "auto" with randomized=True: the falling step size of noisy SGD ends training'
            raise InvalidParameter.of(owner, "early_stopping", must, True)
        dense = inputs.toarray() if sparse.issparse(inputs) else inputs
        weights = np.ones(len(Y)) if v is None else v / v.mean()
        fits = [_fitted(self._model, dense, y, weights, protocol, rng) for y in Y.T]
        self.displacements_ = np.stack([W for W, _ in fits]).astype(np.float64)
        self.loss_curve_ = np.mean([trace for _, trace in fits], axis=0)
        self.n_iter_, self.loss_ = protocol.steps, float(np.mean(self.loss_curve_[-max(1, protocol.steps // 10) :]))
        return None

    def _descend(
        self, model: TaylorModel, X: Any, Y: FloatArray, v: FloatArray | None, protocol: NoisySGD, rng: Any, labels: Any
    ) -> Any:
        """Train f^{(k)} by L-BFGS; where steps are to be chosen, on four fifths first, and then as many on all.

        Of few samples each fifth is held out in turn: one would be too few to tell a step by.
        """
        owner, n, order = type(self).__name__, X.shape[0], whole_number(self.order, type(self).__name__, "order")
        tol = real_number(self.tol, owner, "tol", "be zero or positive")
        if self.early_stopping not in (True, False, "auto") or tol < 0:
            name, must = ("tol", "be zero or positive") if tol < 0 else ("early_stopping", 'be True, False or "auto"')
            raise InvalidParameter.of(owner, name, must, repr(getattr(self, name)))
        dtype = np.float64 if n * model.m * X.shape[1] < _CHEAP else np.float32
        loss, seed = as_loss(protocol.loss, owner), int(rng.integers(2**63))
        chooses = self.early_stopping is True or (self.early_stopping == "auto" and n >= _LEAST)
        splits = _splits(n, labels, seed, owner) if chooses else []
        results, scores = [], []

        def inputs(part: Any, y: FloatArray) -> Inputs:
            return Inputs.of(model, order, X[part], y[part], None if v is None else v[part], dtype)

        with threads_for(n * model.m * X.shape[1]):
            for k, y in enumerate(Y.T):
                what, steps = f"{owner}: target {k + 1} of {Y.shape[1]}", protocol.steps

                def trained(part: Any, held: Inputs | None, steps: int, y: FloatArray = y, what: str = what) -> Descent:
                    start = np.random.default_rng(seed)  # one start, whatever the samples
                    return descend(model, inputs(part, y), loss, protocol.lam, steps, tol, start, held, what)

                if splits:
                    tried = [trained(rows, inputs(out, y), steps) for rows, out in splits]
                    steps = common_best(tried)
                    seen = [
                        _mean_values(model, descent.W, order, X[out])
                        for descent, (_, out) in zip(tried, splits, strict=True)
                    ]
                    scores.append(np.concatenate(seen))
                results.append(trained(slice(None), None, steps))
        self.displacements_ = np.stack([descent.W for descent in results])
        length = max(len(descent.curve) for descent in results)
        curves = [np.pad(descent.curve, (0, length - len(descent.curve)), mode="edge") for descent in results]
        self.loss_curve_ = np.mean(curves, axis=0)
        self.n_iter_, self.loss_ = length, float(self.loss_curve_[-1])
        return (np.concatenate([out for _, out in splits]), np.stack(scores, axis=1)) if splits else None

    def _values(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        parts = []
        for part in blocks(X.shape[0], 8 * self.displacements_.shape[1]):
            inputs = self._sphere(X[part].astype(np.float64, copy=False))
            columns = [_mean_values(self._model, W, self._order, inputs) for W in self.displacements_]
            parts.append(np.stack(columns, axis=1))
        return np.concatenate(parts)


def _splits(n: int, labels: Any, seed: int, owner: str) -> list[tuple[Any, Any]]:
    """Return rows to train on and rows to hold out, a fifth: each of them where there are few samples, else one.

    Every fifth has the same share of every class where that can be.
    """
    scarce = labels is None or not shares_can_be_equal(labels, -(-n // _FIFTHS))
    if 2 * _FIFTHS <= n < _FEW and (scarce or min(np.unique(labels, return_counts=True)[1]) >= _FIFTHS):
        kind = KFold if scarce else StratifiedKFold
        return list(kind(_FIFTHS, shuffle=True, random_state=seed % 2**31).split(np.arange(n), labels))
    try:
        rows, out = train_test_split(
            np.arange(n), test_size=1.0 / _FIFTHS, random_state=seed % 2**31, stratify=None if scarce else labels
        )
    except ValueError as error:
        must = "be False where a fifth of the samples cannot be held out"
        raise InvalidParameter.of(owner, "early_stopping", must, f"{n} samples: {error}") from None
    return [(rows, out)]


def _fitted(
    model: TaylorModel | MatchedPairs,
    X: FloatArray,
    y: FloatArray,
    v: FloatArray,
    protocol: NoisySGD,
    rng: np.random.Generator,
) -> tuple[Array, FloatArray]:
    """Train the network under random factors, with a third of the step size where it diverges."""
    for attempt in range(_ATTEMPTS):
        try:
            with threads_for(protocol.batch * model.m * X.shape[1]):
                if isinstance(model, MatchedPairs):
                    return model.train(X, y, v, protocol, rng)
                fit = train(model, X, y, None, signs=True, protocol=protocol, rng=rng, weights=v)
                return fit.W, fit.trace
        except NotConverged:
            if attempt == _ATTEMPTS - 1:
                raise
            protocol = replace(protocol, step_size=protocol.step_size / 3.0)
    raise AssertionError("unreachable")


def _mean_values(model: TaylorModel | MatchedPairs, W: FloatArray, order: int | None, X: Any) -> FloatArray:
    """Return f^{(order)}; for the network (None) its mean over what is random in it."""
    X = X.toarray() if sparse.issparse(X) else X
    if isinstance(model, MatchedPairs):
        return model.mean_values(W, X)
    if order is not None:
        return model.expand(W, X, order, derivatives=0).values
    return np.asarray(0.5 * (model.network(W, X) + model.network(-W, X)))


class TaylorNetRegressor(TargetsMixin, _TaylorNet):
    """The Taylor model of order k of a two-layer network, or the network under random signs, on the squared error.

    Targets are scaled to mean 0 and variance 1 for training. `sample_weight` multiplies losses. Sparse input stays
    sparse, but for `randomized`, which makes it dense.

    Parameters
    ----------
    order : int
        k; 2 is the quadratic model.
    width : int
        m, the number of neurons; even, as the symmetric start has each of them twice.
    activation : str, callable or Activation
        σ, with k derivatives.
    randomized : bool
        Instead of the model f^{(k)} train the network itself: under random signs, which couple it with the model of
        order 2, or, for k > 2, under moment-matched factors, which leave its k-th Taylor piece.
    max_iter : int or None
        Most steps; None is 200 of L-BFGS for the model, and 1000 of noisy SGD for the network.
    tol : float
        L-BFGS stops where a step lowers the loss by less than this share.
    early_stopping : "auto", True or False
        Choose the number of steps of L-BFGS with a fifth of the samples held out (each fifth in turn below 1,000
        samples), and then train on all of them. "auto" does so from 40 samples on.
    batch_size, learning_rate :
        Of noisy SGD: samples in a step, and its size, which falls to zero over the second half of the steps and so ends
        training by itself; where it diverges, training starts again with a third.
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
        The loss at the end (of noisy SGD, the mean over the last tenth of the steps), that of each step, their number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 4))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = TaylorNetRegressor(random_state=0).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.9
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the network and train; 4nmd flops a step of L-BFGS, 4·batch·m·d of noisy SGD."""
        X, Y, v = self._checked(X, y, sample_weight)
        self._train(X, self._scaled(Y, v), v, "square")
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return f(x), (n,) or (n, k)."""
        return self._unscaled(self._values(X))


class TaylorNetClassifier(ProbabilityMixin, _TaylorNet):
    """Classes by the Taylor model of order k, or the network under random signs, on the logistic loss.

    Each class against the rest. Parameters and attributes are those of `TaylorNetRegressor`, and `classes_`.
    `predict_proba` is calibrated on the samples that were held out to choose the number of steps (`temperature_`);
    where none were, the temperature is 1: the logistic loss makes f the logarithm of the odds.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], (300, 6))
    >>> y = X[:, 0] * X[:, 1] > 0  # the parity of two signs
    >>> TaylorNetClassifier(random_state=0).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.9
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the network and train, once for each class."""
        X, indices = self._labelled(X, y)
        v = sample_weights(sample_weight, X, type(self).__name__)
        unseen = self._train(X, signs(indices, len(self.classes_)), v, "logistic", indices)
        if unseen is None:
            self.temperature_ = 1.0
        else:
            rows, scores = unseen
            self._calibrate(scores, indices[rows], None if v is None else v[rows])
        return self

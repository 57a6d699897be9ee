"""Random features with ridge regression: RF on your data. Only the second layer is trained.

    f(x) = c + Σ_i a_i σ(⟨w_i, x⟩ + b_i)/√N,      (1/n) Σ_k |y_k − f(x_k)|² + λ‖a‖².

Every λ comes from one decomposition, and the best by generalised cross-validation from the same (`gcv`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.estimators.base import sample_weights
from lazyscope.estimators.labels import ProbabilityMixin, signs
from lazyscope.estimators.probabilities import left_out
from lazyscope.estimators.second_layer import SecondLayer, in_doubles
from lazyscope.estimators.targets import TargetsMixin


class RandomFeaturesRegressor(TargetsMixin, SecondLayer):
    """Ridge regression on random features, with the ridge chosen by generalised cross-validation.

    Parameters
    ----------
    width : int
        N, the number of random neurons.
    activation : str, callable or Activation
        σ; names as in `lazyscope.activation_names`. "auto" fits relu, and erf over more and over less of its range
        (`scale` and `bias` go with them), with either kind of `directions`, and keeps the one of lowest GCV (for
        classes, that puts the fewest left-out samples into the wrong one), `activation_` and `directions_`: eight fits
        for one, on at most 1,000 samples (600 for the tangent model) or three a neuron.
    ridge : "auto", float or sequence of float
        λ, or candidates from which GCV picks without refitting, degrees of freedom counted 1 + 4/√n times; "auto" is 50
        values over ten decades. 0 is the limit λ → 0: least squares, of least norm where there are more features than
        samples.
    scale, bias, directions : see `RandomFeatureMap`
    fit_intercept : bool
        Whether f has a constant c.
    random_state : int, RandomState or None
        Fixes the weights.

    Attributes
    ----------
    ridge_, ridges_, gcv_, freedom_ :
        The λ that was used; all candidates, their GCV (an estimate of the squared test error) and tr H_λ.
    coef_, intercept_ :
        a, (N,) or (k, N), and c.
    layer_ : FirstLayer
        The random neurons.

    Notes
    -----
    `sample_weight` counts how often a sample was seen. `partial_fit` adds samples to the normal equations: the result
    is that of one `fit` on all of them (weights and `scale="auto"` come from the first call). `fit` keeps no normal
    equations, so that `partial_fit` after it begins anew.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RandomFeaturesRegressor(300, random_state=0).fit(X[:300], y[:300])
    >>> model.predict_path(X[300:]).shape, model.score(X[300:], y[300:]) > 0.4
    ((50, 142), True)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the neurons and fit; flops nN·min(n, N) and 4m³/3 with m the smaller of n and N."""
        X, Y, v = self._checked(X, y, sample_weight, least=2)
        if hasattr(self, "_moments"):
            del self._moments
        self._fit_ridge(X, Y, v)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add samples, as if all had been fitted at once; memory O(N²)."""
        first = not hasattr(self, "_moments")
        X, Y, v = self._checked(X, y, sample_weight, reset=first, least=2 if first else 1)
        self._add(X, Y, v)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return f(x), (n,) or (n, k); 2ndN flops."""
        return self._shaped(self._values(X))

    def predict_path(self, X: Any) -> FloatArray:
        """Return f(x) for every λ of `ridges_`: (R, n) or (R, n, k)."""
        return self._shaped(self._path_values(X))


def _by_ridge(model: Any) -> bool:
    return bool(model.method != "margin")


@dataclass(eq=False, repr=False, kw_only=True)
class RandomFeaturesClassifier(ProbabilityMixin, SecondLayer):
    """Classes by random features: ridge regression on ±1, each class against the rest, or the widest margin.

    Parameters are those of `RandomFeaturesRegressor`, and

    method : "ridge" or "margin"
        "margin" maximises min_k y_k⟨a, φ(x_k)⟩ over ‖a‖ ≤ 1 exactly, the constant counted as one more feature. It
        needs classes that the features separate; the ridge plays no part in it, nor do weights other than zero.

    Attributes are those of `RandomFeaturesRegressor`, and `classes_`; with method="margin", `margin_` for each of them.
    `predict_proba` is calibrated on the scores of samples left out (`temperature_`), after `partial_fit` on those of
    the last call; with method="margin" there is none.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), RandomFeaturesClassifier(random_state=0)).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    """

    method: str = "ridge"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the neurons and fit."""
        X, indices = self._labelled(X, y)
        v = sample_weights(sample_weight, X, type(self).__name__)
        if hasattr(self, "_moments"):
            del self._moments
        if self.method not in ("ridge", "margin"):
            raise InvalidParameter.of(type(self).__name__, "method", 'be "ridge" or "margin"', repr(self.method))
        Y = signs(indices, len(self.classes_))
        if self.method == "ridge":
            self._fit_ridge(X, Y, v)
            self._calibrate(self._left_out(X, Y, len(Y) if v is None else float(v.sum())), indices, v)
        else:
            self._fit_margin(X, Y, v)
        return self

    def _fit_margin(self, X: Any, Y: FloatArray, v: FloatArray | None) -> None:
        """Maximise the margin of each class against the rest; the constant counts as one more feature."""
        from lazyscope.numerics.hard_margin import solve

        seen = slice(None) if v is None else v > 0
        self.layer_ = self._drawn(X, v)
        U, Y = in_doubles(self.layer_, X[seen]), Y[seen]
        N, size = U.shape[1], float(np.sqrt(np.mean(np.sum(U * U, axis=1)))) if self.fit_intercept else 0.0
        margins = [solve(np.column_stack([U, np.full(len(U), size)]) * y[:, None]) for y in Y.T]
        for number, margin in enumerate(margins):
            if not margin.separable:
                must = 'be "ridge" where the features do not separate the classes'
                got = f'"margin", and class {self.classes_[number]!r} is {margin},'
                raise InvalidParameter.of(type(self).__name__, "method", must, got, "More neurons may separate them.")
        self.margin_ = np.array([margin.margin for margin in margins])
        a = np.stack([margin.a for margin in margins], axis=1)
        self._coefficients, self._constants, self._best = a[:N, None], size * a[None, N], 0

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add samples, as if all had been fitted at once; the first call names all `classes`."""
        owner, first = type(self).__name__, not hasattr(self, "_moments")
        if self.method != "ridge":
            raise InvalidParameter.of(owner, "method", 'be "ridge" for partial_fit', repr(self.method))
        X, indices = self._labelled_part(X, y, classes, first)
        Y, v = signs(indices, len(self.classes_)), sample_weights(sample_weight, X, owner)
        self._add(X, Y, v)
        self._calibrate(self._left_out(X, Y, self._moments.n), indices, v)
        return self

    def _left_out(self, X: Any, Y: FloatArray, n: float) -> FloatArray | None:
        """Return the scores of samples as if each had been left out, of n in all."""
        return left_out(self._values(X), Y, float(self.freedom_[self._best]), n)

    @available_if(_by_ridge)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, (n, k); not of the largest margin, which is no regression."""
        return super().predict_proba(X)

    @available_if(_by_ridge)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of `predict_proba`."""
        return super().predict_log_proba(X)

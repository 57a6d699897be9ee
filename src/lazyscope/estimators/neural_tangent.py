"""The tangent model with ridge regression: NT on your data. The network is linearised in its first layer.

f(x) = c + (1/√N) Σ_i σ′(⟨w_i, x⟩ + b_i)⟨v_i, x̃⟩,      (1/n) Σ_k |y_k − f(x_k)|² + λ Σ_i‖v_i‖².
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from lazyscope.checks import FloatArray, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.estimators.base import CHOICES, NeuronsOnRows, blocks, generator, input_scale, ridges_of, sample_weights
from lazyscope.estimators.labels import ProbabilityMixin, signs
from lazyscope.estimators.probabilities import left_out, misplaced, wrong_class
from lazyscope.estimators.tangent import Tangent
from lazyscope.estimators.tangent_ridge import (
    FEW,
    MANY,
    MOST_TRIED,
    TangentFit,
    cg_fit,
    cholesky_fit,
    direct_fit,
    primal_fit,
)
from lazyscope.estimators.targets import TargetsMixin

_SOLVERS = ("auto", "primal", "direct", "cholesky", "cg")
_COUNTED, _ENOUGH = 4000, 50  # most samples, and least in the wrong class, of which those left out choose the ridge
_LOWER = np.sqrt(10.0) ** np.array([1.0, 2.0])  # what the ridge of GCV is divided by


@dataclass(eq=False, repr=False)
class _NeuralTangent(NeuronsOnRows):
    """What regression and classification share: fit targets Y, (n, k), and evaluate f, (n, k)."""

    _choices = (("softplus", 3.0, 0.5), *CHOICES[1:])  # σ′ of relu is a step, whose kernel needs the most neurons

    width: int = 200
    activation: Any = "relu"
    _: KW_ONLY
    ridge: Any = "auto"
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int = 500
    scale: Any = "auto"
    bias: float = 0.3
    directions: str = "random"
    fit_intercept: bool = True
    random_state: Any = None

    def _fit_tangent(self, X: Any, Y: FloatArray, v: FloatArray | None) -> None:
        owner = type(self).__name__
        if self.solver not in _SOLVERS:
            raise InvalidParameter.of(owner, "solver", f"be one of {', '.join(_SOLVERS)}", repr(self.solver))
        ridges, max_iter = ridges_of(self.ridge, owner), whole_number(self.max_iter, owner, "max_iter")
        tol = real_number(self.tol, owner, "tol", "be positive")
        if tol <= 0:
            raise InvalidParameter.of(owner, "tol", "be positive", f"{tol:g}")
        X = X.astype(np.float64, copy=False)
        if self._chosen(X, Y, v, lambda copy, k: copy._fit_tangent(X[k], Y[k], None if v is None else v[k])):
            return
        self.layer_ = self._drawn(X, v)
        if not self.layer_.sigma.has_derivative:
            must = "have a derivative that is a function: the tangent model is built on σ′"
            raise InvalidParameter.of(owner, "activation", must, self.layer_.sigma.name, 'Use "tanh" or "erf".')
        self._scale, self._bias = input_scale(X, self.scale, v, owner), float(self.bias)
        (n, d), N, constant = X.shape, self.layer_.width, bool(self.fit_intercept)
        solver = self.solver
        if solver == "auto":
            solver = _cheapest(n, N * (d + 1), 1 if ridges is None else len(ridges))
        if solver == "primal":
            self._keep(primal_fit(self._parts(X, Y, v), ridges, constant))
        elif solver == "direct":
            self._keep(direct_fit(self._tangent(X), Y, v, ridges, constant))
        elif solver == "cholesky":
            rng = generator(self.random_state, N, d, 2)
            self._keep(cholesky_fit(self._tangent(X), Y, v, ridges, constant, rng, owner))
        else:
            rng = generator(self.random_state, N, d, 2)
            self._keep(cg_fit(self._tangent(X), Y, v, ridges, constant, tol, max_iter, rng, owner))
        self.solver_ = solver

    def _gram(self, X: Any) -> FloatArray:
        """Return the tangent kernel, (n, n)."""
        return self._tangent(X).kernel()

    def _tangent(self, X: Any) -> Tangent:
        return Tangent.of(self.layer_, X, self._scale, self._bias)

    def _parts(self, X: Any, Y: FloatArray, v: FloatArray | None) -> Iterator[tuple[Tangent, FloatArray, Any]]:
        for part in blocks(X.shape[0], self.layer_.width * (X.shape[1] + 1)):
            yield self._tangent(X[part]), Y[part], None if v is None else v[part]

    def _keep(self, fit: TangentFit) -> None:
        path = fit.path
        self.ridges_, self.gcv_, self.freedom_ = path.ridges, path.gcv, path.freedom
        self._score = float(path.scores[path.best])
        self.ridge_, self.n_iter_ = float(path.ridges[path.best]), fit.steps
        self._V, self._constants, self._best = fit.V, fit.constants, path.best

    def _values(self, X: Any) -> FloatArray:
        X = self._inputs(X).astype(np.float64, copy=False)
        parts = []
        for part in blocks(X.shape[0], 2 * self.layer_.width):
            tangent = self._tangent(X[part])
            parts.append(np.stack([tangent.forward(V) for V in self._V], axis=1))
        return np.asarray(np.concatenate(parts) + self._constants)

    @property
    def coef_(self) -> FloatArray:
        """Displacements v of the neurons: (N, d + 1) or (k, N, d + 1); of a classifier of two (1, N, d + 1)."""
        return np.asarray(self._by_target(self._V))

    @property
    def intercept_(self) -> Any:
        """The constant c, or (k,); of a classifier (1,) for two classes."""
        return self._by_target(self._constants)


def _cheapest(n: int, parameters: int, ridges: int) -> str:
    """Return the route for so many samples, parameters and candidates (one stands for a search by itself)."""
    if parameters < min(n, 3 * FEW):
        return "primal"
    if n <= FEW:
        return "direct"
    return "cholesky" if n <= MANY and ridges <= MOST_TRIED else "cg"


class NeuralTangentRegressor(TargetsMixin, _NeuralTangent):
    """Ridge regression on the tangent model of a two-layer network of finite width.

    It has N(d + 1) parameters, and its Jacobian is never formed where that would be large.

    Parameters
    ----------
    width : int
        N, the number of neurons.
    activation : str, callable or Activation
        σ, with a derivative; "auto" as for `RandomFeaturesRegressor`, with softplus in the place of relu.
    ridge : "auto", float or sequence of float
        λ, or candidates from which generalised cross-validation picks without refitting, as for
        `RandomFeaturesRegressor`.
    solver : "auto", "primal", "direct", "cholesky" or "cg"
        By the Gram matrix of the parameters; by that of the samples, reduced once for all ridges; by a Cholesky
        decomposition of it for each ridge that is tried; or by conjugate gradients on products with it. "auto" is the
        first where there are fewer parameters than samples, the second up to 2,000 samples, the third up to 12,000.
    tol, max_iter : float, int
        Relative residual at which conjugate gradients stop, and their most steps.
    scale, bias, directions : see `RandomFeatureMap`
    fit_intercept : bool
        Whether f has a constant c.
    random_state : int, RandomState or None
        Fixes the weights, and the probes of "cg".

    Attributes
    ----------
    ridge_, ridges_, gcv_, freedom_ :
        The λ that was used; all candidates, their GCV and tr H_λ.
    coef_, intercept_ :
        v, (N, d + 1) or (k, N, d + 1), the last entry of a row for the offset, and c.
    layer_, solver_, n_iter_ :
        The random neurons, the route that was taken, and its steps.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NeuralTangentRegressor(100, random_state=0).fit(X[:300], y[:300])
    >>> model.solver_, model.coef_.shape, model.score(X[300:], y[300:]) > 0.4
    ('direct', (100, 11), True)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the neurons and fit."""
        X, Y, v = self._checked(X, y, sample_weight, least=2)
        self._fit_tangent(X, Y, v)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return f(x), (n,) or (n, k); 4ndN flops."""
        return self._shaped(self._values(X))


class NeuralTangentClassifier(ProbabilityMixin, _NeuralTangent):
    """Classes by ridge regression of ±1 on the tangent model, each class against the rest.

    Parameters and attributes are those of `NeuralTangentRegressor`, and `classes_`. With ridge="auto" and at most 4,000
    samples the ridge of GCV is lowered three- or tenfold where that puts more left-out samples into their class
    than out of it; `ridges_` then has one entry more. `predict_proba` is calibrated on the scores of samples left out
    (`temperature_`).

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), NeuralTangentClassifier(random_state=0)).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the neurons and fit."""
        X, indices = self._labelled(X, y)
        v = sample_weights(sample_weight, X, type(self).__name__)
        Y = signs(indices, len(self.classes_))
        self._fit_tangent(X, Y, v)
        if v is None and ridges_of(self.ridge, type(self).__name__) is None and len(Y) <= _COUNTED:
            self._lower_ridge(X.astype(np.float64, copy=False), Y)
        n = len(Y) if v is None else float(v.sum())
        self._calibrate(left_out(self._values(X), Y, float(self.freedom_[self._best]), n), indices, v)
        return self

    def _lower_ridge(self, X: Any, Y: FloatArray) -> None:
        """Take a smaller ridge than that of GCV, which is for squares, where samples left out ask for it.

        A ridge is better where it puts b of them into their class and c out of it, and b − c > √(b + c), a standard
        error of that difference (McNemar's count of pairs). At most four decompositions of K, 2n³/3 flops each, and
        none where few are in the wrong class, counted as if all leverages were the mean one.
        """
        n, constant = len(Y), bool(self.fit_intercept)
        roughly = left_out(self._values(X), Y, float(self.freedom_[self._best]), n)
        if roughly is None or np.count_nonzero(wrong_class(roughly, Y)) < _ENOUGH:
            return
        K = self._gram(X)
        ridge, wrong = self.ridge_, misplaced(K, Y, n * self.ridge_, constant)
        for smaller in self.ridge_ / _LOWER:
            then = misplaced(K, Y, n * smaller, constant)
            better, worse = np.count_nonzero(wrong & ~then), np.count_nonzero(then & ~wrong)
            if better - worse > np.sqrt(better + worse):
                ridge, wrong = smaller, then
        if ridge < self.ridge_:
            before, place = (self.ridges_, self.gcv_, self.freedom_), int(np.searchsorted(self.ridges_, ridge))
            rng = generator(self.random_state, self.layer_.width, X.shape[1], 2)
            self._keep(cholesky_fit(self._tangent(X), Y, None, np.array([ridge]), constant, rng, type(self).__name__))
            after = (self.ridges_, self.gcv_, self.freedom_)
            self.ridges_, self.gcv_, self.freedom_ = (
                np.insert(old, place, new[0]) for old, new in zip(before, after, strict=True)
            )
            self._best = place

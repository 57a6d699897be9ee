"""What all estimators share: the random first layer, blocks of rows, seeds and checks at the door.

    z = Wx + b,   w_i ~ N(0, s²I),   b_i ~ N(0, β²),

with s = 1/√E‖x‖² on the training data where `scale` is "auto": z then has the size for which activations are made,
whatever the units of x. β = 0 is the network of the theorems, which has no offsets. Where `directions` is "rows", w_i
points from the mean to a training row drawn at random, and all are as long as gives z the same size.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from lazyscope.activations import Activation, as_activation
from lazyscope.checks import FloatArray, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.estimators.probabilities import misplaced

Array = NDArray[Any]
_BLOCK = 1 << 21  # features at once: 16 MB, so that memory does not grow with the number of samples


@dataclass(frozen=True, eq=False)
class FirstLayer:
    """The first layer, which lazy training does not change: W (N, d), b (N,) and σ.

    >>> layer = FirstLayer.draw(np.eye(3), width=5, activation="relu", scale="auto", bias=0.0, random_state=0)
    >>> layer.W.shape, layer.features(np.eye(3)).shape, layer.b.any()
    ((5, 3), (3, 5), np.False_)
    """

    W: FloatArray
    b: FloatArray
    sigma: Activation

    @classmethod
    def draw(
        cls,
        X: Any,
        *,
        width: Any,
        activation: Any,
        scale: Any,
        bias: Any,
        random_state: Any,
        directions: Any = "random",
        weights: FloatArray | None = None,
        owner: str = "FirstLayer",
    ) -> FirstLayer:
        """Draw N neurons for inputs like the rows of X.

        They depend on (random_state, N, d), and on X by s alone unless `directions` is "rows".
        """
        N = whole_number(width, owner, "width")
        bias = real_number(bias, owner, "bias", "be zero or a positive number, the standard deviation of offsets")
        if bias < 0:
            raise InvalidParameter.of(owner, "bias", "be zero or positive, a standard deviation", bias)
        s = input_scale(X, scale, weights, owner)
        rng = generator(random_state, N, X.shape[1])
        if directions not in DIRECTIONS:
            must = f"be {' or '.join(map(repr, DIRECTIONS))}"
            raise InvalidParameter.of(owner, "directions", must, repr(directions))
        W = rng.standard_normal((N, X.shape[1]))
        W *= s
        if directions == "rows":
            W = _towards_rows(X, W, s, weights, rng)
        return cls(W, bias * rng.standard_normal(N), as_activation(activation))

    @property
    def width(self) -> int:
        """Number of neurons, N."""
        return len(self.W)

    def preactivations(self, X: Any) -> Array:
        """Return z = Wx + b for the rows of X, (n, N), in the precision of X; 2ndN flops."""
        W = self.W.astype(X.dtype, copy=False)
        z = np.asarray(X @ W.T) if sparse.issparse(X) else product(X, W)
        z += self.b.astype(X.dtype, copy=False)
        return z

    def features(self, X: Any) -> Array:
        """Return σ(z)/√N, so that inner products of features tend to a kernel as N grows."""
        values = self.sigma.at(self.preactivations(X))
        values *= values.dtype.type(1.0 / sqrt(self.width))
        return values


DIRECTIONS = ("random", "rows")
CHOICES = (("relu", 1.0, 0.3), ("erf", 0.5, 1.0), ("erf", 0.25, 1.0), ("erf", 0.125, 1.0))
"""σ, the scale in units of 1/√E‖x‖², and the bias, of which activation="auto" takes the best, in either kind of
directions: one σ that is rough, and one that is smooth, over more or less of its range."""
_FEW_ROWS = 2000  # up to which left-out samples are counted one by one


class NeuronsOnRows(BaseEstimator):
    """An estimator with a random first layer, whose inputs are rows of X, dense or sparse."""

    activation: Any
    _by_target: Callable[[FloatArray], Any]
    _choices = CHOICES
    _tried = 600  # rows on which activation="auto" is chosen; three for each neuron where those are more

    def _drawn(self, X: Any, weights: FloatArray | None = None) -> FirstLayer:
        """Return the first layer that the parameters of the estimator ask for."""
        given = {name: getattr(self, name) for name in ("width", "activation", "scale", "bias", "random_state")}
        given["directions"] = getattr(self, "directions", "random")
        return FirstLayer.draw(X, **given, weights=weights, owner=type(self).__name__)

    def _chosen(self, X: Any, Y: FloatArray, weights: FloatArray | None, fit: Callable[[Any, Any], None]) -> bool:
        """Where activation="auto": fit a copy with each choice, take over the best, and return True.

        `fit(copy, rows)` fits a copy to some rows. Where there are many the choice is made on a part of them: by GCV,
        and for classes by how many samples the fit without them puts into the wrong one.
        """
        if not (isinstance(self.activation, str) and self.activation == "auto"):
            return False
        n, some = X.shape[0], max(self._tried, 3 * whole_number(self.width, type(self).__name__, "width"))
        rows = slice(None) if n <= some else np.sort(generator(self.random_state, n, some).permutation(n)[:some])
        unit, copies = input_scale(X, "auto", weights, type(self).__name__), []
        for directions in DIRECTIONS:
            for sigma, scale, bias in self._choices:
                chosen = {"activation": sigma, "scale": scale * unit, "bias": bias, "directions": directions}
                copies.append(clone(self).set_params(**chosen))
                fit(copies[-1], rows)
        seen, few = Y[rows], weights is None and min(n, some) <= _FEW_ROWS

        def score(copy: Any) -> tuple[float, float]:
            if not (is_classifier(self) and few):
                return 0.0, copy._score
            wrong = misplaced(copy._gram(X[rows]), seen, min(n, some) * copy.ridge_, copy.fit_intercept)
            return float(np.mean(wrong)), copy._score

        best = min(copies, key=score)
        if n > some:
            fit(best, slice(None))
        self.__dict__ |= {name: value for name, value in vars(best).items() if name not in best.get_params()}
        self.activation_, self.directions_ = best.activation, best.directions
        return True

    def _inputs(self, X: Any) -> Any:
        """Return checked inputs for an estimator that has been fitted."""
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _towards_rows(X: Any, W: FloatArray, s: float, weights: FloatArray | None, rng: np.random.Generator) -> FloatArray:
    """Return w_i in the direction of a row of X less the mean, all of one length, so that ⟨w, x⟩ has the size s‖x‖.

    Rows are drawn without repetition where there are enough. W itself stands in for rows that are the mean.
    """
    N = len(W)
    seen = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    rows = rng.permutation(seen)[:N] if len(seen) >= N else rng.choice(seen, N)
    share = None if weights is None else weights / np.sum(weights)
    mean = np.asarray(X.mean(axis=0) if share is None else share @ X, dtype=np.float64).reshape(-1)
    chosen = X[rows].toarray() if sparse.issparse(X) else X[rows]
    towards = np.asarray(chosen, dtype=np.float64) - mean
    lengths = np.linalg.norm(towards, axis=1)
    towards[lengths == 0.0], lengths[lengths == 0.0] = W[lengths == 0.0], 1.0
    towards /= lengths[:, None]
    squares = np.mean(np.asarray(X @ towards.T) ** 2, axis=1)
    wanted, there = (s / input_scale(X, "auto", weights, "")) ** 2, float(np.average(squares, weights=weights))
    return towards * sqrt(wanted / there) if there > 0 else W


def product(X: Array, W: Array) -> Array:
    """Return XWᵀ in C order by SciPy's BLAS, which solves the systems too: two pools of threads would wait in turn.

    >>> product(np.eye(2), np.array([[1.0, 2.0]])).tolist()
    [[1.0], [2.0]]
    """
    from scipy.linalg.blas import dgemm, sgemm

    gemm = sgemm if X.dtype == np.float32 else dgemm
    return np.asarray(gemm(1.0, np.ascontiguousarray(W).T, np.ascontiguousarray(X).T, trans_a=1).T)


def input_scale(X: Any, scale: Any, weights: FloatArray | None, owner: str) -> float:
    """Return s: a positive number, or 1/√E‖x‖² for "auto"."""
    if not isinstance(scale, str):
        must = 'be "auto" or a positive number, the standard deviation of a weight'
        s = real_number(scale, owner, "scale", must)
        if s <= 0:
            raise InvalidParameter.of(owner, "scale", must, f"{s:g}")
        return s
    if scale != "auto":
        raise InvalidParameter.of(owner, "scale", 'be "auto" or a positive number', repr(scale))
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("nd,nd->n", X, X, dtype=np.float64)
    mean = float(np.average(np.ravel(np.asarray(squares, dtype=np.float64)), weights=weights))
    return 1.0 / sqrt(mean) if mean > 0 else 1.0


def generator(random_state: Any, *key: int) -> np.random.Generator:
    """Return the generator of one purpose: `random_state` as scikit-learn understands it, and a key.

    >>> generator(0, 3).integers(100), generator(0, 4).integers(100), generator(0, 3).integers(100)
    (np.int64(65), np.int64(80), np.int64(65))
    """
    entropy = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))


def blocks(n: int, width: int) -> Iterator[slice]:
    """Cut n rows into slices whose features, `width` each, stay small.

    >>> list(blocks(5, 1 << 20))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, _BLOCK // max(1, width))
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))


def sample_weights(value: Any, X: Any, owner: str) -> FloatArray | None:
    """Return weights as counts of repetitions, or None where every sample counts once."""
    if value is None:
        return None
    weights = np.asarray(_check_sample_weight(value, X, dtype=np.float64, ensure_non_negative=True))
    if not np.any(weights):
        must = "have a positive entry: with no weight there is no sample"
        raise InvalidParameter.of(owner, "sample_weight", must, "zeros alone")
    return weights


def ridges_of(value: Any, owner: str) -> FloatArray | None:
    """Return the candidates for λ as an array, or None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    must = 'be "auto", a number λ ≥ 0, or a sequence of candidates'
    if isinstance(value, (str, bytes)) or value is None:
        raise InvalidParameter.of(owner, "ridge", must, repr(value))
    values = [value] if isinstance(value, numbers.Real) else list(value)
    ridges = np.array([real_number(ridge, owner, "ridge", must) for ridge in values])
    if ridges.size == 0 or np.any(ridges < 0):
        raise InvalidParameter.of(owner, "ridge", must, "none" if ridges.size == 0 else f"{ridges.min():g}")
    return ridges

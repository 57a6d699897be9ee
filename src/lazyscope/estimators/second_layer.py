"""The second layer by ridge regression: targets Y, (n, k), on features σ(Wx + b)/√N; for every ridge at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.estimators.base import FirstLayer, NeuronsOnRows, blocks, product, ridges_of
from lazyscope.numerics.ridge import Block, Moments, Solved, from_rows


@dataclass(eq=False, repr=False)
class SecondLayer(NeuronsOnRows):
    """What regression and classification share: fit targets Y, (n, k), and evaluate f, (n, k)."""

    _tried = 1000

    width: int = 200
    activation: Any = "relu"
    _: KW_ONLY
    ridge: Any = "auto"
    scale: Any = "auto"
    bias: float = 0.3
    directions: str = "random"
    fit_intercept: bool = True
    random_state: Any = None

    def _fit_ridge(self, X: Any, Y: FloatArray, v: FloatArray | None) -> None:
        ridges = ridges_of(self.ridge, type(self).__name__)
        if self._chosen(X, Y, v, lambda copy, k: copy._fit_ridge(X[k], Y[k], None if v is None else v[k])):
            return
        self.layer_ = layer = self._drawn(X, v)
        (n, _), N = X.shape, layer.width
        smaller = min(n, N)
        fits_in_memory(
            8.0 * (3.0 * smaller**2 + (n * N if n <= N else 0)), f"Ridge regression on {N} features", "Use fewer."
        )
        if n <= N:
            self._keep(from_rows(in_doubles(layer, X), Y, v, ridges, bool(self.fit_intercept)))
            return
        moments = Moments(bool(self.fit_intercept))
        for Phi, part, weight in self._blocks(layer, X, Y, v):
            moments.add(Phi, part, weight)
        self._keep(moments.solve(ridges))

    def _gram(self, X: Any) -> FloatArray:
        """Return the inner products of features, (n, n)."""
        Phi = in_doubles(self.layer_, X)
        return product(Phi, Phi)

    def _add(self, X: Any, Y: FloatArray, v: FloatArray | None) -> None:
        """Add samples to those already seen, and solve again."""
        ridges = ridges_of(self.ridge, type(self).__name__)
        if not hasattr(self, "_moments"):
            self.layer_ = self._drawn(X, v)
            self._moments = Moments(bool(self.fit_intercept))
        for Phi, part, weight in self._blocks(self.layer_, X, Y, v):
            self._moments.add(Phi, part, weight)
        self._keep(self._moments.solve(ridges))

    def _blocks(self, layer: FirstLayer, X: Any, Y: FloatArray, v: FloatArray | None) -> Iterator[Block]:
        for part in blocks(X.shape[0], layer.width):
            yield in_doubles(layer, X[part]), Y[part], None if v is None else v[part]

    def _keep(self, solved: Solved) -> None:
        path = solved.path
        self.ridges_, self.gcv_, self.freedom_ = path.ridges, path.gcv, path.freedom
        self._score = float(path.scores[path.best])
        self.ridge_ = float(path.ridges[path.best])
        self._coefficients, self._constants = solved.coefficients, solved.constants
        self._best = path.best

    def _values(self, X: Any) -> FloatArray:
        """Return f at the rows of X for the best ridge, (n, k), in blocks."""
        X = self._inputs(X)
        a, c = self._coefficients[:, self._best], self._constants[self._best]
        a = a.astype(X.dtype, copy=False)
        parts = [product(self.layer_.features(X[part]), a.T) for part in blocks(X.shape[0], len(a))]
        return np.asarray(np.concatenate(parts) + c)

    def _path_values(self, X: Any) -> FloatArray:
        """Return f for every ridge, (R, n, k)."""
        X = self._inputs(X)
        N, R, k = self._coefficients.shape
        flat = self._coefficients.reshape(N, R * k)
        flat = flat.astype(X.dtype, copy=False)
        parts = [product(self.layer_.features(X[part]), flat.T) for part in blocks(X.shape[0], N + R * k)]
        values = np.concatenate(parts).reshape(X.shape[0], R, k) + self._constants
        return np.ascontiguousarray(values.transpose(1, 0, 2))

    @property
    def coef_(self) -> FloatArray:
        """Second-layer weights a at the chosen ridge: (N,) or (k, N); of a classifier (1, N) for two classes."""
        return np.asarray(self._by_target(self._coefficients[:, self._best].T))

    @property
    def intercept_(self) -> Any:
        """The constant c, or (k,); of a classifier (1,) for two classes."""
        return self._by_target(self._constants[self._best])


def in_doubles(layer: FirstLayer, X: Any) -> FloatArray:
    """Features in float64, C order: Gram matrices square the condition number."""
    return np.ascontiguousarray(layer.features(X.astype(np.float64, copy=False)))

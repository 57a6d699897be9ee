"""Numbers as targets, one or several, and back: what every regressor shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from lazyscope.checks import FloatArray
from lazyscope.estimators.base import sample_weights


class TargetsMixin(RegressorMixin, MultiOutputMixin):
    """A regressor that works on targets (n, k), and remembers whether they came as (n,)."""

    _one_target: bool
    _mean: FloatArray
    _spread: FloatArray

    def _checked(
        self, X: Any, y: Any, weight: Any, *, reset: bool = True, least: int = 1
    ) -> tuple[Any, FloatArray, FloatArray | None]:
        """Check and return X, Y (n, k) and the weights."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], multi_output=True,
            y_numeric=True, reset=reset, ensure_min_samples=least,
        )  # fmt: skip
        self._one_target = y.ndim == 1
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return X, Y, sample_weights(weight, X, type(self).__name__)

    def _scaled(self, Y: FloatArray, v: FloatArray | None) -> FloatArray:
        """Return the targets less their mean, over their standard deviation; both are kept for predictions."""
        self._mean = np.average(Y, axis=0, weights=v)
        spread = np.sqrt(np.average((Y - self._mean) ** 2, axis=0, weights=v))
        self._spread = np.where(spread > 0, spread, 1.0)
        return (Y - self._mean) / self._spread

    def _unscaled(self, values: FloatArray) -> FloatArray:
        """Return values of scaled targets in the units and the shape that the targets had."""
        return self._shaped(self._mean + self._spread * values)

    def _shaped(self, values: FloatArray) -> FloatArray:
        """Drop the last dimension where targets had one only."""
        return values[..., 0] if self._one_target else values

    def _by_target(self, values: FloatArray) -> Any:
        """Drop the first dimension, that of targets, where they had one only; a number comes as a float."""
        first = values[0]
        return values if not self._one_target else first if first.ndim else float(first)

"""Shares of the variance that linear and quadratic functions explain, cross-fitted, with their errors.

Degrees of freedom correct R² for Gaussian inputs only: rows of images differ in leverage, and then the corrected
share is too large. Instead, coefficients are fitted without a fifth of the rows at a time, and

    share = Σ_i y_i f̂_{−i}(x_i) / Σ_i y_i²,        f̂_{−i} fitted without the fifth that has row i, y centred.

Whatever the noise of f̂_{−i} is, it is independent of y_i: for least squares, whose coefficients are unbiased, the
numerator has mean n·E f², f the best function of its kind. (The held-out R² would charge the noise of f̂ to the share.)
The error is the larger of that over rows and over folds, as everywhere in the lens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.data.measuring import spread

_FOLDS = 5


@dataclass(frozen=True)
class Shares:
    """Shares of the variance, not below zero, and their standard errors; `z` is that of the quadratic one."""

    linear: float
    linear_stderr: float
    quadratic: float
    quadratic_stderr: float

    @property
    def z(self) -> float:
        """The quadratic share in standard errors."""
        return self.quadratic / max(self.quadratic_stderr, 1e-12)


def shares(first: FloatArray, second: FloatArray, targets: Sequence[FloatArray]) -> list[Shares]:
    """Return the shares of each target that features `first` and then `second`, both centred, explain.

    np² flops for all Gram matrices, and p³/3 for each of five solutions.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal((4000, 2))
    >>> y = z[:, 0] + (z[:, 1] ** 2 - 1) + rng.standard_normal(4000)  # variances 1, 2 and 1
    >>> found = shares(z, z * z - 1, [y])[0]
    >>> abs(found.linear - 0.25) < 3 * found.linear_stderr, abs(found.quadratic - 0.5) < 3 * found.quadratic_stderr
    (True, True)
    """
    n, d = first.shape
    Psi, Y = np.hstack([first, second]), np.stack([y - y.mean() for y in targets], axis=1)
    folds = np.array_split(np.random.default_rng(0).permutation(n), _FOLDS)  # tables are often sorted
    grams = [Psi[rows].T @ Psi[rows] for rows in folds]
    sides = [Psi[rows].T @ Y[rows] for rows in folds]
    G, b = sum(grams), sum(sides)
    linear: list[FloatArray] = []
    quadratic: list[FloatArray] = []
    for rows, gram, side in zip(folds, grams, sides, strict=True):
        A, c = G - gram, b - side
        alone = Psi[rows, :d] @ _solved(A[:d, :d], c[:d])
        linear.append(Y[rows] * alone)
        quadratic.append(Y[rows] * (Psi[rows] @ _solved(A, c) - alone))
    energy = np.mean(Y**2, axis=0)
    results = []
    for k in range(Y.shape[1]):
        first_share, second_share = (
            spread([part[:, k] / energy[k] for part in parts]) for parts in (linear, quadratic)
        )
        results.append(Shares(_share(first_share[0]), first_share[1], _share(second_share[0]), second_share[1]))
    return results


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def _solved(A: FloatArray, b: FloatArray) -> FloatArray:
    """Return A⁻¹b for a Gram matrix; a feature that is zero on all these rows gets the coefficient zero."""
    from scipy.linalg import solve

    unit = float(np.trace(A)) / max(1, len(A))
    if len(A) == 0 or unit == 0.0:
        return np.zeros_like(b)
    return np.asarray(solve(A + 1e-9 * unit * np.eye(len(A)), b, assume_a="pos"))

"""Probabilities from scores, calibrated by one number: softmax of t·f, t chosen on scores that the fit has not seen.

For two classes P(second) = 1/(1 + e^{−tf}), for more P(j) ∝ e^{t f_j}. t minimises the cross-entropy (temperature
scaling, Guo et al. 2017); the class of the largest probability stays the one that `predict` returns. Unseen scores are

- of ridge regression, f_{−i} = y_i − (y_i − f_i)/(1 − tr H_λ/n): each sample left out, its leverage taken to be the
  mean one, as in generalised cross-validation. No second fit.
- of Taylor models, those of the samples that were held out to choose the number of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray

_RANGE = (1e-3, 1e3)  # of t: scores of regression on ±1 are of order one
_CLOSE = 1e-6  # 1 − tr H_λ/n, below which the fit interpolates and left-out scores are rounding


def left_out(values: FloatArray, Y: FloatArray, freedom: float, n: float) -> FloatArray | None:
    """Return f_{−i}, (n, k), for a ridge regression of tr H_λ = `freedom`; None where it interpolates.

    >>> left_out(np.array([[0.5]]), np.array([[1.0]]), 1.0, 2.0)
    array([[0.]])
    """
    free = 1.0 - freedom / n
    return None if not free > _CLOSE else np.asarray(Y - (Y - values) / free)


def temperature(scores: FloatArray, indices: Any, weights: FloatArray | None = None) -> float:
    """Return t for scores (n, k), or (n, 1) of the second of two classes, of samples with these classes.

    >>> rng = np.random.default_rng(0)
    >>> f = rng.standard_normal(20000)
    >>> y = (rng.random(20000) < 1 / (1 + np.exp(-3 * f))).astype(int)
    >>> round(temperature(f[:, None], y), 1)
    3.0
    """
    from scipy.optimize import minimize_scalar

    F, v = _two(scores), np.ones(len(scores)) if weights is None else weights
    shifted = F - F[np.arange(len(F)), indices][:, None]  # the score of every class against the right one
    # one more sample that is wrong and one that is right, at the typical distance: t stays finite on separated classes
    typical = float(np.sqrt(np.average(shifted**2, weights=np.broadcast_to(v[:, None], F.shape)))) or 1.0

    def entropy(log_t: float) -> float:
        t = np.exp(log_t)
        each = np.log(np.sum(np.exp(np.minimum(t * shifted, 700.0)), axis=1))
        return float(v @ each + np.logaddexp(0.0, t * typical) + np.logaddexp(0.0, -t * typical))

    minimum = minimize_scalar(entropy, bounds=np.log(_RANGE), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(minimum.x))


def probabilities(scores: FloatArray, t: float) -> FloatArray:
    """Return P, (n, k), rows of sum one.

    >>> probabilities(np.array([[0.0]]), 2.0)
    array([[0.5, 0.5]])
    """
    return softmax(t * _two(scores))


def softmax(F: NDArray[Any]) -> NDArray[Any]:
    """Return e^{f_j}/Σ e^{f_l} for each row.

    >>> softmax(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    P = np.exp(F - F.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return np.asarray(P)


def _two(scores: FloatArray) -> FloatArray:
    """Return a score for each class: of two, zero and that of the second."""
    return np.column_stack([np.zeros(len(scores)), scores[:, 0]]) if scores.shape[1] == 1 else scores


def misplaced(K: FloatArray, Y: FloatArray, shift: float, constant: bool) -> NDArray[np.bool_]:
    """Say of each sample, (n,), whether ridge regression without it puts it into the wrong class.

    f_{−i} = y_i − (y_i − f_i)/(1 − h_i) for the kernel matrix K, targets ±1, (n, k), and the shift nλ; leverages h_i as
    they are: 1 − H = s(K + s)⁻¹, and less 1/n with a constant, K and y centred. 2n³/3 flops, 8n² bytes.

    >>> K = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> misplaced(K, np.array([[1.0], [1.0], [-1.0]]), 0.1, False)  # nobody is like the third
    array([False, False,  True])
    """
    from scipy.linalg.lapack import dpotrf, dtrtri

    n, A = len(K), np.array(K, order="F")
    Z, s = Y, max(shift, 1e-12 * float(np.trace(K)))
    if constant:
        Z, means = Y - Y.mean(axis=0), K.mean(axis=0)
        A -= means[:, None]
        A -= means - means.mean()
    A.reshape(-1, order="F")[:: n + 1] += s
    factor, failed = dpotrf(A, lower=1, clean=1, overwrite_a=1)
    if failed:  # rounding hides so small a shift: such a fit counts as wrong everywhere
        return np.ones(n, dtype=bool)
    root = dtrtri(factor, lower=1, overwrite_c=1)[0]
    left_over = s * (root.T @ (root @ Z))
    kept = s * np.einsum("ij,ij->j", root, root) - float(constant) / n
    return wrong_class(Y - left_over / np.maximum(kept, 1e-12)[:, None], Y)


def wrong_class(F: FloatArray, Y: FloatArray) -> NDArray[np.bool_]:
    """Say of each sample, (n,), whether scores F choose another class than the targets ±1, both (n, k).

    >>> wrong_class(np.array([[0.1], [0.2]]), np.array([[1.0], [-1.0]]))
    array([False,  True])
    """
    wrong = F[:, 0] * Y[:, 0] <= 0 if Y.shape[1] == 1 else np.argmax(F, axis=1) != np.argmax(Y, axis=1)
    return np.asarray(wrong)

"""A network and its linearisation, trained on the same n samples by the same steps of gradient descent.

The network is g(W) = f_{W₀+W} − f_{W₀}, the start cancelled (Ghorbani et al. 2019, Eq. 7); its linearisation is
⟨∇f_{W₀}, W⟩. Both start at W = 0 and descend ½Σ(y_i − g(x_i))² with the rate η = 1/λ_max(K), K the tangent kernel of
the samples. Of the linearisation the end is a closed form: after T steps

    f_L(x) = K(x, X) K⁻¹ (1 − (1 − ηK)^T) y.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged
from lazyscope.numerics.blas import threads_for
from lazyscope.training.taylor.kernels import FiniteWidthKernel
from lazyscope.training.taylor.model import TaylorModel

QUANTITIES = {
    "distance": "network − linearisation on fresh inputs, over the linearisation",
    "movement": "‖W − W₀‖/‖W₀‖",
    "drift": "‖K − K₀‖/‖K₀‖, tangent kernel of the samples",
    "train": "‖y − f‖/‖y‖ of the network at the end",
}
MOST_STEPS = 20_000


def side_by_side(
    model: TaylorModel, X: FloatArray, y: FloatArray, fresh: FloatArray, left: float
) -> dict[str, np.ndarray[tuple[()], np.dtype[np.float64]]]:
    """Train both until the linearisation leaves the share `left` of ‖y‖; return `QUANTITIES` and the number of steps.

    4nmd flops a step, and 16nm bytes.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((14, 3))
    >>> X *= np.sqrt(3.0) / np.linalg.norm(X, axis=1, keepdims=True)
    >>> wide = TaylorModel(rng.standard_normal((1000, 3)), rng.choice([-1.0, 1.0], 1000), "erf", np.sqrt(3.0))
    >>> found = side_by_side(wide, X[:4], np.ones(4), X[4:], 0.01)
    >>> bool(found["distance"] < 0.02)
    True
    """
    with threads_for(0):  # one thread: a descent amplifies the last bit, which depends on how products are cut
        kernel = FiniteWidthKernel(model)
        K = kernel(X)
        values, vectors = np.linalg.eigh(K)
        rate = 1.0 / float(values[-1])
        steps = _steps(values * rate, vectors.T @ y, left)
        W = descended(model, X, y, rate, steps)
        factor = (1.0 - np.maximum(1.0 - rate * values, 0.0) ** steps) / values
        linear = kernel(fresh, X) @ (vectors @ (factor * (vectors.T @ y)))
        nothing = np.zeros_like(model.W0)
        network, before = (model.network(there, fresh) for there in (W, nothing))
        fitted = model.network(W, X) - model.network(nothing, X)
        moved = FiniteWidthKernel(replace(model, W0=model.W0 + W))(X)
    return {
        "distance": np.array(np.linalg.norm(network - before - linear) / np.linalg.norm(linear)),
        "movement": np.array(np.linalg.norm(W) / np.linalg.norm(model.W0)),
        "drift": np.array(np.linalg.norm(moved - K) / np.linalg.norm(K)),
        "train": np.array(np.linalg.norm(fitted - y) / np.linalg.norm(y)),
        "steps": np.array(float(steps)),
    }


def descended(model: TaylorModel, X: FloatArray, y: FloatArray, rate: float, steps: int) -> FloatArray:
    """Return the displacement W of the network after so many steps of gradient descent from 0."""
    W = np.zeros_like(model.W0)
    start, here = model.network(W, X), None
    for _ in range(steps):
        here = model.expand(W, X, None, reuse=here)
        W -= rate * here.gradient(here.values - start - y)
    return W


def _steps(relative: FloatArray, parts: FloatArray, left: float) -> int:
    """Return the first T with ‖(1 − ηK)^T y‖ ≤ left·‖y‖, by bisection: the norm falls with T.

    >>> _steps(np.array([0.5, 1.0]), np.array([1.0, 1.0]), 0.1)
    3
    """

    def enough(T: int) -> bool:
        return bool(np.linalg.norm((1.0 - relative) ** T * parts) <= left * np.linalg.norm(parts))

    if not enough(MOST_STEPS):
        raise NotConverged(
            f"The linearisation leaves more than {left:g} of the labels after {MOST_STEPS:,} steps: it has too few "
            "parameters for them, or nearly so. Use more neurons or fewer samples."
        )
    low, high = 0, MOST_STEPS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high

"""Sign randomisation, W → WΣ with Σ_rr = ±1 independent, and the norm that goes with it (Bai & Lee 2019, §3).

    ‖W‖_{2,4} = (Σ_r ‖w_r‖⁴)^{1/4},        regulariser λ‖W‖⁸_{2,4}.

Even Taylor pieces do not see the signs, odd ones have mean zero under them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def random_signs(m: int, rng: np.random.Generator, dtype: Any = np.float64) -> Array:
    """Draw m independent signs.

    >>> random_signs(6, np.random.default_rng(0))
    array([ 1.,  1.,  1., -1., -1., -1.])
    """
    return np.where(rng.integers(0, 2, m) == 1, 1.0, -1.0).astype(dtype)


def flipped(W: Array, signs: Array) -> Array:
    """Return WΣ: each neuron's displacement times its sign.

    >>> flipped(np.ones((2, 2)), np.array([1.0, -1.0]))
    array([[ 1.,  1.],
           [-1., -1.]])
    """
    return np.asarray(W * signs.astype(W.dtype)[:, None])


def norm_24(W: Array) -> float:
    """Return ‖W‖_{2,4}.

    >>> norm_24(np.ones((16, 4))).__round__(12)
    4.0
    """
    return float(np.sum(np.sum(np.square(W, dtype=np.float64), axis=1) ** 2) ** 0.25)


def regularizer_gradient(W: Array, lam: float) -> Array:
    """Return 8λ ‖W‖⁴_{2,4} ‖w_r‖² w_r."""
    squares = np.sum(np.square(W, dtype=np.float64), axis=1)
    return np.asarray((8.0 * lam * np.sum(squares**2) * squares)[:, None] * W, dtype=W.dtype)


def regularizer_hessian_product(W: Array, lam: float, V: Array) -> Array:
    """Return 8λ [S(‖w_r‖² v_r + 2⟨w_r, v_r⟩ w_r) + 4T ‖w_r‖² w_r] with S = Σ‖w_r‖⁴, T = Σ‖w_r‖²⟨w_r, v_r⟩."""
    squares = np.sum(np.square(W, dtype=np.float64), axis=1)
    inner = np.sum(np.multiply(W, V, dtype=np.float64), axis=1)
    S, T = np.sum(squares**2), np.sum(squares * inner)
    rows = S * (squares[:, None] * V + 2.0 * inner[:, None] * W) + (4.0 * T * squares)[:, None] * W
    return np.asarray(8.0 * lam * rows, dtype=W.dtype)


def regularizer_over_signs(W: Array, lam: float, V: Array) -> float:
    """E_Σ′ of the second derivative of λ‖W‖⁸_{2,4} along VΣ′: 8λ [S Σ(‖w_r‖²‖v_r‖² + 2⟨w_r, v_r⟩²) + 4 E T²].

    T = Σ_r ‖w_r‖²⟨w_r, v_r⟩Σ′_rr has E T² = Σ_r ‖w_r‖⁴⟨w_r, v_r⟩².
    """
    w2, v2 = (np.sum(np.square(M, dtype=np.float64), axis=1) for M in (W, V))
    inner2 = np.sum(np.multiply(W, V, dtype=np.float64), axis=1) ** 2
    return float(8.0 * lam * (np.sum(w2**2) * np.sum(w2 * v2 + 2.0 * inner2) + 4.0 * np.sum(w2**2 * inner2)))

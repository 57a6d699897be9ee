"""Interpolation: how many neurons fit n random labels, by a count of parameters (Montanari 2019, "Interpolation").

x_i ~ N(0, I_d) and y_i ~ N(0, 1), independent. RF and NT are linear: they fit if and only if the n × p matrix of their
features has rank n, for nearly every y. So the threshold is a count of parameters, p = n:

    RF: N = n;    NT: Nd + 1 = n (with its offset);    NT with σ = u²: Nd − N(N−1)/2 + 1 = n,

the last as WAᵀ + AWᵀ says nothing of the antisymmetric part of AᵀW. With σ = u² there are d(d+1)/2 quadratic forms and
the constant: beyond so many labels no width fits. A network that is trained whole has N(d+1) + 1 parameters, of which
N say nothing where σ is homogeneous.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray

Kind = Literal["RF", "NT", "NN"]


def threshold(kind: Kind, n: int, d: int, activation: Activation) -> float:
    """Return the smallest N whose parameters are as many as the labels; ∞ where no N has.

    >>> [threshold(kind, 200, 10, Activation("tanh")) for kind in ("RF", "NT", "NN")]
    [200.0, 20.0, 19.0]
    >>> threshold("NT", 40, 10, Activation("square")), threshold("RF", 60, 10, Activation("square"))
    (5.0, inf)
    """
    square = activation.is_square
    if kind == "RF":
        return np.inf if square and n > d * (d + 1) // 2 + 1 else float(n)
    if square:
        return next((float(N) for N in range(1, d + 1) if N * d - N * (N - 1) // 2 + 1 >= n), np.inf)
    per_neuron = d if kind == "NT" else (d if activation.rectified else d + 1)
    return float(max(1, -(-(n - 1) // per_neuron)))


def parameters(kind: Kind | str, N: FloatArray, d: int) -> FloatArray:
    """Return how many parameters a network has: N; Nd and an offset; N(d + 1) and an offset.

    >>> [float(parameters(kind, np.array(7.0), 10)) for kind in ("RF", "NT", "NN")]
    [7.0, 71.0, 78.0]
    """
    return N if kind == "RF" else N * (d if kind == "NT" else d + 1) + 1.0


def neurons(kind: Kind | str, n: FloatArray, d: int) -> FloatArray:
    """Return the N at which a network has n `parameters`, not rounded to a whole number.

    >>> [float(neurons(kind, np.array(71.0), 10)) for kind in ("RF", "NT", "NN")]
    [71.0, 7.0, 6.363636363636363]
    """
    return n if kind == "RF" else (n - 1.0) / (d if kind == "NT" else d + 1)


def unexplained(share: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of ‖P⊥y‖²/‖y‖² for p = share·n independent features, whatever they are.

    It is a Beta((n − p)/2, p/2) variable: mean 1 − p/n, variance 2p(n − p)/(n²(n + 2)).

    >>> mean, variance = unexplained(np.array(0.5), 10)
    >>> print(f"{mean:.2f} {variance:.4f}")
    0.50 0.0417
    """
    return 1.0 - share, 2.0 * share * (1.0 - share) / (n + 2.0)

"""How lazily a network was trained: numbers in [0, 1] from its values, its tangent kernel and its weights.

    laziness = 1 − min(1, max(‖f − f_lin‖/‖f − f₀‖, ‖K − K₀‖/‖K₀‖)),      f_lin = f₀ + ⟨θ − θ₀, ∇f₀⟩,

norms over the inputs and outputs that are looked at, K the tangent kernel. A lazy network is its linearisation at the
start, and its kernel is that of the start: the score is 1 where both hold, and 0 when the function or the kernel has
changed by 100 % or more. `drift`, 1 − ⟨K, K₀⟩/(‖K‖‖K₀‖), tells how far the kernel has turned, whatever its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import numpy as np

from lazyscope.checks import FloatArray


def relative_error(f: FloatArray, model: FloatArray, start: FloatArray) -> float:
    """‖f − model‖/‖f − start‖: what a Taylor model misses of the change; NaN where nothing has changed.

    >>> relative_error(np.array([1.0, 2.0]), np.array([1.0, 1.0]), np.zeros(2)).__round__(4)
    0.4472
    """
    change = float(np.linalg.norm(f - start))
    return float(np.linalg.norm(f - model)) / change if change > 0 else nan


def laziness(error: float, change: float) -> float:
    """Return the score for a relative error of the linearisation and a relative change of the kernel.

    >>> laziness(0.01, 0.02), laziness(0.1, 3.0)
    (0.98, 0.0)
    """
    return nan if error != error or change != change else 1.0 - min(1.0, max(error, change))


def movement(theta: FloatArray, start: FloatArray, layers: Mapping[str, slice]) -> FloatArray:
    """‖θ − θ₀‖/‖θ₀‖ of each layer; NaN for one that starts at zero.

    >>> movement(np.array([1.0, 2.0]), np.array([1.0, 1.0]), {"a": slice(0, 1), "b": slice(1, 2)})
    array([0., 1.])
    """
    values = []
    for part in layers.values():
        size = float(np.linalg.norm(start[part]))
        values.append(float(np.linalg.norm(theta[part] - start[part])) / size if size > 0 else nan)
    return np.array(values)

"""What a network must be like to be looked at: it runs on the data, row by row, and has derivatives.

Whatever goes wrong inside a user's network becomes one line that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter, LazyscopeError
from lazyscope.lenses.network.differentiable import Differentiable

DERIVATIVES = "be differentiable in its parameters"
_FEW = 8
_SAME = 1e-3  # relative: float32 products of other shapes round otherwise, batch statistics change everything


def start_values(model: Differentiable, theta: FloatArray, x: Any) -> FloatArray:
    """Return f(x; θ), (n, k), where it is finite and a function of each row by itself."""
    if len(x) == 0:
        raise InvalidParameter.of("lens", "x", "have rows", "none")
    with in_a_line("run on the inputs"):
        values = model.values(theta, x)
        alone = np.concatenate([model.values(theta, x[row : row + 1]) for row in range(min(len(x), 2))])
    if not np.all(np.isfinite(values)):
        raise InvalidParameter.of("lens", "model", "return finite numbers", "NaN or infinity")
    if np.max(np.abs(alone - values[: len(alone)])) > _SAME * np.max(np.abs(values)):
        must = "be a function of its parameters and one input: no batch statistics"
        raise InvalidParameter.of("lens", "model", must, "outputs that change with the other rows of a batch")
    return values


def require_derivatives(model: Differentiable, theta: FloatArray, x: Any, outputs: int) -> None:
    """Refuse a network whose outputs do not depend on its parameters in a way that can be followed."""
    few = min(len(x), _FEW)
    with in_a_line(DERIVATIVES):
        product = model.times(theta, x[:few], np.ones((few, outputs)))
    if not np.any(product):
        got = "gradients that are zero everywhere"
        raise InvalidParameter.of("lens", "model", DERIVATIVES, got, "Is something detached?")


@contextmanager
def in_a_line(must: str) -> Iterator[None]:
    """Turn whatever a network raises into one line; a user's function may raise anything."""
    try:
        yield
    except LazyscopeError:
        raise
    except Exception as problem:
        got = f"{type(problem).__name__}: {' '.join(str(problem).split())[:120]}"
        raise InvalidParameter.of("lens", "model", must, got) from None

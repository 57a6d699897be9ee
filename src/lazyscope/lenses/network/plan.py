"""What a look will take, told before the first one: seconds, from one product, and memory, from counts."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.lenses.network.differentiable import Differentiable
from lazyscope.progress import report

_FLOPS = 5e9  # a second, of Jacobians on one core
_LONG = 30.0  # seconds, from which on a look is announced by a warning


@dataclass(frozen=True)
class Plan:
    """Parameters, rows of the tangent kernel, how it is made, and the seconds and bytes of a look.

    >>> print(Plan(10_000_000, 100, 128, 95.0, 8.2e8))
    10,000,000 parameters: the tangent kernel of 100 rows by 128 random directions; a look takes about 95 s and 0.8 GB
    """

    parameters: int
    rows: int
    directions: int
    seconds: float
    memory: float

    def __str__(self) -> str:
        how = f"by {self.directions} random directions" if self.directions else "by Jacobians"
        return (
            f"{self.parameters:,} parameters: the tangent kernel of {self.rows} rows {how}; a look takes about "
            f"{self.seconds:.2g} s and {self.memory / 1e9:.1f} GB"
        )

    def announce(self) -> None:
        """Report it, and warn where a look takes long."""
        report(0, 0, str(self))
        if self.seconds > _LONG:
            less = "fewer directions" if self.directions else "fewer rows"
            warnings.warn(f"{self}. Pass {less}, or orders=1, for less.", UserWarning, stacklevel=4)


def plan(
    model: Differentiable, theta: FloatArray, x: Any, outputs: int, orders: int, chunk: int, directions: int
) -> Plan:
    """Count from one forward derivative on the rows of the kernel, timed; for Jacobians, from their flops.

    A look needs the kernel, and a Taylor piece of order j costs 2ʲ forward passes. In memory at once: θ, θ₀, their
    difference and ω in float64, the same in the network's precision with a derivative for each order; Jacobians.
    """
    P, n = len(theta), len(x)
    memory = P * (4 * 8.0 + 8.0 * (orders + 2))
    if directions:
        begin = time.perf_counter()
        model.pieces(theta, np.zeros(P), x, 1)
        return Plan(P, n, directions, (time.perf_counter() - begin) * (directions + 2.0**orders), memory)
    blocks = -(-n // chunk)
    flops = 6.0 * P * outputs * n * (blocks + 1) / 2.0 + 2.0 * P * outputs * n**2 + 4.0 * P * n * 2.0**orders
    return Plan(P, n, 0, flops / _FLOPS, memory + 3 * 8.0 * chunk * outputs * P)

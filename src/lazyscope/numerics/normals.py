"""Standard normal numbers in float32, four times as fast as numpy's: for narrow networks, drawing is most of a step.

Box and Muller's transform of pairs of 32-bit integers k, ℓ from numpy's own generator (`pcg64`):

    r = √(−2 ln u),  u = (k + ½)/2³²,     (x, y) = r (cos φ, sin φ),  φ uniform on the circle,

with ln, cos and sin by polynomials that a compiler turns into vector instructions. Only +, −, ×, / and √ occur, whose
rounding IEEE 754 fixes, so that a seed gives the same numbers on every machine. |x| ≤ √(66 ln 2) = 6.8.
Benchmark: `sgd_against_torch`, sampling included.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lazyscope.numerics.compiled import compiled

Float32 = NDArray[np.float32]


def standard_normal(n: int, d: int, rng: np.random.Generator) -> Float32:
    """Return an (n, d) array of independent N(0, 1) numbers, in float32.

    >>> x = standard_normal(1000, 100, np.random.default_rng(0))
    >>> print(x.dtype, f"{x.mean():.2f} {x.std():.2f}")
    float32 0.00 1.00
    """
    pairs = -(-n * d // 2)
    out = np.empty(2 * pairs, dtype=np.float32)
    fill(out, rng)
    return out[: n * d].reshape(n, d)


def fill(out: Float32, rng: np.random.Generator, scratch: Float32 | None = None) -> None:
    """Fill `out`, of even length, with independent N(0, 1) numbers; `scratch`, as long, saves the cost of new memory.

    Two calls, whatever the length: on a thread beside a training, each call waits for the interpreter's lock.
    """
    from lazyscope.numerics import pcg64  # loads numba

    pairs = len(out) // 2
    memory = np.empty_like(out) if scratch is None else scratch
    pcg64.fill(memory.view(np.uint64), rng)
    bits = memory.view(np.uint32)
    _box_muller(bits[:pairs], bits[pairs:], out[:pairs], out[pairs:])


@compiled
def _box_muller(k: NDArray[np.uint32], el: NDArray[np.uint32], x: Float32, y: Float32) -> None:
    """Transform bits k, ℓ into normals x, y: about 45 flops a pair."""
    half, one, two = np.float32(0.5), np.float32(1.0), np.float32(2.0)
    for i in range(k.size):
        # u = 2^e m with √½ ≤ m < √2: subtracting the bits of √½ moves the split of exponent and mantissa there
        u = (np.float32(k[i]) + half) * np.float32(2.0**-32)
        shifted = np.int32(np.float32(u).view(np.int32) - np.int32(0x3F3504F3))
        e = np.float32(shifted >> np.int32(23))
        m = np.int32((shifted & np.int32(0x007FFFFF)) + np.int32(0x3F3504F3)).view(np.float32)
        # ln m = 2 artanh s, s = (m − 1)/(m + 1), |s| < 0.172: the next term is below 2⁻²⁸ of the sum
        s = (m - one) / (m + one)
        z = s * s
        p = np.float32(1 / 9)
        p = p * z + np.float32(1 / 7)
        p = p * z + np.float32(1 / 5)
        p = p * z + np.float32(1 / 3)
        ln = e * np.float32(0.6931471805599453) + two * (s + s * z * p)
        r = np.sqrt(max(np.float32(0.0), -two * ln))
        # an angle in (−π/4, π/4) from 30 bits, and two bits for the quadrant
        t = (np.float32(el[i] & np.uint32(0x3FFFFFFF)) * np.float32(2.0**-30) - half) * np.float32(1.5707963267948966)
        z = t * t
        sine = np.float32(1 / 362880)
        sine = sine * z - np.float32(1 / 5040)
        sine = sine * z + np.float32(1 / 120)
        sine = sine * z - np.float32(1 / 6)
        sine = r * (t + t * z * sine)
        cosine = np.float32(1 / 40320)
        cosine = cosine * z - np.float32(1 / 720)
        cosine = cosine * z + np.float32(1 / 24)
        cosine = cosine * z - half
        cosine = r * (one + z * cosine)
        if el[i] & np.uint32(0x80000000):
            cosine = -cosine
        if el[i] & np.uint32(0x40000000):
            x[i] = cosine
            y[i] = sine
        else:
            x[i] = sine
            y[i] = cosine

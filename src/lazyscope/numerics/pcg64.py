"""The 64-bit numbers of NumPy's generator PCG64, twice as fast and bit for bit: half of drawing a normal number.

PCG64 (O'Neill 2014) is s ← Ms + c modulo 2¹²⁸, and each number is a permutation of the new s. A product of 128 bits
waits for the one before it. Four steps are s ← M⁴s + (1 + M + M² + M³)c, so that four lanes, each four steps at a time,
need not wait for one another. Benchmark: `sgd_against_torch`, sampling included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from lazyscope.numerics.compiled import jitted

Bits = NDArray[np.uint64]

_M = 0x2360ED051FC65DA44385DF649FCCF645
_LANES = 4


def fill(out: Bits, rng: np.random.Generator) -> None:
    """Fill `out` with what rng.integers would, and leave `rng` where it would: 3 multiplications a number.

    >>> out = np.empty(5, dtype=np.uint64)
    >>> fill(out, np.random.default_rng(0))
    >>> bool((out == np.random.default_rng(0).integers(0, 2**64, 5, dtype=np.uint64)).all())
    True
    """
    generator = rng.bit_generator
    if type(generator) is not np.random.PCG64:
        out[:] = rng.integers(0, np.iinfo(np.uint64).max, size=out.size, dtype=np.uint64, endpoint=True)
        return
    with generator.lock:
        now = generator.state
        s, c = now["state"]["state"], now["state"]["inc"]
        lanes = _halves(*(_after(s, c, steps) for steps in range(1, _LANES + 1)))
        _permuted(lanes, _halves(_after(1, 0, _LANES), _after(0, c, _LANES)), out)
        now["state"]["state"] = _after(s, c, out.size)
        generator.state = now


def _after(s: int, c: int, n: int) -> int:
    """Return s after n steps, Mⁿs + c(Mⁿ − 1)/(M − 1); a power modulo (M − 1)2¹²⁸ leaves the quotient right."""
    power = pow(_M, n, (_M - 1) << 128)
    return (power * s + (power - 1) // (_M - 1) * c) % 2**128


def _halves(*numbers: int) -> Bits:
    """Return numbers of 128 bits as rows of their upper and lower 64."""
    return np.array([(number >> 64, number & (2**64 - 1)) for number in numbers], dtype=np.uint64)


def _product(_: Any, a: Any, b: Any) -> Any:
    """Tell numba how to take the upper 64 bits of a product: one instruction, which no expression in Python names."""

    def code(_context: Any, builder: Any, _signature: Any, factors: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(factor, wide) for factor in factors))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), code


_upper: Any = intrinsic(_product)


@jitted
def _advanced(h: np.uint64, l: np.uint64, step: Bits) -> tuple[np.uint64, np.uint64]:  # noqa: E741
    """Return As + C for s = 2⁶⁴h + l; the rows of `step` are A and C."""
    product = l * step[0, 1]
    lower = product + step[1, 1]
    upper = _upper(l, step[0, 1]) + h * step[0, 1] + l * step[0, 0] + step[1, 0] + np.uint64(lower < product)
    return upper, lower


@jitted
def _number(h: np.uint64, l: np.uint64) -> np.uint64:  # noqa: E741
    """Return h xor l, turned right by the uppermost six bits of h."""
    both, turn = h ^ l, h >> np.uint64(58)
    return (both >> turn) | (both << ((np.uint64(64) - turn) & np.uint64(63)))


@jitted
def _permuted(lanes: Bits, step: Bits, out: Bits) -> None:
    """Write the numbers of four lanes in turn; what is left of a last round, too."""
    h0, h1, h2, h3 = lanes[0, 0], lanes[1, 0], lanes[2, 0], lanes[3, 0]
    l0, l1, l2, l3 = lanes[0, 1], lanes[1, 1], lanes[2, 1], lanes[3, 1]
    whole = out.size - out.size % 4
    for i in range(0, whole, 4):
        out[i], out[i + 1], out[i + 2], out[i + 3] = _number(h0, l0), _number(h1, l1), _number(h2, l2), _number(h3, l3)
        h0, l0 = _advanced(h0, l0, step)
        h1, l1 = _advanced(h1, l1, step)
        h2, l2 = _advanced(h2, l2, step)
        h3, l3 = _advanced(h3, l3, step)
    for i in range(whole, out.size):
        out[i] = _number(h0, l0)
        h0, h1, h2, l0, l1, l2 = h1, h2, h3, l1, l2, l3

"""Σ_k c_k z^k and its first two derivatives in z, in one pass over a block of neurons.

With c_k = σ^{(k)}(u)/k! at u = w₀·x and z = w·x, the Taylor model and its derivatives in w are, for one neuron,

    v = Σ c_k z^k,     v′ = Σ k c_k z^{k−1},     v″ = Σ k(k−1) c_k z^{k−2},

each by Horner's scheme, all three together. Rows are neurons and columns samples, so that the sum over neurons runs
down the rows and every inner loop along memory. `fused` computes the c_k as well, which then never leave the
first-level cache: orders up to four of u₊^p/p! and of tanh, sigmoid and softplus. `combine` takes any table of them.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.activations import Activation
from lazyscope.activations.derivatives import taylor_coefficients
from lazyscope.numerics.compiled import compiled
from lazyscope.numerics.exponential import tanh_in_place

Array = NDArray[Any]

_BLOCK = 512  # columns at once: the rows of c, z, v, v′, v″ of one neuron stay in the first-level cache
_FUSED = 4  # the highest order that `fused` serves
_RECTIFIED, _RICCATI, _INTEGRAL = 0, 1, 2


def add_pieces(
    sigma: Activation, kept: Array, u: Array, z: Array, a: Array, total: Array, slope: Array, curvature: Array
) -> None:
    """Add Σ_r a_r v_ri to total_i; write v′ and v″ into slope and curvature unless empty. u may be overwritten.

    `kept` has a flag for each k = 0 … K: whether f^{(k)} belongs to the model. About 4K flops an entry.

    >>> u, z, total, none = np.full((1, 1), 3.0), np.full((1, 1), 0.5), np.zeros(1), np.empty((0, 1))
    >>> slope = np.empty((1, 1))
    >>> add_pieces(Activation("square"), np.array([0.0, 1.0, 1.0]), u, z, np.ones(1), total, slope, none)
    >>> float(total[0]), float(slope[0, 0])  # 2·3·½ + ½², and 2·3 + 2·½
    (3.25, 7.0)
    """
    order, named = len(kept) - 1, sigma.name_or_callable
    flags = np.zeros(_FUSED + 1, dtype=u.dtype)
    flags[: min(order, _FUSED) + 1] = kept[: _FUSED + 1]
    rectified = sigma.rectified
    if order <= _FUSED and rectified is not None and rectified.parity == 0 and order <= rectified.power <= 5:
        p = rectified.power
        scale = [flags[k] / (factorial(p - k) * factorial(k)) if k <= p else 0.0 for k in range(_FUSED + 1)]
        ladder = [float(p - k >= 1) for k in range(_FUSED + 1)]
        constants = np.array([*scale, *ladder], dtype=u.dtype)
        fused(_RECTIFIED, constants, u, z, a, total, slope, curvature)
    elif order <= _FUSED and named == "tanh":
        tanh_in_place(u)
        fused(_RICCATI, np.array([*flags, 1.0, 0.0, -1.0], dtype=u.dtype), u, z, a, total, slope, curvature)
    elif order <= _FUSED and named in ("sigmoid", "softplus") and not (named == "softplus" and flags[0]):
        u *= u.dtype.type(0.5)
        tanh_in_place(u)
        u += u.dtype.type(1.0)
        u *= u.dtype.type(0.5)
        kind = _RICCATI if named == "sigmoid" else _INTEGRAL
        fused(kind, np.array([*flags, 0.0, 1.0, -1.0], dtype=u.dtype), u, z, a, total, slope, curvature)
    else:
        c = taylor_coefficients(sigma, u, order)
        combine(c, kept.astype(u.dtype), z, a, total, slope, curvature)


@compiled
def fused(
    kind: int, constants: Array, u: Array, z: Array, a: Array, total: Array, slope: Array, curvature: Array
) -> None:
    """Fill c_0 … c_4 for 512 samples of one neuron, then add v, v′, v″: two loops, about 30 flops an entry.

    kind 0: u₊^p/p!, constants = flags/((p−k)! k!), then 1 where p − k ≥ 1. kind 1: u holds y with y′ = α + βy + γy²,
    constants = flags, then α, β, γ. kind 2: the integral of that y, without c_0.
    """
    neurons, samples = z.shape
    wants_slope, wants_curvature = slope.size > 0, curvature.size > 0
    k0, k1, k2, k3, k4 = constants[0], constants[1], constants[2], constants[3], constants[4]
    p, q, s = constants[5], constants[6], constants[7]
    zero, one, two = z.dtype.type(0.0), z.dtype.type(1.0), z.dtype.type(2.0)
    half, third, quarter = z.dtype.type(0.5), z.dtype.type(1.0 / 3.0), z.dtype.type(0.25)
    six, twelve = z.dtype.type(6.0), z.dtype.type(12.0)
    c0, c1, c2, c3, c4 = (
        np.empty(_BLOCK, z.dtype),
        np.empty(_BLOCK, z.dtype),
        np.empty(_BLOCK, z.dtype),
        np.empty(_BLOCK, z.dtype),
        np.empty(_BLOCK, z.dtype),
    )
    unused = np.empty(_BLOCK, z.dtype)
    for r in range(neurons):
        weight = a[r]
        for start in range(0, samples, _BLOCK):
            width = min(samples, start + _BLOCK) - start
            at, x = u[r, start : start + width], z[r, start : start + width]
            if kind == 0:
                step3, step2, step1, step0 = constants[8], constants[7], constants[6], constants[5]
                step4 = constants[9]
                for i in range(width):
                    positive = max(at[i], zero)
                    power = (one if at[i] > zero else zero) * (step4 * positive + (one - step4))
                    c4[i] = k4 * power
                    power *= step3 * positive + (one - step3)
                    c3[i] = k3 * power
                    power *= step2 * positive + (one - step2)
                    c2[i] = k2 * power
                    power *= step1 * positive + (one - step1)
                    c1[i] = k1 * power
                    power *= step0 * positive + (one - step0)
                    c0[i] = k0 * power
            elif kind == 1:
                for i in range(width):
                    y0 = at[i]
                    y1 = p + q * y0 + s * y0 * y0
                    y2 = half * (q * y1 + two * s * y0 * y1)
                    y3 = third * (q * y2 + s * (two * y0 * y2 + y1 * y1))
                    y4 = quarter * (q * y3 + two * s * (y0 * y3 + y1 * y2))
                    c0[i] = k0 * y0
                    c1[i] = k1 * y1
                    c2[i] = k2 * y2
                    c3[i] = k3 * y3
                    c4[i] = k4 * y4
            else:
                for i in range(width):
                    y0 = at[i]
                    y1 = p + q * y0 + s * y0 * y0
                    y2 = half * (q * y1 + two * s * y0 * y1)
                    y3 = third * (q * y2 + s * (two * y0 * y2 + y1 * y1))
                    c0[i] = zero
                    c1[i] = k1 * y0
                    c2[i] = k2 * half * y1
                    c3[i] = k3 * third * y2
                    c4[i] = k4 * quarter * y3
            values = total[start : start + width]
            firsts = slope[r, start : start + width] if wants_slope else unused
            for i in range(width):
                t = x[i]
                v = c4[i] * t + c3[i]
                d = c4[i] * t + v
                v = v * t + c2[i]
                d = d * t + v
                v = v * t + c1[i]
                firsts[i] = d * t + v
                values[i] += weight * (v * t + c0[i])
            if wants_curvature:
                seconds = curvature[r, start : start + width]
                for i in range(width):
                    t = x[i]
                    seconds[i] = (twelve * c4[i] * t + six * c3[i]) * t + two * c2[i]


@compiled
def combine(c: Array, kept: Array, z: Array, a: Array, total: Array, slope: Array, curvature: Array) -> None:
    """Do the same from a table c of shape (K + 1, m, n), any K: 2K flops an entry for v, as many for a derivative."""
    highest, (neurons, samples) = c.shape[0] - 1, z.shape
    wants_slope, wants_curvature = slope.size > 0, curvature.size > 0
    zero, two = z.dtype.type(0.0), z.dtype.type(2.0)
    for r in range(neurons):
        weight = a[r]
        for start in range(0, samples, _BLOCK):
            stop = min(samples, start + _BLOCK)
            values, firsts, seconds = total[start:stop], slope[r : r + 1, start:stop], curvature[r : r + 1, start:stop]
            x = z[r, start:stop]
            v = c[highest, r, start:stop] * kept[highest]
            if wants_slope:
                for i in range(stop - start):
                    firsts[0, i] = zero
            if wants_curvature:
                for i in range(stop - start):
                    seconds[0, i] = zero
            for k in range(highest - 1, -1, -1):
                if wants_curvature:
                    for i in range(stop - start):
                        seconds[0, i] = seconds[0, i] * x[i] + firsts[0, i]
                if wants_slope:
                    for i in range(stop - start):
                        firsts[0, i] = firsts[0, i] * x[i] + v[i]
                if kept[k] != zero:
                    lower = c[k, r, start:stop]
                    for i in range(stop - start):
                        v[i] = v[i] * x[i] + lower[i]
                else:
                    for i in range(stop - start):
                        v[i] = v[i] * x[i]
            for i in range(stop - start):
                values[i] += weight * v[i]
            if wants_curvature:
                for i in range(stop - start):
                    seconds[0, i] *= two

"""Σ_k c_k z^k and its first two derivatives in z, in one pass over a block of neurons.

With c_k = σ^{(k)}(u)/k! at u = w₀·x and z = w·x, the Taylor model and its derivatives in w are, for one neuron,

    v = Σ c_k z^k,     v′ = Σ k c_k z^{k−1},     v″ = Σ k(k−1) c_k z^{k−2},

each by Horner's scheme, all three together. Rows are neurons and columns samples, so that the sum over neurons runs
down the rows and every inner loop along memory.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from lazyscope.compiled import compiled

_BLOCK = 512  # columns at once: the rows of c, z, v, v′, v″ of one neuron stay in the first-level cache


@compiled
def combine(
    c: NDArray[Any],
    kept: NDArray[Any],
    z: NDArray[Any],
    a: NDArray[Any],
    total: NDArray[Any],
    slope: NDArray[Any],
    curvature: NDArray[Any],
) -> None:
    """total_i ← total_i + Σ_r a_r v_ri; slope ← v′ and curvature ← v″ where they are not empty.

    c is (K + 1, m, n), z (m, n); kept has K + 1 flags, one for each k that belongs to the model. 2K flops an entry for
    v, and as many for each derivative.
    """
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

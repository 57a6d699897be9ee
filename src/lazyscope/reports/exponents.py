"""Exponents: how a size falls or grows with the width, fitted on logarithms, one fit for every draw."""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray


def exponents(widths: FloatArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the slope of log size against log width, mean and standard error over draws; sizes is (…, width, draw).

    The standard error is NaN from a single draw, and the slope −inf where a size is exactly zero.

    >>> m = np.array([1e2, 1e3, 1e4])
    >>> sizes = np.stack([2.0 * m**-0.25, 3.0 * m**-0.25], axis=-1)
    >>> slope, stderr = exponents(m, sizes)
    >>> print(f"{slope:.4f} {stderr:.4f}")
    -0.2500 0.0000
    """
    x = np.log(np.asarray(widths, dtype=np.float64))
    x = x - x.mean()
    zero = np.any(sizes <= 0.0, axis=(-2, -1))
    logs = np.log(np.where(sizes > 0.0, sizes, 1.0))
    slopes = np.einsum("w,...wd->...d", x, logs) / (x @ x)
    draws = slopes.shape[-1]
    spread = slopes.std(axis=-1, ddof=1) / np.sqrt(draws) if draws > 1 else np.full(slopes.shape[:-1], np.nan)
    return np.where(zero, -np.inf, slopes.mean(axis=-1)), np.where(zero, 0.0, spread)

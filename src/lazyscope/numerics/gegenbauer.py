"""Gegenbauer polynomials on the sphere: quadrature for one coordinate, and how many harmonics a degree has.

SciPy has the polynomials, but not normalised and weighted so that degree 160 in 10⁶ dimensions stays within float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.quadrature import panels

_REACH = 40.0  # of √d t: beyond it the density is below e^−800, or the sphere ends first


def coordinate(kinks: Sequence[float], d: int, degree: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nodes t, weights and q_k(t)√p(t), k ≤ degree, for the law p of one coordinate of the unit sphere.

    q_k is the Gegenbauer polynomial of degree k with E[q_k(t)²] = 1; `kinks` are those of a function of √d t.
    E[F(t)q_k(t)] = Σ w F(t) q_k(t)√p(t): as in `quadrature`, one factor √p is in the weights, and nothing overflows.
    With t = sin φ the density is ∝ cos^{d−2}φ, smooth; panels end at the kinks.

    >>> t, w, table = coordinate((), 10, 4)
    >>> abs(table @ (w * t**2)).round(6)  # 1/d in degree 0, the rest in degree 2
    array([0.1     , 0.      , 0.122474, 0.      , 0.      ])
    """
    reach = min(0.5 * np.pi, _REACH / np.sqrt(d))
    places = np.array([0.0, *kinks]) / np.sqrt(d)
    edges = np.unique(np.concatenate([[-reach, reach], np.arcsin(places[np.abs(places) < np.sin(reach)])]))
    width = min(0.6 / np.sqrt(d), 6.0 / degree)
    pieces = [np.linspace(a, b, int(np.ceil((b - a) / width)) + 1) for a, b in pairwise(edges)]
    phi, weights = panels(np.unique(np.concatenate(pieces)))
    t = np.sin(phi)
    root = np.exp(0.5 * (d - 2.0) * np.log(np.cos(phi)))
    total = np.sqrt(np.sum(weights * root**2))
    table = np.empty((degree + 1, t.size))
    table[0] = root / total
    beside = np.zeros(degree + 1)
    k = np.arange(1.0, degree + 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        beside[1:] = np.sqrt(k * (k + d - 3.0) / ((2.0 * k + d - 2.0) * (2.0 * k + d - 4.0)))
    beside[1] = np.sqrt(1.0 / d)  # E[t²]; the formula is 0/0 on the circle
    table[1] = t * table[0] / beside[1]
    for j in range(1, degree):
        table[j + 1] = (t * table[j] - beside[j] * table[j - 1]) / beside[j + 1]
    return t, weights * root / total, table


def multiplicities(d: int, degree: int) -> FloatArray:
    """Return B(d, k) = (2k + d − 2)/k · C(k + d − 3, k − 1) for k ≤ degree: how many harmonics a degree has.

    >>> multiplicities(3, 4), multiplicities(2, 3)
    (array([1., 3., 5., 7., 9.]), array([1., 2., 2., 2.]))
    """
    from scipy.special import gammaln

    k = np.arange(1.0, degree + 1.0)
    if d == 2:
        return np.concatenate([[1.0], np.full(degree, 2.0)])
    # C(k + d − 3, k − 1), whole where float64 can hold it
    logs = gammaln(k + d - 2.0) - gammaln(k) - gammaln(d - 1.0)
    counts = (2.0 * k + d - 2.0) / k * np.exp(np.minimum(logs, 700.0))
    return np.concatenate([[1.0], np.where(counts < 2.0**50, np.rint(counts), counts)])


def polynomials(t: FloatArray, d: int, degree: int) -> FloatArray:
    """Return Q_k(t) for k ≤ degree, (degree + 1, …), with Q_k(1) = 1.

    (k + d − 2)Q_{k+1} = (2k + d − 2) t Q_k − k Q_{k−1}; Legendre's for d = 3, Chebyshev's for d = 2.

    >>> polynomials(np.array([0.5]), 3, 2).ravel()
    array([ 1.   ,  0.5  , -0.125])
    """
    table = np.ones((degree + 1, *t.shape))
    if degree:
        table[1] = t
    for k in range(1, degree):
        table[k + 1] = ((2.0 * k + d - 2.0) * t * table[k] - k * table[k - 1]) / (k + d - 2.0)
    return table

"""How likely n samples are separable with N Gaussian features, at given n and N: no limit is taken.

An invertible map of the features changes no separability, so they may be isotropic, and only the first of them, G,
knows the label: S = rG + √(1 − r²)Z is the score, v_i = y_iG_i. The other N − 1 are independent of the labels, so that
they span a uniformly random subspace L of ℝⁿ, dim L = N − 1. Data are separable if and only if L meets the cone

    C = {x + cv : x ≥ 0, c real}

outside of 0. By the kinematic formula (Amelunxen, Lotz, McCoy and Tropp 2014) that has the probability
2 P(V = j + 1, j + 3, …), j = n − N + 1, where V, whose law are the intrinsic volumes of C, is the dimension of the face
of C that is nearest to a Gaussian vector g. With c the minimiser of ‖(g − cv)₋‖² it is

    V = 1 + #{i : g_i > cv_i},

so that it can be drawn: no linear program, no features. With t_j = P(V ≥ j), the probability lies between t_{j+1} and
t_j. Their mean has less noise than the sum over every other value; it is too large by a quarter of the second
difference of t around, as it is exactly for binomials, and that is taken off.
Without signal C is a rotated orthant and the probability that of Cover (1965).
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.problems import LinearLabels
from lazyscope.weights import generator

_STEPS = 50  # Newton's method for c ends in fewer: the function is convex and piecewise quadratic
_DRAWS = 4000


def separable_share(
    problem: LinearLabels, seen: FloatArray, N: int, n: int, draws: int = _DRAWS
) -> tuple[float, float]:
    """Return the probability that n samples are separable with N features, and what it leaves out.

    `seen` is r², what the features see of the score's variance: several values for several draws of the weights, each
    of which counts as much. Left out is the standard error of so many `draws` of V.

    >>> share, left_out = separable_share(LinearLabels(4.0), np.ones(1), 16, 60)
    >>> bool(0.6 < share < 0.8), bool(left_out < 0.02)
    (True, True)
    """
    rng = generator(0, N, n)
    V = _faces(problem, np.resize(np.asarray(seen, dtype=np.float64), draws), n, rng)
    j = n - N + 1
    before, at, beyond, after = ((k <= V).astype(np.float64) for k in (j - 1, j, j + 1, j + 2))
    each = 0.5 * (at + beyond) - 0.125 * (before - at - beyond + after)
    return float(np.clip(each.mean(), 0.0, 1.0)), float(each.std() / np.sqrt(draws))


def _faces(problem: LinearLabels, r2: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw V for as many (v, g) as there are r²; 40·n bytes for each."""
    G, g = rng.standard_normal((2, r2.size, n))
    r = np.sqrt(r2)[:, None]
    score = r * G + np.sqrt(np.maximum(0.0, 1.0 - r**2)) * rng.standard_normal(G.shape)
    v = np.where(rng.random(G.shape) < problem.probability(problem.signal * score), G, -G)
    c, negative = np.zeros((r2.size, 1)), g < 0.0
    for _ in range(_STEPS):
        active = np.where(negative, v, 0.0)
        c = np.einsum("ij,ij->i", active, g) / np.maximum(np.einsum("ij,ij->i", active, active), 1e-300)
        before, negative = negative, g < c[:, None] * v
        if np.array_equal(before, negative):
            break
    return np.asarray(1 + np.count_nonzero(~negative, axis=1))

"""The moment of quadratic forms behind the noise of a step, against quadrature that is exact for polynomials."""

from itertools import product

import numpy as np
import pytest

from lazyscope.population.descent.noise import noise_factor
from lazyscope.population.environment import Environment


def by_quadrature(world, W, a, c, N):
    """E[r²‖φ‖²]/(E[r²]E[‖φ‖²]) from its definition; eight nodes are exact to degree 15, and r²‖φ‖² is of degree 8."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(8)
    z = np.array(list(product(nodes, repeat=W.shape[1])))
    share = np.prod(np.array(list(product(shares / shares.sum(), repeat=W.shape[1]))), axis=1)
    moments = np.zeros(3)
    for here in world:
        C = np.diag(here.C) if here.C.ndim == 1 else here.C
        B = np.zeros_like(C) if here.B is None else np.diag(here.B) if here.B.ndim == 1 else here.B
        x = z @ np.linalg.cholesky(C).T
        target = here.m + np.einsum("ni,ij,nj->n", x, B, x) - np.trace(B @ C)
        squares = (target - c - np.sum(2.0 * (x @ W.T) * (x @ a.T), axis=1)) ** 2
        features = [2.0 * (x @ w)[:, None] * x / np.sqrt(N) for w in W]
        lengths = 1.0 + sum(np.sum(feature**2, axis=1) for feature in features)
        moments += here.probability * np.array([share @ squares, share @ lengths, share @ (squares * lengths)])
    return moments[2] / (moments[0] * moments[1])


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_quadrature_gives(seed):
    rng = np.random.default_rng(seed)
    d, rows, N = 3, 2, 5
    W, a, c = rng.standard_normal((rows, d)), rng.standard_normal((rows, d)), rng.standard_normal()
    root = rng.standard_normal((d, d))
    B = rng.standard_normal((d, d))
    world = (
        Environment(0.3, root @ root.T + 0.1 * np.eye(d), 1.0),
        Environment(0.5, rng.uniform(0.5, 2.0, d), -0.5, B + B.T),
        Environment(0.2, np.ones(d), 0.0, rng.standard_normal(d)),
    )
    assert noise_factor(world, W, a, c, N) == pytest.approx(by_quadrature(world, W, a, c, N), rel=1e-10)

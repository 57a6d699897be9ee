"""Integrals of ReLU, erf and squares where fields are parallel, opposite or coplanar, or nearly so."""

from itertools import combinations
from math import gamma, pi, sqrt

import numpy as np
import pytest

from lazyscope.limits.sgd.order_parameters import integrals, relu
from lazyscope.limits.sgd.order_parameters.integrals import ERF, RELU, SQUARE

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
AXIS = np.array([0.36, 0.48, 0.8])
SIZES = (1e-6, 1.0, 1e3)


def graded(edges):
    """A rule on the pieces between `edges`, in panels that shrink towards both ends of each: roots are smooth there."""
    steps = np.concatenate([[0.0], 0.5 * 0.15 ** np.arange(12.0, -1.0, -1.0)])
    length = np.diff(edges)[:, None]
    near, far = steps[:-1], steps[1:]
    low = np.concatenate([edges[:-1, None] + length * near, edges[1:, None] - length * far], axis=1).ravel()
    high = np.concatenate([edges[:-1, None] + length * far, edges[1:, None] - length * near], axis=1).ravel()
    half = 0.5 * (high - low)[:, None]
    return (0.5 * (high + low)[:, None] + half * NODES).ravel(), (half * WEIGHTS).ravel()


def on_the_sphere(V, moments):
    """E[Π 1{⟨v, z⟩ > 0} Π_m ⟨v_m, z⟩], z ~ N(0, I₃): the length of z by its moments, its direction on half-circles.

    On a half-circle between the poles each field is a sine, positive on an interval; half-circles are split where
    they meet a vertex of the spherical polygon.
    """
    east = np.cross(AXIS, [0.0, 0.0, 1.0])
    east /= np.linalg.norm(east)
    north = np.cross(AXIS, east)
    U = V / np.linalg.norm(V, axis=1)[:, None]
    vertices = np.array([np.cross(p, q) for p, q in combinations([*U, AXIS], 2)])
    turns = np.arctan2(vertices @ north, vertices @ east)
    edges = np.unique(np.concatenate([[0.0, 2 * pi], np.mod(turns, 2 * pi), np.mod(turns + pi, 2 * pi)]))
    phi, weight = graded(edges)
    along, across = V @ AXIS, np.cos(phi)[:, None] * (V @ east) + np.sin(phi)[:, None] * (V @ north)
    middle = np.arctan2(across, along)
    middle = np.where(middle < -pi / 2, middle + 2 * pi, middle)
    low, high = np.maximum(0.0, (middle - pi / 2).max(axis=1)), np.minimum(pi, (middle + pi / 2).min(axis=1))
    half = 0.5 * np.maximum(high - low, 0.0)[:, None]
    theta = 0.5 * (low + high)[:, None] + half * NODES
    values = np.sin(theta)
    for m in moments:
        values = values * (along[m] * np.cos(theta) + across[:, m : m + 1] * np.sin(theta))
    power = 2 + len(moments)  # ∫ r^power exp(−r²/2) dr
    return float(weight @ (half * values @ WEIGHTS)) * 2 ** ((power - 1) / 2) * gamma((power + 1) / 2) / (2 * pi) ** 1.5


def fields(rng, flatness=1.0):
    """Four unit vectors, in a plane if `flatness` is 0, half of the time with a wedge where all are positive."""
    A = rng.standard_normal((4, 3))
    if rng.random() < 0.5:
        A[:, 0] = np.abs(A[:, 0]) + 0.5
    A[:, 2] *= flatness
    return A / np.linalg.norm(A, axis=1)[:, None]


def agree(A, rng):
    """All integrals of ReLU at random variances, relative to the sizes of their fields; C is that of the fields A."""
    sizes = np.sqrt(rng.choice(SIZES, 4))
    V = A * sizes[:, None]
    C = V @ V.T
    four = integrals.four(RELU, C, 0, 1, 2, 3) / (sizes[2] * sizes[3])
    assert four == pytest.approx(on_the_sphere(A, (2, 3)), abs=1e-10)
    assert relu.orthant4(C) == pytest.approx(on_the_sphere(A, ()), abs=1e-10)
    one = integrals.slopes_one(RELU, C, 0, 1, 2) / sizes[2]
    assert one == pytest.approx(on_the_sphere(A[:3], (2,)), abs=1e-10)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("pair", [(0, 1), (2, 3), (0, 2), (1, 3)])
@pytest.mark.parametrize("away", [0.0, 1e-12, 1e-8, 1e-4])
def test_four_fields_of_which_two_are_nearly_parallel_or_opposite(sign, pair, away):
    """Correlations ±(1 − `away`), variances 1e-6 to 1e3."""
    rng, (p, q) = np.random.default_rng(7), pair
    A = fields(rng)
    rest = A[q] - (A[q] @ A[p]) * A[p]
    A[q] = sign * ((1.0 - away) * A[p] + sqrt(away * (2.0 - away)) * rest / np.linalg.norm(rest))
    agree(A, rng)


@pytest.mark.parametrize("flatness", [0.0, 1e-9, 1e-7, 1e-5, 1e-3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_four_fields_in_three_dimensions_or_nearly_in_a_plane(flatness, seed):
    rng = np.random.default_rng(seed)
    agree(fields(rng, flatness), rng)


@pytest.mark.parametrize("places", [(0, 0, 0, 1), (0, 0, 1, 1), (0, 1, 0, 1), (0, 0, 0, 0), (1, 0, 0, 0)])
def test_several_parallel_fields(places):
    rng = np.random.default_rng(2)
    agree(np.abs(fields(rng))[list(places)], rng)


@pytest.mark.parametrize("away", [1e-16, 3e-15, 1e-14, 1e-13])
def test_what_is_smooth_at_parallel_fields_has_no_step(away):
    """I₂ and I₃ are smooth at ρ = 1, also where fields begin to count as parallel."""
    C = np.array([[1.0, 1.0 - away], [1.0 - away, 1.0]])
    assert integrals.two(RELU, C, 0, 1) == pytest.approx(0.5 * (1.0 - away), abs=1e-15)
    assert integrals.three(RELU, C, 0, 1, 1) == pytest.approx(0.5, abs=1e-14)


@pytest.mark.parametrize("c", [-1.0, -1.0 + 1e-12, 0.3, 1.0 - 1e-8, 1.0])
@pytest.mark.parametrize("a", SIZES)
@pytest.mark.parametrize("b", SIZES)
def test_squares_at_the_same_extremes(a, b, c):
    """Polynomials of degree six: a product rule of four Gauss–Hermite nodes is exact."""
    A = fields(np.random.default_rng(1))
    rest = A[3] - (A[3] @ A[2]) * A[2]
    A[3] = c * A[2] + sqrt(max(0.0, 1.0 - c * c)) * rest / np.linalg.norm(rest)
    A *= np.sqrt([a, b, b, a])[:, None]
    x, w = np.polynomial.hermite_e.hermegauss(4)
    z = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = np.multiply.outer(np.multiply.outer(w, w), w).ravel() / (2 * pi) ** 1.5
    g, C = z @ A.T, A @ A.T
    size = a * a * b * b
    for found, values, scale in (
        (integrals.two(SQUARE, C, 2, 3), g[:, 2] ** 2 * g[:, 3] ** 2, a * b),
        (integrals.three(SQUARE, C, 0, 2, 3), 2 * g[:, 0] * g[:, 2] * g[:, 3] ** 2, a * sqrt(a * b)),
        (integrals.slopes_one(SQUARE, C, 0, 1, 3), 4 * g[:, 0] * g[:, 1] * g[:, 3] ** 2, a * sqrt(a * b)),
        (integrals.four(SQUARE, C, 0, 1, 2, 3), 4 * np.prod(g[:, :2], axis=1) * np.prod(g[:, 2:] ** 2, axis=1),
         size / sqrt(a * b)),
    ):  # fmt: skip
        assert found / scale == pytest.approx(weight @ values / scale, abs=1e-10)


@pytest.mark.parametrize("c", [-1.0, -1.0 + 1e-12, 1.0 - 1e-8, 1.0])
@pytest.mark.parametrize("a", SIZES)
@pytest.mark.parametrize("b", SIZES)
def test_error_functions_of_parallel_fields(a, b, c):
    """Without quadrature: at ρ = ±1 both fields are multiples of one, and near it I₂ is smooth in ρ."""
    C = np.array([[a, c * sqrt(a * b)], [c * sqrt(a * b), b]])
    x, w = np.polynomial.legendre.leggauss(200)
    s = 0.5 * (x + 1.0)  # Price's theorem: dI₂/dc = J₂ at covariance sc
    slope = [integrals.slopes(ERF, np.array([[a, t * C[0, 1]], [t * C[0, 1], b]]), 0, 1) for t in s]
    assert integrals.two(ERF, C, 0, 1) == pytest.approx(C[0, 1] * 0.5 * (w @ slope), abs=1e-10)

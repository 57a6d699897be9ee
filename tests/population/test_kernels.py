"""Pair kernels: two routes, Price's theorem, and what happens when weights are parallel."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.population.kernels import RectifiedKernel, SeriesKernel, pair_kernel, rectified_moment

ORDERS = [(0, 0), (1, 1), (2, 0), (2, 2), (3, 1)]
S = np.array([0.6, 1.0, 1.4])
ALL = slice(0, 3)


def cosines(largest):
    r = np.random.default_rng(1).uniform(-largest, largest, (3, 3))
    return (r + r.T) / 2


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["relu", "relu2", "relu3", "abs"])
def test_closed_form_and_series_agree(name, order):
    sigma = ls.Activation(name)
    r = cosines(0.7)
    closed = pair_kernel(sigma, S, 0.7, order=3)
    assert isinstance(closed, RectifiedKernel)
    series = SeriesKernel(sigma, S, 0.7, order=3)(*order, r, ALL, ALL)
    assert series == pytest.approx(closed(*order, r, ALL, ALL), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("name", ["sign", "step"])
def test_discontinuous_activations_agree_too(name):
    r = cosines(0.7)
    closed = pair_kernel(ls.Activation(name), S, 0.7, order=0)(0, 0, r, ALL, ALL)
    series = SeriesKernel(ls.Activation(name), S, 0.7, order=0)(0, 0, r, ALL, ALL)
    assert series == pytest.approx(closed, abs=1e-12)


def test_arcsine_law_of_erf():
    # E[erf(s_i ξ) erf(s_j η)] = (2/π) arcsin(2 s_i s_j r/√((1+2s_i²)(1+2s_j²)))
    r = cosines(1.0)
    ss = np.outer(S, S)
    norm = np.sqrt(np.outer(1 + 2 * S**2, 1 + 2 * S**2))
    value = pair_kernel(ls.Activation("erf"), S, 1.0, order=0)(0, 0, r, ALL, ALL)
    assert value == pytest.approx(2 / np.pi * np.arcsin(2 * ss * r / norm), abs=1e-13)


@pytest.mark.parametrize("name", ["relu", "relu3", "abs", "tanh", "gelu", "square", "cos"])
def test_prices_theorem(name):
    # ∂T₀₀/∂G_ij = T₁₁ and ∂T₁₁/∂G_ij = T₂₂ with G_ij = s_i s_j r; ∂T₀₀/∂G_ii = T₂₀/2, ∂T₁₁/∂G_ii = T₃₁/2
    sigma, r, h = ls.Activation(name), cosines(0.6), 1e-6
    kernel = pair_kernel(sigma, S, 0.7, order=3)
    ss = np.outer(S, S)
    for low, high in [((0, 0), (1, 1)), ((1, 1), (2, 2))]:
        slope = (kernel(*low, r + h, ALL, ALL) - kernel(*low, r - h, ALL, ALL)) / (2 * h) / ss
        assert slope == pytest.approx(kernel(*high, r, ALL, ALL), rel=1e-7, abs=1e-8)
    for low, high in [((0, 0), (2, 0)), ((1, 1), (3, 1))]:
        ends = []
        for sign in (1, -1):  # move s_0² alone, holding G_0j
            moved = S.copy()
            moved[0] = np.sqrt(S[0] ** 2 + sign * h)
            moved_r = r.copy()
            moved_r[0, 1:] *= S[0] / moved[0]
            ends.append(pair_kernel(sigma, moved, 0.7, order=3)(*low, moved_r, ALL, ALL)[0, 1:])
        slope = (ends[0] - ends[1]) / (2 * h)
        assert slope == pytest.approx(0.5 * kernel(*high, r, ALL, ALL)[0, 1:], rel=1e-6, abs=1e-7)


def test_closed_form_holds_at_parallel_weights():
    one = np.ones((1, 1))
    for name, power in [("relu", 0.5), ("abs", 1.0), ("sign", 1.0), ("step", 0.5), ("relu3", 15 / 72)]:
        sigma = ls.Activation(name)
        kernel = pair_kernel(sigma, np.ones(1), 1.0, order=0)
        assert kernel(0, 0, one, slice(0, 1), slice(0, 1)) == pytest.approx(power, abs=1e-14)
        assert power == pytest.approx(float(sigma.second_moment(1.0)), abs=1e-14)
    assert rectified_moment(1, 1, -one) == pytest.approx(0.0, abs=1e-16)


def test_a_rough_callable_with_parallel_weights_is_refused():
    """One that is curved between its kinks; for straight lines there is a closed form (test_piecewise_kernel)."""
    rough = ls.Activation(lambda u: np.where(u > 0.5, np.sin(u), np.sin(0.5)), kinks=(0.5,))
    with pytest.raises(ls.NotConverged, match="nearly parallel"):
        SeriesKernel(rough, S, 0.9999, order=0)
    W = np.array([[1.0, 1.0], [0.0, 1e-3]])
    with pytest.raises(ls.NotConverged, match="larger d"):
        ls.exact(ls.QuadraticTarget([1.0, 2.0]), ls.RandomFeatures(rough, weights=ls.FixedWeights(W)))

"""Kernels of infinitely wide regimes at a user's rows: closed forms against series and against drawn neurons."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.estimators.base import FirstLayer
from lazyscope.estimators.tangent import Tangent
from lazyscope.lenses.forecast.kernels import gram, of_rows

ROWS = np.random.default_rng(0).standard_normal((6, 4)) * np.linspace(0.5, 1.5, 6)[:, None]


@pytest.mark.parametrize("tangent", [False, True])
def test_the_closed_form_of_erf_is_its_series(tangent):
    from scipy.special import erf

    series = ls.Activation(lambda u: erf(u))
    closed = of_rows(ROWS, ls.Activation("erf"), tangent=tangent)
    assert np.allclose(of_rows(ROWS, series, tangent=tangent), closed, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("regime", [ls.RandomFeatures, ls.NeuralTangent])
@pytest.mark.parametrize("sigma", ["relu", "tanh"])
def test_drawn_neurons_fluctuate_around_the_kernel(regime, sigma):
    N = 40_000
    layer = FirstLayer.draw(ROWS, width=N, activation=sigma, scale="auto", bias=0.3, random_state=0)
    if regime is ls.RandomFeatures:
        U = layer.features(ROWS)
        drawn = U @ U.T
    else:
        drawn = Tangent.of(layer, ROWS, 1.0 / np.sqrt(np.mean(np.sum(ROWS**2, axis=1))), 0.3).kernel()
    K = gram(regime(sigma), ROWS, "auto", 0.3)
    assert np.allclose(K, K.T, rtol=0, atol=1e-12)
    assert np.max(np.abs(drawn - K)) < 5.0 * np.max(np.abs(K)) * 2.0 / np.sqrt(N)  # five standard errors of a mean


def test_a_row_of_zeros_has_the_features_of_zero():
    X = np.vstack([ROWS, np.zeros(4)])
    assert not np.any(gram(ls.RandomFeatures("relu"), X, 1.0, 0.0)[-1])
    K = gram(ls.RandomFeatures("cos"), X, 1.0, 0.0)
    expected = np.exp(-0.5 * np.sum(X**2, axis=1))  # E[cos z] = exp(−s²/2), cos 0 = 1
    assert np.allclose(K[-1], expected, rtol=1e-10) and np.allclose(K[:, -1], expected, rtol=1e-10)


def test_scale_auto_takes_units_out():
    one, other = (gram(ls.RandomFeatures("tanh"), units * ROWS, "auto", 0.0) for units in (1.0, 1e3))
    assert np.allclose(one, other, rtol=1e-9)


def test_a_kernel_function_is_taken_as_it_is():
    assert np.array_equal(gram(lambda X, Z: X @ Z.T + 1.0, ROWS, "auto", 0.0), ROWS @ ROWS.T + 1.0)


@pytest.mark.parametrize(
    ("regime", "words"),
    [
        (ls.RandomFeatures("relu", weights=np.ones(4)), "isotropic weights"),
        (ls.RandomFeatures("relu", surrogate=True), "isotropic weights"),
        (ls.Trained("relu"), "be RandomFeatures"),
        (lambda X, Z: X, r"return a \(6, 6\) matrix"),
        (lambda X, Z: np.full((6, 6), np.nan), "real, finite"),
    ],
)
def test_other_regimes_are_refused_in_a_line(regime, words):
    with pytest.raises(ls.LazyscopeError, match=words):
        gram(regime, ROWS, "auto", 0.0)


@pytest.mark.parametrize("tangent", [False, True])
@pytest.mark.parametrize("sigma", ["relu", "erf", "tanh"])
def test_blocks_of_rows_are_parts_of_one_symmetric_matrix(sigma, tangent):
    rows = np.random.default_rng(1).standard_normal((300, 40)) / np.sqrt(40.0)  # three blocks
    K = of_rows(rows, ls.Activation(sigma), tangent=tangent)
    assert np.array_equal(K, K.T)
    some = np.r_[0:3, 126:131, 254:258, 297:300]
    assert np.max(np.abs(K[np.ix_(some, some)] - of_rows(rows[some], ls.Activation(sigma), tangent=tangent))) < 1e-12


def test_a_series_that_does_not_end_is_refused_in_words_about_rows():
    rows = np.array([[3.0, 0.0], [3.0, 1e-3], [0.0, 3.0]])
    with pytest.raises(ls.NotConverged, match=r"two rows are nearly parallel.*\(cosine 1\.000000\)"):
        of_rows(rows, ls.Activation("tanh"), tangent=True)

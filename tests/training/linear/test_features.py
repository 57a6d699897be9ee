"""Streamed normal equations against a plain least-squares fit and against `exact`."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.training.linear import features as module
from lazyscope.training.linear.features import Features, fit, fit_few
from lazyscope.training.sgd.stream import batches, law_of


def test_streaming_is_plain_least_squares(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 64)  # many blocks, the last one short
    target = ls.QuadraticTarget.exponential(6)
    law, n = law_of(target), 1000
    W = np.random.default_rng(0).standard_normal((8, 6), dtype=np.float32)
    phi = Features(W, ls.Activation("relu"))
    a, mse = fit(law, phi, n, np.random.default_rng(1))
    blocks = -(-n // 64)
    stream = batches(law, -(-n // blocks), blocks, np.random.default_rng(1))
    drawn = [(X.copy(), y.copy()) for X, y in stream]
    X, y = (np.concatenate([pair[k] for pair in drawn])[:n] for k in (0, 1))
    expected, _, _, _ = np.linalg.lstsq(phi(X).astype(float), y.astype(float), rcond=None)
    assert a == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert mse == pytest.approx(np.mean((y - phi(X) @ expected) ** 2), rel=1e-4)


PROBLEMS = [ls.QuadraticTarget.exponential(25), ls.GaussianMixture.three_level(25)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("name", ["relu", "square", "gelu"])
def test_fits_agree_with_exact_in_standard_errors(problem, name):
    regime, width, n = ls.RandomFeatures(name), 30, 60_000
    fitted = ls.simulate(problem, regime, width=width, samples=n, draws=6, seed=2)
    exact = ls.exact(problem, regime, width=width, draws=40, seed=7)
    error = np.hypot(float(fitted.stderr), float(exact.stderr))
    # the fit pays N/n of the risk out of sample, and gains as much in sample
    assert abs(float(fitted.risk) - float(exact.risk)) < 4 * error + 2 * width / n
    assert abs(float(fitted.train) - float(exact.risk)) < 4 * error + 2 * width / n


def test_given_weights_are_meant_in_the_problems_own_basis():
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    values = np.geomspace(10.0, 0.01, 10)
    W = rng.standard_normal((10, 12))
    W[1:] *= 0.1  # weights that look along the first axis, where the diagonal target is and the rotated one is not
    target = ls.QuadraticTarget((Q * values) @ Q.T)
    regime = ls.RandomFeatures("relu", weights=ls.FixedWeights(W))
    exact = float(ls.exact(target, regime).risk)
    fitted = ls.simulate(target, regime, width=12, samples=200_000)
    # squares of quadratic forms: the mean of 2·10⁵ of them is good to √(14/2·10⁵), below 1%
    assert float(fitted.train) == pytest.approx(exact, rel=0.04)
    elsewhere = float(ls.exact(ls.QuadraticTarget(values), regime).risk)
    assert abs(elsewhere - exact) > 0.2


def test_more_features_than_dimensions_of_the_class():
    target = ls.QuadraticTarget([1.0, 2.0])
    assert float(ls.simulate(target, ls.RandomFeatures(), width=12, samples=5000).risk) < 1e-6


@pytest.mark.parametrize(("B", "sigma"), [(1.3e20, "erf"), (1.3e-20, "erf"), (7.7, "tanh")])
def test_a_nearly_singular_fit_does_not_depend_on_the_units_of_its_labels(B, sigma):
    """Five odd features of one input: singular values down to 3e-5 of the largest, whose squares float32 does not have.

    Labels are rounded to float32 in other units, by 6e-8 of themselves; the fit passes that on with its leverage on new
    inputs, which is 20 in the square.
    """
    one, other = (ls.simulate(ls.QuadraticTarget([b]), ls.RandomFeatures(sigma), width=5, samples=40) for b in (1.3, B))
    assert float(other.risk) == pytest.approx(float(one.risk), rel=1e-5)
    assert float(other.train) == pytest.approx(float(one.train), rel=1e-5)


@pytest.mark.parametrize("N", [1, 3, 8])
def test_both_fits_are_the_same_where_float32_is_enough(N):
    law = law_of(ls.QuadraticTarget([2.0, 1.0, 0.5, 0.3, 0.2, 0.1]))
    W = np.random.default_rng(5).standard_normal((N, 6)).astype(np.float32)
    phi = Features(W / np.linalg.norm(W, axis=1, keepdims=True), ls.Activation("relu"))
    few, usual = (how(law, phi, 9000, np.random.default_rng(4)) for how in (fit_few, fit))
    assert few[0].dtype == np.float64
    assert few[0] == pytest.approx(usual[0], rel=1e-3, abs=1e-4)
    assert few[1] == pytest.approx(usual[1], rel=1e-5)

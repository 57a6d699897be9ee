"""The matrices behind a flow: the Riccati closed form and its typical weights, against many digits."""

import mpmath
import numpy as np
import pytest

from lazyscope.limits.flow.riccati import NarrowRiccati, WideRiccati, riccati
from lazyscope.limits.flow.typical import typical


def test_riccati_both_forms_and_extreme_ranges():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((7, 20)) / 10.0
    lam, u = np.sort(rng.uniform(-2, 3, 7)), rng.uniform(0.01, 1.0, 7)
    F = np.exp(lam)
    direct = (F[:, None] * W) @ np.linalg.solve(np.eye(20) + 16.0 * W.T @ ((F**2 * u)[:, None] * W), W.T * F)
    assert isinstance(riccati(W), WideRiccati) and isinstance(riccati(W[:, :4]), NarrowRiccati)
    for form in (riccati(W), NarrowRiccati(W)):
        assert np.allclose(form(lam, u).full, direct, rtol=1e-12, atol=1e-15)
    # learned to the end, with e^λ beyond every float: K → 1/(16u) on the span
    huge = riccati(W)(np.array([0.0, 1.0, 50.0, 900.0, 2000.0, 3000.0, 9000.0]), u)
    assert np.all(np.isfinite(huge.full)) and np.allclose(huge.diagonal[3:], 1.0 / (16.0 * u[3:]), rtol=1e-9)
    narrow = riccati(W[:, :3])(np.array([0.0, 1.0, 50.0, 900.0, 2000.0, 3000.0, 9000.0]), u).full
    assert np.allclose(np.diagonal(narrow)[4:], 1.0 / (16.0 * u[4:]), rtol=1e-9)
    assert np.all(np.abs(narrow[:4]) < 1e-9)


@pytest.mark.parametrize(("d", "N"), [(10, 4), (10, 8), (10, 10), (8, 20)])
def test_riccati_against_many_digits(d, N):
    """From the start to where most directions are learned and left out: diag K, ‖K‖² and K, of 300 digits."""
    rng = np.random.default_rng(d * N)
    W = rng.standard_normal((d, N)) / np.sqrt(d * N)
    b = np.sort(rng.exponential(1.0, d))
    u = 0.1 * rng.uniform(0.5, 1.5, d) / (b + 0.1)
    for scale in (1.0, 10.0, 40.0):
        lam = scale * (b - 0.2)
        with mpmath.workdps(300):
            FW = mpmath.diag([mpmath.e ** mpmath.mpf(x) for x in lam]) * mpmath.matrix(W.tolist())
            inside = mpmath.eye(N) + FW.T * mpmath.diag([16 * mpmath.mpf(x) for x in u]) * FW
            K = np.array((FW * inside**-1 * FW.T).tolist(), dtype=float)
        form = riccati(W)
        diagonal, norm = form.sums(lam, u)
        assert np.allclose(diagonal, np.diagonal(K), rtol=1e-10, atol=1e-10 * np.max(K))
        assert norm == pytest.approx(np.sum(K**2), rel=1e-12)
        assert np.allclose(form(lam, u).full, K, atol=1e-7 * np.max(K))  # √10⁻¹⁵ is left out, off the diagonal
    assert len(form.block(lam, u)[0]) < d


@pytest.mark.parametrize(("d", "N", "scale"), [(6, 2.0, 300.0), (6, 6.0, 50.0), (6, 4.5, 10.0), (6, 20.0, 3.0)])
def test_the_fixed_point_of_typical_weights_against_many_digits(d, N, scale):
    """Also where exactly N directions are learned, and all that tells m is beyond the digits of a float."""
    b = np.sort(np.random.default_rng(int(N)).exponential(1.0, d))
    lam, u = scale * (b - 0.1), 1.0 / (16.0 * b)
    with mpmath.workdps(1500):
        log_v = [
            -2 * mpmath.mpf(x) - mpmath.log(mpmath.mpf(1) / d) - mpmath.log(16 * mpmath.mpf(y))
            for x, y in zip(lam, u, strict=True)
        ]
        low, high = mpmath.mpf(-5000), mpmath.mpf(0)
        for _ in range(70):
            middle = (low + high) / 2
            excess = N * (1 - mpmath.exp(middle)) - sum(1 / (1 + mpmath.exp(x - middle)) for x in log_v)
            low, high = (middle, high) if excess > 0 else (low, middle)
    assert typical(lam[None], u[None], 1.0 / d, N).log_m[0] == pytest.approx(float(low), rel=1e-9)


def test_directions_that_are_equal_may_be_counted():
    rng = np.random.default_rng(0)
    lam, u, count = rng.uniform(0.0, 3.0, (3, 5)), rng.uniform(0.1, 0.5, (3, 5)), np.array([1.0, 4.0, 2.0, 1.0, 3.0])
    each = typical(*(np.repeat(x, count.astype(int), axis=1) for x in (lam, u)), 0.1, 7.0)
    grouped = typical(lam, u, 0.1, 7.0, count)
    assert np.allclose(grouped.norm, each.norm) and np.allclose(grouped.diagonal @ count, each.diagonal.sum(axis=1))
    assert np.allclose(grouped.by_u.sum(axis=1), each.by_u.sum(axis=1))
    assert np.allclose(grouped.by_lambda.sum(axis=1), each.by_lambda.sum(axis=1))
    h = 1e-6  # and these are derivatives
    moved = [typical(lam + sign * h, u, 0.1, 7.0, count).diagonal @ count for sign in (1.0, -1.0)]
    assert np.allclose((moved[0] - moved[1]) / (2.0 * h), grouped.by_lambda.sum(axis=1), rtol=1e-6)


def test_triangles_that_are_inverted_by_halves_give_the_other_form():
    rng, d = np.random.default_rng(5), 150  # above the largest triangle that is inverted as a whole
    W, lam = rng.standard_normal((d, 2 * d)) / d, np.sort(rng.uniform(-1.0, 8.0, d))
    u = rng.uniform(0.1, 1.0, d)
    wide, narrow = riccati(W), NarrowRiccati(W)
    assert isinstance(wide, WideRiccati)
    for form in (lambda K: K(lam, u).full, lambda K: K.sums(lam, u)[0], lambda K: K.sums(lam, u)[1]):
        np.testing.assert_allclose(form(wide), form(narrow), rtol=1e-10, atol=1e-13)

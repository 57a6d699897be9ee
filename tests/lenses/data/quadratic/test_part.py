"""β and B from data: against a planted target, against Stein's identity, and on noise."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.data.forecast import linear_risk, quadratic_risks, unexplained
from lazyscope.lenses.data.quadratic.part import Whitening, directions, hermite_features, quadratic_part
from lazyscope.lenses.data.quadratic.spectrum import without_noise


def planted(n=5000, d=20, noise=1.0, seed=0, linear=0.0):
    """x ~ N(0, I), y = ⟨x, Bx⟩ + linear·x₁ + noise, noise and linear in units of the quadratic part."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    B = (Q * rng.exponential(1.0, d)) @ Q.T
    unit = np.sqrt(2.0 * np.sum(B**2))
    Z = rng.standard_normal((n, d))
    y = np.einsum("nd,nd->n", Z @ B, Z) + unit * (noise * rng.standard_normal(n) + linear * Z[:, 0])
    return Z, y, B


SPECTRA = {
    "exponential": lambda rng: rng.exponential(1.0, 20),
    "of both signs": lambda rng: rng.standard_normal(20),
    "low rank": lambda rng: np.r_[3.0, 2.0, 1.0, np.zeros(17)],
    "identity and a spike": lambda rng: np.r_[6.0, np.ones(19)],
    "power law": lambda rng: 1.0 / np.arange(1.0, 21.0),
}


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_risks_forecast_from_data_are_those_of_the_planted_target(spectrum, noise):
    """The must-hold line: d = 20, n = 5000, every forecast within 10 % of exact; as much noise as signal at most.

    Columns are correlated and shifted; their covariance has a symmetric root, so that z is found again as it was, and
    one seed draws the same weights for both. A forecast counts the noise, as the error of a regime does.
    """
    rng = np.random.default_rng(7)
    Q, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    B = (Q * SPECTRA[spectrum](rng)) @ Q.T
    A = (Q * rng.uniform(0.2, 3.0, 20)) @ Q.T
    Z = rng.standard_normal((5000, 20))
    y = np.einsum("nd,nd->n", Z @ B, Z) + noise * np.sqrt(2.0 * np.sum(B**2)) * rng.standard_normal(5000)
    X = Z @ A + 3.0
    part = quadratic_part(Whitening.of(X, 20)(X), y)
    widths = [4, 10, 20]
    found, exact = unexplained(part, widths), quadratic_risks(B, widths)
    for name, risk in exact.items():
        np.testing.assert_allclose(found[name], (risk + noise**2) / (1.0 + noise**2), rtol=0.1, atol=1e-12)
    assert part.significant and part.quadratic == pytest.approx(1.0 / (1.0 + noise**2), abs=0.05)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_the_spectrum_loses_what_noise_and_whitening_gave_it(level):
    """Of B = level·I a semicircle is seen; what is found again has a third of its spread, and its mean."""
    rng, n, v = np.random.default_rng(3), 5000, 0.01
    G = rng.standard_normal((20, 20)) * np.sqrt(v / 8.0)
    root = np.linalg.cholesky(np.cov(rng.standard_normal((n, 20)), rowvar=False))
    seen = np.linalg.eigvalsh(level * root.T @ root + G + G.T)
    found = without_noise(seen, n, v)
    assert found.std() < seen.std() / 3.0
    assert found.mean() == pytest.approx(level, abs=4.0 * np.sqrt(v / 2.0 / 20.0) + 4.0 * level * np.sqrt(2 / n / 20))
    assert np.all(np.diff(found) >= 0)
    np.testing.assert_allclose(without_noise(np.arange(6.0), 10**9, 1e-18), np.arange(6.0), atol=1e-4)


def test_parts_add_up_and_each_is_found():
    Z, y, _ = planted(noise=1.0, linear=1.0)
    part = quadratic_part(Z, y)
    assert part.linear == pytest.approx(1 / 3, abs=0.04)
    assert part.quadratic == pytest.approx(1 / 3, abs=0.04)
    assert part.linear + part.quadratic + part.rest == pytest.approx(1.0)
    assert part.beta[0] ** 2 == pytest.approx(np.sum(part.beta**2), rel=0.05)


def test_the_correction_of_eigenvalues_removes_most_of_their_bias():
    """Raw least squares drives eigenvalues apart; on average over draws the corrected ones are much closer."""
    raw, corrected, truth = [], [], []
    for seed in range(12):
        Z, y, B = planted(n=1500, d=15, noise=3.0, seed=seed)
        part = quadratic_part(Z, y)
        Phi = hermite_features(Z)
        coefficients = np.linalg.lstsq(Phi - Phi.mean(axis=0), y - y.mean(), rcond=None)[0][15:]
        raw.append(np.sum(coefficients**2) / 2.0)
        corrected.append(np.sum(part.B**2))
        truth.append(np.sum(B**2))
    raw_bias, bias = np.mean(np.subtract(raw, truth)), np.mean(np.subtract(corrected, truth))
    assert raw_bias > 0 and abs(bias) < 0.3 * raw_bias


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_quadratic_part(seed):
    rng = np.random.default_rng(seed)
    part = quadratic_part(rng.standard_normal((2000, 20)), rng.standard_normal(2000))
    assert not part.significant and abs(part.quadratic_z) < 4 and part.rest > 0.9


def stein(Z, y):
    """½ mean(y(zzᵀ − I)), the plain estimate of B for Gaussian z."""
    y = y - y.mean()
    return 0.5 * ((Z * y[:, None]).T @ Z / len(y) - np.mean(y) * np.eye(Z.shape[1]))


def test_regression_and_stein_agree_and_regression_is_less_noisy():
    Z, y, B = planted(n=20_000, d=8, noise=0.3)
    errors = [np.linalg.norm(found - B) for found in (quadratic_part(Z, y).B, stein(Z, y))]
    assert errors[0] < 0.3 * errors[1] < 0.1 * np.linalg.norm(B)


def test_a_column_with_two_values_leaves_the_others_alone():
    """Its square is a constant: regression on it would be noise without bound."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((800, 4)), rng.choice([-1.0, 1.0], 800)])
    y = X[:, 0] ** 2 - X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(800)
    part = quadratic_part(Whitening.of(X, 5)(X), y)
    expected = np.zeros((5, 5))
    expected[0, 0], expected[1, 2], expected[2, 1] = 1.0, -0.5, -0.5
    np.testing.assert_allclose(part.B, expected, atol=0.1)
    assert part.quadratic == pytest.approx(3.0 / 3.25, abs=0.03)


def test_hermite_features_are_orthonormal():
    Z = np.random.default_rng(0).standard_normal((200_000, 3))
    features = hermite_features(Z)
    # fourth moments of he₂ are 15: the mean of a product has a standard error of at most √15/√n
    np.testing.assert_allclose(features.T @ features / len(Z), np.eye(9), atol=5 * np.sqrt(15 / len(Z)))


def test_whitening_gives_unit_variances_and_leaves_dead_directions_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 5)) + 7.0
    Z = Whitening.of(X, 10)(X)
    assert Z.shape == (500, 3)
    np.testing.assert_allclose(np.cov(Z, rowvar=False), np.eye(3), atol=0.02)
    assert Whitening.of(X, 2).kept < 1.0


def test_columns_that_depend_on_others_are_no_directions_that_were_not_looked_at():
    """One column for each of three kinds: they sum to one, so that two directions are all."""
    X = np.eye(3)[np.random.default_rng(0).integers(3, size=200)]
    whitening = Whitening.of(X, 3)
    assert whitening.there == 2 == whitening(X).shape[1] and whitening.kept == pytest.approx(1.0)


def test_forecasts_put_the_regimes_in_order():
    Z, y, _ = planted(noise=0.5, linear=0.5)
    left = unexplained(quadratic_part(Z, y), [10, 40])
    assert np.all(left["RF"] > left["NT"]) and np.all(left["NT"] > left["NN"])
    assert np.all(np.diff(linear_risk([10, 40, 400], 20)) < 0)


def test_too_few_rows_and_constants_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidParameter, match="rows for each of its"):
        quadratic_part(rng.standard_normal((50, 20)), rng.standard_normal(50))
    with pytest.raises(InvalidParameter, match="must vary"):
        quadratic_part(rng.standard_normal((500, 3)), np.ones(500))
    for n in (1, 10, 100, 1000):
        m = directions(n, 1000)
        assert m == 0 or n >= 2.5 * (m * (m + 3) / 2 + 1)


def test_forecasts_are_the_verb_exact():
    B = np.diag([3.0, 2.0, 1.0, 0.5])
    target = ls.QuadraticTarget(B)
    assert quadratic_risks(B, [2])["NN"][0] == ls.exact(target, ls.Trained(), width=2).risk.item()

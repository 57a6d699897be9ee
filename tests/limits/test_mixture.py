"""Theorems 4–6 and the Bayes floor."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.linalg import sqrtm
from scipy.optimize import brentq
from scipy.stats import norm

import lazyscope as ls


@pytest.fixture(scope="module")
def mixture():
    return ls.GaussianMixture.three_level(450, seed=0)


@pytest.fixture(scope="module")
def full():
    rng = np.random.default_rng(3)
    d = 30
    A, D = rng.standard_normal((d, d)), rng.standard_normal((d, d))
    Sigma = np.eye(d) + A @ A.T / d
    return ls.GaussianMixture(0.3 * (D + D.T) / d + 0.1 * np.eye(d), Sigma)


def test_equation_17_holds_with_its_erratum_mended(mixture):
    rho = np.array([0.1, 1.0, 2.0, 50.0])
    trace2 = mixture.Delta.sum() ** 2 / (2 * 450)
    risk = ls.limit(mixture, ls.RandomFeatures(), rho=rho).risk.values
    assert risk == pytest.approx(1 / (1 + rho / (1 + rho) * trace2), abs=1e-12)
    # what is printed cannot be: its ρ → ∞ limit contradicts Eq. 16
    assert abs(1 / (1 + trace2 / 2) - ls.limit(mixture, ls.RandomFeatures(), rho=np.inf).risk) > 0.1


@pytest.mark.parametrize("name", ["relu", "square", "softplus"])
def test_theorem_4_from_its_text_with_full_matrices(full, name):
    d = full.d
    rng = np.random.default_rng(4)
    A = rng.standard_normal((d, d))
    Gamma = A @ A.T
    result = ls.limit(full, ls.RandomFeatures(name, weights=Gamma), rho=[0.2, 1.0, 9.0])
    Gamma = Gamma / np.trace(Gamma @ full.Sigma)
    root = np.real(sqrtm(Gamma))
    t = np.linalg.eigvalsh(d * root @ full.Sigma @ root)
    sigma = ls.Activation(name)
    l1, l2 = sigma.lambda_k(1), sigma.lambda_k(2)
    zeta1 = d * np.trace(full.Sigma @ Gamma @ full.Sigma @ Gamma) / 2
    zeta2 = d * np.trace(full.Delta @ Gamma) ** 2 / 4
    for rho, risk in zip(result.rho.values, result.risk.values, strict=True):
        psi = brentq(
            lambda x, rho=rho: sigma.lambda_tilde - rho / x + np.mean(l1**2 * t / (1 + l1**2 * t * x)),
            1e-6,
            1e6,
            xtol=1e-15,
            rtol=1e-15,
        )
        expected = (1 + zeta1 * l2**2 * psi) / (1 + (zeta1 + zeta2) * l2**2 * psi)
        assert risk == pytest.approx(expected, abs=1e-12)
    at_infinity = ls.limit(full, ls.RandomFeatures(name, weights=Gamma), rho=np.inf).risk
    assert float(at_infinity) == pytest.approx(zeta1 / (zeta1 + zeta2), abs=1e-12)


def test_optimal_weights_are_a_stationary_point_of_equation_16(full):
    # No small symmetric change of Γ ∝ Σ⁻¹ΔΣ⁻¹ lowers ζ₁/(ζ₁+ζ₂) to first order. (This Δ has one sign.)
    rng = np.random.default_rng(0)
    one_sign = ls.GaussianMixture(full.Delta @ full.Delta + 0.01 * np.eye(full.d), full.Sigma)
    best = one_sign.best_weight_covariance()
    at = float(ls.limit(one_sign, ls.RandomFeatures(weights=best), rho=np.inf).risk)
    assert at == pytest.approx(float(ls.limit(one_sign, ls.RandomFeatures(weights="optimal"), rho=np.inf).risk))
    for _ in range(10):
        noise = rng.standard_normal(best.shape)
        moved = best + 1e-3 * np.linalg.norm(best) / best.shape[0] * (noise + noise.T) / 2
        assert float(ls.limit(one_sign, ls.RandomFeatures(weights=moved), rho=np.inf).risk) >= at


def test_theorem_5_limit_and_its_form_for_given_weights(mixture):
    rng = np.random.default_rng(5)
    W = rng.standard_normal((450, 225))
    given_w = float(ls.limit(mixture, ls.NeuralTangent(weights=ls.FixedWeights(W))).risk)
    P = np.eye(450) - W @ np.linalg.solve(W.T @ W, W.T)
    D = np.diag(mixture.Delta)
    expected = 2 / (2 + np.sum(D**2) - np.sum((P @ D @ P) ** 2))
    assert given_w == pytest.approx(expected, abs=1e-12)
    # one draw lies within its own O(1/d) fluctuation of the average over draws
    assert given_w == pytest.approx(float(ls.limit(mixture, ls.NeuralTangent(), rho=0.5).risk), abs=5 / 450)


def test_theorem_5_for_given_weights_and_any_sigma(full):
    rng = np.random.default_rng(6)
    W = rng.standard_normal((full.d, 11))
    root = np.real(sqrtm(full.Sigma))
    inverse = np.linalg.inv(root)
    tilde = inverse @ full.Delta @ inverse
    X = root @ W
    P = np.eye(full.d) - X @ np.linalg.solve(X.T @ X, X.T)
    expected = 2 / (2 + np.sum(tilde**2) - np.sum((P @ tilde @ P) ** 2))
    regime = ls.NeuralTangent(weights=ls.FixedWeights(W))
    assert float(ls.limit(full, regime).risk) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ls.NoTheorem, match="Σ = I"):
        ls.limit(full, ls.NeuralTangent(), rho=0.5)
    with pytest.raises(ls.LazyscopeError, match="must be N/d"):
        ls.limit(full, regime, rho=0.5)


def test_theorem_6_uses_singular_values():
    delta = np.array([0.3, -0.25, 0.1, -0.05])
    risk = ls.limit(ls.GaussianMixture(delta), ls.Trained(), rho=[0.25, 0.5, 0.75, 1.0, 7.0]).risk.values
    squares = np.cumsum([0.09, 0.0625, 0.01, 0.0025])
    assert risk == pytest.approx(2 / (2 + squares[[0, 1, 2, 3, 3]]), abs=1e-15)


@given(st.floats(1e-4, 300.0))
@settings(max_examples=60, deadline=None)
def test_bayes_floor_by_adaptive_quadrature(J):
    d = 4000
    mixture = ls.GaussianMixture(np.full(d, np.sqrt(J / d)))
    s = np.sqrt(2 * J)
    oracle = quad(
        lambda g: norm.pdf(g) * (1 - np.tanh((J + s * g) / 2)), -12, 12, points=[-J / s, 0], limit=400, epsabs=1e-13
    )[0]
    assert float(ls.bayes(mixture).risk) == pytest.approx(oracle, abs=1e-11)


def test_no_regime_beats_bayes_and_training_beats_the_lazy(mixture):
    rho = np.geomspace(0.05, 100, 30)
    floor = float(ls.bayes(mixture).risk)
    risk = {
        r.label: ls.limit(mixture, r, rho=rho).risk.values
        for r in (ls.RandomFeatures(), ls.NeuralTangent(), ls.Trained())
    }
    assert np.all(risk["NN"] <= risk["NT"] + 1e-12)
    assert np.all(risk["NT"] <= risk["RF"] + 1e-12)
    assert np.all(risk["NN"] > floor)


def test_the_sign_of_delta_is_a_convention(mixture):
    mirrored = ls.GaussianMixture(-mixture.Delta)
    for regime in (ls.RandomFeatures("relu"), ls.RandomFeatures(weights="optimal"), ls.NeuralTangent(), ls.Trained()):
        ours, theirs = (ls.limit(m, regime, rho=[0.3, 3.0]).risk.values for m in (mixture, mirrored))
        assert ours == pytest.approx(theirs, abs=1e-13)
    assert float(ls.bayes(mirrored, fidelity="exact").risk) == pytest.approx(
        float(ls.bayes(mixture, fidelity="exact").risk), abs=1e-13
    )

"""Theorems 1–3: the paper's numbers, second routes, symmetries, limits of the limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import ortho_group

import lazyscope as ls

N = np.array([30, 90, 225, 300])
PAPER = {
    "NN": [0.49718, 0.20315, 0.03237, 0.00761],
    "NT": [0.90153, 0.71821, 0.37220, 0.21974],
    "RF": [0.96945, 0.91853, 0.83706, 0.80447],
}
REGIMES = [ls.RandomFeatures(), ls.NeuralTangent(), ls.Trained()]


@pytest.fixture(scope="module")
def target():
    return ls.QuadraticTarget.exponential(450, seed=100)


@pytest.mark.parametrize("regime", REGIMES, ids=str)
def test_the_papers_own_target(target, regime):
    risk = ls.limit(target, regime, rho=N / 450).risk
    assert risk.values == pytest.approx(PAPER[regime.label], abs=5e-6)


def test_the_target_is_that_of_the_papers_script(target):
    np.random.seed(100)
    assert np.array_equal(target.B, np.random.exponential(1.0, 450))


@pytest.mark.parametrize("name", ["relu", "square", "softplus", "abs", "tanh", "cube"])
@pytest.mark.parametrize("weights", ["isotropic", "optimal", "spread"])
def test_theorem_1_by_a_scalar_root_finder(target, name, weights):
    Gamma = np.geomspace(1e-3, 10, 450) if weights == "spread" else weights
    sigma = ls.Activation(name)
    G = {"isotropic": np.ones(450), "optimal": target.B}.get(weights, Gamma) if isinstance(Gamma, str) else Gamma
    G = G / G.sum()
    result = ls.limit(target, ls.RandomFeatures(name, weights=Gamma), rho=[0.01, 0.3, 1.0, 7.0, 500.0])
    for rho, risk, psi in zip(result.rho.values, result.risk.values, result.psi.values, strict=True):
        l1, l2 = sigma.lambda_k(1), sigma.lambda_k(2)

        def equation_9(x, rho=rho, l1=l1):
            t = 450 * G
            return sigma.lambda_tilde - rho / x + np.mean(l1**2 * t / (1 + l1**2 * t * x))

        root = brentq(equation_9, 1e-6, 1e6, xtol=1e-15, rtol=1e-15)
        assert psi == pytest.approx(root, rel=1e-11)
        B2 = np.sum(target.B**2)
        expected = 1 - root * l2**2 * 450 * (G @ target.B) ** 2 / (B2 * (2 + root * l2**2 * 450 * np.sum(G**2)))
        assert risk == pytest.approx(expected, abs=1e-12)
    assert float(result.residual.max()) <= 1e-13


def test_corollary_1_is_theorem_1_for_the_square(target):
    G = target.B / target.B.sum()
    rho = np.geomspace(0.01, 100, 20)
    corollary = 1 - rho * 450 * (target.B @ G) ** 2 / (target.B @ target.B * (1 + rho * 450 * (G @ G)))
    for activation in ("square", lambda u: u**2 - 1, lambda u: 5 - 3 * u**2):
        risk = ls.limit(target, ls.RandomFeatures(activation, weights="optimal"), rho=rho).risk
        assert risk.values == pytest.approx(corollary, abs=1e-12)


@pytest.mark.parametrize("name", ["relu", "square", "softplus", "cos"])
def test_equation_11_is_the_wide_limit_of_equation_10(target, name):
    for weights in (None, "optimal", np.linspace(0, 1, 450)):
        regime = ls.RandomFeatures(name, weights=weights)
        wide, wider, at_infinity = ls.limit(target, regime, rho=[1e6, 1e8, np.inf]).risk.values
        assert abs(wider - at_infinity) < 0.02 * abs(wide - at_infinity) + 1e-13
        G = {None: np.ones(450), "optimal": target.B}.get(weights, weights) if not np.ndim(weights) else weights
        expected = 1 - (G @ target.B) ** 2 / (G @ G * (target.B @ target.B))
        assert at_infinity == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["tanh", "erf", "sign", "sin"])
def test_an_activation_without_second_coefficient_sees_nothing(target, name):
    assert np.all(ls.limit(target, ls.RandomFeatures(name), rho=[0.1, 10.0, np.inf]).risk == 1.0)


def test_equation_13_holds_with_its_erratum_mended(target):
    rho = np.array([0.1, 0.4, 0.9, 1.0, 3.0])
    tau = target.B.sum() ** 2 / (450 * target.B @ target.B)
    left = np.maximum(1 - rho, 0)
    assert ls.limit(target, ls.NeuralTangent(), rho=rho).risk.values == pytest.approx(left**2 + rho * left * tau)
    printed = left**2 + rho * left + tau
    assert np.all(printed > ls.limit(target, ls.NeuralTangent(), rho=rho).risk.values + 0.1)


def random_target(seed, d=12):
    rng = np.random.default_rng(seed)
    values = rng.exponential(size=d)
    rotation = ortho_group.rvs(d, random_state=rng)
    return values, rotation, (rotation * values) @ rotation.T


@given(st.integers(0, 10_000), st.floats(0.06, 5.0))
@settings(max_examples=40, deadline=None)
def test_rotations_and_scalings_change_nothing(seed, rho):
    values, rotation, B = random_target(seed)
    G = np.random.default_rng(seed).exponential(size=12)
    for regime, rotated in [
        (ls.RandomFeatures("relu", weights=G), ls.RandomFeatures("relu", weights=(rotation * G) @ rotation.T * 7)),
        (ls.RandomFeatures("relu", weights="optimal"), ls.RandomFeatures("relu", weights="optimal")),
        (ls.NeuralTangent(), ls.NeuralTangent()),
        (ls.Trained(), ls.Trained()),
    ]:
        diagonal = ls.limit(ls.QuadraticTarget(values), regime, rho=rho).risk
        full = ls.limit(ls.QuadraticTarget(-0.0 + 3 * B, b0=5.0), rotated, rho=rho).risk
        assert float(full) == pytest.approx(float(diagonal), abs=1e-11)


@given(st.integers(0, 10_000), st.lists(st.floats(0.05, 20.0), min_size=2, max_size=20, unique=True))
@settings(max_examples=40, deadline=None)
def test_more_neurons_never_hurt_and_training_never_loses(seed, rho):
    target = ls.QuadraticTarget(random_target(seed)[0])
    rho = np.sort(rho)
    curves = {str(r): ls.limit(target, r, rho=rho).risk.values for r in [*REGIMES, ls.RandomFeatures("relu")]}
    for curve in curves.values():
        assert np.all(np.diff(curve) <= 1e-13)
        assert np.all((curve >= 0) & (curve <= 1))
    exact_widths = np.rint(rho * 12) / 12  # at the ratio that NN really has
    tangent = ls.limit(target, ls.NeuralTangent(), rho=exact_widths).risk.values
    assert np.all(curves["NN, σ = square"] <= tangent + 1e-12)


def test_isotropic_target_is_the_worst_case_for_the_tangent_model():
    # Cauchy–Schwarz: risk ≤ (1 − ρ)₊ with equality for B ∝ I
    rho = np.linspace(0.1, 1.5, 8)
    assert ls.limit(ls.QuadraticTarget(np.ones(40)), ls.NeuralTangent(), rho=rho).risk.values == pytest.approx(
        np.maximum(1 - rho, 0), abs=1e-14
    )


def test_a_diagonal_problem_needs_no_matrix():
    d = 300_000  # a d×d matrix would take 720 GB
    target = ls.QuadraticTarget.exponential(d)
    for regime in [*REGIMES, ls.RandomFeatures("relu", weights="optimal")]:
        assert 0 < float(ls.limit(target, regime, rho=0.5).risk) < 1


def test_outside_the_hypotheses_it_refuses_and_says_what_works(target):
    for regime, hypothesis in [
        (ls.NeuralTangent("relu"), r"Theorem 2 assumes σ\(u\) = u²\. Got relu instead\. Use exact"),
        (ls.NeuralTangent(weights=np.arange(1.0, 451.0)), "isotropic weights"),
        (ls.Trained("relu"), "Theorem 3 assumes"),
    ]:
        with pytest.raises(ls.NoTheorem, match=hypothesis):
            ls.limit(target, regime, rho=0.5)
    with pytest.raises(ls.NoTheorem, match="B ⪰ 0"):
        ls.limit(ls.QuadraticTarget([1.0, -1.0]), ls.Trained(), rho=1.0)
    with pytest.raises(ls.LazyscopeError, match="positive semidefinite"):
        ls.limit(ls.QuadraticTarget([1.0, -1.0]), ls.RandomFeatures(weights="optimal"), rho=1.0)


def test_scalars_give_scalars_and_arrays_dimensions(target):
    assert ls.limit(target, ls.Trained(), rho=0.5).risk.dims == ()
    curve = ls.limit(target, ls.Trained(), rho=[0.5, 1.0])
    assert curve.risk.dims == ("rho",)
    assert curve.width.values.tolist() == [225.0, 450.0]
    assert ls.limit(target, ls.Trained(), rho=np.inf).risk == 0.0

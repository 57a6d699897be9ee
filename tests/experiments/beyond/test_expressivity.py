"""Theorem 7's W⋆: the closed form against other integrals, errors against their variance, norms against the bound."""

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import lazyscope as ls
from lazyscope.activations import Activation
from lazyscope.experiments.beyond import expressivity as expressivity_experiment
from lazyscope.experiments.beyond.expressivity import DELTA, ExpressivityDraw, expressivity, measure
from lazyscope.training.taylor.construction import Monomial, express, feature_coefficient, monomials, norm_bound
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.signs import norm_24

RELU3 = Activation("relu3")
POWERS = [2, 3, 4, 6, 8]


@pytest.mark.parametrize("p", POWERS)
def test_random_features_express_the_power(p):
    """E[relu(u) he_q(v)]/c_q = t^q: relu integrated out given v in closed form, then Gauss–Hermite."""
    q = p - 2
    v, w = np.polynomial.hermite_e.hermegauss(100)
    w = w / np.sqrt(2 * np.pi)
    polynomial = np.polynomial.hermite_e.hermeval(v, np.eye(q + 1)[q]) / np.sqrt(float(mpmath.factorial(q)))
    for t in (-0.6, 0.2, 0.5):
        s = np.sqrt(1 - t * t)
        relu = t * v * norm.cdf(t * v / s) + s * norm.pdf(t * v / s)
        assert w @ (relu * polynomial) / feature_coefficient(RELU3, q) == pytest.approx(t**q, abs=1e-10)


def test_coefficients_are_those_of_lemma_9():
    """c_q(relu)² are the Taylor coefficients of (r(π − arccos r) + √(1 − r²))/2π; the paper bounds them from below."""
    mpmath.mp.dps = 30
    series = mpmath.taylor(
        lambda r: (r * (mpmath.pi - mpmath.acos(r)) + mpmath.sqrt(1 - r * r)) / (2 * mpmath.pi), 0, 8
    )
    for q in (0, 1, 2, 4, 6, 8):
        found = feature_coefficient(RELU3, q) ** 2
        assert found == pytest.approx(float(series[q]), rel=1e-10)
        assert found >= 1 / (2 * np.pi * max(q, 1) ** 3) - 1e-15
    assert float(abs(series[3])) < 1e-20 and float(abs(series[5])) < 1e-20


def test_the_error_of_two_xor_has_its_variance():
    """f^Q = x₁x₂ · (2/m)Σ √2π relu(u_r): relative error² has mean 2(π − 1)/m over initialisations."""
    m, draws = 400, 60
    squares = [
        measure(ExpressivityDraw(ls.SparseParity(6), m, 100, number=number))["error"] ** 2 for number in range(draws)
    ]
    stderr = np.std(squares, ddof=1) / np.sqrt(draws)
    assert abs(np.mean(squares) - 2 * (np.pi - 1) / m) <= 4 * stderr


@pytest.mark.parametrize("p", [2, 3, 4])
def test_errors_fall_like_the_root_of_the_width_and_norms_stay(p):
    result = expressivity(ls.RidgeMonomial(8, p), [100, 1000, 10_000], draws=6, seed=2)
    # the law of he_q(v) has heavier tails the larger q: its mean over 50 neurons is not yet normal
    assert abs(float(result.exponent) + 0.5) <= 3 * float(result.exponent_stderr) + 0.03
    assert float(result.norm[-1]) == pytest.approx(float(result.expected_norm), rel=0.15)
    assert np.all(result.norm < result.norm_bound)
    assert np.all(result.worst >= result.error)
    assert float(result.loss[-1]) < float(result.loss[0])


@pytest.mark.parametrize("p", POWERS)
def test_the_norm_bound_holds_as_often_as_it_says(p):
    """‖W⋆‖⁴ has mean 8‖β‖⁴E[a²] and exceeds the bound with probability at most δ/2, by Markov."""
    d, Bx, draws = 4, 1.3, 200
    term = Monomial(0.7, np.full(d, 0.9), p)
    norms = []
    for number in range(draws):
        rng = np.random.default_rng([p, number])
        model = TaylorModel.symmetric(200, d, RELU3, rng, Bx=Bx)
        norms.append(norm_24(express(model, [term], rng)) ** 4)
    allowed = 4.5 * np.std(norms) / np.sqrt(draws) + 1e-12 * np.mean(norms)  # p = 2: a is a constant
    assert np.mean(norms) == pytest.approx(term.expected_norm(RELU3, Bx), abs=allowed)
    assert np.mean(np.array(norms) > term.bound(Bx, DELTA)) <= DELTA / 2
    assert term.expected_norm(RELU3, Bx) <= term.bound(Bx, 2.0)  # E‖W⋆‖⁴ ≤ 16π…, of which Markov makes 32π/δ


def test_two_xor_needs_no_signs_and_has_a_norm_in_closed_form():
    """One half of the neurons carries (x₁ + x₂)²/4, the other −(x₁ − x₂)²/4: ‖W⋆‖⁴ = 8π."""
    problem = ls.SparseParity(5)
    model = TaylorModel.symmetric(1000, 5, RELU3, np.random.default_rng(0), Bx=problem.Bx)
    W = express(model, monomials(problem), np.random.default_rng(1))
    assert norm_24(W) ** 4 == pytest.approx(8 * np.pi)
    assert norm_24(W) ** 4 <= norm_bound(monomials(problem), problem.Bx, DELTA)
    X, y = problem.sample(500, np.random.default_rng(2))
    assert np.all(np.sign(model.piece(2, W, X)) == y)


def test_sums_of_monomials_that_share_neurons():
    """W₁ + W₂Σ: cross terms have mean zero under signs, and the error of the sum falls like m^{−1/2}."""
    terms = [Monomial(1.0, [1.0, 0.5, 0.0], 3), Monomial(-0.5, [0.0, 1.0, 1.0], 4)]
    rng = np.random.default_rng(3)
    X = rng.standard_normal((100, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    wanted = sum(term(X) for term in terms)
    errors = []
    for m in (400, 40_000):
        found = []
        for _ in range(8):
            model = TaylorModel.symmetric(m, 3, "relu3", rng)
            found.append(np.sqrt(np.mean((model.piece(2, express(model, terms, rng), X) - wanted) ** 2)))
        errors.append(np.mean(found))
    assert errors[0] / errors[1] == pytest.approx(10.0, rel=0.3)


def test_other_activations_express_what_their_second_derivative_sees():
    """tanh″ is odd: it expresses odd powers p, and refuses even ones."""
    model = TaylorModel.symmetric(200_000, 3, "tanh", np.random.default_rng(4))
    X = np.eye(3)
    W = express(model, [Monomial(1.0, [0.8, 0.6, 0.0], 3)], np.random.default_rng(5))
    assert model.piece(2, W, X) == pytest.approx(np.array([0.512, 0.216, 0.0]), abs=0.03)
    with pytest.raises(ls.NoTheorem, match="Hermite component"):
        feature_coefficient(Activation("tanh"), 2)


def test_bad_input_is_refused_in_one_line():
    with pytest.raises(ls.NoTheorem, match="2-XOR on the hypercube"):
        monomials(ls.SparseParity(5, k=3))
    with pytest.raises(ls.InvalidParameter, match=r"p .* at least 2"):
        Monomial(1.0, [1.0], 1)
    with pytest.raises(ls.InvalidParameter, match="not zero"):
        Monomial(1.0, [0.0, 0.0], 2)
    model = TaylorModel.symmetric(4, 2, "relu3", np.random.default_rng(0))
    with pytest.raises(ls.InvalidParameter, match="length d = 2"):
        express(model, [Monomial(1.0, [1.0], 2)], np.random.default_rng(0))
    skew = TaylorModel(model.W0[::-1] * np.arange(1.0, 5.0)[:, None], model.a, model.sigma)
    with pytest.raises(ls.InvalidParameter, match="symmetric initialisation"):
        express(skew, [Monomial(1.0, [1.0, 0.0], 2)], np.random.default_rng(0))
    with pytest.raises(ls.NoTheorem, match="Assumption A"):
        expressivity(ls.RidgeMonomial(3, 2), [10], activation="relu", draws=1)


def test_the_verdict_says_no_to_wrong_exponents(tiny):
    wrong = {name: panel.copy(deep=True) for name, panel in tiny("expressivity").panels.items()}
    for panel in wrong.values():
        for name in ("exponent", "randomized_exponent"):
            if name in panel:
                panel[name][...] = 0.7
    assert expressivity_experiment.verdict(wrong)[-1].startswith("Not ")

"""The margin's limit: the printed equations by other routes, the issue's numbers, properties, thresholds, refusals."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit, ndtr
from scipy.stats import norm

import lazyscope as ls
from lazyscope.limits.margin.loss import compact, loss
from lazyscope.limits.margin.separability import separability_threshold
from lazyscope.limits.margin.spectrum import averages
from lazyscope.problems import LinearLabels
from lazyscope.regimes import GaussianFeatures, IsotropicFeatures, RandomFeatures

LABELS = {
    "logistic": LinearLabels(4.0),
    "sign": LinearLabels(1.0, "sign"),
    "probit": LinearLabels(1.5, "probit"),
    "ramp": LinearLabels(2.0, lambda t: np.clip(0.45 + 0.2 * t, 0.1, 0.8)),
}
ISOTROPIC = IsotropicFeatures()


def margin(problem, regime, psi1, psi2=1.0):
    return ls.limit(problem, regime, psi1=psi1, psi2=psi2, method="margin")


# -- the numbers that must come out ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (LinearLabels(1.0, "sign"), (0.786550, 0.671358, 0.265711)),
        (LinearLabels(5.0), (0.736370, 0.614424, 0.303510)),
    ],
    ids=["sign", "logistic"],
)
def test_isotropic_features_at_as_many_samples_as_features(problem, expected):
    result = margin(problem, ISOTROPIC, 1.0)
    found = (float(result.margin), float(result.alignment), float(result.error))
    assert found == pytest.approx(expected, abs=5e-7)
    assert float(result.residual) < 1e-13
    assert bool(result.separable)


def test_random_features_of_the_issue():
    result = margin(LinearLabels(4.0), RandomFeatures("relu"), 3.0, 2.0)
    assert float(result.margin) == pytest.approx(0.469827, abs=5e-7)
    assert float(result.error) == pytest.approx(0.314338, abs=5e-7)
    assert float(result.risk) == float(result.error)


# -- the spectrum ----------------------------------------------------------------------------------------------------


def marchenko_pastur(psi1, b1, b_star, nodes=4000):
    """λ, shares and α of Σ = b₁²WWᵀ + b⋆²I: the law integrated in the angle that makes its square-root edges smooth."""
    low, high = (1 - np.sqrt(psi1)) ** 2, (1 + np.sqrt(psi1)) ** 2
    angle = (np.arange(nodes) + 0.5) * np.pi / nodes
    ell = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(angle)
    share = np.sin(angle) ** 2 * (high - low) ** 2 / (8 * nodes * ell * psi1)  # eigenvalues of WWᵀ, of N
    ell, share = np.append(ell, 0.0), np.append(share, max(0.0, 1 - 1 / psi1))
    lam = b1**2 * ell + b_star**2
    return lam, share, psi1 * share * b1**2 * ell / lam


def test_the_test_s_own_spectrum_is_that_of_a_matrix():
    rng = np.random.default_rng(0)
    for psi1 in (0.5, 2.0):
        d = 600
        W = rng.standard_normal((int(psi1 * d), d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        lam, share, alpha = marchenko_pastur(psi1, 0.7, 0.4)
        assert share.sum() == pytest.approx(1.0, abs=1e-10)
        values, vectors = np.linalg.eigh(0.49 * W @ W.T + 0.16 * np.eye(len(W)))
        beta = rng.standard_normal(d)
        seen = (vectors.T @ (0.7 * W @ (beta / np.linalg.norm(beta)))) ** 2 / values
        for t in (0.05, 1.0):
            assert np.mean(values / (values + t)) == pytest.approx(share @ (lam / (lam + t)), abs=3 / d)
            # one β of d: the squared projections fluctuate by about 1/√d
            assert seen @ (values / (values + t)) == pytest.approx(alpha @ (lam / (lam + t)), abs=3 / np.sqrt(d))


@pytest.mark.parametrize("psi1", [0.2, 0.9, 1.0, 1.3, 20.0])
@pytest.mark.parametrize("t", [0.0, 0.01, 1.0, 300.0])
def test_closed_forms_of_the_spectrum_by_integration(psi1, t):
    b1, b_star = 0.8, 0.6
    lam, share, alpha = marchenko_pastur(psi1, b1, b_star)
    found = averages(t, np.array([psi1, b1**2, b_star**2]), np.empty((3, 0)))
    part = lam / (lam + t)
    sums = [part, -part / (lam + t), part**2, -2 * part**2 / (lam + t)]
    B, B1, b, b_slope = (alpha @ s for s in sums)
    expected = [*(share @ s for s in sums), B, B1, b - B**2, b_slope - 2 * B * B1, 1 - B]
    assert found == pytest.approx(expected, rel=1e-9)
    given = averages(t, np.array([1 - alpha.sum(), 0.0, 0.0]), np.stack([lam, share, alpha]))
    assert given == pytest.approx(found, rel=1e-9)


def test_averages_keep_their_digits_where_t_is_huge():
    with mpmath.workdps(50):
        psi1, signal, noise, t = mpmath.mpf(3), mpmath.mpf("0.7"), mpmath.mpf("0.3"), mpmath.mpf(10) ** 6

        def A(t):
            z = (noise + t) / signal
            m = (mpmath.sqrt((z + psi1 - 1) ** 2 + 4 * z) - (z + psi1 - 1)) / (2 * z)
            return 1 - t / signal * (m / psi1 + (1 - 1 / psi1) / z)

        one, square = A(t), A(t) + t * mpmath.diff(A, t)
    found = averages(1e6, np.array([3.0, 0.7, 0.3]), np.empty((3, 0)))
    assert found[0] == pytest.approx(float(one), rel=1e-13)
    assert found[2] == pytest.approx(float(square), rel=1e-12)


# -- the equations as they are printed, with an effective link and an integrated spectrum ----------------------------


class Printed:
    """The four equations of theory §5: YG and the effective link f̃, w² of mean one, ψ = N/n."""

    def __init__(self, problem, sigma, psi1, psi2):
        lam, share, alpha = marchenko_pastur(psi1, sigma.b1, sigma.b_star)
        self.lam, self.share, self.psi = lam, share, psi1 / psi2
        self.r2 = alpha.sum()
        self.w2 = np.divide(alpha, share, out=np.zeros_like(alpha), where=share > 0) / self.r2
        rho, hidden = problem.signal * np.sqrt(self.r2), problem.signal * np.sqrt(1 - self.r2)
        x, w = np.polynomial.hermite_e.hermegauss(120)
        w = w / w.sum()

        def effective(t):
            if problem.link == "sign":
                return ndtr(t / hidden)
            if problem.link == "probit":
                return ndtr(t / np.sqrt(1 + hidden**2))
            return problem.probability(t[:, None] + hidden * x) @ w

        self.t = np.linspace(-9.5, 9.5, 2001)  # the trapezoidal rule: exponentially accurate for analytic integrands
        h = effective(rho * self.t) + 1 - effective(-rho * self.t)
        self.p = norm.pdf(self.t) * h * (self.t[1] - self.t[0])

    def loss(self, kappa, c1, c2):
        x = (kappa - c1 * self.t) / c2
        F = c2 * np.sqrt(self.p @ ((x * x + 1) * ndtr(x) + x * norm.pdf(x)))
        return F, -c2 * (self.p @ (self.t * (x * ndtr(x) + norm.pdf(x)))) / F, c2 * (self.p @ ndtr(x)) / F

    def residuals(self, kappa, c1, c2):
        F, F1, F2 = self.loss(kappa, c1, c2)
        s, D = F - c1 * F1 - c2 * F2, F1 - c1 * F2 / c2
        below = self.lam * F2 / c2 + s
        over = self.share / below**2
        return [
            c1 + self.share @ (self.lam * self.w2 * D / below),
            c1**2 + c2**2 - over @ (self.lam**2 * (D**2 * self.w2 + self.psi)),
            1 - over @ (self.lam * (D**2 * self.w2 + self.psi)),
        ]

    def error(self, nu):
        return self.p @ ndtr(-nu * self.t / np.sqrt(1 - nu**2))


@pytest.mark.parametrize("name", ["logistic", "sign", "probit"])
@pytest.mark.parametrize(
    ("activation", "psi1", "psi2"), [("relu", 3.0, 2.0), ("tanh", 0.8, 0.5), ("softplus", 6.0, 5.0)]
)
def test_the_printed_equations_hold(name, activation, psi1, psi2):
    problem, sigma = LABELS[name], ls.Activation(activation)
    result = margin(problem, RandomFeatures(activation), psi1, psi2)
    kappa, nu = float(result.margin), float(result.alignment)
    printed = Printed(problem, sigma, psi1, psi2)
    assert float(result.seen) == pytest.approx(np.sqrt(printed.r2), abs=1e-10)
    # the printed equations have one more unknown: the size of (c₁, c₂), found from the third
    size = minimize_scalar(
        lambda size: abs(printed.residuals(kappa, nu * size, np.sqrt(1 - nu**2) * size)[2]),
        bounds=(0.3, 3.0),
        method="bounded",
        options={"xatol": 1e-13},
    ).x
    assert np.max(np.abs(printed.residuals(kappa, nu * size, np.sqrt(1 - nu**2) * size))) < 1e-8
    assert float(result.error) == pytest.approx(printed.error(nu), abs=1e-9)


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("psi", [0.6, 1.0, 5.0])
def test_the_isotropic_case_is_one_minimisation(name, psi):
    result = margin(LABELS[name], ISOTROPIC, psi)
    T, p = LABELS[name].agreement
    kappa = float(result.margin)

    def gap(angle):
        c1, c2 = np.sin(angle), np.cos(angle)
        return c2 * np.sqrt(loss(kappa / c2, c1 / c2, T, p)[3]) - np.sqrt(psi) * c2

    best = minimize_scalar(gap, bounds=(0.0, 1.5), method="bounded", options={"xatol": 1e-12})
    assert best.fun == pytest.approx(0.0, abs=1e-10)
    assert np.sin(best.x) == pytest.approx(float(result.alignment), abs=1e-5)


def test_the_margin_is_the_largest_over_all_classifiers_of_the_family():
    # any other (q, t) of a = R√λ(q√α − √ψg)/(λ + t) has a smaller κ with F_κ = its overlap with g
    problem, spectrum, psi = LABELS["logistic"], np.array([0.2, 1.0, 3.0]), 0.8
    best = float(margin(problem, GaussianFeatures(spectrum), psi).margin)
    rng = np.random.default_rng(1)
    largest = -np.inf
    for q, t in zip(rng.uniform(0, 3, 4000), 10 ** rng.uniform(-2, 1.5, 4000), strict=True):
        part = spectrum / (spectrum + t)
        A, B, a = part.mean(), part.mean(), (part**2).mean()
        norm2 = np.mean(spectrum / (spectrum + t) ** 2) * (psi + q**2)
        c1, total, overlap = q * B, (psi + q**2) * a, psi * A
        c2 = np.sqrt(total - c1**2)
        low, high = 0.0, 20.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            under = c2 * np.sqrt(loss(middle / c2, c1 / c2, *compact(problem))[3]) < overlap
            low, high = (middle, high) if under else (low, middle)
        largest = max(largest, low / np.sqrt(norm2))
    assert best - 0.01 < largest <= best + 1e-9


# -- properties ------------------------------------------------------------------------------------------------------

links = st.sampled_from(["logistic", "sign", "probit"])
ratios = st.floats(-1.5, 1.5).map(lambda e: 10**e)


@given(links, st.floats(0.0, 30.0), st.sampled_from(["relu", "tanh", "square", "softplus"]), ratios)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_more_features_widen_the_margin_and_errors_stay_between_bayes_and_a_coin(link, signal, activation, psi2):
    problem = LinearLabels(signal, link)
    result = margin(problem, RandomFeatures(activation), np.geomspace(0.02, 50.0, 25) * psi2, psi2)
    kappa, separable, error = result.margin.values, result.separable.values, result.error.values
    assert np.all(np.diff(kappa)[separable[1:]] > 0)
    assert np.all(np.diff(separable.astype(int)) >= 0)
    assert np.all((kappa > 0) == separable)
    assert np.all((error >= problem.bayes_error - 1e-12) & (error <= 0.5 + 1e-12))
    assert np.all(np.abs(result.alignment) <= 1)
    assert np.all(result.residual < 1e-9)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_without_signal_there_is_nothing_to_learn(link):
    signals = [1.0, 0.1, 0.01, 0.0]
    errors = [float(margin(LinearLabels(s, link), RandomFeatures("relu"), 3.0, 2.0).error) for s in signals]
    assert np.all(np.diff(errors) > 0)
    assert errors[-1] == pytest.approx(0.5, abs=1e-14)
    assert 0.5 - errors[-2] == pytest.approx((0.5 - errors[-3]) / 100, rel=0.02)  # as the signal's square


def test_even_activations_see_nothing_of_a_linear_score():
    result = margin(LinearLabels(4.0), RandomFeatures("square"), [1.0, 4.0], 1.0)
    assert result.error.values == pytest.approx([0.5, 0.5], abs=1e-14)
    assert result.seen.values == pytest.approx([0.0, 0.0], abs=1e-15)
    # features b⋆z: a margin all the same, that of isotropic noise without signal, b⋆² = 2
    coin = margin(LinearLabels(0.0), ISOTROPIC, [1.0, 4.0], 1.0)
    assert result.margin.values == pytest.approx(np.sqrt(2.0) * coin.margin.values, rel=1e-11)


@given(st.lists(st.floats(0.05, 20.0), min_size=1, max_size=6), st.floats(1e-3, 1e3), st.floats(0.6, 8.0))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_scaling_the_features_scales_the_margin(spectrum, scale, psi):
    one, other = (margin(LABELS["logistic"], GaussianFeatures(np.array(spectrum) * s**2), psi) for s in (1.0, scale))
    assert float(other.margin) == pytest.approx(scale * float(one.margin), rel=1e-9)
    assert float(other.error) == pytest.approx(float(one.error), abs=1e-10)


def test_scaling_the_activation_scales_the_margin():
    one = margin(LABELS["logistic"], RandomFeatures("relu"), 3.0, 2.0)
    ten = margin(LABELS["logistic"], RandomFeatures(ls.Activation(lambda u: 10 * np.maximum(u, 0))), 3.0, 2.0)
    assert float(ten.margin) == pytest.approx(10 * float(one.margin), rel=1e-11)


def test_random_features_are_gaussian_features_of_their_spectrum():
    psi1, psi2, sigma = 2.0, 1.5, ls.Activation("relu")
    lam, share, alpha = marchenko_pastur(psi1, sigma.b1, sigma.b_star)
    # equal shares: half of 2000 eigenvalues are b⋆², the others quantiles of the law
    lam, share = lam[-2::-1], share[-2::-1]
    cumulative = (np.cumsum(share) - 0.5 * share) / share.sum()
    quantiles = np.append(np.interp((np.arange(1000) + 0.5) / 1000, cumulative, lam), np.full(1000, sigma.b_star**2))
    weights = 1 - sigma.b_star**2 / quantiles
    given = GaussianFeatures(quantiles, weights / weights.sum() * alpha.sum())
    theirs, ours = margin(LABELS["sign"], given, psi1, psi2), margin(LABELS["sign"], RandomFeatures("relu"), psi1, psi2)
    assert float(theirs.margin) == pytest.approx(float(ours.margin), abs=1e-4)
    assert float(theirs.error) == pytest.approx(float(ours.error), abs=1e-4)
    unit = margin(LABELS["probit"], GaussianFeatures([1.0, 1.0]), 2.0)
    assert unit.margin == pytest.approx(float(margin(LABELS["probit"], ISOTROPIC, 2.0).margin), rel=1e-12)


def test_only_the_ratio_matters_to_given_features():
    one, other = margin(LABELS["sign"], ISOTROPIC, 3.0, 1.5), margin(LABELS["sign"], ISOTROPIC, 0.2, 0.1)
    assert float(one.margin) == pytest.approx(float(other.margin), rel=1e-12)


def test_a_surrogate_has_the_same_limit():
    plain, noisy = (margin(LABELS["sign"], RandomFeatures("relu", surrogate=s), 3.0, 2.0) for s in (False, True))
    assert float(plain.margin) == float(noisy.margin)


def test_a_grid_is_its_points_whatever_their_order():
    psi1, psi2 = np.array([0.3, 5.0, 0.9, 40.0, 2.0]), np.array([4.0, 0.3, 1.0])
    grid = margin(LABELS["logistic"], RandomFeatures("relu"), psi1, psi2)
    assert dict(grid.sizes) == {"psi1": 5, "psi2": 3}
    for i, one in enumerate(psi1):
        for j, two in enumerate(psi2):
            point = margin(LABELS["logistic"], RandomFeatures("relu"), one, two)
            here = grid.isel(psi1=i, psi2=j)
            assert bool(here.separable) == bool(point.separable)
            for name in ("margin", "error", "alignment"):
                assert float(here[name]) == pytest.approx(float(point[name]), abs=1e-11)


@pytest.mark.parametrize("psi", [0.1, 1e-3, 1e-5])
def test_labels_without_noise_and_many_samples(psi):
    # ν → 1: F is steep in T. By adaptive quadrature around the step of the loss
    result = margin(LABELS["sign"], ISOTROPIC, psi)
    kappa, nu = float(result.margin), float(result.alignment)
    c1, c2 = nu, np.sqrt((1 - nu) * (1 + nu))

    def squared(t):
        x = (kappa - c1 * t) / c2
        return 2 * norm.pdf(t) * c2**2 * ((x * x + 1) * ndtr(x) + x * norm.pdf(x))

    edges = [0.0, *[(kappa + k * c2) / c1 for k in (-4, -2, 0, 2, 4, 8, 12)]]
    edges = sorted(e for e in edges if 0 <= e < 9)
    F2 = sum(quad(squared, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in pairwise(edges))
    # κ has lost the digits that 1 − ν has: c₂ from ν alone is good to 1e-16/(1 − ν)
    assert np.sqrt(F2) == pytest.approx(np.sqrt(psi) * c2, rel=1e-10 + 1e-15 / (1 - nu))
    assert float(result.error) == pytest.approx(np.arccos(nu) / np.pi, rel=1e-8)
    assert float(result.residual) < 1e-9


# -- refusals --------------------------------------------------------------------------------------------------------

RELU = RandomFeatures("relu")
BAD = {
    "psi zero": (lambda: margin(LABELS["sign"], RELU, 0.0), "psi1 parameter of limit must be positive"),
    "psi negative": (
        lambda: margin(LABELS["sign"], RELU, 1.0, [1.0, -2.0]),
        "psi2 parameter of limit must be positive",
    ),
    "psi missing": (lambda: ls.limit(LABELS["sign"], RELU, psi1=1.0, method="margin"), "psi2 parameter of limit"),
    "psi infinite": (lambda: margin(LABELS["sign"], RELU, np.inf), "grow together"),
    "method": (
        lambda: ls.limit(LABELS["sign"], RELU, psi1=1.0, psi2=1.0),
        "method parameter of limit must be 'margin'",
    ),
    "weights": (lambda: margin(LABELS["sign"], RandomFeatures("relu", weights=[1.0, 1.0]), 1.0), "unit sphere"),
    "spectrum": (lambda: GaussianFeatures([1.0, 0.0]), "positive eigenvalues"),
    "spectrum rank": (lambda: GaussianFeatures([[1.0]]), "positive eigenvalues"),
    "alignment": (lambda: GaussianFeatures([1.0, 2.0], alignment=[0.7, 0.4]), "sum at most 1"),
    "alignment sign": (lambda: GaussianFeatures([1.0, 2.0], alignment=[0.7, -0.4]), "none negative"),
    "alignment size": (lambda: GaussianFeatures([1.0, 2.0], alignment=[0.7]), "one for each"),
    "threshold of both": (lambda: separability_threshold(LABELS["sign"], RELU, psi1=1.0, psi2=1.0), "not both"),
    "threshold of neither": (lambda: separability_threshold(LABELS["sign"], RELU), "Got neither"),
    "threshold at zero": (lambda: separability_threshold(LABELS["sign"], RELU, psi1=0.0), "must be positive"),
    "threshold at infinity": (lambda: separability_threshold(LABELS["sign"], RELU, psi1=np.inf), "between"),
    "threshold isotropic": (lambda: separability_threshold(LABELS["sign"], ISOTROPIC, psi1=1.0), "be left out"),
    "threshold regime": (lambda: separability_threshold(LABELS["sign"], ls.Trained()), "be RandomFeatures"),
    "threshold problem": (lambda: separability_threshold(ls.QuadraticTarget([1.0]), RELU, psi1=1.0), "LinearLabels"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_line(name):
    action, words = BAD[name]
    with pytest.raises(ls.LazyscopeError, match=words) as caught:
        action()
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_logistic_is_what_expit_is():
    # one link by two names, through the panels of a callable
    named, called = (margin(LinearLabels(3.0, link), RELU, 3.0, 2.0) for link in ("logistic", expit))
    assert float(named.margin) == pytest.approx(float(called.margin), rel=1e-12)

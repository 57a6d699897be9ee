"""Random-features ridge regression: the fixed point, the four curves, the best ridge, the peak."""

import itertools

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import lazyscope as ls
from lazyscope.limits.ridge.fixed_point import solve
from lazyscope.limits.ridge.optimal import optimal_ridge
from lazyscope.limits.ridge.peak import least_samples, vanishing_peak
from lazyscope.problems import LinearTarget

RELU = ls.RandomFeatures("relu")
B_STAR2 = RELU.activation.b_star**2
ZETA = RELU.activation.b1 / RELU.activation.b_star
SIZES = st.floats(-3.0, 4.0).map(lambda x: 10.0**x)
RIDGES = st.floats(-12.0, 6.0).map(lambda x: 10.0**x)
PROPERTY = settings(max_examples=100, deadline=None, derandomize=True)


def risk(psi1, psi2, lambda_bar, name="risk", **target):
    return float(ls.limit(LinearTarget(**target), RELU, psi1=psi1, psi2=psi2, ridge=lambda_bar * B_STAR2)[name])


def from_polynomials(chi, z, psi1, psi2):
    """𝓑 = 𝓔₁/𝓔₀ and 𝓥 = 𝓔₂/𝓔₀ as the talk prints them, z = ζ²."""
    E0 = (
        -(chi**5) * z**3 + 3 * chi**4 * z**2 + (psi1 * psi2 - psi2 - psi1 + 1) * chi**3 * z**3 - 2 * chi**3 * z**2
        - 3 * chi**3 * z + (psi1 + psi2 - 3 * psi1 * psi2 + 1) * chi**2 * z**2 + 2 * chi**2 * z + chi**2
        + 3 * psi1 * psi2 * chi * z - psi1 * psi2
    )  # fmt: skip
    E1 = psi2 * chi**3 * z**2 - psi2 * chi**2 * z + psi1 * psi2 * chi * z - psi1 * psi2
    E2 = (
        chi**5 * z**3 - 3 * chi**4 * z**2 + (psi1 - 1) * chi**3 * z**3 + 2 * chi**3 * z**2 + 3 * chi**3 * z
        + (-psi1 - 1) * chi**2 * z**2 - 2 * chi**2 * z - chi**2
    )  # fmt: skip
    return E1 / E0, E2 / E0


def as_printed(zeta, psi1, psi2, lambda_bar):
    """𝓑, 𝓥 and ηb₂/ψ₂ from the formulas of the talk as they are printed, with 60 digits.

    The root is found by another equation, (ψ₁ − h)(ψ₂ − h) = η²c, and must satisfy both of the paper's own.
    """
    with mp.workdps(60):
        z, psi1, psi2, lambda_bar = (mp.mpf(x) for x in (zeta, psi1, psi2, lambda_bar))
        z, eta, m = z**2, mp.sqrt(psi1 * psi2 * lambda_bar), min(psi1, psi2)
        b = 1 + z - z * m
        ends = [mp.mpf(0), (mp.sqrt(b * b + 4 * z * m) - b) / (2 * z)]

        def h(c):
            return c + z * c / (1 + z * c)

        def excess(c):
            return (1 - h(c) / psi1) * (1 - h(c) / psi2) - lambda_bar * c

        for _ in range(190):
            middle = sum(ends) / 2
            ends[excess(middle) < 0] = middle
        nu1, nu2 = (mp.mpc(0, (psi - h(sum(ends) / 2)) / eta) for psi in (psi1, psi2))
        for mine, other, psi in ((nu1, nu2, psi1), (nu2, nu1, psi2)):
            assert abs(mine * (-mp.mpc(0, eta) - other - z * other / (1 - z * mine * other)) / psi - 1) < 1e-30
        chi = nu1 * nu2
        bias, variance = from_polynomials(chi, z, psi1, psi2)
        return [float(mp.re(value)) for value in (bias, variance, eta * nu2 / psi2 / mp.mpc(0, 1))]


@pytest.mark.parametrize("zeta, digits", [(ZETA, 4e-15), (0.05, 4e-15), (50.0, 1e-13)])
def test_the_printed_formulas_to_rounding_at_extreme_points(zeta, digits):
    # rounding is amplified by ζ where the activation is nearly linear: see the module's docstring
    sizes = (1e-3, 1.0, 1.0 + 1e-6, 3.0, 1e4)
    for psi1, psi2, ridge in itertools.product(sizes[:-1], sizes[1:], (1e-12, 1e-3, 1e6)):
        found = solve(zeta, np.array([psi1]), np.array([psi2]), np.array([ridge]))
        got = [float(value[0]) for value in (*found.point.errors, found.point.delta2)]
        assert got == pytest.approx(as_printed(zeta, psi1, psi2, ridge), rel=digits)
        assert found.residual[0] < 2e-15 and found.iterations[0] <= 8


@pytest.mark.parametrize(
    "psi1, psi2, lambda_bar, tau2, expected",
    [
        (3, 10, 0.06, 0.8, 0.417479388727),
        (25, 10, 0.06, 0.8, 0.217228169324),
        (6, 3, 0.11, 0.5, 0.437687358828),
        (0.5, 3, 1.1, 0.5, 0.836862509354),
    ],
)
def test_reference_values(psi1, psi2, lambda_bar, tau2, expected):
    assert risk(psi1, psi2, lambda_bar, noise=tau2**0.5) == pytest.approx(expected, abs=1e-12)


def test_zeta_is_not_what_the_talk_prints():
    # its ζ ≡ b₁²/b⋆² gives 0.281 where simulation says 0.444 ± 0.009
    lambda_bar = 0.1 / B_STAR2
    found = solve(ZETA**2, np.array([2.0]), np.array([3.0]), np.array([lambda_bar]))
    squared = sum(w * e[0] for w, e in zip((1.0, 0.25), found.point.errors, strict=True))
    assert squared == pytest.approx(0.281, abs=5e-4)
    assert risk(2, 3, lambda_bar, noise=0.5) == pytest.approx(0.4449, abs=5e-5)


def test_it_is_bias_plus_variance_plus_what_is_beyond_linear():
    target = LinearTarget(signal=2.0, noise=0.3, nonlinear=0.7)
    result = ls.limit(target, RELU, psi1=[0.5, 4.0], psi2=[1.0, 3.0], ridge=[0.0, 0.1])
    unit = ls.limit(LinearTarget(noise=1.0), RELU, psi1=[0.5, 4.0], psi2=[1.0, 3.0], ridge=[0.0, 0.1])
    assert result.risk.dims == ("psi1", "psi2", "ridge")
    assert np.allclose(result.bias, 4.0 * unit.bias, rtol=1e-15)
    assert np.allclose(result.variance, (0.09 + 0.49) * unit.variance, rtol=1e-15)
    assert np.allclose(result.risk, result.bias + result.variance + 0.49, rtol=1e-15)


def ridgeless(psi1, psi2):
    """𝓑 and 𝓥 from χ in closed form (theory.md §4), with the formulas as printed."""
    m, z = min(psi1, psi2), ZETA**2
    chi = -(np.sqrt(((m - 1) * z - 1) ** 2 + 4 * z * m) + (m - 1) * z - 1) / (2 * z)
    return from_polynomials(chi, z, psi1, psi2)


@pytest.mark.parametrize("psi1, psi2", [(0.5, 3.0), (3.0, 0.5), (2.0, 2.1), (40.0, 2.0)])
def test_ridgeless_is_the_closed_form_and_the_limit_of_small_ridges(psi1, psi2):
    bias, variance = ridgeless(psi1, psi2)
    assert risk(psi1, psi2, 0.0, "bias", noise=1.0) == pytest.approx(bias, rel=1e-11)
    assert risk(psi1, psi2, 0.0, "variance", noise=1.0) == pytest.approx(variance, rel=1e-11)
    # the next order is λ̄c/(1 − m/M)², 6e-10 for 2.0 and 2.1
    assert risk(psi1, psi2, 1e-12, noise=1.0) == pytest.approx(bias + variance, rel=1e-8)
    if psi1 < psi2:  # least squares with N < n Gaussian-like features
        assert variance == pytest.approx(psi1 / (psi2 - psi1), rel=1e-11)


def test_the_threshold_without_ridge_is_infinite_and_fits_the_data():
    at = ls.limit(LinearTarget(noise=0.5), RELU, psi1=2.0, psi2=2.0, ridge=0.0)
    assert at.risk == at.bias == at.variance == np.inf and at.train == 0.0
    assert "infinite at ψ₁ = ψ₂" in at.attrs["assumptions"]
    pure = ls.limit(LinearTarget(signal=0.0), RELU, psi1=2.0, psi2=2.0, ridge=0.0)
    assert pure.risk == 0.0  # nothing to learn, no noise: the fit is zero whatever the sizes
    # it grows like ridge^−½ towards it, without a cap
    heights = [risk(2, 2, x, noise=0.5) for x in (1e-8, 1e-10, 1e-12)]
    assert np.diff(np.log10(heights)) == pytest.approx(1.0, abs=1e-3)


def test_infinite_sizes_are_the_limits_of_large_ones():
    target = LinearTarget(noise=0.7, nonlinear=0.2)
    for ridge in (0.0, 1e-3, 1.0):
        for finite, infinite in (
            ({"psi1": 1e8, "psi2": 3.0}, {"psi1": np.inf, "psi2": 3.0}),
            ({"psi1": 0.4, "psi2": 1e8}, {"psi1": 0.4, "psi2": np.inf}),
            ({"psi1": 1e8, "psi2": 1e14}, {"psi1": np.inf, "psi2": np.inf}),
        ):
            near, there = (ls.limit(target, RELU, ridge=ridge, **sizes) for sizes in (finite, infinite))
            for name in ("risk", "bias", "variance", "train"):
                # the next order is 1/ψ; with ψ₂ → ∞ and no ridge the bias falls to zero
                assert float(near[name]) == pytest.approx(float(there[name]), rel=1e-6, abs=1e-6)


def test_kernel_limit_in_its_own_closed_form():
    """ψ₁ = ∞: h/ψ₂ + λ̄c = 1, 𝓑 = (1 − r)²/(1 − r²/ψ₂), 𝓥 = r²/(ψ₂ − r²), by its own root finder."""
    from scipy.optimize import brentq

    z = ZETA**2
    for psi2, lam in itertools.product((0.3, 1.0, 4.0), (1e-6, 0.1, 5.0)):
        c = brentq(lambda c, k=psi2, x=lam: (c + z * c / (1 + z * c)) / k + x * c - 1, 0, psi2, xtol=1e-16, rtol=1e-15)
        r = z * c / (1 + z * c)
        assert risk(np.inf, psi2, lam, "bias", noise=1.0) == pytest.approx((1 - r) ** 2 / (1 - r * r / psi2), rel=1e-12)
        assert risk(np.inf, psi2, lam, "variance", noise=1.0) == pytest.approx(r * r / (psi2 - r * r), rel=1e-12)
    population = (1 / (1 + ZETA**2 / 0.3)) ** 2  # all of nature, every feature: shrinkage alone
    assert risk(np.inf, np.inf, 0.3) == pytest.approx(population, rel=1e-13)


@PROPERTY
@given(SIZES, SIZES, RIDGES)
def test_errors_are_never_negative_and_the_fit_is_never_worse_than_zero(psi1, psi2, ridge):
    result = ls.limit(LinearTarget(noise=0.6), RELU, psi1=psi1, psi2=psi2, ridge=ridge)
    assert result.bias >= 0 and result.variance >= 0 and result.train >= 0
    assert result.train <= 1.36 * (1 + 1e-14)  # a = 0 is a candidate of the minimisation
    assert result.residual < 2e-15 and result.iterations <= 8


@PROPERTY
@given(SIZES, RIDGES)
def test_risk_is_continuous_across_the_threshold(psi, ridge):
    # |d log R/d log ψ₁| ≤ 1/δ there, δ² = λ̄c: a step of 1e-9δ changes it by less than 1e-8
    point = solve(ZETA, np.array([psi]), np.array([psi]), np.array([ridge])).point
    delta = float(point.delta1[0])
    sides = [risk(psi * (1 + side * 1e-9 * delta), psi, ridge, noise=0.5) for side in (-1, 0, 1)]
    assert sides == pytest.approx([sides[1]] * 3, rel=1e-7)


@PROPERTY
@given(SIZES, SIZES)
def test_an_infinite_ridge_predicts_nothing(psi1, psi2):
    target = LinearTarget(signal=1.3, noise=0.5, nonlinear=0.4)
    result = ls.limit(target, RELU, psi1=psi1, psi2=psi2, ridge=1e12)
    assert result.risk == pytest.approx(target.energy, rel=1e-9)
    assert result.train == pytest.approx(target.energy + 0.25, rel=1e-9)


@PROPERTY
@given(SIZES, SIZES, RIDGES, st.floats(0.0, 3.0), st.floats(0.01, 2.0))
def test_risk_grows_with_noise(psi1, psi2, ridge, noise, more):
    low, high = (risk(psi1, psi2, ridge, noise=tau) for tau in (noise, noise + more))
    assert high >= low


@PROPERTY
@given(SIZES, st.floats(-8.0, 6.0).map(lambda x: 10.0**x))
def test_the_kernel_limit_is_that_of_many_neurons(psi2, ridge):
    kernel, wide = (risk(psi1, psi2, ridge, noise=0.5) for psi1 in (np.inf, 1e8))
    # 1/ψ₁ multiplies g, h < ψ₂ in a, δ₁ and 𝓔₂, and 1/ζ² at most in 𝓔₁; 𝓑 and τ²𝓥 are below 1
    assert wide == pytest.approx(kernel, rel=0.0, abs=4 * (1 + psi2) / 1e8)


def test_training_error_is_the_derivative_of_the_objective():
    """A second route to `train`: min over a of (1/n)‖y − Φa‖² + λ(N/d)‖a‖² is E(λ), so that train = E − λ dE/dλ.

    E = (1/n) λ' yᵀ(ΦΦᵀ/n + λ')⁻¹y is a quadratic form in y, whose limit for y ~ N(0, τ²) alone is τ²δ₂.
    """
    lam = 0.2
    for psi1, psi2 in ((0.5, 2.0), (2.0, 0.5), (3.0, 3.0)):

        def delta2(x, psi1=psi1, psi2=psi2):
            return float(solve(ZETA, np.array([psi1]), np.array([psi2]), np.array([x])).point.delta2[0])

        step = 1e-5
        slope = (delta2(lam + step) - delta2(lam - step)) / (2 * step)
        expected = 0.49 * (delta2(lam) - lam * slope)
        assert risk(psi1, psi2, lam, "train", signal=0.0, noise=0.7) == pytest.approx(expected, rel=1e-8)


def test_optimal_ridge_against_a_plain_minimiser():
    for noise, psi1, psi2 in itertools.product((0.3, 1.0, 3.0), (0.5, 3.0, np.inf), (0.7, 3.0)):
        best = optimal_ridge(LinearTarget(noise=noise), RELU, psi1=psi1, psi2=psi2)
        grid = np.geomspace(1e-9, 1e5, 400)
        curve = ls.limit(LinearTarget(noise=noise), RELU, psi1=psi1, psi2=psi2, ridge=grid).risk.values
        k = int(np.clip(np.argmin(curve), 1, len(grid) - 2))
        found = minimize_scalar(
            lambda x, p1=psi1, p2=psi2, tau=noise: risk(p1, p2, np.exp(x) / B_STAR2, noise=tau),
            bounds=np.log([grid[k - 1], grid[k + 1]]),
            method="bounded",
            options={"xatol": 1e-9},
        )
        at_zero = risk(psi1, psi2, 0.0, noise=noise)
        assert float(best.risk) == pytest.approx(min(found.fun, at_zero), rel=1e-10)
        if best.ridge > 0:  # a flat minimum: its place is known to half the digits of its value
            assert float(best.ridge) == pytest.approx(np.exp(found.x), rel=1e-5)
        else:
            assert at_zero <= found.fun


def test_optimal_ridge_is_zero_at_high_signal_and_positive_at_low():
    strong, weak = (optimal_ridge(LinearTarget(noise=tau), RELU, psi1=[30.0, np.inf], psi2=3.0) for tau in (0.1, 1.0))
    assert np.all(strong.ridge == 0.0) and np.all(weak.ridge > 0.01)
    assert optimal_ridge(LinearTarget(noise=0.1), RELU, psi1=3.0, psi2=3.0).ridge > 0.0  # the threshold
    assert optimal_ridge(LinearTarget(noise=2.0), RELU, psi1=3.0, psi2=np.inf).ridge == 0.0  # all of nature
    nothing = optimal_ridge(LinearTarget(signal=0.0, noise=1.0, nonlinear=0.5), RELU, psi1=3.0, psi2=2.0)
    assert nothing.ridge == np.inf and nothing.risk == pytest.approx(0.25)
    # the switch is where the risk's slope at zero changes sign: it must be continuous there
    tau = np.linspace(0.1, 1.0, 31)
    ridge = [float(optimal_ridge(LinearTarget(noise=t), RELU, psi1=np.inf, psi2=3.0).ridge) for t in tau]
    first = int(np.argmax(np.array(ridge) > 0))
    assert 0 < first < 30 and np.all(np.diff(ridge[first:]) > 0) and ridge[first] < 0.02


def test_where_the_peak_disappears():
    """By mpmath with 50 digits, dR/dψ₁ = d²R/dψ₁² = 0 at (3.83680306777, 0.0647270404206) for ψ₂ = 10, τ² = 0.8."""
    target = LinearTarget(noise=0.8**0.5)
    there = vanishing_peak(target, RELU, psi2=10.0)
    assert float(there.ridge) / B_STAR2 == pytest.approx(0.0647270404206, rel=1e-8)
    assert float(there.psi1) == pytest.approx(3.83680306777, rel=1e-6)
    back = vanishing_peak(target, RELU, ridge=[float(there.ridge)])
    assert back.psi2.values == pytest.approx([10.0], rel=1e-7)
    assert back.psi1.values == pytest.approx([float(there.psi1)], rel=1e-6)
    psi1 = np.geomspace(0.01, 100.0, 4001)
    for factor, peaks in ((0.98, 1), (1.02, 0)):
        curve = ls.limit(target, RELU, psi1=psi1, psi2=10.0, ridge=factor * float(there.ridge)).risk.values
        rises = np.diff(curve) > 0
        assert np.count_nonzero(np.diff(rises.astype(int)) < 0) == peaks


def test_below_a_number_of_samples_no_ridge_removes_the_peak():
    target = LinearTarget(noise=0.5)
    bound = least_samples(target, ZETA)
    few, enough = vanishing_peak(target, RELU, psi2=[0.99 * bound, 1.05 * bound]).ridge.values
    assert few == np.inf and 0 < enough < np.inf
    for psi2, falls in ((0.99 * bound, False), (1.01 * bound, True)):
        for ridge in (1e-3, 10.0):
            assert (risk(1e-4, psi2, ridge, noise=0.5) < 1.0) == falls
    huge = vanishing_peak(target, RELU, ridge=100.0)
    assert huge.psi2 == pytest.approx(bound) and huge.psi1 == 0.0


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda: risk(2, 2, -0.1), "ridge parameter of limit must be zero or positive"),
        (lambda: risk(0.0, 2, 0.1), "psi1 parameter of limit must be positive"),
        (lambda: risk(2, -1.0, 0.1), "psi2 parameter of limit must be positive"),
        (lambda: risk(2, 2, np.nan), "ridge parameter of limit"),
        (lambda: risk(2, 2, 0.1, noise=-0.5), "noise parameter of LinearTarget"),
        (lambda: ls.limit(LinearTarget(), ls.RandomFeatures("square"), psi1=1, psi2=1, ridge=1), "b₁ = E"),
        (lambda: ls.limit(LinearTarget(), ls.RandomFeatures("abs"), psi1=1, psi2=1, ridge=1), "assumes b₁"),
        (lambda: ls.RandomFeatures(lambda u: 3.0 * u), "must not be linear"),
        (lambda: ls.RandomFeatures(lambda u: 0.0 * u + 1.0), "must not be linear"),
        (lambda: ls.limit(LinearTarget(), ls.RandomFeatures("relu", weights=[1.0, 2.0]), psi1=1, psi2=1, ridge=1), "w"),
        (lambda: optimal_ridge(LinearTarget(), RELU, psi1=0.0, psi2=1.0), "psi1 parameter of optimal_ridge"),
        (lambda: optimal_ridge(ls.QuadraticTarget([1.0]), RELU, psi1=1.0, psi2=1.0), "assumes a LinearTarget"),
        (lambda: optimal_ridge(LinearTarget(), ls.Trained(), psi1=1.0, psi2=1.0), "assumes RandomFeatures"),
        (lambda: vanishing_peak(LinearTarget(), RELU), "psi2 parameter of vanishing_peak must be given"),
        (lambda: vanishing_peak(LinearTarget(), RELU, psi2=np.inf), "must be finite"),
        (lambda: vanishing_peak(LinearTarget(signal=0.0), RELU, psi2=2.0), "signal > 0"),
    ],
)
def test_bad_input_gets_one_clear_line(act, words):
    with pytest.raises(ls.LazyscopeError, match=words) as caught:
        act()
    assert "\n" not in str(caught.value)

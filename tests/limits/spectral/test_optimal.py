"""The best ridge at given sizes: a plain minimiser, closed forms, the proved exponents, where none or all is best."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import lazyscope as ls

INF = float("inf")
RELU, TANGENT = ls.RandomFeatures("relu"), ls.NeuralTangent("relu")
TARGET = ls.HarmonicTarget(12, [0.1, 0.4, 0.3, 0.2], noise=0.5)


@pytest.mark.parametrize(
    ("problem", "regime"),
    [
        (TARGET, RELU),
        (TARGET, TANGENT),
        (ls.SpectralTarget([1.0, 0.1, 1e-9], [0.5, 0.3, 0.2], [1, 90, 9], 0.5, 0.4), RELU),
    ],
    ids=["rf", "nt", "spectral"],
)
def test_it_is_the_minimum_that_a_plain_minimiser_finds(problem, regime):
    found = ls.optimal_ridge(problem, regime, width=[60, INF], samples=[20, 90, 400])
    assert found.risk.dims == ("width", "samples")
    for N in (60, INF):
        for n in (20, 90, 400):
            here = found.sel(width=N, samples=n)

            def risk(x, N=N, n=n):
                return float(ls.limit(problem, regime, width=N, samples=n, ridge=10.0**x).risk)

            plain = minimize_scalar(risk, bounds=(-6, 4), method="bounded", options={"xatol": 1e-7})
            assert float(here.risk) <= plain.fun * (1 + 1e-13)
            assert np.log10(float(here.ridge)) == pytest.approx(plain.x, abs=1e-5)  # flat: √ε of a decade, and more
            same = ls.limit(problem, regime, width=N, samples=n, ridge=float(here.ridge))
            assert float(same.train) == pytest.approx(float(here.train), rel=1e-12)


def test_the_tangent_model_at_n_of_order_d_wants_the_ridge_of_the_noise():
    """Ridge regression on isotropic inputs is best at γ = τ²/F₁²; what σ brings of its own is part of γ."""
    slope, rest = 0.25, 0.25  # (Eσ′)² and Var σ′ of ReLU
    for noise, signal in ((1.0, 0.5), (2.0, 1.0), (0.5, 1.0)):
        best = ls.optimal_ridge(ls.LinearTarget(signal, noise), TANGENT, psi2=[0.5, 2.0])
        wanted = max(0.0, slope * (noise / signal) ** 2 - rest)
        assert best.ridge.values == pytest.approx(wanted, rel=1e-6)


def test_it_approaches_that_of_the_proportional_regime():
    """λ here is nλ/d there, and the two risks differ by 1/d."""
    there = ls.optimal_ridge(ls.LinearTarget(noise=1.0), RELU, psi1=2.0, psi2=3.0)
    d = 100_000
    here = ls.optimal_ridge(ls.HarmonicTarget(d, [0.0, 1.0], noise=1.0), RELU, width=2 * d, samples=3 * d)
    assert float(here.ridge) == pytest.approx(3.0 * float(there.ridge), rel=1e-4)
    assert float(here.risk) == pytest.approx(float(there.risk), rel=1e-5)


def test_no_ridge_is_best_without_noise_and_every_ridge_with_nothing_to_learn():
    clean = ls.HarmonicTarget(12, [0.0, 1.0])
    assert np.all(ls.optimal_ridge(clean, RELU, width=INF, samples=[20, 90]).ridge == 0.0)
    assert float(ls.optimal_ridge(TARGET, RELU, width=50, samples=INF).ridge) == 0.0
    unseen = ls.optimal_ridge(ls.HarmonicTarget(12, [0.0, 0.0, 1.0], noise=0.5), ls.RandomFeatures("erf"),
                              width=50, samples=[40, 400])  # fmt: skip
    assert np.all(np.isinf(unseen.ridge)) and np.all(unseen.risk == 1.0) and np.all(unseen.train == 1.25)
    nothing = ls.optimal_ridge(ls.HarmonicTarget(12, [0.0], noise=0.5), RELU, width=50, samples=40)
    assert np.isinf(nothing.ridge) and float(nothing.risk) == 0.0


@pytest.mark.parametrize(
    ("capacity", "source", "measured", "proved"),
    [(1.5, 0.5, -0.603, -0.6), (2.0, 0.3, -0.553, -0.6 * 2 / 2.2), (1.5, 1.5, -0.732, -0.75)],
)
def test_noisy_power_laws_fall_with_the_proved_exponents(capacity, source, measured, proved):
    """τ² = ½, n = 400 … 3,200, the best λ: n^(−2a·min(r,1)/(2a·min(r,1) + 1))."""
    n = np.array([400, 800, 1600, 3200])
    target = ls.SpectralTarget.power_law(capacity, source, terms=20_000, noise=np.sqrt(0.5))
    best = ls.optimal_ridge(target, ls.RandomFeatures(), width=INF, samples=n)
    slope = np.polyfit(np.log(n), np.log(best.risk.values), 1)[0]
    assert slope == pytest.approx(measured, abs=1e-3) and slope == pytest.approx(proved, abs=0.02)


def test_units_of_the_spectrum_do_not_matter():
    small, large = (
        ls.SpectralTarget(scale * np.array([1.0, 0.1]), [0.5, 0.5], [3, 50], 0.0, 0.3) for scale in (1e-40, 1.0)
    )
    two = [ls.optimal_ridge(target, RELU, width=200, samples=60) for target in (small, large)]
    assert float(two[0].risk) == pytest.approx(float(two[1].risk), rel=1e-12)
    assert float(two[0].ridge) == pytest.approx(1e-40 * float(two[1].ridge), rel=1e-6)


def test_sizes_that_do_not_belong_are_refused():
    for call, match in (
        (lambda: ls.optimal_ridge(TARGET, RELU, psi1=1.0, width=5, samples=5), "psi1 parameter of optimal_ridge"),
        (lambda: ls.optimal_ridge(TARGET, RELU, width=5), "samples parameter of optimal_ridge"),
        (lambda: ls.optimal_ridge(ls.LinearTarget(), TANGENT, psi1=1.0, psi2=1.0), "psi1 parameter of optimal_ridge"),
        (lambda: ls.optimal_ridge(ls.LinearTarget(), RELU, width=5, psi1=1.0, psi2=1.0), "width parameter"),
        (lambda: ls.optimal_ridge(TARGET, TANGENT, width=5, samples=5), "N ≥ 2d"),
        (lambda: ls.optimal_ridge(TARGET, ls.Trained("relu"), width=5, samples=5), "assumes a LinearTarget"),
    ):
        with pytest.raises(ls.LazyscopeError, match=match):
            call()

"""Functions of one direction: their Hermite series, what the three fidelities make of them, what is refused."""

from math import factorial, sqrt

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.activations import Activation
from lazyscope.weights import draw, generator


def fitted(problem, regime, N, n=200_000):
    """Risk of a least-squares fit to samples, and its standard error, on weights that `exact` sees too."""
    W = draw(problem, regime, N, generator(0, 0, N))
    rng, sigma = np.random.default_rng(1), regime.activation
    risks = []
    for part in (0, 1):  # fit on the first, test on the second
        X = rng.standard_normal((n, problem.d))
        y, H = problem.h(X @ problem.u), X @ W.T
        if isinstance(regime, ls.RandomFeatures):
            features = sigma(H) - sigma.hermite(0)
        else:
            blocks = (sigma.derivative(H)[:, :, None] * X[:, None, :]).reshape(n, -1)
            features = np.column_stack([np.ones(n), blocks])
        if part == 0:
            a = np.linalg.lstsq(features, y, rcond=None)[0]
        else:
            risks = (y - features @ a) ** 2 / problem.energy
    return float(np.mean(risks)), float(np.std(risks) / sqrt(n)), features.shape[1] / n


@pytest.mark.parametrize("link", ["he3", "erf", "relu", Activation(lambda z: np.abs(z - 0.5), kinks=(0.5,))], ids=str)
@pytest.mark.parametrize("regime", [ls.RandomFeatures("relu"), ls.RandomFeatures("erf"), ls.NeuralTangent("erf")])
def test_exact_agrees_with_a_large_fit(link, regime):
    problem = ls.MultiIndex(6, link, direction=np.array([2.0, -1.0, 0.0, 2.0, 0.0, 0.0]) / 3.0)
    exact = float(ls.exact(problem, regime, width=5).risk)
    risk, error, share = fitted(problem, regime, 5)
    # the fit itself adds about share·risk to the population's minimum, at most √3 times as much
    assert -3.0 * error <= risk - exact <= 3.0 * error + sqrt(3.0) * share * risk


def test_a_second_degree_link_is_a_quadratic_target():
    """he₂(⟨u, x⟩) = ⟨x, Bx⟩ − Tr B with B = uuᵀ/√2: another class, the same numbers."""
    d, N = 12, 7
    single, quadratic = ls.MultiIndex(d, "he2"), ls.QuadraticTarget(np.eye(1, d)[0] / sqrt(2.0))
    for regime in (ls.RandomFeatures("relu"), ls.NeuralTangent("relu"), ls.NeuralTangent("square")):
        ours, theirs = (float(ls.exact(problem, regime, width=N).risk) for problem in (single, quadratic))
        assert ours == pytest.approx(theirs, abs=1e-9)
    # the limits let Tr(B)²/(d‖B‖²) = 1/d vanish where the quadratic target keeps it
    ours, theirs = (float(ls.limit(p, ls.NeuralTangent(), rho=0.5).risk) for p in (single, quadratic))
    assert ours == 0.25
    assert theirs == pytest.approx(0.25 * (1 - 1 / d) + 0.5 / d)


def test_the_linear_part_is_that_of_ridge_regression():
    """Random features on a linear link at n = ∞ by Mei and Montanari's theorem: a second route to the resolvent."""
    problem = ls.MultiIndex(100, "he1")
    for psi1 in (0.3, 1.0, 4.0):
        ours = float(ls.limit(problem, ls.RandomFeatures("relu"), rho=psi1).risk)
        theirs = ls.limit(ls.LinearTarget(), ls.RandomFeatures("relu"), psi1=psi1, psi2=1e9, ridge=0.0).risk
        assert ours == pytest.approx(float(theirs), abs=1e-7)  # 1/ψ₂


@pytest.mark.parametrize("regime", [ls.RandomFeatures("erf"), ls.NeuralTangent("erf")])
def test_lazy_regimes_lose_a_cubic_target_as_d_grows(regime):
    """L §1: at N = d random features learn a share ~ d⁻² of he₃, NT a share ~ d⁻¹ (N and Nd functions of d³/6).

    A draw's share is a mean over its N weights of (⟨w, u⟩/‖w‖)⁶ ~ g⁶/d³, which varies by √(10395/15² − 1) = 6.7 times
    itself: over 1,920 weights by 15 %, which leaves the exponent of random features 0.16.
    """
    sizes, draws = np.array([40, 80, 160]), (48, 24, 12)
    learnt = [
        1.0 - float(ls.exact(ls.MultiIndex(int(d)), regime, width=int(d), draws=k).risk)
        for d, k in zip(sizes, draws, strict=True)
    ]
    rate = np.polyfit(np.log(sizes), np.log(learnt), 1)[0]
    expected = -2.0 if isinstance(regime, ls.RandomFeatures) else -1.0
    assert rate == pytest.approx(expected, abs=3 * 0.16)


def test_sgd_on_a_form_measures_what_samples_do():
    """For σ = u² the risk along training is a closed form; fresh samples say the same."""
    problem = ls.MultiIndex(8, "relu", noise=0.3)
    protocol = ls.SGD(steps=4000, batch=20, step_sizes=(0.05,), test=20_000)
    result = ls.simulate(problem, ls.Trained(), width=4, protocol=protocol)
    assert float(result.trace[-1]) == pytest.approx(float(result.tested), rel=0.05)  # 20,000 samples: ±1.5 %
    assert float(result.risk) < 0.9  # the quadratic part is 23 % of the energy


def test_coefficients_and_exponents():
    cube = ls.MultiIndex(5, "cube")
    np.testing.assert_allclose(cube.coefficients, [0.0, 3.0, 0.0, sqrt(6.0)], atol=1e-12)
    assert cube.energy == pytest.approx(15.0)
    z = np.linspace(-2.0, 2.0, 5)
    np.testing.assert_allclose(ls.MultiIndex(5, "he4").h(z), (z**4 - 6 * z**2 + 3) / sqrt(factorial(4)), atol=1e-12)
    exponents = {"relu": 1, "abs": 2, "sign": 1, "square": 2, "cos": 2, "he7": 7, "sigmoid": 1}
    assert {link: ls.MultiIndex(3, link).information_exponent for link in exponents} == exponents


def broken(z):
    raise RuntimeError("two\nlines")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"d": 0}, "d parameter"),
        ({"link": "he0"}, "Hermite polynomial"),
        ({"link": "reIu"}, "Hermite polynomial"),
        ({"link": lambda z: 0 * z}, "link parameter of MultiIndex must vary"),
        ({"link": lambda z: 2 * z + 1}, "he1"),
        ({"link": lambda z: z[:3]}, "link parameter of MultiIndex .* same shape"),
        ({"link": lambda z: 1j * z}, "complex"),
        ({"link": lambda z: np.full_like(z, np.nan)}, "NaN"),
        ({"link": broken}, "RuntimeError: two lines"),
        ({"link": broken, "indices": 2}, "RuntimeError: two lines"),
        ({"link": lambda z: 1j * z[:, 0], "indices": 2}, "complex"),
        ({"link": lambda z: z, "indices": 2}, "shape"),
        ({"link": lambda a, b: a * b, "indices": 2}, "TypeError"),
        ({"link": lambda z: np.exp((z**2).sum(axis=1)), "indices": 2}, "finite moments"),
        ({"link": lambda z: np.exp(z * z)}, "A1"),
        ({"link": lambda z: 1e9 * np.tanh(z)}, "Rescale"),
        ({"noise": -1.0}, "standard deviation"),
        ({"direction": [1.0, 1.0, 0.0, 0.0, 0.0]}, "length 1"),
        ({"direction": [1.0]}, "5 numbers"),
    ],
)
def test_what_is_no_function_of_one_direction_is_refused(arguments, word):
    with pytest.raises(ls.InvalidParameter, match=word) as caught:
        ls.MultiIndex(**{"d": 5, **arguments})
    assert "\n" not in str(caught.value)


def test_a_weight_along_the_direction_needs_a_polynomial():
    along = ls.RandomFeatures("erf", weights=ls.FixedWeights(np.eye(3, 1)))
    assert float(ls.exact(ls.MultiIndex(3, "he3"), along, width=1).risk) < 1.0
    with pytest.raises(ls.NotConverged, match="polynomial"):
        ls.exact(ls.MultiIndex(3, "relu"), along, width=1)
    with pytest.raises(ls.InvalidParameter, match="lie along it"):
        ls.exact(ls.MultiIndex(3), ls.RandomFeatures("erf", weights="optimal"), width=1)

"""One giant step: the gradient, the exact risk against fits, and what it learns that no kernel does."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import weights
from lazyscope.population.directions import giant_step

CUBIC = ls.Activation(lambda z: z + (z**3 - 3.0 * z) / np.sqrt(6.0))  # half of its energy linear, half of degree 3


@pytest.mark.parametrize("problem", [ls.MultiIndex(6, "erf", noise=0.3), ls.MultiIndex(6, "staircase", indices=2)])
@pytest.mark.parametrize("sigma", ["relu", "softplus"])
def test_the_gradient_of_the_population_is_the_mean_of_sampled_ones(problem, sigma):
    """30 gradients on 20,000 samples each: 18 numbers within four standard errors of their mean (chance: 1 in 400)."""
    rng, sigma = np.random.default_rng(1), ls.Activation(sigma)
    W, alpha = rng.standard_normal((3, 6)) / 2.0, rng.standard_normal(3)
    whole = giant_step.population_gradient(problem, sigma, W, alpha)
    some = np.array([giant_step.sampled_gradient(problem, sigma, W, alpha, 20_000, rng) for _ in range(30)])
    z = (some.mean(axis=0) - whole) / (some.std(axis=0, ddof=1) / np.sqrt(30))
    assert np.max(np.abs(z)) < 4.0


def fitted(problem, regime, N, n, seed):
    """Training error of least squares on n samples at the same weights, its standard error, and 2RN/n."""
    W = giant_step.stepped(problem, regime, N, weights.generator(seed, 0, N))
    rng = np.random.default_rng(5)
    S, b, energy, rows = np.zeros((N + 1, N + 1)), np.zeros(N + 1), 0.0, []
    for _ in range(n // 10_000):
        X = rng.standard_normal((10_000, problem.d))
        Phi = np.column_stack([regime.activation(X @ W.T), np.ones(len(X))])
        y = problem.h(X @ problem.u)
        S, b, energy = S + Phi.T @ Phi, b + Phi.T @ y, energy + y @ y
        rows.append((Phi[:500], y[:500]))
    a = np.linalg.solve(S, b)
    squares = np.concatenate([(y - Phi @ a) ** 2 for Phi, y in rows]) / problem.energy
    return (energy - a @ b) / n / problem.energy, squares.std() / np.sqrt(n), N / n


@pytest.mark.parametrize("samples", [60, np.inf])
def test_exact_is_what_a_fit_tends_to(samples):
    problem, regime = ls.MultiIndex(15, CUBIC), ls.GiantStep("erf", 2.0, samples)
    exact = float(ls.exact(problem, regime, width=30, seed=2).risk)
    found, error, share = fitted(problem, regime, 30, 100_000, 2)
    # a fit of N coefficients has a training error below the optimum by R·N/n to first order
    assert abs(found / (1.0 - share) - exact) < 3.0 * error + exact * share


def test_it_learns_at_n_of_order_d_what_no_kernel_learns():
    """Kernels at n ~ d have the linear half alone, a risk of ½ at least; one step on 8d samples leaves less."""
    d = 60
    problem = ls.MultiIndex(d, CUBIC)
    stepped = ls.exact(problem, ls.GiantStep("erf", 2.0, 8 * d), width=200, draws=4)
    assert np.all(stepped.risk_draws < 0.5)
    lazy = ls.exact(problem, ls.RandomFeatures("erf"), width=200, draws=2)
    assert float(lazy.risk) > 0.5
    assert float(stepped.aligned[0]) > 0.3


def test_no_step_is_random_features_with_an_offset():
    problem = ls.MultiIndex(20, "relu")
    none = ls.exact(problem, ls.GiantStep("relu", 0.0), width=15, seed=4)
    lazy = ls.exact(problem, ls.RandomFeatures("relu"), width=15, seed=4)
    assert 0.0 <= float(lazy.risk - none.risk) < 0.05  # what one more function can explain of it
    assert float(none.aligned) == pytest.approx(1 / 20, abs=0.05)


def test_the_order_of_a_step_is_what_counts():
    """In the paper's scaling η = step·√N: a step of N^−½ changes nothing to leading order."""
    problem = ls.MultiIndex(80, CUBIC)
    steps = (200**-0.5, 2.0, 0.0)
    tiny, giant, none = (float(ls.exact(problem, ls.GiantStep("erf", size), width=200).risk) for size in steps)
    assert abs(tiny - none) < 0.02 < 0.2 < none - giant


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"step": -1.0}, "step"),
        ({"step": np.nan}, "step"),
        ({"samples": 0}, "samples"),
        ({"samples": 2.5}, "whole number"),
        ({"activation": "sign"}, "derivative"),
    ],
)
def test_what_is_no_step_is_refused(given, word):
    with pytest.raises(ls.InvalidParameter, match=word) as caught:
        ls.GiantStep(**given)
    assert "\n" not in str(caught.value)


def test_the_limit_is_refused_with_its_reference():
    with pytest.raises(ls.NoTheorem, match=r"Ba et al. 2022.*Use exact or simulate") as caught:
        ls.limit(ls.MultiIndex(20, "relu"), ls.GiantStep(samples=80), rho=1.0)
    assert "\n" not in str(caught.value)
    with pytest.raises(ls.NoTheorem, match="Use exact for it"):  # a simulation has no endless samples
        ls.limit(ls.MultiIndex(20, "relu"), ls.GiantStep(), rho=1.0)

"""Both layers linearised: never worse than either, NT itself where σ is homogeneous, and what a large sample fits."""

import numpy as np
import pytest

import lazyscope as ls

D = 9
PROBLEMS = {
    "quadratic": ls.QuadraticTarget.exponential(D, seed=1),
    "mixture": ls.GaussianMixture.three_level(D, seed=2),
    "one direction": ls.MultiIndex(D, "erf"),
}


@pytest.mark.parametrize("activation", ["softplus", "gelu", "erf", "sigmoid", "relu", "square"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_never_above_the_better_of_rf_and_nt(problem, activation):
    for width in (3, D, 2 * D):
        at = {"width": width, "seed": width}
        rf, nt, joint = (
            float(ls.exact(problem, regime(activation), **at).risk)
            for regime in (ls.RandomFeatures, ls.NeuralTangent, ls.JointTangent)
        )
        assert joint <= min(rf, nt) + 1e-9  # the solution is accurate to 1e-12 of the energy
        if activation in ("gelu", "softplus") and problem is PROBLEMS["quadratic"]:
            assert joint < min(rf, nt) - 1e-3  # the second layer adds functions that NT lacks


@pytest.mark.parametrize(("name", "power"), [("quadratic", 4), ("mixture", 4), ("one direction", 3)])
def test_a_homogeneous_activation_adds_nothing_to_nt(name, power):
    sigma = ls.Activation(lambda u: u**power)  # not known by a name: its features go into the normal equations
    joint, first = (ls.exact(PROBLEMS[name], regime(sigma), width=4) for regime in (ls.JointTangent, ls.NeuralTangent))
    assert sigma.degree is None and joint.iterations > first.iterations  # more unknowns
    assert np.isclose(joint.risk, first.risk, rtol=0, atol=1e-9) and first.risk < 0.99
    named = [ls.exact(PROBLEMS[name], regime("relu"), width=4).risk for regime in (ls.JointTangent, ls.NeuralTangent)]
    assert named[0] == named[1]


def drawn(problem, n, rng):
    X = rng.standard_normal((n, D))
    if isinstance(problem, ls.QuadraticTarget):
        return X, X**2 @ problem.B - problem.B.sum()
    if isinstance(problem, ls.GaussianMixture):
        y = rng.choice([-1.0, 1.0], n)
        scale = {label: np.sqrt(problem.class_covariance(label)) for label in (1.0, -1.0)}
        return X * np.where(y[:, None] > 0, scale[1.0], scale[-1.0]), y
    return X, problem.link(X @ problem.u)


@pytest.mark.parametrize("activation", ["softplus", "gelu"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_exact_against_a_large_sample(problem, activation):
    rng, sigma, N, n = np.random.default_rng(3), ls.Activation(activation), 5, 100_000
    W = rng.standard_normal((D, N)) / np.sqrt(D)
    exact = float(ls.exact(problem, ls.JointTangent(activation, weights=ls.FixedWeights(W)), width=N).risk)

    def features(X):
        H = X @ W
        first = (sigma.derivative(H)[:, :, None] * X[:, None, :]).reshape(len(X), -1)
        return np.column_stack([first, sigma(H), np.ones(len(X))])

    X, y = drawn(problem, n, rng)
    coefficients = np.linalg.lstsq(features(X), y, rcond=None)[0]
    X, y = drawn(problem, n, rng)
    losses = (y - features(X) @ coefficients) ** 2 / np.mean(y**2)
    excess = exact * (N * (D + 1) + 1) / n  # of a least-squares fit, in the mean
    stderr = np.std(losses - losses.mean() * y**2 / np.mean(y**2)) / np.sqrt(n)  # of a ratio of two means
    assert abs(losses.mean() - exact - excess) < 3.0 * stderr


def test_other_problems_and_activations_are_refused():
    with pytest.raises(ls.NoTheorem, match="RF\\+NT"):
        ls.limit(ls.LinearTarget(), ls.JointTangent("relu"), psi1=1, psi2=2, ridge=0.1)
    with pytest.raises(ls.NoTheorem, match="σ\\(u\\) = u²"):
        ls.limit(PROBLEMS["quadratic"], ls.JointTangent("gelu"), rho=0.5)
    with pytest.raises(ls.InvalidParameter, match="derivative"):
        ls.JointTangent("sign")

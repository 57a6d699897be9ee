"""Margins of drawn data: an independent solver, certificates, the limit in standard errors, seeds, refusals."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import lazyscope as ls

# private: a certificate must be able to fail, which no answer of the solver shows
from lazyscope.numerics.hard_margin import HardMargin, _proved, hard_margin, solve
from lazyscope.problems import LinearLabels
from lazyscope.regimes import GaussianFeatures, IsotropicFeatures, RandomFeatures
from lazyscope.training.linear.margin import gaussian_error

LOGISTIC = LinearLabels(4.0)
RELU, NOISY = RandomFeatures("relu"), RandomFeatures("relu", surrogate=True)


def simulate(problem, regime, **sizes):
    return ls.simulate(problem, regime, method="margin", **sizes)


# -- the solver ------------------------------------------------------------------------------------------------------


def interior_point(G):
    """The margin of rows of G by a primal-dual interior-point method on min ½‖w‖², Gw ≥ 1: no active sets anywhere."""
    n, _ = G.shape
    w, slack, z = np.zeros(G.shape[1]), np.ones(n), np.ones(n)
    for _ in range(200):
        dual, primal = w - G.T @ z, G @ w - slack - 1.0
        mu = slack @ z / n
        if max(np.abs(dual).max(), np.abs(primal).max(), mu) < 1e-13 * (1 + np.abs(w).max()):
            break
        target = slack * z - 0.1 * mu
        # G(−dual + Gᵀδz) − δs = −primal, z δs + s δz = −target
        step_z = np.linalg.solve(G @ G.T + np.diag(slack / z), -target / z - primal + G @ dual)
        step_s = -(target + slack * step_z) / z
        step_w = G.T @ step_z - dual
        length = 1.0
        for value, step in ((slack, step_s), (z, step_z)):
            if np.any(step < 0):
                length = min(length, 0.95 * np.min(-value[step < 0] / step[step < 0]))
        w, slack, z = w + length * step_w, slack + length * step_s, z + length * step_z
    return 1.0 / np.linalg.norm(w)


def labelled(rng, n, N):
    U = rng.standard_normal((n, N)) * rng.uniform(0.3, 3.0, N)
    return U, np.where(U[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)


def is_separable(G):
    """Whether some w has Gw ≥ 1, by linear programming."""
    answer = linprog(np.zeros(G.shape[1]), -G, -np.ones(len(G)), bounds=(None, None), method="highs")
    assert answer.status in (0, 2)
    return answer.status == 0


def check_certificate(G, found):
    """The proof by itself, without the solver: weights, and what they and `a` do to the points."""
    assert np.all(found.z >= 0)
    assert found.z.sum() == pytest.approx(1.0, abs=1e-12)
    scale = np.sqrt(np.mean(np.sum(G**2, axis=1)))
    if found.separable:
        assert np.linalg.norm(found.a) == pytest.approx(1.0, abs=1e-12)
        assert np.min(G @ found.a) == pytest.approx(found.margin, abs=1e-9 * scale)
        assert np.linalg.norm(found.z @ G) == pytest.approx(found.margin, abs=1e-9 * scale)
    else:
        assert np.linalg.norm(found.z @ G) < 1e-9 * scale
        assert found.margin == 0.0 and not np.any(found.a)


def test_margins_of_forty_random_problems_by_an_independent_solver():
    rng = np.random.default_rng(0)
    solved = 0
    while solved < 40:
        n = int(rng.integers(2, 60))
        U, y = labelled(rng, n, int(rng.integers(n // 2 + 1, 3 * n + 1)))
        G = U * y[:, None]
        found = solve(G)
        check_certificate(G, found)
        assert found.separable == is_separable(G)
        if found.separable:
            assert found.margin == pytest.approx(interior_point(G), abs=1e-7)
            solved += 1


def test_margins_by_a_third_route():
    rng = np.random.default_rng(1)
    for n, N in ((5, 12), (20, 20), (30, 18)):
        U = rng.standard_normal((n, N))
        G = U * np.where(U[:, 0] > 0, 1.0, -1.0)[:, None]
        start = np.linalg.lstsq(G, np.ones(n), rcond=None)[0]
        constraint = {"type": "ineq", "fun": lambda w, G=G: G @ w - 1, "jac": lambda w, G=G: G}
        options = {"ftol": 1e-15, "maxiter": 1000}
        other = minimize(
            lambda w: 0.5 * w @ w, start, jac=lambda w: w, constraints=constraint, method="SLSQP", options=options
        )
        assert solve(G).margin == pytest.approx(1 / np.linalg.norm(other.x), abs=1e-9)


@pytest.mark.parametrize("n", [30, 120])
def test_every_claim_of_non_separability_has_its_certificate(n):
    rng = np.random.default_rng(n)
    proved = 0
    for N in (1, 2, 5, n // 3, int(0.48 * n), int(0.52 * n)):
        for _ in range(4):
            U = rng.standard_normal((n, N))
            G = U * rng.choice([-1.0, 1.0], n)[:, None]
            found = solve(G)
            check_certificate(G, found)
            assert found.separable == is_separable(G)
            proved += not found.separable
            # Carathéodory: the origin is in the hull of at most N + 1 points
            assert found.separable or found.support <= N + 1
    assert proved >= 12


@pytest.mark.parametrize(("n", "N"), [(1, 1), (3, 50), (40, 80), (40, 79), (40, 41), (40, 40), (60, 40)])
def test_any_shape_and_any_scale(n, N):
    rng = np.random.default_rng(n * N)
    U = rng.standard_normal((n, N))
    G = U * np.where(U[:, 0] > 0, 1.0, -1.0)[:, None]
    found = solve(G)
    check_certificate(G, found)
    for scale in (1e-9, 1e9):
        assert solve(G * scale).margin == pytest.approx(scale * found.margin, rel=1e-9)
    turned = np.linalg.qr(rng.standard_normal((N, N)))[0]
    assert solve(G @ turned).margin == pytest.approx(found.margin, rel=1e-9)


def test_points_that_lie_in_a_plane_or_coincide():
    rng = np.random.default_rng(5)
    flat = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 100))  # a singular Gram matrix, N > 2n
    y = np.where(flat[:, 0] > 0, 1.0, -1.0)
    G = flat * y[:, None]
    found = solve(G)
    check_certificate(G, found)
    assert found.separable
    doubled = np.concatenate([G, G])
    assert solve(doubled).margin == pytest.approx(found.margin, rel=1e-9)


def test_margins_known_by_hand():
    assert hard_margin(np.eye(4), [1, -1, 1, -1]).margin == pytest.approx(0.5)  # a = (1, −1, 1, −1)/2
    assert hard_margin([[3.0], [-2.0]], [1, -1]).margin == pytest.approx(2.0)
    one = hard_margin([[1.0, 0.0], [0.0, 1.0]], [1, -1])
    assert one.a == pytest.approx(np.array([1.0, -1.0]) / np.sqrt(2))
    assert one.support == 2


BAD = {
    "one class": (lambda: hard_margin([[1.0], [2.0]], [1, 1]), "labels of both classes"),
    "duplicates": (
        lambda: hard_margin([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]], [1, 1, -1]),
        "points 0 and 2, which are equal and have opposite labels",
    ),
    "signed zero": (lambda: hard_margin([[0.0, 1.0], [-0.0, 1.0]], [1, -1]), "equal and have opposite labels"),
    "labels": (lambda: hard_margin([[1.0], [2.0]], [0, 1]), "labels 1 and −1"),
    "number of labels": (lambda: hard_margin([[1.0], [2.0]], [1, -1, 1]), "one for each of the 2 points"),
    "rank": (lambda: hard_margin([1.0, 2.0], [1, -1]), "a row for each"),
    "empty": (lambda: hard_margin(np.empty((0, 3)), []), "a row for each"),
    "NaN": (lambda: hard_margin([[np.nan], [1.0]], [1, -1]), "NaN"),
    "nothing but zeros": (lambda: solve(np.zeros((2, 2))), "not zero"),
    "drawn labels of one class": (
        lambda: simulate(LinearLabels(1.0, lambda t: 0.0 * t + 1e-9), RELU, width=5, samples=4, d=5),
        "labels of both classes",
    ),
    "weights": (
        lambda: simulate(LOGISTIC, RandomFeatures("relu", weights=np.ones(5)), width=5, samples=9, d=5),
        "uniform on the sphere",
    ),
    "too few for a spectrum": (
        lambda: simulate(LOGISTIC, GaussianFeatures([1.0, 2.0, 3.0]), width=2, samples=9, d=5),
        "at least the number of eigenvalues",
    ),
    "memory": (lambda: simulate(LOGISTIC, RELU, width=10**8, samples=10**6, d=5), "GB"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_line(name):
    action, words = BAD[name]
    with pytest.raises(ls.LazyscopeError, match=words) as caught:
        action()
    assert "\n" not in str(caught.value)


def test_weights_that_prove_nothing_are_not_believed():
    G = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert _proved(G, np.array([0.8, 0.2]), 1.0).margin == pytest.approx(2 / np.sqrt(5))
    with pytest.raises(ls.NotConverged, match=r"between 0\.\d+ and 1\.\d+, and rounding hides where"):
        _proved(G, np.array([0.5, 0.5]), 1.0)


def test_it_says_what_it_found():
    line = str(HardMargin(False, 0.0, np.zeros(1), np.array([0.5, 0.5]), 1e-16))
    assert line == "not separable: a convex combination of 2 points y_iu_i is zero to 1.0e-16"


# -- the simulation against the limit --------------------------------------------------------------------------------

PAIRS = {
    "relu": RELU,
    "noisy linear": NOISY,
    "isotropic": IsotropicFeatures(),
    "spectrum": GaussianFeatures([0.3, 1.0, 4.0], alignment=[0.1, 0.5, 0.2]),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("problem", [LOGISTIC, LinearLabels(1.0, "sign")], ids=["logistic", "sign"])
def test_margin_error_and_support_approach_the_limit(name, problem):
    d, psi1, psi2 = 60, 3, 2
    drawn = simulate(problem, PAIRS[name], width=psi1 * d, samples=psi2 * d, d=d, draws=24, seed=3)
    theory = ls.limit(problem, PAIRS[name], psi1=psi1, psi2=psi2, method="margin")
    for variable in ("margin", "error", "support"):
        gap = abs(float(drawn[variable]) - float(theory[variable]))
        # the mean of a draw is O(1/d) from the limit, with a constant of order one, besides its standard error
        assert gap < 3.5 * float(drawn[f"{variable}_stderr"]) + 1 / d, (variable, gap)
    assert float(drawn.separable) == 1.0
    assert float(drawn.gap) < 1e-12


def test_below_the_threshold_data_are_not_separable():
    below = simulate(LOGISTIC, RELU, width=40, samples=200, d=100, draws=4)
    assert (float(below.separable), float(below.margin), float(below.error)) == (0.0, 0.0, 0.5)
    assert float(below.gap) < 1e-12
    theory = ls.limit(LOGISTIC, RELU, psi1=0.4, psi2=2.0, method="margin")
    assert not bool(theory.separable) and float(theory.error) == 0.5


def test_one_seed_one_number_and_the_same_data_for_both_kinds_of_features():
    sizes = {"width": 40, "samples": 30, "d": 20}
    one, again = (simulate(LOGISTIC, RELU, **sizes, draws=2, seed=7) for _ in range(2))
    assert one.identical(again)
    assert float(simulate(LOGISTIC, RELU, **sizes, seed=8).margin) != float(simulate(LOGISTIC, RELU, **sizes).margin)
    # the linear activation has no noise beyond b₁⟨w, x⟩: nearly so, both kinds see the same weights, inputs and labels
    nearly_linear = ls.Activation(lambda u: u + 1e-4 * u**2)
    both = [simulate(LOGISTIC, RandomFeatures(nearly_linear, surrogate=s), **sizes) for s in (False, True)]
    assert float(both[0].margin) == pytest.approx(float(both[1].margin), rel=1e-2)


def test_the_exact_error_by_sampling():
    # noisy linear features: the closed form against fresh samples of the whole model
    rng = np.random.default_rng(0)
    problem, d, N, m = LOGISTIC, 15, 25, 200_000
    W = rng.standard_normal((N, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    a = rng.standard_normal(N) + 3 * W[:, 0]
    a /= np.linalg.norm(a)
    sigma = ls.Activation("relu")
    seen = sigma.b1 * (a @ W)
    exact = gaussian_error(problem, seen[0], seen @ seen + sigma.lambda_tilde)
    X = rng.standard_normal((m, d))
    f = X @ seen + sigma.b_star * rng.standard_normal(m)  # ⟨a, z⟩ ~ N(0, 1), as ‖a‖ = 1
    y = np.where(rng.random(m) < problem.probability(problem.signal * X[:, 0]), 1.0, -1.0)
    wrong = np.mean(y * f <= 0)
    assert wrong == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / m))


def test_the_error_of_a_useless_and_of_a_perfect_classifier():
    assert gaussian_error(LOGISTIC, 0.0, 1.0) == pytest.approx(0.5, abs=1e-14)
    assert gaussian_error(LinearLabels(1.0, "sign"), 1.0, 1.0) == pytest.approx(0.0, abs=1e-12)
    assert gaussian_error(LOGISTIC, 1.0, 1.0) == pytest.approx(LOGISTIC.bayes_error, abs=1e-12)
    # a probit label: P(sign(S + Z/s) ≠ sign f) is the angle between the two
    angle = np.arccos(0.6 / np.sqrt(1 + 1 / 2.0**2)) / np.pi
    assert gaussian_error(LinearLabels(2.0, "probit"), 0.6, 1.0) == pytest.approx(angle, abs=1e-12)

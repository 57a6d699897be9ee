"""Right numbers or refusals: small sizes, extreme scales, singular systems, solvers that do not converge."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.activations import Activation, activation_names
from lazyscope.evidence.claim import Claim
from lazyscope.evidence.registry import claims, find
from lazyscope.evidence.results import best_of_draws
from lazyscope.evidence.run import Run
from lazyscope.numerics.krylov import solve
from lazyscope.numerics.quadrature import panels
from lazyscope.population.environment import environments, project
from lazyscope.population.random_features import ACCURACY, explained, missed
from lazyscope.runs.assembly import assemble
from lazyscope.weights import draw as draw_weights
from lazyscope.weights import generator

SCALES = (-150, -130, -60, -20, 20, 60, 130, 150)
FAST = ls.SGD(steps=20, batch=5, step_sizes=(0.01,), test=50)
SAME = 2 * ACCURACY  # two risks, each known to ACCURACY


def least_squares(B, W, name, tangent):
    """The same risk at d = 1 by a second route: a projection on the nodes of a quadrature, by singular values."""
    x, w = panels(np.linspace(-12.0, 12.0, 81))  # φ(12) = 1e-32, and 0, the only kink, is an edge
    root, sigma = np.sqrt(w * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)), Activation(name)
    H = np.outer(x, W[:, 0])
    features = sigma.derivative(H) * x[:, None] if tangent else sigma(H) - sigma.hermite(0)
    features = np.column_stack([np.ones_like(x), features]) if tangent else features
    size = np.linalg.norm(features * root[:, None], axis=0)
    left, values, _ = np.linalg.svd(features * root[:, None] / np.where(size > 0, size, 1.0), full_matrices=False)
    basis, y = left[:, values > 1e-13 * values[0]], (x * x - 1.0) * root
    off = y - basis @ (basis.T @ y)
    return off @ off / (y @ y)


@pytest.mark.parametrize("name", activation_names())
@pytest.mark.parametrize("regime", [ls.RandomFeatures, ls.NeuralTangent])
def test_one_dimension_agrees_with_least_squares(regime, name):
    if regime is ls.NeuralTangent and not Activation(name).has_derivative:
        with pytest.raises(ls.InvalidParameter, match="derivative"):
            regime(name)
        return
    target, model = ls.QuadraticTarget([1.8016]), regime(name)
    for N in (1, 2, 5):
        for seed in (0, 3, 4):
            W = draw_weights(target, model, N, generator(seed, 0, N))
            try:
                found = ls.exact(target, model, width=N, seed=seed)
            except ls.NotConverged:
                continue
            other = least_squares(target.B, W, name, regime is ls.NeuralTangent)
            assert float(found.risk) == pytest.approx(other, abs=SAME)


def test_collinear_tangents_give_the_right_number():
    found = ls.exact(ls.QuadraticTarget([1.8016]), ls.NeuralTangent("abs"), width=5, seed=3)
    # |x|′ x = |x| for every neuron: the best fit of x² − 1 by c + a|x| leaves 1 − Cov(x², |x|)²/(2 Var |x|)
    covariance, variance = np.sqrt(2.0 / np.pi), 1.0 - 2.0 / np.pi
    assert float(found.risk) == pytest.approx(1.0 - covariance**2 / (2.0 * variance), abs=1e-12)
    assert float(found.residual) < 1e-12


def test_cosines_of_collinear_weights_are_one():
    W = np.random.default_rng(0).standard_normal((50, 1))
    seen = project(environments(ls.QuadraticTarget([1.0]))[0], W)
    np.testing.assert_array_equal(seen.cosines(slice(None), slice(None)), np.sign(W * W.T))


@pytest.mark.parametrize("exponent", SCALES)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_scale_of_the_target_changes_no_risk(d, exponent):
    B = np.array([1.3, 0.4, 0.9])[:d]
    calls = [
        *(lambda p, r=r: ls.limit(p, r, rho=1.0 / d) for r in (ls.RandomFeatures("relu"), ls.NeuralTangent())),
        *(lambda p, r=r: ls.exact(p, r, width=1) for r in (ls.RandomFeatures("abs"), ls.NeuralTangent("relu2"))),
        lambda p: ls.limit(p, ls.Trained(), rho=1.0 / d),
        lambda p: ls.exact(p, ls.Trained(), width=1),
        lambda p: ls.flow(p, ls.NeuralTangent(), width=1, times=[0.0, 1.0, 1e3]),
        lambda p: ls.flow(p, ls.RandomFeatures("square"), width=5, times=[0.0, 1.0, 1e18]),
        lambda p: ls.finite_step(p, ls.NeuralTangent(), width=1, step_size=1e-3, batch=10, samples=[100]),
        lambda p: ls.simulate(p, ls.RandomFeatures("relu"), width=1, samples=50),
        lambda p: ls.simulate(p, ls.NeuralTangent("relu"), width=1, protocol=FAST),
        lambda p: ls.simulate(p, ls.MeanField(), width=3, samples=20, protocol=ls.ParticleDescent(steps=5)),
    ]
    if abs(exponent) > 140:
        with pytest.raises(ls.InvalidParameter, match="between 1e-140 and 1e140"):
            ls.QuadraticTarget(B * 10.0**exponent)
        return
    plain, scaled = ls.QuadraticTarget(B), ls.QuadraticTarget(B * 10.0**exponent)
    for call in calls:
        # float32 labels differ by their rounding, 6e-8 each, and a fit to 50 of them amplifies that a little
        np.testing.assert_allclose(call(scaled).risk.values, call(plain).risk.values, rtol=1e-4, atol=1e-9)


def test_a_power_of_two_changes_no_bit():
    for k in (-400, -3, 5, 400):
        pair = [ls.QuadraticTarget(np.ldexp([1.3, 0.4, 0.9], j)) for j in (0, k)]
        for call in (
            lambda p: ls.limit(p, ls.RandomFeatures("relu"), rho=[0.5, 2.0]),
            lambda p: ls.exact(p, ls.NeuralTangent("relu"), width=4),
            lambda p: ls.simulate(p, ls.NeuralTangent("relu"), width=2, protocol=FAST),
            lambda p: ls.simulate(p, ls.RandomFeatures("gelu"), width=2, samples=50),
        ):
            np.testing.assert_array_equal(*(call(p).risk.values for p in pair))


def test_units_of_a_mixture_change_no_risk():
    A = np.random.default_rng(0).standard_normal((3, 3))
    Sigma, Delta = np.eye(3) + A @ A.T, np.diag([0.4, -0.3, 0.2])
    plain, scaled = (ls.GaussianMixture(c * Delta, c * Sigma) for c in (1.0, 1e120))
    for call in (
        lambda p: ls.limit(p, ls.RandomFeatures("relu"), rho=0.7),
        lambda p: ls.exact(p, ls.RandomFeatures("relu5"), width=2),
        lambda p: ls.exact(p, ls.NeuralTangent("relu"), width=2),
        lambda p: ls.exact(p, ls.Trained("abs"), width=1, seed=1),
        lambda p: ls.bayes(p, fidelity="exact"),
    ):
        assert float(call(scaled).risk) == pytest.approx(float(call(plain).risk), abs=SAME)


def test_sgd_of_a_network_refuses_what_float32_cannot_hold():
    for scale in (1e60, 1e-60):
        with pytest.raises(ls.InvalidParameter, match="between 1e-12 and 1e"):
            ls.simulate(ls.QuadraticTarget([scale, 0.1 * scale]), ls.Trained(), width=1, protocol=FAST)
    found = ls.simulate(ls.QuadraticTarget([1e60, 1.0]), ls.RandomFeatures("relu"), width=2, samples=100)
    assert np.isfinite(float(found.risk))


def test_overflow_on_the_way_is_refused_without_a_warning():
    W = ls.FixedWeights([[5e99], [2e99]])
    with pytest.raises(ls.NotConverged, match="left what float64 holds"):
        ls.exact(ls.QuadraticTarget([1.0, 2.0]), ls.NeuralTangent("relu4", weights=W))
    tiny = ls.FixedWeights([[3.7690239373422785e-101, 1.4424689170363276e-101]])  # s⁴ is 0
    with pytest.raises(ls.NotConverged, match="divide by zero"):
        ls.exact(ls.QuadraticTarget([0.125]), ls.NeuralTangent("relu4", weights=tiny))
    with pytest.raises(ls.NotConverged):
        ls.flow(ls.QuadraticTarget([8.6e58]), ls.Trained(alpha=4.3), width=5, seed=631, times=[0.0, 0.1, 1.0, 100.0])


def test_labels_whose_squares_underflow_are_refused():
    with pytest.raises(ls.InvalidParameter, match="at least 1e-100"):
        ls.LinearTarget(1e-200, noise=1e-210)
    assert ls.LinearTarget(1.0, noise=1e-200).energy == 1.0  # nothing beside the signal, and rightly so


def test_an_output_scale_that_hides_the_target_is_refused():
    with pytest.raises(ls.NotConverged, match="Use NeuralTangent"):
        ls.exact(ls.QuadraticTarget([1e-30, -1e-30]), ls.Trained(alpha=3.0), width=1)


@pytest.mark.parametrize(("edge", "expected"), [(0.99, 0.2434876760067), (0.9999, 0.0347943), (1.0 - 1e-9, 1.645e-4)])
def test_bayes_floor_of_nearly_singular_classes(edge, expected):
    # d = 1, by quadrature of (1 − tanh²(ℓ/2)) over log x², in which the likelihood ratio is smooth
    u, w = panels(np.linspace(-60.0, 12.0, 2000))
    x2 = np.exp(u)
    densities = [np.exp(-0.5 * x2 / c) * np.sqrt(x2 / c / (2.0 * np.pi)) for c in (1.0 - edge, 1.0 + edge)]
    other = float(np.sum(w * 2.0 * densities[0] * densities[1] / (densities[0] + densities[1] + 1e-300)))
    found = float(ls.bayes(ls.GaussianMixture([edge]), fidelity="exact").risk)
    assert found == pytest.approx(other, rel=1e-6, abs=1e-9)
    assert found == pytest.approx(expected, rel=1e-3)


def test_unresolved_features_are_refused():
    target = ls.QuadraticTarget([1.2657690549569471, 0.19535667096898557])
    with pytest.raises(ls.NotConverged, match="nearly dependent"):  # 0.6657 before, 0.6590 by least squares
        ls.exact(target, ls.NeuralTangent("relu5"), width=5, seed=997)
    assert missed(0.25, 1.0, 0.0) == 0.75
    for wrong in (8.0, -7.0, np.nan):
        with pytest.raises(ls.NotConverged):
            missed(wrong, 1.0, 0.0)


def test_conjugate_gradients_of_a_singular_system_end_at_rounding():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 3))
    K, b = A @ A.T, A @ np.ones(3)
    found = solve(lambda x: K @ x, b)
    assert found.energy == pytest.approx(3.0, abs=1e-10)
    assert found.residual < 1e-10
    with pytest.raises(ls.NotConverged, match="residual"):
        solve(lambda x: K @ x, rng.standard_normal(40))  # not in the range of K


def test_a_pseudo_inverse_takes_exactly_dependent_features():
    A = np.random.default_rng(0).standard_normal((30, 3))
    found = explained(A @ A.T, A @ np.ones(3))
    assert (found.rank, found.cut < 1e-9) == (3, True)
    assert found.energy == pytest.approx(3.0, abs=1e-10)


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ({"risk": np.nan}, "no number for risk"),
        ({"risk": 0.5, "residual": 14.9}, r"residual of 1.5e\+01 \(tolerance 1e-04\)"),
        ({"risk": 0.5, "residual": np.nan}, "no number"),
        ({"risk": 0.5, "gap": np.array([0.0, 1.0])}, "gap"),
    ],
)
def test_no_claim_lets_a_bad_number_leave(row, match):
    bad = Claim("exact", ls.QuadraticTarget, ls.Trained, "a test", "", (), (), (), lambda run: row, lambda d: None)
    with pytest.raises(ls.NotConverged, match=match):
        Run("exact", ls.QuadraticTarget([1.0]), ls.Trained(), known=bad).compute()


def test_every_claim_has_a_tolerance():
    assert all(0.0 < claim.tolerance <= 1e-4 for claim in claims())


def test_a_best_draw_that_still_falls_is_refused():
    target, regime = ls.QuadraticTarget([2.0, 1.0]), ls.Trained("relu")
    assert find("exact", target, regime).reduce is best_of_draws
    row = {"risk": 0.5, "gradient": 1.0, "iterations": 2000, "gain": 1e-3, "converged": 0}
    plan = [Run("exact", target, regime, {"width": (3,)}, number=k) for k in range(2)]
    rows = [{name: np.array(value) for name, value in row.items()} for _ in plan]
    with pytest.raises(ls.NotConverged, match=r"still gained 1\.0e-03"):
        assemble(plan, rows)
    rows[0] |= {"risk": np.array(0.4), "converged": np.array(1)}
    assert float(assemble(plan, rows, ["width"]).risk) == 0.4

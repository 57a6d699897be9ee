"""Lemma 1, Theorem 2, Corollary 3 and Theorem 4 at work: closed forms against every sign, eigenvalues against dense."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.beyond import landscape as landscape_experiment
from lazyscope.experiments.beyond.landscape import POINTS, DescentDraw, LandscapeDraw, assemble_landscape
from lazyscope.numerics.losses import LOSSES
from lazyscope.training.taylor.construction import express, monomials
from lazyscope.training.taylor.descent import Descent, descend, settle
from lazyscope.training.taylor.landscape import COROLLARY_3, certificate, clean_error, landscape, stationarity
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import Risk
from lazyscope.training.taylor.signs import flipped, norm_24, random_signs, regularizer_over_signs


def case(m=6, d=3, n=9, seed=0, loss="logistic", sigma="relu3", orders=2):
    rng = np.random.default_rng(seed)
    problem = ls.SparseParity(d)
    model = TaylorModel.symmetric(m, d, sigma, rng, Bx=problem.Bx)
    return Risk(model, *problem.sample(n, rng), loss, orders), rng


def every_sign(m):
    return [np.array(signs) for signs in product((-1.0, 1.0), repeat=m)]


def test_left_sides_equal_the_mean_over_every_sign():
    """All 2⁶ Σ′, second derivatives along each by finite differences of the gradient: clean and network, with λ."""
    risk, rng = case()
    W, W_star = 0.6 * rng.standard_normal((2, 6, 3))
    Sigma = random_signs(6, rng)
    for orders, lam in ((2, 0.0), (None, 0.0), (None, 1e-3)):
        here = replace(risk, orders=orders, lam=lam)
        bent = []
        for signs in every_sign(6):
            V, h = flipped(W_star, signs), 1e-4
            ahead, behind = (here.at(W + step * V, Sigma).gradient() for step in (h, -h))
            bent.append(np.sum((ahead - behind) * V) / (2 * h))
        closed = here.at(W, Sigma, derivatives=2).curvature_over_signs(W_star)
        assert closed == pytest.approx(np.mean(bent), rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sigma", ["relu3", "tanh", "softplus"])
def test_lemma_1_holds_at_every_point(loss, sigma):
    """Any W, any W⋆, near and far: left ≤ right + error, error ≤ the proof's bound; the slack is ℓ's convexity."""
    for seed, size in product(range(4), (0.01, 0.3, 3.0)):
        risk, rng = case(m=20, seed=seed, loss=loss, sigma=sigma)
        W, W_star = size * rng.standard_normal((20, 3)), rng.standard_normal((20, 3))
        found = landscape(risk, W, W_star, rng, signs=2).clean
        assert found.holds and found.slack > -1e-12
        assert 0.0 <= found.error <= found.bound * (1 + 1e-12)
        f, f_star, y = risk.model.piece(2, W, risk.X), risk.model.piece(2, W_star, risk.X), risk.y
        one = LOSSES[loss]
        convexity = one.value(y, f_star) - one.value(y, f) - one.slope(y, f) * (f_star - f)
        # the sides are of the size of ℓ(f), up to 1e4 here: the difference is exact to rounding of them
        assert found.slack == pytest.approx(2 * np.mean(convexity), rel=1e-8, abs=1e-11 * (1 + abs(found.right)))


def test_sampled_left_sides_agree_with_closed_forms():
    risk, rng = case(m=50, n=40)
    W, W_star = 0.5 * rng.standard_normal((2, 50, 3))
    found = landscape(risk, W, W_star, rng, signs=150)
    for one in (found.clean, found.network):
        assert one.sampled_stderr > 0
        assert abs(one.sampled - one.left) <= 4 * one.sampled_stderr
    assert found.network.stderr > 0 and found.clean.stderr == 0.0


def test_errors_shrink_with_the_width():
    """Lemma 1's like 1/m at fixed norms; Theorem 2's, with the coupling of Lemmas 12 to 14, at least like m^−¼."""
    widths = (100, 400, 1600, 6400)
    plan = [LandscapeDraw(ls.SparseParity(6), m, 60, 6, number=k) for m in widths for k in range(3)]
    result = assemble_landscape(plan, [draw.compute() for draw in plan])
    assert np.all(result.slack > 0)
    lemma = result.sel(statement="Lemma 1")
    moving = lemma.sel(point=["half way", "random", "both"])
    assert np.all(np.abs(moving.exponent + 1.0) < 0.06)
    assert np.all(lemma.sel(point=["the saddle", "the opposite"]).error == 0)  # no neuron serves both W and W⋆
    assert np.all(lemma.error <= lemma.bound) and np.all(lemma.bound.sel(point="random").diff("width") < 0)
    theorem = result.sel(statement="Theorem 2")
    assert np.all(theorem.exponent <= -0.25 + 2 * theorem.exponent_stderr)
    assert float(np.sqrt(np.mean(result.z.sel(statement=["Lemma 1", "Theorem 2"]) ** 2))) < 2.0
    assert list(result.point.values) == list(POINTS)


def test_the_constant_of_corollary_3():
    """56p³q ≤ 5p⁴ + Cq⁴ for all p, q ≥ 0, with equality at one ratio: C cannot be smaller on this route."""
    p = np.linspace(0.0, 100.0, 2_000_001)
    gap = 5.0 * p**4 + COROLLARY_3 - 56.0 * p**3
    assert -1e-3 < gap.min() < 1e-3
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 8.0):
        W, W_star = scale * rng.standard_normal((5, 4)), rng.standard_normal((5, 4))
        bending = regularizer_over_signs(W, 1.0, W_star)
        assert bending <= 56.0 * norm_24(W) ** 6 * norm_24(W_star) ** 2 + 1e-9
        assert bending <= 5.0 * norm_24(W) ** 8 + COROLLARY_3 * norm_24(W_star) ** 8


def test_corollary_3_adds_the_regulariser_to_both_sides():
    risk, rng = case(m=12)
    W, W_star = 0.5 * rng.standard_normal((2, 12, 3))
    lam = 1e-3
    found = landscape(risk, W, W_star, np.random.default_rng(1), signs=4, lam=lam)
    theorem, corollary = found.network, found.regularized
    network = replace(risk, orders=None, lam=lam)
    plain = replace(network, lam=0.0)
    Sigma = random_signs(12, rng)
    with_it, without = network.at(W, Sigma, derivatives=2), plain.at(W, Sigma, derivatives=2)
    assert corollary.left - theorem.left == pytest.approx(
        with_it.curvature_over_signs(W_star) - without.curvature_over_signs(W_star)
    )
    along = np.sum((with_it.gradient() - without.gradient()) * W)
    printed = along - 2 * (with_it.value - without.value) - lam * norm_24(W) ** 8
    printed += COROLLARY_3 * lam * norm_24(W_star) ** 8
    assert corollary.right - theorem.right == pytest.approx(printed)
    assert corollary.holds


@pytest.mark.parametrize("orders", [2, None])
def test_the_smallest_eigenvalue_equals_that_of_the_dense_hessian(orders):
    risk, rng = case(m=8, d=4, n=12, orders=orders, sigma="tanh")
    risk = replace(risk, lam=1e-3)
    W = 0.5 * rng.standard_normal((8, 4))
    points = [risk.at(W, random_signs(8, rng), derivatives=2) for _ in range(3)]
    columns = np.eye(32).reshape(32, 8, 4)
    dense = np.array([np.mean([p.hessian_product(e) for p in points], axis=0).ravel() for e in columns])
    assert dense == pytest.approx(dense.T, abs=1e-13)
    found = stationarity(points)
    assert found.smallest == pytest.approx(np.linalg.eigvalsh(dense)[0], rel=1e-4, abs=1e-8)
    assert found.residual < 1e-3 * np.abs(np.linalg.eigvalsh(dense)).max()
    gradient = np.mean([p.gradient() for p in points], axis=0)
    assert found.gradient == pytest.approx(np.linalg.norm(gradient))
    assert found.along == pytest.approx(np.sum(gradient * W))


def trained(lam=0.01, m=100, d=5, n=120):
    problem, rng = ls.SparseParity(d), np.random.default_rng(3)
    model = TaylorModel.symmetric(m, d, "relu3", rng, Bx=problem.Bx)
    W_star = 2**0.5 * express(model, monomials(problem), rng)
    risk = Risk(model, *problem.sample(n, rng), orders=2, lam=lam / norm_24(W_star) ** 8)
    return risk, W_star, rng


def test_theorem_4_at_work():
    """A descent leaves the saddle, and ends where gradient and negative curvature are gone: no worse than W⋆."""
    risk, W_star, rng = trained()
    OPT, reach = replace(risk, lam=0.0).at(W_star).value, np.linalg.norm(W_star)
    saddle = stationarity([risk.at(np.zeros_like(W_star), derivatives=2)])
    assert saddle.gradient == 0.0 and saddle.smallest * reach**2 < -1.0 and saddle.risk > OPT
    W = settle(risk, descend(risk, reach, rng))
    end = stationarity([risk.at(W, derivatives=2)])
    assert end.gradient * reach < 1e-5
    assert end.smallest * reach**2 > -1e-4
    assert end.risk <= OPT and norm_24(W) <= 1.5 * norm_24(W_star)


def test_the_certificate_bounds_the_risk_at_any_point():
    risk, W_star, rng = trained()
    OPT = replace(risk, lam=0.0).at(W_star).value
    for size in (0.0, 0.3, 1.0, 2.0):
        W = size * (0.5 * W_star + rng.standard_normal(W_star.shape) * np.abs(W_star).mean())
        here = risk.at(W, derivatives=2)
        assert here.value - OPT <= certificate(stationarity([here]), here, W_star, risk.lam) + 1e-9


def test_descents_are_followed_to_the_end():
    for randomized in (False, True):
        row = DescentDraw(ls.SparseParity(5), 60, randomized, samples=80, steps=100, looks=4, signs=2).compute()
        assert len(row["step"]) == 4 and row["step"][-1] == 100
        assert row["smallest"][0] < -1.0  # near the saddle
        assert row["risk"][-1] < row["OPT"] < row["risk"][0]
        assert np.all(row["risk"] - row["OPT"] <= row["certified"])


def test_one_seed_one_descent_in_either_precision():
    risk, W_star, _ = trained()
    reach = float(np.linalg.norm(W_star))
    first, again = (descend(risk, reach, np.random.default_rng(7), how=Descent(30)) for _ in range(2))
    assert np.array_equal(first, again)
    single = replace(risk, model=risk.model.in_precision(np.float32))
    rough = descend(single, reach, np.random.default_rng(7), how=Descent(30))
    assert rough.dtype == np.float32
    assert np.linalg.norm(rough - first) < 1e-3 * np.linalg.norm(first)


def test_bad_input_is_refused_in_one_line():
    risk, rng = case()
    W = np.zeros((6, 3))
    with pytest.raises(ls.InvalidParameter, match=r"signs .* at least 2"):
        landscape(risk, W, W, rng, signs=1)
    with pytest.raises(ls.InvalidParameter, match="shape of W0"):
        landscape(risk, W[:2], W, rng)
    with pytest.raises(ls.InvalidParameter, match="positive distance"):
        descend(risk, 0.0, rng)
    with pytest.raises(ls.InvalidParameter, match="below 1"):
        Descent(momentum=1.0)
    with pytest.raises(ls.InvalidParameter, match="at least one point"):
        stationarity([])
    with pytest.raises(ls.InvalidParameter, match="at least 2, the start and the end"):
        DescentDraw(ls.SparseParity(4), 10, looks=1)
    assert clean_error(risk.at(W, derivatives=2), W) == (0.0, 0.0)


def test_the_verdict_says_no_to_wrong_exponents(tiny):
    wrong = {name: panel.copy(deep=True) for name, panel in tiny("landscape").panels.items()}
    for panel in wrong.values():
        for name in ("exponent", "randomized_exponent"):
            if name in panel:
                panel[name][...] = 0.7
    assert landscape_experiment.verdict(wrong)[-1].startswith("Not ")


def test_the_verdict_sees_a_broken_inequality_and_a_bad_descent(tiny):
    data = {name: panel.copy(deep=True) for name, panel in tiny("landscape").panels.items()}
    data["inequalities"]["slack"][0, 0, 0] = -1.0
    assert "Lemma 1" in landscape_experiment.verdict(data)[-1]
    data["descents"]["risk"][:, -1] = 5.0
    assert "descent" in landscape_experiment.verdict(data)[-1]

"""Coupling of randomised networks with their quadratic model: exponents, closed forms, and the lemmas' bounds."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.beyond import coupling as coupling_experiment
from lazyscope.experiments.beyond.coupling import CouplingDraw, coupling, half, measure
from lazyscope.experiments.frame.draws import exponents
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import Risk
from lazyscope.training.taylor.signs import norm_24, random_signs

WIDTHS = np.array([100, 1000, 10_000, 100_000])


def sphere(n, d, rng):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1)[:, None]


def test_the_exponents_of_the_issue_from_a_hundred_to_a_hundred_thousand_neurons():
    """f^L falls like m^−1/4 under signs and grows like m^1/4 without, f^Q is flat: each within 0.05."""
    sizes = np.zeros((3, len(WIDTHS), 4))
    for draw in range(4):
        rng = np.random.default_rng(draw)
        v, *X = sphere(25, 10, rng)
        for i, m in enumerate(WIDTHS):
            model, W, X = TaylorModel.symmetric(m, 10, "relu3", rng), half(m, v), np.array(X)
            assert np.linalg.norm(W[0]) == pytest.approx(m**-0.25)
            signed = [model.piece(1, W * random_signs(m, rng)[:, None], X) for _ in range(6)]
            pieces = (signed, model.piece(1, W, X), model.piece(2, W, X))
            sizes[:, i, draw] = [np.sqrt(np.mean(np.square(piece))) for piece in pieces]
    slope, stderr = exponents(WIDTHS, sizes)
    assert np.all(np.abs(slope - [-0.25, 0.25, 0.0]) < 0.05), (slope, stderr)
    assert np.all(np.abs(slope - [-0.25, 0.25, 0.0]) < 4 * stderr + 0.01)  # 0.01: the law of W₀ at m = 100


def test_the_report_finds_the_exponents_and_no_bound_is_broken():
    result = coupling([100, 1000, 10_000], draws=4, seed=1)
    slope = result.exponent.to_series()
    assert abs(slope["linear"] + 0.25) < 0.05 and abs(slope["linear_plain"] - 0.25) < 0.05
    assert abs(slope["quadratic"]) < 0.05
    # the lemmas bound from above: nothing falls more slowly than they say, beyond its standard error
    for name in ("gap", "rest", "risk", "gradient", "hessian"):
        assert slope[name] < -0.25 + 0.05 + 2 * float(result.exponent_stderr.sel(quantity=name)), name
    # L and L^Q differ by even terms only: E ℓ″ (f^L)²/2 ~ m^−1/2
    assert abs(slope["risk"] + 0.5) < 0.1 and abs(slope["gradient"] + 0.5) < 0.1
    assert result.attrs["citations"] == "bai2020beyond"


def test_the_size_of_f_linear_under_signs_has_a_closed_form():
    # E_Σ (f^L_{WΣ})² = (1/m) Σ_r σ′(w₀·x)² (w_r·x)²
    m, rng = 400, np.random.default_rng(0)
    v, *X = sphere(9, 6, rng)
    X = np.array(X)
    model, W = TaylorModel.symmetric(m, 6, "relu3", rng), half(m, v)
    slope = np.maximum(model.W0 @ X.T, 0.0) ** 2 / 2
    closed = np.sum((slope * (W @ X.T)) ** 2, axis=0) / m
    draws = np.array([model.piece(1, W * random_signs(m, rng)[:, None], X) for _ in range(2000)])
    error = np.std(draws**2, axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(np.mean(draws**2, axis=0) - closed) < 4 * error)
    assert np.all(np.abs(np.mean(draws, axis=0)) < 4 * np.sqrt(closed / len(draws)))


def test_the_mean_curvature_over_signs_equals_monte_carlo():
    m, rng = 60, np.random.default_rng(0)
    X = sphere(20, 5, rng)
    y = random_signs(20, rng)
    model = TaylorModel.symmetric(m, 5, "tanh", rng)
    W, V, lam = 0.4 * rng.standard_normal((m, 5)), rng.standard_normal((m, 5)), 1e-4
    for orders in (2, None):
        point = Risk(model, X, y, "logistic", orders, lam).at(W, random_signs(m, rng), derivatives=2)
        draws = np.array([point.curvature(V * random_signs(m, rng)[:, None]) for _ in range(1500)])
        error = draws.std() / np.sqrt(len(draws))
        assert abs(draws.mean() - point.curvature_over_signs(V)) < 4 * error


def test_lemma_10_and_lemma_11b_hold_with_their_constants():
    """|f^Q| ≤ ½ max|σ″(w₀·x)| ‖W‖²_{2,4} and |f − f^L − f^Q| ≤ (1/6) ‖W‖³_{2,4} m^−1/4, for σ = relu³/6, B_x = 1."""
    rng = np.random.default_rng(3)
    for m in (50, 400):
        model, X = TaylorModel.symmetric(m, 4, "relu3", rng), sphere(200, 4, rng)
        W = rng.standard_normal((m, 4)) * rng.exponential(size=(m, 1))
        largest = np.max(np.abs(model.W0 @ X.T))
        assert np.max(np.abs(model.piece(2, W, X))) <= 0.5 * largest * norm_24(W) ** 2
        for _ in range(5):
            moved = W * random_signs(m, rng)[:, None]
            rest = model.network(moved, X) - model.truncated(2, moved, X)
            assert np.max(np.abs(rest)) <= norm_24(W) ** 3 * m**-0.25 / 6


def test_a_draw_depends_on_its_fields_alone():
    one, other = (measure(CouplingDraw(64, samples=8, signs=2, seed=5)) for _ in range(2))
    assert one == other
    assert measure(CouplingDraw(64, samples=8, signs=2, seed=6)) != one


def test_bad_input_is_refused_in_one_line():
    with pytest.raises(ls.InvalidParameter, match=r"m parameter .* must be even"):
        coupling([101], draws=1)
    with pytest.raises(ls.NoTheorem, match=r"Assumption A"):
        coupling([100], activation="relu2")
    with pytest.raises(ls.InvalidParameter, match=r"widths parameter of coupling"):
        coupling([0])
    with pytest.raises(ls.InvalidParameter, match=r"one of logistic"):
        coupling([10], loss="hinge")


def test_the_verdict_says_no_to_wrong_exponents(tiny):
    wrong = {name: panel.copy(deep=True) for name, panel in tiny("coupling").panels.items()}
    for panel in wrong.values():
        for name in ("exponent", "randomized_exponent"):
            if name in panel:
                panel[name][...] = 0.7
    assert coupling_experiment.verdict(wrong)[-1].startswith("Not ")

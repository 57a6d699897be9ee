"""Lemma 5 and Theorem 6 on data: the supremum against a direct search, the chain of bounds, and the factor of d."""

from dataclasses import astuple

import numpy as np
import pytest
from scipy.optimize import minimize

import lazyscope as ls
from lazyscope.experiments.beyond.generalisation.numbers import generalisation
from lazyscope.problems.inputs import draw_inputs
from lazyscope.training.taylor.complexity import operator_size, suprema
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.signs import norm_24


def test_the_supremum_equals_what_a_search_finds():
    """sup over ‖W‖_{2,4} ≤ 1 of (1/n) Σ s_i f^Q_W(x_i): a search from random starts attains it and never exceeds it."""
    rng = np.random.default_rng(0)
    m, d, n = 6, 3, 15
    X = draw_inputs("sphere", n, d, rng)
    model = TaylorModel.symmetric(m, d, "relu3", rng, Bx=d**0.5)
    s = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    supremum, operator, frobenius = suprema(model, X, s)

    def loss(flat):
        W = flat.reshape(m, d)
        f = model.a @ (np.maximum(model.W0 @ X.T, 0.0) / 2 * (W @ X.T) ** 2) / m**0.5
        return -float(s @ f) / n / norm_24(W) ** 2

    found = [-minimize(loss, rng.standard_normal(m * d), method="BFGS").fun for _ in range(6)]
    assert max(found) <= supremum * (1 + 1e-9)
    assert max(found) == pytest.approx(supremum, rel=1e-5)
    assert supremum <= operator <= frobenius


@pytest.mark.parametrize("inputs", ["hypercube", "sphere", "aligned"])
def test_the_chain_of_bounds(inputs):
    """2·complexity + 1/√n ≤ Lemma 5 ≤ Frobenius, Lemma 5 ≤ Lemma 8's concentration; M_op between 1/√d and 1."""
    d, n = 12, 200
    where = 1e4 ** -np.linspace(0, 1, d) if inputs == "aligned" else inputs
    X = draw_inputs(where, n, d, np.random.default_rng(1))
    found = generalisation(X, width=60, Bw=1.7)
    assert 1 / np.sqrt(d) - 1e-12 <= found.M_op <= 1 + 1e-12
    assert 2 * found.complexity + n**-0.5 <= found.lemma5 <= found.frobenius
    assert found.lemma5 <= found.concentration
    assert found.theorem6 == pytest.approx(d * 1.7**2 * found.M_op / n**0.5 + n**-0.5)
    assert found.complexity_stderr > 0 and found.lemma5_stderr > 0
    assert astuple(generalisation(X, width=60, Bw=1.7)) == astuple(found)


def test_isotropic_inputs_gain_a_factor_of_the_root_of_d():
    """n = 20d: M_op√d between 1 and Marchenko and Pastur's edge 1 + √(d/n); operator norms win by ~ √d."""
    gains = []
    for d in (8, 32):
        X = draw_inputs("hypercube", 20 * d, d, np.random.default_rng(d))
        found = generalisation(X, width=20, signs=6)
        assert 1.0 <= found.M_op * d**0.5 <= 1 + (1 / 20) ** 0.5 + 0.02
        gains.append(found.frobenius / found.lemma5)
    line = np.zeros((100, 16))
    line[:, 0] = np.where(np.random.default_rng(0).random(100) < 0.5, -4.0, 4.0)
    assert generalisation(line, width=20).M_op == pytest.approx(1.0)
    assert generalisation(line, width=20).frobenius == pytest.approx(generalisation(line, width=20).lemma5)
    assert gains[1] / gains[0] == pytest.approx(2.0, rel=0.3)


def test_operator_size_is_the_root_of_the_largest_eigenvalue():
    X = draw_inputs("sphere", 40, 7, np.random.default_rng(2))
    values = np.linalg.eigvalsh(X.T @ X / 40)
    assert operator_size(X, 7**0.5) == pytest.approx(np.sqrt(values[-1] / 7))


def test_the_bounds_scale_with_the_norm_and_not_with_the_radius():
    """B_w enters squared; x → cx with w₀ → w₀/c leaves u alone, so that all but 1/√n grows like c²."""
    X = draw_inputs("sphere", 50, 5, np.random.default_rng(3))
    one, two = generalisation(X, width=20), generalisation(3.0 * X, width=20)
    rest = 50**-0.5
    assert two.complexity == pytest.approx(9 * one.complexity)
    assert two.lemma5 - rest == pytest.approx(9 * (one.lemma5 - rest))
    assert two.theorem6 - rest == pytest.approx(9 * (one.theorem6 - rest))
    assert generalisation(X, width=20, Bw=2.0).complexity == pytest.approx(4 * one.complexity)


def test_bad_input_is_refused_in_one_line():
    X = np.eye(3)
    with pytest.raises(ls.InvalidParameter, match="rows on the sphere"):
        generalisation(np.array([[1.0, 0.0], [2.0, 0.0]]))
    with pytest.raises(ls.InvalidParameter, match="all of the same norm"):
        generalisation(np.zeros((2, 2)))
    with pytest.raises(ls.InvalidParameter, match="be even"):
        generalisation(X, width=7)
    with pytest.raises(ls.InvalidParameter, match=r"signs .* at least 2"):
        generalisation(X, signs=1)
    with pytest.raises(ls.InvalidParameter, match="Bw"):
        generalisation(X, Bw=0.0)
    with pytest.raises(ls.NoTheorem, match="Assumption A"):
        generalisation(X, activation="relu")
    assert "M_op = 0.577" in str(generalisation(X, width=4))


def test_the_report_tells_what_it_rests_on():
    found = generalisation(np.eye(4), width=4, signs=2)
    assert (found.claim, found.theorem, found.citations) == (
        "report generalisation",
        "Lemma 5, Theorem 6",
        "bai2020beyond",
    )

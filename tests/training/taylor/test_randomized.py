"""Training under random signs: the gradient it follows, what it learns, and that a seed fixes it."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.protocols import NoisySGD
from lazyscope.training.taylor.model import TaylorModel

# private: a step of training has no other face, and is compared with the risk that it descends
from lazyscope.training.taylor.randomized import _clean, _gradient, _network, train
from lazyscope.training.taylor.risk import Risk
from lazyscope.training.taylor.signs import random_signs


def case(m=40, d=6, n=30, seed=0):
    rng = np.random.default_rng(seed)
    problem = ls.SparseParity(d)
    X, y = problem.sample(n, rng)
    model = TaylorModel.symmetric(m, d, "relu3", rng, Bx=problem.Bx)
    return model, X, y, 0.3 * rng.standard_normal((m, d))


def test_a_step_follows_the_mean_gradient_of_a_pair_of_mirrored_signs():
    model, X, y, W = case()
    part = slice(5, 25)
    risk = Risk(model, X[part], y[part], "logistic", orders=None)
    slopes = _network(model, X, True, np.random.default_rng(7))
    gradient, value = _gradient(W, X[part], y[part], np.ones(20), risk._loss, slopes, part)
    signs = random_signs(model.m, np.random.default_rng(7))
    pair = [risk.at(W, s) for s in (signs, -signs)]
    assert value == pytest.approx(np.mean([point.value for point in pair]), rel=1e-12)
    assert gradient == pytest.approx(np.mean([point.gradient() for point in pair], axis=0), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("order", [1, 2])
def test_a_step_of_the_clean_model_follows_its_gradient(order):
    model, X, y, W = case()
    part = slice(0, 30)
    risk = Risk(model, X, y, "logistic", orders=order)
    gradient, value = _gradient(W, X, y, np.ones(30), risk._loss, _clean(model, X, order), part)
    assert value == pytest.approx(risk.at(W).value, rel=1e-12)
    assert gradient == pytest.approx(risk.at(W).gradient(), rel=1e-10, abs=1e-14)


def test_mirrored_signs_take_the_linear_part_out_of_the_noise():
    """At ‖w_r‖ ~ m^−1/4 the gradient of one sign is mostly f^L's; that of a pair, mostly f^Q's."""
    model, X, y, W = case(m=2000, n=60)
    W *= model.m**-0.25
    risk = Risk(model, X, y, "logistic", orders=None)
    rng = np.random.default_rng(1)
    single, paired = [], []
    for _ in range(8):
        signs = random_signs(model.m, rng)
        one, other = (risk.at(W, s).gradient() for s in (signs, -signs))
        single.append(one)
        paired.append((one + other) / 2)
    spread = [np.sqrt(np.mean(np.var(sample, axis=0))) for sample in (single, paired)]
    assert spread[1] < 0.25 * spread[0]


def test_two_xor_is_learnt_beyond_linearization_and_not_by_the_tangent_model():
    settings = {"width": 256, "samples": 300, "draws": 2}
    problem = ls.SparseParity(24)
    quadratic = ls.simulate(problem, ls.Taylor(2, "relu3", randomized=False), **settings)
    randomized = ls.simulate(problem, ls.Taylor(2, "relu3"), **settings)
    tangent = ls.simulate(problem, ls.NeuralTangent("relu3"), **settings)
    assert float(quadratic.risk) < 0.05 and float(randomized.risk) < 0.05
    assert float(tangent.risk) > 0.3


def test_the_origin_is_a_saddle_that_noise_leaves():
    model, X, y, _ = case(m=128, n=64)
    still = {"start": 0.0, "momentum": 0.0, "steps": 200, "step_size": 10.0}
    stays = train(model, X, y, 2, signs=False, protocol=NoisySGD(noise=0.0, **still), rng=np.random.default_rng(0))
    leaves = train(model, X, y, 2, signs=False, protocol=NoisySGD(noise=0.01, **still), rng=np.random.default_rng(0))
    assert stays.trace[-1] == pytest.approx(np.log(2.0), abs=1e-7) and stays.norm == 0.0
    assert leaves.trace[-1] < 0.1


def test_the_regularizer_keeps_weights_small():
    model, X, y, _ = case(m=128, n=64)
    free, held = (
        train(model, X, y, None, signs=True, protocol=NoisySGD(steps=200, lam=lam), rng=np.random.default_rng(0))
        for lam in (0.0, 1e-6)
    )
    assert held.norm < 0.8 * free.norm


def test_one_seed_one_number_and_equal_data_for_all_regimes():
    problem = ls.RidgeMonomial(8, 3, alpha=0.5)
    runs = [ls.simulate(problem, ls.Taylor(), width=[16, 32], samples=100, seed=4) for _ in range(2)]
    assert runs[0].identical(runs[1])
    alone = ls.simulate(problem, ls.Taylor(), width=32, samples=100, seed=4)
    assert float(alone.risk) == float(runs[0].risk[1])


def test_bad_input_is_refused_in_one_line():
    model, X, y, _ = case()
    rng = np.random.default_rng(0)
    with pytest.raises(ls.InvalidParameter, match=r"rows on the sphere"):
        train(model, 2.0 * X, y, 2, signs=False, protocol=NoisySGD(), rng=rng)
    with pytest.raises(ls.InvalidParameter, match=r"labels, ±1, for the logistic loss"):
        train(model, X, 0.5 * y, 2, signs=False, protocol=NoisySGD(loss="logistic"), rng=rng)
    with pytest.raises(ls.NotConverged, match=r"diverged at step .* smaller step_size"):
        train(model, X, 3.0 * y, 2, signs=False, protocol=NoisySGD(step_size=1e6), rng=rng)
    with pytest.raises(ls.InvalidParameter, match=r"momentum .* below 1"):
        NoisySGD(momentum=1.0)
    with pytest.raises(ls.InvalidParameter, match=r"m parameter .* must be even"):
        ls.simulate(ls.SparseParity(5), ls.Taylor(), width=7, samples=10)
    with pytest.raises(ls.NoTheorem, match=r"random signs assumes order 2\. Got order 3"):
        ls.Taylor(3, "tanh")
    with pytest.raises(ls.NoTheorem, match=r"Assumption A"):
        ls.Taylor(2, "relu")
    with pytest.raises(ls.InvalidParameter, match=r"order parameter of Taylor .* at least 1"):
        ls.Taylor(0)


def test_the_verb_takes_a_protocol_and_asks_for_samples():
    short = ls.NoisySGD(steps=30, batch=16, loss="soft hinge")
    result = ls.simulate(ls.SparseParity(5), ls.Taylor(), width=[8, 16], samples=40, protocol=short, draws=2)
    assert result.risk.dims == ("width",) and np.all(np.isfinite(result.risk))
    assert '"loss": "soft hinge"' in result.attrs["arguments"]
    with pytest.raises(ls.InvalidParameter, match=r"samples parameter of simulate must be a positive whole number"):
        ls.simulate(ls.SparseParity(5), ls.Taylor(), width=8)
    with pytest.raises(ls.InvalidParameter, match=r"protocol parameter of simulate must be a NoisySGD"):
        ls.simulate(ls.SparseParity(5), ls.Taylor(), width=8, samples=40, protocol=ls.SGD())
    with pytest.raises(ls.InvalidParameter, match=r"protocol parameter of simulate must be an SGD"):
        ls.simulate(ls.QuadraticTarget([1.0, 2.0]), ls.Trained(), width=2, protocol=short)

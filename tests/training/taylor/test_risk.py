"""Losses, signs, the ℓ_{2,4} regulariser and the empirical risk: derivatives against JAX, bad input in one line."""

import jax
import numpy as np
import pytest

import lazyscope as ls
from lazyscope.numerics.losses import LOSSES
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import Risk, on_sphere
from lazyscope.training.taylor.signs import norm_24, random_signs

jax.config.update("jax_enable_x64", True)
jnp = jax.numpy

JAX_LOSS = {
    "logistic": lambda y, z: jnp.log1p(jnp.exp(-y * z)),
    "soft hinge": lambda y, z: jnp.log1p((jnp.e - 1) * jnp.exp(-y * z)),
    "square": lambda y, z: (y - z) ** 2 / 2,
}


def case(seed=0, m=10, d=4, n=6):
    rng = np.random.default_rng(seed)
    model = TaylorModel.symmetric(m, d, "tanh", rng, Bx=2.0)
    X = rng.standard_normal((n, d))
    X *= 2.0 / np.linalg.norm(X, axis=1)[:, None]
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return model, X, y, 0.3 * rng.standard_normal((m, d)), rng.standard_normal((m, d)), rng


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_assumptions(name):
    loss, z = LOSSES[name], np.linspace(-30.0, 30.0, 241)
    for y in (1.0, -1.0):
        wanted = JAX_LOSS[name]
        assert loss.value(y, z) == pytest.approx(np.asarray(wanted(y, z)), rel=1e-12, abs=1e-12)
        first = jax.vmap(jax.grad(wanted, argnums=1), (None, 0))
        second = jax.vmap(jax.grad(jax.grad(wanted, argnums=1), argnums=1), (None, 0))
        assert loss.slope(y, z) == pytest.approx(np.asarray(first(y, z)), abs=1e-12)
        assert loss.curvature(y, z) == pytest.approx(np.asarray(second(y, z)), abs=1e-12)
        assert np.all(loss.curvature(y, z) >= 0) and np.all(loss.curvature(y, z) <= 1)
        assert float(loss.value(y, np.array(0.0))) <= 1.0 + 1e-15
        if loss.classification:
            assert np.max(np.abs(loss.slope(y, z))) <= 1.0
            third = np.gradient(loss.curvature(y, z), z)
            assert np.max(np.abs(third)) <= 1.0


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("orders", [2, None])
def test_the_risk_its_gradient_and_its_hessian_equal_jax(name, orders):
    model, X, y, W, V, rng = case()
    signs, lam = random_signs(model.m, rng), 0.05
    risk = Risk(model, X, y, name, orders, lam)
    W0, a = jnp.asarray(model.W0), jnp.asarray(model.a)

    def value(W):
        moved = W * signs[:, None]
        if orders is None:
            f = a @ jnp.tanh((W0 + moved) @ X.T) / jnp.sqrt(model.m)
        else:
            t = jnp.tanh(W0 @ X.T)
            f = a @ (-t * (1 - t**2) * (moved @ X.T) ** 2) / jnp.sqrt(model.m)  # tanh″/2 = −t(1 − t²)
        return jnp.mean(JAX_LOSS[name](y, f)) + lam * jnp.sum(jnp.sum(W**2, axis=1) ** 2) ** 2

    wanted, gradient = jax.value_and_grad(value)(W)
    product = jax.jvp(jax.grad(value), (W,), (V,))[1]
    here = risk.at(W, signs, derivatives=2)
    assert here.value == pytest.approx(float(wanted), rel=1e-12)
    assert np.max(np.abs(here.gradient() - gradient)) <= 1e-9 * np.max(np.abs(gradient))
    assert np.max(np.abs(here.hessian_product(V) - product)) <= 1e-9 * np.max(np.abs(product))
    assert here.curvature(V) == pytest.approx(float(np.sum(product * V)), rel=1e-9)


def test_the_quadratic_model_does_not_see_signs():
    model, X, y, W, _, rng = case()
    risk = Risk(model, X, y, orders=2)
    values = np.array([risk.at(W, random_signs(model.m, rng), derivatives=0).value for _ in range(5)])
    assert values == pytest.approx(np.full(5, risk.at(W).value), rel=1e-14)


def test_norm_24_is_a_norm_of_neuron_norms():
    W = np.random.default_rng(0).standard_normal((20, 3))
    assert norm_24(W) == pytest.approx(np.sum(np.linalg.norm(W, axis=1) ** 4) ** 0.25)
    assert norm_24(W) <= np.linalg.norm(W) <= 20**0.25 * norm_24(W)


def test_bad_input_is_refused_in_one_line():
    model, X, y, *_ = case()
    with pytest.raises(ls.InvalidParameter, match="rows on the sphere of radius B_x = 2"):
        Risk(model, 1.1 * X, y)
    with pytest.raises(ls.InvalidParameter, match="rows on the sphere"):
        on_sphere(np.full((2, 4), np.nan), 1.0, "Risk")
    with pytest.raises(ls.InvalidParameter, match=r"labels, ±1, for the logistic loss\. Got 0"):
        Risk(model, X, (y + 1) / 2)
    with pytest.raises(ls.InvalidParameter, match="6 labels"):
        Risk(model, X, y[1:])
    with pytest.raises(ls.InvalidParameter, match="one of logistic, soft hinge, square"):
        Risk(model, X, y, loss="hinge")
    with pytest.raises(ls.InvalidParameter, match="lam"):
        Risk(model, X, y, lam=-1.0)
    assert Risk(model, X, 0.5 * y, loss="square").at(np.zeros((10, 4))).value == pytest.approx(0.125)

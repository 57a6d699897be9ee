"""Taylor pieces, gradients and Hessian products against an independent framework and finite differences."""

from math import factorial

import jax
import numpy as np
import pytest

import lazyscope as ls
from lazyscope.activations import Activation
from lazyscope.training.taylor.model import TaylorModel, upto

jax.config.update("jax_enable_x64", True)
jnp = jax.numpy

JAX_SIGMA = {
    "relu3": lambda u: jnp.maximum(u, 0.0) ** 3 / 6.0,
    "tanh": jnp.tanh,
    "erf": jax.scipy.special.erf,
    "softplus": lambda u: jnp.logaddexp(u, 0.0),
    "cube": lambda u: u**3,
    "gelu": lambda u: u * jax.scipy.stats.norm.cdf(u),
    "silu": lambda u: u * jax.nn.sigmoid(u),
}
HIGHEST = {"relu3": 2, "cube": 3, "gelu": 2, "silu": 2, "erf": 2, "softplus": 3}  # tanh: 4; JAX compiles for seconds


def case(name, m=12, d=5, n=7, seed=0):
    rng = np.random.default_rng(seed)
    model = TaylorModel.symmetric(m, d, name, rng)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return model, X, 0.5 * rng.standard_normal((m, d)), rng.standard_normal(n), rng.standard_normal((m, d))


def jax_network(model, name):
    def network(W, X):
        return jnp.asarray(model.a) @ JAX_SIGMA[name]((jnp.asarray(model.W0) + W) @ X.T) / jnp.sqrt(model.m)

    return network


def jax_piece(network, k):
    """f^(k) by k nested forward derivatives at W = 0 in the direction W."""

    def piece(W, X):
        def along(t):
            return network(t * W, X)

        function = along
        for _ in range(k):
            function = lambda t, inner=function: jax.jvp(inner, (t,), (1.0,))[1]  # noqa: E731
        return function(0.0) / factorial(k)

    return piece


def close(found, wanted):
    """To 1e-9 of the size of the thing, as the issue asks; rounding leaves about 1e-15."""
    scale = float(np.max(np.abs(wanted)))
    assert np.max(np.abs(np.asarray(found) - np.asarray(wanted))) <= 1e-9 * scale


def oracle(model, name, orders, W, X, g, V):
    """For each order: f, ∇⟨g, f⟩, ⟨∇f, V⟩ and ∇²⟨g, f⟩[V], by automatic differentiation, compiled once."""
    network = jax_network(model, name)
    functions = {k: network if k is None else jax_piece(network, k) for k in orders}

    def everything(W):
        result = {}
        for k, function in functions.items():
            gradient = jax.grad(lambda W, f=function: g @ f(W, X))
            along = jax.jvp(lambda W, f=function: f(W, X), (W,), (V,))[1]
            result[str(k)] = (function(W, X), *jax.jvp(gradient, (W,), (V,)), along)
        return result

    return jax.jit(everything)(W)


@pytest.mark.parametrize("name", sorted(JAX_SIGMA))
def test_pieces_gradients_and_hessian_products_equal_nested_jvp(name):
    model, X, W, g, V = case(name)
    orders = [None, *range(1, HIGHEST.get(name, 4) + 1)]
    wanted = oracle(model, name, orders, W, X, g, V)
    for k in orders:
        here = model.expand(W, X, k, derivatives=2)
        values, gradient, product, along = wanted[str(k)]
        close(here.values, values)
        close(here.gradient(g), gradient)
        close(here.along(V), along)
        if k == 1:
            assert not np.any(here.hessian_product(g, V))
        else:
            close(here.hessian_product(g, V), product)
            assert g @ here.curvature(V) == pytest.approx(float(np.sum(product * V)), rel=1e-9)


@pytest.mark.parametrize(("name", "orders"), [("relu3", (2,)), ("tanh", (1, 2, 3, 4)), ("softplus", None)])
def test_derivatives_equal_finite_differences(name, orders):
    model, X, W, g, V = case(name)
    h = 1e-5

    def value(t):
        return g @ model.expand(W + t * V, X, orders, derivatives=0).values

    def gradient(t):
        return model.gradient(orders, W + t * V, X, g)

    here = model.expand(W, X, orders, derivatives=2)
    # fourth-order central differences: h⁴ = 1e-20 from the formula, ε/h = 1e-11 from rounding
    stencil = [(-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12)]
    slope = sum(c * value(j * h) for j, c in stencil) / h
    assert slope == pytest.approx(float(np.sum(here.gradient(g) * V)), rel=1e-9)
    second = sum(c * gradient(j * h) for j, c in stencil) / h
    close(here.hessian_product(g, V), second)


def test_truncated_is_the_sum_of_pieces_and_symmetric_starts_at_zero():
    model, X, W, g, _ = case("tanh")
    assert model.piece(0, W, X) == pytest.approx(np.zeros(len(X)), abs=1e-15)
    total = sum(model.piece(k, W, X) for k in (1, 2, 3))
    assert model.truncated(3, W, X) == pytest.approx(total, rel=1e-13, abs=1e-15)
    assert model.gradient(upto(3), W, X, g) == pytest.approx(sum(model.gradient(k, W, X, g) for k in (1, 2, 3)))


def test_signs_leave_even_pieces_and_turn_odd_ones():
    model, X, W, _, _ = case("tanh")
    for k in (1, 2, 3, 4):
        assert model.piece(k, -W, X) == pytest.approx((-1) ** k * model.piece(k, W, X), rel=1e-12)


def test_the_taylor_series_of_a_polynomial_ends():
    cubic = np.polynomial.Polynomial([0.5, -1.0, 0.3, 0.2])
    model, X, W, _, _ = case(Activation(cubic))
    assert model.truncated(3, W, X) == pytest.approx(model.network(W, X), rel=1e-12, abs=1e-14)
    assert model.piece(4, W, X) == pytest.approx(np.zeros(len(X)))


def test_blocks_threads_and_float32_change_rounding_only():
    model, X, W, g, _ = case("tanh", m=3000, d=20, n=200)
    whole = model.expand(W, X, upto(4))
    parts = [TaylorModel(model.W0[r], model.a[r], model.sigma) for r in (slice(0, 1700), slice(1700, 3000))]
    apart = [part.expand(W[r], X, upto(4)) for part, r in zip(parts, (slice(0, 1700), slice(1700, 3000)), strict=True)]
    joined = sum(e.values * np.sqrt(e.model.m) for e in apart) / np.sqrt(3000)
    assert whole.values == pytest.approx(joined, rel=1e-12)
    single = model.in_precision(np.float32).expand(W, X, upto(4))
    assert single.D.dtype == np.float32
    # √m = 55 terms of size 1 in root mean square, rounded at 6e-8 each
    assert np.max(np.abs(single.values - whole.values)) < 1e-5 * np.max(np.abs(whole.values))
    close_enough = 1e-5 * np.max(np.abs(whole.gradient(g)))
    assert np.max(np.abs(single.gradient(g) - whole.gradient(g))) < close_enough


@pytest.mark.parametrize("order", [0, -1, 1.5, "2", True])
def test_order_must_be_a_positive_whole_number(order):
    model, X, W, _, _ = case("tanh")
    with pytest.raises(ls.InvalidParameter, match="order parameter of Taylor must be a whole number, at least 1"):
        model.truncated(order, W, X)


def test_bad_input_is_refused_in_one_line():
    rng = np.random.default_rng(0)
    with pytest.raises(ls.InvalidParameter, match=r"m parameter .* must be even"):
        TaylorModel.symmetric(7, 3, "relu3", rng)
    with pytest.raises(ls.NoTheorem, match=r"order 2 assumes σ ∈ C² .*Assumption A .*Got relu,"):
        model, X, W, _, _ = case("relu")
        model.truncated(2, W, X)
    with pytest.raises(ls.NoTheorem, match=r"order 3 assumes σ ∈ C³ .*Got relu3, which has 2"):
        model, X, W, _, _ = case("relu3")
        model.truncated(3, W, X)
    with pytest.raises(ls.InvalidParameter, match="derivatives in closed form"):
        case(Activation(lambda u: u**2))[0].truncated(1, W, X)
    model, X, W, _, _ = case("tanh")
    with pytest.raises(ls.InvalidParameter, match=r"W parameter .* shape of W0"):
        model.network(W.T, X)
    with pytest.raises(ls.InvalidParameter, match="X parameter"):
        model.network(W, X[:, 1:])
    with pytest.raises(ls.InvalidParameter, match="signs"):
        TaylorModel(model.W0, 2 * model.a, model.sigma)


def test_memory_of_an_earlier_expansion_can_be_used_again():
    model, X, W, _, V = case("tanh")
    first = model.expand(W, X, upto(2), derivatives=2)
    wanted = model.expand(V, X, upto(3), derivatives=2)
    again = model.expand(V, X, upto(3), derivatives=2, reuse=first)
    assert again.D is first.D and again.E is first.E
    assert np.array_equal(again.D, wanted.D) and np.array_equal(again.E, wanted.E)
    assert model.expand(W, X[:2], 2, reuse=first).D.shape == (model.m, 2)


@pytest.mark.parametrize("name", ["relu2", "relu3", "relu4", "relu5", "tanh", "sigmoid", "softplus"])
def test_the_fused_pass_equals_the_table_of_coefficients(name):
    """Two routes to v, v′ and v″: coefficients in registers, and from `taylor_coefficients` by way of `combine`."""
    from lazyscope.activations.derivatives import smoothness, taylor_coefficients
    from lazyscope.training.taylor.pieces import add_pieces, combine

    rng = np.random.default_rng(0)
    sigma = Activation(name)
    u, z, a = rng.standard_normal((3, 700)), rng.standard_normal((3, 700)), np.array([1.0, -1.0, 1.0])
    for order in range(1, int(min(4, smoothness(sigma))) + 1):
        kept = (rng.random(order + 1) < 0.7).astype(float)
        kept[order] = 1.0
        results = []
        for route in ("fused", "table"):
            total, slope, curvature = np.zeros(700), np.empty((3, 700)), np.empty((3, 700))
            if route == "fused":
                add_pieces(sigma, kept, u.copy(), z, a, total, slope, curvature)
            else:
                combine(taylor_coefficients(sigma, u, order), kept, z, a, total, slope, curvature)
            results.append((total, slope, curvature))
        for fused, table in zip(*results, strict=True):
            assert fused == pytest.approx(table, rel=1e-12, abs=1e-13)

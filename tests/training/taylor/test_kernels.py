"""Kernels of the Taylor pieces: finite width against explicit Jacobians, infinite width against quadrature."""

from math import factorial

import jax
import mpmath
import numpy as np
import pytest

import lazyscope as ls
from lazyscope.activations import Activation
from lazyscope.activations.derivatives import derivative
from lazyscope.numerics.hard_margin import kernel_margin
from lazyscope.numerics.hard_margin import solve as by_nnls
from lazyscope.numerics.krylov import kernel_ridge
from lazyscope.population.infinite_width import InfiniteWidthKernel
from lazyscope.training.taylor.kernels import FiniteWidthKernel
from lazyscope.training.taylor.model import TaylorModel

jax.config.update("jax_enable_x64", True)
jnp = jax.numpy


def sphere(n, d, seed=0, Bx=1.0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return Bx * X / np.linalg.norm(X, axis=1)[:, None]


def test_finite_width_kernels_equal_explicit_jacobians():
    """K₁ is the Gram matrix of ∇_W f at W₀, K₂ that of the blocks ½∂²f/∂w_r², both by JAX on the network itself."""
    Bx = 1.5
    model = TaylorModel.symmetric(12, 3, "tanh", np.random.default_rng(0), Bx=Bx)
    X, Z = sphere(5, 3, 1, Bx), sphere(4, 3, 2, Bx)

    def network(W, x):
        return jnp.asarray(model.a) @ jnp.tanh(W @ x) / jnp.sqrt(model.m)

    def first(x):
        return np.asarray(jax.grad(network)(jnp.asarray(model.W0), x)).ravel()

    def second(x):
        blocks = np.asarray(jax.hessian(network)(jnp.asarray(model.W0), x))
        return np.concatenate([blocks[r, :, r, :].ravel() / 2 for r in range(model.m)])

    for order, features in ((1, first), (2, second)):
        A, B = np.array([features(x) for x in X]), np.array([features(x) for x in Z])
        kernel = FiniteWidthKernel(model, order)
        assert np.max(np.abs(kernel(X, Z) - A @ B.T)) <= 1e-12 * np.max(np.abs(A @ B.T))
        assert np.max(np.abs(kernel(X) - A @ A.T)) <= 1e-12 * np.max(np.abs(A @ A.T))


@pytest.mark.parametrize(
    ("name", "order"),
    [("relu", 1), ("relu3", 1), ("relu3", 2), ("relu3", 3), ("abs", 1), ("tanh", 1), ("tanh", 2), ("softplus", 2)],
)
def test_infinite_width_equals_quadrature(name, order):
    """The double integral in polar coordinates: kinks at 0 are then rays, where the rule is split."""
    kernel = InfiniteWidthKernel(name, order)
    sigma = Activation(name)

    def slope(u):
        return float(derivative(sigma, [float(u)], order)[0])

    mpmath.mp.dps = 15
    for r in (-0.7, 0.3):
        s = np.sqrt(1 - r * r)
        # u = ρ cos t, u′ = ρ (r cos t + s sin t): zero at t = ±π/2 and where tan t = −r/s
        zero = np.arctan2(-r, s)
        edges = sorted({-np.pi, -np.pi / 2, np.pi / 2, np.pi, zero, zero + np.pi if zero < 0 else zero - np.pi})

        def integrand(t, rho, r=r, s=s):
            u, v = rho * mpmath.cos(t), rho * (r * mpmath.cos(t) + s * mpmath.sin(t))
            return slope(u) * slope(v) * rho * mpmath.exp(-rho * rho / 2) / (2 * mpmath.pi)

        if sigma.rectified is not None:  # homogeneous: the radius by itself, ∫ρ^{2a+1}e^{−ρ²/2}dρ = 2^a a!
            a = (sigma.rectified.power - order) * 1
            radial = 2.0**a * factorial(a) * np.exp(0.5)
            wanted = radial * float(mpmath.quad(lambda t: integrand(t, 1.0), edges))
        else:
            x, w = np.polynomial.hermite_e.hermegauss(120)
            w = w / np.sqrt(2 * np.pi)
            U = derivative(sigma, x, order)
            V = derivative(sigma, r * x[:, None] + s * x, order)
            wanted = float(np.einsum("i,ij,j,i->", w, V, w, U))
        assert kernel.profile(np.array([r]))[0] == pytest.approx(wanted / factorial(order) ** 2, rel=2e-9)


@pytest.mark.parametrize(("name", "order"), [("relu3", 1), ("relu3", 2), ("tanh", 2)])
def test_wide_networks_approach_infinite_width(name, order):
    """Each entry within 5 standard errors of the mean over neurons; the errors fall like m^{−1/2}."""
    Bx, X = 2.0, sphere(6, 4, 3, 2.0)
    limit = InfiniteWidthKernel(name, order, Bx)(X)
    m = 40_000
    model = TaylorModel.symmetric(m, 4, name, np.random.default_rng(1), Bx=Bx)
    c = derivative(Activation(name), model.W0[: m // 2] @ X.T, order) / factorial(order)
    spread = np.array([[np.std(c[:, i] * c[:, j]) for j in range(6)] for i in range(6)])
    allowed = 5 * spread / np.sqrt(m / 2) * np.abs(X @ X.T) ** order
    assert np.all(np.abs(FiniteWidthKernel(model, order)(X) - limit) <= allowed)


def test_diagonals_are_second_moments():
    """κ_k(1) = E[σ^{(k)}(g)²]/k!², by the package's own one-dimensional quadrature."""
    for name in ("tanh", "erf", "gelu", "softplus", "sin", "relu2"):
        sigma = Activation(name)
        plain, _ = sigma.slope_moments(1.0)
        assert InfiniteWidthKernel(sigma, 1).profile(np.ones(1))[0] == pytest.approx(float(plain), rel=1e-11)


def test_rough_activations_and_inputs_off_the_sphere_are_refused():
    with pytest.raises(ls.LazyscopeError, match="Assumption A"):
        InfiniteWidthKernel("relu", 2)
    with pytest.raises(ls.InvalidParameter, match=r"sphere of radius B_x = 2 .* norm 1"):
        InfiniteWidthKernel("relu3", Bx=2.0)(np.eye(3))
    model = TaylorModel.symmetric(4, 3, "relu3", np.random.default_rng(0))
    with pytest.raises(ls.InvalidParameter, match="sphere of radius B_x = 1"):
        FiniteWidthKernel(model)(2 * np.eye(3))
    with pytest.raises(ls.InvalidParameter, match="positive radius"):
        InfiniteWidthKernel("relu3", Bx=0.0)
    with pytest.raises(ls.InvalidParameter, match="order"):
        FiniteWidthKernel(model, 0)


def xor(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X, y = ls.SparseParity(d).sample(n, rng)
    return X, y


def test_every_ridge_of_one_lanczos_process_equals_a_solve():
    _, y = xor(150, 8)
    K = InfiniteWidthKernel("relu3", 1, Bx=8**0.5)(sphere(150, 8, 5, 8**0.5))
    ridges = [0.0, 1e-3, 1.0, 1e3]
    fits = kernel_ridge(K, y, ridges)
    for ridge, alpha in zip(ridges, fits.alpha, strict=True):
        wanted = np.linalg.solve(K + ridge * np.eye(150), y)
        assert np.linalg.norm(alpha - wanted) <= 1e-7 * np.linalg.norm(wanted)
    assert np.all(fits.residual <= 1e-8)
    assert fits.predict(K[:7]).shape == (7, 4)


def test_a_singular_kernel_without_a_ridge_is_refused():
    X, y = xor(40, 6)
    K = InfiniteWidthKernel("relu3", 1, Bx=6**0.5)(np.concatenate([X, X]))
    with pytest.raises(ls.NotConverged, match="λ = 0 leaves"):
        kernel_ridge(K, np.concatenate([y, -y]), [0.0])
    assert kernel_ridge(K, np.concatenate([y, y]), [0.0, 0.1]).residual.max() < 1e-8  # consistent, if singular
    with pytest.raises(ls.NotConverged, match="singular to rounding"):
        kernel_margin(K, np.concatenate([y, -y]))
    with pytest.raises(ls.InvalidParameter, match="not all zero"):
        kernel_ridge(np.eye(2), np.zeros(2), [1.0])
    with pytest.raises(ls.InvalidParameter, match="labels, ±1"):
        kernel_margin(np.eye(2), np.array([1.0, 0.0]))
    with pytest.raises(ls.InvalidParameter, match=r"\(n, n\) matrix"):
        kernel_ridge(np.ones((2, 3)), np.ones(2), [1.0])


@pytest.mark.parametrize("seed", range(6))
def test_the_largest_margin_equals_that_of_non_negative_least_squares(seed):
    """Random kernels with any share of support vectors, against the least-distance form on Cholesky's factor."""
    rng = np.random.default_rng(seed)
    n = 60
    features = rng.standard_normal((n, 80)) * np.logspace(0, -1.0 * (seed % 3), 80)
    features[:, 0] += 2.0 * (seed // 3)
    K, y = features @ features.T, np.where(rng.random(n) < 0.5, -1.0, 1.0)
    found = kernel_margin(K, y)
    wanted = by_nnls(np.linalg.cholesky(K) * y[:, None])
    assert found.margin == pytest.approx(wanted.margin, rel=1e-8)
    assert found.support == wanted.support
    assert np.min(y * found.predict(K)) == pytest.approx(1.0, abs=1e-8)


def test_a_soft_margin_is_the_square_hinge():
    """Stationarity of ½‖f‖² + Σξ²/2λ: β = ξ/λ with ξ = max(0, 1 − yf)."""
    X, y = xor(120, 7, seed=1)
    y = y * np.where(np.random.default_rng(2).random(120) < 0.1, -1.0, 1.0)
    K = InfiniteWidthKernel("relu3", 1, Bx=7**0.5)(X)
    fit = kernel_margin(K, y, ridge=0.3)
    slack = np.maximum(0.0, 1.0 - y * fit.predict(K))
    assert fit.alpha * y == pytest.approx(slack / 0.3, abs=1e-8)
    assert fit.gap < 1e-8

"""The spectrum of the kernel matrix: moments, one law of Marchenko and Pastur, and a fixed point as a second route."""

import numpy as np
import pytest

from lazyscope.activations import Activation
from lazyscope.limits.spectral.feature_matrix import density, distribution, spike


@pytest.mark.parametrize(("psi1", "psi2"), [(6.0, 2.0), (3.0, 1.5), (2.0, 0.5)])
@pytest.mark.parametrize("name", ["relu", "tanh", "abs"])
def test_mass_and_moments(name, psi1, psi2):
    """Tr K/n and Tr K²/n, from those of the covariance: b₁² + b⋆² and b₁⁴(1 + c) + 2b₁²b⋆² + b⋆⁴ + γ(b₁² + b⋆²)²."""
    sigma = Activation(name)
    law, linear, noise = distribution(sigma, psi1, psi2), sigma.b1**2, sigma.b_star**2
    first = np.trapezoid(law.at * law.density, law.at)
    second = np.trapezoid(law.at**2 * law.density, law.at)
    assert law.residual < 1e-4
    assert np.isclose(first, linear + noise, rtol=1e-4)
    expected = linear**2 * (1 + psi2) + 2 * linear * noise + noise**2 + psi2 / psi1 * (linear + noise) ** 2
    assert np.isclose(second, expected, rtol=1e-4)


def test_without_a_linear_part_it_is_marchenko_and_pastur():
    gamma, x = 1.0 / 3.0, np.linspace(0.2, 2.4, 50)
    low, high = (1 - np.sqrt(gamma)) ** 2, (1 + np.sqrt(gamma)) ** 2
    closed = np.sqrt(np.maximum((high - x) * (x - low), 0.0)) / (2 * np.pi * gamma * x)
    assert np.allclose(density(x, 0.0, 1.0, 6.0, 2.0), closed, rtol=0, atol=1e-7)


def test_a_fixed_point_with_a_drawn_covariance_gives_the_same_density():
    """Second route: v = −1/(z − γ∫t/(1+tv)H(dt)), H the quantiles of Marchenko and Pastur, slightly off the axis."""
    b1, b_star, psi1, psi2 = 0.5, 0.3, 6.0, 2.0
    gamma, eta = psi2 / psi1, 1e-5
    low, high = (1 - np.sqrt(psi2)) ** 2, (1 + np.sqrt(psi2)) ** 2
    angle = (np.arange(4000) + 0.5) * np.pi / 4000
    tau = low + (high - low) * 0.5 * (1 - np.cos(angle))
    weight = np.sqrt((high - tau) * (tau - low)) / (2 * np.pi * psi2 * tau) * 0.5 * (high - low) * np.sin(angle)
    weight *= np.pi / 4000
    t = np.append(b1**2 * tau + b_star**2, b_star**2)
    H = np.append(weight, 1.0 - weight.sum())  # n > d: the rest of the covariance is noise alone
    assert np.isclose(weight.sum(), 0.5, atol=1e-6)
    for x in (0.05, 0.12, 0.6, 1.5):
        v = 1j
        for _ in range(20_000):
            old, v = v, 0.5 * v - 0.5 / (x + 1j * eta - gamma * np.sum(H * t / (1 + t * v)))
            if abs(v - old) < 1e-13:
                break
        m = (v + (1 - gamma) / (x + 1j * eta)) / gamma  # of K itself, which lacks N − n zeros
        assert np.isclose(m.imag / np.pi, density(np.array([x]), b1, b_star, psi1, psi2)[0], rtol=1e-3)


def test_the_spike_of_features_that_are_not_centred():
    sigma, d = Activation("abs"), 200
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((2 * d, d)), rng.standard_normal((6 * d, d))
    X *= np.sqrt(d) / np.linalg.norm(X, axis=1, keepdims=True)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    Phi = np.abs(X @ W.T)
    largest = np.linalg.eigvalsh(Phi @ Phi.T / (6 * d))[-1]
    # its own fluctuation: 2λ₀√n of a mean of n numbers of variance b⋆²/N
    assert abs(largest - spike(sigma, 6.0, 2.0, 2 * d)) < 4 * 2 * sigma.hermite(0) * sigma.b_star * np.sqrt(2 / 6)

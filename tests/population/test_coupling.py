"""The closed forms of the pieces of a network under random signs."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.experiments.beyond.coupling import CouplingDraw, measure

# private: the moments are what the closed forms are made of, and have closed forms of their own
from lazyscope.population.coupling import _moments, piece_sizes


@pytest.mark.parametrize("name", ["relu3", "tanh", "square"])
def test_sizes_of_pieces_are_the_mean_squares_of_drawn_networks(name):
    """Closed form against measurement, in standard errors over draws of weights, inputs, signs and direction."""
    m, d, draws = 60, 6, 100
    found = [measure(CouplingDraw(m, d, 16, 2, name, number=k)) for k in range(draws)]
    theory = piece_sizes(name, d, 0.25, m)
    for piece, expected in theory.items():
        squares = np.array([row[piece] for row in found]) ** 2
        error = squares.std(ddof=1) / np.sqrt(draws)
        assert abs(squares.mean() - float(expected) ** 2) < 4.0 * error, piece


def test_moments_of_derivatives_are_those_of_half_gaussians():
    """σ = u₊³/6: σ′ = u₊²/2 and σ″ = u₊, whose moments are halves of Gaussian ones."""
    expected = (1 / 4, 3 / 8, 1 / np.sqrt(2 * np.pi), 1 / 2)
    np.testing.assert_allclose(_moments(ls.Activation("relu3")), expected, rtol=1e-12)
    sigma = ls.Activation("tanh")
    assert _moments(sigma)[0] == pytest.approx(sigma.lambda_k(1), rel=1e-12)  # Stein
    assert _moments(ls.Activation("gelu"))[2] == pytest.approx(ls.Activation("gelu").lambda_k(2), rel=1e-12)


def test_exponents_are_those_of_the_paper():
    m = np.array([1e4, 1e8])
    for alpha in (0.25, 0.5):
        found = piece_sizes("relu3", 10, alpha, m)
        slopes = {name: np.log(values[1] / values[0]) / np.log(1e4) for name, values in found.items()}
        expected = {"linear_plain": 0.5 - alpha, "linear": -alpha, "quadratic": 0.5 - 2 * alpha}
        assert slopes == pytest.approx(expected, abs=1e-3)

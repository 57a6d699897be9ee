"""Random features of Gaussian inputs at finite d: against drawn weights, a closed form and the limit of large d."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.limits.directions import features_at, projected
from lazyscope.limits.spectral.gaussian import at_finite_d

SIZED = {"samples": np.inf, "ridge": 0.0}


@pytest.mark.parametrize("name", ["square", "relu", "cos"])
def test_against_drawn_weights(name):
    """Between N = d and d(d+1)/2, where Theorem 1 has a limit of d that is far away."""
    problem, regime = ls.QuadraticTarget.exponential(12), ls.RandomFeatures(name)
    for width in (12, 40, 70):
        drawn = ls.exact(problem, regime, width=width, draws=60)
        seen = at_finite_d(problem, regime.activation)
        expected, more = ls.limit(seen, regime, width=[width, width + 1], **SIZED).risk.values
        # the formula's own error is of relative order 1/N
        assert abs(float(drawn.risk) - expected) < 3.0 * float(drawn.stderr) + abs(more - expected)


@pytest.mark.parametrize("name", ["square", "relu", "softplus"])
def test_the_limit_of_large_d_is_theorem_1(name):
    """The distance falls like 1/d."""
    away = []
    for d in (100, 200, 400):
        problem, regime = ls.QuadraticTarget(-np.log1p(-(np.arange(d) + 0.5) / d)), ls.RandomFeatures(name)
        finite = ls.limit(at_finite_d(problem, regime.activation), regime, width=d, **SIZED).risk.item()
        away.append(abs(finite - ls.limit(problem, regime, rho=1.0).risk.item()))
    assert 1.7 < away[0] / away[1] < 2.3 and 1.7 < away[1] / away[2] < 2.3


def test_an_odd_activation_sees_nothing():
    problem, odd = ls.QuadraticTarget.exponential(20), ls.RandomFeatures("tanh")
    assert ls.limit(at_finite_d(problem, odd.activation), odd, width=30, **SIZED).risk == pytest.approx(1.0)


def test_the_square_has_its_closed_form():
    """`features_at` has the eigenvalues by hand: sums over directions, and the offset, are the same risk."""
    problem = ls.QuadraticTarget.exponential(20)
    b = problem.eigenvalues
    for width in (5, 20, 100):
        risk = ls.limit(at_finite_d(problem), ls.RandomFeatures(), width=width, **SIZED).risk.item()
        missed = features_at(b, width)[1].sum() / np.sum(b**2)
        drawn = ls.exact(problem, ls.RandomFeatures(), width=width, draws=2).risk.item()
        assert 0.0 <= risk - missed < 0.05 * risk, "the offset's square is a part of 1/d"
        assert abs(drawn - risk) < 0.1


def test_a_kink_elsewhere_is_refused():
    bent = ls.Activation(lambda u: np.maximum(u - 1.0, 0.0), kinks=(1.0,))
    with pytest.raises(ls.NoTheorem, match="no kink but at 0"):
        at_finite_d(ls.QuadraticTarget([1.0, 2.0, 3.0]), bent)


@pytest.mark.parametrize(("d", "rank"), [(2, 1), (3, 2), (6, 1), (6, 5), (7, 3)])
def test_moments_of_a_random_projector(d, rank):
    rng = np.random.default_rng(d + rank)
    b = rng.exponential(size=d)
    B, drawn = np.diag(b), []
    for _ in range(4000):
        basis = np.linalg.qr(rng.standard_normal((d, rank)))[0]
        P = basis @ basis.T
        drawn.append([np.diagonal(P @ B @ P), np.diagonal(P @ B @ P @ B @ P)])
    z = (np.mean(drawn, axis=0) - np.array(projected(b, rank))) / (np.std(drawn, axis=0) / np.sqrt(4000))
    assert np.max(np.abs(z)) < 4.0


def test_a_projector_on_everything_or_nothing():
    b = np.array([3.0, 2.0, 1.0])
    for rank, share in ((3, 1.0), (0, 0.0)):
        once, twice = projected(b, rank)
        assert np.allclose(once, share * b) and np.allclose(twice, share * b**2)

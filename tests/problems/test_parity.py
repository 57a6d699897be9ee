"""Sparse parities and ridge monomials: laws of inputs and labels, and refusals."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.problems import RidgeMonomial, SparseParity

INPUTS = {"hypercube": "hypercube", "sphere": "sphere", "anisotropic": np.linspace(0.2, 3.0, 6)}
N = 40_000


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_have_length_root_d_and_the_declared_second_moments(name):
    X, _ = SparseParity(6, inputs=INPUTS[name]).sample(N, np.random.default_rng(0))
    assert np.linalg.norm(X, axis=1) == pytest.approx(np.full(N, np.sqrt(6)))
    second = X.T @ X / N
    spread = 4 * 6 / np.sqrt(N)  # |x_i x_j| ≤ 6, four standard errors at most
    if name == "anisotropic":
        assert np.all(np.diff(np.diagonal(second)) > 0)
        assert np.max(np.abs(second - np.diag(np.diagonal(second)))) < spread
    else:
        assert np.max(np.abs(second - np.eye(6))) < spread


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_parity_is_the_product_of_signs_and_flips_come_at_their_rate(name, k):
    problem = SparseParity(6, k, flip=0.2, inputs=INPUTS[name])
    X, y = problem.sample(N, np.random.default_rng(1))
    clean = np.prod(np.sign(X[:, :k]), axis=1)
    assert np.array_equal(problem.target(X), clean)
    wrong = np.mean(y != clean)
    assert abs(wrong - 0.2) < 4 * np.sqrt(0.2 * 0.8 / N)
    assert abs(np.mean(clean)) < 4 / np.sqrt(N)
    # no k − 1 coordinates know anything: the correlation with any single one is zero for k ≥ 2
    if k > 1:
        assert np.max(np.abs(clean @ np.sign(X) / N)) < 4.5 / np.sqrt(N)


def test_a_rotated_covariance_is_a_covariance_too():
    Q, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))
    Sigma = (Q * [4.0, 2.0, 1.0, 0.5]) @ Q.T
    X, _ = RidgeMonomial(4, 3, inputs=Sigma).sample(N, np.random.default_rng(0))
    values, vectors = np.linalg.eigh(X.T @ X / N)
    assert np.abs(np.sum(vectors * Q[:, ::-1], axis=0)) == pytest.approx(np.ones(4), abs=0.02)
    assert np.all(np.diff(values) > 0)


def test_monomial_on_the_sphere_has_its_known_energy():
    # E (βᵀx)^{2p} = d^p (2p − 1)!!/(d(d + 2)⋯(d + 2p − 2)) for uniform x, ‖x‖ = √d
    d, p, alpha, noise = 10, 3, 2.0, 0.5
    problem = RidgeMonomial(d, p, alpha=alpha, noise=noise)
    X, y = problem.sample(N, np.random.default_rng(3))
    energy = alpha**2 * d**3 * 15 / (d * (d + 2) * (d + 4))
    squares = problem.target(X) ** 2
    assert abs(np.mean(squares) - energy) < 4 * np.std(squares) / np.sqrt(N)
    assert np.std(y - problem.target(X)) == pytest.approx(noise, rel=4 / np.sqrt(2 * N))
    assert problem.classification is False and SparseParity(3).classification is True


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SparseParity(0), "d parameter of SparseParity must be a whole number"),
        (lambda: SparseParity(3, 4), "k parameter of SparseParity must be at most d = 3"),
        (lambda: SparseParity(3, flip=0.5), "flip parameter of SparseParity must be a probability below ½"),
        (lambda: SparseParity(3, inputs="ball"), 'must be "hypercube", "sphere" or a covariance'),
        (lambda: SparseParity(3, inputs=np.ones(2)), "in d = 3 dimensions. Got d = 2"),
        (lambda: SparseParity(2, inputs=np.array([1.0, -1.0])), "positive definite"),
        (lambda: RidgeMonomial(3, 0), "degree parameter of RidgeMonomial"),
        (lambda: RidgeMonomial(3, 2, alpha=0.0), "alpha parameter of RidgeMonomial must not be zero"),
        (lambda: RidgeMonomial(3, 2, beta=np.ones(4)), "beta parameter of RidgeMonomial"),
        (lambda: RidgeMonomial(3, 2, noise=-1.0), "noise parameter of RidgeMonomial"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message):
    with pytest.raises(ls.InvalidParameter) as caught:
        make()
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "how", [{"d": 1}, {"d": 1, "inputs": "hypercube"}, {"d": 3, "beta": [0, 2, 0], "inputs": "hypercube"}]
)
def test_an_even_power_that_is_constant_is_refused(how):
    """Its variance is 0, by which risks are divided: a simulation gave 10³¹."""
    with pytest.raises(ls.InvalidParameter, match="an even power of them is a constant"):
        ls.RidgeMonomial(degree=2, **how)
    assert ls.RidgeMonomial(degree=3, **how).degree == 3

"""The law of the first-layer weights, where a regime meets a problem."""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.numerics import matrices
from lazyscope.problems.base import GaussianProblem
from lazyscope.regimes import FixedWeights, JointTangent, NeuralTangent, RandomFeatures

Lazy = RandomFeatures | NeuralTangent | JointTangent


def covariance(problem: GaussianProblem, regime: Lazy) -> FloatArray:
    """Γ with the normalisation Tr(ΓΣ) = 1 of assumptions A2 and B2, diagonal where it can be.

    >>> from lazyscope import QuadraticTarget
    >>> covariance(QuadraticTarget([3.0, 1.0]), RandomFeatures(weights="optimal"))
    array([0.75, 0.25])
    """
    owner = type(regime).__name__
    if isinstance(regime.weights, FixedWeights):
        raise NoTheorem.of("The theorem", "random weights, w ~ N(0, Γ)", regime.weights, "Use exact.")
    if regime.weights is None:
        Gamma = np.ones(problem.d)
    elif isinstance(regime.weights, str):
        Gamma = problem.best_weight_covariance()
    else:
        Gamma = regime.weights
    if Gamma.shape[0] != problem.d:
        must = f"be a covariance in the problem's dimension, d = {problem.d}"
        raise InvalidParameter.of(owner, "weights", must, f"d = {Gamma.shape[0]}")
    if isinstance(regime.weights, np.ndarray) and Gamma.ndim == 2 and not matrices.is_positive_definite(Gamma):
        values = matrices.eigenvalues(Gamma)  # a singular Γ is a covariance too
        if not matrices.is_semidefinite(values):
            must = "be a covariance Γ ⪰ 0"
            raise InvalidParameter.of(owner, "weights", must, f"smallest eigenvalue {values[0]:.4g}")
    return Gamma / matrices.inner(Gamma, problem.covariance)


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the random numbers of one purpose: equal for equal keys, independent for others.

    Weights have the key (draw, width) everywhere, so that `exact` and `simulate` see the same weights.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def draw(problem: GaussianProblem, regime: Lazy, width: int, rng: np.random.Generator) -> FloatArray:
    """Draw w_i ~ N(0, Γ), or take the fixed weights: shape (N, d), a row for each neuron."""
    if isinstance(regime.weights, FixedWeights):
        W = regime.weights.W
        if W.shape[0] != problem.d:
            must = f"have one row for each of the problem's d = {problem.d} dimensions, shape (d, N)"
            raise InvalidParameter.of("FixedWeights", "W", must, f"shape {W.shape}", "Transpose it?")
        if W.shape[1] != width:
            must = f"be the number of fixed weights, N = {W.shape[1]}"
            raise InvalidParameter.of("FixedWeights", "width", must, width)
        return np.ascontiguousarray(W.T)
    fits_in_memory(16.0 * width * problem.d, f"Weights of N = {width} neurons", "Use a smaller width.")
    root = matrices.power(covariance(problem, regime), 0.5)
    return matrices.rows_times(rng.standard_normal((width, problem.d)), root)


def tangent_as_network(
    W: FloatArray, A: FloatArray, epsilon: float, central: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Return first and second layer, (2N, d) and (2N,), of a network that tends to the NT function of W and A, (N, d).

    NT_N ⊆ cl(NN_2N) (Ghorbani et al. 2019, §1): two neurons w + εa and w with weights ±1/ε, or w ± εa with ±1/(2ε).

    >>> W, A = np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])
    >>> V, b = tangent_as_network(W, A, 0.01)
    >>> x = np.array([0.3, 0.4])
    >>> print(f"{float(np.tanh(V @ x) @ b):.4f} {float(A[0] @ x / np.cosh(0.3) ** 2):.4f}")
    0.7321 0.7321
    """
    ahead, behind = W + epsilon * A, W - epsilon * A if central else W
    weight = 1.0 / (2.0 * epsilon if central else epsilon)
    return np.concatenate([ahead, behind]), np.repeat([weight, -weight], len(W))

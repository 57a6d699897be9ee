"""Gradient descent on the population risk, from drawn weights, in the paper's parametrisation: SGD without noise.

NT is linear, and in `linear`.

NN, f = (1/N) Σ α_iσ(⟨w_i,x⟩) + c, follows the flow α̇ = −∂L/∂a, Ẇ = −N ∂L/∂W, ċ = −∂L/∂c from α = c = 0, a = α/N. The
risk of `network` has c where it is best, c⋆ = −Σa_iE[σ(w_i·x)]: L is that, and (c − c⋆)².
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.numerics import matrices
from lazyscope.numerics.descent import chebyshev
from lazyscope.population.environment import Environment, environments, project
from lazyscope.population.network import PopulationRisk
from lazyscope.population.tangent import tangent_moments
from lazyscope.problems import GaussianMixture, GaussianProblem, QuadraticTarget
from lazyscope.regimes import Trained

_TOLERANCE = 1e-5  # of a step of the flow, relative and absolute: 1e-4 of the risk on the way down, 1e-5 in the end
_MOST_EVALUATIONS = 40_000


def network_risks(
    problem: GaussianProblem, regime: Trained, N: int, rng: np.random.Generator, times: Sequence[float]
) -> FloatArray:
    """Return the risk of gradient flow at t = Σε, ascending.

    6N²d flops an evaluation, d²N for σ = u²; some thousand of them. NotConverged where they do not suffice.

    >>> import lazyscope as ls
    >>> from lazyscope import weights
    >>> target, rng = ls.QuadraticTarget([2.0, 1.0, 0.5]), weights.generator(0, 0, 3)
    >>> network_risks(target, Trained(), 3, rng, [0.0, 20.0]).round(4)
    array([1., 0.])
    """
    own = _in_its_basis(problem)
    d = own.d
    W = np.asarray(regime.init * rng.standard_normal((N, d)) / np.sqrt(d), dtype=np.float32).astype(np.float64)
    square = regime.activation.name == "square"
    objective = SquareRisk(own) if square else PopulationRisk(environments(own), regime.activation)
    world, energy = environments(own), objective.energy

    def gradients(state: FloatArray) -> tuple[float, FloatArray]:
        a, c, V = state[:N] / N, float(state[N]), state[N + 1 :].reshape(N, d)
        risk, grad_a, grad_W = objective(a, V)
        mean, grad_mean = _means(world, V, regime.activation)
        off = c + float(a @ mean)
        grad_a = energy * grad_a + 2.0 * off * mean
        grad_W = energy * grad_W + 2.0 * off * a[:, None] * grad_mean
        return risk + off**2 / energy, np.concatenate([grad_a, [2.0 * off], N * grad_W.ravel()])

    def risk(state: FloatArray) -> float:
        return gradients(state)[0]

    ask = np.asarray(times, dtype=np.float64)
    begin = np.concatenate([np.zeros(N + 1), W.ravel()])
    if ask[-1] == 0.0:
        return np.full(ask.size, risk(begin))
    path = chebyshev.solve(
        lambda state: -gradients(state)[1],
        begin,
        ask.tolist(),
        rtol=_TOLERANCE,
        atol=_TOLERANCE,
        most=_MOST_EVALUATIONS,
    )
    return np.array([risk(state) for state in path.states])


def _means(world: Sequence[Environment], W: FloatArray, sigma: Activation) -> tuple[FloatArray, FloatArray]:
    """Return E[σ(w_i·x)] and its gradient by w_i."""
    mean, slope = np.zeros(len(W)), np.zeros_like(W)
    for y in world:
        seen = project(y, W)
        mean += y.probability * sigma.hermite_coefficients(seen.s, 0)[0]
        slope += y.probability * tangent_moments(seen, sigma)[0]
    return mean, slope


class SquareRisk:
    """L(a, W) for σ = u² and its gradient, in the basis where all is diagonal: 4d²N flops.

    With C_y = diag(c_y) and G = Wᵀdiag(a)W, f = ⟨x, Gx⟩ + c has Γ = E[(f − f⋆)xxᵀ], ∂L/∂a_i = 2⟨w_i, Γw_i⟩ and
    ∂L/∂w_i = 4a_iΓw_i. On the mixture Γ is the mean over y of 2C_yGC_y + (⟨G, C_y⟩ + c − y)C_y.
    """

    def __init__(self, problem: QuadraticTarget | GaussianMixture) -> None:
        self.problem = problem
        if isinstance(problem, QuadraticTarget):
            self.classes = [(np.ones(problem.d), 0.0)]
            self.gamma = problem.B
            self.energy = 2.0 * float(self.gamma @ self.gamma)
        else:
            self.classes = [(1.0 - y * problem.whitened, y) for y in (-1.0, 1.0)]
            self.gamma, self.energy = np.zeros(problem.d), 1.0

    def __call__(self, a: FloatArray, W: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return L, ∂L/∂a and ∂L/∂W, each over E[f⋆²]; c is where it is best."""
        E = (W.T * a) @ W
        E[np.diag_indices_from(E)] -= self.gamma
        own, share = np.diagonal(E), 1.0 / len(self.classes)
        means = [float(own @ C) - y for C, y in self.classes]
        c, value = -share * sum(means), 0.0
        Gamma = np.zeros_like(E)
        for (C, _), mean in zip(self.classes, means, strict=True):
            Gamma += share * 2.0 * C[:, None] * E * C
            Gamma[np.diag_indices_from(E)] += share * (mean + c) * C
            value += share * (2.0 * float(C @ (E**2) @ C) + (mean + c) ** 2)
        WG = W @ Gamma
        grad_a = 2.0 * np.einsum("ij,ij->i", WG, W)
        return value / self.energy, grad_a / self.energy, 4.0 * a[:, None] * WG / self.energy


def _in_its_basis(problem: GaussianProblem) -> QuadraticTarget | GaussianMixture:
    """Return the problem where it is diagonal, a quadratic target divided by √d: there `simulate` draws the weights."""
    if isinstance(problem, QuadraticTarget):
        values = problem.B if problem.B.ndim == 1 else np.linalg.eigh(problem.B)[0]
        return QuadraticTarget(values / np.sqrt(problem.d))
    assert isinstance(problem, GaussianMixture)
    whitened = problem.whitened
    return GaussianMixture(whitened if whitened.ndim == 1 else np.linalg.eigh(matrices.dense(whitened))[0])

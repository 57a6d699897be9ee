"""Fully trained network with any activation: descent on the population risk in closed form, without samples.

With c at its optimum, the risk of f = c + Σ a_iσ(w_i·x) is a function of the weights' Gram matrices alone,

    L(a, W)·E[f⋆²] = E[f⋆²] − 2aᵀV + aᵀUa − (aᵀμ)²,

and so is its gradient: ∂U_ij/∂w_i = T₁₁ C w_j + T₂₀ C w_i (Price), ∂V_i and ∂μ_i as in `tangent`. L-BFGS from
random starts; the draws of `exact` are the restarts, and the best of them is the answer. It is a minimum that
was found, an upper bound of the infimum: the landscape of a general σ carries no theorem.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lazyscope import weights
from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NotConverged
from lazyscope.evidence.claim import (
    Claim,
    Example,
    at_width,
    differentiable_activation,
    exponential_quantiles,
    three_levels,
)
from lazyscope.evidence.results import best_of_draws
from lazyscope.numerics import matrices
from lazyscope.population.environment import Environment, environments, largest_cosine, project
from lazyscope.population.kernels import pair_kernel
from lazyscope.population.random_features import BLOCK, missed, moments, noise_of
from lazyscope.population.tangent import tangent_moments
from lazyscope.problems import GaussianMixture, GaussianProblem, QuadraticTarget
from lazyscope.progress import report
from lazyscope.regimes import NeuralTangent, Trained

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

_MOST_ITERATIONS = 2000
_WINDOW = 100
_GAIN = 1e-5
_GRADIENT = 1e-5  # a step of length 1 gains less than _GAIN
_RESTARTS = 5
_LONG, _LONGEST = (
    120.0,
    900.0,
)  # seconds of a core: from the first on the user is warned, from the second on a descent is refused


@dataclass(frozen=True, eq=False)
class PopulationRisk:
    """L(a, W) and its gradient: 6N²d + O(N²) flops an environment, 4N² numbers."""

    world: tuple[Environment, ...]
    sigma: Activation

    @property
    def energy(self) -> float:
        """E[f⋆²]."""
        return sum(y.probability * y.energy for y in self.world)

    def size(self, a: FloatArray, W: FloatArray) -> float:
        """(Σ|a_i|E[σ(w_i·x)²]^½)²/E[f⋆²]: large where neurons cancel one another, and digits with them."""
        power = sum(y.probability * self.sigma.second_moment(project(y, W).s) for y in self.world)
        return float(np.sum(np.abs(a) * np.sqrt(power))) ** 2 / self.energy

    def __call__(self, a: FloatArray, W: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return L, ∂L/∂a and ∂L/∂W, for W of shape (N, d)."""
        N = len(W)
        every = slice(0, N)
        mean, grad_mean = np.zeros(N), np.zeros_like(W)
        V, grad_V = np.zeros(N), np.zeros_like(W)
        Ua, grad_U = np.zeros(N), np.zeros_like(W)
        for y in self.world:
            p, seen = y.probability, project(y, W)
            cosine = 0.0 if self.sigma.has_closed_kernels else largest_cosine(seen, BLOCK)
            kernel = pair_kernel(self.sigma, seen.s, cosine, order=2)
            c0 = self.sigma.hermite_coefficients(seen.s, 0)[0]
            slope_mean, slope_V = tangent_moments(seen, self.sigma)
            mean += p * c0
            grad_mean += p * slope_mean
            V += p * (y.m * c0 + seen.overlaps(self.sigma))
            grad_V += p * slope_V
            r = seen.cosines(every, every)
            np.fill_diagonal(r, 0.0)
            T00, T11, T20 = (_without_diagonal(kernel(m, n, r, every, every)) for m, n in ((0, 0), (1, 1), (2, 0)))
            Ua += p * (T00 @ a + self.sigma.second_moment(seen.s) * a)
            own = T20 @ a + 0.5 * a * self.sigma.second_moment_slope(seen.s) / seen.s
            grad_U += p * (matrices.rows_times(T11 @ (a[:, None] * W), y.C) + own[:, None] * seen.CW)
        shift = float(a @ mean)
        value = self.energy - 2.0 * float(a @ V) + float(a @ Ua) - shift**2
        grad_a = 2.0 * (Ua - V - shift * mean)
        grad_W = 2.0 * a[:, None] * (grad_U - grad_V - shift * grad_mean)
        return value / self.energy, grad_a / self.energy, grad_W / self.energy


def _without_diagonal(T: FloatArray) -> FloatArray:
    np.fill_diagonal(T, 0.0)
    return T


def risk(problem: GaussianProblem, regime: Trained, width: int, rng: np.random.Generator) -> dict[str, float]:
    """Descend from one random start: w ~ N(0, I/Tr Σ), the second layer at its optimum for them."""
    advice = "Use a smaller width."
    size = 8.0 * (8.0 * width**2 + 40.0 * width * problem.d)
    fits_in_memory(size, f"Descent at N = {width}, d = {problem.d}", advice)
    objective = PopulationRisk(environments(problem), regime.activation)
    W = weights.draw(problem, NeuralTangent(regime.activation), width, rng)
    a = best_second_layer(objective, W)
    end = descend(objective, a, W)
    missed(1.0 - end.risk, 1.0, noise_of(regime.activation) * end.size)  # or refused, where neurons cancel
    return {
        "risk": max(0.0, end.risk),
        "gradient": end.gradient,
        "iterations": end.iterations,
        "gain": end.gain,
        "converged": int(end.converged),
    }


def best_second_layer(objective: PopulationRisk, W: FloatArray) -> FloatArray:
    """Return a minimising L(a, W) with the faintest of ridges, which only breaks ties."""
    from scipy.linalg import solve

    U, V = moments(objective.world, W, objective.sigma, centre=0.0)
    matrices.mirror(U)
    mean = sum(y.probability * objective.sigma.hermite_coefficients(project(y, W).s, 0)[0] for y in objective.world)
    U -= np.outer(mean, mean)
    U[np.diag_indices_from(U)] += 1e-8 * float(np.mean(np.diagonal(U)))
    return np.asarray(solve(U, V, assume_a="pos", check_finite=False))


@dataclass(frozen=True, eq=False)
class Descent:
    """Where the descent ended: the risk, the gradient's norm, the steps, and what the last of them gained.

    `gain` is over the last tenth of the steps, at most 100: the digit from which the risk is still moving. `size` is
    that of the terms whose differences the risk is.
    """

    risk: float
    gradient: float
    iterations: int
    gain: float
    size: float

    @property
    def converged(self) -> bool:
        """Whether the last steps gained less than 1e-5 of the trivial risk, or the gradient vanished."""
        return self.gain <= _GAIN or self.gradient <= _GRADIENT


def descend(
    objective: PopulationRisk, a: FloatArray, W: FloatArray, clock: Callable[[], float] = time.process_time
) -> Descent:
    """L-BFGS on (a, W) until 100 steps gain less than 1e-5.

    A gradient tolerance would be the wrong test: for most σ the infimum is approached by neurons that merge or
    shrink, along which the risk creeps down for ever in digits that no figure shows.
    """
    from scipy.optimize import minimize

    N = len(a)
    trace: list[float] = []
    begun = clock()

    def flat(theta: FloatArray) -> tuple[float, FloatArray]:
        value, grad_a, grad_W = objective(theta[:N], theta[N:].reshape(W.shape))
        return value, np.concatenate([grad_a, grad_W.ravel()])

    def tell(intermediate_result: OptimizeResult) -> None:
        trace.append(float(intermediate_result.fun))
        if len(trace) % 10 == 0:
            report(len(trace), 0, f"descent, step {len(trace):,} of at most {_MOST_ITERATIONS:,}")
            _within_reason(len(trace), clock() - begun, objective.sigma)
        if len(trace) > _WINDOW and trace[-1 - _WINDOW] - trace[-1] <= _GAIN:
            raise StopIteration

    start = np.concatenate([a, W.ravel()])
    options = {
        "maxiter": _MOST_ITERATIONS,
        "maxfun": 2 * _MOST_ITERATIONS,
        "maxcor": 20,
        "ftol": 0.0,
        "gtol": 1e-12,
    }
    end = minimize(flat, start, jac=True, method="L-BFGS-B", callback=tell, options=options)
    for _ in range(_RESTARTS):
        # A line search may fail at a kink, or on curvature that it remembers wrongly, long before the minimum.
        if len(trace) < 2 or _last_gain(trace) <= _GAIN or float(np.linalg.norm(end.jac)) <= _GRADIENT:
            break
        before = len(trace)
        options["maxiter"] = _MOST_ITERATIONS - before
        if options["maxiter"] <= 0:
            break
        end = minimize(flat, end.x, jac=True, method="L-BFGS-B", callback=tell, options=options)
        if len(trace) == before:
            break
    size = objective.size(end.x[:N], end.x[N:].reshape(W.shape))
    return Descent(float(end.fun), float(np.linalg.norm(end.jac)), len(trace), _last_gain(trace), size)


def _within_reason(steps: int, seconds: float, sigma: Activation) -> None:
    """Tell of a descent that will be long, once, after ten steps; refuse one that does not end."""
    why = "" if sigma.has_closed_kernels else (
        f" Every step integrates {sigma.name} anew for each neuron; relu, abs and callables that are linear between "
        "their kinks have closed forms."
    )  # fmt: skip
    if steps == 10 and seconds / steps * _MOST_ITERATIONS > _LONG:
        minutes = seconds / steps * _MOST_ITERATIONS / 60.0
        warnings.warn(
            f"exact: this descent may take up to {minutes:.0f} minutes of a core.{why}", UserWarning, stacklevel=2
        )
    if seconds > _LONGEST:
        raise NotConverged(
            f"The descent of exact made {steps:,} steps in {seconds / 60.0:.0f} minutes of a core, and has not ended."
            f"{why} Use a smaller width or a smaller d."
        )


def _last_gain(trace: list[float]) -> float:
    """What the last tenth of the steps gained, at most 100 of them."""
    window = min(_WINDOW, -(-len(trace) // 10))
    return trace[-1 - window] - trace[-1] if len(trace) > 1 else 0.0


def _claim(problem: type[GaussianProblem], example: Example) -> Claim:
    return Claim(
        fidelity="exact",
        problem=problem,
        regime=Trained,
        title="trained network, any activation",
        theorem="descent on the closed-form population risk (a minimum found, not proved global)",
        citations=("ghorbani2019limitations", "price1958", "cho2009kernel"),
        assumptions=(
            "n = ∞: the population risk over both layers and the offset",
            "σ′ in L² at every weight norm",
        ),
        arguments=("width",),
        compute=at_width(risk),
        example=example,
        covers=differentiable_activation,
        reduce=best_of_draws,
    )


CLAIMS = (
    _claim(QuadraticTarget, lambda d: (exponential_quantiles(d), Trained("relu"))),
    _claim(GaussianMixture, lambda d: (three_levels(d), Trained("relu"))),
)

"""Sparse parities and ridge monomials, learnt by Taylor models, by randomised networks and by plain ones.

All regimes of one draw see the same samples, and at one width the same W₀ (Bai & Lee 2019, Eq. 3: symmetric, second
layer fixed). Parities are trained with the logistic loss, monomials with the square.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lazyscope.activations.derivatives import smoothness
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.evidence.claim import Claim, isotropic_features, of_run
from lazyscope.evidence.run import Run
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.problems.base import Problem
from lazyscope.protocols import NoisySGD
from lazyscope.regimes import Network, NeuralTangent, Regime, Taylor, Trained
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.randomized import Fit, train
from lazyscope.weights import generator

Target = SparseParity | RidgeMonomial
_TESTED, _TESTED_AT_ONCE = 10_000, 2000


def risk(problem: Target, regime: Network, run: Run) -> dict[str, FloatArray]:
    """Train a network of width m on n samples, the same for every width, and test it on 10⁴ fresh ones.

    `risk` is the classification error over ½ (parity) or the squared error over the target's variance (monomial), both
    against the noiseless target; `train` the mean loss over the last tenth of the steps; `norm` ‖B_x W‖_{2,4}.
    """
    m, seed, number = run.whole("width"), run.seed, run.number
    protocol = run.protocol if isinstance(run.protocol, NoisySGD) else None
    n = run.whole("samples")
    fits_in_memory(8.0 * n * problem.d, f"A sample of n = {n}", "Use fewer samples.")
    X, y = problem.sample(n, generator(seed, number, 0, 0))
    X_test, _ = problem.sample(_TESTED, generator(seed, number, 0, 1))
    fit, step_size = fitted(problem, regime, m, X, y, seed, number, protocol)
    return {
        "risk": np.array(measured(problem, fit, X_test, generator(seed, number, m, 1))),
        "train": np.array(np.mean(fit.trace[-max(1, len(fit.trace) // 10) :])),
        "norm": np.array(fit.norm),
        "step_size": np.array(step_size),
    }


def fitted(
    problem: Target,
    regime: Network,
    m: int,
    X: FloatArray,
    y: FloatArray,
    seed: int,
    number: int,
    protocol: NoisySGD | None = None,
) -> tuple[Fit, float]:
    """Draw W₀ and train, with a third of the step size where it diverges, four times at most; return the step too."""
    order, signs = _what(regime)
    how = protocol or NoisySGD(step_size=10.0 if problem.classification else 3.0)
    model = TaylorModel.symmetric(m, problem.d, regime.activation, generator(seed, number, m), Bx=problem.Bx)
    for attempt in range(5):
        try:
            rng = generator(seed, number, m, 0)
            return train(model, X, y, order, signs=signs, protocol=how, rng=rng), how.step_size
        except NotConverged:
            if attempt == 4:
                raise
            how = replace(how, step_size=how.step_size / 3.0)
    raise AssertionError("unreachable")


def measured(problem: Target, fit: Fit, X: FloatArray, rng: np.random.Generator) -> float:
    """Return the risk on fresh inputs; a randomised network draws new signs for every block of them."""
    parts = range(0, len(X), _TESTED_AT_ONCE)
    predicted = np.concatenate([fit.predict(X[start : start + _TESTED_AT_ONCE], rng) for start in parts])
    return scored(problem, problem.target(X), predicted)


def scored(problem: Target, wanted: FloatArray, predicted: FloatArray) -> float:
    """Return the classification error over ½ (parity), or the squared error over the target's variance (monomial)."""
    if problem.classification:
        return 2.0 * float(np.mean(np.where(predicted < 0, -1.0, 1.0) != wanted))
    return float(np.mean((predicted - wanted) ** 2) / np.var(wanted))


def _what(regime: Network) -> tuple[int | None, bool]:
    """Return (order or None for the network, whether signs are drawn)."""
    if isinstance(regime, Taylor):
        return (None, True) if regime.randomized else (regime.order, False)
    return (1, False) if isinstance(regime, NeuralTangent) else (None, False)


_TITLES: dict[type[Regime], str] = {Taylor: "Taylor model", NeuralTangent: "tangent model", Trained: "trained network"}
_EXAMPLES: dict[type[Regime], Network] = {
    Taylor: Taylor(2, "relu3"),
    NeuralTangent: NeuralTangent("relu3"),
    Trained: Trained("relu3"),
}


def _smooth(problem: Problem, regime: Network) -> bool:
    """Whether σ has the derivatives that the model takes: one for NT, `order` for a Taylor model."""
    order = getattr(regime, "order", 1 if isinstance(regime, NeuralTangent) else 0)
    try:
        return smoothness(regime.activation) >= order
    except InvalidParameter:  # a callable, which tells its values only
        return False


def _claim(problem: type[Problem], regime: type[Regime]) -> Claim:
    parity = problem is SparseParity
    return Claim(
        fidelity="simulate",
        problem=problem,
        regime=regime,
        title=_TITLES[regime],
        theorem="§§3.1, 5.2 (randomised risk, learning polynomials and 2-XOR), by noisy SGD",
        citations=("bai2020beyond",),
        assumptions=(
            "m even, a = ±1 fixed, w₀ ~ N(0, I/d) copied into both halves (Eq. 3): f = 0 at the start",
            "σ ∈ C² with σ″ Lipschitz (Assumption A), for models of order 2",
            f"n samples, ‖x‖ = √d; {'logistic' if parity else 'square'} loss; tested on fresh samples",
        ),
        arguments=("width", "samples"),
        protocol=NoisySGD,
        compute=of_run(risk),
        example=lambda d: (SparseParity(d) if parity else RidgeMonomial(d, 3, alpha=0.5), _EXAMPLES[regime]),
        covers=isotropic_features,
        assumes=_smooth,
    )


CLAIMS = tuple(_claim(problem, regime) for problem in (SparseParity, RidgeMonomial) for regime in _TITLES)

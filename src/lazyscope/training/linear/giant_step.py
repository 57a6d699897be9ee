"""One giant step on the first layer, then ridge regression on the second, both on drawn samples (Ba et al. 2022).

w_i ← w_i + step · α_i (1/n) Σ_k (y_k − f(x_k)) σ′(⟨w_i, x_k⟩) x_k      on the n samples of the regime,
minimise Σ_k (y_k − f(x_k))² + λ‖a‖²,  f = c + N^−½ Σ a_iσ(⟨w_i, x⟩)     on fresh samples, c without a ridge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from lazyscope import weights
from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.claim import Claim, of_run
from lazyscope.evidence.results import averaged
from lazyscope.evidence.run import Run
from lazyscope.numerics.ridge import ridge_path
from lazyscope.problems import MultiIndex
from lazyscope.regimes import GiantStep, RandomFeatures
from lazyscope.training.sgd.stream import Law, draw, draw_test, law_of

_FINITE = "Pass GiantStep(samples=…), --giant-samples on the command line, or use exact."
_TESTED, _BLOCK = 20_000, 2000  # fresh inputs, and how many at once


def risks(problem: MultiIndex, regime: GiantStep, run: Run) -> dict[str, FloatArray]:
    """Take the step, fit every ridge, and test on 2·10⁴ fresh inputs.

    Flops 4n₁dN for the step, 2ndN + nN·min(n, N) for the fit; memory 8·3nN bytes.
    """
    N, n, ridge = run.whole("width"), run.whole("samples"), run.sizes["ridge"]
    if np.isinf(regime.samples):
        must = "be finite for a simulation, which draws them"
        raise InvalidParameter.of("GiantStep", "samples", must, "inf", _FINITE)
    fits_in_memory(8.0 * (4.0 * n * N + n * problem.d), f"N = {N} features of n = {n} samples", "Use smaller sizes.")
    law, sigma = law_of(problem), regime.activation
    rng = weights.generator(run.seed, run.number, N)
    W = law.see(weights.draw(problem, RandomFeatures(sigma), N, rng))
    W = step_on(_blocks(law, int(regime.samples), rng), W, rng.standard_normal(N), regime)
    X, y = (part.astype(np.float64) for part in draw(law, n, rng))
    Phi = sigma(X @ W.T)
    mean, level = Phi.mean(axis=0), float(y.mean())
    Phi -= mean
    a, residual = ridge_path(Phi, (y - level)[:, None], [N * lam for lam in ridge])
    squares = _squares(law, W, sigma, a[:, :, 0], level - mean @ a[:, :, 0], rng)
    return {"risk": squares / problem.energy, "train": np.mean(residual[:, :, 0] ** 2, axis=0) / problem.energy}


def step_on(
    blocks: Iterable[tuple[FloatArray, FloatArray]], W: FloatArray, alpha: FloatArray, regime: GiantStep
) -> FloatArray:
    """Return the weights after one step on samples that come in blocks, n in all: 4ndN flops."""
    sigma, total, n = regime.activation, np.zeros_like(W), 0
    for X, y in blocks:
        fields = X @ W.T
        residual = y - sigma(fields) @ alpha / len(W)
        total += (residual[:, None] * sigma.derivative(fields)).T @ X
        n += len(X)
    return np.asarray(W + (regime.step / n) * alpha[:, None] * total)


def _blocks(law: Law, n: int, rng: np.random.Generator) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Draw n samples, a block at a time."""
    for start in range(0, n, _BLOCK):
        X, y = draw(law, min(_BLOCK, n - start), rng)
        yield X.astype(np.float64), y.astype(np.float64)


def _squares(
    law: Law, W: FloatArray, sigma: Activation, a: FloatArray, c: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the mean squared error of each column of coefficients a, with its offset c, on fresh inputs."""
    total = np.zeros(a.shape[1])
    for _ in range(_TESTED // _BLOCK):
        X, wanted = (part.astype(np.float64) for part in draw_test(law, _BLOCK, rng))
        total += np.sum((wanted[:, None] - c - sigma(X @ W.T) @ a) ** 2, axis=0)
    return np.asarray(total / _TESTED)


CLAIMS = (
    Claim(
        fidelity="simulate",
        problem=MultiIndex,
        regime=GiantStep,
        title="one giant step",
        theorem="one gradient step and ridge regression on drawn data",
        citations=("ba2022onestep",),
        assumptions=(
            "w_i ~ N(0, I/d), α_i ~ N(0, 1); the step and the fit have fresh samples each",
            "objective Σ(y − f)² + λ‖a‖², f = c + N^−½ Σ a_iσ(⟨w_i, x⟩); tested on 20,000 fresh inputs without noise",
        ),
        arguments=("width", "samples", "ridge"),
        arrays=("ridge",),
        reduce=averaged,
        compute=of_run(risks),
        example=lambda d: (MultiIndex(d, "relu"), GiantStep("erf", samples=4 * d)),
        assumes=lambda problem, regime: bool(np.isfinite(regime.samples)),
        scale_free=False,
    ),
)

"""Ridge regression on drawn Gaussian inputs, for a function of a few directions: random features and tangent model.

Objective Σ_i (y_i − f(x_i))² + λ‖a‖² with f = N^{−1/2} Σ a_jσ(⟨w_j, x⟩), or f = (Nd)^{−1/2} Σ ⟨a_j, x⟩σ′(⟨w_j, x⟩), w_j
uniform on the unit sphere. All ridges of a draw come from one decomposition; risks are those on fresh inputs.
"""

from __future__ import annotations

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.evidence.claim import Claim, isotropic_features, of_run
from lazyscope.evidence.results import averaged
from lazyscope.evidence.run import Run
from lazyscope.numerics.krylov import kernel_ridge
from lazyscope.numerics.ridge import ridge_path
from lazyscope.problems import MultiIndex
from lazyscope.regimes import NeuralTangent, RandomFeatures
from lazyscope.training.linear.random_layer import unit_rows
from lazyscope.training.sgd.stream import Law, draw, draw_test, law_of
from lazyscope.weights import generator

_TESTED, _BLOCK = 8000, 1000  # fresh inputs, and how many of them at once


def random_features(problem: MultiIndex, regime: RandomFeatures, run: Run) -> dict[str, FloatArray]:
    """Fit every ridge by N features: flops 2ndN + nN·min(n, N), memory 24nN bytes."""
    N, n, ridge = run.whole("width"), run.whole("samples"), run.sizes["ridge"]
    size = 8.0 * (3.0 * n * N + 2.0 * min(n, N) ** 2)
    fits_in_memory(size, f"Ridge regression with N = {N} features on n = {n} samples", "Use smaller sizes.")
    law, rng, W = _drawn(problem, run, N, n)
    X, y = _samples(law, n, rng)
    a, residual = ridge_path(regime.activation(X @ W.T), y[:, None], [N * lam for lam in ridge])
    squares = np.zeros(len(ridge))
    for _ in range(_TESTED // _BLOCK):
        fresh, wanted = (part.astype(np.float64) for part in draw_test(law, _BLOCK, rng))
        squares += np.sum((wanted[:, None] - regime.activation(fresh @ W.T) @ a[:, :, 0]) ** 2, axis=0)
    train = np.mean(residual[:, :, 0] ** 2, axis=0)
    return {"risk": squares / _TESTED / problem.energy, "train": train / problem.energy}


def neural_tangent(problem: MultiIndex, regime: NeuralTangent, run: Run) -> dict[str, FloatArray]:
    """Fit every ridge by the tangent kernel of N neurons: flops 2n²(d + N) and n² a Krylov step, memory 16n² bytes."""
    N, n, ridge = run.whole("width"), run.whole("samples"), run.sizes["ridge"]
    size = 8.0 * (2.0 * n * n + (n + _BLOCK) * (N + problem.d))
    fits_in_memory(size, f"The tangent kernel of n = {n} samples", "Use fewer.")
    law, rng, W = _drawn(problem, run, N, n)
    X, y = _samples(law, n, rng)
    scale, slopes = 1.0 / (N * problem.d), regime.activation.derivative(X @ W.T)
    fits = kernel_ridge((slopes @ slopes.T) * (X @ X.T) * scale, y, [*ridge])
    squares = np.zeros(len(ridge))
    for _ in range(_TESTED // _BLOCK):
        fresh, wanted = (part.astype(np.float64) for part in draw_test(law, _BLOCK, rng))
        kernel = (regime.activation.derivative(fresh @ W.T) @ slopes.T) * (fresh @ X.T) * scale
        squares += np.sum((wanted[:, None] - fits.predict(kernel)) ** 2, axis=0)
    train = np.mean((np.array(ridge)[:, None] * fits.alpha) ** 2, axis=1)
    return {"risk": squares / _TESTED / problem.energy, "train": train / problem.energy}


def _drawn(problem: MultiIndex, run: Run, N: int, n: int) -> tuple[Law, np.random.Generator, FloatArray]:
    """Return the law in its own basis, the generator of the draw, and N unit weights: isotropic in every basis."""
    rng = generator(run.seed, run.number, N, n)
    return law_of(problem), rng, unit_rows(rng.standard_normal((N, problem.d)))


def _samples(law: Law, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    X, y = draw(law, n, rng)
    return X.astype(np.float64), y.astype(np.float64)


def _claim(regime: type[RandomFeatures] | type[NeuralTangent]) -> Claim:
    features = regime is RandomFeatures
    return Claim(
        fidelity="simulate",
        problem=MultiIndex,
        regime=regime,
        method="ridge",
        title="random features, ridge regression" if features else "tangent model, ridge regression",
        theorem="ridge regression on drawn data",
        citations=("defilippis2024dimension",),
        assumptions=(
            "n samples with x ~ N(0, I), w uniform on the unit sphere, σ not centred, no offset",
            "objective Σ(y − f)² + λ‖a‖²; `risk` on 8000 fresh inputs without noise",
        ),
        arguments=("width", "samples", "ridge"),
        arrays=("ridge",),
        reduce=averaged,
        compute=of_run(random_features if features else neural_tangent),
        covers=isotropic_features,
        example=lambda d: (MultiIndex(d, "tanh", noise=0.2), regime("erf")),
    )


CLAIMS = (_claim(RandomFeatures), _claim(NeuralTangent))

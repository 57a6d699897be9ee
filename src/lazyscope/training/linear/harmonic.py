"""Ridge regression on drawn data on the sphere, for a target of any degree: random features and the tangent model.

Objective Σ_i (y_i − f(x_i))² + λ‖a‖² with f = N^{−1/2} Σ a_jσ(⟨w_j, x⟩), or f = (Nd)^{−1/2} Σ ⟨a_j, x⟩σ′(⟨w_j, x⟩); the
target is f(x) = Σ_k √E_k q_k(⟨u, x⟩/√d), one direction u. All ridges of a draw come from one decomposition.
"""

from __future__ import annotations

import numpy as np

from lazyscope.activations.zonal import overlaps, uncentred
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import NoTheorem
from lazyscope.evidence.claim import Claim, isotropic_features, of_run
from lazyscope.evidence.results import averaged
from lazyscope.evidence.run import Run
from lazyscope.numerics.gegenbauer import multiplicities, polynomials
from lazyscope.numerics.ridge import ridge_path
from lazyscope.problems import HarmonicTarget, LinearTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures
from lazyscope.training.linear.random_layer import unit_rows
from lazyscope.weights import generator

_TESTED, _BLOCK = 8000, 1000  # fresh inputs for the tangent model, and how many of them at once


def random_features(problem: HarmonicTarget, regime: RandomFeatures, run: Run) -> dict[str, FloatArray]:
    """Draw weights and n samples, fit every ridge; risk, bias and variance over all inputs in closed form.

    Flops 2ndN + nN·min(n, N) + 2N²d and a decomposition of min(n, N)³; memory 8(3nN + 2N²) bytes.
    """
    d, N, n, ridge = problem.d, run.whole("width"), run.whole("samples"), run.sizes["ridge"]
    size = 8.0 * (3.0 * n * N + 2.0 * min(n, N) ** 2 + 2.0 * N * N + (n + N) * (d + 4.0 * len(ridge)))
    fits_in_memory(size, f"Ridge regression with N = {N} features on n = {n} samples", "Use smaller sizes.")
    rng = generator(run.seed, run.number, N, n)
    W = unit_rows(rng.standard_normal((N, d)))
    X, clean, noise = _samples(problem, n, rng)
    a, residual = ridge_path(regime.activation(X @ W.T), np.stack([clean, noise], axis=1), [N * lam for lam in ridge])
    U = uncentred(regime.activation, d).kernel(W @ W.T)
    V = overlaps(regime.activation, d, problem.energies, W[:, 0])
    squares = np.einsum("nrk,nrl->rkl", a, (U @ a.reshape(N, -1)).reshape(a.shape))
    with_target = np.einsum("n,nrk->rk", V, a)
    bias = problem.energy - 2.0 * with_target[:, 0] + squares[:, 0, 0]
    variance = squares[:, 1, 1]
    return {
        "risk": bias + variance + 2.0 * (squares[:, 0, 1] - with_target[:, 1]),
        "bias": bias,
        "variance": variance,
        "train": np.mean(residual.sum(axis=2) ** 2, axis=0),
    }


def neural_tangent(problem: HarmonicTarget, regime: NeuralTangent, run: Run) -> dict[str, FloatArray]:
    """Draw weights and n samples, fit every ridge by the kernel of N neurons, and test on 8000 fresh inputs.

    Flops 2n²(d + N) and a decomposition of n³, 4·10³n(d + N) for each thousand of the test; memory 16n² bytes.
    """
    d, N, n, ridge = problem.d, run.whole("width"), run.whole("samples"), run.sizes["ridge"]
    fits_in_memory(8.0 * (4.0 * n * n + (n + _BLOCK) * (N + d)), f"The tangent kernel of n = {n} samples", "Use fewer.")
    rng = generator(run.seed, run.number, N, n)
    W = unit_rows(rng.standard_normal((N, d)))
    X, clean, noise = _samples(problem, n, rng)
    y = clean + noise
    slopes = regime.activation.derivative(X @ W.T)
    values, vectors = np.linalg.eigh((slopes @ slopes.T) * (X @ X.T) / (N * d))
    values = np.maximum(values, 0.0)
    floor = values[-1] * n * np.finfo(np.float64).eps
    along = vectors.T @ y
    kept = (values[:, None] > floor) | (np.array(ridge) > 0.0)
    shifted = values[:, None] + np.array(ridge)
    alpha = vectors @ np.where(kept, along[:, None] / np.where(kept, shifted, 1.0), 0.0)
    left = np.where(kept, np.array(ridge) / np.where(kept, shifted, 1.0), 1.0) * along[:, None]
    squares = np.zeros(len(ridge))
    for _ in range(_TESTED // _BLOCK):
        fresh, wanted, _ = _samples(problem, _BLOCK, rng)
        kernel = (regime.activation.derivative(fresh @ W.T) @ slopes.T) * (fresh @ X.T) / (N * d)
        squares += np.sum((wanted[:, None] - kernel @ alpha) ** 2, axis=0)
    return {"risk": squares / _TESTED, "train": np.mean(left**2, axis=0)}


def linear_tangent(problem: LinearTarget, regime: NeuralTangent, run: Run) -> dict[str, FloatArray]:
    """The tangent model on a linear target in run.d dimensions: that of degree 1."""
    if not _is_harmonic(problem, regime):
        got = f"F⋆ = {problem.nonlinear:g}, {problem.inputs} inputs{', other weights' * (regime.weights is not None)}"
        must = "F⋆ = 0, x on the sphere ‖x‖ = √d, w on the unit sphere"
        raise NoTheorem.of("Simulation of the tangent model on a LinearTarget", must, got, "Use a HarmonicTarget.")
    return neural_tangent(HarmonicTarget(run.d, np.array([0.0, problem.signal**2]), problem.noise), regime, run)


def _is_harmonic(problem: LinearTarget, regime: NeuralTangent) -> bool:
    """Whether the target is the first harmonic on the sphere, and weights are isotropic."""
    return not problem.nonlinear and problem.inputs == "sphere" and regime.weights is None


def _samples(problem: HarmonicTarget, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return n inputs, the target there, and the noise of their labels."""
    d, degree = problem.d, problem.energies.size - 1
    X = unit_rows(rng.standard_normal((n, d))) * np.sqrt(d)
    scale = np.sqrt(problem.energies * multiplicities(d, degree))  # q_k = √B(d, k) Q_k
    return X, scale @ polynomials(X[:, 0] / np.sqrt(d), d, degree), problem.noise * rng.standard_normal(n)


_DATA = "n samples of y = f(x) + ε, x on the sphere ‖x‖ = √d, f a function of one direction with these energies"
_WEIGHTS = "w uniform on the unit sphere, σ not centred, no offset"
_TANGENT = "`risk` on 8000 fresh inputs; K of N neurons, ⟨x, x′⟩/d inside; objective Σ(y − f)² + λ‖a‖²"


def _claim(regime: type[RandomFeatures] | type[NeuralTangent], tested: str) -> Claim:
    features = regime is RandomFeatures
    return Claim(
        fidelity="simulate",
        problem=HarmonicTarget,
        regime=regime,
        title="random features, every degree" if features else "tangent model, every degree",
        theorem="ridge regression on drawn data",
        citations=("defilippis2024dimension",),
        assumptions=(_DATA, _WEIGHTS, tested),
        arguments=("width", "samples", "ridge"),
        arrays=("ridge",),
        reduce=averaged,
        compute=of_run(random_features if features else neural_tangent),
        covers=isotropic_features,
        example=lambda d: (HarmonicTarget(d, np.array([0.0, 0.5, 0.5]), noise=0.3), regime("relu")),
    )


CLAIMS = (
    _claim(RandomFeatures, "`risk` over all inputs in closed form"),
    _claim(NeuralTangent, _TANGENT),
    Claim(
        fidelity="simulate",
        problem=LinearTarget,
        regime=NeuralTangent,
        title="tangent model",
        theorem="ridge regression on drawn data",
        citations=("montanari2020interpolation",),
        assumptions=("n samples of y = ⟨β₀, x⟩ + ε, x on the sphere ‖x‖ = √d", _WEIGHTS, _TANGENT),
        arguments=("width", "samples", "d", "ridge"),
        arrays=("ridge",),
        reduce=averaged,
        compute=of_run(linear_tangent),
        example=lambda d: (LinearTarget(noise=0.5), NeuralTangent("relu")),
        assumes=_is_harmonic,
    ),
)

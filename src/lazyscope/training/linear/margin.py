"""Max-margin classification of drawn data: the exact margin, and the test error of the classifier that attains it.

    κ_n = max_{‖a‖≤1} min_i y_i⟨a, u_i⟩,      P(y = 1 | x) = f₀(⟨β₀, x⟩),

by `hard_margin`, which proves what it returns. For Gaussian features, noisy linear ones among them, (⟨a, u⟩, S) is
Gaussian given a and the weights, S the score, and the error a one-dimensional integral:

    Err = P(c₁T + c₂Z ≤ 0),      c₁ = Cov(⟨a, u⟩, S),  c₁² + c₂² = Var⟨a, u⟩,  T = yS.

For nonlinear features it is the mean of P(y ≠ sign⟨a, u⟩ | x) over fresh x. Where data are not separable the only
maximiser is a = 0 and the error that of a coin, 1/2, as in the limit. A seed draws the same weights, inputs and labels
for nonlinear and noisy linear features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence.claim import Claim, of_run
from lazyscope.evidence.results import averaged
from lazyscope.evidence.run import Run
from lazyscope.numerics.hard_margin import TOLERANCE, HardMargin, solve
from lazyscope.problems import LinearLabels
from lazyscope.regimes import GaussianFeatures, IsotropicFeatures, RandomFeatures, Regime
from lazyscope.training.linear.random_layer import features, unit_rows
from lazyscope.weights import generator

TESTED = 20_000
"""Fresh inputs for the error of nonlinear features: a standard error of at most 0.0036, of 0.002 as a rule."""

_BLOCK = 2000


def random_features(problem: LinearLabels, regime: RandomFeatures, run: Run) -> dict[str, FloatArray]:
    """Draw weights and data, find the margin on random features, and test what attains it.

    Flops 2ndN + those of `hard_margin`, and 4·10⁴dN for the test of nonlinear features; memory 8(3nN + (N + n)d) bytes.
    """
    if regime.weights is not None:
        instead = "Leave weights out."
        raise NoTheorem.of("Simulation of LinearLabels", "weights uniform on the sphere", "other weights", instead)
    d, N, n = run.d, run.whole("width"), run.whole("samples")
    size = 8.0 * (3.0 * n * N + 2.0 * n * min(n, N) + (N + n) * d) + 4.0 * _BLOCK * (d + 2.0 * N)
    fits_in_memory(size, f"The margin of n = {n} samples on N = {N} features", "Use smaller sizes.")
    rng = generator(run.seed, run.number, N, n, d)
    W = unit_rows(rng.standard_normal((N, d)))
    X = rng.standard_normal((n, d))  # β₀ along the first axis: nothing else has a direction
    y = labels(problem, X[:, 0], rng)
    largest = solve(features(regime, W, X, rng) * y[:, None])
    if not largest.separable:
        return _row(largest, 0.5)
    if not regime.surrogate:
        return _row(largest, _sampled_error(problem, regime, W, largest.a, rng))
    b1, noise = regime.activation.b1, regime.activation.lambda_tilde
    seen = b1 * (largest.a @ W)
    return _row(largest, gaussian_error(problem, float(seen[0]), float(seen @ seen) + noise))


def drawn_weights(seed: int, number: int, N: int, n: int, d: int) -> FloatArray:
    """Return the weights of a draw, (N, d), without its data; the score is along the first axis.

    >>> drawn_weights(0, 3, 5, 8, 4).shape
    (5, 4)
    """
    return unit_rows(generator(seed, number, N, n, d).standard_normal((N, d)))


def given_features(
    problem: LinearLabels, regime: IsotropicFeatures | GaussianFeatures, run: Run
) -> dict[str, FloatArray]:
    """Draw N Gaussian features and their labels; d only names the ratios. K eigenvalues are repeated N/K times each."""
    d, N, n = run.d, run.whole("width"), run.whole("samples")
    fits_in_memory(8.0 * (3.0 * n * N + 2.0 * n * min(n, N)), f"n = {n} samples of N = {N} features", "Use fewer.")
    root, share = _spectrum(regime, N)
    rng = generator(run.seed, run.number, N, n, d)
    G = rng.standard_normal((n, N))
    toward = np.sqrt(share)
    score = G @ toward + np.sqrt(max(0.0, 1.0 - float(share.sum()))) * rng.standard_normal(n)
    y = labels(problem, score, rng)
    largest = solve(G * root * y[:, None])
    if not largest.separable:
        return _row(largest, 0.5)
    scaled = root * largest.a
    return _row(largest, gaussian_error(problem, float(scaled @ toward), float(scaled @ scaled)))


def _spectrum(regime: IsotropicFeatures | GaussianFeatures, N: int) -> tuple[FloatArray, FloatArray]:
    """Return √λ_j and α_j of each of N features, β₀ along the first of isotropic ones."""
    if isinstance(regime, IsotropicFeatures):
        return np.ones(N), np.eye(1, N)[0]
    K = regime.spectrum.size
    if N < K:
        must = f"be at least the number of eigenvalues, {K}"
        raise InvalidParameter.of("simulate", "width", must, N, "A multiple of it repeats each as often.")
    which = np.arange(N) * K // N
    return np.sqrt(regime.spectrum[which]), (regime.shares / np.bincount(which))[which]


def labels(problem: LinearLabels, score: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw labels of unit scores, S = ⟨β₀, x⟩/‖β₀‖; refuse a draw that has one class only."""
    y = np.where(rng.random(score.size) < problem.probability(problem.signal * score), 1.0, -1.0)
    if np.all(y == y[0]):
        must = "give labels of both classes"
        raise InvalidParameter.of("simulate", "samples", must, f"{y[0]:g} for all {y.size}", "Draw more samples.")
    return y


def gaussian_error(problem: LinearLabels, covariance: float, variance: float) -> float:
    """Return P(yf ≤ 0) where (f, S) is Gaussian with this covariance, f of this variance and S of variance one.

    >>> f"{gaussian_error(LinearLabels(1.0, 'sign'), 1.0, 2.0):.12f}"  # the angle between the two, over π
    '0.250000000000'
    """
    from scipy.special import ndtr

    T, p = problem.agreement
    rest = np.sqrt(max(variance - covariance**2, np.finfo(np.float64).tiny))
    return float(p @ ndtr(-covariance / rest * T))


def _sampled_error(
    problem: LinearLabels, regime: RandomFeatures, W: FloatArray, a: FloatArray, rng: np.random.Generator
) -> float:
    """Return the mean of P(y ≠ sign⟨a, u⟩ | x) over fresh x, in float32 and in blocks."""
    W32, a32, total = W.astype(np.float32), a.astype(np.float32), 0.0
    for _ in range(TESTED // _BLOCK):
        X = rng.standard_normal((_BLOCK, W.shape[1]), dtype=np.float32)
        positive = features(regime, W32, X, rng) @ a32 > 0.0  # type: ignore[arg-type]
        f = problem.probability(problem.signal * X[:, 0].astype(np.float64))
        total += float(np.sum(np.where(positive, 1.0 - f, f)))
    return total / TESTED


def _row(largest: HardMargin, error: float) -> dict[str, FloatArray]:
    values = {
        "risk": error,
        "error": error,
        "margin": largest.margin,
        "separable": float(largest.separable),
        "support": largest.support / largest.z.size if largest.separable else 0.0,
        "gap": largest.gap,
    }
    return {name: np.asarray(value) for name, value in values.items()}


def _claim(regime: type[Regime], features: str, training: Any, example: Any) -> Claim:
    return Claim(
        fidelity="simulate",
        problem=LinearLabels,
        regime=regime,
        title="max-margin",
        theorem="the largest margin of drawn data, exactly, or a proof that there is none",
        citations=("lawson1974", "montanari2019generalization"),
        assumptions=("n samples, fresh; no offset is fitted", features, "not separable: margin 0, a = 0, error 1/2"),
        arguments=("width", "samples", "d"),
        reduce=averaged,
        compute=of_run(training),
        tolerance=TOLERANCE,
        example=example,
        method="margin",
        assumes=lambda problem, regime: getattr(regime, "weights", None) is None,
    )


CLAIMS = (
    _claim(
        RandomFeatures,
        "w uniform on the unit sphere, σ centred, or noisy linear features",
        random_features,
        lambda d: (LinearLabels(4.0), RandomFeatures("relu")),
    ),
    _claim(IsotropicFeatures, "u ~ N(0, I)", given_features, lambda d: (LinearLabels(4.0), IsotropicFeatures())),
    _claim(
        GaussianFeatures,
        "u ~ N(0, Σ), each eigenvalue repeated",
        given_features,
        lambda d: (LinearLabels(4.0), GaussianFeatures(np.array([0.5, 2.0]))),
    ),
)

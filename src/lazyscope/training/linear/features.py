"""Random features fitted to samples by the normal equations, streamed: the paper's own route.

    a = (ΦᵀΦ)⁻¹Φᵀy,   Φ = σ(XWᵀ) − λ₀,   n samples in blocks,

memory O(N²) whatever n, 2ndN + nN² flops in float32. σ is centred and there is no offset, as in the theorem. Few
features of few samples are fitted in float64 and without normal equations, which square the condition number of Φ:
features of one input are nearly parallel, and float32 would leave no digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope import weights
from lazyscope.activations import Activation
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.claim import (
    Claim,
    Example,
    exponential_quantiles,
    nonlinear_features,
    of_run,
    three_levels,
    weights_exist,
)
from lazyscope.evidence.run import Run
from lazyscope.numerics.blas import threads_for
from lazyscope.numerics.normals import Float32
from lazyscope.problems import GaussianMixture, GaussianProblem, MultiIndex, QuadraticTarget
from lazyscope.progress import report
from lazyscope.regimes import RandomFeatures
from lazyscope.training.sgd.stream import Law, batches, draw_test, law_of

_FITTED, _TESTED = 500_000, 10_000  # samples of the paper, §4
_BLOCK = 4096  # samples at once: features of 74 MB at N = 4500
_FEW = 1 << 18  # entries of Φ, fewer than half of the paper's samples: up to here the fit is in float64


def risk(problem: GaussianProblem, regime: RandomFeatures, run: Run) -> dict[str, FloatArray]:
    """Fit N random features to a stream of n samples, and test them on 10⁴ fresh ones."""
    law, N, samples = law_of(problem), run.whole("width"), run.whole("samples")
    if samples < N:
        must = f"be at least the number of features, N = {N}"
        raise InvalidParameter.of("simulate", "samples", must, samples, "Pass more samples, or a smaller width.")
    memory = 4.0 * (N * N * 4.0 + _BLOCK * (2.0 * N + law.d))
    fits_in_memory(memory, f"The normal equations at N = {N}", "Use a smaller width.")
    rng = weights.generator(run.seed, run.number, N)
    W = law.see(weights.draw(problem, regime, N, rng))
    features = Features(W.astype(np.float32), regime.activation)
    with threads_for(min(samples, _BLOCK) * N * max(N // 2, law.d)):
        a, fitted = (fit_few if samples * N <= _FEW else fit)(law, features, samples, rng)
        tested = mean_loss(law, features, a, _TESTED, rng)
    return {"risk": np.array(tested / law.energy), "train": np.array(fitted / law.energy)}


def with_samples(run: Run) -> Run:
    """Write the paper's number of samples out where none is given."""
    return run if "samples" in run.sizes else run.at(sizes={**run.sizes, "samples": (_FITTED,)})


class Features:
    """Φ: x ↦ σ(Wx) − λ₀ in float32."""

    def __init__(self, W: Float32, sigma: Activation) -> None:
        from scipy.linalg.blas import sgemm  # the BLAS of the rank-k update too: see `training.sgd.pack`

        self.W, self.sigma, self.sgemm = W, sigma, sgemm
        self.centre = np.float32(sigma.hermite(0))

    def __call__(self, X: Float32) -> Float32:
        """Return the features of the rows of X, (n, N)."""
        values = self.sigma.at(self.sgemm(1.0, self.W.T, X.T, trans_a=1).T)
        values -= self.centre
        return values


def mean_loss(law: Law, features: Features, a: NDArray[Any], n: int, rng: np.random.Generator) -> float:
    """Return the mean squared error on n fresh samples, in blocks like the fit, and in the precision of a."""
    from scipy.linalg.blas import sgemv

    total = 0.0
    for start in range(0, n, _BLOCK):
        X, y = draw_test(law, min(_BLOCK, n - start), rng)
        phi = features(X)
        residual = y - (sgemv(1.0, phi.T, a, trans=1) if a.dtype == np.float32 else phi.astype(np.float64) @ a)
        total += float(np.sum(residual.astype(np.float64) ** 2))
    return total / n


Fit = tuple[NDArray[Any], float]
"""The least-squares coefficients on fresh samples, and the mean squared error on those samples."""


def fit(law: Law, features: Features, samples: int, rng: np.random.Generator) -> Fit:
    """Fit by the normal equations in float32, solved in float64."""
    from scipy.linalg.blas import sgemv, ssyrk

    N = len(features.W)
    S = np.zeros((N, N), dtype=np.float32, order="F")
    b, energy = np.zeros(N), 0.0
    for phi, y in _blocks(law, features, samples, rng):
        S = ssyrk(1.0, phi.T, beta=1.0, c=S, lower=1, overwrite_c=1)
        b += sgemv(1.0, phi.T, y)
        energy += float(y.astype(np.float64) @ y)
    a = _solve(S, b)
    return a.astype(np.float32), max(0.0, (energy - float(a @ b)) / samples)


def fit_few(law: Law, features: Features, samples: int, rng: np.random.Generator) -> Fit:
    """Fit by the singular values of Φ in float64, but for those that are rounding of its float32 entries."""
    from scipy.linalg import lstsq

    parts = [(phi, y.copy()) for phi, y in _blocks(law, features, samples, rng)]  # a stream uses its memory again
    phi = np.concatenate([part for part, _ in parts]).astype(np.float64)
    y = np.concatenate([part for _, part in parts]).astype(np.float64)
    a = np.asarray(lstsq(phi, y, cond=phi.shape[1] * np.finfo(np.float32).eps, check_finite=False)[0])
    residual = y - phi @ a
    return a, float(residual @ residual) / samples


def _blocks(
    law: Law, features: Features, samples: int, rng: np.random.Generator
) -> Iterator[tuple[Float32, NDArray[Any]]]:
    """Yield features and labels of fresh samples, some thousand at once."""
    blocks = -(-samples // _BLOCK)
    size = -(-samples // blocks)
    for k, (X, y) in enumerate(batches(law, size, blocks, rng)):
        X, y = X[: samples - k * size], y[: samples - k * size]  # the last block may be shorter
        yield features(X), y
        report(k, 0, f"{min((k + 1) * size, samples):,} of {samples:,} samples", (k + 1) / blocks)


def finite_size(result: dict[str, Any]) -> FloatArray:
    """Return 2RN/(n − N), a bound on what fitting N coefficients to n samples adds to the risk R.

    To first order a least-squares fit adds E[r² φᵀH⁻¹φ]/n, r its residual and H = E[φφᵀ]: RN/n if the residual does not
    know the leverage φᵀH⁻¹φ, whose mean is N. It is nearly constant in many dimensions, so that what remains is at
    most √(E r⁴)/E r² times as much: √3 for a Gaussian residual.
    """
    N, n = result["width"], result["n"]
    return np.asarray(2.0 * result["risk"] * N / np.maximum(n - N, 1))


def _solve(S: Float32, b: FloatArray) -> FloatArray:
    """Solve S a = b, S given by its lower triangle in float32: Cholesky, or eigenvectors where S is singular."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

    try:
        factor = cho_factor(S.astype(np.float64), lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, b))
    except LinAlgError:
        values, vectors = eigh(S.astype(np.float64), lower=True)
        kept = values > values[-1] * len(b) * np.finfo(np.float32).eps
        return np.asarray(vectors[:, kept] @ ((vectors[:, kept].T @ b) / values[kept]))


def _claim(problem: type[GaussianProblem], example: Example) -> Claim:
    return Claim(
        fidelity="simulate",
        problem=problem,
        regime=RandomFeatures,
        title="random features",
        theorem="normal equations from samples (the paper's protocol)",
        citations=("ghorbani2019limitations",),
        assumptions=("n samples, fresh; tested on fresh ones, without the noise of their labels",),
        arguments=("width", "samples"),
        optional=("samples",),
        settle=with_samples,
        compute=of_run(risk),
        example=example,
        covers=nonlinear_features,
        assumes=weights_exist,
        finite_size=finite_size,
    )


CLAIMS = (
    _claim(QuadraticTarget, lambda d: (exponential_quantiles(d), RandomFeatures("relu"))),
    _claim(GaussianMixture, lambda d: (three_levels(d), RandomFeatures("relu"))),
    _claim(MultiIndex, lambda d: (MultiIndex(d, "erf"), RandomFeatures("erf"))),
)

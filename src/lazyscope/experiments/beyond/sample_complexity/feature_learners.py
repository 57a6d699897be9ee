"""Ways to learn a function of a few directions from n samples: kernels, features, one giant step, and SGD.

The lazy ones choose the best of a few ridges in hindsight, which favours them. One-pass SGD sees each sample once, with
the step that its theorem asks for: δ/d a sample, δ = c·d^{1−k/2} for the information exponent k ≥ 2 (Ben Arous,
Gheissari and Jagannath 2021).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.limits import declared
from lazyscope.limits.spectral.few_directions import CLAIMS
from lazyscope.numerics.krylov import kernel_ridge
from lazyscope.numerics.ridge import ridge_path
from lazyscope.population.infinite_width import fourier_kernel
from lazyscope.problems import MultiIndex
from lazyscope.protocols import SGD
from lazyscope.regimes import GiantStep, NeuralTangent, RandomFeatures
from lazyscope.training.linear.giant_step import step_on
from lazyscope.training.sgd.loop import walk
from lazyscope.training.sgd.network import Networks
from lazyscope.training.sgd.stream import draw, draw_test, law_of
from lazyscope.weights import generator

LAZY = ("kernel", "RF", "NT")
LEARNERS = (*LAZY, "giant step", "SGD")
_RIDGES = (1e-5, 1e-3, 1e-2, 1e-1, 1.0)  # over the mean square of a feature vector
_STRONGER = (1e-3, 1e-2, 1e-1, 1.0)  # for a second layer that is fitted to few samples: over n times that
_STEP = 3.0  # of the giant step
_NEURONS = 20  # of the network that SGD trains
_PACE = {1: 0.2, 2: 0.2, 3: 0.05, 4: 0.01}  # c, by information exponent: half of what diverges, or less
_RATIO = 2.0**0.25  # between two looks at SGD
TESTED = 16_000
"""Fresh inputs: squares of he₄ have heavy tails."""


def activation_for(problem: MultiIndex, learner: str) -> str:
    """Return a σ that has the highest degree of the target, odd or even.

    Lazy methods have sin and cos, random Fourier features, whose kernels are closed forms for inputs of every length. A
    giant step needs E σ′ ≠ 0: it has erf(u/√2), or softplus.

    >>> [activation_for(MultiIndex(9, "he1+he4"), name) for name in ("kernel", "giant step")]
    ['cos', 'softplus']
    """
    shares = problem.energies / problem.energy
    odd = int(np.flatnonzero(shares > 0.05)[-1]) % 2
    return ("erf2" if odd else "softplus") if learner == "giant step" else ("sin" if odd else "cos")


def sampled(problem: MultiIndex, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return n inputs, (n, d), and their labels."""
    X, y = draw(law_of(problem), n, rng)
    return X.astype(np.float64), y.astype(np.float64)


def wanted(problem: MultiIndex, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return n fresh inputs and the target there, without noise."""
    X, y = draw_test(law_of(problem), n, rng)
    return X.astype(np.float64), y.astype(np.float64)


def predicted(
    learner: str, problem: MultiIndex, sigma: Activation, X: FloatArray, y: FloatArray, X_test: FloatArray, m: int,
    rng: np.random.Generator,
) -> FloatArray:  # fmt: skip
    """Return the predictions of a learner for each of its ridges, (ridges, n_test); m neurons for the giant step."""
    if learner == "giant step":
        return _giant_step(sigma, X, y, X_test, m, rng)
    if learner == "RF":  # twice as many features as samples, so that samples are what is missing
        W = rng.standard_normal((2 * len(X), problem.d)) / sqrt(problem.d)
        Phi = sigma(X @ W.T)
        a, _ = ridge_path(Phi, y[:, None], [ridge * len(W) * float(np.mean(Phi**2)) for ridge in _RIDGES])
        return np.asarray((sigma(X_test @ W.T) @ a[:, :, 0]).T)
    if sigma.name not in ("sin", "cos"):
        must = "be sin or cos for the learners kernel and NT, whose kernels are closed forms"
        raise InvalidParameter.of("sample_complexity", "activation", must, repr(sigma.name), "The others take any.")
    K = fourier_kernel(sigma.name, learner == "NT", X, X)
    fits = kernel_ridge(K, y, [ridge * float(np.mean(np.diagonal(K))) for ridge in _RIDGES], tolerance=1e-8)
    parts = np.array_split(X_test, max(1, len(X_test) // 2000))  # not all of the kernel at once
    return np.concatenate([fits.predict(fourier_kernel(sigma.name, learner == "NT", part, X)) for part in parts]).T


def _giant_step(
    sigma: Activation, X: FloatArray, y: FloatArray, X_test: FloatArray, N: int, rng: np.random.Generator
) -> FloatArray:
    """Take the step on the first half of the samples, and fit the second layer and an offset to the other half."""
    half, d = len(X) // 2, X.shape[1]
    W = rng.standard_normal((N, d)) / sqrt(d)
    W = step_on([(X[:half], y[:half])], W, rng.standard_normal(N), GiantStep(sigma, _STEP, half))
    Phi, fresh = sigma(X[half:] @ W.T), sigma(X_test @ W.T)
    mean, level = Phi.mean(axis=0), float(y[half:].mean())
    shifts = [ridge * half * float(np.mean((Phi - mean) ** 2)) for ridge in _STRONGER]
    a, _ = ridge_path(Phi - mean, (y[half:] - level)[:, None], shifts)
    return np.asarray((level + (fresh - mean) @ a[:, :, 0]).T)


def descended(problem: MultiIndex, sigma: Activation, most: int, key: tuple[int, ...]) -> Iterator[tuple[int, float]]:
    """Yield samples seen and risk along one-pass SGD of a few neurons like the target's own, at a constant step."""
    d, k = problem.d, problem.information_exponent
    pace = _PACE.get(k, _PACE[4]) * d ** (1.0 - max(k, 2) / 2.0)
    batch = d if k > 2 else max(1, d // 8)  # weights move by δ in a batch of d, and δ is small where k > 2
    rng = generator(*key)
    law, protocol = law_of(problem), SGD(-(-most // batch), batch, (batch * pace / (2.0 * d),), decay=(), test=1)
    start = (rng.standard_normal((_NEURONS, d)) / sqrt(d)).astype(np.float32)
    pack = Networks([start], [_NEURONS], protocol.step_sizes, sigma, fixed_layer=True)
    X, y = draw_test(law, TESTED, rng)
    look = 2.0 * d
    with np.errstate(over="ignore", invalid="ignore"):
        for done, _ in walk(law, (pack,), protocol, rng):
            if done * batch >= look:
                look *= _RATIO
                risk = float(np.mean(pack.losses(X, y))) / problem.energy
                if not np.isfinite(risk):
                    return
                yield done * batch, risk


def neuron_of(problem: MultiIndex) -> Activation:
    """Return the σ of the network that SGD trains: the target's own neuron, or its Hermite polynomial."""
    if problem.neuron is not None:
        return problem.neuron
    if problem.indices == 1:
        return Activation(lambda z: problem.h(np.asarray(z).ravel()).reshape(np.shape(z)))
    must = "be a function of one direction or a committee for SGD, whose neurons are like its own"
    raise InvalidParameter.of("sample_complexity", "problems", must, str(problem).split(",")[0])


def needed_in_theory(problem: MultiIndex, learner: str, level: float, sigma: Activation | str) -> float:
    """Return the n at which the deterministic equivalent of a lazy learner has the risk `level`, at the best ridge.

    >>> round(needed_in_theory(MultiIndex(30, "he2"), "kernel", 0.5, "cos") / 464, 1)  # of 464 quadratic harmonics
    0.5
    """
    from scipy.optimize import brentq

    regime = (NeuralTangent if learner == "NT" else RandomFeatures)(sigma)
    claim = next(claim for claim in CLAIMS if isinstance(regime, claim.regime))
    moment = regime.activation.slope_moments(np.ones(1))[0] if learner == "NT" else regime.activation.second_moment(1.0)
    ridges = np.array(_RIDGES) * float(np.squeeze(moment))

    def above(log_n: float) -> float:
        from lazyscope.evidence.run import Run

        sizes = {"width": (np.inf,), "samples": (float(np.exp(log_n)),), "ridge": tuple(ridges.tolist())}
        risk = Run("limit", problem, regime, sizes, "ridge", known=claim).compute()["risk"]
        return float(np.log(np.min(risk) / level))

    low, high = np.log(2.0), np.log(problem.d) * (declared.few_direction_samples(problem, learner, level) + 2.0)
    return float(np.exp(brentq(above, low, high, xtol=1e-6))) if above(high) < 0.0 < above(low) else np.inf

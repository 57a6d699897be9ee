"""Random-features ridge regression on drawn data: all ridges of a draw from one decomposition.

    minimise (1/n) Σ_k (y_k − Σ_i a_i φ_i(x_k))² + (Nλ/d)‖a‖²,      φ_i(x) = σ(⟨w_i, x⟩) − E σ(g),  ‖w_i‖ = 1,

or noisy linear features, φ_i = b₁⟨w_i, x⟩ + b⋆z_i. The test error is exact, without test samples: with
U_ij = E[φ_iφ_j] and V_i = E[φ_i f] in closed form (`zonal`),

    R = F₁² + F⋆² − 2⟨a, V⟩ + ⟨a, Ua⟩.

The fit is linear in y, so that the linear part of the labels and the rest, f⋆ + ε, are fitted separately: the error of
the first fit is the bias, the energy of the second the variance, as the theorem has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.activations.zonal import Zonal
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence.claim import Claim, of_run
from lazyscope.evidence.results import averaged
from lazyscope.evidence.run import Run
from lazyscope.numerics.ridge import ridge_path
from lazyscope.problems import LinearTarget
from lazyscope.regimes import RandomFeatures
from lazyscope.training.linear.random_layer import features, unit_rows
from lazyscope.weights import generator

_TESTED, _BLOCK = 2048, 512  # fresh samples for `tested`, and how many of them at once
_FEWEST_DIMENSIONS = 3  # below it the law of one coordinate has no density that quadrature could use


def risks(problem: LinearTarget, regime: RandomFeatures, run: Run) -> dict[str, FloatArray]:
    """Draw weights and data, fit every ridge, and return the exact errors, beside the sampled one.

    Memory 8(nN + 2·min(n, N)² + N²) bytes; flops nN(2d + m) + 4m³/3 + 2N²d + … with m = min(n, N), a few seconds at
    n = N = 2400.
    """
    d, N, n, ridge = run.d, run.whole("width"), run.whole("samples"), run.sizes["ridge"]
    _check(regime, d)
    smaller = min(n, N)
    size = 8.0 * (3.0 * n * N + 2.0 * smaller**2 + 2.0 * N * N + (n + N) * (d + 4.0 * len(ridge)))
    fits_in_memory(size, f"Ridge regression with N = {N} features on n = {n} samples", "Use smaller sizes.")
    rng = generator(run.seed, run.number, N, n, d)
    world = World.draw(problem, d, rng)
    W = unit_rows(rng.standard_normal((N, d)))
    X, linear, rest = world.samples(n, rng)
    shifts = [n * N / d * value for value in ridge]
    a, residual = ridge_path(features(regime, W, X, rng), np.stack([linear, rest], axis=1), shifts)
    exact = _exact_errors(problem, world, _moments(problem, regime, d), W, a)
    return exact | {
        "train": np.mean(residual.sum(axis=2) ** 2, axis=0),
        "tested": _sampled_error(world, regime, W, a.sum(axis=2), rng),
    }


def _check(regime: RandomFeatures, d: int) -> None:
    if d < _FEWEST_DIMENSIONS:
        raise InvalidParameter.of("simulate", "d", f"be at least {_FEWEST_DIMENSIONS} for a LinearTarget", d)
    if regime.weights is not None:
        instead = "Leave weights out."
        raise NoTheorem.of("Simulation of a LinearTarget", "weights uniform on the sphere", "other weights", instead)


@dataclass(frozen=True, eq=False)
class World:
    """One draw of nature: β₀ along the first axis, and G with f⋆(x) = xᵀGx of energy F⋆², Tr G = 0."""

    problem: LinearTarget
    d: int
    G: FloatArray | None

    @classmethod
    def draw(cls, problem: LinearTarget, d: int, rng: np.random.Generator) -> World:
        """Draw G, a random quadratic harmonic; isotropic features have no other use for the direction of β₀."""
        if not problem.nonlinear:
            return cls(problem, d, None)
        G = rng.standard_normal((d, d))
        G = 0.5 * (G + G.T)
        G.flat[:: d + 1] -= np.trace(G) / d
        # E(xᵀGx)² = 2‖G‖² for Gaussian x, d/(d + 2) times that on the sphere
        energy = 2.0 * float(np.sum(G**2)) * (d / (d + 2.0) if problem.inputs == "sphere" else 1.0)
        return cls(problem, d, G * (problem.nonlinear / np.sqrt(energy)))

    def samples(
        self, n: int, rng: np.random.Generator, noise: bool = True
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return n inputs, the linear part of their labels, and the rest: f⋆(x) and noise."""
        X = rng.standard_normal((n, self.d))
        if self.problem.inputs == "sphere":
            X = unit_rows(X) * np.sqrt(self.d)
        rest = self.problem.noise * rng.standard_normal(n) if noise else np.zeros(n)
        if self.G is not None:
            rest = rest + np.einsum("nd,nd->n", X @ self.G, X)
        return X, self.problem.signal * X[:, 0], rest


def _moments(problem: LinearTarget, regime: RandomFeatures, d: int) -> Zonal:
    if regime.surrogate:
        return Zonal.noisy_linear(regime.activation)
    return Zonal.gaussian(regime.activation) if problem.inputs == "gaussian" else Zonal.on_sphere(regime.activation, d)


def _exact_errors(
    problem: LinearTarget, world: World, moments: Zonal, W: FloatArray, a: FloatArray
) -> dict[str, FloatArray]:
    """Return risk, bias and variance of coefficients a, (N, ridges, 2): fits of the linear labels and of the rest."""
    U = moments.kernel(W @ W.T)
    Ua = (U @ a.reshape(len(a), -1)).reshape(a.shape)
    squares = np.einsum("nrk,nrl->rkl", a, Ua)
    V = moments.slope * problem.signal * W[:, 0]
    with_linear = np.einsum("n,nrk->rk", V, a)
    bias = problem.signal**2 - 2.0 * with_linear[:, 0] + squares[:, 0, 0]
    variance = squares[:, 1, 1]
    risk = bias + variance + 2.0 * (squares[:, 0, 1] - with_linear[:, 1]) + problem.nonlinear**2
    if world.G is not None:
        beyond = moments.quadratic * np.einsum("nd,nd->n", W @ world.G, W)
        risk = risk - 2.0 * np.einsum("n,nrk->r", beyond, a)
    return {"risk": risk, "bias": bias, "variance": variance}


def _sampled_error(
    world: World, regime: RandomFeatures, W: FloatArray, a: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the error of coefficients a, (N, ridges), on fresh samples without noise: the plain route to the risk."""
    squares = np.zeros(a.shape[1])
    for _ in range(_TESTED // _BLOCK):
        X, linear, rest = world.samples(_BLOCK, rng, noise=False)
        squares += np.sum(((linear + rest)[:, None] - features(regime, W, X, rng) @ a) ** 2, axis=0)
    return squares / _TESTED


CLAIMS = (
    Claim(
        fidelity="simulate",
        problem=LinearTarget,
        regime=RandomFeatures,
        title="random-features ridge regression",
        theorem="ridge regression on drawn data, test error in closed form",
        citations=("mei2019generalization",),
        assumptions=(
            "n samples of y = ⟨β₀, x⟩ + f⋆(x) + ε, f⋆ a random quadratic harmonic",
            "`risk`, `bias`, `variance` over all inputs in closed form; `tested` on 2048 fresh ones; `train` on the n",
            "w uniform on the sphere ‖w‖ = 1, σ centred; at least three dimensions",
        ),
        arguments=("width", "samples", "d", "ridge"),
        arrays=("ridge",),
        reduce=averaged,
        compute=of_run(risks),
        example=lambda d: (LinearTarget(noise=0.5), RandomFeatures("relu")),
        assumes=lambda problem, regime: regime.weights is None,
    ),
)

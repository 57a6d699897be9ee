"""Double descent on real images: scikit-learn's 8×8 digits, odd against even, some labels of the training set flipped.

Two ways to fit n labels y = ±1 by least squares, with N neurons:

- random features, f(x) = Σ a_iσ(⟨w_i, x⟩): N parameters, the fit of least norm. It interpolates from N = n on;
- a trained network, f(x) = c + Σ a_iσ(⟨w_i, x⟩ + b_i): N(d + 2) + 1 parameters, minimised by L-BFGS from a random
  start, without penalty. It interpolates from about as many parameters as labels, N ≈ n/(d + 2), on.

The error on images that were held out, with their true labels, peaks at each one's own threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.evidence.work import Measurement, Row
from lazyscope.numerics.blas import threads_for
from lazyscope.numerics.ridge import ridge_path
from lazyscope.regimes import RandomFeatures
from lazyscope.training.linear.random_layer import features, unit_rows

PIXELS = 64
IMAGES = 1797


@dataclass(frozen=True, eq=False)
class DigitsDraw(Measurement):
    """One split of the images, one draw of weights, one width; `fit` is "features" or "network"."""

    fit: Literal["features", "network"]
    width: int
    samples: int = 400
    flip: float = 0.1
    iterations: int = 1500
    number: int = 0
    seed: int = 0

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"digits, {self.fit}, N = {self.width}"

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return self.width * self.samples * (self.iterations if self.fit == "network" else 1)

    @property
    def parameters(self) -> int:
        """How many numbers are fitted."""
        return self.width if self.fit == "features" else self.width * (PIXELS + 2) + 1

    def compute(self) -> Row:
        """Fit and test: `risk` is the mean squared error on held-out images, `error` the share of wrong signs."""
        key = (self.number, self.width, self.samples, len(self.fit))
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
        X, labels = images()
        order = rng.permutation(len(X))
        seen, held_out = order[: self.samples], order[self.samples :]
        y = np.where(rng.random(self.samples) < self.flip, -labels[seen], labels[seen])
        # one thread: a minimisation amplifies the last bit, and that depends on how a product is cut into threads
        with threads_for(0):
            fit = _fit_features if self.fit == "features" else _fit_network
            train, predicted = fit(X[seen], y, X[held_out], self.width, self.iterations, rng)
        true = labels[held_out]
        risk, error = np.mean((predicted - true) ** 2), np.mean(np.sign(predicted) != true)
        return {"risk": np.asarray(risk), "error": np.asarray(error), "train": np.asarray(train)}


def images() -> tuple[FloatArray, FloatArray]:
    """Return the digits, centred and on the sphere ‖x‖ = √64, and +1 for odd ones, −1 for even ones.

    >>> X, y = images()
    >>> X.shape, bool(np.allclose(np.sum(X**2, axis=1), 64.0)), sorted({*y.tolist()})
    ((1797, 64), True, [-1.0, 1.0])
    """
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    X = X - X.mean(axis=0)
    return unit_rows(X) * np.sqrt(PIXELS), np.where(digit % 2 == 1, 1.0, -1.0)


def _fit_features(
    X: FloatArray, y: FloatArray, new: FloatArray, N: int, iterations: int, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """Return the training error and the predictions of ReLU features, without ridge."""
    regime = RandomFeatures("relu")
    W = unit_rows(rng.standard_normal((N, X.shape[1])))
    a, residual = ridge_path(features(regime, W, X, rng), y[:, None], [0.0])
    return float(np.mean(residual**2)), features(regime, W, new, rng) @ a[:, 0, 0]


def _fit_network(
    X: FloatArray, y: FloatArray, new: FloatArray, N: int, iterations: int, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """Return the training error and the predictions of a ReLU network of which everything is trained.

    6ndN flops an iteration; ends where the loss or its gradient no longer changes, or after `iterations`.
    """
    from scipy.optimize import minimize

    d = X.shape[1]
    start = np.concatenate([rng.standard_normal(N * d) / np.sqrt(d), np.zeros(N), 0.1 * rng.standard_normal(N), [0.0]])

    def unpack(theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        return theta[: N * d].reshape(N, d), theta[N * d : N * d + N], theta[N * d + N : -1], float(theta[-1])

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        W, b, a, c = unpack(theta)
        u = X @ W.T + b
        hidden = np.maximum(u, 0.0)
        residual = hidden @ a + c - y
        outward = 2.0 / len(y) * residual
        inward = np.where(u > 0.0, outward[:, None] * a, 0.0)
        gradient = [(inward.T @ X).ravel(), inward.sum(axis=0), hidden.T @ outward, [outward.sum()]]
        return float(np.mean(residual**2)), np.concatenate(gradient)

    options: dict[str, Any] = {
        "maxiter": iterations,
        "maxfun": 4 * iterations,
        "maxcor": 20,
        "ftol": 1e-14,
        "gtol": 1e-9,
    }
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    W, b, a, c = unpack(found.x)
    return float(found.fun), np.maximum(new @ W.T + b, 0.0) @ a + c

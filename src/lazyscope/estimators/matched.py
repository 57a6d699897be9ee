"""Order k > 2: the network under moment-matched randomisation, which leaves its k-th Taylor piece (Bai & Lee 2019, §6).

Neurons come in pairs of one w₀ and a = ±1, moved to w₀ + z₊w and w₀ + z₋w; the moments of z± agree below the k-th and
differ by one there (`taylor.moments`). Their laws have k + 1 nodes t_i between them, with weights c_i of alternating
sign, so that the mean over z is a k-th difference of σ along w, and exact:

    f(x) = (1/√m) Σ_r s_r (σ(u_r + z₊v_r) − σ(u_r + z₋v_r)),      u = w₀·x,  v = w·x,
    E f(x) = (1/√m) Σ_r s_r Σ_i c_i σ(u_r + t_i v_r) = (1/√m) Σ_r s_r σ^{(k)}(u_r)/k! v_r^k + …

s_r = ±1 in equal numbers: for even k a piece would otherwise have the sign of σ^{(k)}. Training is noisy SGD as for
k = 2, with fresh z at every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from lazyscope.activations.derivatives import taylor_coefficients
from lazyscope.checks import FloatArray
from lazyscope.estimators.base import Array
from lazyscope.numerics.losses import as_loss
from lazyscope.protocols import NoisySGD
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.moments import MomentPair, moment_matched
from lazyscope.training.taylor.randomized import noisy_sgd


@dataclass(frozen=True, eq=False)
class MatchedPairs:
    """The pairs of a symmetric network, and the law of their randomisation."""

    model: TaylorModel
    pair: MomentPair

    @classmethod
    def of(cls, model: TaylorModel, k: int) -> MatchedPairs:
        """Take the pairs of a network with symmetric initialisation."""
        return cls(model, moment_matched(k))

    @property
    def m(self) -> int:
        """Number of neurons, two a pair."""
        return self.model.m

    @property
    def signs(self) -> FloatArray:
        """Return s_r/√m, (m/2,)."""
        pairs = self.m // 2
        return np.where(np.arange(pairs) % 2 == 0, 1.0, -1.0) / sqrt(self.m)

    def mean_values(self, w: Array, X: Array) -> FloatArray:
        """Return E f at the rows of X, for displacements w, (m/2, d)."""
        u, v = self.model.W0[: len(w)] @ X.T, w @ X.T
        pair = self.pair
        nodes = list(zip(pair.plus, pair.plus_probabilities, strict=True))
        nodes += [(x, -p) for x, p in zip(pair.minus, pair.minus_probabilities, strict=True)]
        total = sum(float(c) * self.model.sigma.at(u + pair.scale * float(t) * v) for t, c in nodes)
        return np.asarray(self.signs @ total)

    def train(
        self, X: FloatArray, y: FloatArray, v: FloatArray, protocol: NoisySGD, rng: np.random.Generator
    ) -> tuple[Array, FloatArray]:
        """Return w, (m/2, d), and the loss of each step, weights v of mean one; 8·batch·m·d flops a step."""
        model, n = self.model.in_precision(np.float32), len(X)
        shuffled = rng.permutation(n)
        X, y, v = X[shuffled].astype(np.float32), y[shuffled], v[shuffled]
        loss, signs, pairs = as_loss(protocol.loss or "square", "NoisySGD"), self.signs.astype(np.float32), model.m // 2
        U = model.W0[:pairs] @ X.T

        def gradient(w: Array, part: slice) -> tuple[Array, float]:
            moved = w @ X[part].T
            f, slopes = np.zeros(moved.shape[1]), np.zeros_like(moved)
            for sign in (1, -1):
                z = self.pair.draw(pairs, sign, rng).astype(np.float32)[:, None]
                value, slope = taylor_coefficients(model.sigma, U[:, part] + z * moved, 1)
                f += sign * (signs @ value)
                slopes += sign * z * slope
            g = (v[part] * loss.slope(y[part], f)).astype(np.float32)
            total = (slopes * signs[:, None] * g) @ X[part] / len(g)
            return total, float(np.mean(v[part] * loss.value(y[part], f)))

        smaller = f"learning_rate than {protocol.step_size:g}"
        return noisy_sgd(model, pairs, self.pair.k, n, gradient, protocol, rng, smaller)

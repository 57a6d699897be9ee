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
from lazyscope.errors import NotConverged
from lazyscope.estimators.base import Array
from lazyscope.numerics.losses import as_loss
from lazyscope.progress import report
from lazyscope.protocols import NoisySGD
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.moments import MomentPair, moment_matched

_LOST = 1e4  # times the loss at the start: no noise brings that back


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
        self, X: FloatArray, y: FloatArray, protocol: NoisySGD, rng: np.random.Generator
    ) -> tuple[Array, FloatArray]:
        """Return w, (m/2, d), and the loss of each step; 8·batch·m·d flops a step."""
        model, k, n = self.model.in_precision(np.float32), self.pair.k, len(X)
        shuffled = rng.permutation(n)
        X, y, batch = X[shuffled].astype(np.float32), y[shuffled], min(protocol.batch, n)
        loss, signs, pairs = as_loss(protocol.loss or "square", "NoisySGD"), self.signs.astype(np.float32), model.m // 2
        U = model.W0[:pairs] @ X.T
        unit = model.m ** (-0.5 / k) / model.Bx
        rate = protocol.step_size * model.m ** (1.0 - 1.0 / k) / model.Bx**2
        w = (protocol.start * unit / sqrt(model.d) * rng.standard_normal((pairs, model.d))).astype(np.float32)
        velocity, trace = np.zeros_like(w), np.empty(protocol.steps)
        for step in range(protocol.steps):
            begin = min(step * batch % n, n - batch)
            part = slice(begin, begin + batch)
            v = w @ X[part].T
            f, slopes = np.zeros(batch), np.zeros_like(v)
            with np.errstate(over="ignore", invalid="ignore"):  # what diverges is said below
                for sign in (1, -1):
                    z = self.pair.draw(pairs, sign, rng).astype(np.float32)[:, None]
                    value, slope = taylor_coefficients(model.sigma, U[:, part] + z * v, 1)
                    f += sign * (signs @ value)
                    slopes += sign * z * slope
                gradient = (slopes * signs[:, None] * loss.slope(y[part], f).astype(np.float32)) @ X[part] / batch
                trace[step] = float(np.mean(loss.value(y[part], f)))
            if not np.isfinite(trace[step]) or trace[step] > _LOST * max(1.0, trace[0]):
                raise NotConverged(
                    f"Training diverged at step {step} of {protocol.steps}. Pass a smaller learning_rate than "
                    f"{protocol.step_size:g}."
                )
            share = protocol.rate(step)
            velocity *= protocol.momentum
            velocity -= np.float32(share * rate * (1.0 - protocol.momentum)) * gradient
            w += velocity
            w += np.float32(share * protocol.noise * unit / sqrt(model.d)) * rng.standard_normal(w.shape, np.float32)
            if step % 50 == 0:
                report(step, protocol.steps, f"step {step}, loss {trace[step]:.4f}")
        return w, trace

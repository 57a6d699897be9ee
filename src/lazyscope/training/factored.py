"""The risk of a network with σ = u² and a fixed second layer v, and where descents on it end.

f(x) = Σ_k v_k⟨w_k, x⟩² = ⟨G, xxᵀ⟩ with G = W diag(v) Wᵀ, so that the risk is a convex quadratic function of G,

    L(W) = ½E(f(x) − y)² = ½⟨g, Tg⟩ − ⟨c, g⟩ + ½E y²,      T = E s sᵀ,  c = E y s,

g and s = svec(xxᵀ) being symmetric matrices as vectors (off the diagonal times √2). Only T and c know of the data, n
samples or a law. With M = the matrix of Tg − c, the gradient is 2MW diag(v), and W is a global minimum over all widths
where M is 0, or ⪰ 0 if every v_k > 0. Du and Lee (2018): for v = 1 and N ≥ d every local minimum is global.
Soltanolkotabi, Javanmard and Lee (2019): so is it for N ≥ 2d, half of the v_k positive and half negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray


@dataclass(frozen=True, eq=False)
class QuadraticRisk:
    """T, c and E y² of some data.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 3))
    >>> risk = QuadraticRisk.of_sample(X, (X @ np.ones(3)) ** 2)
    >>> abs(risk.value(np.ones((3, 1)), np.ones(1))[0]) < 1e-12
    True
    """

    d: int
    T: FloatArray
    c: FloatArray
    energy: float

    @classmethod
    def of_sample(cls, X: FloatArray, y: FloatArray) -> QuadraticRisk:
        """Return the risk of n samples."""
        i, j, w = _upper(X.shape[1])
        s = X[:, i] * X[:, j] * w
        return cls(X.shape[1], s.T @ s / len(X), s.T @ y / len(X), float(np.mean(y**2)))

    @classmethod
    def trap(cls, d: int, sign: float = 1.0) -> QuadraticRisk:
        """Return the risk of y = ±x₁² under a law for which d − 1 neurons have a local minimum away from the target.

        x₁² is 1 ± (d − 1)^{−1/2}, either as likely, and the other d − 1 inputs, independent of it, are on the sphere of
        radius √(d − 1). There M vanishes off x₁ at WWᵀ = (1 − e₁e₁ᵀ)/(d − 1), and is −1/(d − 1) along it: to turn a
        neuron towards x₁ costs 2/(d − 1) to second order, and only a further neuron would gain.
        """
        m, kurtosis = d - 1.0, 1.0 + 1.0 / (d - 1.0)
        pairs = np.full((d, d), m / (m + 2.0))  # E x_a² x_b²
        pairs[0, :] = pairs[:, 0] = 1.0
        fourth = np.where(np.arange(d) == 0, kurtosis, 3.0 * m / (m + 2.0))
        i, j, w = _upper(d)
        a, b, e, f = i[:, None], j[:, None], i[None, :], j[None, :]
        moments = pairs[a, e] * ((a == b) & (e == f)) + pairs[a, b] * ((a == e) & (b == f) & (a != b))
        moments = np.where((a == b) & (e == f) & (a == e), fourth[a], moments)
        T = moments * w[:, None] * w[None, :]
        return cls(d, T, sign * T[:, 0], kurtosis)

    def value(self, W: FloatArray, v: FloatArray) -> tuple[float, FloatArray]:
        """Return L and its gradient: 4d²N + d⁴/2 flops."""
        g, M = self._state(W, v)
        return 0.5 * float(g @ (self.T @ g)) - float(self.c @ g) + 0.5 * self.energy, 2.0 * (M @ W) * v

    def curvature(self, W: FloatArray, v: FloatArray) -> float:
        """Return the smallest eigenvalue of the Hessian, dN × dN.

        ∇²L[U, U] = 2⟨M, U diag(v) Uᵀ⟩ + ⟨δ, Tδ⟩, δ = svec(W diag(v) Uᵀ + U diag(v) Wᵀ).
        """
        d, N = W.shape
        i, j, w = _upper(d)
        _, M = self._state(W, v)
        change = np.zeros((len(i), d, N))
        at = np.arange(len(i))
        change[at, i] += (W * v)[j] * w[:, None]
        change[at, j] += (W * v)[i] * w[:, None]
        flat = change.reshape(len(i), d * N)
        H = (flat.T @ (self.T @ flat)).reshape(d, N, d, N)
        k = np.arange(N)
        H[:, k, :, k] += 2.0 * v[:, None, None] * M
        return float(np.linalg.eigvalsh(H.reshape(d * N, d * N))[0])

    def descend(self, start: FloatArray, v: FloatArray, iterations: int = 6000) -> FloatArray:
        """Return where L-BFGS ends."""
        from scipy.optimize import minimize

        def loss(flat: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self.value(flat.reshape(start.shape), v)
            return value, gradient.ravel()

        options: dict[str, Any] = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 30, "ftol": 0.0}
        end = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options | {"gtol": 1e-9})
        return np.asarray(end.x.reshape(start.shape))

    def _state(self, W: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return g and M."""
        i, j, w = _upper(self.d)
        g = ((W * v) @ W.T)[i, j] * w
        slope = (self.T @ g - self.c) / w
        M = np.zeros((self.d, self.d))
        M[i, j] = slope
        M[j, i] = slope
        return g, M


def _upper(d: int) -> tuple[Any, Any, FloatArray]:
    """Return the places of the upper triangle, and √2 off its diagonal, 1 on it."""
    i, j = np.triu_indices(d)
    return i, j, np.where(i == j, 1.0, np.sqrt(2.0))


def enough_neurons(d: int, both: bool, samples: int | None = None) -> int:
    """Return the N from which there are no spurious minima: 2d if v has both signs, else d, or √(2n) where it is less.

    >>> enough_neurons(6, True), enough_neurons(6, False), enough_neurons(6, False, samples=9)
    (12, 6, 5)
    """
    if both:
        return 2 * d
    return d if samples is None else min(d, int(np.ceil(np.sqrt(2.0 * samples))))


def second_layer(N: int, both: bool) -> FloatArray:
    """Return N weights of the second layer: all 1, or 1 and −1 in turn.

    >>> second_layer(3, True)
    array([ 1., -1.,  1.])
    """
    return np.where(np.arange(N) % 2 == 0, 1.0, -1.0) if both else np.ones(N)

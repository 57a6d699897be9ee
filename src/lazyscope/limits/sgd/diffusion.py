"""One-pass SGD of a trained network at a finite step size, σ = u²: gradient flow with the noise of order d·ε/batch.

On a batch with residuals r, a step is W ← (I − aεS)W with S = (4/m)Σ r xxᵀ. Exactly (x Gaussian, E = aK − B, K = WWᵀ,
s = Tr E + c, and X symmetric),

    E S = 4(2E + sI),    Cov: (16/m) E[r² (xᵀXx) xxᵀ],   E[r² (xᵀXx) xxᵀ] = `second_moment`,

of which L(Tr X·I + 2X), L = E r², is the part of leading order in d. So S − E S acts like a Gaussian orthogonal matrix
of variance 16L/m, and for ε → 0 with dε/m fixed SGD becomes the diffusion

    dW = −4a(2E + sI)W dt + dZ W,   E[dZ X dZ] = ν(Tr X·I + X)dt,   ν = 16a²εL/m,   da = … + ⟨dZ, K⟩/(2a)

("homogenised SGD", Paquette et al. 2022), whose risk does not fluctuate for large d. It is walked in steps that do not
depend on ε: the flow over a step is the closed form of `riccati`, noise comes before and after it, half each. The
offset s relaxes at the rate 2g, g = 4a²Tr K + (Tr K)² + 1, faster than all else, and is averaged over it; what the step
size makes of it is Var s = εgL/(m(1 − εg)), so that SGD needs εg < 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import NoTheorem

_GROWTH, _FIRST, _TOP = 0.02, 0.02, 0.4  # of a step: share of t, at least, and times the fastest rate of the matrix


def second_moment(E: FloatArray, s: float, X: FloatArray) -> FloatArray:
    """Return E[r² (xᵀXx) xxᵀ] for r = ⟨E, xxᵀ − I⟩ + s, x ~ N(0, I), symmetric E and X: exact, 10d³ flops.

    By E[F xxᵀ] = E[F]I + E[∇²F]. The leading part is L(Tr X·I + 2X) with L = E r² = 2‖E‖² + s².

    >>> second_moment(np.zeros((2, 2)), 1.0, np.eye(2))  # E[|x|² xxᵀ] = (d + 2)I
    array([[4., 0.],
           [0., 4.]])
    """
    EX, E2, T = E @ X, E @ E, float(np.trace(X))
    both, L = float(np.sum(E * X)), 2.0 * float(np.sum(E**2)) + s * s
    flat = L * T + 8.0 * float(np.sum(E2 * X)) + 4.0 * s * both
    EEX = E @ EX
    curved = 8.0 * (2.0 * EX @ E + T * E2) + 4.0 * (2.0 * both + s * T) * E + 16.0 * (EEX + EEX.T)
    return np.asarray(flat * np.eye(len(E)) + curved + 8.0 * s * (EX + EX.T) + 2.0 * L * X)


@dataclass(frozen=True)
class Stretch:
    """A stretch of time at one step size, and its end."""

    end: float
    step_size: float


@dataclass(frozen=True)
class _Sums:
    """Tr K, ⟨B, K⟩, ‖K‖², and what follows from them."""

    T: float
    with_b: float
    norm: float
    a: float
    g: float
    error: float  # ‖aK − B‖²

    def slaved(self, heat: float, trained: bool) -> float:
        """Return the s at which Tr K, a and c leave it where it is; `heat` is d Tr K/dt by noise alone."""
        grows = self.a * (16.0 * self.a * self.with_b - 16.0 * self.a**2 * self.norm + heat)
        return (grows + trained * self.T * (4.0 * self.with_b - 4.0 * self.a * self.norm)) / (2.0 * self.g)


class Diffusion:
    """One path. Weights W, (d, n), in the eigenbasis of B; the target is centred."""

    def __init__(
        self, b: FloatArray, W: FloatArray, batch: int, trained: bool, rng: np.random.Generator, sign: float = 1.0
    ) -> None:
        """Start at c = 0 with a = 0, or a = 1 for good; `sign` −1 gives the antithetic path."""
        self.b, self.d, self.batch, self.trained, self.rng, self.sign = b, b.size, batch, trained, rng, sign
        self.W = W
        self.a, self.c = (0.0 if trained else 1.0), 0.0
        self.s = self.a * float(np.sum(W**2))
        self.energy = 2.0 * float(b @ b)

    def risks(self, stretches: Sequence[Stretch]) -> Iterator[tuple[float, float]]:
        """Walk; yield (t, normalised risk) before every step, and at the end."""
        t = 0.0
        for stretch in stretches:
            while t < stretch.end * (1.0 - 1e-12):
                h = min(
                    max(_FIRST, _GROWTH * t), _TOP / (16.0 * max(self.a, 0.1) * float(self.b.max())), stretch.end - t
                )
                yield t, self._step(h, stretch.step_size, t)
                t += h
        yield t, self._risk(self._sums(self.W, self.a), stretches[-1].step_size, t) / self.energy

    def _sums(self, W: FloatArray, a: float) -> _Sums:
        k = np.einsum("ij,ij->i", W, W)
        gram = W.T @ W if W.shape[1] <= self.d else W @ W.T
        T, with_b, norm = float(k.sum()), float(self.b @ k), float(np.sum(gram**2))
        g = 4.0 * a * a * T + self.trained * T * T + 1.0
        return _Sums(T, with_b, norm, a, g, a * a * norm - 2.0 * a * with_b + float(self.b @ self.b))

    def _risk(self, now: _Sums, step_size: float, t: float) -> float:
        """Return 2‖E‖² + s² + Var s."""
        fast = step_size * now.g
        if fast * (self.batch + 1.0) >= self.batch:  # beyond it the risk would not be finite
            instead = f"Pass a step size below {self.batch / ((self.batch + 1.0) * now.g):.2g}, or use simulate."
            got = f"{fast:.3g} for the step size {step_size:g}, at t = {t:.3g}"
            stable = "εg < 1 − 1/(batch + 1), g = 4a²Tr K + (Tr K)² + 1"
            raise NoTheorem.of("The limit of SGD", stable, got, instead)
        return (2.0 * now.error + self.s**2) / (1.0 - fast / (self.batch * (1.0 - fast)))

    def _step(self, h: float, step_size: float, t: float) -> float:
        """Make a step of h; return the normalised risk before it."""
        now, trained = self._sums(self.W, self.a), self.trained
        risk = self._risk(now, step_size, t)
        strength = 16.0 * step_size * risk / self.batch
        uneven = 8.0 * self._squared_error(now) / risk
        heat = strength * now.a**2 * self.d * now.T
        z = 2.0 * now.g * h
        weight = -np.expm1(-z) / z
        offset = now.a * now.T + self.c
        s0 = now.slaved(heat, trained)
        s = s0 + (offset - s0) * weight
        slope = trained * (4.0 * now.with_b - 4.0 * now.a * now.norm - 2.0 * s * now.T)
        ahead = self._sums(self._flowed(self.W, h, now.a + 0.5 * h * slope, s, step_size), now.a + h * slope)
        s1 = 0.5 * (s0 + ahead.slaved(heat, trained))
        s = s1 + (offset - s1) * weight
        slope_ahead = trained * (4.0 * ahead.with_b - 4.0 * ahead.a * ahead.norm - 2.0 * s * ahead.T)
        slope = 0.5 * (trained * (4.0 * now.with_b - 4.0 * now.a * now.norm - 2.0 * s * now.T) + slope_ahead)
        kick = np.sqrt(0.5 * h * strength)
        W, first = self._kicked(self.W, kick, uneven)
        W, second = self._kicked(self._flowed(W, h, now.a + 0.5 * h * slope, s, step_size), kick, uneven)
        self.W, self.a, self.c = W, self.a + h * slope + trained * 0.5 * kick * (first + second), self.c - 2.0 * h * s
        self.s = s1 + (self.s - s1) * np.exp(-z)
        return risk / self.energy

    def _squared_error(self, now: _Sums) -> FloatArray:
        """Return (E²)_ii."""
        W, a, b = self.W, now.a, self.b
        k, k2 = np.einsum("ij,ij->i", W, W), np.einsum("ij,ij->i", W @ (W.T @ W), W)
        return np.asarray(a * a * k2 - 2.0 * a * b * k + b * b)

    def _kicked(self, W: FloatArray, kick: float, uneven: FloatArray) -> tuple[FloatArray, float]:
        """Return W + a·kick·ZW and ⟨Z, WWᵀ⟩, Z a Gaussian orthogonal matrix but for its uneven variances.

        Entries of S have variance 16(L + 8(E²)_ii + 8(E²)_jj)/m, of which the last two are smaller by 1/d.
        """
        Z = self.rng.standard_normal((self.d, self.d))
        Z += Z.T.copy()
        Z *= np.sqrt(0.5 + 0.5 * np.add.outer(uneven, uneven))
        ZW = self.sign * (Z @ W)
        return W + (self.a * kick) * ZW, float(np.sum(ZW * W))

    def _flowed(self, W: FloatArray, h: float, a: float, s: float, step_size: float) -> FloatArray:
        """Return W after h of flow at constant a and s: ΦW(I + 16WᵀHW)^{−1/2} up to a rotation of the neurons."""
        from scipy.linalg import solve_triangular

        rate = 8.0 * a * self.b - 4.0 * a * s
        # A step multiplies a direction by 1 + ε·net, the flow by exp(ε·net): net is 0 where a direction is learned
        net = rate - 8.0 * a * a * np.einsum("ij,ij->i", W, W)
        rate += np.log1p(np.maximum(step_size * net, -0.9)) / step_size - net
        growth = np.exp(rate * h)
        H = a * a * np.divide(np.expm1(2.0 * rate * h), 2.0 * rate, out=np.full_like(rate, h), where=rate != 0.0)
        A = 16.0 * (W.T * H) @ W
        A[np.diag_indices_from(A)] += 1.0
        return np.asarray(solve_triangular(np.linalg.cholesky(A), (growth[:, None] * W).T, lower=True).T)

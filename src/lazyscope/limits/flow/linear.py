"""Gradient flow of the two linear models with σ = u² on the quadratic target, in closed form.

Both are trained in the paper's parametrisation, f = (1/N) Σ …, with gradients of the coefficients multiplied by N and
everything started at 0: Ẇ of NT and ȧ of RF are then of order 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray, fits_in_memory


@dataclass(frozen=True, eq=False)
class TangentFlow:
    """NT: f = (1/N)Σ 2⟨w_i,x⟩⟨v_i,x⟩ + c, V̇ = −4(2E + sI)W, ċ = −2s, with E = (WVᵀ + VWᵀ)/N − B, s = Tr E + Tr B + c.

    In the basis where K = WWᵀ/N = diag(k), E_ij decays like exp(−8(k_i + k_j)t) for i ≠ j. The diagonal and c descend
    together on 2‖diag E‖² + s² with mobilities 4k_i and 1: an eigenvalue problem of size d + 1. Directions with k = 0
    do not move, which leaves ‖P⊥BP⊥‖². Two eigendecompositions, and d² flops for every time.
    """

    k: FloatArray
    apart: FloatArray  # E_ij² for i ≠ j, at the start
    still: FloatArray  # diag E over the directions that do not move: the first ones
    rates: FloatArray
    modes: FloatArray  # columns: diag E and c of each mode
    start: FloatArray  # coefficient of each mode

    @classmethod
    def of(cls, W: FloatArray, B: FloatArray) -> TangentFlow:
        """Take weights W, rows, and the symmetric matrix B of the target, (d, d) or its diagonal."""
        N, d = W.shape
        k, U = np.linalg.eigh(W.T @ W / N)
        E = -(U.T @ (B[:, None] * U if B.ndim == 1 else B @ U))
        free = np.arange(d) >= d - min(N, d)
        k = np.where(free, np.maximum(k, 0.0), 0.0)
        own = np.diagonal(E)
        trace = float(B.sum() if B.ndim == 1 else np.trace(B))
        begin = np.append(own[free], trace + float(own[~free].sum()))
        root = np.sqrt(np.append(4.0 * k[free], 1.0))
        H = np.full((begin.size, begin.size), 2.0)
        H[:-1, :-1] += 4.0 * np.eye(begin.size - 1)
        rates, vectors = np.linalg.eigh(root[:, None] * H * root)
        apart = E**2
        apart[np.diag_indices(d)] = 0.0
        coefficients = vectors.T @ np.divide(begin, root, out=np.zeros_like(begin), where=root > 0.0)
        return cls(k, apart, own[~free].copy(), rates, root[:, None] * vectors, coefficients)

    def risk(self, times: FloatArray) -> FloatArray:
        """Return 2‖E‖² + s² at each time.

        >>> flow = TangentFlow.of(np.array([[1.0, 0.0]]), np.array([3.0, 1.0]))
        >>> flow.risk(np.array([0.0, 1e6])).round(6)  # 2‖B‖², and 2·1² for the direction that W does not see
        array([20.,  2.])
        """
        left = np.exp(-np.multiply.outer(times, np.maximum(self.rates, 0.0)))
        return self.risk_of(left, np.exp(-8.0 * np.multiply.outer(times, self.k)))

    def risk_of(self, left: FloatArray, decay: FloatArray) -> FloatArray:
        """Return 2‖E‖² + s², where `left` is left of each mode, and decay_i·decay_j of the E_ij of the start."""
        moving = (left * self.start) @ self.modes.T
        both = decay**2
        off = np.einsum("ti,ti->t", both @ self.apart, both)
        squares = off + float(self.still @ self.still) + np.sum(moving[:, :-1] ** 2, axis=1)
        return np.asarray(2.0 * squares + moving.sum(axis=1) ** 2)

    def squared_error(self, left: FloatArray, decay: FloatArray) -> FloatArray:
        """Return (E²)_ii, times × d."""
        moving = (left * self.start) @ self.modes[:-1].T
        own = np.concatenate([np.broadcast_to(self.still, (len(left), self.still.size)), moving], axis=1)
        return np.asarray(own**2 + decay**2 * (decay**2 @ self.apart))


@dataclass(frozen=True, eq=False)
class FeaturesFlow:
    """RF: f = (1/N)Σ a_i(⟨w_i,x⟩² − 1), ȧ = −2(Ua/N − V) with U_ij = E[φ_iφ_j], V_i = E[yφ_i].

    U_ij = 2⟨w_i,w_j⟩² + (‖w_i‖² − 1)(‖w_j‖² − 1) and V_i = 2⟨w_i, Bw_i⟩. One eigendecomposition of size N; the risk is
    2‖B‖² − (1/N)Σ_k v_k²(1 − e^{−4λ_kt})/λ_k over the eigenvalues λ_k of U/N.
    """

    energy: float
    rates: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, W: FloatArray, B: FloatArray) -> FeaturesFlow:
        """Take weights W, rows, and the symmetric matrix B of the target, (d, d) or its diagonal."""
        N = len(W)
        fits_in_memory(24.0 * N * N, f"The features' covariance at N = {N}", "Use a smaller width.")
        size = np.einsum("ij,ij->i", W, W) - 1.0
        U = 2.0 * (W @ W.T) ** 2 + np.multiply.outer(size, size)
        V = 2.0 * np.einsum("ij,ij->i", W * B if B.ndim == 1 else W @ B, W)
        rates, modes = np.linalg.eigh(U / N)
        energy = 2.0 * float(np.sum(B**2))
        # V has no part in the null space of U, but for rounding, which would grow with time
        seen = rates > N * np.finfo(np.float64).eps * rates[-1]
        return cls(energy, np.maximum(rates, 0.0), np.where(seen, (modes.T @ V) ** 2 / N, 0.0))

    def risk(self, times: FloatArray) -> FloatArray:
        """Return E(f − y)² at each time.

        >>> flow = FeaturesFlow.of(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3.0, 1.0]))
        >>> flow.risk(np.array([0.0, 100.0])).round(6)
        array([20.,  0.])
        """
        z = 4.0 * np.multiply.outer(times, self.rates)
        gain = np.where(z > 1e-12, -np.expm1(-z) / np.maximum(self.rates, 1e-300), 4.0 * times[:, None])
        return np.asarray(self.energy - gain @ self.weights)

"""The tangent model of the first layer and its kernel, by matrix products, never by its Jacobian.

    f(x) = (1/√N) Σ_i σ′(z_i)⟨v_i, x̃⟩,   z = Wx + b,   x̃ = (s x, β),     K = (SSᵀ ∘ X̃X̃ᵀ)/N,   S_ki = σ′(z_i(x_k)).

The Jacobian has n × N(d + 1) entries. A product with it or its transpose needs S alone, n × N, and one matrix product:

    JV = rowsums(S ∘ X̃Vᵀ)/√N,      Jᵀu = (diag(u)S)ᵀX̃/√N        (2nN(d + 1) flops each).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy import sparse

from lazyscope.checks import FloatArray
from lazyscope.estimators.base import Array, FirstLayer, product
from lazyscope.numerics.matrices import mirror

_BLOCK = 1 << 16  # entries of S at once: what is made of them stays in cache


@dataclass(frozen=True, eq=False)
class Tangent:
    """The tangent model at some inputs, by S (n, N) and X̃ (n, d + 1).

    >>> from lazyscope import Activation
    >>> layer = FirstLayer(np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2), Activation("relu"))
    >>> tangent = Tangent.of(layer, np.eye(2), 1.0, 0.0)
    >>> tangent.kernel().tolist(), tangent.times(np.ones(2)).round(12).tolist()
    ([[0.5, 0.0], [0.0, 0.5]], [0.5, 0.5])
    """

    S: Array
    X: Any

    @classmethod
    def of(cls, layer: FirstLayer, X: Any, scale: float, bias: float) -> Tangent:
        """Compute S for the rows of X; 2ndN flops."""
        S = layer.sigma.slope_at(layer.preactivations(X))
        if sparse.issparse(X):
            wide: Any = sparse.hstack([scale * X, np.full((X.shape[0], 1), bias)], format="csr", dtype=X.dtype)
        else:
            wide = np.empty((X.shape[0], X.shape[1] + 1), dtype=X.dtype)
            np.multiply(X, scale, out=wide[:, :-1])
            wide[:, -1] = bias
        return cls(S, wide)

    @property
    def parameters(self) -> int:
        """Number of parameters of the tangent model, N(d + 1)."""
        return int(self.S.shape[1] * self.X.shape[1])

    def kernel(self) -> FloatArray:
        """Return K, (n, n), symmetric; n²(N + d) flops, 16n² bytes."""
        from scipy.linalg.blas import dsyrk

        K = dsyrk(1.0 / self.S.shape[1], np.ascontiguousarray(self.S, dtype=np.float64).T, trans=1, lower=1)
        if sparse.issparse(self.X):
            K *= (self.X @ self.X.T).toarray()
        else:
            K *= dsyrk(1.0, np.ascontiguousarray(self.X, dtype=np.float64).T, trans=1, lower=1)
        mirror(K.T)
        return np.asarray(K)

    def jacobian(self) -> FloatArray:
        """Return J, (n, N(d + 1)), written out: for few parameters, and for tests."""
        X = self.X.toarray() if sparse.issparse(self.X) else self.X
        J = self.S[:, :, None] * X[:, None, :] / sqrt(self.S.shape[1])
        return np.asarray(J.reshape(len(X), -1), dtype=np.float64)

    def transposed(self, u: Array) -> Array:
        """Return Jᵀu, (N, d + 1), for u of shape (n,)."""
        from scipy.linalg.blas import dgemm, sgemm

        gemm = sgemm if self.S.dtype == np.float32 else dgemm
        total = np.zeros((self.S.shape[1], self.X.shape[1]), dtype=self.S.dtype)
        for part in self._parts():
            M = self.S[part] * u[part, None]
            if sparse.issparse(self.X):
                total += (self.X[part].T @ M).T
            else:
                gemm(1.0, self.X[part].T, M.T, trans_b=1, beta=1.0, c=total.T, overwrite_c=1)
        total /= sqrt(len(total))
        return total

    def forward(self, V: Array) -> Array:
        """Return JV, (n,), for V of shape (N, d + 1)."""
        f = np.empty(len(self.S), dtype=self.S.dtype)
        for part in self._parts():
            Z = np.asarray(self.X[part] @ V.T) if sparse.issparse(self.X) else product(self.X[part], V)
            np.einsum("ki,ki->k", self.S[part], Z, out=f[part])
        f /= sqrt(len(V))
        return f

    def times(self, u: Array) -> Array:
        """Return Ku = J(Jᵀu), (n,): 4nN(d + 1) flops."""
        return self.forward(self.transposed(u))

    def _parts(self) -> Any:
        n, N = self.S.shape
        size = max(64, _BLOCK // N)
        return [slice(start, min(n, start + size)) for start in range(0, n, size)]

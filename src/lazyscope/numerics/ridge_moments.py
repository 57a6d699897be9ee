"""Sufficient statistics of ridge regression: G = Σ v φφᵀ, Σ v φyᵀ, Σ v yy, Σ v φ, Σ v y, Σ v, added up over blocks.

Memory O(N²) whatever n. Sums are taken around the mean of the first block: to subtract a large mean at the end would
cost the digits that the small eigenvalues of G need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.numerics.gcv import RidgePath, dual, primal

Block = tuple[FloatArray, FloatArray, FloatArray | None]


@dataclass(frozen=True, eq=False)
class Solved:
    """Coefficients (N, R, k) and constants (R, k) for each ridge, with the path they come from."""

    path: RidgePath
    coefficients: FloatArray
    constants: FloatArray


class Moments:
    """Moments of N features and k targets.

    >>> moments = Moments(constant=True)
    >>> moments.add(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]), None)
    >>> solved = moments.solve(np.array([1e-12]))
    >>> solved.coefficients.item().__round__(6), solved.constants.item().__round__(6)
    (2.0, 1.0)
    """

    def __init__(self, constant: bool) -> None:
        self.constant, self.n = constant, 0.0

    def add(self, Phi: FloatArray, Y: FloatArray, v: FloatArray | None) -> None:
        """Add rows; Phi is overwritten. nN² flops."""
        from scipy.linalg.blas import dgemm, dsyrk

        if self.n == 0.0:
            N, k = Phi.shape[1], Y.shape[1]
            self.reference = np.average(Phi, axis=0, weights=v) if self.constant else np.zeros(N)
            self.target = np.average(Y, axis=0, weights=v) if self.constant else np.zeros(k)
            self.G, self.b = np.zeros((N, N), order="F"), np.zeros((N, k))
            self.energy, self.mean, self.label = np.zeros(k), np.zeros(N), np.zeros(k)
        Phi -= self.reference
        Y = Y - self.target
        if v is not None:
            root = np.sqrt(v)[:, None]
            Phi *= root
            Y = Y * root
            self.mean += np.einsum("nm,n->m", Phi, root[:, 0])
            self.label += np.einsum("nk,n->k", Y, root[:, 0])
        else:
            self.mean += Phi.sum(axis=0)
            self.label += Y.sum(axis=0)
        self.n += float(len(Phi) if v is None else v.sum())
        self.G = dsyrk(1.0, Phi.T, beta=1.0, c=self.G, lower=1, overwrite_c=1)
        self.b += dgemm(1.0, Phi.T, Y)
        self.energy += np.einsum("nk,nk->k", Y, Y)

    def solve(self, ridges: FloatArray | None) -> Solved:
        """Return the path; the sums stay as they are, so that more rows may follow."""
        G, b, energy = np.array(self.G, order="F"), self.b, self.energy
        mean, label = self.mean / self.n, self.label / self.n
        if self.constant:
            G -= self.n * np.multiply.outer(mean, mean)
            b = b - self.n * np.multiply.outer(mean, label)
            energy = np.maximum(energy - self.n * label**2, 0.0)
        path = primal(G, b, energy, self.n, ridges, self.constant)
        constants = self.target + label - np.einsum("m,mrk->rk", self.reference + mean, path.solutions)
        return Solved(path, path.solutions, constants if self.constant else np.zeros_like(constants))


def from_rows(
    Phi: FloatArray, Y: FloatArray, v: FloatArray | None, ridges: FloatArray | None, constant: bool
) -> Solved:
    """Solve by the n × n Gram matrix; Phi is overwritten."""
    from scipy.linalg.blas import dgemm, dsyrk

    n, N = Phi.shape
    mean = np.average(Phi, axis=0, weights=v) if constant else np.zeros(N)
    label = np.average(Y, axis=0, weights=v) if constant else np.zeros(Y.shape[1])
    Phi -= mean
    Y = Y - label
    if v is not None:
        Phi *= np.sqrt(v)[:, None]
        Y *= np.sqrt(v)[:, None]
    K = dsyrk(1.0, Phi.T, trans=1, lower=1)
    path = dual(K, Y, float(n if v is None else v.sum()), ridges, constant)
    flat = np.asfortranarray(path.solutions.reshape(n, -1))
    a = dgemm(1.0, Phi.T, flat).reshape(N, len(path.ridges), Y.shape[1])
    return Solved(path, a, label - np.einsum("m,mrk->rk", mean, a))

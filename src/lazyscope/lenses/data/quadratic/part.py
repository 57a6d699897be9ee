"""The linear and the quadratic part of a target, estimated from data.

    y ≈ c + ⟨β, z⟩ + ⟨z, Bz⟩ − Tr B + rest,        z the inputs, whitened.

For Gaussian z Stein's identity gives B = ½E[y(zzᵀ − I)], and the Hermite polynomials of degree one and two,

    z_i,   (z_i² − 1)/√2,   z_iz_j,      with coefficients   β_i,   √2 B_ii,   2B_ij,

are orthonormal: regression on them estimates the same B with less noise, since each coefficient is told apart from the
others, and it means the best quadratic function where z is not Gaussian. Sampling noise inflates ‖B‖² and drives the
eigenvalues apart; both are taken out again (`spectrum`). Shares of the variance are what each part explains after the
one before it, on rows that its coefficients were not fitted to (`cross_fitted`), with standard errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.data.quadratic.cross_fitted import Shares, shares
from lazyscope.lenses.data.quadratic.spectrum import without_noise

_PER_COEFFICIENT = 2.5  # samples that every coefficient needs at least
_MOST_DIRECTIONS = 60
_SEEN = 0.02  # of the variance that a Gaussian feature has
_SIGNIFICANT = 3.0


@dataclass(frozen=True, eq=False)
class Whitening:
    """z = V(x − m), of covariance I: C^{−1/2} where all directions stay, so that z_j is column j without the others.

    Of fewer directions than columns, the leading principal ones, each to variance one. `kept` is their share of the
    variance, and `there` how many directions have any: fewer than there are columns where some depend on others.
    """

    mean: FloatArray
    V: FloatArray
    kept: float
    there: int

    @classmethod
    def of(cls, X: FloatArray, most: int) -> Whitening:
        """Learn it from the rows of X; directions without variance are left out."""
        mean = X.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(X - mean, rowvar=False, bias=True).reshape(X.shape[1], -1))
        order = np.argsort(values)[::-1]
        alive = order[values[order] > 1e-10 * max(float(values.max()), 1e-300)]
        chosen = alive[:most]
        kept = float(values[chosen].sum() / values[alive].sum())
        V = vectors[:, chosen].T / np.sqrt(values[chosen])[:, None]
        return cls(mean, vectors[:, chosen] @ V if len(chosen) == len(values) else V, kept, len(alive))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return z, (n, m), clipped where no Gaussian would be: one wild entry, squared, would outweigh the rest."""
        Z = (X - self.mean) @ self.V.T
        most = sqrt(2.0 * np.log(2.0 * Z.size)) + 1.0  # the largest of so many Gaussians, and a standard deviation
        return np.clip(Z, -most, most)


@dataclass(frozen=True, eq=False)
class QuadraticPart:
    """β (d,), B (d, d) corrected for sampling noise, and shares of the variance of y with their standard errors.

    `linear` + `quadratic` + `rest` = 1, the rest being noise and what is of higher order; `quadratic_z` says by how
    many standard deviations the quadratic part stands out from what noise alone would show: the lesser of the F-ratio's
    and of the share's own. `columns` is how many directions have variance where d were looked at: what is linear or
    quadratic in the others is part of the rest.
    """

    beta: FloatArray
    B: FloatArray
    linear: float
    quadratic: float
    rest: float
    linear_stderr: float
    quadratic_stderr: float
    quadratic_z: float
    columns: int = 0

    @property
    def whole(self) -> bool:
        """Whether all directions of the table were looked at."""
        return self.columns <= len(self.beta)

    @property
    def significant(self) -> bool:
        """Whether a quadratic part is there beyond doubt: three standard deviations of noise."""
        return self.quadratic_z > _SIGNIFICANT and self.quadratic > 0

    @property
    def spectrum(self) -> FloatArray:
        """Eigenvalues of B, the largest in size first."""
        values = np.linalg.eigvalsh(self.B)
        return np.asarray(values[np.argsort(-np.abs(values))])


def directions(n: int, d: int) -> int:
    """Return how many directions n samples allow: 2.5 samples for each of the m(m + 3)/2 + 1 coefficients.

    >>> directions(5000, 20), directions(400, 64)
    (20, 16)
    """
    m = int((sqrt(9.0 + 8.0 * (n / _PER_COEFFICIENT - 1.0)) - 3.0) / 2.0) if n > _PER_COEFFICIENT else 0
    return max(0, min(d, m, _MOST_DIRECTIONS))


def quadratic_part(Z: FloatArray, y: FloatArray) -> QuadraticPart:
    """Estimate β and B from whitened inputs Z, (n, d), and targets y, (n,).

    p = d(d + 3)/2 coefficients by least squares, and once more cross-fitted: 2np² flops, 16np bytes.

    >>> rng = np.random.default_rng(0)
    >>> Z = rng.standard_normal((2000, 3))
    >>> part = quadratic_part(Z, Z[:, 0] + 2.0 * Z[:, 1] ** 2 + rng.standard_normal(2000))
    >>> part.B.round(1)[1, 1], part.beta.round(1)[0], part.significant
    (np.float64(2.0), np.float64(1.0), True)
    """
    return strongest(Z, [y])[1]


def strongest(Z: FloatArray, targets: Sequence[FloatArray]) -> tuple[int, QuadraticPart]:
    """Return which of several targets has the largest quadratic part, and its parts; one decomposition for all."""
    n, d = Z.shape
    if n < 2 or directions(n, d) < d or d == 0:
        must = f"have {_PER_COEFFICIENT:g} rows for each of its d(d + 3)/2 + 1 coefficients"
        raise InvalidParameter.of("quadratic_part", "Z", must, f"shape {Z.shape}", "Pass fewer directions.")
    if any(np.ptp(y) == 0.0 for y in targets):
        raise InvalidParameter.of("quadratic_part", "y", "vary", "a constant")
    features = hermite_features(Z)
    features -= features.mean(axis=0)
    first = _Design.of(features[:, :d])
    second = _Design.of(first.left(features[:, d:]))
    told = shares(first.seen, second.seen, targets)
    parts = [_parts(first, second, y, share) for y, share in zip(targets, told, strict=True)]
    best = int(np.argmax([part.quadratic for part, _ in parts]))
    part, v = parts[best]
    return best, replace(part, B=_debiased(part.B, n, v))


def _parts(first: _Design, second: _Design, y: FloatArray, share: Shares) -> tuple[QuadraticPart, float]:
    """Return the parts of one target, B as least squares has it, and the variance of its coefficients."""
    n, d = first.Phi.shape
    y = y - y.mean()
    left = first.left(y)
    coefficients, rest = second.coefficients(left), second.left(left)
    squares = [float(left @ left), float(rest @ rest)]  # left over by β, by β and B
    freedom = n - 1 - first.rank - second.rank
    quadratic = min(share.quadratic, 1.0 - share.linear)
    stands_out = _standing_out(squares[0], squares[1], second.rank, freedom)
    part = QuadraticPart(
        beta=first.coefficients(y),
        B=_matrix(coefficients, d),
        linear=share.linear,
        quadratic=quadratic,
        rest=max(0.0, 1.0 - share.linear - quadratic),
        linear_stderr=share.linear_stderr,
        quadratic_stderr=share.quadratic_stderr,
        quadratic_z=min(stands_out, share.z),
    )
    return part, squares[1] / max(freedom, 1) * float(np.sum(1.0 / second.values)) / len(coefficients)


def _standing_out(before: float, after: float, parameters: int, freedom: int) -> float:
    """Return (F − 1) over its standard deviation without an effect, F the ratio of mean squares."""
    if parameters == 0 or freedom < 1:
        return 0.0
    if after <= 1e-12 * before:
        return np.inf
    F = (before - after) / parameters / (after / freedom)
    return (F - 1.0) / sqrt(2.0 / parameters + 2.0 / freedom)


def hermite_features(Z: FloatArray) -> FloatArray:
    """Return z_i, (z_i² − 1)/√2 and z_iz_j for i < j: (n, d(d + 3)/2), orthonormal for Gaussian z."""
    rows, columns = np.triu_indices(Z.shape[1], 1)
    return np.hstack([Z, (Z * Z - 1.0) / sqrt(2.0), Z[:, rows] * Z[:, columns]])


@dataclass(frozen=True, eq=False)
class _Design:
    """Features Φ, (n, p), and the eigenvectors of ΦᵀΦ in whose directions they vary.

    For Gaussian inputs and 2.5 samples a coefficient all eigenvalues are above a tenth of n. Where one is far below,
    as (z² − 1)/√2 of a column with two values, data say nothing of its coefficient: it is taken to be zero.
    """

    Phi: FloatArray
    values: FloatArray
    vectors: FloatArray

    @classmethod
    def of(cls, Phi: FloatArray) -> _Design:
        values, vectors = np.linalg.eigh(Phi.T @ Phi)
        seen = values > _SEEN * len(Phi)
        return cls(Phi, values[seen], vectors[:, seen])

    @property
    def seen(self) -> FloatArray:
        """The features in the directions in which they vary."""
        return self.Phi @ self.vectors

    @property
    def rank(self) -> int:
        return len(self.values)

    def coefficients(self, Y: FloatArray) -> FloatArray:
        """Return those of least squares, (p,) for Y (n,) and (p, k) for Y (n, k)."""
        turned = self.vectors.T @ (self.Phi.T @ Y)
        return np.asarray(self.vectors @ (turned.T / self.values).T)

    def left(self, Y: FloatArray) -> FloatArray:
        """Return what of Y the features do not explain."""
        return np.asarray(Y - self.Phi @ self.coefficients(Y))


def _matrix(second: FloatArray, d: int) -> FloatArray:
    """B from its coefficients √2 B_ii and 2B_ij."""
    B = np.diag(second[:d] / sqrt(2.0))
    rows, columns = np.triu_indices(d, 1)
    B[rows, columns] = B[columns, rows] = 0.5 * second[d:]
    return B


def _debiased(B: FloatArray, n: int, v: float) -> FloatArray:
    """Take the noise out of the eigenvalues, and scale them so that 2‖B‖² is the energy without noise."""
    d = len(B)
    energy = 2.0 * float(np.sum(B * B)) - 0.5 * d * (d + 1) * v
    if energy <= 0:
        return np.zeros_like(B)
    values, vectors = np.linalg.eigh(B)
    corrected = without_noise(values, n, v)
    size = float(corrected @ corrected)
    corrected *= sqrt(0.5 * energy / size) if size > 0 else 0.0
    return np.asarray((vectors * corrected) @ vectors.T)

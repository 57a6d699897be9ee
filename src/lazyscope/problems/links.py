"""Functions of r standard normal variables as sums of Hermite monomials, and what the sum tells a trainer.

    h(z) = E h + Σ_α h_α he_{α₁}(z₁) ⋯ he_{α_r}(z_r),      he_k = He_k/√k!,   |α| = α₁ + … + α_r

is an expansion in orthonormal functions. The energy of degree k is Σ_{|α| = k} h_α².
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product as combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.errors import InvalidParameter
from lazyscope.numerics.quadrature import MAX_DEGREE, hermite_functions, panels, root_density

Powers = NDArray[np.int64]
MANY = ("product", "staircase")
COMMITTEE = "committee-"
_NODES = {1: 40, 2: 32, 3: 18, 4: 11}  # of each half axis: at most 2·10⁵ points in all
_DEGREES = {1: 20, 2: 20, 3: 14, 4: 10}  # that a callable is expanded to
_RESOLVED = 1e-6  # of the energy, between a rule and one with two nodes fewer
_NOTHING = 1e-9  # a coefficient of a callable, relative to the root of the energy, that is rounding of the quadrature


@dataclass(frozen=True, eq=False)
class Expansion:
    """E h, Var h, and the monomials: powers α, (terms, r), and coefficients h_α, none of them constant."""

    mean: float
    energy: float
    powers: Powers
    coefficients: FloatArray


def committee(neuron: Activation, r: int) -> Expansion:
    """Expand h = σ(z₁) + … + σ(z_r): the Hermite series of σ in each variable."""
    series = neuron.hermite_coefficients(1.0, MAX_DEGREE)
    energy = float(neuron.second_moment(1.0)) - float(series[0]) ** 2
    degrees = 1 + np.flatnonzero(np.abs(series[1:]) > 1e-13 * np.sqrt(energy))
    powers = np.concatenate([np.outer(degrees, np.eye(1, r, m, dtype=np.int64)[0]) for m in range(r)])
    return Expansion(r * float(series[0]), r * energy, powers, np.tile(series[degrees], r))


def polynomial(name: str, r: int) -> Expansion:
    """Expand a product z₁⋯z_r, or a staircase z₁ + z₁z₂ + … + z₁⋯z_r: Hermite monomials themselves."""
    steps = np.tril(np.ones((r, r), dtype=np.int64))
    powers = steps[-1:] if name == "product" else steps
    return Expansion(0.0, float(len(powers)), powers, np.ones(len(powers)))


def value(name: str, Z: NDArray[Any]) -> NDArray[Any]:
    """Return a named polynomial at the rows of Z."""
    along = np.cumprod(Z, axis=1)
    return np.asarray(along[:, -1] if name == "product" else along.sum(axis=1, dtype=Z.dtype))


@cache
def half_range(n: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss nodes and weights of the half normal density on z > 0, exact for polynomials of degree 2n − 1.

    By the Stieltjes recursion on a fine rule and the eigenvalues of its Jacobi matrix.

    >>> x, w = half_range(12)
    >>> print(f"{w @ x**2:.12f} {w @ x**4:.10f}")  # ½ and 3/2
    0.500000000000 1.5000000000
    """
    x, w = panels(np.linspace(0.0, 14.0, 29))
    w = w * root_density(x) ** 2
    p, before = np.full(x.size, 1.0 / np.sqrt(w.sum())), np.zeros(x.size)
    centre, off = np.empty(n), np.zeros(n)
    for k in range(n):
        centre[k] = w @ (x * p * p)
        following = (x - centre[k]) * p - off[k - 1] * before * (k > 0)
        off[k] = np.sqrt(w @ following**2)
        p, before = following / off[k], p
    values, vectors = np.linalg.eigh(np.diag(centre) + np.diag(off[: n - 1], 1) + np.diag(off[: n - 1], -1))
    return values, vectors[0] ** 2 * w.sum()


def expanded(function: Callable[[FloatArray], FloatArray], r: int) -> Expansion:
    """Expand a callable of (n, r) by a product rule that splits at z_i = 0, to degree 20, 14, 10 for r = 2, 3, 4.

    The rule is exact for polynomials on each orthant. A function whose energy it does not resolve is refused.
    """
    owner = "MultiIndex"
    if r not in _NODES:
        must = f"be one of the named ones for more than {max(_NODES)} indices: quadrature would take too long"
        raise InvalidParameter.of(owner, "link", must, f"a callable with {r} indices")
    (mean, energy, coefficients), (_, coarse, again) = (_projected(function, r, _NODES[r] - less) for less in (0, 2))
    if not energy > 1e-24 * max(1.0, mean * mean):
        raise InvalidParameter.of(owner, "link", "vary: a constant leaves nothing to learn", f"the constant {mean:.3g}")
    low = (slice(3),) * r  # degrees 0, 1 and 2 in each variable
    moved = float(np.max(np.abs(coefficients - again)[low])) / np.sqrt(energy)
    if not (abs(energy - coarse) <= _RESOLVED * energy and moved <= 10.0 * _RESOLVED):
        must = "have finite moments, and be smooth but where one of its arguments is 0"
        got = f"energies {coarse:.6g} and {energy:.6g} by two quadratures, and coefficients {moved:.1g} apart"
        raise InvalidParameter.of(owner, "link", must, got)
    K = _DEGREES[r]
    powers = np.array([a for a in combinations(range(K + 1), repeat=r) if 0 < sum(a) <= K], dtype=np.int64)
    values = coefficients[tuple(powers.T)]
    kept = np.abs(values) > _NOTHING * np.sqrt(energy)
    if not kept.any():
        must = f"have a Hermite coefficient in the degrees up to {K}"
        raise InvalidParameter.of(owner, "link", must, "none", "Simulate it as a problem of your own.")
    return Expansion(mean, energy, powers[kept], values[kept])


def _projected(function: Callable[[FloatArray], FloatArray], r: int, n: int) -> tuple[float, float, FloatArray]:
    """Return E h, Var h and E[h he_α] for all α of the expansion."""
    x, w = half_range(n)
    x, w = np.concatenate([-x[::-1], x]), np.concatenate([w[::-1], w])
    Z = np.stack([axis.ravel() for axis in np.meshgrid(*[x] * r, indexing="ij")], axis=1)
    must = f"return one finite number for each row of an array (n, {r})"
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(Z))
    except Exception as error:  # whatever a user's own function raises
        raise InvalidParameter.of("MultiIndex", "link", must, f"{type(error).__name__}: {error}") from error
    if values.dtype.kind not in "biuf":
        raise InvalidParameter.of("MultiIndex", "link", must, f"values of type {values.dtype}")
    values = values.astype(np.float64)
    if values.shape != (len(Z),):
        raise InvalidParameter.of("MultiIndex", "link", must, f"shape {values.shape} for {Z.shape}")
    if not np.all(np.isfinite(values)):
        raise InvalidParameter.of("MultiIndex", "link", must, "a value that is not finite")
    table = hermite_functions(x, _DEGREES[r]) / root_density(x) * w
    tensor = values.reshape([x.size] * r)
    for _ in range(r):  # each turn replaces the first axis by a degree and puts it last
        tensor = np.tensordot(tensor, table, axes=(0, 1))
    mean = float(tensor[(0,) * r])
    weight = w
    for _ in range(r - 1):
        weight = np.multiply.outer(weight, w)
    return mean, float(np.sum(weight.ravel() * (values - mean) ** 2)), tensor


def leap(powers: Powers) -> int:
    """Return the leap of a sum of Hermite monomials (Abbe, Boix-Adserà and Misiakiewicz 2023, Definition 1).

    Monomials are taken in an order of choice; one costs the sum of its powers in variables that none before it has.
    The leap is the largest cost, in the best order: always the cheapest next, since each only makes others cheaper.

    >>> leap(np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]])), leap(np.array([[1, 0, 0], [1, 1, 1]]))
    (1, 2)
    """
    known, left, largest = np.zeros(powers.shape[1], dtype=bool), powers, 0
    while len(left):
        costs = left[:, ~known].sum(axis=1)
        largest = max(largest, int(costs.min()))
        taken = costs == costs.min() if costs.min() == 0 else np.arange(len(left)) == int(np.argmin(costs))
        known |= left[taken].any(axis=0)
        left = left[~taken]
    return largest

"""The ridge that minimises the risk, by theory; here for random features in the proportional regime.

The risk is scanned over a grid of λ̄, four values a decade, and refined where its derivative vanishes, by bisection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray, arithmetic, positive_numbers
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.registry import find
from lazyscope.evidence.results import dataset
from lazyscope.limits.ridge import regression as theory
from lazyscope.limits.ridge.fixed_point import FixedPoint, solve
from lazyscope.limits.spectral import optimal as spectral
from lazyscope.problems import LinearTarget, Problem
from lazyscope.regimes import Regime

if TYPE_CHECKING:
    import xarray as xr

_SCAN = np.linspace(-20.0, 20.0, 161)  # decades of λ̄
_ADVICE = {
    "psi1": "Pass N/d, a sequence of values, or inf.",
    "psi2": "Pass n/d, a sequence of values, or inf.",
    "width": "Pass N, a sequence of values, or inf.",
    "samples": "Pass n, a sequence of values, or inf.",
}
_BISECTIONS = 45  # of half a decade: to rounding


def optimal_ridge(
    problem: Problem, regime: Regime, *, psi1: Any = None, psi2: Any = None, width: Any = None, samples: Any = None
) -> xr.Dataset:
    """Return the ridge λ ≥ 0 with the least risk by theory, and that risk.

    Zero where the signal is strong and the sizes are off the threshold N = n: no ridge is best, for a `LinearTarget` by
    the derivative of the risk at zero. Positive where it is weak, or near the threshold; infinite where there is noise
    and nothing that can be learnt.

    Parameters
    ----------
    problem, regime
        The target, with its noise, and the random features or the tangent model: those of `limit` that take a ridge.
    psi1, psi2
        N/d and n/d for a `LinearTarget`, numbers or sequences, which become dimensions; `inf` is the wide or the
        large-sample limit. The tangent model takes psi2 alone.
    width, samples
        N and n for a `HarmonicTarget` or a `SpectralTarget`, likewise.

    Returns
    -------
    xarray.Dataset
        `ridge`, to about 8 digits, in the convention of `limit`, with what `limit` returns there: its `risk`, `bias`,
        `variance`, `train` and so on.

    Examples
    --------
    >>> import lazyscope as ls
    >>> relu = ls.RandomFeatures("relu")
    >>> for noise in (0.2, 1.0):
    ...     best = optimal_ridge(LinearTarget(noise=noise), relu, psi1=float("inf"), psi2=3.0)
    ...     print(f"λ = {best.ridge:.4f}, risk {best.risk:.4f}")
    λ = 0.0000, risk 0.0406
    λ = 0.0531, risk 0.3028
    >>> cubic = ls.HarmonicTarget(20, [0.0, 0.5, 0.3, 0.2], noise=0.5)
    >>> best = optimal_ridge(cubic, relu, width=500, samples=300)
    >>> print(f"λ = {best.ridge:.4f}, risk {best.risk:.4f}")
    λ = 0.1427, risk 0.4656
    """
    owner = "optimal_ridge"
    given = {"psi1": psi1, "psi2": psi2, "width": width, "samples": samples}
    formula = spectral.theory_of(problem, regime)
    claim = theory.CLAIMS[0] if formula is None else find("limit", problem, regime)
    if formula is None:
        theory.pair(problem, regime)
    taken = [name for name in claim.arguments if name != "ridge"]
    for name, value in given.items():
        if value is not None and name not in taken:
            must = f"be left out: this risk is a function of {' and '.join(taken)}"
            raise InvalidParameter.of(owner, name, must, repr(value)[:60])
    sizes = {name: positive_numbers(given[name], owner, name, _ADVICE[name]) for name in taken}
    grid = np.meshgrid(*(np.atleast_1d(values) for values in sizes.values()), indexing="ij")
    points = tuple(values.ravel() for values in grid)
    values = _of_linear(problem, regime, *points) if formula is None else _checked(formula, problem, regime, points)
    dims = tuple(name for name, value in sizes.items() if value.ndim)
    shape = tuple(value.size for value in sizes.values() if value.ndim)
    return dataset(
        {name: ((name,) if value.ndim else (), value) for name, value in sizes.items()},
        {
            name: ((*dims, *claim.dims.get(name, ())), value.reshape((*shape, *value.shape[1:])))
            for name, value in values.items()
        },
        claim=claim,
        problem=problem,
        regime=regime,
        arguments={name: given[name] for name in taken},
    )


def _checked(
    formula: spectral.Theory, problem: Problem, regime: Regime, points: tuple[FloatArray, ...]
) -> dict[str, FloatArray]:
    with arithmetic("The arithmetic of optimal_ridge"):
        return spectral.least(formula, problem, regime, points)


def _of_linear(problem: Problem, regime: Regime, psi1: FloatArray, psi2: FloatArray) -> dict[str, FloatArray]:
    target, features = theory.pair(problem, regime)
    zeta, b_star = theory.constants(features)
    best, point = _least(target, zeta, psi1, psi2)
    return {"ridge": best * b_star**2, **theory.risks(target, point)}


def _least(problem: LinearTarget, zeta: float, psi1: FloatArray, psi2: FloatArray) -> tuple[FloatArray, FixedPoint]:
    """Return the best λ̄ of each pair, and its fixed point."""

    def at(ridge: FloatArray) -> FixedPoint:
        return solve(zeta, psi1, psi2, ridge).point

    def risk(ridge: FloatArray) -> FloatArray:
        return theory.risks(problem, at(ridge))["risk"]

    def slope(ridge: FloatArray) -> FloatArray:
        bias, variance = at(ridge).error_slopes
        return problem.signal**2 * bias + (problem.noise**2 + problem.nonlinear**2) * variance

    if not problem.signal:
        never = np.full_like(psi1, np.inf)
        return never, at(never)
    least, k = np.full_like(psi1, np.inf), np.zeros(psi1.shape, dtype=int)
    for i, decade in enumerate(_SCAN):
        here = risk(np.full_like(psi1, 10.0**decade))
        k, least = np.where(here < least, i, k), np.minimum(here, least)
    low, high = (_SCAN[np.clip(k + side, 0, len(_SCAN) - 1)] for side in (-1, 1))
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        rises = slope(10.0**middle) > 0.0
        low, high = np.where(rises, low, middle), np.where(rises, middle, high)
    best, zero = 10.0 ** (0.5 * (low + high)), np.zeros_like(psi1)
    # No ridge is best where the risk grows from zero on and is nowhere lower, up to rounding.
    none = (slope(zero) >= 0.0) & (risk(zero) <= risk(best) * (1.0 + 1e-13))
    none |= np.isinf(psi2)  # the fit to all of nature: a ridge only hurts, though in second order
    best = np.where(none, 0.0, best)
    return best, at(best)

"""Where the peak of double descent disappears.

At fixed ψ₂ and λ̄ the risk as a function of the width ψ₁ falls, rises to a peak near ψ₁ = ψ₂ and falls again. More ridge
moves valley and peak towards each other, until they meet in a point of inflection; beyond it the risk falls all along.

With a few features, ψ₁ → 0, the risk is F₁² + F⋆² + ψ₁((F₁² + τ² + F⋆²)/ψ₂ − F₁²ζ²/(1 + ζ²)), whatever the ridge. So it
rises from the first feature on, and the valley lies at ψ₁ = 0 for every ridge, unless

    ψ₂ > (1 + 1/ζ²)(1 + (τ² + F⋆²)/F₁²).                                                                  (1)

At a large ridge the peak disappears there: it moves to ψ₁ = 0 as ψ₂ grows to this bound.

Nothing has to be solved for along the curve: with c of `fixed_point` as its parameter, δ₂ = 1 − h/ψ₂, δ₁ = λ̄c/δ₂
and ψ₁ = h/(1 − δ₁), and c grows with ψ₁.
"""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import FloatArray, positive_numbers
from lazyscope.errors import InvalidParameter, NotConverged, NoTheorem
from lazyscope.evidence.results import dataset
from lazyscope.limits.ridge import regression as theory
from lazyscope.limits.ridge.fixed_point import FixedPoint, ridgeless
from lazyscope.problems import LinearTarget, Problem
from lazyscope.regimes import Regime

if TYPE_CHECKING:
    import xarray as xr

_CURVE = np.linspace(-10.0, 30.0, 401)  # logits of c/c(ψ₁ = ∞)
_FLAT = 1e-10  # dR/d(c/c(ψ₁ = ∞)) below which a rise is rounding
_DECADE = log(10.0)
_RIDGES, _SAMPLES = (_DECADE * np.arange(-12.0, end) for end in (9.0, 16.0))  # log λ̄, log(ψ₂/bound (1) − 1)


def vanishing_peak(problem: Problem, regime: Regime, *, psi2: Any = None, ridge: Any = None) -> xr.Dataset:
    """Return the width at which the peak of double descent disappears: for given samples ψ₂, or for a given ridge λ.

    Parameters
    ----------
    problem, regime
        The target, with its noise, and the random features.
    psi2, ridge
        One of the two, a number or a sequence, which becomes a dimension. Given ψ₂ = n/d, the answer has the smallest
        ridge without a peak; given the ridge λ, the smallest ψ₂ without a peak.

    Returns
    -------
    xarray.Dataset
        `psi1`, the width N/d where valley and peak meet (to 7 digits), the other one of `psi2` and `ridge`, and `risk`
        there. For ψ₂ ≤ (1 + 1/ζ²)(1 + (τ² + F⋆²)/F₁²) no ridge removes the peak: `ridge` is ∞ and `psi1` 0. A large
        ridge has that bound as its `psi2`, with `psi1` 0.

    Examples
    --------
    >>> import lazyscope as ls
    >>> relu = ls.RandomFeatures("relu")
    >>> there = vanishing_peak(LinearTarget(noise=0.8**0.5), relu, psi2=10.0)
    >>> print(f"{there.psi1:.4f} {there.ridge / relu.activation.b_star**2:.6f}")
    3.8368 0.064727
    >>> back = vanishing_peak(LinearTarget(noise=0.8**0.5), relu, ridge=float(there.ridge))
    >>> print(f"{back.psi1:.4f} {back.psi2:.4f}")
    3.8368 10.0000
    """
    owner = "vanishing_peak"
    if (psi2 is None) == (ridge is None):
        got = "neither" if psi2 is None else "both"
        raise InvalidParameter.of(owner, "psi2", "be given, or else ridge, one of the two", got)
    target, features = theory.pair(problem, regime)
    if not target.signal:
        raise NoTheorem.of("A peak that disappears", "signal > 0", "signal = 0", "Without it no width is good.")
    zeta, b_star = theory.constants(features)
    given = "psi2" if ridge is None else "ridge"
    argument = positive_numbers(psi2 if ridge is None else ridge, owner, given, "Pass a number, or several.")
    if np.any(np.isinf(argument)):
        raise InvalidParameter.of(owner, given, "be finite", "inf")
    if given == "psi2":
        rows = [_meeting(target, zeta, float(value), None) for value in argument.ravel()]
    else:
        rows = [_meeting(target, zeta, None, float(value) / b_star**2) for value in argument.ravel()]
    table = np.array(rows).reshape(*argument.shape, 4)
    values = {"psi1": table[..., 0], "psi2": table[..., 1], "ridge": table[..., 2] * b_star**2, "risk": table[..., 3]}
    dims = (given,) * argument.ndim
    return dataset(
        {given: (dims, argument)},
        {name: (dims, value) for name, value in values.items() if name != given},
        claim=theory.CLAIMS[0],
        problem=problem,
        regime=regime,
        arguments={given: argument},
    )


def least_samples(problem: LinearTarget, zeta: float) -> float:
    """The right-hand side of (1): below it no ridge removes the peak.

    >>> least_samples(LinearTarget(noise=1.0), 1.0)
    4.0
    """
    return (1.0 + 1.0 / zeta**2) * (1.0 + (problem.noise**2 + problem.nonlinear**2) / problem.signal**2)


def _meeting(problem: LinearTarget, zeta: float, psi2: float | None, ridge: float | None) -> tuple[float, ...]:
    """Return ψ₁, ψ₂, λ̄ and the risk where valley and peak meet, given ψ₂ or λ̄.

    The steepest rise of the risk along the curve is positive while there is a peak: the root of it, in the logarithm
    of the one that is not given, of which more leaves no peak.
    """
    from scipy.optimize import brentq

    least = least_samples(problem, zeta)
    if psi2 is not None and psi2 <= least:
        return 0.0, psi2, np.inf, problem.energy

    def sizes(x: float) -> tuple[float, float]:
        return (least * (1.0 + exp(x)), ridge) if psi2 is None else (psi2, exp(x))  # type: ignore[return-value]

    def rise(x: float) -> float:
        return _steepest(problem, zeta, *sizes(x))[0] - _FLAT * (problem.energy + problem.noise**2)

    scan = _SAMPLES if psi2 is None else _RIDGES
    rising = [x for x in scan if rise(x) > 0.0]
    if not rising and ridge is not None:
        return 0.0, least, ridge, problem.energy
    if not rising or rising[-1] == scan[-1]:
        raise NotConverged(f"No place is found where the peak disappears for ψ₂ = {psi2}, λ̄ = {ridge}: too extreme.")
    root = sizes(brentq(rise, rising[-1], rising[-1] + _DECADE, xtol=1e-14, rtol=1e-14))
    point = _on_curve(zeta, *root, np.array([_steepest(problem, zeta, *root)[1]]))
    return float(point.psi1[0]), *root, float(theory.risks(problem, point)["risk"][0])


def _steepest(problem: LinearTarget, zeta: float, psi2: float, ridge: float) -> tuple[float, float]:
    """Return the largest dR/d(c/c(ψ₁ = ∞)) along the curve, and its c."""
    from scipy.optimize import minimize_scalar

    end = float(ridgeless(zeta, np.array(psi2), ridge))

    def rise(logit: FloatArray) -> FloatArray:
        c = end / (1.0 + np.exp(-logit))
        t = 1e-30  # a complex step: see FixedPoint.error_slopes
        bias, variance = _on_curve(zeta, psi2, ridge, c * (1.0 + 1j * t)).errors
        slope = problem.signal**2 * bias + (problem.noise**2 + problem.nonlinear**2) * variance
        return np.asarray(slope.imag / t * (end / c))

    k = int(np.clip(np.argmax(rise(_CURVE)), 1, len(_CURVE) - 2))
    bounds = (_CURVE[k - 1], _CURVE[k + 1])
    top = minimize_scalar(lambda x: -float(rise(np.array(x))), bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return -float(top.fun), end / (1.0 + exp(-float(top.x)))


def _on_curve(zeta: float, psi2: float, ridge: float, c: Any) -> FixedPoint:
    """Return the fixed point with this c, at the ψ₁ that has it."""
    h = c + zeta**2 * c / (1.0 + zeta**2 * c)
    delta2 = 1.0 - h / psi2
    delta1 = ridge * c / delta2
    return FixedPoint(zeta, h / (1.0 - delta1), np.asarray(psi2), c, delta1, delta2)

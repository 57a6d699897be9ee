"""When data can be separated: the smallest N/n, by the phase transition of the margin.

An invertible map of the features changes no separability, so that of the spectrum only r² remains, what the features
see of the score's variance. Data are separable with probability → 1 where N/n > ψ⋆ and → 0 where N/n < ψ⋆,

    ψ⋆ = min_c E[(−c r T − √(1 + c²(1−r²)) Z)₊²]

(Montanari et al. 2019; Candès and Sur 2020 for the logistic link), the square of a convex function of c. For random
features r² = B(0) grows with ψ₁ = N/d, and ψ⋆ falls: given n/d, one N/d solves N/n = ψ⋆(r).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import positive_numbers
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.results import dataset
from lazyscope.evidence.statement import Statement
from lazyscope.limits.margin.classifier import CLAIMS, spectrum_given, spectrum_of_features
from lazyscope.problems import LinearLabels
from lazyscope.regimes import GaussianFeatures, IsotropicFeatures, RandomFeatures

if TYPE_CHECKING:
    import xarray as xr

_OWNER = "separability_threshold"


def separability_threshold(
    problem: LinearLabels,
    regime: RandomFeatures | IsotropicFeatures | GaussianFeatures,
    *,
    psi1: Any = None,
    psi2: Any = None,
) -> xr.Dataset:
    """Return where data stop being separable: the smallest N/n, or the largest n/N, at which they still are.

    Parameters
    ----------
    problem
        `LinearLabels`: signal and link.
    regime
        `RandomFeatures`, with one of psi1 and psi2 given; `IsotropicFeatures` or `GaussianFeatures`, with neither.
    psi1
        N/d of random features, positive: a number or a sequence. The largest n/d is found, `psi2`.
    psi2
        n/d, positive: a number or a sequence. The smallest N/d of random features is found, `psi1`.

    Returns
    -------
    xarray.Dataset
        `ratio`, N/n at the threshold: above it data are separable, with probability → 1. `samples_per_feature` is its
        inverse, `seen` the correlation r of the score with its best linear prediction from the features; for random
        features the other of `psi1` and `psi2`. Labels without noise that features see in full are always separable:
        `ratio` is 0 and `samples_per_feature` ∞.

    Examples
    --------
    >>> f"{separability_threshold(LinearLabels(1.0), IsotropicFeatures()).ratio:.7f}"
    '0.4389391'
    >>> threshold = separability_threshold(LinearLabels(4.0), RandomFeatures("relu"), psi2=2.0)
    >>> f"N/d = {threshold.psi1:.4f}, N/n = {threshold.ratio:.4f}"
    'N/d = 0.8062, N/n = 0.4031'
    """
    if not isinstance(problem, LinearLabels):
        raise InvalidParameter.of(_OWNER, "problem", "be LinearLabels", type(problem).__name__)
    arguments = {name: value for name, value in (("psi1", psi1), ("psi2", psi2)) if value is not None}
    if isinstance(regime, RandomFeatures):
        if len(arguments) != 1:
            must = "be given, or psi2, but not both: the other is what is found"
            raise InvalidParameter.of(_OWNER, "psi1", must, "both" if arguments else "neither")
        (name, value), *_ = arguments.items()
        advice = "Pass N/d, for example psi1=3." if name == "psi1" else "Pass n/d, for example psi2=2."
        axis = positive_numbers(value, _OWNER, name, advice)
        if not np.all((axis >= 1e-9) & (axis <= 1e9)):
            raise InvalidParameter.of(_OWNER, name, "be between 1e-9 and 1e9", f"{np.max(axis):g}")
        find = _largest_samples if name == "psi1" else _smallest_width
        rows = np.array([find(problem, regime, value) for value in np.atleast_1d(axis).tolist()])
        other, dims = ("psi2", "psi1")[name == "psi2"], (name,) if axis.ndim else ()
        coordinates: dict[str, tuple[tuple[str, ...], Any]] = {name: (dims, axis)}
        columns = dict(zip((other, "ratio", "seen"), rows.T, strict=True))
    elif isinstance(regime, (IsotropicFeatures, GaussianFeatures)):
        if arguments:
            must = "be left out: the threshold of given features is a value of N/n"
            raise InvalidParameter.of(_OWNER, next(iter(arguments)), must, repr(next(iter(arguments.values())))[:60])
        seen = float(min(1.0, spectrum_given(regime, 1)[1][2].sum()))
        columns, coordinates, dims = {"ratio": np.array([_ratio(problem, seen)]), "seen": np.array([seen**0.5])}, {}, ()
    else:
        must = "be RandomFeatures, IsotropicFeatures or GaussianFeatures"
        raise InvalidParameter.of(_OWNER, "regime", must, type(regime).__name__)
    with np.errstate(divide="ignore"):
        columns["samples_per_feature"] = 1.0 / columns["ratio"]
    return dataset(
        coordinates,
        {key: (dims, column if dims else column[0]) for key, column in columns.items()},
        claim=next(claim for claim in CLAIMS if isinstance(regime, claim.regime)),
        problem=problem,
        regime=regime,
        arguments=arguments,
    )


def _ratio(problem: LinearLabels, seen: float) -> float:
    """ψ⋆ where the features see a share r² of the score's variance."""
    from lazyscope.limits.margin.newton import threshold

    value, _, c = threshold(seen, 1.0, *problem.agreement)
    return 0.0 if c > 1e7 else float(value)


def _seen(regime: RandomFeatures, psi1: float) -> float:
    from lazyscope.limits.margin.spectrum import averages

    law, points, *_ = spectrum_of_features(regime, np.array([psi1]))
    return float(min(1.0, averages(0.0, law[0], points)[4]))


def _largest_samples(problem: LinearLabels, regime: RandomFeatures, psi1: float) -> tuple[float, float, float]:
    """Return the largest n/d, N/n there, and r."""
    seen = _seen(regime, psi1)
    ratio = _ratio(problem, seen)
    return psi1 / ratio, ratio, seen**0.5


def _smallest_width(problem: LinearLabels, regime: RandomFeatures, psi2: float) -> tuple[float, float, float]:
    """Return the smallest N/d, N/n there, and r: a bracketed root, as ψ⋆ ≤ 1/2 falls while N/n grows."""
    from scipy.optimize import brentq

    def excess(log_psi1: float) -> float:
        psi1 = float(np.exp(log_psi1))
        return float(np.log(psi1 / psi2) - np.log(max(_ratio(problem, _seen(regime, psi1)), 1e-300)))

    top = np.log(0.5 * psi2)
    low = top - 1.0
    while excess(low) > 0.0:
        low -= 2.0
    psi1 = float(np.exp(brentq(excess, low, top + 1e-9, xtol=1e-13, rtol=1e-14)))
    return psi1, psi1 / psi2, _seen(regime, psi1) ** 0.5


STATEMENTS = (
    Statement(
        "Theorem (Montanari et al. 2019)",
        "data are separable from N/n = ψ⋆ on",
        ("montanari2019generalization",),
        "separability_threshold",
        figure="separability",
    ),
)

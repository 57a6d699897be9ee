"""How far from their lines the exact dots of a finite d lie, by the formulas for given N and d."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lazyscope.errors import LazyscopeError
from lazyscope.problems import GaussianMixture, QuadraticTarget
from lazyscope.problems.base import GaussianProblem
from lazyscope.regimes import RandomFeatures, Regime

SGD_ENDS = (
    "Compare these dots with the exact ones, which have the same d. SGD takes finite steps and stops after "
    "n = 10,000 d samples: NT and NN end above the exact dots, at d = 80 by 0.003 to 0.015, often more than their bars."
)
"""Of dots that SGD trains."""
_SEEN = 5e-4  # what three digits show
_DRAWS = 4  # of weights over which the tangent model of a mixture is averaged


def beside(problem: GaussianProblem, shown: Iterable[tuple[Regime, Sequence[int]]]) -> str:
    """Say by how much the means of the dots of some regimes lie beside their lines, at these widths.

    >>> print(beside(QuadraticTarget(np.arange(1.0, 41.0)), [(RandomFeatures(), [20, 80])]))
    Lines are for d → ∞. By the formulas for this N and d the means of many draws lie beside them: RF by up to −0.0...
    """
    from lazyscope.runs.verbs import limit

    parts, unknown = [], []
    for regime, widths in shown:
        try:
            lines = limit(problem, regime, rho=np.array(widths) / problem.d).risk.values
        except LazyscopeError:
            continue  # there is no line that a dot could lie beside
        means = _means(problem, regime, widths)
        if means is None:
            unknown.append(regime.label)
        elif max(abs(off := np.array(means) - lines)) >= _SEEN:
            parts.append(f"{regime.label} by {_range(float(off.min()), float(off.max()))}")
    said = "Lines are for d → ∞."
    if parts:
        said += f" By the formulas for this N and d the means of many draws lie beside them: {', '.join(parts)}."
        said += " That may be more than the bars; a larger d brings it nearer to 0."
    if unknown:
        said += f" No formula tells how far beside its line the mean of {', '.join(unknown)} lies at this d."
    return said


def _range(low: float, high: float) -> str:
    """Write an interval that 0 ends or is in: `up to +0.012`, or `−0.035 to +0.001`."""
    ends = [f"{value:+.3f}".replace("-", "−") for value in (min(low, 0.0), max(high, 0.0)) if abs(value) >= _SEEN]
    return " to ".join(ends) if len(ends) == 2 else f"up to {ends[0]}"


def _means(problem: GaussianProblem, regime: Regime, widths: Sequence[int]) -> list[float] | None:
    """Return the mean risk at each width, or None where no formula is known."""
    from lazyscope.experiments.lazy import covariance, gap

    try:
        if isinstance(problem, GaussianMixture):
            if isinstance(regime, RandomFeatures) and not regime.activation.is_square:
                return None
            return [float(np.mean(covariance.predicted(problem, regime, N, _DRAWS)[0])) for N in widths]
        assert isinstance(problem, QuadraticTarget)
        if isinstance(regime, RandomFeatures) and regime.weights is not None:
            return None
        return [gap.predicted(problem, regime, N)[0] for N in widths]
    except LazyscopeError:
        return None

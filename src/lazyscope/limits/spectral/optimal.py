"""The ridge with the least risk at given sizes, by the deterministic equivalents.

The risk is scanned over λ, two values a decade in units of n times the kernel's trace, and refined by golden sections
around the lowest: a minimum is flat, so that λ is known to about eight digits and the risk to all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.limits.spectral import harmonic, linear_tangent
from lazyscope.problems import HarmonicTarget, LinearTarget, Problem, SpectralTarget
from lazyscope.regimes import NeuralTangent, RandomFeatures, Regime

_SCAN = np.linspace(-22.0, 12.0, 69)  # decades of λ
_SECTIONS = 42  # of a decade: 1e-9
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_SAME = 1e-13  # of a risk: rounding

Theory = Callable[..., Mapping[str, FloatArray]]
_THEORIES: dict[tuple[type[Problem], type[Regime]], Theory] = {
    (HarmonicTarget, RandomFeatures): harmonic.random_features,
    (HarmonicTarget, NeuralTangent): harmonic.tangent_model,
    (SpectralTarget, RandomFeatures): harmonic.given_spectrum,
    (LinearTarget, NeuralTangent): linear_tangent.tangent,
}


def theory_of(problem: Problem, regime: Regime) -> Theory | None:
    """Return the formula that is minimised for a pair, if there is one here."""
    return _THEORIES.get((type(problem), type(regime)))


def least(theory: Theory, problem: Any, regime: Regime, sizes: tuple[FloatArray, ...]) -> dict[str, FloatArray]:
    """Return the best `ridge` of each point and what the theory says there; sizes are vectors of one length.

    About 110 evaluations of the theory. Zero where no ridge is as good as any, infinite where the risk falls to the
    end: there is noise and nothing to learn.
    """
    n = sizes[-1]
    points = n.shape
    trace = problem.trace if isinstance(problem, SpectralTarget) and problem.trace > 0.0 else 1.0  # others are near 1
    unit = trace * np.where(np.isfinite(n), np.maximum(1.0, n), 1.0)

    def at(ridge: FloatArray) -> dict[str, FloatArray]:
        return dict(theory(problem, regime, *sizes, ridge))

    def risk(decade: FloatArray) -> FloatArray:
        return at(unit * 10.0**decade)["risk"]

    lowest, k, last = np.full(points, np.inf), np.zeros(points, dtype=int), np.zeros(points)
    for i, decade in enumerate(_SCAN):
        last = risk(np.full(points, decade))
        k, lowest = np.where(last < lowest, i, k), np.minimum(last, lowest)
    low, high = (_SCAN[np.clip(k + side, 0, len(_SCAN) - 1)] for side in (-1, 1))
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [risk(inner[0]), risk(inner[1])]
    for _ in range(_SECTIONS):
        left = values[0] < values[1]  # the minimum is left of the right one
        low, high = np.where(left, low, inner[0]), np.where(left, inner[1], high)
        fresh = np.where(left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        value = risk(fresh)
        inner = [np.where(left, fresh, inner[1]), np.where(left, inner[0], fresh)]
        values = [np.where(left, value, values[1]), np.where(left, values[0], value)]
    middle = 0.5 * (low + high)
    best = unit * 10.0**middle
    none = at(np.zeros(points))["risk"] <= np.minimum(lowest, risk(middle)) * (1.0 + _SAME)
    result = at(np.where(none, 0.0, best))
    never = ~none & (last <= np.minimum(lowest, risk(middle)) * (1.0 + _SAME))
    if np.any(never):
        nothing = {"risk": problem.energy, "bias": problem.energy, "train": problem.energy + problem.noise**2}
        result = {
            name: np.where(never.reshape(never.shape + (1,) * (value.ndim - 1)), nothing.get(name, 0.0), value)
            for name, value in result.items()
        }
    return {"ridge": np.where(never, np.inf, np.where(none, 0.0, best)), **result}

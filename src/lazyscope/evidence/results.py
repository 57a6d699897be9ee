"""Labelled results: an xarray Dataset that says where every number comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lazyscope.evidence.claim import Claim
from lazyscope.files import jsonable
from lazyscope.problems.base import GaussianProblem, Problem
from lazyscope.regimes import Regime

if TYPE_CHECKING:
    import xarray as xr

LONG_NAMES = {
    "rho": "N/d, neurons per dimension",
    "width": "N, number of neurons",
    "psi1": "N/d, neurons per dimension",
    "psi2": "n/d, samples per dimension",
    "ridge": "ridge λ",
    "risk": "risk",
    "bias": "bias, F₁²𝓑",
    "variance": "variance, (τ² + F⋆²)𝓥",
    "margin": "largest margin κ⋆",
    "error": "probability of a wrong label",
    "alignment": "correlation ν with the best direction of the features",
    "seen": "r, what the features see of the score",
    "separable": "1 where some direction separates the labels",
    "support": "share of support vectors",
    "gap": "relative duality gap",
    "ratio": "N/n at the threshold",
    "stderr": "standard error of the mean over draws",
    "risk_draws": "risk of each draw",
    "psi": "solution ψ of the fixed point",
    "residual": "relative residual",
    "iterations": "iterations",
    "condition": "condition number of the system solved",
    "gradient": "norm of the gradient where the descent ended",
    "gain": "what the last tenth of the descent (at most 100 steps) lowered the risk by",
    "rank": "number of independent features",
    "degrees_of_freedom": "df₁, how many directions the fit uses",
    "learnt": "share of each degree that is learnt, ξ/(ξ + ν₂)",
    "degree": "degree of the harmonics",
    "converged": "1 where the tolerance was met",
    "draw": "index of the independent draw",
    "samples": "samples seen",
    "step": "steps of descent",
    "step_size": "step size",
    "step_size_best": "step size with the lowest risk at the end",
    "tested": "risk on fresh samples",
    "train": "risk on the samples that were fitted",
    "trace": "risk against samples seen, at the best step size",
    "risk_by_step": "risk at the end, for every step size",
    "diverged": "whether SGD diverged",
    "finite_size": "what finitely many samples may add to the risk",
    "difference": "simulated risk minus exact risk",
    "z": "difference beyond the finite-size term, in standard errors",
    "limit": "risk as N, d → ∞",
    "exact": "risk at finite N and d, n = ∞",
    "simulate": "risk of networks trained on drawn data",
}


def dataset(
    coordinates: Mapping[str, tuple[tuple[str, ...], Any]],
    variables: Mapping[str, tuple[tuple[str, ...], Any]],
    *,
    claim: Claim,
    problem: Problem,
    regime: Regime,
    arguments: Mapping[str, Any],
) -> xr.Dataset:
    """Assemble the Dataset that a verb returns, from name → (dimensions, values)."""
    import xarray as xr

    from lazyscope import __version__

    names = LONG_NAMES | ({"risk": "risk (1 = best constant)"} if isinstance(problem, GaussianProblem) else {})

    def labelled(some: Mapping[str, tuple[tuple[str, ...], Any]]) -> dict[str, Any]:
        """Add the long names at once: to look up each variable afterwards takes longer than all the rest."""
        return {name: (*value, {"long_name": names[name]} if name in names else {}) for name, value in some.items()}

    result = xr.Dataset(labelled(variables), labelled(coordinates))
    result.attrs = {
        "claim": claim.key,
        "fidelity": claim.fidelity,
        "theorem": claim.theorem,
        "citations": ",".join(claim.citations),
        "assumptions": "; ".join(claim.assumptions),
        **({"erratum": claim.erratum} if claim.erratum else {}),
        "problem": str(problem),
        "regime": str(regime),
        "label": regime.label,
        "arguments": json.dumps({name: jsonable(value) for name, value in arguments.items()}),
        "lazyscope_version": __version__,
    }
    return result

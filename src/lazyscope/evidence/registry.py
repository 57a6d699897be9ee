"""The registry that joins the three fidelities: which pair is served, on which theorem."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence.claim import Claim, Fidelity
from lazyscope.problems.base import Problem
from lazyscope.regimes import Regime, Trained

if TYPE_CHECKING:
    import xarray as xr

# Modules with a CLAIMS tuple, by fidelity. Adding a claim to one of them enrols it in the contract test,
# the documentation page and `lazyscope.evidence.registry`.
_MODULES: dict[Fidelity, tuple[str, ...]] = {
    "limit": (
        "lazyscope.limits.quadratic",
        "lazyscope.limits.mixture",
        "lazyscope.limits.ridge.regression",
        "lazyscope.limits.margin.classifier",
    ),
    "exact": (
        "lazyscope.population.projector",
        "lazyscope.population.minimum",
        "lazyscope.population.lazy_to_rich",
        "lazyscope.population.random_features",
        "lazyscope.population.tangent",
        "lazyscope.population.network",
        "lazyscope.population.bayes",
    ),
    "simulate": (
        "lazyscope.training.linear.features",
        "lazyscope.training.sgd.one_pass",
        "lazyscope.training.linear.ridge",
        "lazyscope.training.linear.margin",
        "lazyscope.training.taylor.learning",
        "lazyscope.training.mean_field.descent",
    ),
}


@cache
def _of(fidelity: Fidelity) -> tuple[Claim, ...]:
    return tuple(claim for name in _MODULES[fidelity] for claim in importlib.import_module(name).CLAIMS)


def claims() -> tuple[Claim, ...]:
    """Return everything that is implemented, with its theorem, hypotheses and declared rate.

    >>> {claim.regime.label for claim in claims() if claim.fidelity == "limit"} >= {"RF", "NT", "NN"}
    True
    """
    return tuple(claim for fidelity in _MODULES for claim in _of(fidelity))


def find(fidelity: Fidelity, problem: Problem, regime: Regime, method: str | None = None) -> Claim:
    """Return the claim that serves this pair, or refuse and name what does work."""
    if not isinstance(problem, Problem):
        must = "be a problem, such as QuadraticTarget or GaussianMixture"
        raise InvalidParameter.of(fidelity, "problem", must, type(problem).__name__)
    if not isinstance(regime, Regime):
        must = "be a regime, such as RandomFeatures, NeuralTangent or Trained"
        raise InvalidParameter.of(fidelity, "regime", must, type(regime).__name__)
    serving = [claim for claim in _of(fidelity) if _serves(claim, problem, regime)]
    for claim in serving:
        if claim.method == method:
            return claim
    if serving:
        methods = list(dict.fromkeys("left out" if claim.method is None else repr(claim.method) for claim in serving))
        must = f"be {' or '.join(methods)} for {type(problem).__name__} with {regime.label}"
        raise InvalidParameter.of(fidelity, "method", must, "nothing" if method is None else repr(method))
    # a limit has more hypotheses than `covers` asks for: it names the one that fails when it is asked itself
    others_serve = (c.fidelity for c in claims() if c.fidelity != "limit" and _serves(c, problem, regime))
    verbs = list(dict.fromkeys(others_serve))
    regimes = {claim.regime.__name__ for claim in _of(fidelity) if isinstance(problem, claim.problem)}
    nearest = f"Use {' or '.join(verbs)} for it." if verbs else ""
    others = f"With this problem, {fidelity} serves {', '.join(sorted(regimes)) or 'nothing'}"
    raise NoTheorem(
        f"No {fidelity} result is implemented for {type(problem).__name__} with {regime}. "
        f"{nearest} {others}, with suitable activations and weights.".replace("  ", " ")
    )


def _serves(claim: Claim, problem: Problem, regime: Regime) -> bool:
    if not isinstance(problem, claim.problem) or not isinstance(regime, claim.regime):
        return False
    scaled = isinstance(regime, Trained) and regime.alpha is not None
    return claim.scaled == scaled and claim.covers(problem, regime)


def cite(dataset: xr.Dataset) -> str:
    """Return BibTeX for what a result stands on.

    >>> import lazyscope as ls
    >>> print(ls.cite(ls.bayes(ls.QuadraticTarget([1.0])))[:45])
    @inproceedings{ghorbani2019limitations,
      aut
    """
    keys = str(getattr(dataset, "attrs", {}).get("citations", "")).split(",")
    if any(key not in _bibliography() for key in keys):
        must = "be a Dataset that a lazyscope verb returned"
        raise InvalidParameter.of("cite", "dataset", must, type(dataset).__name__)
    return bibtex(keys)


def bibtex(keys: Iterable[str]) -> str:
    """Return the BibTeX entries of citation keys, such as `Claim.citations`."""
    return "\n\n".join(_bibliography()[key] for key in keys)


@cache
def _bibliography() -> dict[str, str]:
    text = files("lazyscope.evidence").joinpath("references.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in text.split("\n\n") if entry.strip()]
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}

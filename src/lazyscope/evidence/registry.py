"""The registry that joins the three fidelities: which pair is served, on which theorem."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from lazyscope import plugins
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence.claim import Claim, Fidelity
from lazyscope.problems.base import Problem
from lazyscope.regimes import Regime, Trained

if TYPE_CHECKING:
    import xarray as xr

# Modules with a CLAIMS tuple, by fidelity. Adding a claim to one of them enrols it in the contract test,
# the documentation page and the verbs.
_MODULES: dict[Fidelity, tuple[str, ...]] = {
    "limit": (
        "lazyscope.limits.quadratic",
        "lazyscope.limits.mixture",
        "lazyscope.limits.multi_index",
        "lazyscope.limits.joint",
        "lazyscope.limits.sgd.order_parameters.claim",
        "lazyscope.limits.ridge.regression",
        "lazyscope.limits.margin.classifier",
        "lazyscope.limits.spectral.harmonic",
        "lazyscope.limits.spectral.linear_tangent",
        "lazyscope.limits.spectral.few_directions",
    ),
    "exact": (
        "lazyscope.population.projector",
        "lazyscope.population.minimum",
        "lazyscope.population.lazy_to_rich",
        "lazyscope.population.random_features",
        "lazyscope.population.tangent",
        "lazyscope.population.joint",
        "lazyscope.population.directions.giant_step",
        "lazyscope.population.network",
        "lazyscope.population.bayes",
        "lazyscope.population.harmonic",
        "lazyscope.population.harmonic_tangent",
    ),
    "simulate": (
        "lazyscope.training.linear.features",
        "lazyscope.training.sgd.one_pass",
        "lazyscope.training.linear.ridge",
        "lazyscope.training.linear.margin",
        "lazyscope.training.linear.harmonic",
        "lazyscope.training.linear.giant_step",
        "lazyscope.training.linear.few_directions",
        "lazyscope.training.taylor.learning",
        "lazyscope.training.mean_field.descent",
    ),
}


_REGISTERED: dict[str, Claim] = {}  # what users and other packages have brought, by key


def register(claim: Claim) -> None:
    """Let the verbs, the command line and the contract test know a claim of your own (docs/extending.md).

    Its key must be free; one that you registered yourself may be registered again, mended. Where a claim of lazyscope's
    own serves the same problem and regime with the same `method`, that one is asked first. A claim that is registered
    by hand is known to this process alone: workers of a sweep need the entry point `lazyscope.claims`.

    >>> register(claims()[0])
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The claim parameter of register must have a key of its own. Got limit/...
    """
    _REGISTERED[_admitted(claim).key] = claim


def _admitted(claim: Claim) -> Claim:
    """Return a claim that may join the registry, or say what it lacks."""
    if not isinstance(claim, Claim):
        raise InvalidParameter.of("register", "claim", "be a Claim", type(claim).__name__)
    if claim.fidelity not in _MODULES:
        must = f"have a fidelity of {', '.join(_MODULES)}"
        raise InvalidParameter.of("register", "claim", must, repr(claim.fidelity))
    if any(claim.key == known.key for known in _of(claim.fidelity)):
        taken = f"{claim.key}, which is taken"
        raise InvalidParameter.of("register", "claim", "have a key of its own", taken, "Give it another title.")
    known = _bibliography().keys() | _entries(claim.bibtex).keys()
    missing = [key for key in claim.citations if key not in known]
    if missing or not claim.citations:
        got = f"no entry for {', '.join(missing)}" if missing else "no citation"
        advice = "Pass bibtex=…, entries that begin @article{key, or the like."
        raise InvalidParameter.of("register", "claim", "cite something that has a BibTeX entry", got, advice)
    return claim


@cache
def load_installed() -> None:
    """Register the claims of other installed packages, and with them import their problems and regimes."""
    plugins.collect(plugins.CLAIMS, _take)


def _take(name: str, thing: Any) -> None:
    """Register what one entry point names: a claim, a tuple of claims, or a module with `CLAIMS`."""
    some = getattr(thing, "CLAIMS", thing)
    for claim in (some,) if isinstance(some, Claim) else tuple(some):
        known = _REGISTERED.setdefault(_admitted(claim).key, claim)
        if known is not claim:
            raise InvalidParameter.of("register", "claim", "have a key of its own", f"{claim.key}, which is taken")


@cache
def _of(fidelity: Fidelity) -> tuple[Claim, ...]:
    return tuple(claim for name in _MODULES[fidelity] for claim in importlib.import_module(name).CLAIMS)


@cache
def _for_types(fidelity: Fidelity, problem: type, regime: type) -> tuple[Claim, ...]:
    """Return those of our own claims that are for such a problem and regime: a few of some fifty."""
    return tuple(c for c in _of(fidelity) if issubclass(problem, c.problem) and issubclass(regime, c.regime))


def _asked(fidelity: Fidelity, pair: tuple[Problem, Regime] | None = None) -> Iterator[Claim]:
    """Yield claims in the order of asking: other people's last, so that no number of lazyscope changes."""
    kinds: list[type] = [type(noun) for noun in pair or ()]
    yield from _for_types(fidelity, *kinds) if kinds else _of(fidelity)
    load_installed()  # a pair that lazyscope serves itself never comes here
    yield from [claim for claim in _REGISTERED.values() if claim.fidelity == fidelity]


def claims(fidelity: Fidelity | None = None) -> tuple[Claim, ...]:
    """Return everything that is implemented, here and in other packages, with theorem, hypotheses and declared rate.

    With a `fidelity`, only claims of that fidelity.

    >>> {claim.regime.label for claim in claims() if claim.fidelity == "limit"} >= {"RF", "NT", "NN"}
    True
    """
    return tuple(claim for verb in _MODULES if fidelity in (None, verb) for claim in _asked(verb))


def find(fidelity: Fidelity, problem: Problem, regime: Regime, method: str | None = None) -> Claim:
    """Return the claim that serves this pair, or refuse and name what does work."""
    if not isinstance(problem, Problem):
        must = "be a problem, such as QuadraticTarget or GaussianMixture"
        raise InvalidParameter.of(fidelity, "problem", must, type(problem).__name__)
    if not isinstance(regime, Regime):
        must = "be a regime, such as RandomFeatures, NeuralTangent or Trained"
        raise InvalidParameter.of(fidelity, "regime", must, type(regime).__name__)
    serving = []
    for claim in _asked(fidelity, (problem, regime)):
        if _serves(claim, problem, regime):
            if claim.method == method and claim.assumes(problem, regime):
                return claim
            serving.append(claim)
    for claim in serving:  # one whose hypotheses fail says itself which one does
        if claim.method == method:
            return claim
    if serving:
        methods = list(dict.fromkeys("left out" if claim.method is None else repr(claim.method) for claim in serving))
        must = f"be {' or '.join(methods)} for {type(problem).__name__} with {regime.label}"
        raise InvalidParameter.of(fidelity, "method", must, "nothing" if method is None else repr(method))
    # a limit has more hypotheses than it declares: it names the one that fails when it is asked itself
    serve = [
        c for c in claims() if c.fidelity != "limit" and _serves(c, problem, regime) and c.assumes(problem, regime)
    ]
    verbs = [_how_to_ask(verb, [c.method for c in serve if c.fidelity == verb]) for verb in ("exact", "simulate")]
    verbs = [words for words in verbs if words]
    regimes = {claim.regime.__name__ for claim in _asked(fidelity) if isinstance(problem, claim.problem)}
    nearest = f"Use {' or '.join(verbs)} for it." if verbs else ""
    others = f"With this problem, {fidelity} serves {', '.join(sorted(regimes)) or 'nothing'}"
    raise NoTheorem(
        f"No {fidelity} result is implemented for {type(problem).__name__} with {regime}. "
        f"{regime.refused.get(fidelity, '')} {nearest} {others}, with suitable activations and weights.".replace(
            "  ", " "
        )
    )


def _how_to_ask(verb: str, methods: Sequence[str | None]) -> str:
    """Return a verb, with the method that it must be given, or nothing where it has no claim.

    >>> _how_to_ask("exact", [None, "ridge"]), _how_to_ask("simulate", ["margin"]), _how_to_ask("exact", [])
    ('exact', 'simulate with method="margin"', '')
    """
    if not methods:
        return ""
    return verb if None in methods else f'{verb} with method="{methods[0]}"'


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
    attributes = getattr(dataset, "attrs", {})
    keys = str(attributes.get("citations", "")).split(",")
    if any(key not in _references(keys) for key in keys):
        got = (
            f"one of {attributes['claim']}, which is not known here"
            if "claim" in attributes
            else type(dataset).__name__
        )
        raise InvalidParameter.of("cite", "dataset", "be a Dataset that a lazyscope verb returned", got)
    return bibtex(keys)


def has_entry(key: str) -> bool:
    """Return whether the bibliography has an entry of this key."""
    return key in _references([key])


def bibtex(keys: Iterable[str]) -> str:
    """Return the BibTeX entries of citation keys, such as `Claim.citations`."""
    keys = tuple(keys)
    return "\n\n".join(_references(keys)[key] for key in keys)


def _references(keys: Iterable[str]) -> dict[str, str]:
    """Return the bibliography, with the entries that other packages bring where it lacks one of these keys."""
    if all(key in _bibliography() for key in keys):
        return _bibliography()
    load_installed()
    return {
        key: text for claim in _REGISTERED.values() for key, text in _entries(claim.bibtex).items()
    } | _bibliography()


@cache
def _bibliography() -> dict[str, str]:
    return _entries(files("lazyscope.evidence").joinpath("references.bib").read_text(encoding="utf-8"))


def _entries(text: str) -> dict[str, str]:
    """Return the entries of a BibTeX text by their keys; each begins a line.

    >>> _entries("@article{one, year = 2019}")
    {'one': '@article{one, year = 2019}'}
    """
    starts = list(re.finditer(r"^[ \t]*@\w+\s*\{\s*([^,\s]+)\s*,", text, re.MULTILINE))
    ends = [*(start.start() for start in starts[1:]), len(text)]
    return {start[1]: text[start.start() : end].strip() for start, end in zip(starts, ends, strict=False)}

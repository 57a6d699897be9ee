"""The contract that claims and activations keep, here and in other packages: `check(claim)` in a test is enough.

It asks through the public verbs, at the sizes below, and raises an AssertionError whose one line says what is amiss.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.activations import Activation
from lazyscope.activations.activation import definition
from lazyscope.errors import LazyscopeError
from lazyscope.evidence.claim import Claim, Fidelity
from lazyscope.evidence.registry import cite, find
from lazyscope.problems import SizedProblem
from lazyscope.protocols import SGD, ParticleDescent
from lazyscope.runs import verbs

if TYPE_CHECKING:
    import xarray as xr

# Rates are measured in many middling dimensions with many draws: as sharp as up to 800 with 40, at a third of the cost.
DIMENSIONS, EXACT_DRAWS = (50, 70, 100, 140, 200, 280, 400), 56
SIMULATED_DIMENSIONS, DRAWS = (17, 28, 46, 76, 125), 40
# Where a claim is asked: off the threshold and with a ridge, so that all is finite; trained for a short time only.
RATIOS = {"rho": 0.5, "psi1": 4.0, "psi2": 2.0, "ridge": 0.1, "width": 12, "samples": 100}
GIVEN = {"width": 80, "samples": 200}  # where a theorem that takes no limit is held to simulations
_SHORT: dict[Any, dict[str, Any]] = {
    SGD: {"protocol": SGD(steps=200, step_sizes=(0.01,))},
    ParticleDescent: {"width": 8, "samples": 500, "protocol": ParticleDescent(steps=100)},
}


def check(claim: Claim) -> None:
    """Check all that a claim declares.

    >>> import lazyscope as ls
    >>> check(ls.claims()[2])
    """
    check_result(claim)
    check_file(claim)
    if claim.fidelity == "limit":
        check_rate(claim)


def is_open(claim: Claim) -> bool:
    """Whether the claim's problem leaves its dimension open: no `exact` for it, a simulation has all sizes."""
    return not issubclass(claim.problem, SizedProblem)


def evaluate(
    claim: Claim, d: int, *, draws: int = 1, seed: int = 0, instance: tuple[Any, Any] | None = None
) -> xr.Dataset:
    """Return the result of an instance, by default the claim's example in d dimensions, asked through the verbs."""
    problem, regime = instance or claim.example(d)
    if not claim.arguments:
        return verbs.bayes(problem, fidelity=claim.fidelity)
    if claim.fidelity == "limit":
        return verbs.limit(
            problem, regime, method=claim.method, **{name: (RATIOS | {**claim.sizes})[name] for name in claim.arguments}
        )
    if is_open(claim):
        sizes = {"d": d, "width": int(RATIOS["psi1"] * d), "samples": int(RATIOS["psi2"] * d), "ridge": RATIOS["ridge"]}
    else:
        sizes = {"width": int(RATIOS["rho"] * d), "samples": 2000, "ridge": RATIOS["ridge"]}
    given: dict[str, Any] = {name: size for name, size in sizes.items() if name in claim.arguments}
    if claim.protocol is SGD:
        given.pop("samples")  # it counts steps
    given |= _SHORT.get(claim.protocol, {})
    if claim.fidelity == "exact":
        return verbs.exact(problem, regime, draws=draws, seed=seed, **given)
    return verbs.simulate(problem, regime, method=claim.method, draws=draws, seed=seed, **given)


def _must(holds: Any, claim: Claim, what: str) -> None:
    if not holds:
        raise AssertionError(f"{claim.key}: {what}")


def check_result(claim: Claim) -> None:
    """Check that the claim serves its own example with a finite, documented and reproducible result."""
    from lazyscope import __version__

    served = find(claim.fidelity, *claim.example(24), claim.method)
    _must(served is claim, claim, f"its example is served by another claim, {served.key}; give it a method")
    try:
        result = evaluate(claim, 24)
    except LazyscopeError as error:
        raise AssertionError(f"{claim.key}: its own example is refused. {error}") from None
    highest = 1.5 if claim.fidelity == "simulate" else 1.0 + 1e-12  # a short training may end anywhere
    _must(0.0 <= float(result.risk) <= highest, claim, f"the risk is {float(result.risk):g}, not between 0 and 1")
    for name, values in result.data_vars.items():
        _must(np.all(np.isfinite(values)), claim, f"{name} is not finite")
    known = {"claim": claim.key, "lazyscope_version": __version__}
    for word in ("claim", "lazyscope_version", "theorem", "assumptions", "problem", "regime", "arguments", "citations"):
        _must(result.attrs[word] == known.get(word, result.attrs[word] or None), claim, f"the result lacks its {word}")
    _must(cite(result).count("@") == len(claim.citations), claim, "cite gives another number of entries than it has")
    _must(result.identical(evaluate(claim, 24)), claim, "one seed gave two numbers")


def check_file(claim: Claim) -> None:
    """Check that the result is the same after a netCDF file."""
    import xarray as xr

    result = evaluate(claim, 24, draws=2)
    with TemporaryDirectory() as folder:
        result.to_netcdf(Path(folder) / "result.nc", engine="h5netcdf")
        with xr.open_dataset(Path(folder) / "result.nc", engine="h5netcdf") as back:
            _must(back.load().identical(result), claim, "the result is another one after a netCDF file")


def check_rate(claim: Claim) -> None:
    """Check a limit against `exact`, or `simulate` where d is open: equal, or approached at the declared rate."""
    if is_open(claim) and not claim.arguments:
        return  # nothing else computes it
    if "samples" in claim.arguments:
        _check_at_sizes(claim)
        return
    simulated = is_open(claim) or "times" in claim.arguments
    fidelity: Fidelity = "simulate" if simulated else "exact"
    dimensions = claim.dimensions or (SIMULATED_DIMENSIONS if simulated else DIMENSIONS)
    draws = DRAWS if simulated else EXACT_DRAWS
    try:
        others = [find(fidelity, *claim.example(d), claim.method if is_open(claim) else None) for d in dimensions]
    except LazyscopeError as error:
        raise AssertionError(f"{claim.key}: a limit is checked against another fidelity. {error}") from None
    limits = [float(evaluate(claim, d).risk) for d in dimensions]
    if claim.rate is None:
        for d, limit, other in zip(dimensions, limits, others, strict=True):
            away = abs(limit - float(evaluate(other, d, instance=claim.example(d)).risk))
            _must(away <= 1e-13, claim, f"{fidelity} is {away:.1e} away at d = {d}; declare a rate")
        return
    distance = []
    for d, limit, other in zip(dimensions, limits, others, strict=True):
        if "times" in claim.arguments:
            result = _trained_for(claim, d)
        else:
            result = evaluate(other, d, draws=draws, seed=1, instance=claim.example(d))
        risks = (result.risk_draws if "risk_draws" in result else result.risk).values
        distance.append(np.sqrt(np.mean((risks - limit) ** 2)))
    x = np.log(dimensions) - np.mean(np.log(dimensions))
    slope = x @ np.log(distance) / (x @ x)
    # The log of a root mean square over k draws has standard error 1/√(2k), the slope through dimensions 1/√(2k)/‖x‖:
    # 0.052 for `exact`, 0.071 for simulations. Three of those, and 0.05 for the next order in 1/d, small at d = 50.
    tolerance = 3 / np.sqrt(2 * draws) / np.linalg.norm(x) + 0.05
    _must(abs(slope + claim.rate) < tolerance, claim, f"measured d^{slope:.2f}, declared d^-{claim.rate}")


def _trained_for(claim: Claim, d: int) -> xr.Dataset:
    """Return draws of one-pass SGD in d dimensions, t·d steps of η/d: what a theorem along time is the limit of."""
    problem, regime = claim.example(d)
    steps, rate = round(claim.sizes["times"] * d), claim.sizes["step_size"] / (2.0 * d)
    protocol = SGD(steps=steps, batch=1, step_sizes=(rate,), decay=(), second_layer="sum")
    return verbs.simulate(problem, regime, width=int(claim.sizes["width"]), draws=DRAWS, seed=1, protocol=protocol)


def _check_at_sizes(claim: Claim) -> None:
    """Check a theorem that takes no limit against simulations at the same sizes, where there are any.

    Such a theorem has a relative error that falls with the sizes: for deterministic equivalents one draw scatters like
    the root of 1/min(n, N) around them (Defilippis et al. 2024, Theorem 3.3), which the standard error measures. The
    mean over draws lies at a distance of order 1/min(n, N), for which nothing is allowed here: at these sizes it is a
    fraction of the standard error of 40 draws. Over the 78 points of `tests/validation/test_every_size.py`, each of 16
    to 200 draws at sizes from 50 on, the mean of z is within ±0.5.
    """
    problem, regime = claim.example(claim.dimensions[0] if claim.dimensions else 24)
    sizes: dict[str, Any] = {name: (RATIOS | GIVEN | {**claim.sizes})[name] for name in claim.arguments}
    try:
        find("simulate", problem, regime, claim.method)
    except LazyscopeError:
        return
    if not np.isfinite(sizes["width"]):
        return  # no network has that width
    simulated = verbs.simulate(problem, regime, method=claim.method, draws=DRAWS, seed=1, **sizes)
    theory = float(verbs.limit(problem, regime, method=claim.method, **sizes).risk)
    allowed = 4.0 * float(simulated.stderr)
    away = abs(float(simulated.risk) - theory)
    _must(away < allowed, claim, f"simulations are {away:.2g} away, {allowed:.2g} are allowed")


def check_activation(name: str) -> None:
    """Check a named activation against its own function, taken as a callable: what else it declares must follow.

    >>> check_activation("gelu")
    """
    declared, named = definition(name), Activation(name)
    if declared is None:
        raise AssertionError(f"{name}: no activation has this name")
    plain = Activation(declared.function, kinks=declared.kinks)  # growth and smoothness are checked
    u = np.linspace(-3.0, 3.0, 101) + 0.0137  # off every kink at a round number
    scales = np.array([0.3, 1.0, 5.0, 30.0])  # of the weights: large ones ask for what lies beyond `settles`
    agree = {
        "degree": (named(2.0 * u), 2.0**declared.degree * named(u) if declared.degree is not None else named(2.0 * u)),
        "derivative": (named.derivative(u), plain.derivative(u)) if named.has_derivative else (u, u),
        "range (settles)": (named.hermite_coefficients(scales, 8), plain.hermite_coefficients(scales, 8)),
    }
    for what, (one, other) in agree.items():
        away = float(np.max(np.abs(one - other)))  # the callable's are good to near 1e-12; a mistake is far larger
        if not away <= 1e-9 * (1.0 + float(np.max(np.abs(other)))):
            raise AssertionError(f"{name}: its {what} and its function differ by {away:.1e}")
    if plain.has_derivative != named.has_derivative:
        raise AssertionError(f"{name}: a derivative belongs to a function that does not jump, and to no other")

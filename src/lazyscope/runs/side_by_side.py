"""The three fidelities side by side: their agreement is the evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lazyscope import __version__
from lazyscope.checks import jsonable, whole_number, whole_numbers
from lazyscope.errors import InvalidParameter, LazyscopeError, NoTheorem
from lazyscope.evidence.claim import Claim, Fidelity
from lazyscope.evidence.registry import claims, find
from lazyscope.evidence.results import LONG_NAMES
from lazyscope.problems.base import Problem, SizedProblem
from lazyscope.progress import report, within
from lazyscope.protocols import SGD, NoisySGD, ParticleDescent
from lazyscope.regimes import GiantStep, Regime
from lazyscope.runs import verbs
from lazyscope.runs.assembly import answer
from lazyscope.runs.verbs import run_of

if TYPE_CHECKING:
    import xarray as xr

_VERBS: tuple[Fidelity, ...] = ("limit", "exact", "simulate")
_AGREEMENT = ("difference", "stderr", "finite_size", "z")


def agreement(exact: xr.Dataset, simulated: xr.Dataset) -> xr.Dataset:
    """Return how far simulated risks lie from exact ones at the same widths, and how far they may.

    `difference` is simulated minus exact. Both fidelities see the same weights for the same seed, so it is taken draw
    by draw where both have the draws, and `stderr` is that of its mean: the weights' own scatter drops out.
    `finite_size` is what the simulation declares that finitely many samples may add, and z is what is beyond it,
    (|difference| − finite_size)₊, in standard errors. A standard error from a few draws is itself uncertain: z is the
    normal quantile that is as unlikely as that ratio is under Student's law with draws − 1 degrees of freedom.

    >>> import lazyscope as ls
    >>> target, regime = ls.QuadraticTarget.exponential(25), ls.RandomFeatures("relu")
    >>> exact = ls.exact(target, regime, width=[10, 30], draws=4)
    >>> found = agreement(exact, ls.simulate(target, regime, width=[10, 30], samples=40_000, draws=4))
    >>> bool((found.z < 3).all())
    True
    """
    import xarray as xr

    if "risk_draws" not in simulated:
        must = "be at least 2: a single draw has no standard error"
        raise InvalidParameter.of("compare", "draws", must, 1)
    of_draws = simulated.risk_draws.values
    paired = "risk_draws" in exact and "stderr" in exact and exact.risk_draws.shape == of_draws.shape
    differences = of_draws - (exact.risk_draws.values if paired else exact.risk.values[..., None])
    draws = differences.shape[-1]
    difference, stderr = differences.mean(axis=-1), differences.std(axis=-1, ddof=1) / np.sqrt(draws)
    if not paired and "stderr" in exact:
        stderr = np.hypot(stderr, exact.stderr.values)
    finite_size = simulated.finite_size.values
    z = as_normal(np.maximum(np.abs(difference) - finite_size, 0.0), stderr, draws)
    dims = simulated.risk.dims
    values = dict(zip(_AGREEMENT, (difference, stderr, finite_size, z), strict=True))
    result = xr.Dataset({name: (dims, value) for name, value in values.items()}, simulated.risk.coords)
    for name in result:
        result[name].attrs["long_name"] = LONG_NAMES[str(name)]
    return result


def as_normal(distance: NDArray[Any], stderr: NDArray[Any], draws: int) -> NDArray[Any]:
    """Return the normal quantile that is as unlikely as distance/stderr is under Student's law."""
    from scipy.stats import norm
    from scipy.stats import t as student

    ratio = np.divide(distance, stderr, out=np.full_like(distance, np.inf), where=stderr > 0)
    return np.asarray(np.where(distance > 0, norm.isf(student.sf(ratio, draws - 1)), 0.0))


def compare(
    problem: Problem,
    regimes: Regime | Sequence[Regime],
    *,
    width: Any,
    draws: int = 4,
    seed: int = 0,
    samples: int | None = None,
    protocol: SGD | None = None,
    d: int | None = None,
    ridge: Any = None,
    method: str | None = None,
) -> xr.Dataset:
    """Return the three fidelities side by side, and their difference in standard errors.

    Parameters
    ----------
    problem, regimes
        What nature does, and how the network is trained: one regime or several.
    width
        N: a number or a sequence; the limit is taken at ρ = N/d.
    draws, seed
        Of `exact` and `simulate`, at least two draws; both see the same weights.
    samples, protocol
        Of `simulate`: how many samples each model sees, and how SGD uses them; the paper's by default.
    d, ridge, method
        For problems that leave their dimension open, as in `simulate`; the limit is taken at N/d and n/d. A `method`
        whose limit is one of given N and n, such as "ridge" of `MultiIndex`, is compared with that limit.

    Returns
    -------
    xarray.Dataset
        Over `regime` and `width`: `limit`, `exact`, `simulate`, each NaN where there is no such result,
        `exact_stderr`, `simulate_stderr`, and from `agreement`: `difference`, `stderr`, `finite_size` and `z`.
        A problem of open dimension has no `exact`: its simulation is compared with the limit, which it approaches
        as d grows.

    Examples
    --------
    >>> import lazyscope as ls
    >>> target = ls.QuadraticTarget.exponential(30)
    >>> short = ls.SGD(batch=40, step_sizes=(0.01,))
    >>> regimes = [ls.RandomFeatures(), ls.NeuralTangent(), ls.Trained()]
    >>> result = ls.compare(target, regimes, width=[10, 30], samples=160_000, protocol=short)
    >>> bool((result.z < 3).all())
    True
    """
    some = list(regimes) if isinstance(regimes, Sequence) else [regimes]
    if not some or not all(isinstance(regime, Regime) for regime in some):
        raise InvalidParameter.of("compare", "regimes", "be a regime, or at least one in a sequence", repr(regimes))
    widths = np.atleast_1d(whole_numbers(width, "compare", "width"))
    whole_number(draws, "compare", "draws", least=2, advice="One draw has no standard error.")
    if not isinstance(problem, SizedProblem) or _at_given_sizes(problem, method):
        if protocol is not None:
            raise InvalidParameter.of("compare", "protocol", "be left out: nothing is trained by SGD here", protocol)
        sizes = {"d": d, "samples": samples, "ridge": ridge, "method": method, "draws": draws, "seed": seed}
        return _labelled([_against_limit(problem, regime, widths, sizes) for regime in some], some, problem, sizes)
    if protocol is not None and not isinstance(protocol, SGD):
        raise InvalidParameter.of("compare", "protocol", "be an SGD(…)", type(protocol).__name__)
    for name, value in {"d": d, "ridge": ridge, "method": method}.items():
        if value is not None:
            must = f"be left out: {type(problem).__name__} has its own" if name == "d" else "be left out here"
            raise InvalidParameter.of("compare", name, must, repr(value)[:60])
    for regime in some:
        _refuse_other_weights(problem, regime)
    if len(some) == 1:
        check_two(problem, some[0])
    columns = []
    how = {"samples": samples, "protocol": protocol, "seed": seed}
    for i, regime in enumerate(some):
        results: dict[str, xr.Dataset] = {}
        for j, verb in enumerate(_VERBS):
            report(3 * i + j, 3 * len(some), f"{regime.label}, {verb}")
            with within(), suppress(NoTheorem):
                results[verb] = _result(verb, problem, regime, widths, draws, how)
        if not results:
            find("limit", problem, regime)  # says why there is nothing
        columns.append(_column(problem, widths, results))
    report(3 * len(some), 3 * len(some), "done")
    told = {
        "draws": draws,
        "seed": seed,
        "samples": samples,
        "protocol": None if protocol is None else asdict(protocol),
    }
    return _labelled(columns, some, problem, told)


def _labelled(
    columns: Sequence[xr.Dataset], regimes: Sequence[Regime], problem: Problem, arguments: dict[str, Any]
) -> xr.Dataset:
    """Put the columns of several regimes together, with what they rest on."""
    import xarray as xr

    whole = xr.concat(columns, dim="regime", combine_attrs="drop").assign_coords(regime=list(map(str, regimes)))
    for name in whole.variables:
        whole[name].attrs.setdefault("long_name", LONG_NAMES.get(str(name), str(name)))
    whole.attrs = {
        "problem": str(problem),
        "claims": json.dumps([column.attrs for column in columns]),
        "arguments": json.dumps({name: jsonable(value) for name, value in arguments.items()}),
        "citations": ",".join(dict.fromkeys(key for column in columns for key in column.attrs["citations"].split(","))),
        "lazyscope_version": __version__,
    }
    return whole


def comparable(claim: Claim) -> bool:
    """Whether a simulation draws what `exact` draws: noisy SGD, particles and a giant step have draws of their own."""
    return claim.protocol not in (NoisySGD, ParticleDescent) and claim.regime is not GiantStep


def _refuse_other_weights(problem: Problem, regime: Regime) -> None:
    own = (c for c in claims() if c.fidelity == "simulate" and isinstance(problem, c.problem))
    if any(isinstance(regime, claim.regime) and not comparable(claim) for claim in own):
        hypothesis, got = "the same draws in exact and simulate", f"{type(problem).__name__} with {regime}"
        raise NoTheorem.of("A comparison", hypothesis, got, "Call simulate by itself.")


def check_two(problem: Problem, regime: Regime) -> None:
    """Refuse a pair that only one fidelity serves: there is nothing to compare it with.

    >>> import lazyscope as ls
    >>> check_two(ls.MultiIndex(6, "he3"), ls.Trained("erf"))
    Traceback (most recent call last):
    lazyscope.errors.NoTheorem: A comparison assumes two of limit over widths, exact and simulate. Got ...
    """
    known = []
    for verb in _VERBS:
        with suppress(LazyscopeError):
            if "times" not in find(verb, problem, regime).arguments:
                known.append(verb)
    if len(known) == 1:
        got = f"{type(problem).__name__} with {regime}, which has {known[0]} alone"
        raise NoTheorem.of("A comparison", "two of limit over widths, exact and simulate", got, f"Use {known[0]}.")


def _at_given_sizes(problem: Problem, method: str | None) -> bool:
    """Whether the theorems of a problem speak of given N and n, so that a simulation can be held to them directly."""
    limits = (claim for claim in claims() if claim.fidelity == "limit" and isinstance(problem, claim.problem))
    return any("samples" in claim.arguments and claim.method == method for claim in limits)


def _against_limit(problem: Problem, regime: Regime, widths: NDArray[np.int64], sizes: dict[str, Any]) -> xr.Dataset:
    """Return limit and simulation of a problem of open dimension, and their difference in standard errors.

    The limit has no draws; z is the normal quantile as unlikely as the ratio is under Student's law, as in `agreement`.
    """
    simulated = verbs.simulate(problem, regime, width=widths, **sizes)
    ratios: dict[str, Any] = {"width": widths, "samples": sizes["samples"]}
    if "psi1" in simulated.coords:
        ratios = {"psi1": simulated.psi1.values, "psi2": float(simulated.psi2)}
    if sizes["ridge"] is not None:
        ratios["ridge"] = sizes["ridge"]
    if "psi1" not in find("limit", problem, regime, sizes["method"]).arguments:
        ratios.pop("psi1", None)  # a theorem for N = ∞: the same at every width
    limit = verbs.limit(problem, regime, **ratios, method=sizes["method"])
    theory = np.broadcast_to(limit.risk.values, simulated.risk.shape)
    difference = simulated.risk.values - theory
    stderr = simulated.stderr.values
    values = {
        "limit": theory,
        "simulate": simulated.risk.values,
        "difference": difference,
        "stderr": stderr,
        "z": as_normal(np.abs(difference), stderr, int(sizes["draws"])),
    }
    cited = (key for result in (limit, simulated) for key in result.attrs["citations"].split(","))
    columns = simulated[["risk"]].assign({name: (simulated.risk.dims, value) for name, value in values.items()})
    columns["difference"].attrs["long_name"] = "simulated risk minus its limit"
    columns["z"].attrs["long_name"] = "difference in standard errors"
    return columns.drop_vars("risk").assign_attrs(
        limit=limit.attrs["theorem"], simulate=simulated.attrs["theorem"], citations=",".join(dict.fromkeys(cited))
    )


def _result(
    verb: Fidelity, problem: SizedProblem, regime: Regime, widths: NDArray[np.int64], draws: int, how: Mapping[str, Any]
) -> xr.Dataset:
    """Return one verb's answer; its claim takes those of the sizes and settings that it knows.

    A limit along time, with a step size of its own, has no place in a table over widths.
    """
    if verb == "limit" and "times" in find(verb, problem, regime).arguments:
        raise NoTheorem.of("A comparison over widths", "a limit without time", regime, "Use limit by itself for it.")
    sizes = {"rho": widths / problem.d, "width": widths, "samples": how["samples"]}
    protocol, seed = how["protocol"], how["seed"]
    run, scalar = run_of(verb, problem, regime, sizes, protocol=protocol, seed=seed, shared=True)
    return answer(run, 1 if verb == "limit" else draws, scalar)


def _column(problem: SizedProblem, widths: NDArray[np.int64], results: dict[str, xr.Dataset]) -> xr.Dataset:
    """Put one regime's answers together; NaN where there is none."""
    import xarray as xr

    nothing = np.full(len(widths), np.nan)
    values: dict[str, Any] = {verb: results[verb].risk.values if verb in results else nothing for verb in _VERBS}
    for verb in _VERBS[1:]:
        has = verb in results and "stderr" in results[verb]
        values[f"{verb}_stderr"] = results[verb].stderr.values if has else nothing
    both = "exact" in results and "simulate" in results
    agreed = agreement(results["exact"], results["simulate"]) if both else None
    for name in _AGREEMENT:
        values[name] = nothing if agreed is None else agreed[name].values
    cited = (key for result in results.values() for key in result.attrs["citations"].split(","))
    return xr.Dataset(
        {name: ("width", value) for name, value in values.items()},
        {"width": widths, "rho": ("width", widths / problem.d)},
        {verb: result.attrs["theorem"] for verb, result in results.items()}
        | {"citations": ",".join(dict.fromkeys(cited))},
    )

"""The verbs: problem × regime × fidelity → labelled risk."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.checks import positive_numbers, whole_number, whole_numbers
from lazyscope.errors import InvalidParameter
from lazyscope.evidence import Claim, Fidelity
from lazyscope.problems.base import Problem
from lazyscope.progress import report
from lazyscope.regimes import Bayes, FixedWeights, Regime
from lazyscope.registry import find
from lazyscope.results import dataset
from lazyscope.simulate.protocol import SGD

if TYPE_CHECKING:
    import xarray as xr


def limit(problem: Problem, regime: Regime, *, rho: Any = None) -> xr.Dataset:
    """Return the asymptotic risk: N, d → ∞ with N/d → ρ, by the theorem that the result names.

    Parameters
    ----------
    problem, regime
        What nature does, and how the network is trained.
    rho
        N/d, positive: a number or a sequence, which becomes the dimension `rho`; `inf` is the wide limit.
        For `Trained`, ρ stands for N = round(ρd). May be left out with `FixedWeights`.

    Returns
    -------
    xarray.Dataset
        `risk`, normalised so that the best constant has risk 1, and what the fixed point left (`residual`).

    Raises
    ------
    NoTheorem
        Outside the hypotheses; the message names the one that failed and what works instead.

    Examples
    --------
    >>> import lazyscope as ls
    >>> target = ls.QuadraticTarget.exponential(450, seed=100)
    >>> ls.limit(target, ls.Trained(), rho=[0.2, 0.5]).risk.values.round(5)
    array([0.20315, 0.03237])
    """
    claim = _claim_over("rho", "limit", problem, regime)
    weights = getattr(regime, "weights", None)
    if rho is None and isinstance(weights, FixedWeights):
        rho = weights.W.shape[1] / weights.W.shape[0]
    advice = "Pass N/d, for example rho=0.5, a sequence of values, or inf."
    ratio = positive_numbers(rho, "limit", "rho", advice)
    values = claim.evaluate(problem, regime, np.atleast_1d(ratio))
    dims = ("rho",) if ratio.ndim else ()
    return dataset(
        {"rho": (dims, ratio)},
        {name: (dims, value if ratio.ndim else value[0]) for name, value in values.items()},
        claim=claim,
        problem=problem,
        regime=regime,
        arguments={"rho": rho},
    )


def exact(problem: Problem, regime: Regime, *, width: Any = None, draws: int = 1, seed: int = 0) -> xr.Dataset:
    """Return the population risk at finite N and d, for drawn weights and without samples.

    Parameters
    ----------
    problem, regime
        What nature does, and how the network is trained.
    width
        N: a number or a sequence, which becomes the dimension `width`. Left out only with `FixedWeights`.
    draws
        Independent draws of the weights; `risk` is their mean and, from two draws on, `stderr` its standard
        error. For `Trained` with an activation other than the square, the draws are restarts of the descent
        and `risk` is the best.
    seed
        Draw k at width N depends on (seed, k, N) alone: not on the other widths, nor on the order.

    Returns
    -------
    xarray.Dataset
        `risk`, `stderr`, `risk_draws` over (`width`, `draw`), and what the solver reports.

    Examples
    --------
    >>> import lazyscope as ls
    >>> target = ls.QuadraticTarget.exponential(450, seed=100)
    >>> result = ls.exact(target, ls.NeuralTangent(), width=225, draws=4)
    >>> theory = ls.limit(target, ls.NeuralTangent(), rho=0.5)
    >>> print(f"{result.risk:.3f} ± {result.stderr:.3f} against {theory.risk:.3f}")
    0.373 ± 0.001 against 0.372
    """
    claim = _claim_over("width", "exact", problem, regime)
    weights = getattr(regime, "weights", None)
    if width is None and isinstance(weights, FixedWeights):
        width = weights.W.shape[1]
    if width is None:
        must = "be a positive whole number, or a one-dimensional sequence of them"
        raise InvalidParameter.of("exact", "width", must, None, "Pass N, for example width=450.")
    widths = whole_numbers(width, "exact", "width")
    draws = whole_number(draws, "exact", "draws")
    seed = whole_number(seed, "exact", "seed", least=0)
    if isinstance(weights, FixedWeights) and draws > 1:
        raise InvalidParameter.of("exact", "draws", "be 1 with FixedWeights: nothing is drawn", draws)
    rows: list[dict[str, Any]] = []
    total = widths.size * draws
    for N in np.atleast_1d(widths).tolist():
        for draw in range(draws):
            report(len(rows), total, f"{regime.label}, N = {N}")
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(draw, N)))
            rows.append(claim.evaluate(problem, regime, N, rng))
    report(total, total, "done")
    table = {name: np.array([row[name] for row in rows]).reshape(-1, draws) for name in rows[0]}
    outer = ("width",) if widths.ndim else ()
    return dataset(
        {"width": (outer, widths), "rho": (outer, widths / problem.d)},
        _over_draws(table, outer, best=claim.best_of_draws),
        claim=claim,
        problem=problem,
        regime=regime,
        arguments={"width": width, "draws": draws, "seed": seed},
    )


def _claim_over(argument: str, fidelity: Fidelity, problem: Problem, regime: Regime) -> Claim:
    """Find the claim of a network of some width; the Bayes floor has none and a verb of its own."""
    claim = find(fidelity, problem, regime)
    if argument not in claim.arguments:
        must = f"be a network, whose risk depends on {argument}"
        raise InvalidParameter.of(fidelity, "regime", must, regime, "Use lazyscope.bayes(problem).")
    return claim


def _over_draws(table: dict[str, Any], outer: tuple[str, ...], best: bool) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Reduce (width, draw) tables: the risk to its mean (or best) and standard error, the rest as it is."""
    risk = table["risk"]
    draws = risk.shape[1]

    def shaped(values: Any) -> Any:
        return values if outer else values[0]

    variables = {"risk": (outer, shaped(risk.min(axis=1) if best else risk.mean(axis=1)))}
    if draws > 1:
        if not best:
            variables["stderr"] = (outer, shaped(risk.std(axis=1, ddof=1) / np.sqrt(draws)))
        variables["risk_draws"] = ((*outer, "draw"), shaped(risk))
    for name, values in table.items():
        if name != "risk":
            single = draws == 1
            variables[name] = (
                outer if single else (*outer, "draw"),
                shaped(values[:, 0] if single else values),
            )
    return variables


def bayes(problem: Problem, *, fidelity: Fidelity = "limit") -> xr.Dataset:
    """Return the squared-error Bayes risk: the floor that no method beats, where it is known.

    `fidelity="limit"` is the large-d value; `"exact"` the value at the problem's own d.

    >>> import lazyscope as ls
    >>> mixture = ls.GaussianMixture.three_level(450, seed=0)
    >>> print(f"{ls.bayes(mixture).risk:.4f} {ls.bayes(mixture, fidelity='exact').risk:.4f}")
    0.3782 0.3773
    """
    if fidelity not in ("limit", "exact"):
        raise InvalidParameter.of("bayes", "fidelity", 'be "limit" or "exact"', repr(fidelity))
    regime = Bayes()
    claim = find(fidelity, problem, regime)
    values = claim.evaluate(problem, regime)
    return dataset(
        {},
        {name: ((), value) for name, value in values.items()},
        claim=claim,
        problem=problem,
        regime=regime,
        arguments={"fidelity": fidelity},
    )


def simulate(
    problem: Problem,
    regime: Regime,
    *,
    width: Any,
    samples: int | None = None,
    draws: int = 1,
    seed: int = 0,
    protocol: SGD | None = None,
) -> xr.Dataset:
    """Return the risk of networks trained on drawn data: N, d and n finite, by the papers' protocol.

    Parameters
    ----------
    problem, regime
        What nature does, and how the network is trained.
    width
        N: a number or a sequence, which becomes the dimension `width`. With SGD all widths see one stream of samples.
    samples
        n. Random features are fitted to 5·10⁵ samples by default; SGD makes samples/batch steps of its protocol.
    draws
        Independent repetitions, of the weights and of the data; from two on, `stderr` is that of their mean.
    seed
        Draw k of a stream depends on (seed, k), its weights at width N (and a fit's own stream) on (seed, k, N).
    protocol
        `SGD(…)` for regimes that are trained by SGD; the paper's by default.

    Returns
    -------
    xarray.Dataset
        `risk`, normalised as everywhere. With SGD it is that of the best step size, `step_size_best`, by the closed
        form for the population; `tested` is the same on fresh samples, `trace` the risk against `samples` seen, and
        `risk_by_step` and `diverged` show every step size (a diverged one has risk ∞).

    Examples
    --------
    >>> import lazyscope as ls
    >>> target = ls.QuadraticTarget.exponential(20)
    >>> fast = ls.SGD(steps=3000, batch=20, step_sizes=(0.01,))
    >>> result = ls.simulate(target, ls.Trained(), width=10, protocol=fast)
    >>> floor = ls.limit(target, ls.Trained(), rho=0.5)
    >>> bool(floor.risk < result.risk < floor.risk + 0.02)
    True
    """
    claim = _claim_over("width", "simulate", problem, regime)
    widths = whole_numbers(width, "simulate", "width")
    draws = whole_number(draws, "simulate", "draws")
    seed = whole_number(seed, "simulate", "seed", least=0)
    if samples is not None:
        samples = whole_number(samples, "simulate", "samples")
    flat = np.atleast_1d(widths).tolist()
    by_sgd = "protocol" in claim.arguments
    if protocol is not None and not by_sgd:
        must = "be left out: random features are fitted, not trained"
        raise InvalidParameter.of("simulate", "protocol", must, protocol)
    if protocol is not None and not isinstance(protocol, SGD):
        raise InvalidParameter.of("simulate", "protocol", "be an SGD(…)", type(protocol).__name__)
    plan = protocol or SGD()
    if by_sgd and samples is not None:
        if samples < plan.batch:
            raise InvalidParameter.of("simulate", "samples", f"fill at least one batch of {plan.batch}", samples)
        plan = replace(plan, steps=samples // plan.batch)
    rows = []
    for draw in range(draws):
        report(draw, draws, f"{regime.label}, draw {draw + 1} of {draws}")
        if by_sgd:
            rows.append(claim.evaluate(problem, regime, flat, plan, seed, draw))
        else:
            rows.append(claim.evaluate(problem, regime, flat, samples or 500_000, plan.test, seed, draw))
    report(draws, draws, "done")
    outer = ("width",) if widths.ndim else ()
    variables = _trained(rows, plan) if by_sgd else _fitted(rows)
    coordinates: dict[str, tuple[tuple[str, ...], Any]] = {
        "width": (outer, widths),
        "rho": (outer, widths / problem.d),
    }
    if by_sgd:
        coordinates["step_size"] = (("step_size",), np.array(plan.step_sizes))
        coordinates["samples"] = (("samples",), rows[0]["samples"][1])
    if not widths.ndim:
        variables = {name: (dims[1:], values[0]) for name, (dims, values) in variables.items()}
    arguments = {"width": width, "samples": samples, "draws": draws, "seed": seed}
    return dataset(
        coordinates,
        variables,
        claim=claim,
        problem=problem,
        regime=regime,
        arguments=arguments | ({"protocol": asdict(plan)} if by_sgd else {}),
    )


def _fitted(rows: list[dict[str, Any]]) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Average fits over draws: (width, draw) tables of risk and training error."""
    risk, train = (np.stack([row[name][1] for row in rows], axis=1) for name in ("risk", "train"))
    variables = _over_draws({"risk": risk}, ("width",), best=False)
    variables["train"] = (("width",), train.mean(axis=1))
    return variables


def _trained(rows: list[dict[str, Any]], plan: SGD) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Average traces over draws and keep, at each width, the step size whose mean risk at the end is lowest."""
    trace = np.stack([row["trace"][1] for row in rows])  # (draw, width, step size, samples)
    tested = np.stack([row["tested"][1] for row in rows])
    final = trace[..., -1].mean(axis=0)
    best = np.argmin(final, axis=1)
    here = np.arange(len(best))
    variables = _over_draws({"risk": trace[:, here, best, -1].T}, ("width",), best=False)
    variables["tested"] = (("width",), tested[:, here, best].mean(axis=0))
    variables["step_size_best"] = (("width",), np.array(plan.step_sizes)[best])
    variables["trace"] = (("width", "samples"), trace[:, here, best].mean(axis=0))
    variables["risk_by_step"] = (("width", "step_size"), final)
    variables["diverged"] = (("width", "step_size"), ~np.isfinite(final))
    return variables

"""The verbs: problem × regime × fidelity → labelled risk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray, non_negative_numbers, positive_numbers, whole_number, whole_numbers
from lazyscope.draws import Draw, Row, assemble
from lazyscope.errors import InvalidParameter
from lazyscope.evidence import Claim, Fidelity
from lazyscope.particle_runs import ParticleRun
from lazyscope.particle_runs import assemble as runs_assembled
from lazyscope.problems.base import Problem, SizedProblem, dimension_of
from lazyscope.progress import report
from lazyscope.regimes import Bayes, FixedWeights, MeanField, Regime
from lazyscope.registry import find
from lazyscope.results import dataset
from lazyscope.simulate.protocol import SGD, ParticleDescent
from lazyscope.simulate.randomized import NoisySGD
from lazyscope.trials import Trial
from lazyscope.trials import assemble as trials_assembled

if TYPE_CHECKING:
    import xarray as xr


_ADVICE = {
    "rho": "Pass N/d, for example rho=0.5, a sequence of values, or inf.",
    "psi1": "Pass N/d, for example psi1=2, a sequence of values, or inf.",
    "psi2": "Pass n/d, for example psi2=3, a sequence of values, or inf.",
    "ridge": "Pass λ, for example ridge=0.1 or a sequence of values; 0 is the ridgeless limit.",
}


def limit(
    problem: Problem,
    regime: Regime,
    *,
    rho: Any = None,
    psi1: Any = None,
    psi2: Any = None,
    ridge: Any = None,
    method: str | None = None,
) -> xr.Dataset:
    """Return the asymptotic risk: all sizes → ∞ in fixed proportion, by the theorem that the result names.

    Parameters
    ----------
    problem, regime
        What nature does, and how the network is trained.
    rho
        N/d, positive, where there are infinitely many samples; `inf` is the wide limit.
        For `Trained`, ρ stands for N = round(ρd). May be left out with `FixedWeights`.
    psi1, psi2
        N/d and n/d, positive, where neurons and samples grow with the dimension; `inf` is allowed.
    ridge
        λ of ridge regression; 0 is the ridgeless limit λ → 0⁺.
    method
        Which of the questions that a pair has an answer to, such as "margin".

    A sequence becomes a dimension of the result; which arguments a pair takes, `ls.claims()` tells.

    Returns
    -------
    xarray.Dataset
        `risk`, as the problem normalises it, what else the theorem gives (`bias`, `variance`, `train`, `margin`, …),
        and what a fixed point left (`residual`).

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
    claim = find("limit", problem, regime, method)
    if not claim.arguments:
        must = "be a network, whose risk depends on rho"
        raise InvalidParameter.of("limit", "regime", must, regime, "Use lazyscope.bayes(problem).")
    weights = getattr(regime, "weights", None)
    if rho is None and isinstance(weights, FixedWeights):
        rho = weights.W.shape[1] / weights.W.shape[0]
    given = {"rho": rho, "psi1": psi1, "psi2": psi2, "ridge": ridge}
    for name, value in given.items():
        if value is not None and name not in claim.arguments:
            must = f"be left out: this limit is a function of {' and '.join(claim.arguments)}"
            raise InvalidParameter.of("limit", name, must, repr(value)[:60])
    axes: dict[str, FloatArray] = {}
    for name in claim.arguments:
        check = non_negative_numbers if name == "ridge" else positive_numbers
        axes[name] = check(given[name], "limit", name, _ADVICE[name])
    values = claim.compute(problem, regime, *np.ix_(*(np.atleast_1d(axis) for axis in axes.values())))
    dims = tuple(name for name, axis in axes.items() if axis.ndim)
    whole = [slice(None) if axis.ndim else 0 for axis in axes.values()]
    arguments = {name: given[name] for name in axes} | ({} if method is None else {"method": method})
    return dataset(
        {name: ((name,) if axis.ndim else (), axis) for name, axis in axes.items()},
        {name: (dims, np.asarray(value)[tuple(whole)]) for name, value in values.items()},
        claim=claim,
        problem=problem,
        regime=regime,
        arguments=arguments,
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
    _claim_over("width", "exact", problem, regime)
    assert isinstance(problem, SizedProblem)  # all that `exact` serves
    weights = getattr(regime, "weights", None)
    if width is None and isinstance(weights, FixedWeights):
        width = weights.W.shape[1]
    widths = _widths(width, "exact")
    draws = whole_number(draws, "exact", "draws")
    seed = whole_number(seed, "exact", "seed", least=0)
    if isinstance(weights, FixedWeights) and draws > 1:
        raise InvalidParameter.of("exact", "draws", "be 1 with FixedWeights: nothing is drawn", draws)
    return _over_draws(
        Draw("exact", problem, regime, tuple(np.atleast_1d(widths).tolist()), 0, seed), draws, not widths.ndim
    )


def _over_draws(first: Draw, draws: int, scalar: bool) -> xr.Dataset:
    """Compute draw after draw, and report: all widths at once where they share a stream, else one by one."""
    together = [first.widths] if isinstance(first.protocol, SGD) else [(N,) for N in first.widths]
    plan = [replace(first, number=k, widths=widths) for widths in together for k in range(draws)]
    rows: list[Row] = []
    for draw in plan:
        sizes = f"N = {', '.join(map(str, draw.widths))}, " if len(draw.widths) < 4 else ""
        report(len(rows), len(plan), f"{draw.regime.label}, {sizes}draw {draw.number + 1} of {draws}")
        rows.append(draw.compute())
    report(len(plan), len(plan), "done")
    return assemble(plan, rows, scalar)


def _widths(width: Any, verb: str) -> NDArray[np.int64]:
    if width is None:
        must = "be a positive whole number, or a one-dimensional sequence of them"
        raise InvalidParameter.of(verb, "width", must, None, "Pass N, for example width=450.")
    return whole_numbers(width, verb, "width")


def _claim_over(
    argument: str, fidelity: Fidelity, problem: Problem, regime: Regime, method: str | None = None
) -> Claim:
    """Find the claim of a network of some width; the Bayes floor has none and a verb of its own."""
    claim = find(fidelity, problem, regime, method)
    if argument not in claim.arguments:
        must = f"be a network, whose risk depends on {argument}"
        raise InvalidParameter.of(fidelity, "regime", must, regime, "Use lazyscope.bayes(problem).")
    return claim


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
    values = claim.compute(problem, regime)
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
    width: Any = None,
    samples: int | None = None,
    d: int | None = None,
    ridge: Any = None,
    method: str | None = None,
    draws: int = 1,
    seed: int = 0,
    protocol: SGD | NoisySGD | ParticleDescent | None = None,
) -> xr.Dataset:
    """Return the risk of networks trained on drawn data: N, d and n finite, by the papers' protocol.

    Parameters
    ----------
    problem, regime
        What nature does, and how the network is trained.
    width
        N: a number or a sequence, which becomes the dimension `width`. With SGD all widths see one stream of samples.
        Left out with `MeanField` only, whose particles are N.
    samples
        n. Random features are fitted to 5·10⁵ samples by default; SGD makes samples/batch steps of its protocol.
    d, ridge, method
        The dimension, for problems that leave it open, as `LinearTarget`; λ of ridge regression, a number or a
        sequence, all from one decomposition; which of the questions that a pair has an answer to, such as "margin".
    draws
        Independent repetitions, of the weights and of the data; from two on, `stderr` is that of their mean.
    seed
        Draw k of a stream depends on (seed, k), its weights at width N (and a fit's own stream) on (seed, k, N).
    protocol
        `SGD(…)` for regimes that are trained by SGD, the paper's by default; `NoisySGD(…)` for those that go over n
        given samples again and again, as `Taylor` does; `ParticleDescent(…)` for `MeanField`, on any problem.

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
    if isinstance(regime, MeanField):
        find("simulate", problem, regime, method)
        same = np.ndim(width) == 0 and width == regime.particles
        alone = {"ridge": ridge, "width": None if same else width}
        return _particles(problem, regime, samples, d, (draws, seed), protocol, alone)
    claim = _claim_over("width", "simulate", problem, regime, method)
    widths = _widths(width, "simulate")
    draws = whole_number(draws, "simulate", "draws")
    seed = whole_number(seed, "simulate", "seed", least=0)
    if samples is not None:
        samples = whole_number(samples, "simulate", "samples")
    some = tuple(np.atleast_1d(widths).tolist())
    if isinstance(problem, SizedProblem):
        dimension_of(problem, d, "simulate")
        if ridge is not None:
            raise InvalidParameter.of("simulate", "ridge", "be left out: this fit has none", repr(ridge)[:60])
        if isinstance(protocol, ParticleDescent):
            raise InvalidParameter.of("simulate", "protocol", "go with MeanField", protocol, "Leave it out.")
        first = Draw("simulate", problem, regime, some, 0, seed, samples, protocol)
        return _over_draws(first.settled(), draws, not widths.ndim)
    if protocol is not None:
        raise InvalidParameter.of("simulate", "protocol", "be left out: nothing is trained by SGD here", protocol)
    size = dimension_of(problem, d, "simulate")
    n = whole_number(samples, "simulate", "samples", advice="Pass n, for example samples=3 * d.")
    lost = ["width"] * (not widths.ndim)
    ridges: tuple[float, ...] = ()
    if "ridge" in claim.arguments:
        values = non_negative_numbers(ridge, "simulate", "ridge", _ADVICE["ridge"])
        ridges = tuple(np.atleast_1d(values).tolist())
        lost += ["ridge"] * (not values.ndim)
    elif ridge is not None:
        raise InvalidParameter.of("simulate", "ridge", "be left out: this method has none", repr(ridge)[:60])
    trials = [Trial(problem, regime, size, N, n, ridges, method, k, seed) for N in some for k in range(draws)]
    rows = []
    for i, trial in enumerate(trials):
        report(i, len(trials), f"{trial.label}, draw {trial.number + 1} of {draws}")
        rows.append(trial.compute())
    report(len(trials), len(trials), "done")
    return trials_assembled(trials, rows, lost)


def _particles(
    problem: Problem,
    regime: MeanField,
    samples: int | None,
    d: int | None,
    repeated: tuple[int, int],
    protocol: Any,
    alone: dict[str, Any],
) -> xr.Dataset:
    """Descend draw after draw; `repeated` are draws and seed, `alone` is what must be left out."""
    why = {"ridge": "particles have none", "width": "the regime says how many particles there are"}
    for name, value in alone.items():
        if value is not None:
            raise InvalidParameter.of("simulate", name, f"be left out: {why[name]}", repr(value)[:60])
    if protocol is not None and not isinstance(protocol, ParticleDescent):
        raise InvalidParameter.of("simulate", "protocol", "be a ParticleDescent(…)", type(protocol).__name__)
    size = dimension_of(problem, d, "simulate")
    n = whole_number(samples, "simulate", "samples", advice="Pass n, for example samples=1000.")
    draws = whole_number(repeated[0], "simulate", "draws")
    seed = whole_number(repeated[1], "simulate", "seed", least=0)
    runs = [ParticleRun(problem, regime, size, n, protocol or ParticleDescent(), k, seed) for k in range(draws)]
    rows = []
    for i, run in enumerate(runs):
        report(i, draws, run.label)
        rows.append(run.compute())
    report(draws, draws, "done")
    return runs_assembled(runs, rows)

"""The verbs: problem × regime × fidelity → labelled risk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lazyscope.checks import non_negative_numbers, positive_numbers, whole_number, whole_numbers
from lazyscope.errors import InvalidParameter
from lazyscope.evidence.claim import Claim, Fidelity
from lazyscope.evidence.registry import find
from lazyscope.evidence.run import Run
from lazyscope.problems.base import Problem, SizedProblem, dimension_of
from lazyscope.protocols import SGD, TrainingProtocol
from lazyscope.regimes import Bayes, FixedWeights, Regime
from lazyscope.runs.assembly import answer

if TYPE_CHECKING:
    import xarray as xr


_ADVICE = {
    "rho": "Pass N/d, for example rho=0.5, a sequence of values, or inf.",
    "psi1": "Pass N/d, for example psi1=2, a sequence of values, or inf.",
    "psi2": "Pass n/d, for example psi2=3, a sequence of values, or inf.",
    "width": "Pass N, for example width=450.",
    "samples": "Pass n, for example samples=1000.",
    "times": "Pass steps/d, for example times=[1, 10, 100].",
    "step_size": "Pass η, for example step_size=0.5; 0 is the limit η → 0.",
    "ridge": "Pass λ, for example ridge=0.1 or a sequence of values; 0 is the ridgeless limit.",
}


def run_of(
    fidelity: Fidelity,
    problem: Problem,
    regime: Regime,
    given: Mapping[str, Any],
    *,
    method: str | None = None,
    protocol: Any = None,
    seed: int = 0,
    claim: Claim | None = None,
    shared: bool = False,
) -> tuple[Run, tuple[str, ...]]:
    """Look the claim up, check every argument at the door, and return the run, with the names of its single sizes.

    A size or a protocol that the claim does not know is refused. If they are `shared` by several regimes or fidelities,
    each claim takes those that it knows and leaves the others alone.

    >>> import lazyscope as ls
    >>> run_of("limit", ls.QuadraticTarget([2.0, 1.0]), ls.Trained(), {"rho": 0.5})[0].compute()["risk"]
    array([0.2])
    """
    if claim is None:
        claim = find(fidelity, problem, regime, method)
    if not claim.arguments:
        must = f"be a network, whose risk depends on {'rho' if fidelity == 'limit' else 'width'}"
        raise InvalidParameter.of(fidelity, "regime", must, regime, "Use lazyscope.bayes(problem).")
    if shared:
        given = {name: value for name, value in given.items() if name in claim.arguments}
        if isinstance(protocol, TrainingProtocol) and not claim.follows(protocol):
            protocol = None
    given = _with_fixed_weights(regime, claim, given)
    for name, value in given.items():
        if value is not None and name not in claim.arguments:
            if name == "d" and isinstance(problem, SizedProblem):
                dimension_of(problem, value, fidelity)  # says that the problem has its own
            takes = " and ".join(claim.arguments)
            what = "this limit is a function of" if fidelity == "limit" else "this takes"
            raise InvalidParameter.of(fidelity, name, f"be left out: {what} {takes}", repr(value)[:60])
    sizes: dict[str, tuple[float, ...]] = {}
    scalar = []
    for name in claim.arguments:
        value = given.get(name)
        if value is None and name in claim.optional:
            scalar.append(name)  # the claim's default is a single value
            continue
        axis = _checked(fidelity, problem, name, value)
        sizes[name] = tuple(axis.reshape(-1).tolist())
        scalar += [name] * (not axis.ndim)
    _check_protocol(claim, protocol)
    seed = whole_number(seed, fidelity, "seed", least=0)
    return Run(fidelity, problem, regime, sizes, method, protocol, 0, seed, known=claim), tuple(scalar)


def _with_fixed_weights(regime: Regime, claim: Claim, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fixed weights know their own N, so that it may be left out."""
    weights = getattr(regime, "weights", None)
    whole = dict(given)
    if isinstance(weights, FixedWeights):
        d, N = weights.W.shape
        known = {"width": N, "rho": N / d}
        whole |= {name: value for name, value in known.items() if name in claim.arguments and whole.get(name) is None}
    return whole


def _checked(fidelity: Fidelity, problem: Problem, name: str, value: Any) -> Any:
    """Return the values of one size, each of them allowed."""
    import numpy as np

    if name == "d":
        return np.asarray(dimension_of(problem, value, fidelity))
    if name in ("ridge", "times", "step_size"):
        return non_negative_numbers(value, fidelity, name, _ADVICE[name])
    if fidelity == "limit":
        return positive_numbers(value, fidelity, name, _ADVICE.get(name, ""))
    if value is None:
        must = "be a positive whole number, or a one-dimensional sequence of them"
        raise InvalidParameter.of(fidelity, name, must, None, _ADVICE.get(name, ""))
    return whole_numbers(value, fidelity, name)


def _check_protocol(claim: Claim, protocol: Any) -> None:
    """Refuse a protocol that the claim does not follow."""
    if protocol is None or claim.follows(protocol):
        return
    if claim.protocol is None:
        must, got = "be left out: this is fitted, not trained", protocol
    else:
        must, got = f"be {'an' if claim.protocol is SGD else 'a'} {claim.protocol.__name__}(…)", type(protocol).__name__
    raise InvalidParameter.of(claim.fidelity, "protocol", must, got)


def limit(
    problem: Problem,
    regime: Regime,
    *,
    rho: Any = None,
    psi1: Any = None,
    psi2: Any = None,
    width: Any = None,
    samples: Any = None,
    ridge: Any = None,
    times: Any = None,
    step_size: Any = None,
    method: str | None = None,
) -> xr.Dataset:
    """Return the asymptotic risk: all sizes → ∞ in fixed proportion, by the theorem that the result names.

    A sequence becomes a dimension of the result; which arguments a pair takes, `ls.claims()` tells.

    Parameters
    ----------
    problem, regime
        What nature does, and how the network is trained.
    rho
        N/d, positive, where there are infinitely many samples; `inf` is the wide limit.
        For `Trained`, ρ stands for N = round(ρd). May be left out with `FixedWeights`.
    psi1, psi2
        N/d and n/d, positive, where neurons and samples grow with the dimension; `inf` is allowed.
    width, samples
        N and n, where a theorem speaks of given sizes.
    ridge
        λ of ridge regression; 0 is the ridgeless limit λ → 0⁺.
    times, step_size
        t = steps/d and η, where a theorem follows SGD along time; a step size of 0 is the limit η → 0.
    method
        Which quantity to compute where a problem and a regime have more than one, for example "margin".

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
    given = {
        "rho": rho, "psi1": psi1, "psi2": psi2, "width": width, "samples": samples, "ridge": ridge,
        "times": times, "step_size": step_size,
    }  # fmt: skip
    run, scalar = run_of("limit", problem, regime, given, method=method)
    return answer(run, scalar=scalar)


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
    draws = whole_number(draws, "exact", "draws")
    run, scalar = run_of("exact", problem, regime, {"width": width}, seed=seed)
    if isinstance(getattr(regime, "weights", None), FixedWeights) and draws > 1:
        raise InvalidParameter.of("exact", "draws", "be 1 with FixedWeights: nothing is drawn", draws)
    return answer(run, draws, scalar)


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
    return answer(Run(fidelity, problem, regime)).assign_attrs(arguments=json.dumps({"fidelity": fidelity}))


def simulate(
    problem: Problem,
    regime: Regime,
    *,
    width: Any = None,
    samples: Any = None,
    d: int | None = None,
    ridge: Any = None,
    method: str | None = None,
    draws: int = 1,
    seed: int = 0,
    protocol: TrainingProtocol | None = None,
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
    d, ridge, method
        The dimension, for problems that leave it open, as `LinearTarget`; λ of ridge regression, a number or a
        sequence, all from one decomposition; which quantity to compute where a problem and a regime have more than
        one, for example "margin".
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
        `risk_by_step` and `diverged` show every step size (a diverged one has risk ∞). A trained network of at most 64
        neurons on a `MultiIndex` has its overlaps `Q` and `R` at the same `samples`.

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
    draws = whole_number(draws, "simulate", "draws")
    given = {"width": width, "samples": samples, "d": d, "ridge": ridge}
    run, scalar = run_of("simulate", problem, regime, given, method=method, protocol=protocol, seed=seed)
    return answer(run, draws, scalar)

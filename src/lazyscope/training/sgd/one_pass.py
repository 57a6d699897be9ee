"""One-pass SGD for NN and NT, by the paper's protocol (Ghorbani et al. 2019, §4; Theorem 3 is its batch of one).

All widths and step sizes are trained side by side in one pass over the stream. For σ = u² risks are those of the whole
population, in closed form; else they are measured on fresh samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.errors import InvalidParameter, NotConverged
from lazyscope.evidence.claim import Claim, differentiable_activation, exponential_quantiles, of_run, three_levels
from lazyscope.evidence.results import best_step_size
from lazyscope.evidence.run import Run
from lazyscope.numerics.blas import threads_for
from lazyscope.numerics.normals import Float32
from lazyscope.problems import GaussianMixture, GaussianProblem, MultiIndex, QuadraticTarget
from lazyscope.progress import report
from lazyscope.protocols import SGD
from lazyscope.regimes import JointTangent, NeuralTangent, Trained
from lazyscope.training.sgd import overlaps, population, single
from lazyscope.training.sgd.joint import JointTangents
from lazyscope.training.sgd.loop import walk
from lazyscope.training.sgd.network import AdamNetworks, Networks
from lazyscope.training.sgd.pack import Pack
from lazyscope.training.sgd.scaled import ScaledNetworks
from lazyscope.training.sgd.square import SquareNetworks
from lazyscope.training.sgd.stream import Law, draw_test, law_of
from lazyscope.training.sgd.tangent import Tangents

Lazy = NeuralTangent | JointTangent
_LOOK = 50  # steps between two looks for a model that has diverged
_HOPELESS = 1e3  # risk, in units of the trivial one, beyond which a model does not come back
_POINTS = 40  # of the trace, log-spaced
_BLOCK = 1000  # samples tested at once
_SMALLEST = 1e-12  # of the largest entry of B


@dataclass(frozen=True, eq=False)
class Trace:
    """Risk of each model at some numbers of samples seen, ∞ from where it diverged; its risk on fresh samples.

    `overlaps` has Q and R at the same points, models × points × …, where the target has directions.
    """

    samples: FloatArray
    risk: FloatArray  # models × points
    tested: FloatArray  # models
    overlaps: tuple[FloatArray, FloatArray] | None = None


def train(law: Law, pack: Pack, protocol: SGD, rng: np.random.Generator) -> Trace:
    """Train all models of a pack on one stream: all step sizes of the first width, then those of the next."""
    halvings = {max(1, round(share * protocol.steps)) for share in protocol.halving or ()}
    points = np.unique(np.geomspace(1, protocol.steps, _POINTS).astype(int))
    trace: list[FloatArray] = []
    found: list[tuple[FloatArray, FloatArray] | None] = []
    test = draw_test(law, protocol.test, rng)
    alone = protocol.batch == 1 and single.serves(pack)
    many = (done for done, _ in walk(law, (pack,), protocol, rng))
    steps = single.walk(law, pack, protocol, rng, np.union1d(points, [*halvings])) if alone else many
    # a model may overflow between two looks at it
    with np.errstate(over="ignore", invalid="ignore"), threads_for(law.d * protocol.batch * pack.state.shape[1]):
        for done in steps:
            if alone or done % _LOOK == 1:
                report(done, 0, f"step {done:,} of {protocol.steps:,}", done / protocol.steps)
                _bury(pack, ~pack.healthy())
            if done in halvings:
                give_up_half(pack, risks_now(law, pack, *test), len(protocol.step_sizes))
            if done == points[len(trace)]:
                trace.append(risks_now(law, pack, *test))
                found.append(None if law.index is None else overlaps.recorded(pack, law.index.indices))
        tested = _tested(law, pack, *draw_test(law, protocol.test, rng))
    pairs = [pair for pair in found if pair is not None]
    both = (np.stack([Q for Q, _ in pairs], axis=1), np.stack([R for _, R in pairs], axis=1)) if pairs else None
    return Trace(points * float(protocol.batch), np.stack(trace, axis=1), tested, both)


def risks_now(law: Law, pack: Pack, X: Float32, y: Float32) -> FloatArray:
    """Return the risk of every model, ∞ where it has diverged: in closed form, or on the samples given."""
    forms = ((pack.form(m) if pack.alive[m] else None) for m in range(len(pack)))
    risks = np.array([np.nan if G is None else population.risk(law, G, float(pack.c[m])) for m, G in enumerate(forms)])
    if np.any(np.isnan(risks) & pack.alive):
        risks = _tested(law, pack, X, y)
    _bury(pack, ~(risks < _HOPELESS))
    return np.where(pack.alive, risks, np.inf)


def give_up_half(pack: Pack, risks: FloatArray, sizes: int) -> None:
    """Bury, of the models that are left of every `sizes` consecutive ones, the half with the higher risk.

    An odd number leaves the larger half: 6 step sizes become 3, then 2, then 1.
    """
    for first in range(0, len(pack), sizes):
        group = first + np.argsort(risks[first : first + sizes], kind="stable")
        left = group[pack.alive[group]]
        for m in left[-(-len(left) // 2) :]:
            pack.bury(int(m))


def _bury(pack: Pack, lost: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
    for m in np.flatnonzero(lost & pack.alive):
        pack.bury(int(m))


def _tested(law: Law, pack: Pack, X: Float32, y: Float32) -> FloatArray:
    """Return the mean squared error on samples, block by block; ∞ for a model that has diverged."""
    total = sum(pack.losses(X[i : i + _BLOCK], y[i : i + _BLOCK]).sum(axis=0) for i in range(0, len(X), _BLOCK))
    return np.where(pack.alive, total / len(X) / law.energy, np.inf)


def risks(problem: GaussianProblem, regime: Trained | Lazy, run: Run) -> dict[str, FloatArray]:
    """Train all widths at all step sizes side by side, for one draw of the weights and of the stream."""
    protocol, widths, seed, number = run.protocol, run.widths, run.seed, run.number
    assert isinstance(protocol, SGD)  # `with_protocol` has seen to it
    law, sizes = law_of(problem), protocol.step_sizes
    if isinstance(regime, Trained) and isinstance(problem, QuadraticTarget):
        _check_scale(problem)
    _fits(problem.d, widths, protocol)
    starts = [_weights(law, problem, regime, seed, number, N) for N in widths]
    pack = _pack(
        problem,
        regime,
        protocol,
        [W for W in starts for _ in sizes],
        [N for N in widths for _ in sizes],
        [size for _ in widths for size in sizes],
    )
    result = train(law, pack, protocol, weights.generator(seed, number, 0))
    trace = result.risk.reshape(len(widths), len(sizes), -1)
    lost = np.all(np.isinf(trace[..., -1]), axis=1)
    if np.any(lost):
        N = widths[int(np.argmax(lost))]
        raise NotConverged(
            f"SGD diverged at N = {N} with every step size of {sizes}. "
            "Pass protocol=SGD(step_sizes=…) with smaller ones; small batches need them."
        )
    row = {"samples": result.samples, "trace": trace, "tested": result.tested.reshape(len(widths), len(sizes))}
    if isinstance(regime, Trained) and result.overlaps is not None:
        row["Q"], row["R"] = (part[None] for part in result.overlaps)  # models of one width: its step sizes
    return row


def with_protocol(run: Run) -> Run:
    """Write the paper's protocol out where none is given; a number of samples says how many steps it makes."""
    protocol = run.protocol or SGD.paper(run.problem, run.regime)
    assert isinstance(protocol, SGD)  # what the claim follows
    if "samples" not in run.sizes:
        return run.at(protocol=protocol)
    samples = run.whole("samples")
    if samples < protocol.batch:
        must = f"fill at least one batch of {protocol.batch}"
        raise InvalidParameter.of("simulate", "samples", must, samples)
    sizes = {name: values for name, values in run.sizes.items() if name != "samples"}
    return run.at(sizes=sizes, protocol=replace(protocol, steps=samples // protocol.batch))


def _check_scale(problem: QuadraticTarget) -> None:
    """Refuse a target whose square float32 does not hold: unlike a linear model's, a network's steps see its scale."""
    largest = float(np.max(np.abs(problem.B)))
    if not _SMALLEST <= largest <= 1.0 / _SMALLEST:
        must = f"have its largest entry between {_SMALLEST:g} and {1.0 / _SMALLEST:g} for SGD of a network in float32"
        advice = "Rescale B and the step sizes; exact and limit do not depend on the scale."
        raise InvalidParameter.of("simulate", "B", must, f"{largest:.3g}", advice)


def finite_size(result: dict[str, Any]) -> FloatArray:
    """Return what the last three quarters of the samples lowered the risk by: at least what is left to gain.

    That holds for an excess that falls like t^−p, p ≥ 0.6, in effective time t = Σε: the decayed steps at the end count
    little, t = 0.86 of the steps, so that 0.86^−p is left and 0.25^−p − 0.86^−p was gained. The noise of constant
    steps, too, is larger before the decay than after it.
    """
    samples, trace = result["samples"], result["trace"]
    quarter = np.array([np.interp(np.log(samples[-1] / 4.0), np.log(samples), line) for line in trace])
    return np.asarray(np.maximum(quarter - trace[:, -1], 0.0))


def _fits(d: int, widths: Sequence[int], protocol: SGD) -> None:
    """Refuse what does not fit: (3d + 3·batch) floats a column, and as much again to test on a block."""
    columns = len(protocol.step_sizes) * sum(widths)
    memory = 4.0 * columns * (3.0 * d + 3.0 * max(protocol.batch, _BLOCK)) + 4.0 * d * protocol.test
    many = f"{len(widths)} widths at {len(protocol.step_sizes)} step sizes"
    fits_in_memory(memory, many, "Pass fewer at once, or narrower ones.")


def _weights(law: Law, problem: GaussianProblem, regime: Trained | Lazy, seed: int, number: int, N: int) -> Float32:
    """Draw the initial weights, rows in the basis of the law; those of NT are the ones that `exact` sees."""
    rng = weights.generator(seed, number, N)
    if isinstance(regime, Trained) and regime.alpha is not None:
        lazy = NeuralTangent(regime.activation)
        return np.asarray(regime.init * law.see(weights.draw(problem, lazy, N, rng)), dtype=np.float32)
    if isinstance(regime, Trained):
        return np.asarray(regime.init * rng.standard_normal((N, law.d)) / np.sqrt(law.d), dtype=np.float32)
    return law.see(weights.draw(problem, regime, N, rng)).astype(np.float32)


def _pack(
    problem: GaussianProblem,
    regime: Trained | Lazy,
    protocol: SGD,
    starts: Sequence[Float32],
    widths: Sequence[int],
    step_sizes: Sequence[float],
) -> Pack:
    """Return the networks, untrained. For σ = u² on the quadratic target the second layer is a single number."""
    if protocol.rule == "adam":
        if not isinstance(regime, Trained) or regime.alpha is not None or protocol.second_layer != "trained":
            must = 'be "plain" where both layers are not trained'
            raise InvalidParameter.of("SGD", "rule", must, f"{protocol.rule!r} for {regime.label}")
        return AdamNetworks(starts, widths, step_sizes, regime.activation)
    if isinstance(regime, JointTangent):
        return JointTangents(starts, widths, step_sizes, regime.activation)
    if isinstance(regime, NeuralTangent):
        return Tangents(starts, widths, step_sizes, regime.activation)
    if regime.alpha is not None:
        return ScaledNetworks(starts, widths, step_sizes, regime.activation, regime.alpha)
    if protocol.second_layer == "sum":
        return Networks(starts, widths, step_sizes, regime.activation, True, True)
    fixed = protocol.second_layer == "fixed"
    if regime.activation.name == "square" and (fixed or isinstance(problem, QuadraticTarget)):
        return SquareNetworks(starts, widths, step_sizes, fixed)
    return Networks(starts, widths, step_sizes, regime.activation, fixed)


def _claim(problem: type[GaussianProblem], regime: type[Trained] | type[NeuralTangent] | type[JointTangent]) -> Claim:
    quadratic = problem is QuadraticTarget
    law, example = _LAWS[problem]
    at = ("step_size", "samples")
    seen = {"Q": (*at, "neuron", "neuron_too"), "R": (*at, "neuron", "index")}
    return Claim(
        fidelity="simulate",
        problem=problem,
        regime=regime,
        title=_TITLES[regime],
        theorem="one-pass SGD (the paper's protocol" + (", Theorem 3's algorithm with batches)" if quadratic else ")"),
        citations=("ghorbani2019limitations",),
        assumptions=("fresh samples, each used once", "σ has a derivative", *law),
        arguments=("width", "samples"),
        optional=("samples",),
        arrays=("width",),
        protocol=SGD,
        settle=with_protocol,
        dims={"trace": at, "tested": ("step_size",), **(seen if problem is MultiIndex and regime is Trained else {})},
        reduce=best_step_size,
        compute=of_run(risks),
        example=lambda d: (example(d), regime("erf" if problem is MultiIndex else "square")),
        covers=differentiable_activation,
        finite_size=finite_size,
        scale_free=regime is not Trained,
    )


def _scaled(plain: Claim) -> Claim:
    """Return the claim of a network with an output scale, trained alike."""
    return replace(
        plain,
        title="trained network, output scale",
        theorem="one-pass SGD",
        example=lambda d: (plain.example(d)[0], Trained(alpha=3.0)),
        scaled=True,
    )


_LAWS: dict[type[GaussianProblem], tuple[tuple[str, ...], Any]] = {
    QuadraticTarget: ((), exponential_quantiles),
    GaussianMixture: (("another Σ is whitened: SGD descends in Σ^{1/2}w",), three_levels),
    MultiIndex: (("tested without the noise of the labels",), lambda d: MultiIndex(d, "erf")),
}
_TITLES: dict[type[Trained] | type[NeuralTangent] | type[JointTangent], str] = {
    Trained: "trained network",
    NeuralTangent: "neural tangent",
    JointTangent: "both layers",
}
_PLAIN = tuple(_claim(problem, regime) for problem in _LAWS for regime in _TITLES)
CLAIMS = (*_PLAIN, *(_scaled(claim) for claim in _PLAIN if claim.regime is Trained))

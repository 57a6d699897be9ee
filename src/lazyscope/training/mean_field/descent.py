"""The mean field on every problem: particles that descend on n samples, tested on fresh ones.

    f(x; ρ) = ∫ aσ(⟨w, x⟩) ρ(da, dw) + c,      ρ = (1/N) Σ_i δ_{(a_i, w_i)}  on  Ω = {|a| ≤ A, ‖w‖ ≤ 1}

Descent is on the squared error, of labels ±1 too (`particles`); what is tested is the problem's own risk (`sources`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.checks import FloatArray, fits_in_memory
from lazyscope.evidence.claim import Claim, exponential_quantiles, of_run, three_levels
from lazyscope.evidence.results import traced
from lazyscope.evidence.run import Run
from lazyscope.problems import (
    GaussianMixture,
    LinearLabels,
    LinearTarget,
    MultiIndex,
    QuadraticTarget,
    RidgeMonomial,
    SparseParity,
)
from lazyscope.problems.base import Problem, SizedProblem
from lazyscope.protocols import ParticleDescent
from lazyscope.regimes import MeanField
from lazyscope.training.mean_field.particles import Sample, descend
from lazyscope.training.sources import source_of
from lazyscope.weights import generator

_TESTED, _BLOCK = 10_000, 2000  # fresh samples, and how many of them at once
_POINTS = 40  # of the trace, log-spaced


def risks(problem: Problem, regime: MeanField, run: Run) -> dict[str, NDArray[Any]]:
    """Draw nature and n samples, descend from a random start, and test on 10⁴ fresh samples.

    `risk` is the problem's own; `train` and `trace`, at log-spaced `step`s, are the squared error on the n samples over
    that of the best constant. 4ndN flops a step (`particles`).
    """
    d, N, samples, seed, number = run.d, run.whole("width"), run.whole("samples"), run.seed, run.number
    protocol = run.protocol if isinstance(run.protocol, ParticleDescent) else ParticleDescent()
    memory = 28.0 * (samples + _BLOCK) * d + 12.0 * N * (d + _BLOCK)
    fits_in_memory(memory, f"{N} particles on n = {samples} samples", "Use fewer.")
    rng = generator(seed, number, 0)
    source = source_of(problem, d, rng)
    sample, mean, scale = Sample.centred(*source.labelled(samples, rng))
    start = generator(seed, number, N)
    rho, path = descend(sample, regime, N, bound=protocol.bound, steps=protocol.steps, rng=start)
    wanted, predicted = [], []
    for _ in range(_TESTED // _BLOCK):
        X, y = source.fresh(_BLOCK, rng)
        wanted.append(np.asarray(y, dtype=np.float64))
        predicted.append(mean + scale * rho(np.asarray(X, dtype=np.float32), regime.activation).astype(np.float64))
    step, trace = at_points(path, protocol.steps)
    risk = source.risk(np.concatenate(wanted), np.concatenate(predicted))
    return {"risk": np.array(risk), "train": np.array(path[-1]), "step": step, "trace": trace}


def at_points(path: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return log-spaced steps and the risk there; a descent that stopped early stays where it stopped.

    >>> at_points(np.array([1.0, 0.5, 0.4]), 4)
    (array([1., 2., 3., 4.]), array([0.5, 0.4, 0.4, 0.4]))
    """
    points = np.unique(np.geomspace(1, steps, _POINTS).round().astype(int))
    return points.astype(np.float64), path[np.minimum(points, len(path) - 1)]


def with_protocol(run: Run) -> Run:
    """Write the default descent out."""
    return run if run.protocol is not None else run.at(protocol=ParticleDescent())


def _claim(problem: type[Problem], example: Any, measured: str) -> Claim:
    return Claim(
        fidelity="simulate",
        problem=problem,
        regime=MeanField,
        title="mean field",
        theorem="gradient descent of N particles, whose limit N → ∞ is the flow of a measure",
        citations=("mei2018mean", "chizat2018global"),
        assumptions=(
            "n samples, each used at every step; squared error, of labels ±1 too",
            "a in [−A, A] and w in the unit ball, from a = 0 and w uniform on the sphere; σ has a derivative",
            f"`risk` on 10⁴ fresh samples: {measured}",
        ),
        arguments=("width", "samples") if issubclass(problem, SizedProblem) else ("width", "samples", "d"),
        protocol=ParticleDescent,
        settle=with_protocol,
        dims={"trace": ("step",)},
        reduce=traced,
        compute=of_run(risks),
        example=lambda d: (example(d), MeanField()),
        assumes=lambda problem, regime: getattr(problem, "Sigma", None) is None,
    )


_SQUARED = "squared error over that of the best constant"
CLAIMS = (
    _claim(QuadraticTarget, exponential_quantiles, _SQUARED),
    _claim(GaussianMixture, three_levels, f"{_SQUARED}; Σ = I"),
    _claim(MultiIndex, lambda d: MultiIndex(d, "relu"), _SQUARED),
    _claim(LinearTarget, lambda d: LinearTarget(noise=0.5), "squared error, without the noise of the test sample"),
    _claim(LinearLabels, lambda d: LinearLabels(4.0), "probability of a wrong label"),
    _claim(SparseParity, SparseParity, "probability of a wrong sign over ½"),
    _claim(RidgeMonomial, lambda d: RidgeMonomial(d, 3, alpha=0.5), _SQUARED),
)

"""What theory says of a dot that SGD has made: at its own weights, step sizes, batch and number of samples.

For σ = u² on the quadratic target this is `finite_step`. Elsewhere it is descent on the population risk by the same
schedule (`population.descent`), and what the noise of the steps adds: for NT from the spectrum of its normal equations,
for a trained network measured, by runs with other batches. noise·m, m the batch, is constant for large m. It falls
where the noise itself changes what is learnt (0.78 at m ≥ 200, 0.66 at 50, 0.56 at 12 on the mixture with N = d = 100).
Between m/2 and 2m it is taken to be monotone: then the mean of both ends is off by at most half of their difference.

A run with twice the batch is expensive at the paper's size. There the noise is taken to be in proportion to the risk L,
so that L = F + κL/m at the end, F being without noise: noise = Fκ/(m − κ), and 1/noise is linear in m. Runs with a half
and with a quarter of the batch, less the descent, give that line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope import weights
from lazyscope.checks import FloatArray
from lazyscope.errors import NotConverged, NoTheorem
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.draws import Draw
from lazyscope.limits.sgd.finite_step import finite_step, stages
from lazyscope.population import descent
from lazyscope.population.descent.linear import TangentDescent
from lazyscope.problems import GaussianProblem, QuadraticTarget
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, Trained

_DEGREES = 4.0  # twice the degree of the residual of a quadratic target
_AFFORDABLE = 2_000_000  # samples of a run up to which one with twice the batch is made


@dataclass(frozen=True, eq=False)
class PredictedDraw(Draw):
    """The prediction of one draw at every step size; a step size for which there is none has `known` = 0.

    >>> protocol = SGD(steps=200, batch=20, step_sizes=(0.01,), test=1)
    >>> row = PredictedDraw(QuadraticTarget([2.0, 1.0, 0.5]), NeuralTangent(), 2, protocol).compute()
    >>> sorted(row), row["known"]
    (['allowance', 'known', 'risk'], array([1]))
    """

    problem: GaussianProblem
    regime: Trained | NeuralTangent
    width: int
    protocol: SGD
    number: int = 0
    seed: int = 0

    words = "prediction, {0.regime.label}, N = {0.width}, draw {0.number}"
    costs = ("width", "problem.d", "protocol.steps")

    @property
    def version(self) -> str:
        """Which numbers these are: 4 has NN's noise between half and twice the batch, 5 the moments of NT's, σ = u²."""
        return "5" if self.by_spectrum and self.regime.activation.name == "square" else "4"

    @property
    def by_formula(self) -> bool:
        """Whether SGD itself has a limit theorem: σ = u² on the quadratic target."""
        return isinstance(self.problem, QuadraticTarget) and self.regime.activation.name == "square"

    @property
    def by_spectrum(self) -> bool:
        """Whether the noise of the steps follows from the spectrum of a linear model."""
        return not self.by_formula and isinstance(self.regime, NeuralTangent)

    @property
    def by_interpolation(self) -> bool:
        """Whether the noise of the steps is measured with half and with twice the batch."""
        measured = not (self.by_formula or self.by_spectrum)
        return measured and self.protocol.batch > 1 and self.protocol.steps * self.protocol.batch <= _AFFORDABLE

    def noise(self, risk: float, allowance: float) -> float:
        """Return what the noise of the steps adds to the risk, from a prediction and what that leaves out.

        Not for `by_interpolation`, whose rows have it.

        >>> draw = PredictedDraw(QuadraticTarget([2.0, 1.0, 0.5]), NeuralTangent(), 2, SGD(steps=20, batch=20))
        >>> draw.noise(0.5, 0.01)
        0.02
        """
        if self.by_formula:
            return allowance * min(self.width, self.problem.d)
        if self.by_spectrum:
            return allowance * self.problem.d / _DEGREES
        roots = np.roots([1.0, -allowance, 2.0 * allowance * risk, -allowance * risk**2])
        return float(max((root.real for root in roots if abs(root.imag) < 1e-9 * (1.0 + abs(root))), default=0.0))

    def compute(self) -> Row:
        """Return `risk`, `allowance`, what the prediction leaves out, and `known`, each over the step sizes."""
        if self.by_interpolation:
            return self._interpolated()
        if self.by_formula:
            prediction = self._by_formula()
        else:
            prediction = self._by_descent() if self.by_spectrum else self._measured()
        known = np.isfinite(prediction).all(axis=0)
        risk, allowance = np.where(known, prediction, 0.0)
        return {"risk": risk, "allowance": allowance, "known": known.astype(int)}

    def _by_formula(self) -> FloatArray:
        """Leave out 1/min(N, d) of the noise: the diffusion has Tr X·I + X where the covariance has Tr X·I + 2X."""
        prediction = np.full((2, len(self.protocol.step_sizes)), np.nan)
        protocol, problem = self.protocol, self.problem
        assert isinstance(problem, QuadraticTarget)
        for k, size in enumerate(protocol.step_sizes):
            how: dict[str, Any] = {"width": self.width, "seed": self.seed, "draw": self.number}
            how |= {"samples": [protocol.steps * protocol.batch], "decay": protocol.decay, "paths": 1}
            try:
                line = finite_step(problem, self.regime, step_size=size, batch=protocol.batch, **how)
            except (NoTheorem, NotConverged):  # a step size at which SGD is not stable
                continue
            risk, flow = float(line.risk[-1]), float(line.flow[-1])
            prediction[:, k] = risk, abs(risk - flow) / min(self.width, problem.d)
        return prediction

    def _by_descent(self) -> FloatArray:
        """Leave out 4/d of the noise: the factor κ is taken at the end of the descent, and is off by as much before."""
        assert isinstance(self.regime, NeuralTangent)
        rng = weights.generator(self.seed, self.number, self.width)
        model = TangentDescent.of(self.problem, self.regime, self.width, rng)
        prediction = np.full((2, len(self.protocol.step_sizes)), np.nan)
        for k, plan in enumerate(self._plans()):
            try:
                risk = model.noisy_risk(plan, self.protocol.batch)
            except NotConverged:
                continue
            prediction[:, k] = risk, (risk - model.risk(plan)) * _DEGREES / self.problem.d
        return prediction

    def _interpolated(self) -> Row:
        """Leave out half of the difference between noise·m at half and at twice the batch; `noise` is a column too."""
        still, batch = self._flowed(), self.protocol.batch
        low, high = ((self._with_batch(m) - still) * m / batch for m in (batch // 2, 2 * batch))
        with np.errstate(invalid="ignore"):  # infinite where SGD diverges
            prediction = np.stack([still + 0.5 * (low + high), 0.5 * np.abs(high - low), 0.5 * (low + high)])
        known = np.isfinite(prediction).all(axis=0)
        risk, allowance, noise = np.where(known, prediction, 0.0)
        return {"risk": risk, "allowance": allowance, "noise": noise, "known": known.astype(int)}

    def _measured(self) -> FloatArray:
        """Leave out the cube of the noise, over the square of the risk: the third order in 1/batch.

        Where the noise is smaller than the scatter between runs, half of that at half the batch stands for it.
        """
        still, batch = self._flowed(), self.protocol.batch
        if batch < 4:
            return np.full((2, still.size), np.nan)
        few, fewer = batch // 2, batch // 4
        half, quarter = self._with_batch(few) - still, self._with_batch(fewer) - still
        noise = half * few / batch
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            line = 1.0 / half + (1.0 / half - 1.0 / quarter) * (batch - few) / (few - fewer)
            noise = np.where((half > 0.0) & (quarter > half), 1.0 / line, noise)
            return np.stack([still + noise, np.abs(noise) ** 3 / np.maximum(still, 1e-12) ** 2])

    def _with_batch(self, batch: int) -> FloatArray:
        """Return what SGD with this batch and as many steps ends with, infinity where it diverges."""
        smaller = replace(self.protocol, batch=batch)
        sizes = {"width": (self.width,)}
        run = Run("simulate", self.problem, self.regime, sizes, None, smaller, self.number, self.seed)
        try:
            return np.asarray(run.compute()["trace"][0, :, -1], dtype=np.float64)
        except NotConverged:
            return np.full(len(smaller.step_sizes), np.inf)

    def _plans(self) -> list[list[tuple[int, float]]]:
        """Return the steps of every step size: so many of one size, then of the next."""
        protocol = self.protocol
        return [
            [(part.count, part.step_size) for part in stages(protocol.steps, size, protocol.decay)]
            for size in protocol.step_sizes
        ]

    def _flowed(self) -> FloatArray:
        """Return the risk of gradient flow of a network after the same time, for every step size."""
        assert isinstance(self.regime, Trained)
        times = np.array([sum(count * size for count, size in plan) for plan in self._plans()])
        order = np.argsort(times)
        rng = weights.generator(self.seed, self.number, self.width)
        try:
            risks = descent.network_risks(self.problem, self.regime, self.width, rng, times[order].tolist())
        except NotConverged:
            return np.full(times.size, np.nan)
        return np.asarray(risks[np.argsort(order)])


def is_predicted(regime: Any) -> bool:
    """Whether there is a prediction: not for a network whose kernels are series, which would take minutes.

    >>> is_predicted(Trained("relu")), is_predicted(Trained("gelu")), is_predicted(NeuralTangent("gelu"))
    (True, False, True)
    """
    if not isinstance(regime, Trained):
        return True
    sigma = regime.activation
    return bool(sigma.name == "square" or sigma.rectified or abs(sigma.lambda_k(2)) < 1e-12)

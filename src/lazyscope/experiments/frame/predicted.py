"""What theory says of a dot that SGD has made: at its own weights, step sizes, batch and number of samples.

For σ = u² on the quadratic target this is `finite_step`. Elsewhere it is descent on the population risk by the same
schedule (`population.descent`), and what the noise of the steps adds: for NT from the spectrum of its normal equations,
for a trained network measured, by runs with half and with twice the batch m. noise·m is constant for large m. It falls
where the noise itself changes what is learnt (0.78 at m ≥ 200, 0.66 at 50, 0.56 at 12 on the mixture with N = d = 100).
Between m/2 and 2m it is taken to be monotone: then the mean of both ends is off by at most half of their difference. It
need not be: on the mixture with N = 225 and d = 450 it is 2.1, 1.9, 2.1 at m = 50, 100, 200.
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


@dataclass(frozen=True, eq=False)
class PredictedDraw(Draw):
    """The prediction of one draw at every step size; a step size for which there is none has `known` = 0.

    >>> protocol = SGD(steps=200, batch=20, step_sizes=(0.01,), test=1)
    >>> row = PredictedDraw(QuadraticTarget([2.0, 1.0, 0.5]), NeuralTangent(), 2, protocol).compute()
    >>> sorted(row), row["known"]
    (['allowance', 'known', 'noise', 'risk'], array([1]))
    """

    problem: GaussianProblem
    regime: Trained | NeuralTangent
    width: int
    protocol: SGD
    number: int = 0
    seed: int = 0

    words = "prediction, {0.regime.label}, N = {0.width}, draw {0.number}"
    costs = ("width", "problem.d", "protocol.steps")

    version = "6"

    @property
    def by_formula(self) -> bool:
        """Whether SGD itself has a limit theorem: σ = u² on the quadratic target."""
        return isinstance(self.problem, QuadraticTarget) and self.regime.activation.name == "square"

    @property
    def by_spectrum(self) -> bool:
        """Whether the noise of the steps follows from the spectrum of a linear model."""
        return not self.by_formula and isinstance(self.regime, NeuralTangent)

    def compute(self) -> Row:
        """Return columns over the step sizes.

        They are `risk`, the `noise` in it that the steps add, `allowance`, what the prediction leaves out, and `known`.
        """
        by = self._by_formula if self.by_formula else self._by_spectrum if self.by_spectrum else self._by_interpolation
        prediction = by()
        known = np.isfinite(prediction).all(axis=0)
        risk, noise, allowance = np.where(known, prediction, 0.0)
        return {"risk": risk, "noise": noise, "allowance": allowance, "known": known.astype(int)}

    def _by_formula(self) -> FloatArray:
        """Leave out 1/min(N, d) of the noise: the diffusion has Tr X·I + X where the covariance has Tr X·I + 2X."""
        prediction = self._none()
        protocol, problem = self.protocol, self.problem
        assert isinstance(problem, QuadraticTarget)
        for k, size in enumerate(protocol.step_sizes):
            how: dict[str, Any] = {"width": self.width, "seed": self.seed, "draw": self.number}
            how |= {"samples": [protocol.steps * protocol.batch], "decay": protocol.decay, "paths": 1}
            try:
                line = finite_step(problem, self.regime, step_size=size, batch=protocol.batch, **how)
            except (NoTheorem, NotConverged):  # a step size at which SGD is not stable
                continue
            risk, noise = float(line.risk[-1]), abs(float(line.risk[-1] - line.flow[-1]))
            prediction[:, k] = risk, noise, noise / min(self.width, problem.d)
        return prediction

    def _by_spectrum(self) -> FloatArray:
        """Leave out 4/d of the noise: the factor κ is taken at the end of the descent, and is off by as much before."""
        assert isinstance(self.regime, NeuralTangent)
        rng = weights.generator(self.seed, self.number, self.width)
        model = TangentDescent.of(self.problem, self.regime, self.width, rng)
        prediction = self._none()
        for k, plan in enumerate(self._plans()):
            try:
                risk = model.noisy_risk(plan, self.protocol.batch)
            except NotConverged:
                continue
            noise = risk - model.risk(plan)
            prediction[:, k] = risk, noise, noise * _DEGREES / self.problem.d
        return prediction

    def _by_interpolation(self) -> FloatArray:
        """Leave out half of the difference between noise·m at half and at twice the batch; one sample has no half."""
        batch = self.protocol.batch
        if batch < 2:
            return self._none()
        still = self._flowed()
        low, high = ((self._with_batch(m) - still) * m / batch for m in (batch // 2, 2 * batch))
        with np.errstate(invalid="ignore"):  # infinite where SGD diverges
            noise = 0.5 * (low + high)
            return np.stack([still + noise, noise, 0.5 * np.abs(high - low)])

    def _none(self) -> FloatArray:
        """Return risk, noise and allowance of every step size, none of them known yet."""
        return np.full((3, len(self.protocol.step_sizes)), np.nan)

    def _with_batch(self, batch: int) -> FloatArray:
        """Return what SGD with this batch and as many steps ends with, infinity where it diverges."""
        protocol = replace(self.protocol, batch=batch)
        sizes = {"width": (self.width,)}
        run = Run("simulate", self.problem, self.regime, sizes, None, protocol, self.number, self.seed)
        try:
            return np.asarray(run.compute()["trace"][0, :, -1], dtype=np.float64)
        except NotConverged:
            return np.full(len(protocol.step_sizes), np.inf)

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

"""Mean field: networks as measures (Montanari 2019). What infinite width can do, and how fast finite width gets there.

On a given sample, with particles in Ω = {|a| ≤ A, ‖w‖ ≤ 1}: the risk is convex along mixtures of measures (and not
along straight lines in the weights); its minimum over all measures is found by conditional gradient, whose duality gap
certifies it; the risk of N particles after descent tends to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.checks import FloatArray, whole_number, whole_numbers
from lazyscope.evidence.registry import find
from lazyscope.evidence.work import Measurement, Row
from lazyscope.experiments.exponents import computed, exponents, over_draws
from lazyscope.problems.base import Problem, dimension_of
from lazyscope.protocols import ParticleDescent
from lazyscope.regimes import MeanField
from lazyscope.training.mean_field.conditional_gradient import minimise
from lazyscope.training.mean_field.descent import at_points
from lazyscope.training.mean_field.particles import Particles, Sample, descend
from lazyscope.weights import generator

if TYPE_CHECKING:
    import xarray as xr

_RESOLVED = 1e-5  # excess that descent in float32 can tell from none


@dataclass(frozen=True, eq=False)
class ParticlesDraw(Measurement):
    """Descent of N particles from one random start, on one sample; N = 0 stands for the minimum over all measures."""

    problem: Problem
    particles: int
    activation: Activation | str = "relu"
    bound: float = 4.0
    samples: int = 1000
    steps: int = 2000
    number: int = 0
    seed: int = 0
    d: int | None = None

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"{self.particles or 'all'} particles, draw {self.number + 1}"

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return (
            self.samples * dimension_of(self.problem, self.d, "mean_field") * (self.particles * self.steps or 200 * 200)
        )

    def sample(self) -> Sample:
        """The sample: one for all draws and numbers of particles of a seed."""
        return Sample.of(self.problem, self.samples, self.seed, 0, self.d)

    def descended(self) -> tuple[Particles, FloatArray]:
        """Descend."""
        regime = MeanField(self.activation)
        rng = generator(self.seed, 1 + self.number, self.particles)
        return descend(self.sample(), regime, self.particles, bound=self.bound, steps=self.steps, rng=rng)

    def compute(self) -> Row:
        """Return the risk at log-spaced steps; for the minimum, risk and gap atom by atom."""
        if self.particles == 0:
            rng = generator(self.seed, 0, 1)
            sigma = as_activation(self.activation)
            end = minimise(self.sample(), sigma, bound=self.bound, steps=self.steps, rng=rng, tolerance=1e-6)
            certified = np.array(float(end.certified))
            return {"risk": end.risk, "gap": np.maximum(end.gap, 0.0), "certified": certified}
        _, risks = self.descended()
        step, trace = at_points(risks, self.steps)
        return {"step": step, "risk": trace}


def mean_field(
    problem: Problem,
    *,
    d: int | None = None,
    particles: Any = (4, 8, 16, 32, 64),
    activation: Activation | str = "relu",
    bound: float = 4.0,
    samples: int = 1000,
    steps: int = 2000,
    atoms: int = 200,
    draws: int = 2,
    seed: int = 0,
) -> xr.Dataset:
    """Return the risk of N particles after descent, against that of the best measure, on one sample of a problem.

    Parameters
    ----------
    problem, d
        Any problem, and its dimension where it leaves that open (`LinearTarget`, `LinearLabels`).
    particles
        N: a sequence, which becomes the dimension `particles`.
    activation, bound
        σ, and A: measures live on |a| ≤ A, ‖w‖ ≤ 1.
    samples
        Size of the sample over which the risk is the mean; labels are scaled to mean square 1.
    steps, atoms
        Steps of each descent; at most so many steps of conditional gradient.
    draws, seed
        Random starts of each descent, from two on with standard errors; the sample depends on the seed alone.

    Returns
    -------
    xarray.Dataset
        Over `particles`: `risk` and `stderr`, `excess` over `minimum`; `exponent` and `exponent_stderr`, the slope of
        log excess against log N over those N whose excess is above 1e-5 (left out where fewer than two have one); over
        `atom`: `minimum_risk` and `gap`; `certified`; `convexity`, the least of
        (1−t)R(ρ₀) + tR(ρ₁) − R((1−t)ρ₀ + tρ₁) over pairs of ends and t, never negative, and `bump`, the most by which
        the risk exceeds its chord along a straight line in the weights.

    Examples
    --------
    >>> import lazyscope as ls
    >>> small = dict(particles=[2, 4], samples=200, steps=100, atoms=20)
    >>> found = mean_field(ls.QuadraticTarget([2.0, 1.0]), **small)
    >>> bool(found.convexity >= 0.0), bool(found.risk[1] < found.risk[0])
    (True, True)
    """
    widths = np.unique(whole_numbers(particles, "mean_field", "particles")).tolist()
    find("simulate", problem, MeanField(activation))
    dimension_of(problem, d, "mean_field")
    n, atoms, draws = (
        whole_number(value, "mean_field", name)
        for name, value in (("samples", samples), ("atoms", atoms), ("draws", draws))
    )
    how = ParticleDescent(steps, bound)
    seed = whole_number(seed, "mean_field", "seed", least=0)
    base = ParticlesDraw(problem, 0, activation, how.bound, n, atoms, 0, seed, d)
    runs = [replace(base, particles=N, steps=how.steps, number=k) for N in widths for k in range(draws)]
    work = [base, *runs]
    result = assemble(work, computed(work))
    slack, bump = convexity(work[-1])
    return result.assign(convexity=slack, bump=bump)


def assemble(work: list[ParticlesDraw], rows: list[Row]) -> xr.Dataset:
    """Return the report of some draws, the first of which is the minimum over all measures."""
    import xarray as xr

    least, first = rows[0], work[1]
    widths = sorted({one.particles for one in work[1:]})
    ends = {N: [r["risk"][-1] for one, r in zip(work[1:], rows[1:], strict=True) if one.particles == N] for N in widths}
    table = np.array([ends[N] for N in widths])
    minimum = float(least["risk"][-1] - min(least["gap"][-1], least["risk"][-1]) * float(least["certified"]))
    excess = table - float(least["risk"][-1])
    resolved = np.all(excess > _RESOLVED, axis=1)
    fitted = np.count_nonzero(resolved) > 1
    slope, spread = exponents(np.array(widths, dtype=float)[resolved], excess[resolved])
    mean, stderr = over_draws(table)
    traces = {N: next(r for one, r in zip(work[1:], rows[1:], strict=True) if one.particles == N) for N in widths}
    return xr.Dataset(
        {
            "risk": ("particles", mean),
            **({"stderr": ("particles", stderr)} if table.shape[1] > 1 else {}),
            "excess": ("particles", excess.mean(axis=1)),
            **({"exponent": float(slope)} if fitted else {}),
            **({"exponent_stderr": float(spread)} if fitted and table.shape[1] > 1 else {}),
            "minimum": float(least["risk"][-1]),
            "lower_bound": minimum,
            "certified": bool(least["certified"]),
            "minimum_risk": ("atom", least["risk"]),
            "gap": ("atom", least["gap"]),
            "trace": (("particles", "step"), np.array([traces[N]["risk"] for N in widths])),
        },
        {"particles": widths, "step": traces[widths[0]]["step"], "atom": np.arange(least["risk"].size)},
        {
            "problem": str(first.problem),
            "activation": as_activation(first.activation).name,
            "bound": first.bound,
            "samples": first.samples,
            "seed": first.seed,
        },
    )


def convexity(draw: ParticlesDraw) -> tuple[float, float]:
    """Return the least slack of convexity along mixtures of two ends, and the largest bump between their weights."""
    mixtures, straight = between(draw, np.linspace(0.0, 1.0, 11))
    chord = np.linspace(mixtures[0], mixtures[-1], 11)
    inside = slice(1, -1)
    return float(np.min((chord - mixtures)[inside])), float(np.max((straight - chord)[inside]))


def between(draw: ParticlesDraw, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the risk on the way from the end of one short descent to that of another, at shares t of the way.

    Along mixtures of the two measures, (1 − t)ρ₀ + tρ₁, and along the straight line between their weights.
    """
    sigma, sample = as_activation(draw.activation), draw.sample()
    first, second = (replace(draw, number=k, steps=min(draw.steps, 300)).descended()[0] for k in (0, 1))
    X, y = sample.X.astype(np.float64), sample.y.astype(np.float64)

    def risk(masses: FloatArray, W: FloatArray, c: float) -> float:
        return float(np.mean((y - sigma(X @ W) @ masses - c) ** 2))

    mixtures, straight = [], []
    for t in shares.tolist():
        mixtures.append(risk(*first.mixed(second, t)))
        a, W, c = ((1.0 - t) * one + t * other for one, other in zip(_plain(first), _plain(second), strict=True))
        straight.append(risk(a / len(a), W, float(c)))
    return np.array(mixtures), np.array(straight)


def _plain(rho: Particles) -> tuple[FloatArray, FloatArray, FloatArray]:
    return rho.a.astype(np.float64), rho.W.astype(np.float64), np.asarray(rho.c, dtype=np.float64)

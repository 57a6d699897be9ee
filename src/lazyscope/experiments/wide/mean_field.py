"""Mean field: networks as measures (Montanari 2019). What infinite width can do, and how fast finite width gets there.

On a given sample, with particles in Ω = {|a| ≤ A, ‖w‖ ≤ 1}: the risk is convex along mixtures of measures (and not
along straight lines in the weights); its minimum over all measures is found by conditional gradient, whose duality gap
certifies it; the risk of N particles after descent tends to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.checks import FloatArray, whole_number, whole_numbers
from lazyscope.evidence.registry import find
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.drawing import DASHES, frames
from lazyscope.experiments.frame.draws import attributes, computed, exponents, grouped, provenance
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.limits import declared
from lazyscope.problems import GaussianMixture
from lazyscope.problems.base import Problem, dimension_of
from lazyscope.protocols import ParticleDescent
from lazyscope.regimes import MeanField
from lazyscope.runs.pictures import BLUE, ORANGE, RED, scale_colour
from lazyscope.training.mean_field.conditional_gradient import minimise
from lazyscope.training.mean_field.descent import at_points
from lazyscope.training.mean_field.particles import Particles, Sample, descend
from lazyscope.weights import generator

_RESOLVED = 1e-5  # excess that descent in float32 can tell from none
_TOLERANCE = 0.1  # of the exponent: descents need not find the best particles
_SMALL_GAP = 1e-5
_CHORD_SHARES = 41


@dataclass(frozen=True, eq=False)
class ParticlesDraw(Draw):
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
        """Return the particles at the end of the descent."""
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
) -> Dataset:
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


def assemble(work: list[ParticlesDraw], rows: list[Row]) -> Dataset:
    """Return the report of some draws, the first of which is the minimum over all measures."""
    least, first = rows[0], work[1]
    by_particles = grouped(work[1:], rows[1:], "particles")
    widths = sorted(by_particles)
    table = np.array([[row["risk"][-1] for row in by_particles[N]] for N in widths])
    minimum = float(least["risk"][-1] - min(least["gap"][-1], least["risk"][-1]) * float(least["certified"]))
    excess = table - float(least["risk"][-1])
    resolved = np.all(excess > _RESOLVED, axis=1)
    fitted = np.count_nonzero(resolved) > 1
    slope, spread = exponents(np.array(widths, dtype=float)[resolved], excess[resolved])
    mean, stderr = over_draws(table)
    traces = [by_particles[N][0] for N in widths]
    return dataset(
        {
            "risk": ("particles", mean),
            **({"stderr": ("particles", stderr)} if table.shape[1] > 1 else {}),
            "excess": ("particles", excess.mean(axis=1)),
            "excess_draws": (("particles", "draw"), excess),
            **({"exponent": float(slope)} if fitted else {}),
            **({"exponent_stderr": float(spread)} if fitted and table.shape[1] > 1 else {}),
            "minimum": float(least["risk"][-1]),
            "lower_bound": minimum,
            "certified": bool(least["certified"]),
            "minimum_risk": ("atom", least["risk"]),
            "gap": ("atom", least["gap"]),
            "trace": (("particles", "step"), np.array([row["risk"] for row in traces])),
        },
        {"particles": widths, "step": traces[0]["step"], "atom": np.arange(least["risk"].size)},
        {
            **attributes(first, "problem", "bound", "samples", "seed"),
            "activation": as_activation(first.activation).name,
            **provenance("mean-field", "measured", "mei2018mean,bach2017breaking,jaggi2013", first.seed),
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


@dataclass(frozen=True)
class MeanFieldPreset(Preset):
    """Numbers of particles, random starts, steps of descent, samples; atoms of the minimum; bounds for ReLU and u²."""

    particles: tuple[int, ...]
    draws: int
    steps: int = 1500
    samples: int = 500
    atoms: int = 200
    bounds: tuple[float, float] = (3.0, 1.0)
    line_particles: int = 8

    @property
    def minima(self) -> list[ParticlesDraw]:
        """The minima over all measures: ReLU, whose best atom is searched for, and u², where it is an eigenvector."""
        problem = GaussianMixture(np.array([0.8, 0.5, -0.6]))
        return [
            ParticlesDraw(problem, 0, activation, bound, self.samples, self.atoms)
            for activation, bound in zip(("relu", "square"), self.bounds, strict=True)
        ]


PRESETS = {
    "quick": MeanFieldPreset("half a minute", (2, 4, 8, 16, 32, 64, 128), 6),
    "paper": MeanFieldPreset("about five minutes", (2, 4, 8, 16, 32, 64, 128, 256, 512), 16, steps=4000, samples=1000),
}


def work(preset: MeanFieldPreset) -> list[ParticlesDraw]:
    """Return both minima, and the descents of ReLU particles."""
    base = preset.minima[0]
    runs = [
        replace(base, particles=N, steps=preset.steps, number=number)
        for N in preset.particles
        for number in range(preset.draws)
    ]
    return [*preset.minima, *runs]


def data(preset: MeanFieldPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return risks against N with their exponent; gaps of both minima; risks between the ends of two descents."""
    some = work(preset)
    report = assemble([some[0], *some[2:]], [rows[0], *rows[2:]])
    report.attrs |= {"draws": preset.draws}
    atoms = max(row["gap"].size for row in rows[:2])
    # the last value is repeated: the longer of both says how many atoms there are
    gaps = [np.append(row["gap"], np.repeat(row["gap"][-1], atoms - row["gap"].size)) for row in rows[:2]]
    minima = dataset(
        {
            "gap": (("activation", "atom"), np.array(gaps)),
            "steps": ("activation", [row["gap"].size for row in rows[:2]]),
            "minimum": ("activation", [float(row["risk"][-1]) for row in rows[:2]]),
            "certified": ("activation", [bool(row["certified"]) for row in rows[:2]]),
        },
        {"activation": ["relu", "square"], "atom": np.arange(1, atoms + 1)},
        {"problem": report.attrs["problem"], "bounds": list(preset.bounds)},
    )
    shares = np.linspace(0.0, 1.0, _CHORD_SHARES)
    mixtures, straight = between(replace(some[2], particles=preset.line_particles), shares)
    columns = {"mixtures": ("share", mixtures), "straight": ("share", straight)}
    lines = dataset(columns, {"share": shares}, {"particles": preset.line_particles})
    return {"particles": report, "minima": minima, "between": lines}


def _draw_descents(axes: Axes, panel: Dataset) -> None:
    for k, N in enumerate(panel.particles.values):
        colour = scale_colour(k / max(1, panel.sizes["particles"] - 1))
        axes.plot(panel.step, panel.trace[k] - panel.minimum, color=colour, label=f"N = {N}")
    axes.set(xscale="log", yscale="log", xlabel="step", ylabel="risk above the best measure's")
    axes.set_title("N particles descend, one start each")
    axes.legend(loc="lower left", ncols=2, fontsize=9.5)


def _draw_excess(axes: Axes, panel: Dataset) -> None:
    N, every = panel.particles.values.astype(float), np.maximum(panel.excess_draws.values, _RESOLVED)
    slope, error = float(panel.exponent), float(panel.exponent_stderr)
    typical = np.exp(np.mean(np.log(every), axis=1))  # the line is fitted to logarithms
    starts = np.broadcast_to(N[:, None], every.shape)
    axes.plot(starts.ravel(), every.ravel(), color=RED, marker="o", markersize=3.5, alpha=0.45, linestyle="",
              label="each start")  # fmt: skip
    axes.plot(N, typical, color=RED, marker="D", markersize=7.0, linestyle="", label="their geometric mean")
    middle, height = np.exp(np.mean(np.log(N))), np.exp(np.mean(np.log(typical)))
    label = f"fit, N$^{{{slope:.2f} \\pm {error:.2f}}}$".replace("-", "−")
    axes.plot(N, height * (N / middle) ** slope, color=RED, linewidth=1.1, label=label)
    axes.plot(N, 2.5 * height * middle / N, color="#888888", linestyle=DASHES, linewidth=1.0, label="1/N")
    axes.set(xscale="log", yscale="log", xlabel="N, particles", ylabel="risk above the best measure's")
    axes.set_title("What is left at the end")
    axes.legend(loc="lower left")


def _draw_gaps(axes: Axes, minima: Dataset) -> None:
    looks = {"relu": ("ReLU, best atom searched for", BLUE, "o"), "square": ("u², best atom exact", ORANGE, "s")}
    for name, (words, colour, marker) in looks.items():
        at = minima.sel(activation=name)
        steps = int(at.steps)
        gap = np.maximum(at.gap.values[:steps], 1e-12)
        axes.plot(at.atom[:steps], gap, color=colour, marker=marker, markersize=4.0, linewidth=1.0, label=words)
    axes.set(xscale="log", yscale="log", xlabel="step of conditional gradient, one atom each", ylabel="duality gap")
    axes.set_ylim(None, 50.0)
    axes.set_title("The best measure, and what it can be wrong by")
    axes.legend(loc="upper right")


def _draw_between(axes: Axes, lines: Dataset) -> None:
    axes.plot(lines.share, lines.straight, color=ORANGE, label="straight line between the weights")
    axes.plot(lines.share, lines.mixtures, color=RED, label="mixtures of the measures")
    axes.plot([0.0, 1.0], lines.mixtures[[0, -1]], color="#333333", linestyle=":", linewidth=1.2, label="chord")
    axes.set(xlabel="share of the way from one end to another", ylabel="risk on the sample (1 = best constant)")
    axes.set_title(f"Convex in the measure, not in the weights (N = {lines.attrs['particles']})")
    axes.set_ylim(0.9 * float(lines.mixtures.min()), 1.25 * float(lines.straight.max()))
    axes.legend(loc="upper left")


plot = frames(
    (10.8, 8.0),
    (_draw_descents, "particles"),
    (_draw_excess, "particles"),
    (_draw_gaps, "minima"),
    (_draw_between, "between"),
    rows=2,
)
"""Descents, what is left in the end against N, the gap of the minimum, and the way between two ends."""


def verdict(data: Panels) -> list[str]:
    """Return risks against N, the rate, the certificates and the bump; say whether all is as predicted."""
    particles, minima, lines = data["particles"], data["minima"], data["between"]
    told = [f"{'N':>5}{'risk':>20}{'above the best measure':>24}"]
    for k, N in enumerate(particles.particles.values):
        cell = f"{float(particles.risk[k]):.5f} ± {float(particles.stderr[k]):.5f}"
        told.append(f"{N:>5}{cell:>20}{float(particles.excess[k]):>24.5f}")
    slope, error = float(particles.exponent), float(particles.exponent_stderr)
    told.append(f"excess ∝ N^{slope:.3f} ± {error:.3f} (declared: at most −1)")
    wrong: list[str] = []
    if not slope <= declared.PARTICLES + _TOLERANCE + 2.0 * error:
        wrong.append("the rate")
    for name in ("relu", "square"):
        best = minima.sel(activation=name)
        gap, how = float(best.gap[-1]), "certified" if bool(best.certified) else "best atom searched for, not proved"
        told.append(f"best measure, {name}: {float(best.minimum):.6f}, duality gap {gap:.1e} ({how})")
        if not gap <= _SMALL_GAP:
            wrong.append(f"the gap of {name}")
    if float(particles.excess.min()) < -float(minima.gap[0, -1]):
        wrong.append("a measure that was beaten")
    chord = np.linspace(float(lines.mixtures[0]), float(lines.mixtures[-1]), lines.sizes["share"])
    slack, bump = float(np.min((chord - lines.mixtures)[1:-1])), float(np.max(lines.straight - chord))
    told.append(f"chord less mixtures: at least {slack:.1e}; straight line above the chord: {bump:.3f}")
    if slack < -1e-12:
        wrong.append("convexity")
    ending = "Particles come as near as 1/N, the gaps of the best measures close, and mixtures stay below their chord."
    return [*told, answer(not wrong, ending, f"Not as predicted: {', '.join(wrong)}.")]


_TITLE = "Particles against the best measure, its duality gap, convexity (the same, Mean field)"
_FAULTS = (wrong_rows("a gap that does not close", data, "gap", lambda k, gap: gap + 0.01, seen="the gap of"),)
EXPERIMENT = Experiment(
    "mean-field", _TITLE, PRESETS, work, data, plot, verdict, place=62, report=mean_field, faults=_FAULTS
)

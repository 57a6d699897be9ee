"""Mean field: N particles tend to the best measure like 1/N, and the risk is convex in the measure (M: Montanari 2019).

N particles drawn from the best measure miss its risk by C/N on average, so the best N particles do no worse. Particles
descend; the minimum over measures comes from conditional gradient, with its duality gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lazyscope.evidence.work import Row
from lazyscope.experiments.wide.mean_field_numbers import ParticlesDraw, assemble, between
from lazyscope.problems import GaussianMixture
from lazyscope.runs.pictures import LOOKS, scale_colour, style

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _RED = (LOOKS[name]["color"] for name in ("RF", "RF, optimal weights", "NN"))
_TOLERANCE = 0.1  # of the exponent: descents need not find the best particles
_SMALL_GAP = 1e-5
_CHORD_SHARES = 41


@dataclass(frozen=True)
class Size:
    """Numbers of particles, random starts, steps of descent, samples; atoms of the minimum; bounds for ReLU and u²."""

    cost: str
    particles: tuple[int, ...]
    draws: int
    steps: int = 1500
    samples: int = 500
    atoms: int = 200
    bounds: tuple[float, float] = (3.0, 1.0)
    line_particles: int = 8

    @property
    def minima(self) -> list[ParticlesDraw]:
        """The minima over all measures: ReLU, whose best atom is searched for, and u², whose is an eigenvector."""
        problem = GaussianMixture(np.array([0.8, 0.5, -0.6]))
        return [
            ParticlesDraw(problem, 0, activation, bound, self.samples, self.atoms)
            for activation, bound in zip(("relu", "square"), self.bounds, strict=True)
        ]


PRESETS = {
    "quick": Size("half a minute", (2, 4, 8, 16, 32, 64, 128), 6),
    "paper": Size("about five minutes", (2, 4, 8, 16, 32, 64, 128, 256, 512), 16, steps=4000, samples=1000),
}


def work(size: Size) -> list[ParticlesDraw]:
    """Return both minima, and the descents of ReLU particles."""
    base = size.minima[0]
    runs = [
        replace(base, particles=N, steps=size.steps, number=number)
        for N in size.particles
        for number in range(size.draws)
    ]
    return [*size.minima, *runs]


def data(size: Size, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return risks against N with their exponent; gaps of both minima; risks between the ends of two descents."""
    import xarray as xr

    some = work(size)
    found = assemble([some[0], *some[2:]], [rows[0], *rows[2:]])
    found.attrs |= {"draws": size.draws, "citations": "mei2018mean, jaggi2013"}
    atoms = max(row["gap"].size for row in rows[:2])
    # the last value is repeated: the longer of both says how many atoms there are
    gaps = [np.append(row["gap"], np.repeat(row["gap"][-1], atoms - row["gap"].size)) for row in rows[:2]]
    minima = xr.Dataset(
        {
            "gap": (("activation", "atom"), np.array(gaps)),
            "steps": ("activation", [row["gap"].size for row in rows[:2]]),
            "minimum": ("activation", [float(row["risk"][-1]) for row in rows[:2]]),
            "certified": ("activation", [bool(row["certified"]) for row in rows[:2]]),
        },
        {"activation": ["relu", "square"], "atom": np.arange(1, atoms + 1)},
        {"problem": found.attrs["problem"], "bounds": list(size.bounds)},
    )
    shares = np.linspace(0.0, 1.0, _CHORD_SHARES)
    pair = replace(some[2], particles=size.line_particles)
    mixtures, straight = between(pair, shares)
    lines = xr.Dataset(
        {"mixtures": ("share", mixtures), "straight": ("share", straight)},
        {"share": shares},
        {"particles": size.line_particles},
    )
    return {"particles": found, "minima": minima, "between": lines}


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw descents, what is left in the end against N, the gap of the minimum, and the way between two ends."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(10.8, 8.0))
        (first, second), (third, fourth) = figure.subplots(2, 2)
        _draw_descents(first, data["particles"])
        _draw_excess(second, data["particles"])
        _draw_gaps(third, data["minima"])
        _draw_between(fourth, data["between"])
    return figure


def _draw_descents(axes: Axes, found: xr.Dataset) -> None:
    for k, N in enumerate(found.particles.values):
        colour = scale_colour(k / max(1, found.sizes["particles"] - 1))
        axes.plot(found.step, found.trace[k] - found.minimum, color=colour, label=f"N = {N}")
    axes.set(xscale="log", yscale="log", xlabel="step", ylabel="risk above the best measure's")
    axes.set_title("N particles descend, one start each")
    axes.legend(loc="lower left", ncols=2, fontsize=9.5)


def _draw_excess(axes: Axes, found: xr.Dataset) -> None:
    N, excess = found.particles.values.astype(float), found.excess.values
    slope, error = float(found.exponent), float(found.exponent_stderr)
    label = f"mean of {found.attrs['draws']} starts: N$^{{{slope:.2f} \\pm {error:.2f}}}$".replace("-", "−")
    axes.errorbar(N, excess, found.stderr, color=_RED, marker="D", linestyle="", label=label)
    middle = np.exp(np.mean(np.log(N)))
    height = np.exp(np.mean(np.log(excess)))
    axes.plot(N, height * (N / middle) ** slope, color=_RED, linewidth=1.1)
    axes.plot(N, 2.5 * height * middle / N, color="#888888", linestyle=(0, (4, 3)), linewidth=1.0, label="1/N")
    axes.set(xscale="log", yscale="log", xlabel="N, particles", ylabel="risk above the best measure's")
    axes.set_title("What is left at the end")
    axes.legend(loc="lower left")


def _draw_gaps(axes: Axes, minima: xr.Dataset) -> None:
    looks = {"relu": ("ReLU, best atom searched for", _BLUE, "o"), "square": ("u², best atom exact", _ORANGE, "s")}
    for name, (words, colour, marker) in looks.items():
        one = minima.sel(activation=name)
        steps = int(one.steps)
        gap = np.maximum(one.gap.values[:steps], 1e-12)
        axes.plot(one.atom[:steps], gap, color=colour, marker=marker, markersize=4.0, linewidth=1.0, label=words)
    axes.set(xscale="log", yscale="log", xlabel="step of conditional gradient, one atom each", ylabel="duality gap")
    axes.set_ylim(None, 50.0)
    axes.set_title("The best measure, and what it can be wrong by")
    axes.legend(loc="upper right")


def _draw_between(axes: Axes, lines: xr.Dataset) -> None:
    axes.plot(lines.share, lines.straight, color=_ORANGE, label="straight line between the weights")
    axes.plot(lines.share, lines.mixtures, color=_RED, label="mixtures of the measures")
    axes.plot([0.0, 1.0], lines.mixtures[[0, -1]], color="#333333", linestyle=":", linewidth=1.2, label="chord")
    axes.set(xlabel="share of the way from one end to another", ylabel="risk on the sample (1 = best constant)")
    axes.set_title(f"Convex in the measure, not in the weights (N = {lines.attrs['particles']})")
    axes.set_ylim(0.9 * float(lines.mixtures.min()), 1.25 * float(lines.straight.max()))
    axes.legend(loc="upper left")


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return risks against N, the rate, the certificates and the bump; say whether all is as predicted."""
    found, minima, lines = data["particles"], data["minima"], data["between"]
    told = [f"{'N':>5}{'risk':>20}{'above the best measure':>24}"]
    for k, N in enumerate(found.particles.values):
        cell = f"{float(found.risk[k]):.5f} ± {float(found.stderr[k]):.5f}"
        told.append(f"{N:>5}{cell:>20}{float(found.excess[k]):>24.5f}")
    slope, error = float(found.exponent), float(found.exponent_stderr)
    told.append(f"excess ∝ N^{slope:.3f} ± {error:.3f} (declared: at most −1)")
    wrong: list[str] = []
    if not slope <= -1.0 + _TOLERANCE + 2.0 * error:
        wrong.append("the rate")
    for name in ("relu", "square"):
        one = minima.sel(activation=name)
        gap, how = float(one.gap[-1]), "certified" if bool(one.certified) else "best atom searched for, not proved"
        told.append(f"best measure, {name}: {float(one.minimum):.6f}, duality gap {gap:.1e} ({how})")
        if not gap <= _SMALL_GAP:
            wrong.append(f"the gap of {name}")
    if float(found.excess.min()) < -float(minima.gap[0, -1]):
        wrong.append("a measure that was beaten")
    chord = np.linspace(float(lines.mixtures[0]), float(lines.mixtures[-1]), lines.sizes["share"])
    slack, bump = float(np.min((chord - lines.mixtures)[1:-1])), float(np.max(lines.straight - chord))
    told.append(f"chord less mixtures: at least {slack:.1e}; straight line above the chord: {bump:.3f}")
    if slack < -1e-12:
        wrong.append("convexity")
    ending = "Particles come as near as 1/N, the gaps of the best measures close, and mixtures stay below their chord."
    return [*told, ending if not wrong else f"Not as predicted: {', '.join(wrong)}."]

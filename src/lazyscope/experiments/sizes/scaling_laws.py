"""Scaling laws: the risk in the plane of n and N for a power law, its exponents, and how to spend a cost of nN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, dataset, over_draws, wrong_work
from lazyscope.experiments.frame.drawing import frames
from lazyscope.experiments.frame.draws import attributes
from lazyscope.experiments.frame.judgement import judged
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.experiments.sizes.judged import dots_of, left_out
from lazyscope.limits.spectral.power_laws import PowerLaw
from lazyscope.problems import SpectralTarget
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.pictures import BLUE, GREEN, PURPLE, RED, scale_colour
from lazyscope.runs.verbs import limit
from lazyscope.training.linear.gaussian import gaussian_risk
from lazyscope.weights import generator

_TOLERANCE = 0.02  # of an exponent
_RIDGES = (0.0, *np.geomspace(1e-6, 1e2, 17).tolist())
_LARGE = (1e6, 1e8)  # n between which exponents are measured
_WIDEST = 1e10  # N: a thousand eigenvalues for each neuron are then known
_COLOURS = (BLUE, RED, GREEN, PURPLE)
_CITED = "defilippis2024dimension,cui2021generalization"


@dataclass(frozen=True)
class ScalingDraw(Draw):
    """Ridge regression on N random combinations of Gaussian eigenfunctions, whose eigenvalues are a power law."""

    a: float
    r: float
    width: int
    samples: int
    ridge: float
    noise: float
    terms: int
    number: int = 0
    seed: int = 0

    words = "N = {0.width}, n = {0.samples}, draw {0.number}"
    costs = ("width", "samples")

    @property
    def target(self) -> SpectralTarget:
        """The same problem for `limit`."""
        return SpectralTarget.power_law(self.a, self.r, self.terms, self.noise)

    def compute(self) -> Row:
        """Draw, fit, and return the risk: 2nN·terms flops and a decomposition of min(n, N)³."""
        key = (self.number, self.width, self.samples)
        rng = generator(self.seed, *key)
        return {"risk": np.asarray(gaussian_risk(self.target, self.width, self.samples, self.ridge, rng))}


@dataclass(frozen=True)
class ScalingPreset(Preset):
    """Laws, the first that of the plane; the plane; dots."""

    draws: int
    laws: tuple[PowerLaw, ...] = (PowerLaw(1.5, 0.75), PowerLaw(1.5, 0.3), PowerLaw(1.5, 1.5))
    points: int = 61
    costs: tuple[float, ...] = (1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12)
    samples: tuple[int, ...] = (50, 200)
    widths: tuple[int, ...] = (10, 30, 100, 300, 1000)
    ridge: float = 0.01
    noise: float = 0.1
    terms: int = 800


PRESETS = {
    "quick": ScalingPreset("half a minute", 12),
    "paper": ScalingPreset(
        "ten minutes", 48, points=121, samples=(50, 200, 800), widths=(10, 30, 100, 300, 1000, 3000)
    ),
}


def work(preset: ScalingPreset) -> list[ScalingDraw]:
    """Return the dots: every n, N and draw."""
    law, common = preset.laws[0], (preset.ridge, preset.noise, preset.terms)
    return [
        ScalingDraw(law.a, law.r, N, n, *common, number)
        for n in preset.samples
        for N in preset.widths
        for number in range(preset.draws)
    ]


def risks(target: SpectralTarget, N: Any, n: Any, ridge: Any = 0.0) -> FloatArray:
    """Return the formula's risk, over (N, n), or over (N, n, λ) where there are several ridges."""
    risk = limit(target, RandomFeatures(), width=N, samples=n, ridge=ridge).risk
    return np.asarray(risk.values, dtype=np.float64)


def _best(target: SpectralTarget, N: FloatArray, n: FloatArray) -> FloatArray:
    """Return the risk with the best of some ridges, for N and n side by side."""
    return np.array([risks(target, [a], [b], _RIDGES).min() for a, b in zip(N, n, strict=True)])


def measured(law: PowerLaw) -> dict[str, tuple[float, float]]:
    """Return the exponents of n and of N in each region: a plane fitted to log R at n = 10⁶ … 10⁸, N = n^q."""
    target, found = law.target(), {}
    for name, (_, _, between) in law.regions.items():
        n = np.repeat(np.geomspace(*_LARGE, 5), 4)
        N = n ** np.tile(np.linspace(*between, 4), 5)
        R = np.array([float(risks(target, a, b)) for a, b in zip(N, n, strict=True)])
        design = np.stack([np.log(n), np.log(N), np.ones_like(n)], axis=1)
        fit = np.linalg.lstsq(design, np.log(R), rcond=None)[0]
        found[name] = float(fit[0]), float(fit[1])
    return found


def _slope(x: FloatArray, y: FloatArray) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def noisy(law: PowerLaw) -> float:
    """Return the exponent of n with noise ½, N = ∞ and the best ridge, at n = 10⁶ … 10⁸."""
    n, ridges = np.geomspace(*_LARGE, 5), np.geomspace(1e-3, 1e6, 181)
    return _slope(n, risks(law.target(0.5), np.inf, n, ridges).min(axis=-1))


def path(law: PowerLaw, costs: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return the best n at each cost C = nN, and the risk there: by a parabola through a grid's best three."""
    target, samples, least = law.target(), [], []
    for cost in costs:
        n = np.geomspace(max(4.0, cost / _WIDEST), cost / 4.0, 121)
        logs = np.log(_best(target, cost / n, n))
        k = int(np.clip(np.argmin(logs), 1, len(n) - 2))
        x = np.log(n[k - 1 : k + 2])
        bend, slope, level = np.polyfit(x - x[1], logs[k - 1 : k + 2], 2)
        best = -0.5 * slope / bend
        samples.append(float(np.exp(x[1] + best)))
        least.append(float(np.exp(level + 0.5 * slope * best)))
    return np.array(samples), np.array(least)


def data(preset: ScalingPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return the plane of the first law, its dots, and for every law its exponents: by region, along N = n^q, of C."""
    laws = {str(law): law for law in preset.laws}
    return {
        "plane": _plane(preset),
        "dots": _dots(preset, rows),
        "regions": _regions(preset.laws),
        "along": _along(laws),
        "path": _paths(laws, preset.costs),
    }


def _plane(preset: ScalingPreset) -> Dataset:
    law, n = preset.laws[0], np.geomspace(10.0, 1e5, preset.points)
    N = np.geomspace(10.0, 1e7, preset.points)
    risk = risks(law.target(), N, n, _RIDGES).min(axis=-1)
    about = {"a": law.a, "r": law.r, "citations": _CITED, "ridge": "the best of some"}
    return dataset({"risk": (("width", "samples"), risk)}, {"width": N, "samples": n}, about)


def _dots(preset: ScalingPreset, rows: Sequence[Row]) -> Dataset:
    target = work(preset)[0].target
    shape = (len(preset.samples), len(preset.widths), preset.draws)
    drawn = np.array([float(row["risk"]) for row in rows]).reshape(shape)
    mean, stderr = over_draws(drawn)
    dims = ("samples", "width")
    sizes = [(float(N), float(n)) for n in preset.samples for N in preset.widths]
    missing = [left_out(lambda N, n: float(risks(target, N, n, preset.ridge)), *pair) for pair in sizes]
    along = np.geomspace(0.7 * preset.widths[0], 1.5 * preset.widths[-1], 121)
    columns: dict[str, Any] = {
        "risk": (dims, mean),
        "stderr": (dims, stderr),
        "expected": (dims, risks(target, preset.widths, preset.samples, preset.ridge).T),
        "allowance": (dims, np.reshape(missing, shape[:2])),
        "risk_draws": ((*dims, "draw"), drawn),
        "line": (("samples", "along"), risks(target, along, preset.samples, preset.ridge).T),
    }
    coordinates = {"samples": list(preset.samples), "width": list(preset.widths), "along": along}
    about = {"problem": str(target), **attributes(preset, "ridge", "draws"), "citations": _CITED}
    return dataset(columns, coordinates, about)


def _regions(laws: Sequence[PowerLaw]) -> Dataset:
    """A row for each region of each law: exponents of n and of N, measured and proved; and that of noise."""
    rows = []
    for law in laws:
        fitted = measured(law)
        rows += [(str(law), name, *fitted[name], *law.regions[name][:2]) for name in fitted]
        rows.append((str(law), "noise, best λ, N = ∞", noisy(law), 0.0, -law.noisy, 0.0))
    law_names, names, *numbers = zip(*rows, strict=True)
    keys = ("measured_n", "measured_N", "proved_n", "proved_N")
    columns = {key: (("row",), np.array(values)) for key, values in zip(keys, numbers, strict=True)}
    coordinates = {"law": ("row", list(law_names)), "region": ("row", list(names))}
    return dataset(columns, coordinates, {"citations": _CITED})


def _along(laws: Mapping[str, PowerLaw]) -> Dataset:
    q, n = np.linspace(0.2, 3.0, 29), np.geomspace(*_LARGE, 3)
    fitted = [[-_slope(n, _best(law.target(), n**exponent, n)) for exponent in q] for law in laws.values()]
    proved = [[law.along(exponent) for exponent in q] for law in laws.values()]
    columns = {"measured": (("law", "q"), np.array(fitted)), "proved": (("law", "q"), np.array(proved))}
    return dataset(columns, {"law": list(laws), "q": q}, {"citations": _CITED})


def _paths(laws: Mapping[str, PowerLaw], costs: Sequence[float]) -> Dataset:
    paths = [path(law, costs) for law in laws.values()]
    columns: dict[str, Any] = {
        "samples": (("law", "cost"), np.array([n for n, _ in paths])),
        "risk": (("law", "cost"), np.array([risk for _, risk in paths])),
        "proved_q": (("law",), [law.best[0] for law in laws.values()]),
        "proved": (("law",), [law.best[1] for law in laws.values()]),
    }
    return dataset(columns, {"law": list(laws), "cost": list(costs)}, {"citations": _CITED})


def _draw_plane(axes: Axes, plane: Dataset, paths: Dataset) -> None:
    law = PowerLaw(plane.attrs["a"], plane.attrs["r"])
    logs = np.log10(plane.risk.values)
    shown = axes.contourf(plane.samples, plane.width, logs, levels=24, cmap="viridis")
    axes.figure.colorbar(shown, ax=axes, label="log₁₀ risk, best ridge")
    axes.contour(plane.samples, plane.width, logs, levels=24, colors="white", linewidths=0.3, alpha=0.6)
    n = plane.samples.values
    axes.plot(n, n, color="white", linestyle=":", label="N = n")
    axes.plot(n, n**law.enough, color="white", linestyle="--", label=f"N = n^{law.enough:g}")
    best = paths.sel(law=str(law))
    axes.plot(best.samples, best.cost / best.samples, color=RED, marker="o", markersize=4, label="best at cost nN")
    limits = {"xlim": (n[0], n[-1]), "ylim": (plane.width.values[0], plane.width.values[-1])}
    axes.set(xscale="log", yscale="log", xlabel="samples n", ylabel="neurons N", title=f"The plane, {law}", **limits)
    axes.legend(loc="lower right", facecolor="#3b3b54", labelcolor="white", framealpha=0.9, frameon=True)


def _draw_along(axes: Axes, along: Dataset) -> None:
    sizes = (8, 4, 4, 4)  # laws coincide where neurons are few: the first is seen around the others
    for law, colour, size in zip(along.law.values.tolist(), _COLOURS, sizes, strict=False):
        one = along.sel(law=law)
        axes.plot(one.q, one.proved, color=colour, linewidth=1.2)
        axes.plot(one.q, one.measured, color=colour, linestyle="", marker="o", markersize=size, label=law)
    axes.set(xlabel="q: N = n^q neurons", ylabel="γ: risk ~ n^−γ", ylim=(0.0, None))
    axes.set_title("Exponents: proved (lines), the formula (dots)")
    axes.legend()


def _draw_paths(axes: Axes, paths: Dataset) -> None:
    cost = paths.cost.values
    for law, colour in zip(paths.law.values.tolist(), _COLOURS, strict=False):
        one = paths.sel(law=law)
        label = f"{law}: N ~ n^{float(one.proved_q):g}, C^−{float(one.proved):.3f}"
        axes.plot(cost, one.risk, color=colour, linestyle="", marker="o", markersize=5, label=label)
        axes.plot(cost, one.risk.values[-1] * (cost / cost[-1]) ** -float(one.proved), color=colour, linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="cost C = nN", ylabel="least risk at this cost")
    axes.set_ylim(1e-3 * float(paths.risk.min()), None)
    axes.set_title("The best a cost can buy; lines have the proved slopes")
    axes.legend(loc="lower left")


def _draw_dots(axes: Axes, dots: Dataset) -> None:
    for k, n in enumerate(dots.samples.values.tolist()):
        colour, one = scale_colour(0.8 * k / max(1, dots.samples.size - 1)), dots.sel(samples=n)
        axes.plot(one.along, one.line, color=colour, label=f"n = {n}")
        axes.errorbar(one.width, one.risk, one.stderr, color=colour, linestyle="", marker="o", markersize=5)
    axes.set(xscale="log", yscale="log", xlabel="neurons N", ylabel="risk, λ and noise fixed")
    axes.set_title("Draws (dots) on the formula (lines)")
    axes.legend()


plot = frames(
    (11.0, 8.6),
    (_draw_plane, "plane", "path"),
    (_draw_along, "along"),
    (_draw_paths, "path"),
    (_draw_dots, "dots"),
    rows=2,
)
"""The plane with its regions and its best path, exponents against q, the risk against its cost, and dots."""


def verdict(data: Panels) -> list[str]:
    """Return the exponents region by region, those of the cost, the dots, and whether all are as they should be."""
    regions, paths = data["regions"], data["path"]
    lines = [f"{'law':<18}{'region':<24}{'n: measured':>12}{'proved':>9}{'N: measured':>13}{'proved':>9}"]
    for k in range(regions.sizes["row"]):
        row = regions.isel(row=k)
        numbers = f"{float(row.measured_n):>12.3f}{float(row.proved_n):>9.3f}"
        if float(row.proved_N) or float(row.measured_N):
            numbers += f"{float(row.measured_N):>13.3f}{float(row.proved_N):>9.3f}"
        lines.append(f"{row.law.item():<18}{row.region.item():<24}{numbers}")
    off = [float(np.max(np.abs(regions[f"measured_{of}"] - regions[f"proved_{of}"]))) for of in "nN"]
    lines.append(f"{'law':<18}{'cost C = nN':<24}{'C: measured':>12}{'proved':>9}{'N ~ n^q, q:':>13}{'proved':>9}")
    late = paths.cost.values >= np.median(paths.cost.values)
    for name in paths.law.values.tolist():
        best = paths.sel(law=name)
        n, cost = best.samples.values[late], best.cost.values[late]
        rate, q = _slope(cost, best.risk.values[late]), _slope(n, cost / n)
        numbers = f"{rate:>12.3f}{-float(best.proved):>9.3f}{q:>13.2f}{float(best.proved_q):>9.2f}"
        lines.append(f"{name:<18}{'':<24}{numbers}")
        off.append(abs(rate + float(best.proved)))
    far, found = max(off), judged(dots_of(data["dots"], "dot")).answer()
    lines.append(f"the exponent farthest from its proof is off by {far:.3f}, where {_TOLERANCE:g} is allowed")
    hold = found.holds and far <= _TOLERANCE
    return [*lines, answer(hold, f"Scaling laws hold. {found}", f"Scaling laws do NOT hold. {found}")]


_TITLE = "Scaling laws: the risk in the plane of n and N, its exponents, and how to spend nN"
_FAULTS = (
    wrong_work("labels with three times the noise", data, work, lambda right: replace(right, noise=3.0 * right.noise)),
)
EXPERIMENT = Experiment("scaling-laws", _TITLE, PRESETS, work, data, plot, verdict, place=27, faults=_FAULTS)

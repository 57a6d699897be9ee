"""The spectrum of the kernel matrix ΦΦᵀ/N of random features, drawn and in theory (Montanari 2019, random matrices).

ReLU features have the spectrum of noisy linear ones: a bulk of noise and, beside or within it, what is linear. |u| has
no linear part, and the law of Marchenko and Pastur alone. Features that are not centred have an eigenvalue far away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, canvas, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.draws import attributes, exponents
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.experiments.frame.verdict import wrong_numbers
from lazyscope.limits.spectral import feature_matrix
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.pictures import LOOKS
from lazyscope.training.linear.random_layer import features, unit_rows
from lazyscope.weights import generator

_CITED = "cheng2013spectrum,pennington2017nonlinear"
_KINDS = {"ReLU": ("relu", False), "noisy linear": ("relu", True), "|u|": ("abs", False)}
_LOOKS = {
    "ReLU": {"color": LOOKS["RF"]["color"], "marker": "o"},
    "noisy linear": {"color": LOOKS["NN"]["color"], "marker": "s"},
    "|u|": {"color": LOOKS["NT"]["color"], "marker": "^"},
}
_RATE = (-1.35, -0.65)  # of the distance: 1/d is expected, eigenvalues being rigid; a wrong law stays where it is
_SPIKE = 5.0  # how far the largest eigenvalue may lie from its place, in standard errors, at the largest d


@dataclass(frozen=True)
class SpectrumDraw(Draw):
    """The eigenvalues of one kernel matrix, of centred features and the largest one of those that are not."""

    kind: str
    d: int
    psi1: float
    psi2: float
    number: int = 0
    seed: int = 0

    words = "spectrum, {0.kind}, d = {0.d}"
    costs = ("d", "d")

    def compute(self) -> Row:
        """Draw Φ and diagonalise ΦΦᵀ/N: 2nNd + n²N + 3n³ flops."""
        name, surrogate = _KINDS[self.kind]
        n, N = round(self.psi2 * self.d), round(self.psi1 * self.d)
        rng = generator(self.seed, self.number, self.d)
        X = np.sqrt(self.d) * unit_rows(rng.standard_normal((n, self.d)))
        regime = RandomFeatures(name, surrogate=surrogate)
        Phi = features(regime, unit_rows(rng.standard_normal((N, self.d))), X, rng)
        eigenvalues = np.linalg.eigvalsh(Phi @ Phi.T / N)
        Phi += regime.activation.hermite(0)
        return {"eigenvalues": eigenvalues, "largest": np.linalg.eigvalsh(Phi @ Phi.T / N)[-1:]}


@dataclass(frozen=True)
class SpectrumPreset(Preset):
    """Dimensions, N/d, n/d and draws in each dimension."""

    d: tuple[int, ...]
    draws: int
    psi1: float = 6.0
    psi2: float = 2.0


PRESETS = {
    "quick": SpectrumPreset("a quarter of a minute", (40, 80, 160, 320), 4),
    "paper": SpectrumPreset("five minutes", (50, 100, 200, 400, 800), 10),
}


def work(preset: SpectrumPreset) -> list[SpectrumDraw]:
    """Return all matrices, kind by kind and dimension by dimension."""
    return [
        SpectrumDraw(kind, d, preset.psi1, preset.psi2, number)
        for kind in _KINDS
        for d in preset.d
        for number in range(preset.draws)
    ]


def data(preset: SpectrumPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return the density with a histogram of the largest matrices, and the distances against d."""
    sigmas = {kind: Activation(name) for kind, (name, _) in _KINDS.items()}
    laws = {kind: feature_matrix.distribution(sigma, preset.psi1, preset.psi2) for kind, sigma in sigmas.items()}
    shape = (len(_KINDS), len(preset.d), preset.draws)
    pairs = list(zip(work(preset), rows, strict=True))
    distances = np.array([laws[draw.kind].distance(row["eigenvalues"]) for draw, row in pairs]).reshape(shape)
    largest = np.array([row["largest"][0] for row in rows]).reshape(shape)
    expected = [
        [feature_matrix.spike(sigma, preset.psi1, preset.psi2, round(preset.psi2 * d)) for d in preset.d]
        for sigma in sigmas.values()
    ]
    about = {**attributes(preset, "psi1", "psi2"), "citations": _CITED, "d": preset.d[-1]}
    panels = {}
    for kind, law in laws.items():
        last = [row["eigenvalues"] for draw, row in pairs if (draw.kind, draw.d) == (kind, preset.d[-1])]
        panels[kind] = _histogram(law, last, about)
    axes = ("kind", "d", "draw")
    sizes = dataset(
        {"distance": (axes, distances), "largest": (axes, largest), "spike": (axes[:2], np.array(expected))},
        {"kind": list(_KINDS), "d": list(preset.d)},
        about,
    )
    return {**panels, "distance": sizes}


def _histogram(law: feature_matrix.Distribution, some: Sequence[FloatArray], about: Mapping[str, Any]) -> Dataset:
    """Return the mean histogram and the density, both over log λ: the two bulks are of very different sizes."""
    inside = law.at[law.density > 0.0]
    low = 0.8 * min(float(inside[0]), min(float(values[0]) for values in some))
    top = 1.1 * max(float(inside[-1]), max(float(values[-1]) for values in some))
    edges, shown = np.geomspace(low, top, 51), np.geomspace(low, top, 801)
    counts = np.mean([np.histogram(values, edges)[0] / values.size for values in some], axis=0)
    return dataset(
        {
            "histogram": (("bin",), counts / np.diff(np.log(edges))),
            "density": (("place",), shown * np.interp(shown, law.at, law.density, left=0.0, right=0.0)),
            "residual": ((), law.residual),
        },
        {"bin": np.sqrt(edges[1:] * edges[:-1]), "place": shown},
        {**about},
    )


def plot(data: Panels) -> Figure:
    """Draw histograms under their densities, and the distance between them against d."""
    with canvas(13.5, 4.3) as figure:
        frames = figure.subplots(1, 3)
        _spectrum(frames[0], data["ReLU"], "ReLU", "ReLU: linear plus bulk", data["noisy linear"])
        _spectrum(frames[1], data["|u|"], "|u|", "|u|: Marchenko and Pastur")
        _distances(frames[2], data["distance"])
    return figure


def _spectrum(axes: Axes, panel: Dataset, kind: str, title: str, linear: Dataset | None = None) -> None:
    full: dict[str, Any] = {"color": _LOOKS[kind]["color"], "alpha": 0.35, "step": "mid"}
    axes.fill_between(panel.bin, panel.histogram, label=f"{kind} features, drawn", **full)
    if linear is not None:
        look: dict[str, Any] = {"color": _LOOKS["noisy linear"]["color"], "linewidth": 1.0}
        axes.step(linear.bin, linear.histogram, where="mid", label="noisy linear features, drawn", **look)
    axes.plot(panel.place, panel.density, color="#222222", linewidth=1.4, label="theory, d → ∞")
    sizes = f"d = {panel.attrs['d']}, N = {panel.attrs['psi1']:g} d, n = {panel.attrs['psi2']:g} d"
    axes.set(xlabel="eigenvalue λ of ΦΦᵀ/N", ylabel="density of log λ", xscale="log", title=f"{title}\n{sizes}")
    axes.set_ylim(0.0, 1.4 * float(panel.density.max()))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend()


def _distances(axes: Axes, panel: Dataset) -> None:
    slopes, errors = rates(panel)
    for kind, slope, error in zip(panel.kind.values.tolist(), slopes, errors, strict=True):
        mean, stderr = over_draws(panel.distance.sel(kind=kind).values)
        label = f"{kind}: $d^{{{slope:.2f} ± {error:.2f}}}$".replace("-", "−")
        axes.errorbar(panel.d, mean, stderr, linestyle="", markersize=5.5, label=label, **_LOOKS[kind])
    d = panel.d.values.astype(float)
    start = float(panel.distance.sel(kind="ReLU").isel(d=0).mean())
    axes.plot(d, start * d[0] / d, color="#888888", linestyle=":", label="∝ 1/d")
    axes.set(xscale="log", yscale="log", xlabel="d", ylabel="Kolmogorov–Smirnov distance")
    axes.set(title="Drawn against predicted\ndistribution of the eigenvalues", xticks=d)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.legend()


def rates(panel: Dataset) -> tuple[FloatArray, FloatArray]:
    """Return the exponents of d in the distances, and their standard errors."""
    return exponents(panel.d.values.astype(np.float64), panel.distance.values)


def verdict(data: Panels) -> list[str]:
    """Return distances, exponents and the largest eigenvalue, and whether theory and draws meet as d grows."""
    panel = data["distance"]
    slopes, errors = rates(panel)
    lines = [f"{'':>14}" + "".join(f"{f'd = {d}':>11}" for d in panel.d.values) + f"{'exponent of d':>20}"]
    for kind, slope, error in zip(panel.kind.values.tolist(), slopes, errors, strict=True):
        cells = "".join(f"{value:>11.4f}" for value in panel.distance.sel(kind=kind).mean("draw").values)
        lines.append(f"{kind:>14}{cells}{f'{slope:.2f} ± {error:.2f}':>20}")
    last = panel.sel(kind=["ReLU", "|u|"]).isel(d=-1)
    mean, stderr = over_draws(last.largest.values)
    off = (mean - last.spike.values) / stderr
    words = ", ".join(
        f"{kind} {value:.1f} (predicted {at:.1f})"
        for kind, value, at in zip(last.kind.values.tolist(), mean, last.spike.values, strict=True)
    )
    lines.append(f"largest eigenvalue without centring, d = {panel.attrs['d']}: {words}")
    meets = bool(np.all((slopes > _RATE[0]) & (slopes < _RATE[1])))
    placed = bool(np.all(np.abs(off) < _SPIKE))
    told = f"distances fall with exponents {', '.join(f'{slope:.2f}' for slope in slopes)}"
    spikes = f"the spikes are {'at their places' if placed else 'NOT at their places'}"
    fine = "is" if meets else "is NOT"
    words = f"The predicted spectrum {fine} that of large matrices: {told}; {spikes}."
    return [*lines, answer(meets and placed, words, words)]


_TITLE = "Spectrum of the kernel matrix of random features: linear plus bulk"
_FAULTS = (
    wrong_numbers("spikes 10 % too far out", data, "distance", "spike", lambda spike: 1.1 * spike),
    wrong_rows("features 5 % too large", data, "eigenvalues", lambda k, values: 1.05**2 * values),
)
EXPERIMENT = Experiment("kernel-spectrum", _TITLE, PRESETS, work, data, plot, verdict, place=29, faults=_FAULTS)

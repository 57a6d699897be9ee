"""The probability that data are separable, against N/n: a step at the threshold that sharpens as sizes grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.evidence.run import Run
from lazyscope.experiments.frame import Experiment, Preset, Row, answer, canvas, dataset, wrong_work
from lazyscope.experiments.frame.draws import attributes
from lazyscope.experiments.frame.judgement import Dot, judged, table
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.limits.margin.at_weights import features_at
from lazyscope.limits.margin.finite import separable_share
from lazyscope.limits.margin.separability import separability_threshold
from lazyscope.problems import LinearLabels
from lazyscope.regimes import IsotropicFeatures, RandomFeatures
from lazyscope.runs.pictures import scale_colour
from lazyscope.training.linear.margin import drawn_weights

_REGIMES: dict[str, RandomFeatures | IsotropicFeatures] = {
    "random features": RandomFeatures("relu"),
    "isotropic features": IsotropicFeatures(),
}
_EITHER = 1.0  # draws of the rarer kind that a share needs to be judged by itself
_MARKERS = ("o", "s", "D", "^")


@dataclass(frozen=True)
class SeparabilityPreset(Preset):
    """Dimensions, ratios over the threshold, draws, samples per dimension of random features, signal."""

    d: tuple[int, ...]
    draws: int
    relative: tuple[float, ...] = (0.7, 0.8, 0.88, 0.94, 0.98, 1.02, 1.06, 1.12, 1.2, 1.3)
    psi2: float = 2.0
    signal: float = 4.0

    @property
    def problem(self) -> LinearLabels:
        """Logistic labels."""
        return LinearLabels(self.signal)

    def thresholds(self) -> dict[str, float]:
        """N/n at the threshold of each regime."""
        thresholds = (
            separability_threshold(self.problem, regime, **({"psi2": self.psi2} if "random" in name else {}))
            for name, regime in _REGIMES.items()
        )
        return {name: float(threshold.ratio) for name, threshold in zip(_REGIMES, thresholds, strict=True)}

    def grid(self) -> list[tuple[str, int, int, int]]:
        """Regime, d, N and n of every point: n = 2d samples for random features, N = d isotropic features."""
        points = []
        for name, ratio in self.thresholds().items():
            for d in self.d:
                for relative in self.relative:
                    if "random" in name:
                        n = round(self.psi2 * d)
                        points.append((name, d, round(relative * ratio * n), n))
                    else:
                        points.append((name, d, d, round(d / (relative * ratio))))
        return points


PRESETS = {
    "quick": SeparabilityPreset("one minute", (25, 50, 100), 40),
    "paper": SeparabilityPreset("half an hour", (50, 100, 200, 400), 200),
}


def work(preset: SeparabilityPreset) -> list[Run]:
    """Return the trials of every point."""
    runs = []
    for name, d, N, n in preset.grid():
        sizes = {"width": (N,), "samples": (n,), "d": (d,)}
        first = Run("simulate", preset.problem, _REGIMES[name], sizes, "margin")
        runs += [first.at(number=number) for number in range(preset.draws)]
    return runs


def data(preset: SeparabilityPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return, in a panel for each regime, the share of separable draws by d and N/n, and where it crosses one half."""
    separable = (
        np.array([float(row["separable"]) for row in rows]).reshape(len(preset.grid()), preset.draws).mean(axis=1)
    )
    shape, panels = (len(preset.d), len(preset.relative)), {}
    for k, (name, threshold) in enumerate(preset.thresholds().items()):
        part = slice(k * shape[0] * shape[1], (k + 1) * shape[0] * shape[1])
        theory = np.array([_predicted(preset, *point) for point in preset.grid()[part]]).reshape(*shape, 2)
        ratio = np.array([N / n for _, _, N, n in preset.grid()[part]]).reshape(shape)
        share = separable[part].reshape(shape)
        fits = np.array([crossing(x, y, preset.draws) for x, y in zip(ratio, share, strict=True)])
        dims = ("d", "relative")
        columns = {
            "separable": (dims, share),
            "ratio": (dims, ratio),
            "predicted": (dims, theory[..., 0]),
            "allowance": (dims, theory[..., 1]),
            "crossing": ("d", fits[:, 0]),
            "crossing_stderr": ("d", fits[:, 1]),
            "width_of_step": ("d", fits[:, 2]),
        }
        about = attributes(preset, "problem", "draws", "psi2") | {"regime": str(_REGIMES[name]), "threshold": threshold}
        about["citations"] = "montanari2019generalization,amelunxen2014living,cover1965geometrical"
        panels[name] = dataset(columns, {"d": list(preset.d), "relative": list(preset.relative)}, about)
    return panels


def _predicted(preset: SeparabilityPreset, name: str, d: int, N: int, n: int) -> tuple[float, float]:
    """Return the probability that draws of a point are separable, at what their own weights see of the score.

    Nonlinear features count as noisy linear ones, to which they are asymptotically equivalent.
    """
    regime, seen = _REGIMES[name], np.ones(1)
    if isinstance(regime, RandomFeatures):
        weights = (drawn_weights(0, number, N, n, d) for number in range(preset.draws))
        seen = np.array([features_at(regime, W).shares.sum() for W in weights])
    return separable_share(preset.problem, seen, N, n)


def crossing(x: NDArray[np.float64], share: NDArray[np.float64], draws: int) -> tuple[float, float, float]:
    """Fit P = Φ((x − c)/w) to shares of `draws` by maximum likelihood; return c, its standard error and w.

    >>> from scipy.special import ndtr
    >>> x = np.linspace(0.3, 0.5, 9)
    >>> print("{:.4f} {:.4f} {:.4f}".format(*crossing(x, ndtr((x - 0.41) / 0.03), 100)))
    0.4100 0.0020 0.0300
    """
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    def loss(y: NDArray[np.float64]) -> float:
        z = (x - y[0]) * np.exp(-y[1])
        return -draws * float(share @ log_ndtr(z) + (1.0 - share) @ log_ndtr(-z))

    start = np.array(
        [np.interp(0.5, np.maximum.accumulate(share) + 1e-9 * np.arange(x.size), x), np.log(np.ptp(x) / 6)]
    )
    best = minimize(loss, start, method="BFGS", options={"gtol": 1e-8}).x
    h = 1e-3 * np.exp(best[1])
    steps = np.array([h, 1e-3])
    hessian = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            a, b = np.eye(2)[i] * steps[i], np.eye(2)[j] * steps[j]
            corners = loss(best + a + b) - loss(best + a - b) - loss(best - a + b) + loss(best - a - b)
            hessian[i, j] = corners / (4.0 * steps[i] * steps[j])
    return float(best[0]), float(np.sqrt(np.linalg.inv(hessian)[0, 0])), float(np.exp(best[1]))


def plot(data: Panels) -> Figure:
    """Draw the share of separable draws against N/n, one curve for each d; the threshold is a vertical line."""
    with canvas(10.4, 4.3) as figure:
        for axes, (name, panel) in zip(figure.subplots(1, len(data), sharey=True), data.items(), strict=True):
            _panel(axes, panel)
            sizes = f"n = {panel.attrs['psi2']:g}d" if "random" in name else "N = d"
            axes.set(xlabel="N/n, features per sample", title=f"{name}, {sizes}")
        figure.axes[0].set_ylabel("share of separable draws")
        figure.axes[0].legend(loc="lower right")
    return figure


def _panel(axes: Axes, panel: Dataset) -> None:
    from scipy.special import ndtr

    threshold = panel.attrs["threshold"]
    low, high = float(panel.ratio.min()), float(panel.ratio.max())
    axes.plot([low, threshold, threshold, high], [0, 0, 1, 1], color="#333333", label="limit", linewidth=1.4)
    x = np.linspace(low, high, 300)
    for k, d in enumerate(panel.d.values.tolist()):
        at, colour = panel.sel(d=d), scale_colour(k / max(1, panel.d.size - 1))
        error = np.sqrt(at.separable * (1.0 - at.separable) / panel.attrs["draws"])
        look: dict[str, Any] = {"color": colour, "marker": _MARKERS[k % len(_MARKERS)], "linestyle": ""}
        axes.errorbar(at.ratio, at.separable, error, label=f"d = {d}", **look)
        axes.plot(x, ndtr((x - float(at.crossing)) / float(at.width_of_step)), color=colour, linewidth=1.0)


def verdict(data: Panels) -> list[str]:
    """Return where half the draws are separable, every share with its prediction, and whether they agree."""
    lines = [f"{'features':<20}{'d':>5}{'half at N/n':>22}{'threshold':>11}{'width of the step':>19}"]
    for name, panel in data.items():
        for d in panel.d.values.tolist():
            at = panel.sel(d=d)
            cell = f"{float(at.crossing):.4f} ± {float(at.crossing_stderr):.4f}"
            threshold, width = panel.attrs["threshold"], float(at.width_of_step)
            lines.append(f"{name:<20}{d:>5}{cell:>22}{threshold:>11.4f}{width:>19.4f}")
    dots = [dot for name, panel in data.items() for dot in _dots(name, panel)]
    unsure = [dot for dot in dots if dot.off.size * float(dot.predicted) * (1.0 - float(dot.predicted)) >= _EITHER]
    judgement = judged(unsure).answer()
    rare, seen = _rare([dot for dot in dots if dot not in unsure])
    lines += table(unsure)
    lines.append(
        "Predicted: by the kinematic formula at the dot's own n and N; allowed: the error of its random numbers."
    )
    lines.append(f"At the other {len(dots) - len(unsure)} points {rare:.1f} exceptions are expected and {seen} seen.")
    too_many = seen > rare + 4.0 * np.sqrt(rare) + 1.0
    no = f"Theory and simulation differ: {seen} exceptions" if judgement.holds else judgement
    return [*lines, answer(judgement.holds and not too_many, judgement, no)]


def _dots(name: str, panel: Dataset) -> list[Dot]:
    """Return the share of separable draws at each N/n and d, whose spread is that of a coin."""
    dots, draws = [], panel.attrs["draws"]
    for i, d in enumerate(panel.d.values.tolist()):
        for k in range(panel.sizes["relative"]):
            share, P = float(panel.separable[i, k]), float(panel.predicted[i, k])
            outcomes = (np.arange(draws) < round(share * draws)).astype(np.float64)
            where = f"{name}, d = {d}, N/n = {float(panel.ratio[i, k]):.3f}"
            allowance, spread = float(panel.allowance[i, k]), float(np.sqrt(P * (1.0 - P)))
            limit = float(panel.ratio[i, k] > panel.attrs["threshold"])
            dots.append(Dot(where, outcomes, P, allowance, min(P, 1.0 - P), limit=limit, spread=spread))
    return dots


def _rare(dots: Sequence[Dot]) -> tuple[float, int]:
    """Return how many draws are expected to differ from what is nearly certain, and how many did."""
    expected = sum(dot.off.size * min(float(dot.predicted), 1.0 - float(dot.predicted)) for dot in dots)
    seen = sum(int(np.count_nonzero(dot.draws != (float(dot.predicted) > 0.5))) for dot in dots)
    return expected, seen


_TITLE = "The probability that data are separable, around the threshold N/n"


def _larger(right: SeparabilityPreset) -> SeparabilityPreset:
    return replace(right, relative=tuple(1.5 * ratio for ratio in right.relative))


_FAULTS = (wrong_work("sizes that are half as large again as they are said to be", data, work, _larger),)
EXPERIMENT = Experiment("separability", _TITLE, PRESETS, work, data, plot, verdict, place=43, faults=_FAULTS)

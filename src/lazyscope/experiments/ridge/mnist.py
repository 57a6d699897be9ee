"""Double descent on MNIST, forecast from one kernel matrix: even or odd digits, test error against the width N.

The lines are the mean `lazyscope.forecast` of pools of P images: random features √(2/N) max(⟨w, x⟩, 0), w ~ N(0, I),
‖x‖ = 1, at every N; the tangent kernel, N = ∞. The dots are fits on other images: n of them, N neurons, ridge λ of
Σ(y − f)² + λ‖a‖², tested on images that neither has seen. Tangent networks of finite width, σ′(⟨w, x⟩)⟨a, x⟩, tend to
the line of their kernel from above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lazyscope.activations import Activation
from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, canvas, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.draws import attributes, split
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.experiments.ridge import mnist_images
from lazyscope.lenses.forecast import verb
from lazyscope.lenses.forecast.kernels import of_rows
from lazyscope.lenses.forecast.rows import Rows
from lazyscope.numerics.blas import threads_for
from lazyscope.runs.pictures import scale_colour
from lazyscope.weights import generator

Source = Literal["mnist", "digits"]
Lazy = Literal["RF", "NT"]
_TITLES: dict[Lazy, str] = {"RF": "Random features", "NT": "Tangent networks; lines: N = ∞"}
_TEST = 4000  # images at most
_NEAR = 0.1  # of the median forecast: a leave-one-out error of a few hundred images varies by as much
_TICKS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)


def images(source: Source) -> tuple[FloatArray, FloatArray]:
    """Return images of length 1, and +1 for even digits, −1 for odd ones; scikit-learn's digits serve the tests."""
    if source == "digits":
        from lazyscope.experiments.ridge import digits

        X, odd = digits.images()
        return X / np.sqrt(digits.PIXELS), -odd
    X, digit = mnist_images.images()
    return X, np.where(digit % 2 == 0, 1.0, -1.0)


def parts(count: int, pools: int, pool: int, seed: int) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the images of each pool, and all others, for fits: no two of them overlap."""
    order = np.random.default_rng(seed).permutation(count)
    return np.split(order[: pools * pool], pools), order[pools * pool :]


@dataclass(frozen=True, eq=False)
class MnistForecast(Draw):
    """The lines: one of several pools of images, every width, number of images and ridge."""

    source: Source
    regime: Lazy
    pools: int
    pool: int
    samples: tuple[int, ...]
    widths: tuple[float, ...]  # none: the kernel, N = ∞
    ridges: tuple[float, ...]
    number: int = 0
    seed: int = 0

    words = "forecast of {0.regime} from {0.pool} images"
    costs = ("pool", "pool")

    def compute(self) -> Row:
        """Return the error (samples, width, ridge) and its standard error by the jackknife, relative."""
        X, y = images(self.source)
        mine = parts(len(X), self.pools, self.pool, self.seed)[0][self.number]
        K = of_rows(X[mine], Activation("relu"), tangent=self.regime == "NT")
        K *= 2.0  # K(x, x) = 1 for ReLU, as √2σ has it
        known = verb.Forecaster.of(Rows(K, y[mine][:, None], None, ""), float(max(self.samples)))
        forecast = known.at(*np.ix_(self.samples, self.widths or (np.inf,), self.ridges))
        return {"risk": forecast["risk"][0], "stderr": forecast["stderr"][0], "extrapolated": forecast["extrapolated"]}


@dataclass(frozen=True, eq=False)
class MnistDraw(Draw):
    """A dot: fits on n other images with N random neurons, at every ridge."""

    source: Source
    regime: Lazy
    pools: int
    pool: int
    samples: int
    width: int
    ridges: tuple[float, ...]
    number: int = 0
    seed: int = 0

    words = "{0.regime}, n = {0.samples}, N = {0.width}"
    costs = ("samples", "samples", "width")

    def compute(self) -> Row:
        """Return the mean squared error on the test images, (ridge,)."""
        X, y = images(self.source)
        _, rest = parts(len(X), self.pools, self.pool, self.seed)
        key = (self.number, self.samples, self.width, len(self.source), self.regime == "NT")
        rng = generator(self.seed, *key)
        order = rng.permutation(rest)
        train, test = order[: self.samples], order[self.samples :][:_TEST]
        with threads_for(0):  # one thread: the last bit depends on how a product is cut
            W = rng.standard_normal((self.width, X.shape[1]))
            fit = _fit_features if self.regime == "RF" else _fit_tangent
            errors = fit(X[train], X[test], W, np.array(self.ridges), y[train], y[test])
        return {"risk": errors}


def _fit_features(
    X: FloatArray, Z: FloatArray, W: FloatArray, ridges: FloatArray, y: FloatArray, z: FloatArray
) -> FloatArray:
    """Return the test error of ridge regression on √(2/N) max(⟨w, x⟩, 0) at every ridge, by one decomposition."""
    U, V = (np.maximum(part @ W.T, 0.0) * np.sqrt(2.0 / len(W)) for part in (X, Z))
    if len(X) > len(W):  # the smaller of both Gram matrices
        w, Q = np.linalg.eigh(U.T @ U)
        a = Q.T @ (U.T @ y)
        predicted = (V @ Q) @ (a[:, None] / (np.maximum(w, 0.0)[:, None] + ridges))
    else:
        predicted = _dual(U @ U.T, V @ U.T, ridges, y)
    return np.asarray(np.mean((predicted - z[:, None]) ** 2, axis=0))


def _fit_tangent(
    X: FloatArray, Z: FloatArray, W: FloatArray, ridges: FloatArray, y: FloatArray, z: FloatArray
) -> FloatArray:
    """Return the test error of the tangent model √(2/N) Σ 1{⟨w_j, x⟩ > 0}⟨a_j, x⟩, by its kernel on n rows."""
    S, R = ((part @ W.T > 0.0).astype(np.float64) for part in (X, Z))
    scale = 2.0 / len(W)
    predicted = _dual(scale * (S @ S.T) * (X @ X.T), scale * (R @ S.T) * (Z @ X.T), ridges, y)
    return np.asarray(np.mean((predicted - z[:, None]) ** 2, axis=0))


def _dual(K: FloatArray, k: FloatArray, ridges: FloatArray, y: FloatArray) -> FloatArray:
    w, Q = np.linalg.eigh(K)
    return np.asarray((k @ Q) @ ((Q.T @ y)[:, None] / (np.maximum(w, 0.0)[:, None] + ridges)))


@dataclass(frozen=True)
class MnistPreset(Preset):
    """Pools and their images, numbers of training images, ridges, widths of the dots, and draws of each."""

    draws: int
    pools: int
    pool: int
    samples: tuple[int, ...]
    ridges: tuple[float, ...] = (1e-3, 1e-1, 1.0)
    features: tuple[int, ...] = (20, 50, 100, 200, 300, 400, 600, 1000, 2000, 4000)
    tangent: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200, 400)
    source: Source = "mnist"

    def widths(self, regime: Lazy) -> tuple[int, ...]:
        """The widths of the dots of a regime."""
        return self.features if regime == "RF" else self.tangent

    @property
    def lines(self) -> tuple[float, ...]:
        """The widths of the lines: a scale, and those of the dots."""
        scale = np.geomspace(min(self.features), max(self.features), 60)
        return tuple(sorted({*scale.tolist(), *map(float, self.features)}))


PRESETS = {
    "quick": MnistPreset("three minutes", draws=3, pools=3, pool=1000, samples=(200, 400)),
    "paper": MnistPreset(
        "half an hour", draws=6, pools=4, pool=2500, samples=(300, 1000, 2000),
        features=(20, 50, 100, 200, 300, 400, 600, 1000, 1500, 2000, 3000, 6000),
    ),
}  # fmt: skip


def _forecasts(preset: MnistPreset, regime: Lazy) -> list[MnistForecast]:
    widths = preset.lines if regime == "RF" else ()
    fixed = preset.source, regime, preset.pools, preset.pool, preset.samples, widths, preset.ridges
    return [MnistForecast(*fixed, number) for number in range(preset.pools)]


def _dots(preset: MnistPreset, regime: Lazy) -> list[MnistDraw]:
    return [
        MnistDraw(preset.source, regime, preset.pools, preset.pool, n, N, preset.ridges, number)
        for n in preset.samples
        for N in preset.widths(regime)
        for number in range(preset.draws)
    ]


def work(preset: MnistPreset) -> list[Draw]:
    """Return the forecast and the fits of both regimes."""
    return [piece for regime in _TITLES for piece in _of(preset, regime)]


def _of(preset: MnistPreset, regime: Lazy) -> list[Draw]:
    return [*_forecasts(preset, regime), *_dots(preset, regime)]


def data(preset: MnistPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return for each regime the forecast at every width, and beside the fits, with their standard errors."""
    panels: dict[str, Dataset] = {}
    own = split(rows, [_of(preset, regime) for regime in _TITLES])
    about = {**attributes(preset, "source", "pools", "pool", "draws"), "citations": ",".join(verb.CITATIONS)}
    for regime, part in zip(_TITLES, own, strict=True):
        lines, widths, pools = _forecasts(preset, regime)[0], preset.widths(regime), part[: preset.pools]
        shape = len(preset.samples), len(widths), preset.draws, len(preset.ridges)
        mean, stderr = over_draws(np.array([row["risk"] for row in part[preset.pools :]]).reshape(shape), axis=2)
        whole = {name: np.mean([row[name] for row in pools], axis=0) for name in ("risk", "stderr")}
        places = [lines.widths.index(float(N)) for N in widths] if regime == "RF" else [0] * len(widths)
        coordinates = {"samples": list(preset.samples), "ridge": list(preset.ridges)}
        dims = ("samples", "width", "ridge")
        panels[f"{regime} lines"] = dataset(
            {"risk": (dims, whole["risk"]), "stderr": (dims, whole["stderr"])},
            {**coordinates, "width": list(lines.widths) or [np.inf]}, {**about, "regime": regime},
        )  # fmt: skip
        panels[f"{regime} dots"] = dataset(
            {
                "risk": (dims, mean), "stderr": (dims, stderr), "forecast": (dims, whole["risk"][:, places]),
                "forecast_stderr": (dims, whole["stderr"][:, places]),
            },
            {**coordinates, "width": list(widths)}, {**about, "regime": regime},
        )  # fmt: skip
    return panels


def plot(panels: Panels) -> Figure:
    """Draw a row of frames for each regime, a frame for each number of images, and a colour for each ridge."""
    counts = panels["RF dots"].samples.values
    with canvas(3.7 * len(counts) + 0.4, 7.4) as figure:
        frames = figure.subplots(2, len(counts), squeeze=False, sharey="row")
        for axes_row, regime in zip(frames, _TITLES, strict=True):
            shown = np.concatenate([panels[f"{regime} {what}"].risk.values.ravel() for what in ("lines", "dots")])
            axes_row[0].set_ylabel("test error, squared")
            for axes, n in zip(axes_row, counts, strict=True):
                _frame(axes, panels[f"{regime} lines"].sel(samples=n), panels[f"{regime} dots"].sel(samples=n), regime)
                axes.set_title(f"{_TITLES[regime]}\nn = {n:,} images")
                axes.set_ylim(0.8 * shown.min(), 1.25 * shown.max())
        about = panels["RF dots"].attrs
        handles, labels = frames[0, 0].get_legend_handles_labels()
        lines = f"forecast from {about['pool']:,} images, mean of {about['pools']} such (lines)"
        words = f"Even or odd, {about['source']}: {lines}; fits on others (dots)"
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), title=words)
    return figure


def _frame(axes: Axes, lines: Dataset, dots: Dataset, regime: Lazy) -> None:
    from matplotlib.ticker import NullLocator

    ridges = lines.ridge.values
    for k, ridge in enumerate(ridges):
        line, fits = lines.isel(ridge=k), dots.isel(ridge=k)
        colour = scale_colour(k / max(len(ridges) - 1, 1))
        label = f"λ = {ridge:g}"
        if regime == "RF":
            axes.plot(line.width, line.risk, color=colour, label=label)
            factor = np.exp(verb.SURE * line.stderr)
            axes.fill_between(line.width, line.risk / factor, line.risk * factor, color=colour, alpha=0.13, linewidth=0)
        else:
            axes.axhline(float(line.risk[0]), color=colour, label=label)
        look: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 4.5, "linestyle": ""}
        axes.errorbar(fits.width, fits.risk, fits.stderr, **look)
    if regime == "RF":
        axes.axvline(float(lines.samples), color="#777777", linewidth=0.9, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="N, neurons")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
    axes.yaxis.set_minor_locator(NullLocator())


def verdict(panels: Panels) -> list[str]:
    """Return the distance of forecasts from fits: random features at every width, the tangent kernel at the widest."""
    lines = []
    answers, medians = [], []
    for regime in _TITLES:
        dots = panels[f"{regime} dots"]
        seen = dots if regime == "RF" else dots.isel(width=[-1])
        off = (seen.forecast / seen.risk - 1.0).values
        for n in seen.samples.values:
            here = (seen.sel(samples=n).forecast / seen.sel(samples=n).risk - 1.0).values
            lines.append(
                f"{regime}, n = {n:,}: forecast − measured {np.median(here):+.1%} in the median, "
                f"{here.min():+.1%} to {here.max():+.1%}"
            )
        medians.append(float(np.median(np.abs(off))))
        answers.append(f"{medians[-1]:.1%} ({regime}, worst {np.max(np.abs(off)):.0%})")
    told = f"Forecasts are off by {' and '.join(answers)} in the median, the pool's own sampling included"
    yes, no = f"{told}: within {_NEAR:.0%}.", f"{told}: NOT within {_NEAR:.0%}."
    return [*lines, answer(max(medians) <= _NEAR, yes, no)]


_TITLE = "Double descent on MNIST, forecast from one kernel matrix: random features and tangent networks"
_FAULTS = (wrong_rows("forecasts 30 % too high", data, "risk", lambda k, risk: 1.3 * risk if risk.ndim == 3 else risk),)
EXPERIMENT = Experiment(
    "mnist", _TITLE, PRESETS, work, data, plot, verdict, place=26, locate=mnist_images.locate, faults=_FAULTS
)

"""Double descent on real images: scikit-learn's 8×8 digits, odd against even, some labels of the training set flipped.

Two ways to fit n labels y = ±1 by least squares, with N neurons:

- random features, f(x) = Σ a_iσ(⟨w_i, x⟩): N parameters, the fit of least norm. It interpolates from N = n on;
- a trained network, f(x) = c + Σ a_iσ(⟨w_i, x⟩ + b_i): N(d + 2) + 1 parameters, minimised by L-BFGS from a random
  start, without penalty. It interpolates from about as many parameters as labels, N ≈ n/(d + 2), on.

The error on images that were held out, with their true labels, peaks at each one's own threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, averaged, canvas, dataset, wrong_rows
from lazyscope.experiments.frame.draws import attributes
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.numerics.blas import threads_for
from lazyscope.numerics.ridge import ridge_path
from lazyscope.regimes import RandomFeatures
from lazyscope.runs.pictures import LOOKS
from lazyscope.training.linear.random_layer import features, unit_rows
from lazyscope.weights import generator

PIXELS = 64
_FITS: dict[Literal["features", "network"], str] = {
    "features": "Random features, least norm",
    "network": "Trained network, both layers",
}
_SHOWN = {
    "risk": ("test error, squared", LOOKS["NN"]["color"], "D"),
    "error": ("share of wrong signs", LOOKS["RF"]["color"], "o"),
    "train": ("training error", LOOKS["NT"]["color"], "^"),
}
_LITTLE = 1e-2  # training error, in the mean over draws, from where on a fit of labels ±1 interpolates


@dataclass(frozen=True, eq=False)
class DigitsDraw(Draw):
    """One split of the images, one draw of weights, one width; `fit` is "features" or "network"."""

    fit: Literal["features", "network"]
    width: int
    samples: int = 400
    flip: float = 0.1
    iterations: int = 1500
    number: int = 0
    seed: int = 0

    words = "digits, {0.fit}, N = {0.width}"

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return self.width * self.samples * (self.iterations if self.fit == "network" else 1)

    @property
    def parameters(self) -> int:
        """How many numbers are fitted."""
        return self.width if self.fit == "features" else self.width * (PIXELS + 2) + 1

    def compute(self) -> Row:
        """Fit and test: `risk` is the mean squared error on held-out images, `error` the share of wrong signs."""
        key = (self.number, self.width, self.samples, len(self.fit))
        rng = generator(self.seed, *key)
        X, labels = images()
        order = rng.permutation(len(X))
        seen, held_out = order[: self.samples], order[self.samples :]
        y = np.where(rng.random(self.samples) < self.flip, -labels[seen], labels[seen])
        # one thread: a minimisation amplifies the last bit, and that depends on how a product is cut into threads
        with threads_for(0):
            fit = _fit_features if self.fit == "features" else _fit_network
            train, predicted = fit(X[seen], y, X[held_out], self.width, self.iterations, rng)
        true = labels[held_out]
        risk, error = np.mean((predicted - true) ** 2), np.mean(np.sign(predicted) != true)
        return {"risk": np.asarray(risk), "error": np.asarray(error), "train": np.asarray(train)}


def images() -> tuple[FloatArray, FloatArray]:
    """Return the digits, centred and on the sphere ‖x‖ = √64, and +1 for odd ones, −1 for even ones.

    >>> X, y = images()
    >>> X.shape, bool(np.allclose(np.sum(X**2, axis=1), 64.0)), sorted({*y.tolist()})
    ((1797, 64), True, [-1.0, 1.0])
    """
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    X = X - X.mean(axis=0)
    return unit_rows(X) * np.sqrt(PIXELS), np.where(digit % 2 == 1, 1.0, -1.0)


def _fit_features(
    X: FloatArray, y: FloatArray, new: FloatArray, N: int, iterations: int, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """Return the training error and the predictions of ReLU features, without ridge."""
    regime = RandomFeatures("relu")
    W = unit_rows(rng.standard_normal((N, X.shape[1])))
    a, residual = ridge_path(features(regime, W, X, rng), y[:, None], [0.0])
    return float(np.mean(residual**2)), features(regime, W, new, rng) @ a[:, 0, 0]


def _fit_network(
    X: FloatArray, y: FloatArray, new: FloatArray, N: int, iterations: int, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """Return the training error and the predictions of a ReLU network of which everything is trained.

    6ndN flops an iteration; ends where the loss or its gradient no longer changes, or after `iterations`.
    """
    from scipy.optimize import minimize

    d = X.shape[1]
    start = np.concatenate([rng.standard_normal(N * d) / np.sqrt(d), np.zeros(N), 0.1 * rng.standard_normal(N), [0.0]])

    def unpack(theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        return theta[: N * d].reshape(N, d), theta[N * d : N * d + N], theta[N * d + N : -1], float(theta[-1])

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        W, b, a, c = unpack(theta)
        u = X @ W.T + b
        hidden = np.maximum(u, 0.0)
        residual = hidden @ a + c - y
        outward = 2.0 / len(y) * residual
        inward = np.where(u > 0.0, outward[:, None] * a, 0.0)
        gradient = [(inward.T @ X).ravel(), inward.sum(axis=0), hidden.T @ outward, [outward.sum()]]
        return float(np.mean(residual**2)), np.concatenate(gradient)

    few = {"maxiter": iterations, "maxfun": 4 * iterations}
    options: dict[str, Any] = {**few, "maxcor": 20, "ftol": 1e-14, "gtol": 1e-9}
    end = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    W, b, a, c = unpack(end.x)
    return float(end.fun), np.maximum(new @ W.T + b, 0.0) @ a + c


@dataclass(frozen=True)
class DigitsPreset(Preset):
    """Training images, widths of both fits, draws, and the share of labels that are flipped."""

    draws: int
    samples: int = 400
    features: tuple[int, ...] = (20, 40, 80, 160, 240, 320, 360, 400, 440, 500, 640, 1000, 2000, 4000)
    network: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 40, 80)
    flip: float = 0.1


PRESETS = {"quick": DigitsPreset("two minutes", draws=6), "paper": DigitsPreset("fifteen minutes", draws=40)}


def work(preset: DigitsPreset) -> list[DigitsDraw]:
    """Return one fit for each way, width and split."""
    return [
        DigitsDraw(fit, N, preset.samples, preset.flip, number=number)
        for fit in _FITS
        for N in getattr(preset, fit)
        for number in range(preset.draws)
    ]


def data(preset: DigitsPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return means over splits, with standard errors, a panel for each way to fit."""
    panels: dict[str, Dataset] = {}
    start = 0
    for fit in _FITS:
        widths = getattr(preset, fit)
        part = rows[start : start + len(widths) * preset.draws]
        start += len(part)
        columns: dict[str, Any] = {}
        for name in _SHOWN:
            columns |= averaged(name, "width", np.array([row[name] for row in part]).reshape(-1, preset.draws))
        coordinates = {
            "width": list(widths),
            "ratio": ("width", np.array(widths) / preset.samples),
            "parameters": ("width", [DigitsDraw(fit, N).parameters for N in widths]),
        }
        threshold = preset.samples if fit == "features" else (preset.samples - 1) / (PIXELS + 2)
        about = attributes(preset, "samples", "flip", "draws") | {"threshold": threshold / preset.samples}
        panels[fit] = dataset(columns, coordinates, about)
    return panels


def plot(data: Panels) -> Figure:
    """Draw a frame for each way to fit, with its threshold."""
    with canvas(9.8, 4.6) as figure:
        frames = figure.subplots(1, 2, sharey=True)
        for axes, (fit, title) in zip(frames, _FITS.items(), strict=True):
            _frame(axes, data[fit], title)
        handles, labels = frames[0].get_legend_handles_labels()
        about = data["features"].attrs
        title = f"Digits, odd against even, n = {about['samples']} images, {about['flip']:.0%} of their labels flipped"
        figure.legend(handles, labels, loc="outside upper center", ncols=len(_SHOWN), title=title)
    return figure


def _frame(axes: Axes, panel: Dataset, title: str) -> None:
    for name, (label, colour, marker) in _SHOWN.items():
        values = np.where(panel[name].values > 1e-4, panel[name].values, np.nan)  # below it: an interpolation
        look = {"color": colour, "marker": marker, "linewidth": 1.2, "markersize": 5}
        axes.errorbar(panel.ratio, values, panel[f"{name}_stderr"], label=label, **look)
    axes.axvline(panel.attrs["threshold"], color="#555555", linewidth=1.0, linestyle=":", zorder=0)
    axes.set(xscale="log", yscale="log", ylim=(5e-3, 40.0), xlabel="N/n, neurons per image", title=title)
    axes.xaxis.set_major_formatter("{x:g}")
    words = "N = n" if panel.attrs["threshold"] == 1.0 else f"N({PIXELS} + 2) + 1 = n"
    axes.annotate(
        f"as many parameters\nas labels: {words}", (panel.attrs["threshold"], 30.0), xytext=(9, 0), va="top",
        textcoords="offset points", fontsize=9, color="#555555",
    )  # fmt: skip


def verdict(data: Panels) -> list[str]:
    """Return where each fit begins to interpolate and where its test error peaks, and whether the two are near."""
    lines = [f"{'':<10}{'N':>6}{'N/n':>8}{'params/n':>10}{'test error':>20}{'wrong signs':>14}{'training':>11}"]
    apart, where = [], []
    for fit in _FITS:
        panel = data[fit]
        fitted = panel.parameters.values / panel.attrs["samples"]
        for i, N in enumerate(panel.width.values):
            risk = f"{float(panel.risk[i]):>11.4g} ± {float(panel.risk_stderr[i]):<6.2g}"
            ratios = f"{float(panel.ratio[i]):>8.3f}{fitted[i]:>10.2f}"
            lines.append(f"{fit:<10}{N:>6}{ratios}{risk}{float(panel.error[i]):>14.3f}{float(panel.train[i]):>11.2e}")
        peak, first = int(np.argmax(panel.risk.values)), int(np.argmax(panel.train.values < _LITTLE))
        if not 0.5 <= panel.width.values[peak] / panel.width.values[first] <= 2.0:
            at, begins = panel.width.values[[peak, first]]
            apart.append(f"{fit} (peak at N = {at}, interpolates from {begins})")
        where.append(f"{fit} at N/n = {float(panel.ratio[peak]):.3g}, parameters/n = {fitted[peak]:.2f}")
    end = (
        "Both peak where they begin to interpolate, within a factor of two"
        if not apart
        else f"Not at the threshold: {', '.join(apart)}"
    )
    words = f"{end}: {'; '.join(where)}."
    lines.append(
        "The heights of these dots are not predicted, only where they peak; `mnist` holds such fits to a forecast."
    )
    return [*lines, answer(not apart, words, words)]


_TITLE = "Double descent on real images: random features and a trained network on digits"
_FAULTS = (wrong_rows("a training error that is never computed", data, "train", lambda k, train: 0.0 * train),)
EXPERIMENT = Experiment("digits", _TITLE, PRESETS, work, data, plot, verdict, place=25, faults=_FAULTS)

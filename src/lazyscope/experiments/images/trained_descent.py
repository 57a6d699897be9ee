"""Double descent of networks that are trained whole, against their number of parameters, on images of ten digits.

Belkin et al. (2018): one hidden layer, square loss, 4,000 images of MNIST. Spigler et al. (2018): up to five hidden
layers, quadratic hinge loss. Networks with P parameters are trained on n images, a part of the labels random, by L-BFGS
without penalty (`training.layers`). The training loss tells the two sides apart: it stays above zero on the
under-parametrised one, and reaches it from some P of the order of the number of labels on. Square loss has K = 10
numbers to fit for each image, P ≈ nK; the hinge only asks for the right side of a margin, and takes fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, canvas, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.draws import attributes
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.experiments.images.images import CLASSES, Source, images, locate, relabelled
from lazyscope.numerics.blas import threads_for
from lazyscope.runs.pictures import LOOKS, scale_colour
from lazyscope.training.layers import Layers, Loss
from lazyscope.weights import generator

_LOSSES: dict[Loss, str] = {"square": "Square loss", "hinge": "Quadratic hinge loss"}
_LITTLE = 1e-3  # a training loss below which a network is over-parametrised; at f = 0 it is ½
_TEST = 4000  # images at most
_NAMES = ("train", "risk", "error", "wrong")


@dataclass(frozen=True)
class ImageNetworkDraw(Draw):
    """One network: loss, hidden layers and their width, images, share of random labels."""

    source: Source
    loss: Loss
    hidden: int
    width: int
    samples: int
    noise: float
    iterations: int
    number: int = 0
    seed: int = 0

    words = "{0.loss}, {0.hidden} hidden layers of {0.width}"

    @property
    def pixels(self) -> int:
        """The number of inputs."""
        return 64 if self.source == "digits" else 784

    @property
    def layers(self) -> Layers:
        """The network."""
        return Layers((self.pixels, *[self.width] * self.hidden, CLASSES))

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        return self.layers.parameters * self.samples * self.iterations

    def compute(self) -> Row:
        """Train, and test on other images with their true labels.

        `risk` is the loss there, `error` the share of wrong classes; `train` and `wrong` are the same on the training
        images, with the labels they were given.
        """
        key = (self.number, self.hidden, self.width, self.samples)
        rng = generator(self.seed, *key)
        split = generator(self.seed, self.number, self.samples)
        X, digit = images(self.source)
        order = split.permutation(len(X))
        seen, other = order[: self.samples], order[self.samples :][:_TEST]
        given = relabelled(digit[seen], self.noise, split)
        with threads_for(0):  # one thread: a minimisation amplifies the last bit
            theta = self.layers.train(X[seen], _signs(given), self.loss, self.layers.start(rng), self.iterations)
            fitted, predicted = (self.layers.outputs(theta, X[part]) for part in (seen, other))
            train, _ = self.layers.loss(theta, X[seen], _signs(given), self.loss)
            risk, _ = self.layers.loss(theta, X[other], _signs(digit[other]), self.loss)
        return {
            "train": np.array(train),
            "risk": np.array(risk),
            "error": np.array(np.mean(predicted.argmax(axis=1) != digit[other])),
            "wrong": np.array(np.mean(fitted.argmax(axis=1) != given)),
        }


def _signs(digit: Any) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return 1 for the class and −1 for the others, (n, K)."""
    return np.where(digit[:, None] == np.arange(CLASSES), 1.0, -1.0)


@dataclass(frozen=True)
class TrainedDescentPreset(Preset):
    """Images, share of random labels, widths for every number of hidden layers, and draws."""

    source: Source
    samples: int
    noise: float
    widths: Mapping[int, tuple[int, ...]]
    draws: int
    iterations: int

    def part(self, loss: Loss, hidden: int) -> list[ImageNetworkDraw]:
        """The networks of one curve."""
        return [
            ImageNetworkDraw(self.source, loss, hidden, width, self.samples, self.noise, self.iterations, number)
            for width in self.widths[hidden]
            for number in range(self.draws)
        ]


_SHALLOW, _DEEP = (2, 4, 8, 12, 16, 24, 32, 64, 160), (3, 6, 10, 14, 18, 24, 32, 48, 80)
PRESETS = {
    "quick": TrainedDescentPreset("two minutes", "digits", 200, 0.2, {1: _SHALLOW, 3: _DEEP}, 5, 1000),
    "paper": TrainedDescentPreset(
        "about seven hours", "mnist", 4000, 0.1,
        dict.fromkeys((1, 2, 3, 4, 5), (2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 160, 320)), 2, 3000,
    ),
}  # fmt: skip


def work(preset: TrainedDescentPreset) -> list[ImageNetworkDraw]:
    """Return every network, loss by loss and depth by depth."""
    return [draw for loss in _LOSSES for hidden in preset.widths for draw in preset.part(loss, hidden)]


def data(preset: TrainedDescentPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return a panel for each loss and depth: training and test against the number of parameters."""
    panels: dict[str, Dataset] = {}
    at = 0
    for loss in _LOSSES:
        for hidden, widths in preset.widths.items():
            part = rows[at : at + len(widths) * preset.draws]
            at += len(part)
            columns: dict[str, Any] = {}
            for name in _NAMES:
                values = np.array([row[name] for row in part]).reshape(len(widths), preset.draws)
                mean, stderr = over_draws(values) if name != "risk" else _geometric(values)
                columns |= {name: ("width", mean), f"{name}_stderr": ("width", stderr)}
            counts = [draw.layers.parameters for draw in preset.part(loss, hidden)[:: preset.draws]]
            cited = "belkin2019reconciling" if loss == "square" else "spigler2019jamming"
            about = {"citations": cited, "loss": loss, "hidden": hidden}
            about |= attributes(preset, "samples", "noise", "source", "draws")
            coordinates = {"width": list(widths), "parameters": ("width", counts)}
            panels[f"{loss}, {hidden}"] = dataset(columns, coordinates, about)
    return panels


def _geometric(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the geometric mean over draws and its standard error: near the peak single draws differ by decades."""
    mean, stderr = over_draws(np.log(values))
    return np.exp(mean), np.exp(mean) * stderr


def threshold(panel: Dataset) -> int:
    """Return the place of the first network that is over-parametrised, by its training loss; the last if none is."""
    fits = panel.train.values < _LITTLE
    return int(np.argmax(fits)) if fits.any() else len(fits) - 1


def plot(data: Panels) -> Figure:
    """Draw training loss, test loss and share of wrong classes against the parameters, a column for each loss."""
    with canvas(11.5, 9.2) as figure:
        frames = figure.subplots(3, 2, sharex=True, sharey="row")
        depths = list(dict.fromkeys(panel.attrs["hidden"] for panel in data.values()))
        for column, (loss, title) in enumerate(_LOSSES.items()):
            for k, hidden in enumerate(depths):
                _curves(frames[:, column], data[f"{loss}, {hidden}"], hidden, k / max(1, len(depths) - 1))
            frames[0, column].set_title(title)
            frames[2, column].set_xlabel("P, number of parameters")
        for axes, words in zip(frames[:, 0], ("training loss", "test loss", "wrong test classes"), strict=True):
            axes.set_ylabel(words)
        frames[0, 0].set_ylim(1e-7, 1.0)
        about = next(iter(data.values())).attrs
        title = f"{about['source']}, n = {about['samples']:,} images, ten classes, {about['noise']:.0%} random labels"
        handles, labels = frames[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), title=title)
    return figure


def _curves(frames: Sequence[Axes], panel: Dataset, hidden: int, shade: float) -> None:
    colour = scale_colour(shade)
    first = float(panel.parameters.values[threshold(panel)])
    for axes, name in zip(frames, ("train", "risk", "error"), strict=True):
        values = np.maximum(panel[name].values, 1e-7 if name == "train" else 0.0)
        label = f"{hidden} hidden layer{'s' if hidden > 1 else ''}"
        axes.errorbar(panel.parameters, values, np.minimum(panel[f"{name}_stderr"], 0.5 * values), color=colour,
                      marker="o", markersize=4.5, linewidth=1.2, label=label)  # fmt: skip
        axes.axvline(first, color=colour, linestyle="--", linewidth=0.9,
                     label="over-parametrised from here" if name == "train" and shade == 0.0 else None)  # fmt: skip
        axes.set(xscale="log", yscale="linear" if name == "error" else "log")
        axes.axvline(panel.attrs["samples"] * CLASSES, color=LOOKS["NN"]["color"], linestyle=":", linewidth=1.0,
                     label="P = nK" if hidden == 1 and name == "train" else None)  # fmt: skip


def verdict(data: Panels) -> list[str]:
    """Return where each curve begins to fit and where its test error peaks, and whether this is double descent.

    The test loss must be highest within two widths of the threshold, neither at the smallest nor at the widest network,
    and fall again: the widest must be better by three standard errors of the logarithms. The hinge must be fitted by no
    more parameters than the square loss.
    """
    lines = [f"{'':<12}{'P at the peak':>15}{'fits from P':>13}{'P/nK':>7}{'peak':>17}{'widest':>17}{'wrong, peak':>13}"
             f"{'widest':>8}"]  # fmt: skip
    wrong, first = [], {}
    for name, panel in data.items():
        peak, start = int(np.argmax(panel.risk.values)), threshold(panel)
        labels, P = panel.attrs["samples"] * CLASSES, panel.parameters.values
        first[name] = int(P[start])
        if panel.train.values[-1] >= _LITTLE:
            wrong.append(f"{name}: no network fits")
        ends = [f"{float(panel.risk[k]):.3g} ± {float(panel.risk_stderr[k]):.2g}" for k in (peak, -1)]
        errors = f"{float(panel.error[peak]):>13.3f}{float(panel.error[-1]):>8.3f}"
        share = f"{P[start] / labels:>7.2f}"
        lines.append(f"{name:<12}{P[peak]:>15,}{P[start]:>13,}{share}{ends[0]:>17}{ends[1]:>17}{errors}")
        gap = float(np.log(panel.risk[peak] / panel.risk[-1]))
        spread = float(np.hypot(*(panel.risk_stderr[k] / panel.risk[k] for k in (peak, -1))))
        if peak in (0, len(P) - 1) or abs(peak - start) > 2 or gap < 3.0 * spread:
            wrong.append(f"{name}: no peak near the threshold")
    depths = dict.fromkeys(panel.attrs["hidden"] for panel in data.values())
    late = [hidden for hidden in depths if first[f"hinge, {hidden}"] > first[f"square, {hidden}"]]
    wrong += [f"the hinge with {hidden} hidden layers is fitted later than the square" for hidden in late]
    told = (
        "Test loss peaks where networks begin to fit, and falls again beyond; the hinge is fitted by fewer parameters."
    )
    return [*lines, answer(not wrong, told, f"Not a double descent: {'; '.join(wrong)}."[:199])]


_TITLE = "Double descent of trained networks against their parameters, on images of ten digits"
_FAULTS = (
    wrong_rows("networks that never fit", data, "train", lambda k, train: train + 0.1),
    wrong_rows("a test loss that does not depend on P", data, "risk", lambda k, risk: 0.3 + 0.0 * risk),
)
EXPERIMENT = Experiment(
    "trained-descent", _TITLE, PRESETS, work, data, plot, verdict, place=27, locate=locate, faults=_FAULTS
)

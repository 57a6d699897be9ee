"""Networks fit noise: training curves on true, on partly random and on random labels (Zhang et al. 2016).

One two-layer ReLU network with more parameters than labels is trained on n images of ten digits, of which a share has
labels drawn at random: none, a fifth, half, or all. It fits all of them to the last label. What the labels are worth
shows in how long that takes, and in the test error, that of guessing for random labels; the training error tells
neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, averaged, canvas, dataset, wrong_rows
from lazyscope.experiments.frame.draws import attributes
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.experiments.images.images import CLASSES, Source, images, locate, relabelled
from lazyscope.numerics.blas import threads_for
from lazyscope.runs.pictures import scale_colour
from lazyscope.weights import generator

_SHARES = (0.0, 0.2, 0.5, 1.0)
_WORDS = {0.0: "true labels", 0.2: "20 % random", 0.5: "50 % random", 1.0: "random labels"}
_GUESS = 1.0 - 1.0 / CLASSES
_TEST = 4000  # images at most
_FAR = 3.0  # standard errors
_NEAR = 0.02  # of guessing, as classes of the test images are not all equally frequent


@dataclass(frozen=True)
class LabelsDraw(Draw):
    """One training: the errors after each epoch, on the labels it was given and on other images' true ones."""

    source: Source
    share: float
    samples: int
    width: int
    epochs: int
    rate: float = 3e-3
    number: int = 0
    seed: int = 0

    words = "{0.share:.0%} random labels, draw {0.number}"
    costs = ("samples", "width", "epochs")

    def compute(self) -> Row:
        """Train by Adam in batches of 50 without penalty; 6ndN flops an epoch, and as much for the errors."""
        from lazyscope.estimators import TwoLayerClassifier

        rng = generator(self.seed, self.number, self.samples)
        X, digit = images(self.source)
        order = rng.permutation(len(X))
        seen, other = order[: self.samples], order[self.samples :][:_TEST]
        given = relabelled(digit[seen], self.share, rng)
        network = TwoLayerClassifier(
            self.width, "relu", solver="adam", learning_rate=self.rate, schedule="constant", batch_size=50,
            weight_decay=0.0, early_stopping=False, precision="float32", random_state=int(rng.integers(2**31)),
        )  # fmt: skip
        train, test = np.empty(self.epochs), np.empty(self.epochs)
        with threads_for(0):  # one thread: training amplifies the last bit
            for epoch in range(self.epochs):
                network.partial_fit(X[seen], given, classes=np.arange(CLASSES))
                train[epoch] = np.mean(network.predict(X[seen]) != given)
                test[epoch] = np.mean(network.predict(X[other]) != digit[other])
        return {"train": train, "test": test}


@dataclass(frozen=True)
class LabelsPreset(Preset):
    """Images, width, epochs and draws."""

    source: Source
    samples: int
    width: int
    epochs: int
    draws: int
    rate: float = 3e-3


PRESETS = {
    "quick": LabelsPreset("a minute and a half", "digits", 1000, 256, 150, 4),
    "paper": LabelsPreset("two hours", "mnist", 10_000, 1024, 200, 4, 1e-3),
}


def work(preset: LabelsPreset) -> list[LabelsDraw]:
    """Return a training for every share and draw."""
    sizes = preset.samples, preset.width, preset.epochs, preset.rate
    return [LabelsDraw(preset.source, share, *sizes, number) for share in _SHARES for number in range(preset.draws)]


def data(preset: LabelsPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return both errors after each epoch, and how many epochs it takes to fit all labels.

    A training that does not fit them counts as one epoch more than there are.
    """
    columns: dict[str, Any] = {}
    for name in ("train", "test"):
        table = np.array([row[name] for row in rows]).reshape(len(_SHARES), preset.draws, preset.epochs)
        columns |= averaged(name, ("share", "epoch"), table, axis=1)
        if name == "test":
            columns |= averaged("end", "share", table[:, :, -1])
            continue
        fits = table == 0.0
        first = np.where(fits.any(axis=2), np.argmax(fits, axis=2) + 1, preset.epochs + 1).astype(float)
        columns["fitted"] = ("share", fits.any(axis=2).mean(axis=1))
        columns |= averaged("time", "share", first)
    about = {"citations": "zhang2017understanding", **attributes(preset, "source", "samples", "width", "draws")}
    return {"labels": dataset(columns, {"share": list(_SHARES), "epoch": np.arange(1, preset.epochs + 1)}, about)}


def plot(data: Panels) -> Figure:
    """Draw training and test error against epochs, and what each share costs in time and in test error."""
    panel = data["labels"]
    with canvas(14.4, 4.7) as figure:
        frames = figure.subplots(1, 3)
        for axes, name, words in zip(frames, ("train", "test"), ("training error", "test error"), strict=False):
            _draw_curves(axes, panel, name)
            axes.set(xscale="log", xlabel="epochs", ylabel=f"{words}, share of wrong classes")
        about = panel.attrs
        frames[0].set_title(f"{about['source']}, n = {about['samples']:,}, N = {about['width']}: all is fitted")
        frames[1].set_title("On other images, with true labels")
        _draw_costs(frames[2], panel)
        handles, labels = frames[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_curves(axes: Axes, panel: Dataset, name: str) -> None:
    for k, share in enumerate(panel.share.values.tolist()):
        at, colour = panel.sel(share=share), scale_colour(k / (len(_SHARES) - 1))
        axes.plot(panel.epoch, at[name], color=colour, label=_WORDS[share])
        low, high = at[name] - at[f"{name}_stderr"], at[name] + at[f"{name}_stderr"]
        axes.fill_between(panel.epoch, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.axhline(_GUESS, color="#555555", linestyle=":", linewidth=1.1, label="guessing" if name == "train" else None)
    axes.set_ylim(-0.02, 1.0)


def _draw_costs(axes: Axes, panel: Dataset) -> None:
    for k, share in enumerate(panel.share.values.tolist()):
        at, colour = panel.sel(share=share), scale_colour(k / (len(_SHARES) - 1))
        axes.errorbar(float(at.time), float(at.end), float(at.end_stderr), float(at.time_stderr), color=colour,
                      marker="o", markersize=7.0, linestyle="")  # fmt: skip
    axes.axhline(_GUESS, color="#555555", linestyle=":", linewidth=1.1)
    axes.set(xlabel="epochs until every label is fitted", ylabel="test error at the end", ylim=(-0.02, 1.0))
    axes.set_xlim(0.0, None)
    axes.set_title("What noise costs: time to fit, and test error")


def verdict(data: Panels) -> list[str]:
    """Return fit, time and test error of each share of random labels, and whether networks fit them all.

    Every training must fit its labels; random ones must take longer than true ones; the test error must rise with the
    share, and be that of guessing where all labels are random.
    """
    panel = data["labels"]
    lines = [f"{'labels':<16}{'fitted':>8}{'epochs to fit':>18}{'test error':>20}"]
    for share in panel.share.values.tolist():
        at = panel.sel(share=share)
        time = f"{float(at.time):.1f} ± {float(at.time_stderr):.1f}"
        end = f"{float(at.end):.3f} ± {float(at.end_stderr):.3f}"
        lines.append(f"{_WORDS[share]:<16}{float(at.fitted):>8.0%}{time:>18}{end:>20}")
    wrong = []
    if float(panel.fitted.min()) < 1.0:
        wrong.append("labels that are not fitted")
    spread = float(np.hypot(panel.time_stderr[0], panel.time_stderr[-1]))
    if float(panel.time[-1] - panel.time[0]) < _FAR * spread or float(panel.time[-1]) <= float(panel.time[0]):
        wrong.append("random labels that take no longer")
    if np.any(np.diff(panel.end.values) <= 0.0):
        wrong.append("a test error that does not rise with the share")
    if abs(float(panel.end[-1]) - _GUESS) > _NEAR + _FAR * float(panel.end_stderr[-1]):
        wrong.append("random labels that teach something")
    times = float(panel.time[-1] / panel.time[0])
    told = f"All labels are fitted, random ones in {times:.1f} times the epochs; only the test error tells them apart."
    return [*lines, answer(not wrong, told, f"Not as reported: {', '.join(wrong)}.")]


_TITLE = "Training curves on true, noisy and random labels: fit, time to fit, test error"
_FAULTS = (
    wrong_rows("labels that are not fitted", data, "train", lambda k, train: train + 0.01),
    wrong_rows("random labels that are learnt", data, "test", lambda k, test: 0.1 + 0.0 * test),
)
EXPERIMENT = Experiment(
    "random-labels", _TITLE, PRESETS, work, data, plot, verdict, place=27, locate=locate, faults=_FAULTS
)

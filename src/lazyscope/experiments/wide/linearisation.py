"""The linearisation is good for N ≫ n: a network and its linearisation, trained on the same n samples, as N grows.

f(x) = N^{−1/2} Σ ±σ(⟨w_i, x⟩), ‖x‖ = √d, w_i ~ N(0, I/d), labels y ~ N(0, 1), gradient descent on the first layer until
the linearisation leaves 1 % of the labels (Montanari 2019, "Neural tangent"; Ghorbani et al. 2019, §1.2). Weights move
by N^{−1/2} of their size, so that theory bounds the distance of the two functions by N^{−1/2} (Lee et al. 2019). For
smooth σ the second-order terms of the neurons have random signs, and the distance falls like 1/N.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from lazyscope.activations import as_activation
from lazyscope.checks import FloatArray
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, averaged, dataset, wrong_rows
from lazyscope.experiments.frame.drawing import frames, ticks_at
from lazyscope.experiments.frame.draws import exponents
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.limits import declared
from lazyscope.runs.pictures import LOOKS, scale_colour
from lazyscope.training.taylor.linearised import side_by_side
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.weights import generator

_FRESH = 400  # inputs on which the two functions are compared
_LEFT = 0.01  # of ‖y‖, where training of both ends
_FAR = 4  # N/n from where on exponents are fitted
_TOLERANCE = 0.05  # of an exponent, as fitted over finite N
_CLOSE = 0.05  # a distance at which the linearisation counts as good
_LOOKS: dict[str, dict[str, Any]] = {
    "relu": {"marker": "o", "linestyle": "-"},
    "erf": {"marker": "s", "linestyle": "--", "markerfacecolor": "none"},
}
_SHOWN = {
    "movement": ("weights, ‖W − W₀‖/‖W₀‖", LOOKS["NN"]["color"]),
    "drift": ("tangent kernel, ‖K − K₀‖/‖K₀‖", LOOKS["RF"]["color"]),
    "distance": ("network − linearisation", LOOKS["NT"]["color"]),
}


@dataclass(frozen=True)
class LinearisationDraw(Draw):
    """One network and its linearisation: n random labels, the same for every width, and N random neurons."""

    activation: str
    n: int
    width: int
    d: int
    number: int = 0
    seed: int = 0

    words = "{0.activation}, n = {0.n}, N = {0.width}"
    costs = ("n", "n", "width", "d")

    def compute(self) -> Row:
        """Draw and train; 4nNd flops a step, some n/d times twenty steps."""
        data, rng = (generator(self.seed, self.number, self.n, part) for part in (0, self.width))
        X = data.standard_normal((self.n + _FRESH, self.d))
        X *= sqrt(self.d) / np.linalg.norm(X, axis=1, keepdims=True)
        y = data.standard_normal(self.n)
        W0 = rng.standard_normal((self.width, self.d)) / sqrt(self.d)
        model = TaylorModel(W0, rng.choice([-1.0, 1.0], self.width), as_activation(self.activation), sqrt(self.d))
        return {**side_by_side(model, X[: self.n], y, X[self.n :], _LEFT)}


@dataclass(frozen=True)
class LinearisationPreset(Preset):
    """Dimension, numbers of samples and of neurons, both ascending, and draws."""

    d: int
    n: tuple[int, ...]
    widths: tuple[int, ...]
    draws: int


_WIDTHS = tuple(2**k for k in range(6, 13))
PRESETS = {
    "quick": LinearisationPreset("two minutes", 20, (20, 40, 80, 160), _WIDTHS, 4),
    "paper": LinearisationPreset("an hour", 20, (20, 40, 80, 160, 320), (*_WIDTHS, 8192, 16_384), 12),
}


def work(preset: LinearisationPreset) -> list[LinearisationDraw]:
    """Return every training: σ by σ, n by n, N by N."""
    return [
        LinearisationDraw(activation, n, N, preset.d, number)
        for activation in _LOOKS
        for n in preset.n
        for N in preset.widths
        for number in range(preset.draws)
    ]


def data(preset: LinearisationPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return what each width leads to, with exponents of N where N ≥ 4n, and the N at which the distance is 5 %."""
    names = list(_SHOWN)
    shape = len(_LOOKS), len(preset.n), len(preset.widths), preset.draws
    dims = ("activation", "n", "width")
    values = {name: np.array([row[name] for row in rows]).reshape(shape) for name in (*names, "train", "steps")}
    columns: dict[str, Any] = {}
    for name, table in values.items():
        columns |= averaged(name, dims, table)
    widths = np.array(preset.widths, dtype=np.float64)
    slopes = np.empty((2, len(names), len(_LOOKS), len(preset.n)))
    needed = np.empty((len(_LOOKS), len(preset.n), preset.draws))
    for j, n in enumerate(preset.n):
        far = widths >= min(_FAR * n, widths[-2])
        for i in range(len(_LOOKS)):
            for k, name in enumerate(names):
                slopes[:, k, i, j] = exponents(widths[far], values[name][i, j, far])
            needed[i, j] = _width_for(_CLOSE, widths[far], values["distance"][i, j, far])
    columns |= {
        "exponent": (("quantity", *dims[:2]), slopes[0]),
        "exponent_stderr": (("quantity", *dims[:2]), slopes[1]),
        **averaged("needed", dims[:2], needed),
    }
    power, spread = exponents(np.array(preset.n, dtype=np.float64), needed)
    columns |= {"needed_exponent": ("activation", power), "needed_exponent_stderr": ("activation", spread)}
    about = {"citations": "lee2019wide,chizat2019lazy", "d": preset.d, "draws": preset.draws, "close": _CLOSE}
    coordinates = {"activation": list(_LOOKS), "n": list(preset.n), "width": list(preset.widths), "quantity": names}
    return {"width": dataset(columns, coordinates, about)}


def _width_for(close: float, widths: FloatArray, distance: FloatArray) -> FloatArray:
    """Return the N at which the fitted power law of each draw, a column, has the distance `close`."""
    slope, level = np.polyfit(np.log(widths), np.log(distance), 1)
    return np.asarray(np.exp((np.log(close) - level) / slope))


def _line(colour: Any) -> dict[str, Any]:
    return {"color": colour, "markeredgecolor": colour, "linewidth": 1.2, "markersize": 5.5, "markeredgewidth": 1.2}


def _draw_distance(axes: Axes, panel: Dataset) -> None:
    counts = panel.n.values.tolist()
    for k, n in enumerate(counts):
        for name, look in _LOOKS.items():
            at = panel.sel(activation=name, n=n)
            label = f"n = {n}" if name == "relu" else None
            colour = scale_colour(k / max(1, len(counts) - 1))
            axes.errorbar(panel.width, at.distance, at.distance_stderr, label=label, **_line(colour), **look)
    N = np.array([panel.width.values[0], panel.width.values[-1]], dtype=float)
    top = 1.6 * float(panel.distance.max())
    axes.plot(N, top * (N / N[0]) ** declared.WIDTH, color="#333333", linestyle=":", label="bound: N$^{−1/2}$")
    axes.axhline(panel.attrs["close"], color="#999999", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="N, neurons", ylabel="network − linearisation, relative")
    axes.set_title(f"On fresh inputs, d = {panel.attrs['d']}: ReLU full, erf open")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=9.5)


def _draw_movement(axes: Axes, panel: Dataset) -> None:
    n = panel.n.values[len(panel.n) // 2]
    for quantity, (words, colour) in _SHOWN.items():
        for name, look in _LOOKS.items():
            at = panel.sel(activation=name, n=n)
            slope = float(at.exponent.sel(quantity=quantity))
            sigma = "ReLU" if name == "relu" else name
            label = f"{words}, {sigma}: N$^{{{slope:.2f}}}$".replace("{-", "{−")
            axes.errorbar(panel.width, at[quantity], at[f"{quantity}_stderr"], label=label, **_line(colour), **look)
    axes.axvspan(_FAR * n, float(panel.width[-1]), color="#f0f0f0", zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="N, neurons", ylabel="at the end of training")
    axes.set_title(f"What moves, n = {n} (fitted where shaded, N ≥ {_FAR}n)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1, fontsize=9.0)


def _draw_needed(axes: Axes, panel: Dataset) -> None:
    n = panel.n.values.astype(float)
    for name, look in _LOOKS.items():
        at = panel.sel(activation=name)
        power, error = float(at.needed_exponent), float(at.needed_exponent_stderr)
        sigma = "ReLU" if name == "relu" else name
        label = f"{sigma}: N ∝ n$^{{{power:.2f} ± {error:.2f}}}$"
        colour = LOOKS["NN" if name == "relu" else "RF"]["color"]
        axes.errorbar(n, at.needed, at.needed_stderr, label=label, **_line(colour), **look)
    axes.plot(n, n, color="#333333", linestyle=":", label="N = n")
    axes.set(yscale="log", xlabel="n, samples", ylabel=f"N at a distance of {panel.attrs['close']:.0%}")
    axes.set_title("Neurons from which the linearisation is good")
    ticks_at(axes, n)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1)


plot = frames((14.4, 4.9), (_draw_distance, "width"), (_draw_movement, "width"), (_draw_needed, "width"))
"""The distance against N for every n, what moves by how much, and how many neurons n samples ask for."""


def verdict(data: Panels) -> list[str]:
    """Return exponents with their errors, the N that each n asks for, and whether theory holds.

    The weights must move like N^{−1/2}; what kernel and function differ from their linearisation must fall at least as
    fast; and more samples must ask for more neurons.
    """
    panel = data["width"]
    lines = [f"{'σ':>6}{'n':>6}" + "".join(f"{name:>18}" for name in _SHOWN) + f"{'N for 5 %':>16}"]
    wrong = []
    for name in panel.activation.values.tolist():
        for n in panel.n.values.tolist():
            at = panel.sel(activation=name, n=n)
            cells = []
            for quantity in _SHOWN:
                here = at.sel(quantity=quantity)
                slope, error = float(here.exponent), float(here.exponent_stderr)
                cells.append(f"{slope:.2f} ± {error:.2f}")
                above = slope - declared.WIDTH - _TOLERANCE - 2.0 * error
                below = declared.WIDTH - slope - _TOLERANCE - 2.0 * error
                if above > 0.0 or (quantity == "movement" and below > 0.0):
                    wrong.append(f"the exponent of {quantity} ({name}, n = {n})")
            needed = f"{float(at.needed):.0f} ± {float(at.needed_stderr):.0f}"
            lines.append(f"{name:>6}{n:>6}" + "".join(f"{cell:>18}" for cell in cells) + f"{needed:>16}")
        power = float(panel.needed_exponent.sel(activation=name))
        error = float(panel.needed_exponent_stderr.sel(activation=name))
        lines.append(f"{name}: N for a distance of 5 % grows like n^({power:.2f} ± {error:.2f})")
        if power - 3.0 * error <= 0.0:
            wrong.append(f"the neurons that n samples ask for ({name})")
    told = "Weights move like N^(−1/2), networks tend to their linearisations at least as fast, and sooner for small n."
    return [*lines, answer(not wrong, told, f"Not as predicted: {', '.join(wrong)}."[:199])]


_TITLE = "A network and its linearisation on n samples as N grows (Thermodynamic limits, Neural tangent)"
_FAULTS = (
    wrong_rows("networks that keep their distance", data, "distance", lambda k, distance: 0.3 + 0.0 * distance),
    wrong_rows("weights that move as far at every width", data, "movement", lambda k, movement: 1.0 + 0.0 * movement),
)
EXPERIMENT = Experiment("linearisation", _TITLE, PRESETS, work, data, plot, verdict, place=61, faults=_FAULTS)

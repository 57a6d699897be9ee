"""Every NT function is a limit of networks with twice the neurons: NT_N ⊆ cl(NN_2N) (Ghorbani et al. 2019, §1), built.

    f_NT(x) = Σ_i ⟨a_i, x⟩σ′(⟨w_i, x⟩) = lim_{ε→0} Σ_i [σ(⟨w_i + εa_i, x⟩) − σ(⟨w_i, x⟩)]/ε,

two neurons for each, with second-layer weights ±1/ε. With w_i ± εa_i and ±1/(2ε) the error is of order ε², not ε. In
float64 the two neurons cancel to rounding, 10⁻¹⁶/ε, which sets a floor. Where σ has a kink, inputs within ε of it are a
share ε of all, and the error falls like ε^{1/2}, until none of the inputs at hand is left there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.activations import Activation
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, canvas, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.draws import attributes, exponents
from lazyscope.experiments.frame.types import Dataset, Figure, Panels
from lazyscope.limits import declared
from lazyscope.runs.pictures import LOOKS
from lazyscope.weights import generator, tangent_as_network

_INPUTS = 20_000  # on which functions are compared
_WAYS = {"forward": False, "central": True}
_NEAR = 0.1  # of an order, as fitted
_SMALL = 1e-6  # what the error of a smooth σ must reach, relative to the NT function
_EPSILON = tuple(10.0 ** np.arange(-14.0, -0.9, 0.5))
_FITTED = (1e-3, 0.3)  # ε between which orders are fitted: above rounding


@dataclass(frozen=True)
class InclusionDraw(Draw):
    """One NT function with random weights, and the networks that tend to it: their errors, (way, ε)."""

    activation: str
    d: int
    width: int
    epsilon: tuple[float, ...]
    number: int = 0
    seed: int = 0

    words = "NT as a network, {0.activation}, N = {0.width}"
    costs = ("d", "width")

    def compute(self) -> Row:
        """Draw w_i ~ N(0, I/d), a_i ~ N(0, I/d) and inputs ~ N(0, I); return root mean squares over that of f_NT."""
        rng, sigma = generator(self.seed, self.number, self.width), Activation(self.activation)
        W, A = rng.standard_normal((2, self.width, self.d)) / np.sqrt(self.d)
        X = rng.standard_normal((_INPUTS, self.d))
        tangent = np.sum((X @ A.T) * sigma.derivative(X @ W.T), axis=1)
        errors = np.empty((len(_WAYS), len(self.epsilon)))
        for i, central in enumerate(_WAYS.values()):
            for j, epsilon in enumerate(self.epsilon):
                V, b = tangent_as_network(W, A, epsilon, central)
                errors[i, j] = np.sqrt(np.mean((sigma(X @ V.T) @ b - tangent) ** 2))
        return {"error": errors / np.sqrt(np.mean(tangent**2))}


@dataclass(frozen=True)
class InclusionPreset(Preset):
    """Sizes of the NT function, draws, and the steps ε, ascending."""

    d: int
    width: int
    draws: int
    epsilon: tuple[float, ...] = _EPSILON


PRESETS = {
    "quick": InclusionPreset("a quarter of a minute", 20, 10, 4),
    "paper": InclusionPreset("two minutes", 50, 50, 8),
}


def work(preset: InclusionPreset) -> list[InclusionDraw]:
    """Return every NT function."""
    names = dict.fromkeys(name for name, _ in declared.INCLUSION)
    return [
        InclusionDraw(name, preset.d, preset.width, preset.epsilon, number)
        for name in names
        for number in range(preset.draws)
    ]


def data(preset: InclusionPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return mean errors against ε, their orders, and the smallest."""
    names, epsilon = list(dict.fromkeys(name for name, _ in declared.INCLUSION)), np.array(preset.epsilon)
    errors = np.array([row["error"] for row in rows]).reshape(len(names), preset.draws, len(_WAYS), len(epsilon))
    mean, stderr = over_draws(errors, axis=1)
    dims = ("activation", "way")
    fitted = (epsilon >= _FITTED[0] * (1.0 - 1e-9)) & (epsilon <= _FITTED[1])
    order, spread = exponents(epsilon[fitted], np.moveaxis(errors, 1, -1)[:, :, fitted])
    columns: dict[str, Any] = {
        "error": ((*dims, "epsilon"), mean),
        "stderr": ((*dims, "epsilon"), stderr),
        "order": (dims, order),
        "order_stderr": (dims, spread),
        "smallest": (dims, errors.min(axis=-1).max(axis=1)),
    }
    about = {"citations": "ghorbani2019limitations", **attributes(preset, "d", "width", "draws")}
    return {"error": dataset(columns, {"activation": names, "way": list(_WAYS), "epsilon": epsilon}, about)}


def plot(data: Panels) -> Figure:
    """Draw the error against ε for both ways and activations."""
    panel = data["error"]
    with canvas(7.2, 4.9) as figure:
        axes = figure.subplots()
        for name, colour in (("erf", LOOKS["NN"]["color"]), ("relu", LOOKS["RF"]["color"])):
            for way, marker in (("forward", "o"), ("central", "s")):
                at = panel.sel(activation=name, way=way)
                words = "w + εa and w" if way == "forward" else "w ± εa"
                sigma = "ReLU" if name == "relu" else name
                label = f"{sigma}, {words}: ε$^{{{float(at.order):.2f}}}$, smallest {float(at.smallest):.0e}"
                look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5, "linewidth": 1.1}
                axes.plot(panel.epsilon, at.error, label=label, linestyle="-" if way == "forward" else "--", **look)
        axes.axhline(_SMALL, color="#888888", linewidth=0.8)
        axes.text(0.2, 1.3 * _SMALL, "10⁻⁶", ha="right", color="#666666", fontsize=9)
        axes.set(xscale="log", yscale="log", xlabel="ε", ylabel="network of 2N neurons − NT function, relative")
        d, N = panel.attrs["d"], panel.attrs["width"]
        axes.set_title(f"NT functions of N = {N} neurons as networks of {2 * N}, d = {d}")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=9.5)
    return figure


def verdict(data: Panels) -> list[str]:
    """Return orders and smallest errors, and whether the construction holds: both orders, and 10⁻⁶ for a smooth σ."""
    panel = data["error"]
    lines = [f"{'σ':>6}{'way':>10}{'order in ε':>18}{'expected':>10}{'smallest error':>17}"]
    wrong = []
    for (name, way), expected in declared.INCLUSION.items():
        at = panel.sel(activation=name, way=way)
        order, error, smallest = float(at.order), float(at.order_stderr), float(at.smallest)
        lines.append(f"{name:>6}{way:>10}{f'{order:.2f} ± {error:.2f}':>18}{expected:>10g}{smallest:>17.1e}")
        if abs(order - expected) > _NEAR + 2.0 * error:
            wrong.append(f"the order of {name}, {way}")
        if name == "erf" and smallest > _SMALL:
            wrong.append(f"{_SMALL:g} with {name}, {way}")
    told = "Networks of 2N neurons come within 10⁻⁶ of every NT function, at the orders of their differences."
    return [*lines, answer(not wrong, told, f"Not as constructed: {', '.join(wrong)}.")]


_TITLE = "NT functions as limits of networks with twice the neurons (Limitations, §1)"
_FAULTS = (
    wrong_rows("errors that do not vanish", data, "error", lambda k, error: np.maximum(error, 1e-4)),
    wrong_rows("errors of another order", data, "error", lambda k, error: error**0.5),
)
EXPERIMENT = Experiment("inclusion", _TITLE, PRESETS, work, data, plot, verdict, place=15, faults=_FAULTS)

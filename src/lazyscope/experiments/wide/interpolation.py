"""Interpolation: the smallest network that fits n random labels exactly (Montanari 2019, "Interpolation").

RF fits from N = n on, NT from about n/d, NN from n/(d + 1): a count of parameters (`limits.interpolation`). Below it, p
independent features leave 1 − p/n of ‖y‖² in the mean. Whether a network that is trained whole fits is a question of
training (`training.linear.interpolate`); it does better below its threshold, as it chooses its features. Labels are
Gaussian: those of ±1 are fitted by fewer neurons that saturate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.checks import FloatArray, fits_in_memory, whole_number, whole_numbers
from lazyscope.errors import InvalidParameter
from lazyscope.experiments.frame import Draw, Experiment, Preset, Row, answer, canvas, dataset, wrong_rows
from lazyscope.experiments.frame.draws import attributes, computed, provenance, split
from lazyscope.experiments.frame.types import Axes, Dataset, Figure, Panels
from lazyscope.limits.interpolation import neurons, parameters, threshold, unexplained
from lazyscope.runs.pictures import LOOKS
from lazyscope.training.linear.interpolate import KINDS, Kind, features, fitted, trained
from lazyscope.weights import generator

FITS = 1e-6  # residual, relative to ‖y‖, up to which labels count as fitted
_SLOPES = {"RF": "N = n", "NT": "N = (n − 1)/d", "NN": "N = (n − 1)/(d + 1)"}
_SMALLEST = ("smallest", "smallest_stderr")
_FAR = 3.0  # standard errors


@dataclass(frozen=True, eq=False)
class InterpolationDraw(Draw):
    """One sample of n labels, and whether one network fits it: the residual over ‖y‖, and the rank of its features."""

    kind: Kind
    n: int
    d: int
    width: int
    activation: Activation | str = "tanh"
    number: int = 0
    seed: int = 0

    words = "{0.kind}, n = {0.n}, N = {0.width}"

    @property
    def size(self) -> int:
        """A rough cost, used to start long tasks first."""
        parameters = self.width * (1 if self.kind == "RF" else self.d)
        return self.n * self.n * parameters * (200 if self.kind == "NN" else 1)

    def compute(self) -> Row:
        """Draw x, y and weights, and fit."""
        sigma = as_activation(self.activation)
        data = generator(self.seed, self.number, 0)  # the same labels for every width and regime
        X, y = data.standard_normal((self.n, self.d)), data.standard_normal(self.n)
        rng = generator(self.seed, self.number, self.width)
        W = rng.standard_normal((self.d, self.width)) / np.sqrt(self.d)
        if self.kind == "NN":
            residual = trained(sigma, X, y, rng, self.width, 0.1 * FITS)
            return {"residual": np.array(residual), "rank": np.array(self.n if residual < FITS else 0)}
        residual, rank = fitted(features(self.kind, sigma, X, W), y)
        return {"residual": np.array(residual), "rank": np.array(rank)}


def interpolation(
    n: int,
    d: int,
    *,
    activation: Activation | str = "tanh",
    kinds: Any = KINDS,
    widths: Any = None,
    draws: int = 8,
    seed: int = 0,
) -> Dataset:
    """Return how often networks of each width fit n random labels in d dimensions exactly.

    Parameters
    ----------
    n, d
        Numbers of labels and of dimensions.
    activation
        σ, with a derivative.
    kinds
        Of "RF", "NT" and "NN".
    widths
        N, for every kind; by default those around the threshold of each.
    draws, seed
        Independent samples of data, labels and weights.

    Returns
    -------
    xarray.Dataset
        Over (`kind`, `point`): `width`, `fits` (the share of draws that are fitted), `residual` and `rank` (means);
        over `kind`: `smallest`, the mean over draws of the smallest N that fits, ∞ where one fits none, and, from two
        draws on, `smallest_stderr`; `threshold`, the count of parameters, and `transition`, the N between which the
        share goes from 0.1 to 0.9.

    Examples
    --------
    >>> found = interpolation(30, 5, kinds=("RF", "NT"), draws=2)
    >>> found.smallest.values, found.threshold.values
    (array([30.,  6.]), array([30.,  6.]))
    """
    n, d = whole_number(n, "interpolation", "n"), whole_number(d, "interpolation", "d")
    draws, seed = whole_number(draws, "interpolation", "draws"), whole_number(seed, "interpolation", "seed", least=0)
    fits_in_memory(16.0 * n * d, f"A sample of n = {n} in d = {d} dimensions", "Use smaller sizes.")
    sigma = as_activation(activation)
    if not sigma.has_derivative:
        raise InvalidParameter.of("interpolation", "activation", "have a derivative", sigma.name)
    chosen = list(dict.fromkeys(kinds))
    if not chosen or any(kind not in KINDS for kind in chosen):
        raise InvalidParameter.of("interpolation", "kinds", "be some of RF, NT and NN", kinds)
    work = plan(n, d, activation, chosen, widths, draws, seed)
    return assemble(work, computed(work))


def plan(
    n: int, d: int, activation: Activation | str, kinds: list[Kind], widths: Any, draws: int, seed: int
) -> list[InterpolationDraw]:
    """Return the draws of a report: around each threshold where no widths are given."""
    work = []
    for kind in kinds:
        if widths is None:
            some = around(threshold(kind, n, d, as_activation(activation)), kind)
        else:
            some = np.unique(whole_numbers(widths, "interpolation", "widths")).tolist()
        work += [InterpolationDraw(kind, n, d, N, activation, k, seed) for N in some for k in range(draws)]
    return work


def around(middle: float, kind: Kind) -> list[int]:
    """Return the widths from half to 1.6 times the threshold, some twelve of them, all near it.

    >>> around(20.0, "NT")
    [10, 14, 17, 18, 19, 20, 21, 22, 23, 26, 30, 32]
    """
    if not np.isfinite(middle):
        must = "be few enough for some width to fit them"
        raise InvalidParameter.of("interpolation", "n", must, "more than σ has features", "Pass another activation.")
    N = int(middle)
    near = range(N - 3, N + 4)
    far = (0.5 * N, 0.7 * N, 0.85 * N, 1.15 * N, 1.3 * N, 1.5 * N, 1.6 * N, *((2.0 * N,) if kind == "NN" else ()))
    return sorted({max(1, round(x)) for x in (*near, *far)})


def assemble(work: list[InterpolationDraw], rows: Sequence[Row]) -> Dataset:
    """Return the report of some draws."""
    first, kinds = work[0], list(dict.fromkeys(draw.kind for draw in work))
    pairs = list(zip(work, rows, strict=True))
    tables = [_one_kind([(draw, row) for draw, row in pairs if draw.kind == kind]) for kind in kinds]
    points = max(len(table["width"]) for table in tables)

    def padded(name: str) -> FloatArray:
        """Repeat the largest width, so that every kind has as many points."""
        return np.array([np.append(t[name], np.repeat(t[name][-1], points - len(t[name]))) for t in tables])

    variables: dict[str, Any] = {
        name: (("kind", "point"), padded(name)) for name in ("width", "fits", "residual", "rank")
    }
    several = any(draw.number for draw in work)
    for name in ("smallest", *(("smallest_stderr",) if several else ()), "transition"):
        variables[name] = ("kind", np.array([float(table[name]) for table in tables]))
    counts = [threshold(kind, first.n, first.d, as_activation(first.activation)) for kind in kinds]
    variables["threshold"] = ("kind", np.array(counts))
    name = as_activation(first.activation).name
    about = attributes(first, "n", "d", "seed") | {
        "activation": name,
        "draws": 1 + max(draw.number for draw in work),
        "problem": f"n = {first.n} random labels in d = {first.d} dimensions, σ = {name}",
        **provenance("interpolation", "measured", "montanari2020interpolation", first.seed),
    }
    return dataset(variables, {"kind": kinds}, about)


def _one_kind(pairs: list[tuple[InterpolationDraw, Row]]) -> dict[str, FloatArray]:
    widths = sorted({draw.width for draw, _ in pairs})
    draws = sorted({draw.number for draw, _ in pairs})
    by = {(draw.width, draw.number): row for draw, row in pairs}
    residual = np.array([[float(by[N, k]["residual"]) for k in draws] for N in widths])
    rank = np.array([[float(by[N, k]["rank"]) for k in draws] for N in widths])
    fitted = residual < FITS
    share = fitted.mean(axis=1)
    smallest = np.where(fitted.any(axis=0), np.array(widths)[np.argmax(fitted, axis=0)], np.inf)
    known = len(draws) > 1 and bool(np.all(np.isfinite(smallest)))
    spread = smallest.std(ddof=1) / np.sqrt(len(draws)) if known else np.inf
    return {
        "width": np.array(widths, dtype=float),
        "fits": share,
        "residual": residual.mean(axis=1),
        "rank": rank.mean(axis=1),
        "smallest": np.array(smallest.mean()),
        "smallest_stderr": np.array(spread),
        "transition": np.array(_between(np.array(widths, dtype=float), share)),
    }


def _between(widths: FloatArray, share: FloatArray) -> float:
    """Return how far N goes while the share of fitted draws goes from 0.1 to 0.9; 0 for a jump between neighbours."""
    if share[-1] < 0.9:
        return np.inf
    last_low = np.flatnonzero(share <= 0.1)
    first_high = int(np.flatnonzero(share >= 0.9)[0])
    low = int(last_low[-1]) if last_low.size else 0
    return max(0.0, float(widths[first_high] - widths[low]) - 1.0)


@dataclass(frozen=True)
class InterpolationPreset(Preset):
    """Numbers of labels, ascending; dimension; draws of data, labels and weights; σ."""

    n: tuple[int, ...]
    d: int
    draws: int
    activation: str = "tanh"


PRESETS = {
    "quick": InterpolationPreset("half a minute", (36, 72, 144), 10, 8),
    "paper": InterpolationPreset("about twenty minutes", (48, 96, 192, 384), 20, 24),
}


def _plans(preset: InterpolationPreset) -> list[list[InterpolationDraw]]:
    return [plan(n, preset.d, preset.activation, list(KINDS), None, preset.draws, 0) for n in preset.n]


def work(preset: InterpolationPreset) -> list[InterpolationDraw]:
    """Return the fits of every n, regime, width and draw."""
    return [draw for some in _plans(preset) for draw in some]


def data(preset: InterpolationPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return a panel for each n: shares and residuals against N, the smallest N that fits, and what theory says."""
    plans = _plans(preset)
    return {
        f"n = {n}": _with_theory(assemble(some, own), some, own, preset)
        for n, some, own in zip(preset.n, plans, split(rows, plans), strict=True)
    }


def _with_theory(
    panel: Dataset, some: list[InterpolationDraw], rows: Sequence[Row], preset: InterpolationPreset
) -> Dataset:
    """Add p/n, the mean of residual² with its expectation and standard error for linear models, and z."""
    n = panel.attrs["n"]
    by: dict[tuple[str, int], list[float]] = {}
    for draw, row in zip(some, rows, strict=True):
        by.setdefault((draw.kind, draw.width), []).append(float(row["residual"]) ** 2)
    kinds, widths = panel.kind.values.tolist(), panel.width.values
    squares = np.array([[np.mean(by[kind, int(N)]) for N in own] for kind, own in zip(kinds, widths, strict=True)])
    p = np.array([parameters(kind, own, preset.d) for kind, own in zip(kinds, widths, strict=True)])
    part = np.minimum(p / n, 1.0)
    expected, variance = unexplained(part, n)
    stderr = np.sqrt(variance / preset.draws)
    off = np.abs(squares - expected)
    z = np.divide(off, stderr, out=np.where(off > 1e-12, np.inf, 0.0), where=stderr > 0.0)
    linear = np.array([kind != "NN" for kind in kinds])[:, None]
    values = {
        "parameters_per_label": p / n,
        "residual_squared": squares,
        "expected": expected,
        "expected_stderr": stderr,
        "z": np.where(linear, z, 0.0),
    }
    return panel.assign({name: (("kind", "point"), numbers) for name, numbers in values.items()})


def plot(data: Panels) -> Figure:
    """Draw shares against N and residuals against p/n for the most labels, and the smallest N against n."""
    largest = list(data.values())[-1]
    with canvas(14.4, 4.5) as figure:
        first, second, third = figure.subplots(1, 3)
        _draw_shares(first, largest)
        _draw_residuals(second, largest)
        _draw_smallest(third, data)
    return figure


def _draw_shares(axes: Axes, panel: Dataset) -> None:
    for kind in panel.kind.values.tolist():
        at, look = panel.sel(kind=kind), LOOKS[kind]
        least, N = float(at.threshold), at.width.values
        share = at.fits.values
        axes.plot([0.4 * least, least, least, 2.0 * least], [0, 0, 1, 1], color=look["color"], linewidth=1.0, zorder=2)
        error = np.sqrt(share * (1.0 - share) / panel.attrs["draws"])
        axes.errorbar(N, share, error, linestyle="", zorder=3, **look)
        right = kind != "NN"
        axes.annotate(f"{kind}\nN = {least:g}", (least, 0.5), xytext=(6 if right else -6, 0), va="center",
                      ha="left" if right else "right", textcoords="offset points", color=look["color"])  # fmt: skip
    axes.set(xscale="log", xlabel="N, neurons", ylabel="share of draws fitted exactly")
    axes.set_title("{n} random labels, d = {d}, σ = {activation}".format(**panel.attrs))


def _draw_residuals(axes: Axes, panel: Dataset) -> None:
    x = np.linspace(0.0, 1.0, 200)
    left = np.append(np.sqrt(unexplained(x, panel.attrs["n"])[0]), 0.0)
    label = "any fixed features, √(1 − p/n)"
    axes.plot(np.append(x, 1.7), left, color="#333333", linewidth=1.2, zorder=2, label=label)
    for kind in panel.kind.values.tolist():
        at = panel.sel(kind=kind)
        shown = at.parameters_per_label.values <= 1.7
        root = np.sqrt(at.residual_squared.values[shown])
        axes.plot(at.parameters_per_label.values[shown], root, linestyle="", label=_NAMES[kind], zorder=3,
                  **LOOKS[kind])  # fmt: skip
    axes.set(xlabel="p/n, parameters per label", ylabel="residual, ‖y − f‖/‖y‖", xlim=(0.4, 1.7))
    axes.set(ylim=(-0.02, 0.85), title="What is left, against parameters per label")
    axes.legend(loc="upper right")


_NAMES = {"RF": "RF, p = N", "NT": "NT, p = Nd + 1", "NN": "NN, p = N(d + 1) + 1, trained"}


def _draw_smallest(axes: Axes, data: Panels) -> None:
    panels = list(data.values())
    n, d = np.array([panel.attrs["n"] for panel in panels], dtype=float), panels[0].attrs["d"]
    for kind in panels[0].kind.values.tolist():
        smallest, error = ([float(panel[name].sel(kind=kind)) for panel in panels] for name in _SMALLEST)
        axes.plot(n, neurons(kind, n, d), color=LOOKS[kind]["color"], linewidth=1.1, zorder=2)
        axes.errorbar(n, smallest, error, linestyle="", label=f"{kind}; line: {_SLOPES[kind]}", zorder=3, **LOOKS[kind])
    axes.set(xscale="log", yscale="log", xlabel="n, labels", ylabel="smallest N that fits, mean over draws")
    axes.set_title("The smallest network that fits")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xticks(n)
    axes.set_ylim(None, 4.0 * n[-1])
    axes.legend(loc="upper left")


def verdict(data: Panels) -> list[str]:
    """Return the smallest N and the width of the transition for each n and regime, and whether they are as counted."""
    told = [
        f"{'n':>5}{'':>5}{'parameters ≥ n from':>21}{'smallest N that fits':>23}{'transition':>12}{'largest z':>11}"
    ]
    wrong, z_all = [], 0.0
    for panel in data.values():
        n = panel.attrs["n"]
        for kind in panel.kind.values.tolist():
            at = panel.sel(kind=kind)
            least, smallest, z = float(at.threshold), float(at.smallest), float(at.z.max())
            cell = f"{smallest:.2f} ± {float(at.smallest_stderr):.2f}"
            shown = f"{z:>11.1f}" if kind != "NN" else f"{'':>11}"
            told.append(f"{n:>5}{kind:>5}{least:>21g}{cell:>23}{float(at.transition):>12g}{shown}")
            z_all = max(z_all, z)
            if not least <= smallest <= (least if kind != "NN" else 1.1 * least + 1.0) or z > _FAR:
                wrong.append(f"{kind} at n = {n}")
    told.append(f"Below the threshold RF and NT are within {z_all:.1f} standard errors of √(1 − p/n).")
    as_counted = "RF and NT fit from their count of parameters on, trained networks within a neuron and 10% of theirs."
    return [*told, answer(not wrong, as_counted, f"Not as counted: {', '.join(wrong)}.")]


_TITLE = "The smallest RF, NT and NN that fit n random labels, and what is left below (the same)"
_FAULTS = (wrong_rows("labels twice as large as they should be", data, "residual", lambda k, residual: 0.5 * residual),)
EXPERIMENT = Experiment(
    "interpolation", _TITLE, PRESETS, work, data, plot, verdict, place=63, report=interpolation, faults=_FAULTS
)

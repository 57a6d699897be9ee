"""What the experiments on ridge regression share: dots beside the limit, against N/n, and the judgement on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lazyscope.activations import Activation
from lazyscope.experiments.frame import Row, dataset, wrong_work
from lazyscope.experiments.frame.dots import Prediction, Setting, held, ridge_name, trials
from lazyscope.experiments.frame.judgement import judged
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.experiments.frame.verdict import Answer, Data, Fault
from lazyscope.limits.spectral.linear_features import spectral_target
from lazyscope.problems import LinearTarget, SpectralTarget
from lazyscope.regimes import RandomFeatures, Regime
from lazyscope.runs.pictures import scale_colour
from lazyscope.runs.verbs import limit

MEASURED = ("risk", "bias", "variance", "train")
HOW = "Predicted: by deterministic equivalents at the dot's own n, N and d; allowed: what one sample or neuron changes."
_ONE_MORE = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))  # neurons and samples, more or less


@dataclass(frozen=True, eq=False)
class RidgeSetting(Setting):
    """Random features with several ridges."""

    ridges: tuple[float, ...] = ()
    measured = MEASURED

    @property
    def sizes(self) -> dict[str, tuple[Any, ...]]:
        """The sizes of a trial, which computes all ridges at once."""
        return {**super().sizes, "ridge": self.ridges}

    def data(self, rows: Sequence[Row], lines: NDArray[np.float64] | None = None) -> Dataset:
        """Return dots, `risk` and its like with standard errors, and the limit: at the dots, and along `lines` of N/n.

        Without `lines`, the limit is not drawn. Where it is infinite there is no dot.
        """
        ratio = np.array(self.widths) / self.samples
        expected = self._limit(ratio)
        columns = self.columns(rows, expected, np.isfinite(expected.risk.values)) | self.predicted(self.predictions())
        coordinates = {"width": list(self.widths), "ridge": list(self.ridges), "ratio": ("width", ratio)}
        if lines is not None:
            coordinates["line"] = lines
            along = self._limit(lines)
            columns |= {f"{name}_limit": (("line", "ridge"), along[name].values) for name in MEASURED}
        return dataset(columns, coordinates, self.about(expected))

    def predictions(self) -> dict[str, Prediction]:
        """Return what the deterministic equivalents say at these n, N and d, and what they leave out.

        They are right to relative order 1/n and 1/N. For Gaussian least squares that is known exactly: the variance is
        τ²N/(n − N − 1) where they have τ²N/(n − N), as if there were one sample fewer. So they are allowed what one
        sample or one neuron, more or less, changes.
        """
        target, widths = self._seen(), np.array(self.widths, dtype=np.float64)
        ridge = self.samples / self.d * np.array(self.ridges)

        def at(neurons: float, samples: float) -> Dataset:
            N, n = np.maximum(1.0, widths + neurons), self.samples + samples
            return limit(target, RandomFeatures(), width=N, samples=n, ridge=ridge)

        here, near = at(0.0, 0.0), [at(*more) for more in _ONE_MORE]
        predictions = {}
        for name in MEASURED:
            value = here[name].values
            with np.errstate(invalid="ignore"):
                left_out = np.max([np.abs(other[name].values - value) for other in near], axis=0)
            predictions[name] = value[..., None], np.nan_to_num(left_out, nan=np.inf, posinf=np.inf)
        return predictions

    def _seen(self) -> SpectralTarget:
        assert isinstance(self.problem, LinearTarget) and isinstance(self.regime, RandomFeatures)
        return spectral_target(self.problem, self.regime, self.d)

    def _limit(self, ratio: NDArray[np.float64]) -> Dataset:
        psi2 = self.samples / self.d
        return limit(self.problem, self.regime, psi1=ratio * psi2, psi2=psi2, ridge=list(self.ridges))


def settings_of(
    targets: Mapping[str, LinearTarget],
    d: int,
    psi2: float,
    ratios: Sequence[float],
    draws: int,
    ridges: tuple[float, ...],
) -> dict[str, RidgeSetting]:
    """Return ReLU features of widths N/n on n = ψ₂d samples of each target, by its name."""
    n, features = round(psi2 * d), RandomFeatures("relu")
    widths = widths_at(ratios, n)
    return {name: RidgeSetting(target, features, d, n, widths, draws, ridges) for name, target in targets.items()}


def widths_at(ratios: Sequence[float], samples: int) -> tuple[int, ...]:
    """Return the whole numbers N nearest to N/n, without repetition.

    >>> widths_at((0.1, 0.12, 2.0), 10)
    (1, 20)
    """
    return tuple(sorted({max(1, round(ratio * samples)) for ratio in ratios}))


def ratios_around_one(low: float, high: float, points: int) -> NDArray[np.float64]:
    """N/n for a line, finer near the threshold.

    >>> grid = ratios_around_one(0.1, 10.0, 101)
    >>> bool(grid[0] == 0.1 and 1.0 in grid and grid[-1] == 10.0)
    True
    """
    near = 1.0 + np.concatenate([-np.geomspace(0.3, 1e-4, points // 4), np.geomspace(1e-4, 0.3, points // 4)])
    return np.unique(np.concatenate([np.geomspace(low, high, points), near, [1.0, low, high]]))


def colours_of(data: Dataset) -> dict[float, Any]:
    """Return a colour for each ridge."""
    ridges = [float(ridge) for ridge in data.ridge.values]
    return {ridge: scale_colour(i / max(1, len(ridges) - 1)) for i, ridge in enumerate(ridges)}


def draw(axes: Axes, data: Dataset, name: str, colours: Mapping[float, Any]) -> None:
    """Draw a line and dots for each ridge against N/n."""
    look: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.5}
    for ridge, colour in colours.items():
        at = data.sel(ridge=ridge)
        values = np.ma.masked_invalid(at[f"{name}_limit"].values)
        axes.plot(at.line, values, color=colour, label=ridge_name(ridge), linestyle="-" if ridge else "--")
        axes.errorbar(at.ratio, at[name], at[f"{name}_stderr"], color=colour, **look)


def threshold(axes: Axes) -> None:
    """Mark N = n, and make the axis of N/n logarithmic, with plain numbers."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.axvline(1.0, color="#999999", linewidth=0.9, linestyle=":", zorder=0)


def title(name: str, data: Dataset) -> str:
    """Return the title of a frame: what tells it from the others, and n/d."""
    return f"{name}, n/d = {data.attrs['samples'] / data.attrs['d']:g}"


def peak(data: Dataset, ridge: float) -> float | None:
    """Return N/n where the limit of the risk peaks between two valleys, None where it only falls."""
    curve = data.risk_limit.sel(ridge=ridge).values
    tops = 1 + np.flatnonzero((curve[1:-1] >= curve[:-2]) & (curve[1:-1] > curve[2:]))
    return float(data.line.values[tops[np.argmax(curve[tops])]]) if tops.size else None


def agreement(panels: Panels, names: Sequence[str] = MEASURED) -> Answer:
    """Return in one line whether the dots are what the deterministic equivalents predict at their own n, N and d."""
    return judged(held(panels, names)).answer()


def faults(data: Data, noisier: Callable[[Any], Any], ridged: Callable[[Any], Any]) -> tuple[Fault, ...]:
    """Return the mistakes that a figure of ridge regression must see; the last two arguments change a preset."""

    def printed(preset: Any, rows: Sequence[Row]) -> dict[str, Dataset]:
        panels = dict(data(preset, rows))
        for name, setting in preset.settings.items():
            wrong = replace(setting, regime=squared_zeta(setting.regime))
            panels[name] = panels[name].assign(wrong.predicted(wrong.predictions()))
        return panels

    def tested_elsewhere(preset: Any, rows: Sequence[Row]) -> Panels:
        # a fit that is tested with other weights than its own knows nothing of the target: f and the target add up
        at = len(next(iter(preset.settings.values())).trials) - 1
        lost = {"risk": 2.0 + np.asarray(rows[at]["variance"]) - rows[at]["bias"]}
        return data(preset, [*rows[:at], rows[at] | lost, *rows[at + 1 :]])

    return (
        wrong_work("labels with twice the noise", data, trials, noisier),
        wrong_work("ridges ten times as large as they are said to be", data, trials, ridged),
        Fault("a draw that was tested with other weights than its own", tested_elsewhere),
        Fault("ζ = b₁²/b⋆², as the talk prints it, in place of b₁/b⋆", printed),
    )


def squared_zeta(regime: Regime) -> RandomFeatures:
    """Return features with b₁²/b⋆ in place of b₁, which is what the misprint ζ = b₁²/b⋆² amounts to.

    >>> wrong, right = squared_zeta(RandomFeatures("relu")).activation, RandomFeatures("relu").activation
    >>> f"{wrong.b1 / wrong.b_star:.6f} {(right.b1 / right.b_star) ** 2:.6f}"
    '2.751938 2.751938'
    """
    assert isinstance(regime, RandomFeatures)
    sigma = regime.activation
    more = sigma.b1**2 / sigma.b_star - sigma.b1
    return replace(regime, activation=Activation(lambda u: sigma(u) + more * u, kinks=sigma.kinks))

"""Theorems 4 to 6 with Σ ≠ I (Ghorbani et al. 2019, §3): two classes x | y ~ N(0, Σ ∓ Δ), and the same, whitened.

NN depends on Δ̃ = Σ^{−1/2}ΔΣ^{−1/2} alone: its line is the same in both frames. Random weights know of no Σ, so that RF
and NT have two. Lines are limits, that of NT Theorem 5 for given weights, in the mean over draws; dots are `exact` at
the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope import weights
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.drawing import canvas
from lazyscope.experiments.frame.draws import over_draws
from lazyscope.experiments.frame.experiment import Experiment, Preset
from lazyscope.experiments.frame.verdict import answer, wrong_rows
from lazyscope.limits.mixture import finite_dimension
from lazyscope.problems import GaussianMixture
from lazyscope.regimes import FixedWeights, NeuralTangent, RandomFeatures, Regime, Trained
from lazyscope.runs.pictures import LOOKS
from lazyscope.runs.verbs import limit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

_REGIMES: dict[str, Regime] = {
    "RF, isotropic weights": RandomFeatures(),
    "RF, optimal weights": RandomFeatures(weights="optimal"),
    "NT": NeuralTangent(),
    "NN": Trained(),
}
_TITLES = {"stretched": "Σ with variances from 0.6 to 1.4", "whitened": "the same, whitened: Σ = I"}
_FAR = 4.0  # standard errors of a dot, beyond what finite d may add


def stretched(d: int) -> GaussianMixture:
    """Return the mixture of Figure 2 with Σ ≠ I: variances from 0.6 to 1.4, unrelated to Δ.

    >>> stretched(20).Sigma[[0, -1]]
    array([0.6, 1.4])
    """
    return GaussianMixture(GaussianMixture.three_level(d, seed=0).Delta, np.linspace(0.6, 1.4, d))


@dataclass(frozen=True)
class CovariancePreset(Preset):
    """Dimension, N/d of the dots, draws."""

    d: int
    draws: int
    ratios: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 1.0, 2.0)

    @property
    def problems(self) -> dict[str, GaussianMixture]:
        """Both frames: the mixture, and what whitening makes of it."""
        problem = stretched(self.d)
        return {"stretched": problem, "whitened": GaussianMixture(problem.whitened)}

    @property
    def widths(self) -> tuple[int, ...]:
        """N of the dots."""
        return tuple(round(ratio * self.d) for ratio in self.ratios)


PRESETS = {"quick": CovariancePreset("half a minute", 100, 6), "paper": CovariancePreset("five minutes", 450, 10)}


def work(preset: CovariancePreset) -> list[Run]:
    """Return the exact risks, frame by frame, regime by regime, width by width, draw by draw."""
    return [
        Run("exact", problem, regime, {"width": (N,)}, number=number)
        for problem in preset.problems.values()
        for regime in _REGIMES.values()
        for N in preset.widths
        for number in range(preset.draws)
    ]


def _line(problem: GaussianMixture, regime: Regime, preset: CovariancePreset) -> list[float]:
    """Return the limit at every width; Theorem 5 for Σ ≠ I is one for given weights, those of the dots."""
    if isinstance(regime, NeuralTangent):
        drawn = [
            [weights.draw(problem, regime, N, weights.generator(0, number, N)) for number in range(preset.draws)]
            for N in preset.widths
        ]
        return [
            float(np.mean([limit(problem, NeuralTangent(weights=FixedWeights(W.T))).risk for W in some]))
            for some in drawn
        ]
    risk = limit(problem, regime, rho=np.array(preset.widths) / preset.d).risk
    return [float(value) for value in np.atleast_1d(risk.values)]


def data(preset: CovariancePreset, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return limits and exact risks of both frames."""
    import xarray as xr

    shape = (len(_TITLES), len(_REGIMES), len(preset.widths), preset.draws)
    risks = np.array([float(np.ravel(row["risk"])[0]) for row in rows]).reshape(shape)
    panels = {}
    for k, (name, problem) in enumerate(preset.problems.items()):
        mean, error = over_draws(risks[k])
        lines = np.array([_line(problem, regime, preset) for regime in _REGIMES.values()])
        dims = ("regime", "width")
        values: dict[str, Any] = {"risk": (dims, mean), "stderr": (dims, np.nan_to_num(error)), "limit": (dims, lines)}
        about = {
            "largest": float(np.max(np.abs(problem.whitened))),
            "d": preset.d,
            "citations": "ghorbani2019limitations",
            "problem": str(problem),
        }
        panels[name] = xr.Dataset(values, {"regime": list(_REGIMES), "width": list(preset.widths)}, about)
    return panels


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw both frames: lines and dots of four regimes against N/d."""
    with canvas(11.0, 4.8) as figure:
        frames = figure.subplots(1, 2, sharey=True)
        for axes, (name, panel) in zip(frames, data.items(), strict=True):
            ratio = panel.width / panel.attrs["d"]
            for label in panel.regime.values.tolist():
                at = panel.sel(regime=label)
                axes.plot(ratio, at.limit, color=LOOKS[label]["color"], linewidth=1.4)
                axes.errorbar(ratio, at.risk, at.stderr, linestyle="", label=label, **LOOKS[label])
            axes.set(xscale="log", xlabel="N/d", title=f"{_TITLES[name]}, d = {panel.attrs['d']}")
            axes.xaxis.set_major_formatter("{x:g}")
        frames[0].set_ylabel("risk / risk of the best constant")
        frames[0].legend(loc="upper right", title="lines: limits, dots: exact")
    return figure


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return limits and exact risks, and whether they agree, and NN knows Δ̃ alone."""
    lines, far = [], 0.0
    for name, panel in data.items():
        lines.append(f"{_TITLES[name]:<34}" + "".join(f"{f'N = {N}':>18}" for N in panel.width.values))
        for label in panel.regime.values.tolist():
            at = panel.sel(regime=label)
            pairs = zip(at.limit.values, at.risk.values, strict=True)
            lines.append(f"{label:<34}" + "".join(f"{line:>9.4f} /{dot:>7.4f}" for line, dot in pairs))
            beyond = np.maximum(
                np.abs(at.risk.values - at.limit.values) - finite_dimension(at.limit.values, panel.attrs["largest"]),
                0.0,
            )
            far = max(far, float(np.max(beyond / np.maximum(at.stderr.values, 1e-6))))
    stretched_, whitened = (data[name].sel(regime="NN") for name in _TITLES)
    same = float(np.max(np.abs(stretched_.risk - whitened.risk)))
    lines.append(f"NN before and after whitening: {same:.1e} apart at most")
    told = f"limit / exact agree within {_FAR:g} standard errors plus R(1 − R)‖Δ̃‖², and NN depends on Δ̃ alone."
    return [*lines, answer(far <= _FAR and same < 1e-10, told, "Limits and exact risks, or whitening, do NOT agree.")]


_TITLE = "Theorems 4 to 6 with Σ ≠ I: a mixture, and the same whitened (Limitations, §3)"
_FAULTS = (wrong_rows("a risk without its square", data, "risk", lambda k, risk: np.sqrt(risk)),)
EXPERIMENT = Experiment("covariance", _TITLE, PRESETS, work, data, plot, verdict, place=19, faults=_FAULTS)

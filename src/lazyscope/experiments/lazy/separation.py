"""A cubic function of one direction: lazy networks of N = d neurons miss it, a trained one does not.

Ghorbani et al. 2019, §1: at N ~ d random features learn linear functions and NT quadratic ones, whatever else there is
to learn. Of he₃(⟨u, x⟩) they learn a share that vanishes as d grows: the class has N or Nd functions where there are
d³/6 cubic ones. A ReLU has no cubic part and learns none of it, trained or not: σ is erf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyscope.evidence.run import Run
from lazyscope.experiments.frame import Experiment, Preset, Row, answer, dataset, over_draws, wrong_rows
from lazyscope.experiments.frame.drawing import frames, ticks_at
from lazyscope.experiments.frame.draws import exponents
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.limits.declared import cubic_share
from lazyscope.problems import MultiIndex
from lazyscope.protocols import SGD
from lazyscope.regimes import NeuralTangent, RandomFeatures, Regime, Trained
from lazyscope.runs.pictures import LOOKS

_LINKS = {"he1": "erf", "he2": "relu", "he3": "erf"}
"""What is to be learnt, and an activation that has a part of that degree."""
_LAZY = {"RF": RandomFeatures, "NT": NeuralTangent}
_SGD = SGD(steps=20_000, batch=100, step_sizes=(0.003,), test=10_000, rule="adam")
_LOST, _LEARNT = 0.8, 0.2  # risks between which the regimes must lie apart at N = d
_CITED = "ghorbani2019limitations"


@dataclass(frozen=True)
class SeparationPreset(Preset):
    """Dimension and widths of the left picture, dimensions of the right one, and the network that is trained."""

    d: int
    draws: int
    ratios: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    dimensions: tuple[int, ...] = (30, 60, 120, 240)
    trained: int = 50
    protocol: SGD = _SGD

    @property
    def widths(self) -> tuple[int, ...]:
        """N of the left picture."""
        return tuple(max(1, round(ratio * self.d)) for ratio in self.ratios)


PRESETS = {
    "quick": SeparationPreset("a minute", 60, 8),
    "paper": SeparationPreset("ten minutes", 200, 16, dimensions=(30, 60, 120, 240, 450)),
}


def _exact(link: str, regime: Regime, d: int, N: int, number: int) -> Run:
    return Run("exact", MultiIndex(d, link), regime, {"width": (N,)}, number=number)


def _draws(preset: SeparationPreset, d: int) -> int:
    """Return as many draws as give the same number of weights at every d: their mean of ⟨w, u⟩⁶ is what varies."""
    return max(2, round(preset.draws * max(preset.dimensions) / d))


def work(preset: SeparationPreset) -> list[Run]:
    """Return the exact risks of every link, width and dimension, then the network that is trained."""
    widths = [
        _exact(link, kind(sigma), preset.d, N, number)
        for link, sigma in _LINKS.items()
        for kind in _LAZY.values()
        for N in preset.widths
        for number in range(preset.draws)
    ]
    dimensions = [
        _exact("he3", kind("erf"), d, d, number)
        for kind in _LAZY.values()
        for d in preset.dimensions
        for number in range(_draws(preset, d))
    ]
    network = Run(
        "simulate", MultiIndex(preset.trained), Trained("erf"), {"width": (preset.trained,)}, protocol=preset.protocol
    )
    beside = [_exact("he3", kind("erf"), preset.trained, preset.trained, 0) for kind in _LAZY.values()]
    return [*widths, *dimensions, network, *beside]


def data(preset: SeparationPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return the risk against N/d, the share of he₃ that is learnt at N = d against d, and the trained network."""
    # a lazy network has its exact risk, the trained one that of fresh samples at the end
    values = [float(np.ravel(row["risk"])[-1] if "risk" in row else np.min(row["tested"])) for row in rows]
    shape = (len(_LINKS), len(_LAZY), len(preset.widths), preset.draws)
    taken = int(np.prod(shape))
    risk, error = over_draws(np.array(values[:taken]).reshape(shape))
    shares = np.empty((2, len(_LAZY), len(preset.dimensions)))
    for i in range(len(_LAZY)):
        for j, d in enumerate(preset.dimensions):
            count = _draws(preset, d)
            shares[:, i, j] = over_draws(1.0 - np.array(values[taken : taken + count]))
            taken += count
    about = {"citations": _CITED, "problem": "he_k(⟨u, x⟩)", "d": preset.d, "draws": preset.draws}
    return {
        "widths": dataset(
            {"risk": (("link", "regime", "rho"), risk), "stderr": (("link", "regime", "rho"), error)},
            {"link": list(_LINKS), "regime": list(_LAZY), "rho": np.array(preset.widths) / preset.d},
            about,
        ),
        "dimensions": dataset(
            {"learnt": (("regime", "d"), shares[0]), "stderr": (("regime", "d"), shares[1])},
            {"regime": list(_LAZY), "d": list(preset.dimensions)},
            about,
        ),
        "trained": dataset(
            {"risk": (("regime",), np.array([values[taken + 1], values[taken + 2], values[taken]]))},
            {"regime": [*_LAZY, "NN"]},
            about | {"d": preset.trained, "samples": preset.protocol.steps * preset.protocol.batch},
        ),
    }


def rates(dimensions: Dataset) -> dict[str, float]:
    """Return the exponent of d in the share that each regime learns."""
    d = dimensions.d.values.astype(np.float64)
    return {
        regime: float(exponents(d, dimensions.learnt.sel(regime=regime).values[:, None])[0])
        for regime in dimensions.regime.values.tolist()
    }


def errors(dimensions: Dataset) -> dict[str, float]:
    """Return the standard errors of those exponents, from those of the shares."""
    x = np.log(dimensions.d.values.astype(np.float64))
    slope = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    relative = (dimensions.stderr / dimensions.learnt).transpose("regime", "d").values
    return dict(zip(dimensions.regime.values.tolist(), np.sqrt(relative**2 @ slope**2).tolist(), strict=True))


def _widths(axes: Axes, risks: Dataset, trained: Dataset) -> None:
    styles = dict(zip(risks.link.values.tolist(), ("-", "--", ":"), strict=True))
    words = {"he1": "linear", "he2": "quadratic", "he3": "cubic"}
    for link, style in styles.items():
        for regime in risks.regime.values.tolist():
            line = risks.sel(link=link, regime=regime)
            look: dict[str, Any] = {"color": LOOKS[regime]["color"], "linestyle": style, "marker": "o"}
            axes.errorbar(risks.rho, line.risk, line.stderr, label=f"{regime}, {words[link]}", markersize=3.5, **look)
    end, d = float(trained.risk.sel(regime="NN")), trained.attrs["d"]
    axes.plot(1.0, end, "*", markersize=14, color=LOOKS["NN"]["color"], label=f"NN, cubic, d = N = {d}")
    axes.set(xscale="log", ylim=(-0.03, 1.45), xlabel="N/d, neurons per dimension", ylabel="risk (best constant: 1)")
    axes.set_title(f"hₖ(⟨u, x⟩), d = {risks.attrs['d']}: RF learns degree 1, NT degree 2")
    axes.set_xticks(risks.rho.values, [f"{ratio:.2g}" for ratio in risks.rho.values])
    axes.minorticks_off()
    axes.set_yticks(np.arange(0.0, 1.01, 0.2))
    axes.legend(ncols=3, fontsize="small", loc="upper center")


def _dimensions(axes: Axes, shares: Dataset) -> None:
    d = shares.d.values
    for regime, fitted in rates(shares).items():
        line, colour = shares.sel(regime=regime), LOOKS[regime]["color"]
        x = d.astype(np.float64)
        centre = float(np.exp(np.mean(np.log(line.learnt.values / x**fitted))))
        words = f"{regime}: d to the power {fitted:.2f}".replace("-", "−")
        axes.plot(x, centre * x**fitted, color=colour, linewidth=1.2, label=words)
        axes.errorbar(x, line.learnt, line.stderr, marker="o", linestyle="", color=colour)
        bound = [cubic_share(_parameters(regime, int(size)), int(size)) for size in d]
        axes.plot(x, bound, color=colour, linestyle=":", label=f"{regime}: at most")
    axes.set(yscale="log", xlabel="d = N", ylabel="share of h₃ that is learnt")
    axes.set_title("What lazy networks learn of a cubic function")
    ticks_at(axes, d)
    axes.legend()


def _parameters(regime: str, d: int) -> int:
    """Return how many parameters N = d neurons have in a lazy regime."""
    return d if regime == "RF" else d * d


plot = frames((11.0, 4.6), (_widths, "widths", "trained"), (_dimensions, "dimensions"))
"""The risk of three degrees against N/d, and the share of the third that is learnt against d."""


def verdict(data: Panels) -> list[str]:
    """Return the exponents and the three risks at N = d, and whether lazy and trained networks are apart.

    A share must fall, at three standard errors of its exponent, and lie below what the number of parameters allows.
    """
    shares = data["dimensions"]
    measured, uncertain = rates(shares), errors(shares)
    lines = [f"{'':>4}{'exponent of d in the share of h₃ learnt at N = d':>52}{'share':>10}{'at most':>10}"]
    fine = True
    for regime, rate in measured.items():
        learnt, error = (shares[name].sel(regime=regime).values for name in ("learnt", "stderr"))
        bounds = np.array([cubic_share(_parameters(regime, int(d)), int(d)) for d in shares.d.values])
        cell = f"{rate:.2f} ± {uncertain[regime]:.2f}"
        lines.append(f"{regime:>4}{cell:>52}{learnt[-1]:>10.2g}{bounds[-1]:>10.2g}")
        fine = fine and rate + 3.0 * uncertain[regime] < 0.0 and bool(np.all(learnt <= bounds + 3.0 * error))
    trained = data["trained"]
    risks = {regime: float(trained.risk.sel(regime=regime)) for regime in trained.regime.values.tolist()}
    d, n = trained.attrs["d"], trained.attrs["samples"]
    told = ", ".join(f"{regime} {risk:.3f}" for regime, risk in risks.items())
    lines.append(f"share at d = {shares.d.values[-1]}; risk on h₃ at d = N = {d}: {told}, NN from {n:,} samples")
    fine = fine and min(risks["RF"], risks["NT"]) >= _LOST and risks["NN"] <= _LEARNT
    words = "Lazy networks lose the cubic function as d grows, and the trained one learns it."
    return [*lines, answer(fine, words, "Lazy and trained networks are NOT told apart by the cubic function.")]


_TITLE = "Separation: a cubic function of one direction, lost by lazy networks"
_FAULTS = (wrong_rows("a lazy network that learns the cubic function", data, "risk", lambda k, risk: 0.7 * risk),)
EXPERIMENT = Experiment("separation", _TITLE, PRESETS, work, data, plot, verdict, place=17, faults=_FAULTS)

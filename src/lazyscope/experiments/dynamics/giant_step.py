"""One giant step on a target of degree 3: at n ~ d it learns what no kernel learns before n ~ d³ (Ba et al. 2022).

The target is he₁ + he₃ of one direction, half of its energy linear. Dots: a step on half of n samples and ridge
regression on the other half; crosses: the same step, then the best second layer there is, without samples; the line is
kernel ridge regression on all n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyscope.evidence.run import Run
from lazyscope.experiments.frame import Experiment, Preset, Row, answer, averaged, dataset, wrong_work
from lazyscope.experiments.frame.drawing import frames
from lazyscope.experiments.frame.draws import attributes
from lazyscope.experiments.frame.types import Axes, Dataset, Panels
from lazyscope.problems import MultiIndex
from lazyscope.regimes import GiantStep, RandomFeatures
from lazyscope.runs.pictures import LOOKS, RISK

LINK, SIGMA = "he1+he3", "erf2"
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
_KERNELS = ("erf2", "sin")
_FAR, _LATE = 3.0, 16.0  # standard errors that a dot must be below the best kernel, from n = 16d on
_STEP = LOOKS["RF, optimal weights"]["color"]
_CROSS: dict[str, Any] = {"marker": "x", "markersize": 7.0, "markeredgewidth": 1.8, "markeredgecolor": _STEP}


@dataclass(frozen=True)
class GiantStepPreset(Preset):
    """d, N, n/d of step and fit together, the sizes of the step, and draws of each."""

    d: int
    width: int
    ratios: tuple[float, ...] = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
    steps: tuple[float, ...] = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
    step: float = 2.0
    at: float = 8.0
    draws: int = 4

    @property
    def problem(self) -> MultiIndex:
        """Half linear, half of degree 3."""
        return MultiIndex(self.d, LINK)


PRESETS = {
    "quick": GiantStepPreset("half a minute", 60, 200),
    "paper": GiantStepPreset("five minutes", 150, 600, draws=6),
}


def _exact(preset: GiantStepPreset, step: float, n: int) -> list[Run]:
    regime = GiantStep(SIGMA, step, n)
    return [Run("exact", preset.problem, regime, {"width": (preset.width,)}, number=k) for k in range(preset.draws)]


def _simulated(preset: GiantStepPreset, n: int) -> list[Run]:
    sizes = {"width": (preset.width,), "samples": (n,), "ridge": _RIDGES}
    regime = GiantStep(SIGMA, preset.step, n)
    return [Run("simulate", preset.problem, regime, sizes, number=k) for k in range(preset.draws)]


def work(preset: GiantStepPreset) -> list[Run]:
    """Return the runs: exact and simulated against n, then exact against the size of the step."""
    halves = [round(0.5 * ratio * preset.d) for ratio in preset.ratios]
    runs = [run for n in halves for run in (*_exact(preset, preset.step, n), *_simulated(preset, n))]
    return runs + [run for step in preset.steps for run in _exact(preset, step, round(preset.at * preset.d))]


def data(preset: GiantStepPreset, rows: Sequence[Row]) -> dict[str, Dataset]:
    """Return risks against n/d, beside the kernels' in theory at their best ridge, and against the size of the step."""
    k, pairs = preset.draws, len(preset.ratios)
    exact, simulated = np.empty((pairs, k)), np.empty((pairs, len(_RIDGES), k))
    for i in range(pairs):
        here = rows[2 * k * i : 2 * k * (i + 1)]
        exact[i] = [float(row["risk"]) for row in here[:k]]
        simulated[i] = np.stack([row["risk"] for row in here[k:]], axis=-1)
    best = simulated.mean(axis=2).argmin(axis=1)  # one ridge for all draws
    chosen = simulated[np.arange(pairs), best]
    line = np.geomspace(0.5 * preset.ratios[0], 2.0 * preset.ratios[-1], 25)
    kernel = np.min([_kernel(preset, sigma, line * preset.d) for sigma in _KERNELS], axis=0)
    at = np.min([_kernel(preset, sigma, np.array(preset.ratios) * preset.d) for sigma in _KERNELS], axis=0)
    risk, aligned = (
        np.array([float(row[name]) for row in rows[2 * k * pairs :]]).reshape(len(preset.steps), k)
        for name in ("risk", "aligned")
    )
    about = attributes(preset, "problem", "d", "width", "step", "at")
    about |= {"floor": float(1.0 - preset.problem.energies[1] / preset.problem.energy), "citations": "ba2022onestep"}
    samples = {
        **averaged("simulate", "ratio", chosen),
        "ridge": ("ratio", np.array(_RIDGES)[best]),
        **averaged("exact", "ratio", exact),
        "kernel": ("ratio", at),
        "kernel_line": ("line", kernel),
    }
    steps = {**averaged("exact", "step", risk), "aligned": ("step", aligned.mean(axis=-1))}
    return {
        "samples": dataset(samples, {"ratio": list(preset.ratios), "line": line}, about),
        "steps": dataset(steps, {"step": list(preset.steps)}, about),
    }


def _kernel(preset: GiantStepPreset, sigma: str, n: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The risk of kernel ridge regression, N = ∞, at the best of many ridges."""
    sizes = {"width": (np.inf,), "samples": tuple(n.tolist()), "ridge": tuple(np.geomspace(1e-6, 10.0, 15).tolist())}
    risk = Run("limit", preset.problem, RandomFeatures(sigma), sizes, "ridge").compute()["risk"]
    return np.asarray(risk[0].min(axis=1))


def _against_samples(axes: Axes, panel: Dataset) -> None:
    axes.plot(panel.line, panel.kernel_line, color=LOOKS["RF"]["color"], label="best kernel, N = ∞ (theory)")
    axes.errorbar(panel.ratio, panel.simulate, panel.simulate_stderr, color=_STEP, linestyle="", marker="s",
                  label=f"step {panel.attrs['step']:g} on n/2 samples, then ridge on n/2")  # fmt: skip
    axes.errorbar(panel.ratio, panel.exact, panel.exact_stderr, color=_STEP, linestyle="", **_CROSS,
                  label="the same step, best second layer (exact)")  # fmt: skip
    axes.axhline(panel.attrs["floor"], color="#888888", linestyle=(0, (4, 3)), linewidth=1.0)
    axes.annotate("best linear function: every kernel at n ~ d", (0.98, panel.attrs["floor"] - 0.05),
                  xycoords=("axes fraction", "data"), ha="right", color="#555555", fontsize=9)  # fmt: skip
    axes.set(xscale="log", xlabel="n/d, samples per input", ylabel=RISK, ylim=(0.0, 1.1))
    axes.set_title(f"he$_1$ + he$_3$ of one direction, d = {panel.attrs['d']}, N = {panel.attrs['width']}")
    axes.legend(loc="lower left")


def _against_steps(axes: Axes, panel: Dataset) -> None:
    axes.errorbar(panel.step, panel.exact, panel.exact_stderr, color=_STEP, label="risk (exact)", **_CROSS)
    axes.plot(panel.step, panel.aligned, color="#888888", marker="o", markersize=4.0,
              label="share of the weights along u")  # fmt: skip
    axes.axhline(panel.attrs["floor"], color="#888888", linestyle=(0, (4, 3)), linewidth=1.0)
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set(xlabel="size of the step, η/√N", xlim=(-0.01, 1.2 * float(panel.step[-1])), ylim=(0.0, 1.1))
    axes.set_title(f"A step on {panel.attrs['at']:g}d samples: size is what counts")
    axes.legend(loc="upper left")


plot = frames((11.5, 4.6), (_against_samples, "samples"), (_against_steps, "steps"))
"""The risk against n/d, and against the size of the step."""


def verdict(data: Panels) -> list[str]:
    """Say from which n on one step beats the best kernel, and whether it does so at n ~ d."""
    panel = data["samples"]
    lines = [f"{'n/d':>6}{'step and ridge':>20}{'exact':>18}{'best kernel':>13}"]
    for ratio in panel.ratio.values:
        at = panel.sel(ratio=ratio)
        told = f"{float(at.simulate):.3f} ± {float(at.simulate_stderr):.3f}"
        whole = f"{float(at.exact):.3f} ± {float(at.exact_stderr):.3f}"
        lines.append(f"{ratio:>6g}{told:>20}{whole:>18}{float(at.kernel):>13.3f}")
    late = panel.sel(ratio=panel.ratio >= _LATE)
    below = late.kernel - late.simulate - _FAR * late.simulate_stderr
    wrong = [f"n = {ratio:g}d" for ratio in late.ratio.values[~(below.values > 0.0)]]
    if not (late.simulate.values[-1] + _FAR * late.simulate_stderr.values[-1] < panel.attrs["floor"]):
        wrong.append("the linear floor")
    yes = "One step beats the best kernel from n = 16d on, and in the end every function that is linear."
    return [*lines, answer(not wrong, yes, f"One step is not below the best kernel at {', '.join(wrong)}.")]


_TITLE = "One giant step on a target of degree 3, beside the best kernel (Ba et al. 2022)"
_NO_STEP = wrong_work("a step that is not taken", data, work, lambda preset: replace(preset, step=0.0))
_FAULTS = (replace(_NO_STEP, seen="the linear floor"),)  # in few dimensions kernels are good at every n
EXPERIMENT = Experiment("giant-step", _TITLE, PRESETS, work, data, plot, verdict, place=55, faults=_FAULTS)

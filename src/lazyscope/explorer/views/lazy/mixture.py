"""Mixture: two Gaussian classes that differ in covariance only, Limitations of Lazy Training, §3."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from lazyscope.explorer.views.base import Drawn, Value, View
from lazyscope.explorer.views.calls import Plan
from lazyscope.explorer.views.controls import slider
from lazyscope.explorer.views.lazy import DRAWN, LazyState, Nature, Setting, levels_field, moved, quantiles
from lazyscope.explorer.views.picture import curve
from lazyscope.problems import GaussianMixture
from lazyscope.regimes import Bayes

PAPER = "1,1,1,1.5,1.5,1.5,2,2"
"""Quantiles of the paper's three levels."""


class MixtureState(LazyState):
    """Spectrum of √d Δ and its strength, σ, Γ, and how far the axis goes."""

    levels: str = levels_field(PAPER, "Spectrum of √d Δ")
    strength: float = slider(1.0, 0.1, 1.5, "Strength of Δ", "Multiplies Δ: how far the classes are apart.", step=0.05)


@lru_cache(maxsize=64)
def nature(levels: str, d: int, strength: float) -> Nature:
    """Return the mixture, the same object each time: Σ = I, Δ = strength · levels/√d."""
    drawn = f"ls.GaussianMixture.three_level({d}, seed=0)"
    if not levels and strength == 1.0:
        return Nature(GaussianMixture.three_level(d, 0), (f"problem = {drawn}",), {"d": d, "target_seed": 0})
    before: tuple[str, ...] = ()
    if not levels:
        Delta, source = strength * GaussianMixture.three_level(d, 0).Delta, f"{strength!r} * {drawn}.Delta"
    else:
        if levels.startswith(DRAWN):
            paper = np.sqrt(d) * GaussianMixture.three_level(d, 0).Delta
            values, python = moved(paper, levels.removeprefix(DRAWN), PAPER)
            before, written = (f"drawn = np.sqrt({d}) * {drawn}.Delta", *python), "moved"
        else:
            values, written = quantiles(levels, d)
        Delta, source = strength * values / np.sqrt(d), f"{strength!r} * {written} / np.sqrt({d})"
    python = (*before, f"problem = ls.GaussianMixture({source})")
    return Nature(GaussianMixture(Delta), python, {"delta": "Delta.csv"}).kept_in("Delta.csv", "problem.Delta")


def _nature(state: MixtureState) -> Nature:
    return nature(state.levels, state.d, state.strength)


def lines(state: MixtureState) -> dict[str, Any]:
    """RF, NT and NN, where they have a theorem, and the Bayes floor."""
    setting = Setting(state, _nature(state))
    picture, command, python = setting.draw()
    claim, floor = curve(setting.nature.problem, Bayes(), {})
    ends = [0.0, state.rho_max]
    picture.line("Bayes", "bayes", ends, [float(floor["risk"][0])] * 2, claim, dash="dot")
    python += "print('Bayes', float(ls.bayes(problem).risk))\n"
    return picture.answer("mixture", state, command, python)


def plan(state: MixtureState, fidelity: Drawn) -> Plan:
    """Return the calls that make the dots."""
    return Setting(state, _nature(state)).plan(fidelity)


PRESETS: dict[str, dict[str, Value]] = {
    "Paper: three levels": {"levels": "", "strength": 1.0},
    "Flat": {"levels": "1.5,1.5,1.5,1.5,1.5,1.5,1.5,1.5", "strength": 1.0},
    "Uneven": {"levels": "0,0,0,0.5,0.5,1,2,3", "strength": 1.0},
    "Spike": {"levels": "0,0,0,0,0,0,0,3", "strength": 1.0},
    "Both signs": {"levels": "-2,-1.5,-1,-0.5,0.5,1,1.5,2", "strength": 1.0},
}

VIEW = View(
    name="mixture",
    title="Mixture",
    text="Two classes of Gaussian inputs have the same mean and differ in their covariances Σ ∓ Δ: only a quadratic "
    "feature can tell them apart. No method gets below the dotted Bayes line; how close RF, NT and NN come depends on "
    "how evenly Δ is spread over the directions.",
    theorem="Theorems 4–6 of Ghorbani, Mei, Misiakiewicz and Montanari (2019): N, d → ∞ with N/d fixed, ‖Δ‖ ~ 1/√d.",
    state=MixtureState,
    lines=lines,
    plan=plan,
    fidelities=("exact", "simulate"),
    presets=PRESETS,
    export={
        "levels": [str(preset["levels"]) for preset in PRESETS.values()],
        "activation": ["square", "relu", "abs", "gelu"],
        "gamma": [0.0, 0.5, 1.0],
        "strength": [0.25, 0.5, 0.75, 1.0, 1.25, 1.5],
    },
)

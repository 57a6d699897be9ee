"""Lazy or not: the quadratic target of Limitations of Lazy Training, §2."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lazyscope.explorer.views.base import Drawn, View
from lazyscope.explorer.views.calls import Plan
from lazyscope.explorer.views.lazy import DRAWN, LazyState, Nature, Setting, levels_field, moved, quantiles
from lazyscope.problems import QuadraticTarget

_SEED = 100  # of the paper's target
PAPER = "0.05,0.2,0.35,0.6,0.85,1.15,1.65,2.75"
"""Quantiles of Exp(1), in steps of the sliders."""


class QuadraticState(LazyState):
    """Spectrum of B, σ, Γ, and how far the axis goes."""

    levels: str = levels_field(PAPER, "Spectrum of B")


@lru_cache(maxsize=64)
def nature(levels: str, d: int) -> Nature:
    """Return the target, the same object each time: its spectrum is computed once."""
    if not levels:
        target = QuadraticTarget.exponential(d, _SEED)
        drawn = f"problem = ls.QuadraticTarget.exponential({d}, seed={_SEED})"
        return Nature(target, (drawn,), {"d": d, "target_seed": _SEED})
    if levels.startswith(DRAWN):
        values, lines = moved(QuadraticTarget.exponential(d, _SEED).B, levels.removeprefix(DRAWN), PAPER)
        python = (f"drawn = ls.QuadraticTarget.exponential({d}, seed={_SEED}).B", *lines, _source("moved"))
    else:
        values, written = quantiles(levels, d)
        python = (_source(written),)
    return Nature(QuadraticTarget(values), python, {"B": "B.csv"}).kept_in("B.csv", "problem.B")


def _source(B: str) -> str:
    return f"problem = ls.QuadraticTarget({B})"


def lines(state: QuadraticState) -> dict[str, Any]:
    """RF, NT and NN, where they have a theorem."""
    picture, command, python = Setting(state, nature(state.levels, state.d)).draw()
    return picture.answer("quadratic", state, command, python)


def plan(state: QuadraticState, fidelity: Drawn) -> Plan:
    """Return the calls that make the dots."""
    return Setting(state, nature(state.levels, state.d)).plan(fidelity)


PRESETS = {
    "Paper: Exp(1)": {"levels": ""},
    "Flat": {"levels": "1,1,1,1,1,1,1,1"},
    "Power law": {"levels": "0.1,0.1,0.15,0.2,0.3,0.5,1,3"},
    "Two levels": {"levels": "0,0,0,0,2,2,2,2"},
    "Spike": {"levels": "0,0,0,0,0,0,0,3"},
    "Both signs": {"levels": "-2,-1.5,-1,-0.5,0.5,1,1.5,2"},
}

VIEW = View(
    name="quadratic",
    title="Lazy or not",
    text="A network of N neurons learns a quadratic function y = b₀ + ⟨x, Bx⟩ of d Gaussian inputs: its last layer "
    "alone (RF), its linearisation (NT), or all of it (NN). With a flat B the tangent model does as well as the "
    "network; the more uneven the spectrum of B, the further NN gets below both lazy lines.",
    theorem="Theorems 1–3 of Ghorbani, Mei, Misiakiewicz and Montanari (2019): N, d → ∞ with N/d fixed.",
    state=QuadraticState,
    lines=lines,
    plan=plan,
    fidelities=("exact", "simulate"),
    presets=PRESETS,
    export={
        "levels": [preset["levels"] for preset in PRESETS.values()],
        "activation": ["square", "relu", "abs", "gelu", "tanh"],
        "gamma": [0.0, 0.25, 0.5, 0.75, 1.0],
        "rho_max": [2.0, 10.0],
    },
)

"""The papers' figures: one file each, a plan and a plot; what they share is beside them.

Figures 1 to 3 and their kin: `design` has the nouns of a plan, `compute` turns it into a sweep and `collect` the sweep
into labelled numbers, which `drawing` shows, `tables` judges and `output` writes. `references` are shipped runs of the
paper's protocol. Every other figure is an `experiment`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray as xr
    from matplotlib.figure import Figure

    from lazyscope.experiments.frame.design import Panel, Preset

FIGURES = {
    "fig1": "Quadratic target, σ = u² (Limitations of Lazy Training, Figure 1)",
    "fig2": "Mixture of two Gaussians, σ = u² (the same, Figure 2)",
    "fig3": "Quadratic target, ReLU (poster of the same, Figure 3)",
    "fig-nondiagonal": "Mixture with a non-diagonal Δ, whose best Γ is not diagonal either (the same, appendix)",
    "fig-activations": "Quadratic target, other activations, and one that cannot see it (the same, appendix)",
    "double-descent": "Ridge regression on random features: test error, bias, variance, training (Mei & Montanari)",
    "ridge-snr": "The best ridge at high and at low signal-to-noise ratio (the same)",
    "wide-ridge": "At a fixed ridge the widest network is the best (the same)",
    "equivalence": "ReLU features and noisy linear ones, in two dimensions (the same)",
    "digits": "Double descent on real images: random features and a trained network on digits",
    "coupling": "Taylor pieces and risks of randomised networks against the width (Beyond Linearization, §3)",
    "higher-order": "The k-th Taylor piece, extracted by randomisation, k = 2, 3, 4 (the same, §6)",
    "landscape": "Both sides of Lemma 1 and Theorem 2 against the width, and descents off the saddle (the same, §4)",
    "expressivity": "Quadratic models that express monomials and 2-XOR: errors and norms (the same, Theorem 7)",
    "sample-complexity": "Samples needed against d: kernels, the quadratic model and networks (the same, §5.2)",
    "max-margin": "Error and margin of the max-margin classifier on ReLU features (Thermodynamic limits, Comparison)",
    "margin-equivalence": "Nonlinear against noisy linear features at the largest margin (the same, Conjecture)",
    "separability": "The probability that data are separable, around the threshold N/n",
    "flow": "Risk along training: gradient flow, and what finite steps add to it (Limitations, Figure 1, right)",
    "staircase": "Eigendirections learned one after another, the largest first, from small weights (the same, §2.3)",
    "lazy-to-rich": "Risk and laziness against the output scale α, from NT to NN (Thermodynamic limits, Lazy training)",
    "mean-field": "Particles against the best measure, its duality gap, convexity (the same, Mean field)",
    "interpolation": "The smallest RF, NT and NN that fit n random labels, and what is left below (the same)",
}

_FOLDERS = {
    name: folder
    for folder, names in {
        "lazy": (
            "fig1",
            "fig2",
            "fig3",
            "fig-nondiagonal",
            "fig-activations",
        ),
        "ridge": (
            "double-descent",
            "ridge-snr",
            "wide-ridge",
            "equivalence",
            "digits",
        ),
        "beyond": (
            "coupling",
            "higher-order",
            "landscape",
            "expressivity",
            "sample-complexity",
        ),
        "margin": (
            "max-margin",
            "margin-equivalence",
            "separability",
        ),
        "dynamics": (
            "flow",
            "staircase",
        ),
        "wide": (
            "lazy-to-rich",
            "mean-field",
            "interpolation",
        ),
    }.items()
    for name in names
}


class FigureModule(Protocol):
    """What a file of this folder that draws a figure holds."""

    PRESETS: Mapping[str, Preset]

    @staticmethod
    def panels(preset: Preset) -> tuple[Panel, ...]:
        """Return the plan: what each panel shows."""

    @staticmethod
    def plot(data: Mapping[str, xr.Dataset]) -> Figure:
        """Return the picture of the numbers, given panel by panel."""


def load(name: str | None) -> Any:
    """Return the module of one figure: a `FigureModule`, or an `experiment.Experiment`.

    >>> load("fig1").__name__
    'lazyscope.experiments.lazy.fig1'
    >>> load("fig9")
    Traceback (most recent call last):
    lazyscope.errors.InvalidParameter: The NAME parameter of lazyscope figure must be fig1, fig2, fig3, ...
    """
    if name not in FIGURES:
        *others, last = FIGURES
        must = f"be {', '.join(others)} or {last}"
        raise InvalidParameter.of("lazyscope figure", "NAME", must, "none" if name is None else repr(name))
    return importlib.import_module(f"lazyscope.experiments.{_FOLDERS[name]}.{name.replace('-', '_')}")


def load_all() -> None:
    """Import the module of every figure, so that all its kinds of work are known."""
    for name in FIGURES:
        load(name)

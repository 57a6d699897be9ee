"""The appendix's mixture of two Gaussians with a non-diagonal Δ: Toeplitz, Δ_ij ∝ 0.6^|i−j|, with ‖Δ‖_F as in Figure 2.

To rotate the Δ of Figure 2 would show nothing. With Σ = I, the mean law of x, the isotropic weights of RF and NT and
the start of NN are the same in every basis: a risk depends on the spectrum of Δ alone. This Δ has another spectrum,
whose ends are (1 + 0.6)²/(1 − 0.6)² = 16 times apart instead of 2, which widens the gaps between the regimes. And its
best Γ ∝ Δ cannot be guessed coordinate by coordinate: all have the same variance, so that of all diagonal Γ the
isotropic one is best.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lazyscope.experiments.lazy import fig2
from lazyscope.experiments.lazy.design import Panel, PanelsPreset, experiment_of, regimes
from lazyscope.problems import GaussianMixture

_DECAY = 0.6
_PAPER = replace(fig2.PRESETS["paper"], cost="half an hour for NN at N = 4500, the rest from the reference runs")


def toeplitz(d: int) -> GaussianMixture:
    """Return the mixture of this figure.

    >>> toeplitz(100).Delta[0, :3].round(4)
    array([0.111 , 0.0666, 0.0399])
    """
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    shape = _DECAY**apart
    norm = GaussianMixture.three_level(d, seed=0).information
    return GaussianMixture(shape * np.sqrt(norm / np.sum(shape**2)))


def panels(preset: PanelsPreset) -> tuple[Panel, ...]:
    """Return the one panel."""
    mixture = toeplitz(preset.d)
    title = "Mixture of two Gaussians, Δ Toeplitz, σ(u) = u²"
    return (Panel("nondiagonal", title, mixture, regimes(mixture, preset), floor=True),)


_TITLE = "Mixture with a non-diagonal Δ, whose best Γ is not diagonal either (the same, appendix)"
EXPERIMENT = experiment_of("fig-nondiagonal", _TITLE, 14, fig2.PRESETS | {"paper": _PAPER}, panels, lowest=0.35)

"""Figure 2 of Limitations of Lazy Training: mixture of two Gaussians, σ = u².

The mixture is the paper's, Δ diagonal with entries uniform on {2, 1.5, 1}/√d.
"""

from __future__ import annotations

from lazyscope.experiments.lazy.design import Dots, Panel, PanelsPreset, experiment_of, regimes
from lazyscope.problems import GaussianMixture
from lazyscope.protocols import SGD

_WIDTHS = (10, 25, 50, 100, 450)
PRESETS = {
    "quick": PanelsPreset(
        d=100,
        fitted=Dots((10, 40, 100, 450, 1000), 10, samples=100_000),
        tangent=Dots(_WIDTHS, 4, protocol=SGD(steps=20_000, batch=50, step_sizes=(0.002, 0.02))),
        trained=Dots(_WIDTHS, 4, protocol=SGD(steps=20_000, batch=50, step_sizes=(0.002, 0.005))),
        cost="four minutes on two cores",
    ),
    "paper": PanelsPreset.thrifty(
        "seconds from the reference runs; without them about four hours, a third of it for NN at N = 4500",
        trained=(0.002,),
        best={45: 0.002, 225: 0.002, 450: 0.002},
    ),
}


def panels(preset: PanelsPreset) -> tuple[Panel, ...]:
    """Return the one panel."""
    mixture = GaussianMixture.three_level(preset.d, seed=0)
    title = "Mixture of two Gaussians, σ(u) = u²"
    return (Panel("mixture", title, mixture, regimes(mixture, preset), floor=True),)


_TITLE = "Mixture of two Gaussians, σ = u² (the same, Figure 2)"
EXPERIMENT = experiment_of("fig2", _TITLE, 12, PRESETS, panels, lowest=0.35)

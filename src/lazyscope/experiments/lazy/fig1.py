"""Figure 1 of Limitations of Lazy Training: quadratic target, σ = u².

The target is the paper's, B diagonal with Exp(1) entries. `quick` keeps the spectrum's law and shrinks d.
"""

from __future__ import annotations

from lazyscope.experiments.lazy.design import Dots, Panel, PanelsPreset, experiment_of, regimes
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD

_WIDTHS = (10, 25, 50, 100, 1000)
PRESETS = {
    "quick": PanelsPreset(
        d=100,
        fitted=Dots((10, 40, 100, 450, 1000), 10, samples=100_000),
        tangent=Dots(_WIDTHS, 4, protocol=SGD(steps=20_000, batch=50, step_sizes=(0.002, 0.005, 0.02))),
        trained=Dots(_WIDTHS, 4, protocol=SGD(steps=20_000, batch=50, step_sizes=(0.002, 0.005))),
        cost="two minutes on two cores",
    ),
    "paper": PanelsPreset.paper("about three hours, a quarter of one with the reference runs"),
}


def panels(preset: PanelsPreset) -> tuple[Panel, ...]:
    """Return the one panel."""
    target = QuadraticTarget.exponential(preset.d, seed=100)
    return (Panel("quadratic", "Quadratic target, σ(u) = u²", target, regimes(target, preset)),)


_TITLE = "Quadratic target, σ = u² (Limitations of Lazy Training, Figure 1)"
EXPERIMENT = experiment_of("fig1", _TITLE, 11, PRESETS, panels, lowest=0.0)

"""Figure 3 of the poster of Limitations of Lazy Training: quadratic target, ReLU.

Theorem 1 covers RF with any activation, and gives its line. NT has no theorem here: its crosses are the exact risk for
drawn weights. Nor has NN: its crosses are where descent on the exact population risk ended, an upper bound of the best.
"""

from __future__ import annotations

from lazyscope.experiments.lazy.design import Dots, Panel, PanelsPreset, experiment_of, regimes
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD

_WIDTHS = (6, 15, 30, 60, 120)
PRESETS = {
    "quick": PanelsPreset(
        d=60,
        fitted=Dots((6, 24, 60, 270, 600), 10, samples=100_000),
        tangent=Dots(_WIDTHS, 4, protocol=SGD(steps=20_000, batch=50, step_sizes=(0.01, 0.03, 0.1), test=50_000)),
        trained=Dots(_WIDTHS, 4, protocol=SGD(steps=20_000, batch=50, step_sizes=(0.01, 0.03), test=50_000)),
        cost="seven minutes on two cores",
        restarts=2,
    ),
    "paper": PanelsPreset.thrifty(
        "seconds from the reference runs; without them about five hours",
        trained=(0.01,),
        tangent=(0.03,),
        best={45: 0.005, 225: 0.005},
    ),
}


def panels(preset: PanelsPreset) -> tuple[Panel, ...]:
    """Return the one panel."""
    target = QuadraticTarget.exponential(preset.d, seed=100)
    return (Panel("relu", "Quadratic target, ReLU", target, regimes(target, preset, "relu", optimal=False)),)


_TITLE = "Quadratic target, ReLU (poster of the same, Figure 3)"
EXPERIMENT = experiment_of("fig3", _TITLE, 13, PRESETS, panels, lowest=0.0)

"""The appendix's other activations on the quadratic target: the gap between NT and NN is there with each of them.

What an activation must have is a second Hermite coefficient, λ₂ = E[σ(g)(g² − 1)] ≠ 0. That of tanh is zero, and more:
tanh is odd, so that RF, NT (σ′ even, times ⟨a, x⟩) and NN are odd functions plus a constant, orthogonal to the target.
Every width, trained or not, has risk 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lazyscope.activations import Activation
from lazyscope.figures import drawing
from lazyscope.figures.design import Dots, Panel, Preset, regimes
from lazyscope.problems import QuadraticTarget
from lazyscope.simulate.protocol import SGD

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

ACTIVATIONS = ("abs", "relu2", "gelu", "softplus", "cos", "tanh")
_WIDTHS = (4, 20, 40, 80)
PRESETS = {
    "quick": Preset(
        d=40,
        fitted=Dots((4, 20, 40, 180), 4, samples=40_000),
        tangent=Dots(_WIDTHS, 3, protocol=SGD(steps=10_000, batch=50, step_sizes=(0.03, 0.1), test=50_000)),
        trained=Dots(_WIDTHS, 3, protocol=SGD(steps=10_000, batch=50, step_sizes=(0.03, 0.1), test=50_000)),
        cost="three minutes",
        widest=2.0,
    ),
    "paper": Preset.paper("four days on two cores", widths=(45, 225, 450)),
}


def panels(preset: Preset) -> tuple[Panel, ...]:
    """Return a panel an activation."""
    target = QuadraticTarget.exponential(preset.d, seed=100)
    return tuple(
        Panel(name, f"σ = {Activation(name).name}", target, regimes(target, preset, name, optimal=False))
        for name in ACTIVATIONS
    )


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw risk against N/d, a frame an activation."""
    return drawing.small_multiples(data, columns=3, lowest=0.0)

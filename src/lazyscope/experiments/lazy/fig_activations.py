"""The appendix's other activations on the quadratic target: the gap between NT and NN is there with each of them.

What an activation must have is a second Hermite coefficient, λ₂ = E[σ(g)(g² − 1)] ≠ 0. That of tanh is zero, and more:
tanh is odd, so that RF, NT (σ′ even, times ⟨a, x⟩) and NN are odd functions plus a constant, orthogonal to the target.
Every width, trained or not, has risk 1.

NN has crosses where σ is homogeneous, and where it is odd. With the other smooth ones descent on the exact risk does
not settle: weights shrink (cos) or grow (gelu) for hundreds of steps, second layers grow and cancel one another, and
the risk creeps down to where SGD, from weights of order one, does not come with the samples drawn here.
"""

from __future__ import annotations

from dataclasses import replace

from lazyscope.activations import Activation
from lazyscope.activations.named import NAMED
from lazyscope.experiments.lazy.design import Dots, Panel, PanelsPreset, experiment_of, regimes
from lazyscope.problems import QuadraticTarget
from lazyscope.protocols import SGD

# σ ↦ step sizes of NN and of NT in the quick preset: λ₁ and λ₂ set the scale, and one or two near the best save minutes
STEP_SIZES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "abs": ((0.01, 0.03), (0.03, 0.1)),
    "relu2": ((0.01, 0.03), (0.03, 0.1)),
    "gelu": ((0.03,), (0.03, 0.1)),
    "silu": ((0.03,), (0.1, 0.3)),
    "cos": ((0.01,), (0.03, 0.1)),
    "tanh": ((0.01,), (0.01,)),
}
DESCENDED = ("abs", "relu2", "tanh")  # where NN has crosses
_SGD = SGD(steps=10_000, batch=50, test=20_000)
PRESETS = {
    "quick": PanelsPreset(
        d=40,
        fitted=Dots((4, 20, 40, 180), 10, samples=100_000),
        tangent=Dots((4, 20, 40), 3, protocol=_SGD),
        trained=Dots((4, 20, 40), 3, protocol=_SGD),
        cost="three minutes on two cores",
        widest=2.0,
    ),
    "paper": PanelsPreset.thrifty("about five hours", widths=(45, 225, 450)),
}


def panels(preset: PanelsPreset) -> tuple[Panel, ...]:
    """Return one panel for each activation."""
    target = QuadraticTarget.exponential(preset.d, seed=100)
    return tuple(
        Panel(name, title(name), target, regimes(target, _of(preset, name), name, optimal=False)) for name in STEP_SIZES
    )


def title(name: str) -> str:
    """Return an activation with its second Hermite coefficient.

    >>> title("abs")
    'σ(u) = |u|, λ₂ = 0.80'
    >>> title("gelu")
    'gelu, σ(u) = u Φ(u), λ₂ = 0.42'
    """
    second = round(Activation(name).lambda_k(2), 2)
    named = f"{name}, " if name in ("gelu", "silu") else ""
    value = f"{second:.2f}".replace("-", "−") if second else "0: blind to it"
    return f"{named}σ(u) = {NAMED[name].formula}, λ₂ = {value}"


def _of(preset: PanelsPreset, name: str) -> PanelsPreset:
    """Return the preset of one activation; the paper's grid of step sizes serves all."""
    widest = preset.widest if name in DESCENDED else 0.0
    trained, tangent = preset.trained, preset.tangent
    if trained.protocol is not None:
        trained = replace(trained, protocol=replace(trained.protocol, step_sizes=STEP_SIZES[name][0]))
    if tangent.protocol is not None:
        tangent = replace(tangent, protocol=replace(tangent.protocol, step_sizes=STEP_SIZES[name][1]))
    return replace(preset, widest=widest, trained=trained, tangent=tangent)


_TITLE = "Quadratic target, other activations, and one that cannot see it (the same, appendix)"
EXPERIMENT = experiment_of("fig-activations", _TITLE, 15, PRESETS, panels, lowest=0.0)

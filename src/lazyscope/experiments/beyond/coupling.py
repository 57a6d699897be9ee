"""Coupling: sizes of the Taylor pieces, and distances between the risks, against the width (Bai & Lee 2019, §§3, B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lazyscope.evidence.work import Row
from lazyscope.experiments.beyond.coupling_numbers import QUANTITIES, CouplingDraw, assemble
from lazyscope.runs.pictures import LOOKS, style

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _GREEN, _RED = (LOOKS[name]["color"] for name in ("RF", "RF, optimal weights", "NT", "NN"))
_PANELS = {
    "pieces": {"linear_plain": (_ORANGE, "s"), "linear": (_BLUE, "o"), "quadratic": (_RED, "D"), "rest": (_GREEN, "^")},
    "risks": {"risk": (_RED, "D"), "gradient": (_BLUE, "o"), "hessian": (_GREEN, "^")},
}
_SHORT = {
    "linear_plain": "f$^L$ without signs",
    "linear": "f$^L$ under random signs",
    "quadratic": "f$^Q$",
    "rest": "f − f$^L$ − f$^Q$ under signs",
    "risk": "|L − L$^Q$|",
    "gradient": "|⟨∇L − ∇L$^Q$, W⟩|",
    "hessian": "|(∇²L − ∇²L$^Q$)[W⋆, W⋆]|",
}
_TOLERANCE = 0.05  # of an exponent, as fitted over finite widths


@dataclass(frozen=True)
class Size:
    """Widths, initialisations, inputs, pairs of signs."""

    cost: str
    widths: tuple[int, ...]
    draws: int = 4
    samples: int = 32
    signs: int = 8
    d: int = 10


PRESETS = {
    "quick": Size("twenty seconds", (100, 320, 1000, 3200, 10_000)),
    "paper": Size("two minutes on two cores", (100, 320, 1000, 3200, 10_000, 32_000, 100_000), draws=8, signs=16),
}


def work(size: Size) -> list[CouplingDraw]:
    """Return one draw for each width and initialisation."""
    return [
        CouplingDraw(m, size.d, size.samples, size.signs, number=number)
        for m in size.widths
        for number in range(size.draws)
    ]


def data(size: Size, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return sizes and fitted exponents, a panel each for pieces and for risks."""
    whole = assemble(work(size), rows)
    return {panel: whole.sel(quantity=list(shown)) for panel, shown in _PANELS.items()}


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw both panels: dots with standard errors, the lemmas' slopes dashed through the first dot."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(10.4, 4.4))
        left, right = figure.subplots(1, 2)
        for axes, (panel, shown), title in zip(
            (left, right),
            _PANELS.items(),
            ("Taylor pieces, ‖w$_r$‖ = m$^{−1/4}$", "Network against quadratic model"),
            strict=True,
        ):
            for name, (colour, marker) in shown.items():
                _series(axes, data[panel].sel(quantity=name), _SHORT[name], colour, marker)
            axes.set(xscale="log", yscale="log", xlabel="m, neurons", title=title)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1, title="fitted exponent (declared)")
        left.set_ylabel("root mean square")
        right.set_ylabel("distance")
    return figure


def _series(axes: Axes, one: xr.Dataset, name: str, colour: str, marker: str) -> None:
    m, size = one.width.values, one["size"].values
    declared = float(one.bound)
    at_most = "≤ " if str(one.quantity.values) in ("rest", "risk", "gradient", "hessian") else ""
    label = f"{name}: m$^{{{float(one.exponent):+.2f}}}$ ({at_most}{declared:+.2f})".replace("-", "−")
    axes.errorbar(m, size, one.stderr.values, color=colour, marker=marker, linestyle="", label=label)
    axes.plot(m, size[0] * (m / m[0]) ** declared, color=colour, linestyle="--", linewidth=1.0)


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return a table of exponents, and whether each is the declared one, or below it where the lemma is a bound."""
    lines = [f"{'quantity':<42}{'exponent':>16}{'declared':>10}"]
    wrong = []
    for panel, shown in _PANELS.items():
        for name in shown:
            one = data[panel].sel(quantity=name)
            found, error, declared = (float(one[key]) for key in ("exponent", "exponent_stderr", "bound"))
            bound = name in ("rest", "risk", "gradient", "hessian")
            allowed = _TOLERANCE + 2.0 * (0.0 if np.isnan(error) else error)
            if not (found <= declared + allowed and (bound or found >= declared - allowed)):
                wrong.append(QUANTITIES[name][0])
            lines.append(
                f"{QUANTITIES[name][0]:<42}{found:>9.3f} ± {error:.3f}{'≤ ' if bound else '':>4}{declared:>+6.2f}"
            )
    lines.append(
        "Network and quadratic model couple as declared." if not wrong else f"Not as declared: {', '.join(wrong)}."
    )
    return lines

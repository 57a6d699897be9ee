"""Higher order: the k-th Taylor piece alone survives moment-matched randomisation, k = 2, 3, 4 (Bai & Lee 2019, §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lazyscope.evidence.work import Row
from lazyscope.experiments.beyond.higher_order_numbers import HigherOrderDraw, assemble
from lazyscope.runs.pictures import LOOKS, scale_colour, style

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TOLERANCE = 0.05  # of an exponent, as fitted over finite widths


@dataclass(frozen=True)
class Size:
    """Orders, widths, initialisations."""

    cost: str
    widths: tuple[int, ...]
    orders: tuple[int, ...] = (2, 3, 4)
    draws: int = 8
    samples: int = 32
    repeats: int = 64


PRESETS = {
    "quick": Size("twenty seconds", (100, 320, 1000, 3200, 10_000)),
    "paper": Size("two minutes on two cores", (100, 320, 1000, 3200, 10_000, 32_000, 100_000), draws=16),
}


def work(size: Size) -> list[HigherOrderDraw]:
    """Return one draw for each order, width and initialisation."""
    return [draw for k in size.orders for draw in _of(size, k)]


def _of(size: Size, k: int) -> list[HigherOrderDraw]:
    return [
        HigherOrderDraw(k, m, samples=size.samples, repeats=size.repeats, number=number)
        for m in size.widths
        for number in range(size.draws)
    ]


def data(size: Size, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return a panel for each order."""
    each = len(size.widths) * size.draws
    return {f"order-{k}": assemble(_of(size, k), rows[i * each : (i + 1) * each]) for i, k in enumerate(size.orders)}


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw a panel for each order: pieces under randomisation as dots, declared slopes dashed, f⁽¹⁾ plain in grey."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(3.7 * len(data), 5.2))
        rows = np.atleast_1d(figure.subplots(1, len(data)))
        for axes, result in zip(rows, data.values(), strict=True):
            _panel(axes, result)
        rows[0].set_ylabel("root mean square over inputs")
    return figure


def _panel(axes: Axes, result: xr.Dataset) -> None:
    k, m = int(result.attrs["order"]), result.width.values
    plain = result.sel(piece="1")
    grow, grey = (k - 1) / (2 * k), "#888888"
    label = _label("f$^{(1)}$ plain", float(plain.plain_exponent), grow)
    sizes, errors = plain.plain.values, plain.plain_stderr.values
    axes.errorbar(m, sizes, errors, color=grey, marker="s", linestyle="", label=label)
    axes.plot(m, sizes[0] * (m / m[0]) ** grow, color=grey, linestyle="--", linewidth=1.0)
    for j in range(1, k + 1):
        one = result.sel(piece=str(j))
        colour = LOOKS["NN"]["color"] if j == k else scale_colour((j - 1) / max(k - 1, 1))
        size, declared = one.randomized.values, float(one.randomized_declared)
        label = _label(f"f$^{{({j})}}$", float(one.randomized_exponent), declared)
        axes.errorbar(
            m,
            size,
            one.randomized_stderr.values,
            color=colour,
            marker="D" if j == k else "o",
            linestyle="",
            label=label,
        )
        axes.plot(m, size[0] * (m / m[0]) ** declared, color=colour, linestyle="--", linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="m, neurons", title=f"k = {k}, σ = {result.attrs['activation']}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), title="fitted exponent (declared)")


def _label(name: str, found: float, declared: float) -> str:
    return f"{name}: m$^{{{found:+.2f}}}$ ({declared:+.2f})".replace("-", "−")


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return a table of exponents, and whether f⁽ᵏ⁾ is flat, f⁽¹⁾ falls, and the plain f⁽¹⁾ grows, as declared."""
    lines, wrong = [f"{'':<26}{'exponent':>16}{'declared':>10}"], []
    for result in data.values():
        k = int(result.attrs["order"])
        for kind, piece in (("plain", "1"), *(("randomized", str(j)) for j in range(1, k + 1))):
            one = result.sel(piece=piece)
            found, error = float(one[f"{kind}_exponent"]), float(one[f"{kind}_exponent_stderr"])
            declared = float(one[f"{kind}_declared"])
            name = f"k = {k}, f^({piece}), {kind}"
            lines.append(f"{name:<26}{found:>9.3f} ± {error:.3f}{declared:>+10.3f}")
            if not abs(found - declared) <= _TOLERANCE + 2.0 * (0.0 if np.isnan(error) else error):
                wrong.append(name)
    lines.append("The k-th piece alone survives." if not wrong else f"Not as declared: {'; '.join(wrong)}.")
    return lines

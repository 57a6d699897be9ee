"""Expressivity: quadratic models built to be monomials and 2-XOR, errors and norms (Bai & Lee 2019, Theorem 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lazyscope.evidence.work import Row
from lazyscope.experiments.beyond.expressivity_numbers import DELTA, ExpressivityDraw, assemble
from lazyscope.problems import RidgeMonomial, SparseParity
from lazyscope.runs.pictures import LOOKS, style
from lazyscope.training.taylor.construction import express, monomials
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.weights import generator

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#CC79A7", *(LOOKS[name]["color"] for name in ("RF", "RF, optimal weights", "NT", "NN")))
_MARKERS = ("P", "o", "s", "^", "D")
_TOLERANCE = 0.06  # of the exponent −½: means over m/2 neurons with heavy tails, fitted over finite widths


@dataclass(frozen=True)
class Size:
    """Widths, powers p, initialisations."""

    cost: str
    widths: tuple[int, ...]
    powers: tuple[int, ...] = (2, 3, 4)
    draws: int = 6
    samples: int = 200
    d: int = 10


PRESETS = {
    "quick": Size("seconds", (100, 320, 1000, 3200, 10_000)),
    "paper": Size("two minutes", (100, 320, 1000, 3200, 10_000, 32_000, 100_000), draws=20),
}


def _problems(size: Size) -> dict[str, RidgeMonomial | SparseParity]:
    """α makes E(βᵀx)^{2p} = 1 for βᵀx ~ N(0, 1): (2p − 1)!! is its 2p-th moment."""
    some: dict[str, RidgeMonomial | SparseParity] = {"2-XOR": SparseParity(size.d)}
    for p in size.powers:
        some[f"p = {p}"] = RidgeMonomial(size.d, p, alpha=prod(range(1, 2 * p, 2)) ** -0.5)
    return some


def work(size: Size) -> list[ExpressivityDraw]:
    """Return one draw for each target, width and initialisation."""
    return [
        ExpressivityDraw(problem, m, size.samples, number=number)
        for problem in _problems(size).values()
        for m in size.widths
        for number in range(size.draws)
    ]


def data(size: Size, rows: Sequence[Row]) -> dict[str, xr.Dataset]:
    """Return errors and norms over (`target`, `width`), and f^Q of the widest network beside its target."""
    import xarray as xr

    plan, names = work(size), list(_problems(size))
    each = len(size.widths) * size.draws
    parts = [assemble(plan[i * each : (i + 1) * each], rows[i * each : (i + 1) * each]) for i in range(len(names))]
    whole = xr.concat(parts, "target", combine_attrs="drop_conflicts").assign_coords(target=names)
    return {"errors": whole, "functions": _functions(size)}


def _functions(size: Size) -> xr.Dataset:
    """f^Q against t = βᵀx for one network of each power, at inputs that share all but their component along β."""
    import xarray as xr

    t, m = np.linspace(-2.0, 2.0, 81), size.widths[-1]
    powers = [p for p in size.powers if p > 2] or list(size.powers)
    found, wanted = np.empty((2, len(powers), len(t)))
    for i, p in enumerate(powers):
        problem = RidgeMonomial(size.d, p)
        rng = generator(0, p, m)
        model = TaylorModel.symmetric(m, size.d, "relu3", rng, Bx=problem.Bx)
        rest = rng.standard_normal(size.d)
        rest -= (rest @ problem.direction) * problem.direction
        rest /= np.linalg.norm(rest)
        X = t[:, None] * problem.direction + np.sqrt(size.d - t**2)[:, None] * rest
        found[i] = model.piece(2, express(model, monomials(problem), rng), X) / 2.0**p
        wanted[i] = problem.target(X) / 2.0**p
    dims = ("power", "t")
    return xr.Dataset({"found": (dims, found), "wanted": (dims, wanted)}, {"power": powers, "t": t}, {"width": m})


def plot(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draw functions, errors against the width, and norms between their mean and the theorem's bound."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(14.4, 4.6))
        first, second, third = figure.subplots(1, 3)
        _draw_functions(first, data["functions"])
        _draw_errors(second, data["errors"])
        _draw_norms(third, data["errors"])
    return figure


def _draw_functions(axes: Axes, found: xr.Dataset) -> None:
    for i, p in enumerate(found.power.values.tolist()):
        one, colour = found.sel(power=p), _COLOURS[(i + 2) % len(_COLOURS)]
        axes.plot(one.t, one.found, color=colour, label=f"p = {p}")
        axes.plot(one.t, one.wanted, color="#333333", linestyle=(0, (1, 2)), linewidth=1.2)
    axes.set(
        xlabel="t = βᵀx", ylabel="f$^Q$(x)/2$^p$", title=f"f$^Q$ built for t$^p$ (dotted), m = {found.attrs['width']:,}"
    )
    axes.legend(loc="lower right")


def _draw_errors(axes: Axes, found: xr.Dataset) -> None:
    for i, name in enumerate(found.target.values.tolist()):
        one, colour, marker = found.sel(target=name), _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]
        m, error = one.width.values, one.error.values
        exponent = f"{float(one.exponent):.2f}".replace("-", "−")
        label = f"{name}: m$^{{{exponent}}}$"
        axes.errorbar(m, error, one.error_stderr.values, color=colour, marker=marker, linestyle="", label=label)
        middle = np.exp(np.mean(np.log(error * np.sqrt(m))))
        axes.plot(m, middle * m**-0.5, color=colour, linestyle="--", linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="m, neurons", ylabel="error / size of the target")
    axes.set_title("Error of W⋆; dashed: m$^{−1/2}$")
    axes.legend(loc="lower left", ncols=2)


def _draw_norms(axes: Axes, found: xr.Dataset) -> None:
    names = found.target.values.tolist()
    x, one = np.arange(len(names)), found.isel(width=-1)
    axes.plot(x, found.norm_bound, color="#333333", marker="_", markersize=22, markeredgewidth=1.6, linestyle="",
              markeredgecolor="#333333", label=f"bound of Theorem 7, δ = {DELTA:g}")  # fmt: skip
    axes.plot(x, found.expected_norm, color=_COLOURS[1], marker="_", markersize=22, markeredgewidth=1.6,
              markeredgecolor=_COLOURS[1], linestyle="", label="closed form")  # fmt: skip
    axes.errorbar(x, one.norm, one.norm_stderr.values, color=_COLOURS[4], marker="D", linestyle="",
                  label=f"W⋆ at m = {int(one.width):,}")  # fmt: skip
    axes.set(yscale="log", ylabel="‖W⋆‖$^4_{2,4}$", title="Norm of W⋆")
    axes.set_xticks(x, names)
    axes.set_ylim(top=8.0 * float(found.norm_bound.max()))  # room for the legend
    axes.legend(loc="upper center")


def verdict(data: Mapping[str, xr.Dataset]) -> list[str]:
    """Return errors, exponents and norms; say whether errors fall like m^−½ and norms keep the bound."""
    found: Any = data["errors"]
    lines = [f"{'target':<8}{'error, widest':>14}{'exponent':>16}{'norm⁴':>10}{'closed form':>13}{'bound':>10}"]
    wrong = []
    for name in found.target.values.tolist():
        one = found.sel(target=name)
        slope, spread, norm = float(one.exponent), float(one.exponent_stderr), float(one.norm[-1])
        lines.append(
            f"{name:<8}{float(one.error[-1]):>14.4f}{slope:>9.3f} ± {spread:.3f}{norm:>11.4g}"
            f"{float(one.expected_norm):>12.4g}{float(one.norm_bound):>11.4g}"
        )
        if abs(slope + 0.5) > _TOLERANCE + 2 * spread or np.any(one.norm > one.norm_bound):
            wrong.append(name)
    told = "Errors fall like m^−1/2, and every norm keeps the bound of Theorem 7."
    return [*lines, told if not wrong else f"Not as declared: {', '.join(wrong)}."]

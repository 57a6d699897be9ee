"""The report on a network: the verdict, what was seen at each step, the layers, the rivals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lazyscope.lenses import page
from lazyscope.lenses.data.pictures import svg
from lazyscope.lenses.network.numbers import MEANING
from lazyscope.lenses.network.rivals import NAMES
from lazyscope.runs import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lazyscope.lenses.network.lens import Look, NetworkLens


def network_page(lens: NetworkLens) -> str:
    """Return the report as one HTML page."""
    from lazyscope import __version__

    rows, outputs = lens.start_values.shape
    below = f"{len(lens.start):,} parameters, {rows:,} inputs, {outputs} output{'s' * (outputs != 1)}, {lens.loss} loss"
    parts = [page.heading("lazyscope: how lazily was this network trained?", below)]
    parts.append(page.paragraph(lens.verdict, "verdict"))
    parts.append(page.section("Along training", *_along(lens)))
    parts.append(page.section("Layers", _layers(lens)))
    if lens.trained:
        parts.append(page.section("Taylor models, trained on the same data", *_rivals(lens)))
    words = [f"{name}: {text}" for name, text in MEANING.items()]
    parts.append(page.section("What the numbers mean", page.items(words)))
    return page.page("lazyscope network lens", parts, f"lazyscope {__version__}.")


def _along(lens: NetworkLens) -> list[str]:
    header = ["step", "loss", "error", "laziness", "order 1", "order 2", "order 3"][: 4 + lens.orders]
    rows = [
        [
            f"{look.step:g}", f"{look.loss:.4g}", f"{look.error:.3f}", _number(look.laziness),
            *(_number(missed) for missed in look.taylor[:3]), _number(look.change), _number(look.alignment),
        ]
        for look in _some(lens)
    ]  # fmt: skip
    table = page.table([*header, "kernel change", "alignment"], rows)
    if len(lens.looks) < 3:
        return [table]
    return [
        table,
        page.figure(svg(_curves(lens), "network"), "Laziness, Taylor errors and the tangent kernel along training"),
    ]


def _number(value: float) -> str:
    return "—" if np.isnan(value) else f"{value:.3f}"


def _some(lens: NetworkLens) -> list[Look]:
    """At most a dozen looks, the first and the last among them."""
    chosen = np.unique(np.linspace(0, len(lens.looks) - 1, min(12, len(lens.looks))).round().astype(int))
    return [lens.looks[i] for i in chosen]


def _curves(lens: NetworkLens) -> Figure:

    steps = [look.step for look in lens.looks[1:]]
    lines = {
        "laziness": [look.laziness for look in lens.looks[1:]],
        "missed by the linearisation": [look.taylor[0] for look in lens.looks[1:]],
        "missed at order 2": [look.taylor[1] for look in lens.looks[1:]] if lens.orders > 1 else [],
        "turn of the tangent kernel (1 − cosine)": [look.drift for look in lens.looks[1:]],
        "alignment with the labels": [look.alignment for look in lens.looks[1:]],
    }
    with pictures.canvas(6.4, 3.8) as figure:
        axes = figure.add_subplot()
        for k, (name, values) in enumerate((name, values) for name, values in lines.items() if values):
            axes.plot(steps, values, label=name, color=pictures.scale_colour(k / 4), marker="o")
        axes.set(xlabel="step", ylim=(0, 1.2))  # what misses more than everything leaves the frame
        axes.legend()
    return figure


def _layers(lens: NetworkLens) -> str:
    last = lens.looks[-1]
    rows = []
    for (name, part), moved in zip(lens.model.layers.items(), last.movement, strict=True):
        shown = "starts at zero" if np.isnan(moved) else f"{moved:.3f}"
        rows.append([name, f"{part.stop - part.start:,}", shown])
    return page.table(["layer", "parameters", "relative movement"], rows)


def _rivals(lens: NetworkLens) -> list[str]:
    where = "test data" if lens.test is not None else "training data"
    own = lens.test_error if lens.test is not None else lens.looks[-1].error
    rows = [["the network", f"{lens.looks[-1].loss:.4g}", f"{lens.looks[-1].error:.4f}", f"{own:.4f}"]]
    for rival in lens.trained:
        name = NAMES.get(rival.order, f"order {rival.order}") + (
            "" if rival.caught_up else f" (stopped after {rival.steps} steps)"
        )
        rows.append([name, f"{rival.loss:.4g}", f"{rival.train:.4f}", f"{rival.test:.4f}"])
    said = "Each was trained from the same start, until it fitted the training data as well as the network."
    return [page.paragraph(said), page.table(["model", "training loss", "training error", f"error on {where}"], rows)]

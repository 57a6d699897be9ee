"""The papers' figures: one file each, with a `compute` and a `plot`; what they share is here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lazyscope import verbs
from lazyscope.problems import Problem
from lazyscope.progress import report, reporting
from lazyscope.regimes import NeuralTangent, RandomFeatures, Regime, Trained

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

FIGURES = {
    "fig1": "Quadratic target: risk against N/d in each regime (Limitations of Lazy Training, Figure 1)",
    "fig2": "Mixture of two Gaussians: risk against N/d in each regime (the same, Figure 2)",
}


class FigureModule(Protocol):
    """What a file of this folder holds."""

    @staticmethod
    def compute(d: int = 450) -> xr.Dataset:
        """Return the numbers."""

    @staticmethod
    def plot(data: xr.Dataset) -> Figure:
        """Return the picture of the numbers."""


def load(name: str) -> FigureModule:
    """Return the module of one figure."""
    return importlib.import_module(f"lazyscope.figures.{name}")  # type: ignore[return-value]


@dataclass(frozen=True)
class Series:
    """A regime on the figure, and how many draws a dot of width N deserves in d dimensions."""

    label: str
    regime: Regime
    draws: Callable[[int, int], int]


def once(N: int, d: int) -> int:
    """One: nothing is drawn."""
    return 1


def while_narrow(N: int, d: int) -> int:
    """Ten below N = d, one from there on: d weights span the space, and the tangent model sees no more of them."""
    return 1 if N >= d else 10  # noqa: SIM300 (N is the variable here, whatever its case)


def few(N: int, d: int) -> int:
    """Ten, as in the paper, but three where a draw costs seconds: it hardly varies there."""
    return 3 if N > 3 * d else 10  # noqa: SIM300


REGIMES = (
    Series("RF, isotropic weights", RandomFeatures(), few),
    Series("RF, optimal weights", RandomFeatures(weights="optimal"), few),
    Series("NT", NeuralTangent(), while_narrow),
    Series("NN", Trained(), once),
)


_RATIOS = (0.1, 0.15, 0.25, 0.4, 0.65, 1.0, 2.0, 4.5, 10.0)


def dots_at(d: int) -> list[int]:
    """Return N from d/10 to 10d, where the figures have their dots.

    >>> dots_at(450)
    [45, 68, 112, 180, 292, 450, 900, 2025, 4500]
    """
    return [int(N) for N in np.unique(np.rint(np.multiply(d, _RATIOS)))]


def line_at(d: int) -> list[float]:
    """Return N/d for the lines, with N whole: the limit of a trained network is a function of N = round(ρd)."""
    return [float(N) / d for N in np.unique(np.rint(d * np.geomspace(0.09, 11.0, 400)).clip(1))]


def compute(problem: Problem, series: Sequence[Series], seed: int = 0) -> xr.Dataset:
    """Return `limit` along ρ, and `exact`, `stderr` and `limit_at_width` along the widths, for each series."""
    import xarray as xr

    d, widths = problem.d, dots_at(problem.d)
    rho = line_at(d)
    lines = [verbs.limit(problem, one.regime, rho=rho) for one in series]
    at_width = [verbs.limit(problem, one.regime, rho=np.divide(widths, d)).risk.values for one in series]
    dots = _dots(problem, series, widths, seed)
    labels = [one.label for one in series]
    theorems = [f"{label}: {line.attrs['theorem']}; dots: {dot[0].attrs['theorem']}" for label, line, dot in
                zip(labels, lines, dots, strict=True)]  # fmt: skip
    return xr.Dataset(
        {
            "limit": (("series", "rho"), [line.risk.values for line in lines]),
            "limit_at_width": (("series", "width"), at_width),
            "exact": (("series", "width"), [[float(dot.risk) for dot in row] for row in dots]),
            "stderr": (("series", "width"), [[float(dot.get("stderr", np.nan)) for dot in row] for row in dots]),
            "draws": (("series", "width"), [[one.draws(N, d) for N in widths] for one in series]),
        },
        {"series": labels, "rho": rho, "width": widths},
        {"problem": str(problem), "d": d, "seed": seed, "theorems": "\n".join(theorems)},
    )


def _dots(problem: Problem, series: Sequence[Series], widths: list[int], seed: int) -> list[list[xr.Dataset]]:
    """`exact` at each width by itself, as the number of draws depends on it; progress counts the draws of all."""
    total = sum(one.draws(N, problem.d) for one in series for N in widths)
    done = 0
    rows: list[list[xr.Dataset]] = []
    for one in series:
        rows.append([])
        for N in widths:
            draws = one.draws(N, problem.d)
            report(done, total, f"{one.label}, N = {N}")
            with reporting(_silent):
                rows[-1].append(verbs.exact(problem, one.regime, width=N, draws=draws, seed=seed))
            done += draws
    return rows


def _silent(done: int, total: int, what: str) -> None:
    """Swallow the progress of a single dot."""


def rows(data: xr.Dataset) -> list[dict[str, Any]]:
    """Return all that the picture shows as long rows: the lines (limit) and the dots (exact)."""
    d, table = data.attrs["d"], []
    for label in data.series.values.tolist():
        one = data.sel(series=label)
        for N, risk, stderr, draws in zip(*(one[v].values.tolist() for v in _OF_A_DOT), strict=True):
            error = "" if np.isnan(stderr) else stderr
            dot = {"regime": label, "fidelity": "exact", "rho": N / d, "width": N}
            table.append(dot | {"risk": risk, "stderr": error, "draws": draws})
        for rho, risk in zip(one.rho.values.tolist(), one.limit.values.tolist(), strict=True):
            table.append({"regime": label, "fidelity": "limit", "rho": rho, "risk": risk})
    if "bayes" in data:
        table.append({"regime": "Bayes", "fidelity": "limit", "risk": float(data.bayes)})
    return table


_OF_A_DOT = ("width", "exact", "stderr", "draws")


def provenance(data: xr.Dataset) -> list[str]:
    """Return the lines that say on what each series rests."""
    return [f"seed {data.attrs['seed']}", *str(data.attrs["theorems"]).split("\n")]

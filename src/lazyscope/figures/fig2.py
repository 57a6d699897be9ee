"""Figure 2 of Limitations of Lazy Training: mixture of two Gaussians, σ = u², d = 450."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lazyscope import figures, plotting, verbs
from lazyscope.problems import GaussianMixture

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def compute(d: int = 450) -> xr.Dataset:
    """Return the lines, the dots and the Bayes floor for the paper's mixture, Δ ∈ {2, 1.5, 1}/√d."""
    problem = GaussianMixture.three_level(d, seed=0)
    return figures.compute(problem, figures.REGIMES).assign(bayes=verbs.bayes(problem).risk)


def plot(data: xr.Dataset) -> Figure:
    """Draw them."""
    return plotting.lines_and_dots(data, "Mixture of two Gaussians, σ(u) = u²", lowest=0.35)

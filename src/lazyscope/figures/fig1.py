"""Figure 1 of Limitations of Lazy Training: quadratic target, σ = u², d = 450."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lazyscope import figures, plotting
from lazyscope.problems import QuadraticTarget

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def compute(d: int = 450) -> xr.Dataset:
    """Return the lines and the dots for the paper's target, B diagonal with Exp(1) entries."""
    return figures.compute(QuadraticTarget.exponential(d, seed=100), figures.REGIMES)


def plot(data: xr.Dataset) -> Figure:
    """Draw them."""
    return plotting.lines_and_dots(data, "Quadratic target, σ(u) = u²", lowest=0.0)

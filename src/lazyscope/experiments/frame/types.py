"""Types of panels and pictures, for annotations alone: nothing is imported for them, as that would take a second."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from xarray import DataArray, Dataset
else:
    Axes = DataArray = Dataset = Figure = Line2D = Any

Panels = Mapping[str, Dataset]
"""The labelled numbers of an experiment, panel by panel."""

__all__ = ["Axes", "DataArray", "Dataset", "Figure", "Line2D", "Panels"]

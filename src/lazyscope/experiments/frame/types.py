"""Types of panels and pictures, for annotations alone: to import what they come from takes a second."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from xarray import DataArray, Dataset

Panels = Mapping[str, Dataset]
"""The labelled numbers of an experiment, panel by panel."""

__all__ = ["Axes", "DataArray", "Dataset", "Figure", "Line2D", "Panels"]

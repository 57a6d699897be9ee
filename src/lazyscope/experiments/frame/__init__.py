"""The frame of every experiment: what nearly all of them need, under one name; the rest is in the files beside."""

from lazyscope.evidence.work import Row
from lazyscope.experiments.frame.draws import Draw, averaged, dataset, over_draws
from lazyscope.experiments.frame.experiment import Experiment, Preset
from lazyscope.experiments.frame.verdict import answer, wrong_rows, wrong_work
from lazyscope.runs.pictures import canvas

__all__ = [
    "Draw",
    "Experiment",
    "Preset",
    "Row",
    "answer",
    "averaged",
    "canvas",
    "dataset",
    "over_draws",
    "wrong_rows",
    "wrong_work",
]

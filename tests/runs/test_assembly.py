"""Rows become one labelled result, whatever the runs leave to the defaults of their claim."""

import numpy as np

import lazyscope as ls
from lazyscope.evidence.run import Run
from lazyscope.runs.assembly import assemble


def test_a_size_that_was_left_out_is_the_default_of_the_claim() -> None:
    """As figures of the paper's protocol have it: the number of samples of a fit of random features is not written."""
    target, features = ls.QuadraticTarget([2.0, 1.0, 0.5]), ls.RandomFeatures()
    short = [Run("simulate", target, features, {"width": (2,)}, number=number) for number in range(3)]
    rows = [{"risk": np.array([risk]), "train": np.array([risk])} for risk in (0.5, 0.6, 0.7)]
    found = assemble(short, rows)
    assert float(found.risk[0]) == np.mean([0.5, 0.6, 0.7])
    assert found.identical(assemble([run.settled() for run in short], rows))

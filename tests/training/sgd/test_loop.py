"""The loop of SGD: every pack sees the same batches, time is the sum of the steps, divergence is told."""

import numpy as np
import pytest

import lazyscope as ls
from lazyscope.errors import NotConverged
from lazyscope.training.sgd.loop import measured, walk
from lazyscope.training.sgd.square import SquareNetworks
from lazyscope.training.sgd.stream import law_of

LAW = law_of(ls.QuadraticTarget([2.0, 1.0, 0.5]))


def network(step_size):
    start = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    return SquareNetworks([start], [2], [step_size])


def test_packs_see_the_same_batches_and_time_adds_up_the_steps():
    protocol = ls.SGD(steps=20, batch=5, step_sizes=(0.01,), decay=((0.5, 10.0),), test=1)
    first, second = network(0.01), network(0.01)
    *_, (done, time) = walk(LAW, (first, second), protocol, np.random.default_rng(1))
    assert np.array_equal(first.state, second.state) and first.c[0] == second.c[0]
    assert done == 20 and time == pytest.approx(10 * 0.01 + 10 * 0.001, rel=1e-12)


def test_rows_are_taken_at_the_points():
    protocol = ls.SGD(steps=20, batch=5, step_sizes=(0.01,), decay=(), test=1)
    pack = network(0.01)
    rows = measured(LAW, (pack,), protocol, np.random.default_rng(1), np.array([1, 7, 20]), lambda: [float(pack.c[0])])
    assert rows[:, 0] == pytest.approx([0.01, 0.07, 0.2]) and rows[-1, 1] == float(pack.c[0])


@pytest.mark.filterwarnings("ignore:overflow|invalid:RuntimeWarning")
def test_divergence_is_told_in_one_line():
    protocol = ls.SGD(steps=200, batch=5, step_sizes=(50.0,), decay=(), test=1)
    with pytest.raises(NotConverged, match=r"diverged at α = 3\. Pass a smaller step size than 50\."):
        pack = network(50.0)
        measured(LAW, (pack,), protocol, np.random.default_rng(1), np.array([200]), lambda: [0.0], "α = 3")

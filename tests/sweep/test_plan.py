"""A fingerprint changes with everything that a number depends on, and with nothing else."""

from dataclasses import replace

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import sweep
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.runs.draws import Draw
from lazyscope.sweep import plan as plans
from lazyscope.sweep.content import Decoder, Encoder, canonical

TARGET = ls.QuadraticTarget.exponential(6)
SGD = ls.SGD(steps=100, batch=10, step_sizes=(0.01,))
DRAW = Draw("simulate", TARGET, ls.Trained(), (4,), number=1, seed=2, protocol=SGD)


def key(draw):
    (task,) = sweep.Plan.of("one", [draw]).tasks
    return task.key


@pytest.mark.parametrize(
    "change",
    [
        {"fidelity": "exact", "protocol": None},
        {"problem": ls.QuadraticTarget.exponential(6, seed=101)},
        {"problem": ls.QuadraticTarget(TARGET.B * (1 + 2**-52))},
        {"problem": ls.QuadraticTarget(TARGET.B, b0=1.0)},
        {"problem": ls.QuadraticTarget(np.diag(TARGET.B))},
        {"regime": ls.NeuralTangent()},
        {"regime": ls.Trained("relu")},
        {"widths": (5,)},
        {"number": 2},
        {"seed": 3},
        {"protocol": replace(SGD, steps=101)},
        {"protocol": replace(SGD, step_sizes=(0.01 * (1 + 2**-52),))},
        {"protocol": replace(SGD, decay=((0.1, 10.0),))},
    ],
    ids=lambda change: ", ".join(change),
)
def test_every_field_counts_to_the_last_bit(change):
    assert key(replace(DRAW, **change)) != key(DRAW)


def test_equal_content_has_one_fingerprint_however_it_was_made():
    copy = Draw(
        "simulate", ls.QuadraticTarget(np.array(TARGET.B)), ls.Trained("square"), (4,), 1, 2, protocol=replace(SGD)
    )
    assert key(copy) == key(DRAW)
    weights = ls.RandomFeatures("relu", weights=np.arange(1.0, 7.0))
    strided = ls.RandomFeatures("relu", weights=np.arange(1.0, 13.0)[::2] / 2 + 0.5)
    assert key(Draw("exact", TARGET, weights, (4,))) == key(Draw("exact", TARGET, strided, (4,)))


def test_defaults_are_part_of_the_specification():
    paper = ls.SGD.paper(TARGET, ls.Trained())
    assert key(replace(DRAW, protocol=None)) == key(replace(DRAW, protocol=paper))
    fit = Draw("simulate", TARGET, ls.RandomFeatures(), (4,))
    assert key(fit) == key(replace(fit, samples=500_000)) != key(replace(fit, samples=500_001))
    assert key(replace(DRAW, samples=1000)) == key(DRAW), "samples are steps times batch"


def test_a_new_version_of_the_numbers_is_a_new_task(monkeypatch):
    before = key(DRAW)
    monkeypatch.setitem(plans.NUMERICS, "simulate", "2")
    assert key(DRAW) != before


@pytest.mark.parametrize(
    "draw",
    [
        DRAW,
        Draw("exact", ls.GaussianMixture([0.1, 0.2], [1.0, 2.0]), ls.RandomFeatures("relu", "optimal"), (3,)),
        Draw("exact", TARGET, ls.RandomFeatures("tanh", np.diag(np.arange(1.0, 7.0))), (3,)),
        Draw("exact", TARGET, ls.NeuralTangent("relu", ls.FixedWeights(np.ones((6, 3)))), (3,)),
    ],
    ids=lambda draw: str(draw.regime),
)
def test_a_draw_comes_back_from_its_text(draw):
    encoder = Encoder()
    written = encoder.encode(draw)
    back = Decoder(encoder.arrays).decode(written)
    assert canonical(Encoder().encode(back)) == canonical(written)
    assert str(back.problem) == str(draw.problem)
    assert str(back.regime) == str(draw.regime)


def test_what_has_no_lasting_content_is_refused():
    with pytest.raises(InvalidParameter, match=r"must be a named activation: .* Got the callable sin instead"):
        key(replace(DRAW, fidelity="exact", regime=ls.RandomFeatures(np.sin), protocol=None))

    class Mine(ls.QuadraticTarget):
        pass

    with pytest.raises(InvalidParameter, match=r"must be made of Draw, Trial, .*QuadraticTarget, .* Got Mine instead"):
        key(replace(DRAW, problem=Mine(TARGET.B)))


def test_a_grid_is_every_combination_once(tiny):
    assert len(tiny.tasks) == 36
    assert sweep.Plan.union("twice", [tiny, tiny]).digest == tiny.digest
    settings = {(task.work.fidelity, task.work.samples, task.work.protocol) for task in tiny.tasks}
    protocol = next(task.work.protocol for task in tiny.tasks if task.work.protocol)
    assert settings == {("exact", None, None), ("simulate", 2000, None), ("simulate", None, protocol)}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"name": "../a"}, "name"),
        ({"name": ""}, "name"),
        ({"widths": [0]}, "widths"),
        ({"widths": [4.5]}, "widths"),
        ({"draws": 0}, "draws"),
        ({"draws": 10**12}, "at most 1,000,000"),
        ({"seed": -1}, "seed"),
        ({"samples": 0}, "samples"),
        ({"fidelities": ["limit"]}, "exact or simulate"),
        ({"problems": []}, "at least one task"),
        ({"regimes": [ls.Bayes()]}, "Bayes"),
    ],
)
def test_plans_that_make_no_sense_are_refused(change, word):
    whole = {"name": "a", "problems": [TARGET], "regimes": [ls.Trained()], "fidelities": ["simulate"], "widths": [3]}
    with pytest.raises(ls.LazyscopeError, match=word):
        sweep.Plan.grid(**whole | change)


def test_what_no_verb_serves_is_refused_before_anything_runs():
    mixture = ls.GaussianMixture([0.1, 0.2], [1.0, 2.0])
    with pytest.raises(NoTheorem):
        sweep.Plan.grid("a", [mixture], [ls.Bayes()], ["simulate"], widths=[3])

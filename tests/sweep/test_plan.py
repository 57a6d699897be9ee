"""A fingerprint changes with everything that a number depends on, and with nothing else."""

from dataclasses import replace

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import sweep
from lazyscope.errors import InvalidParameter, NoTheorem
from lazyscope.evidence.run import Run
from lazyscope.sweep import plan as plans
from lazyscope.sweep.content import Decoder, Encoder, canonical

TARGET = ls.QuadraticTarget.exponential(6)
SGD = ls.SGD(steps=100, batch=10, step_sizes=(0.01,))
N = {"width": (4,)}
RUN = Run("simulate", TARGET, ls.Trained(), N, protocol=SGD, number=1, seed=2)


def key(run):
    (task,) = sweep.Plan.of("one", [run]).tasks
    return task.key


def changed(**fields):
    return replace(RUN, **fields)


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
        {"sizes": {"width": (5,)}},
        {"number": 2},
        {"seed": 3},
        {"protocol": replace(SGD, steps=101)},
        {"protocol": replace(SGD, step_sizes=(0.01 * (1 + 2**-52),))},
        {"protocol": replace(SGD, decay=((0.1, 10.0),))},
    ],
    ids=lambda change: ", ".join(change),
)
def test_every_field_counts_to_the_last_bit(change):
    assert key(changed(**change)) != key(RUN)


def test_equal_content_has_one_fingerprint_however_it_was_made():
    target = ls.QuadraticTarget(np.array(TARGET.B))
    copy = Run("simulate", target, ls.Trained("square"), {"width": (4,)}, None, replace(SGD), 1, 2)
    assert key(copy) == key(RUN)
    weights = ls.RandomFeatures("relu", weights=np.arange(1.0, 7.0))
    strided = ls.RandomFeatures("relu", weights=np.arange(1.0, 13.0)[::2] / 2 + 0.5)
    assert key(Run("exact", TARGET, weights, N)) == key(Run("exact", TARGET, strided, N))


def of(run, samples):
    return replace(run, sizes=run.sizes | {"samples": (samples,)})


def test_defaults_are_part_of_the_specification():
    paper = ls.SGD.paper(TARGET, ls.Trained())
    assert key(changed(protocol=None)) == key(changed(protocol=paper))
    fit = Run("simulate", TARGET, ls.RandomFeatures(), N)
    assert key(fit) == key(of(fit, 500_000)) != key(of(fit, 500_001))
    assert key(of(RUN, 1000)) == key(RUN), "samples are steps times batch"


def test_a_new_version_of_the_numbers_is_a_new_task(monkeypatch):
    before = key(RUN)
    monkeypatch.setitem(plans.NUMERICS, "simulate", "2")
    assert key(RUN) != before


@pytest.mark.parametrize(
    "draw",
    [
        RUN,
        Run("exact", ls.GaussianMixture([0.1, 0.2], [1.0, 2.0]), ls.RandomFeatures("relu", "optimal"), {"width": (3,)}),
        Run("exact", TARGET, ls.RandomFeatures("tanh", np.diag(np.arange(1.0, 7.0))), {"width": (3,)}),
        Run("exact", TARGET, ls.NeuralTangent("relu", ls.FixedWeights(np.ones((6, 3)))), {"width": (3,)}),
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
        key(changed(fidelity="exact", regime=ls.RandomFeatures(np.sin), protocol=None))


def test_a_grid_is_every_combination_once(tiny):
    assert len(tiny.tasks) == 36
    assert sweep.Plan.union("twice", [tiny, tiny]).digest == tiny.digest
    settings = {(task.work.fidelity, task.work.sizes.get("samples"), task.work.protocol) for task in tiny.tasks}
    protocol = next(task.work.protocol for task in tiny.tasks if task.work.protocol)
    assert settings == {("exact", None, None), ("simulate", (2000,), None), ("simulate", None, protocol)}


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

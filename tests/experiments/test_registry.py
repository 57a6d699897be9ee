"""Registered means tested: every experiment at a tiny size has labelled numbers, a picture and a verdict."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import experiments, plugins
from lazyscope.evidence.registry import bibtex
from lazyscope.experiments.frame.experiment import Experiment, Preset, plan_of
from lazyscope.experiments.frame.verdict import Answer
from lazyscope.sweep.content import kinds

EVERY = experiments.load_all()
GAPS = {  # where a number may be missing, and why
    **{name: "a series without line, cross, dot or trace" for name, one in EVERY.items() if one.borrows},
    "double-descent": "the limit is infinite at N = n without ridge",
    "ridge-snr": "the limit is infinite at N = n without ridge",
    "landscape": "an error that is zero at every width has no exponent",
    "sample-complexity": "a data set that does not reach the level",
    "cost-of-laziness": "a data set that does not reach the level; theory of SGD is an exponent alone",
}


@pytest.mark.parametrize("name", EVERY)
def test_an_experiment_is_complete(name, sizes):
    experiment = experiments.load(name)
    assert experiment is EVERY[name] and experiment.name == name and experiment.title
    assert list(experiment.presets) == ["quick", "paper"] and all(size.cost for size in experiment.presets.values())
    assert isinstance(sizes[name], Preset), "a tiny preset for it belongs into conftest.py"


@pytest.mark.parametrize("name", EVERY)
def test_a_sweep_takes_the_work_of_every_preset(name):
    """Every combination is served: nobody waits an hour to be told that one is not."""
    for preset in EVERY[name].presets.values():
        work = EVERY[name].work(preset)
        plan, tasks = plan_of("stem", work[:40])
        assert plan is not None and len(tasks) == len(work[:40])
        assert all(type(task.work).__name__ in kinds() and task.work.label and task.work.size > 0 for task in tasks)


@pytest.mark.parametrize("name", EVERY)
def test_a_picture_and_a_verdict(name, tiny, tmp_path):
    experiment, panels = EVERY[name], tiny(name).panels
    experiment.plot(panels).savefig(tmp_path / "figure.png")
    lines = experiment.verdict(panels)
    assert all(isinstance(line, str) for line in lines) and lines[-1]
    if not experiment.borrows:
        assert all(0 < len(line) < 200 for line in lines)
        assert experiment.rows(panels)


HOW_TO_DECLARE = (
    "Declare a mistake that its verdict must see: Experiment(…, faults=(wrong_work(…),)), or wrong_rows, wrong_numbers "
    "or a Fault of your own, all in lazyscope.experiments.frame.verdict; see ridge/double_descent.py for an example. "
    "And let the last line of the verdict be answer(holds, yes, no) of the same module."
)


@pytest.mark.parametrize("name", EVERY)
def test_the_verdict_turns_with_every_planted_fault(name, sizes, tiny):
    experiment, preset, rows = EVERY[name], sizes[name], tiny.rows(name)
    assert experiment.faults, f"{name} has no fault. {HOW_TO_DECLARE}"
    for fault in experiment.faults:
        right = experiment.verdict((fault.right or experiment.data)(preset, rows))[-1]
        wrong = experiment.verdict(fault.plant(preset, rows))[-1]
        assert isinstance(right, Answer) and isinstance(wrong, Answer), f"{name}: no Answer. {HOW_TO_DECLARE}"
        assert not wrong.holds, f"{name} does not see {fault.words}: {wrong}"
        if fault.seen:
            assert fault.seen in wrong and fault.seen not in right, f"{name}, {fault.words}: {wrong}"
        else:
            assert right.holds, f"{name} says no without {fault.words}: {right}"


@pytest.mark.parametrize("name", EVERY)
def test_numbers_are_finite_and_cited(name, tiny):
    cited = set()
    for panel in tiny(name).panels.values():
        cited |= {key for key in panel.attrs.get("citations", "").split(",") if key}
        if name not in GAPS:
            assert all(np.all(np.isfinite(values)) for values in panel.data_vars.values() if values.dtype.kind == "f")
    assert bibtex(cited) or name == "digits"


def test_every_report_tells_what_it_is():
    """The public functions behind the experiments carry their own provenance."""
    reports = {name: one.report for name, one in EVERY.items() if one.report is not None}
    assert all(getattr(ls, report.__name__) is report for report in reports.values())
    problem = ls.SparseParity(4)
    some = {
        "coupling": ls.coupling([20, 40], draws=1, signs=1, samples=4),
        "higher-order": ls.higher_order(2, [20, 40], draws=1, samples=4, repeats=2),
        "expressivity": ls.expressivity(problem, [20, 40], draws=1, samples=4),
        "sample-complexity": ls.sample_complexity([problem, ls.SparseParity(5)], ["NTK"], draws=2, most=60),
        "interpolation": ls.interpolation(8, 3, kinds=["RF"], draws=1),
        "lazy-to-rich": ls.lazy_to_rich(
            ls.QuadraticTarget([1.0, 0.5]),
            width=1,
            alpha=[1.0],
            protocol=ls.SGD(steps=20, batch=5, step_sizes=(0.01,), decay=()),
        ),
        "mean-field": ls.mean_field(ls.QuadraticTarget([1.0, 0.5]), particles=[2], samples=20, steps=5, atoms=3),
    }
    assert some.keys() == reports.keys()
    for name, result in some.items():
        assert result.attrs["claim"] == f"report {name}" and result.attrs["label"] == name
        assert result.attrs["theorem"] and result.attrs["fidelity"] == "simulate"
        assert ls.cite(result).startswith("@")


def test_nobody_is_found_by_another_name():
    for name in ("fig_activations", "ridge_dots", "design", "frame", "", None):
        with pytest.raises(ls.InvalidParameter, match=r"must be fig1, fig2, .* or interpolation"):
            experiments.load(name)


OUTSIDE = Experiment("outside", "Is it found?", {"quick": Preset("nothing")}, lambda size: [], lambda size, rows: {},
                     lambda data: None, lambda data: ["Yes."])  # fmt: skip


def test_an_entry_point_brings_an_experiment(monkeypatch, caplog):
    class Entry:
        name, value, dist = "outside", "elsewhere:EXPERIMENT", None

        def load(self):
            return OUTSIDE

    broken = EntryPoint("broken", "no_such_package:EXPERIMENT", plugins.EXPERIMENTS)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Entry(), broken])
    assert experiments.load("outside") is OUTSIDE
    assert list(experiments.load_all()) == [*EVERY, "outside"]
    assert "The package no_such_package:EXPERIMENT could not be used" in caplog.text
    monkeypatch.setattr(Entry, "name", "other")
    with pytest.raises(ls.InvalidParameter, match="NAME parameter of lazyscope figure must be fig1"):
        experiments.load("other")
    assert "be an Experiment of the name other" in caplog.text

"""Problems of open dimension through the verbs, the sweep and the command line: limits and trials over ratios."""

import csv
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

import lazyscope as ls
from lazyscope import sweep
from lazyscope.errors import InvalidParameter, LazyscopeError
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Measurement
from lazyscope.experiments.frame import experiment
from lazyscope.experiments.frame.output import write
from lazyscope.runs import pictures
from lazyscope.runs.assembly import assemble

from .conftest import run

TARGET, RELU = ls.LinearTarget(noise=0.5), ls.RandomFeatures("relu")
SIZES = {"d": 20, "samples": 60, "ridge": [0.01, 0.1, 1.0]}


def test_every_argument_becomes_a_dimension_and_a_number_none():
    whole = ls.limit(TARGET, RELU, psi1=[0.5, 2.0], psi2=[1.0, 3.0, 5.0], ridge=[0.1, 1.0])
    assert whole.risk.dims == ("psi1", "psi2", "ridge") and whole.risk.shape == (2, 3, 2)
    line = ls.limit(TARGET, RELU, psi1=2.0, psi2=[1.0, 3.0, 5.0], ridge=1.0)
    assert line.risk.dims == ("psi2",)
    assert np.array_equal(line.risk, whole.risk.sel(psi1=2.0, ridge=1.0))
    point = ls.limit(TARGET, RELU, psi1=0.5, psi2=3.0, ridge=0.1)
    assert point.risk.dims == () and float(point.risk) == float(whole.risk[0, 1, 0])
    assert json.loads(point.attrs["arguments"]) == {"psi1": 0.5, "psi2": 3.0, "ridge": 0.1}


@pytest.mark.parametrize(
    ("verb", "arguments", "told"),
    [
        ("limit", {"psi1": 1.0, "psi2": 1.0}, "ridge parameter of limit must be zero or positive"),
        ("limit", {"psi1": 1.0, "psi2": 1.0, "ridge": -0.1}, "Got -0.1"),
        ("limit", {"psi1": 1.0, "psi2": 1.0, "ridge": np.inf}, "Got inf"),
        ("limit", {"psi1": 0.0, "psi2": 1.0, "ridge": 1.0}, "psi1 parameter of limit must be positive"),
        ("limit", {"rho": 1.0, "psi1": 1.0, "psi2": 1.0, "ridge": 1.0}, "rho parameter of limit must be left out"),
        (
            "limit",
            {"psi1": 1.0, "psi2": 1.0, "ridge": 1.0, "method": "margin"},
            "method parameter of limit must be left",
        ),
        ("simulate", {"width": 5, "samples": 9, "ridge": 1.0}, "leaves it open: pass d"),
        ("simulate", {"width": 5, "d": 9, "ridge": 1.0}, "Pass n, for example"),
        ("simulate", {"width": 5, "d": 9, "samples": 9}, "ridge parameter of simulate"),
        ("simulate", {"width": 5, "d": 9, "samples": 9, "ridge": 1, "protocol": ls.SGD()}, "fitted, not trained"),
        ("compare", {"width": 5, **SIZES, "protocol": ls.SGD()}, "nothing is trained by SGD"),
        ("compare", {"width": 5, **SIZES, "draws": 1}, "standard error"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(verb, arguments, told):
    with pytest.raises(InvalidParameter, match=re.escape(told)) as caught:
        getattr(ls, verb)(TARGET, RELU, **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("d", 20), ("ridge", 0.1)])
def test_a_problem_with_a_dimension_takes_neither_another_nor_a_ridge(name, value):
    target = ls.QuadraticTarget.exponential(6)
    with pytest.raises(InvalidParameter, match=f"The {name} parameter of simulate must be left out"):
        ls.simulate(target, RELU, width=3, **{name: value})
    with pytest.raises(InvalidParameter, match=f"The {name} parameter of compare must be left out"):
        ls.compare(target, RELU, width=3, **{name: value})
    with pytest.raises(InvalidParameter, match="this limit is a function of rho"):
        ls.limit(target, RELU, rho=1.0, psi1=1.0)


def test_a_trial_depends_on_its_own_fields_alone():
    both = ls.simulate(TARGET, RELU, width=[30, 10], draws=3, seed=4, **SIZES)
    alone = ls.simulate(TARGET, RELU, width=10, draws=2, seed=4, **SIZES)
    assert both.risk.dims == ("width", "ridge") and alone.risk.dims == ("ridge",)
    assert np.array_equal(both.risk_draws.sel(width=10)[:, :2], alone.risk_draws)
    one = ls.simulate(TARGET, RELU, width=10, draws=1, seed=4, **(SIZES | {"ridge": 0.1}))
    # another set of ridges uses the same decomposition: rounding of one division apart at most
    assert float(one.risk) == pytest.approx(float(alone.risk_draws.sel(ridge=0.1)[0]), rel=1e-12)
    assert "stderr" not in one
    mean, error = both.risk_draws.mean("draw"), both.risk_draws.std("draw", ddof=1) / np.sqrt(3)
    assert np.allclose(both.risk, mean, rtol=1e-15) and np.allclose(both.stderr, error, rtol=1e-12)


def test_problems_of_open_dimension_travel_through_a_sweep_bit_by_bit(tmp_path):
    sizes = {"width": (6, 18), "samples": (24,), "d": (12,), "ridge": (0.1, 1.0)}
    runs = [Run("simulate", TARGET, RELU, sizes, number=k, seed=7) for k in range(2)]
    plan = sweep.Plan.of("runs", runs)
    assert len(plan.tasks) == 4
    store = tmp_path / "runs.sqlite"
    assert sweep.run(plan, store, workers=2).complete
    with sweep.store.Store.reading(store) as opened:
        again = opened.plan("runs")
        rows = opened.rows(task.key for task in plan.tasks)
    assert [task.key for task in again.tasks] == [task.key for task in plan.tasks]
    ours = assemble([task.work for task in plan.tasks], [rows[task.key] for task in plan.tasks])
    theirs = ls.simulate(TARGET, RELU, width=[6, 18], d=12, samples=24, ridge=[0.1, 1.0], draws=2, seed=7)
    # a worker holds its linear algebra to one thread, which may cost the last bits of a larger product
    xr.testing.assert_allclose(ours, theirs, rtol=1e-10)
    (loaded,) = sweep.load("runs", store)
    assert loaded.identical(ours)


def test_a_field_at_its_default_leaves_the_fingerprint_alone_and_any_other_does_not():
    sizes = {"width": (6,), "samples": (24,), "d": (12,), "ridge": (0.1,)}
    run = Run("simulate", TARGET, RELU, sizes)
    (task,) = sweep.Plan.of("one", [run]).tasks
    assert "surrogate" not in task.specification and "seed" not in task.specification
    surrogate = ls.RandomFeatures("relu", surrogate=True)
    changes = (
        {"seed": 1},
        {"sizes": sizes | {"d": (13,)}},
        {"regime": surrogate},
        {"sizes": sizes | {"ridge": (0.2,)}},
    )
    keys = {sweep.Plan.of("one", [replace(run, **change)]).tasks[0].key for change in ({}, *changes)}
    assert len(keys) == 5


def test_compare_counts_in_standard_errors_against_the_limit():
    result = ls.compare(TARGET, [RELU, ls.RandomFeatures("tanh")], width=[20, 120], draws=5, **SIZES)
    assert result.z.dims == ("regime", "width", "ridge") and "exact" not in result
    limit = ls.limit(TARGET, RELU, psi1=[1.0, 6.0], psi2=3.0, ridge=SIZES["ridge"])
    assert np.array_equal(result.limit[0], limit.risk)
    simulated = ls.simulate(TARGET, RELU, width=[20, 120], draws=5, **SIZES)
    assert np.array_equal(result.difference[0], simulated.risk.values - limit.risk.values)
    # four degrees of freedom: a ratio of 3 is as unlikely as 2.05 normal standard errors
    ratio = np.abs(result.difference / result.stderr)
    assert np.all(result.z <= ratio) and np.all((result.z > 0) == (result.difference != 0))


@pytest.mark.parametrize("verb", ["limit", "simulate", "compare"])
def test_the_command_says_what_python_computes(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = ["--psi1", "0.5,2", "--psi2", "3"] if verb == "limit" else ["--d", 20, "--width", "10,40", "--draws", 2]
    args = [verb, "linear", "--noise", "0.5", *sizes, "--ridge", "0.1,1"]
    record = json.loads(run(*args, "--json").stdout)["results"][0]
    how = (
        {"psi1": [0.5, 2.0], "psi2": 3.0}
        if verb == "limit"
        else {"width": [10, 40], "d": 20, "samples": 60, "draws": 2}
    )
    result = getattr(ls, verb)(TARGET, RELU, **how, ridge=[0.1, 1.0])
    name = "simulate" if verb == "compare" else "risk"
    expected = result[name].values[0] if verb == "compare" else result[name].values
    assert record["data"][name] == expected.tolist()
    for suffix in (".csv", ".nc", ".json"):
        run(*args, "--out", f"a{suffix}", "--plot", f"a{suffix}.png")
    assert Path("a.csv.png").stat().st_size > 5000
    lines = [line for line in Path("a.csv").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row[name]]
    assert [float(row[name]) for row in rows][:4] == expected.ravel().tolist()
    with xr.open_dataset("a.nc", engine="h5netcdf") as back:
        assert np.array_equal(back[name].values, expected)
    table = run(*args).stdout
    assert f"{float(expected[0, 0]):.4f}"[:6] in table


@pytest.mark.parametrize("psi1", ["0.5,inf", "0.5,2,inf", "inf"])
def test_a_picture_has_a_line_for_an_infinite_ratio(psi1, tmp_path):
    """Along its axis infinity has no place; beside it, it is one of the lines."""
    path = tmp_path / "a.svg"
    run("limit", "linear", "--psi1", psi1, "--ridge", "0.01:1:4log", "--plot", path)
    lines = psi1.count(",") + 1
    assert path.stat().st_size > 5000
    grid = ls.limit(TARGET, RELU, psi1=[float(one) for one in psi1.split(",")], psi2=3.0, ridge=[0.01, 0.1, 0.3, 1.0])
    assert len(pictures.grid(grid, ["risk"]).axes[0].lines) == lines


def test_the_best_ridge_on_the_command_line():
    said = json.loads(run("limit", "linear", "--noise", 1, "--psi1", "1,8", "--ridge", "optimal", "--json").stdout)
    best = ls.optimal_ridge(ls.LinearTarget(noise=1.0), RELU, psi1=[1.0, 8.0], psi2=3.0)
    assert said["results"][0]["data"]["ridge"] == best.ridge.values.tolist()


def test_the_best_ridge_at_given_sizes_and_of_the_tangent_model():
    words = ("--d", 12, "--noise", 0.5, "--width", "30,60", "--samples", 50, "--ridge", "optimal", "--json")
    said = json.loads(run("limit", "harmonic", *words).stdout)
    target = ls.HarmonicTarget(12, [0.0, 0.5, 0.5], noise=0.5)
    best = ls.optimal_ridge(target, RELU, width=[30, 60], samples=50)
    assert said["results"][0]["data"]["ridge"] == best.ridge.values.tolist()
    said = json.loads(
        run("limit", "linear", "--regime", "nt", "--noise", 2, "--psi2", "1,3", "--ridge", "optimal", "--json").stdout
    )
    best = ls.optimal_ridge(ls.LinearTarget(noise=2.0), ls.NeuralTangent("relu"), psi2=[1.0, 3.0])
    assert said["results"][0]["data"]["ridge"] == best.ridge.values.tolist()


@dataclass(frozen=True, eq=False)
class Count(Measurement):
    """The smallest work there is: a subclass is all that a store needs to know."""

    upto: int
    number: int = 0
    label: ClassVar = "count"

    def compute(self):
        if self.upto < 0:
            raise LazyscopeError("nothing to count")
        return {"sum": np.array([sum(range(self.upto))])}


@pytest.fixture
def counting():
    def data(size, rows):
        return {"sums": xr.Dataset({"sum": ("n", [row["sum"][0] for row in rows])}, {"n": list(size)})}

    from matplotlib.figure import Figure

    return experiment.Experiment(
        "counting",
        "How much?",
        {},
        lambda size: [Count(n) for n in size],
        data,
        lambda data: Figure(),
        lambda data: ["Enough."],
    )


def test_an_experiment_gets_its_rows_in_the_order_of_its_work(counting, tmp_path):
    found = experiment.compute("counting", counting, (3, 5, 3, 4), tmp_path / "a.sqlite", workers=1)
    assert found.panels["sums"]["sum"].values.tolist() == [3, 10, 3, 6]
    assert len(found.plan.tasks) == 3, "equal work is done once"
    nothing = experiment.compute("counting", counting, (), tmp_path / "b.sqlite")
    assert nothing.plan is None and not (tmp_path / "b.sqlite").exists()
    with pytest.raises(LazyscopeError, match=r"1 of 2 tasks failed\. The first, count, draw 0: nothing to count"):
        experiment.compute("counting", counting, (2, -1), tmp_path / "a.sqlite", workers=1)


def test_an_experiment_leaves_picture_numbers_and_provenance(counting, tmp_path):
    found = experiment.compute("counting", counting, (3, 5), tmp_path / "a.sqlite", workers=1)
    paths = write(counting, found, tmp_path / "counting", "lazyscope figure counting", {"figure": "counting"})
    assert [path.suffix for path in paths] == [".png", ".pdf", ".csv", ".nc", ".json"]
    lines = [line for line in paths[2].read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert [row["sum"] for row in csv.DictReader(lines)] == ["3", "10"]
    origin = json.loads(paths[4].read_text(encoding="utf-8"))
    assert origin["command"] == "lazyscope figure counting"
    assert [task["key"] for task in origin["sweep"]["tasks"]] == [task.key for task in found.plan.tasks]
    assert origin["verdict"] == ["Enough."]

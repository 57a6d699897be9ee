"""The command line along training: `flow`, the regime mf of `simulate`, output scales; it says what Python computes."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import lazyscope as ls

from .conftest import refused, run

TARGET = ls.QuadraticTarget.exponential(12)


FLOW = ("flow", "quadratic", "--d", 12, "--width", 6, "--seed", 3)


def test_flow_says_what_python_computes(here):
    said = json.loads(run(*FLOW, "--times", "0,1,20", "--json").stdout)["results"][0]
    assert said["coords"]["regime"] == ["RF", "NT", "NN"] and said["coords"]["time"] == [0.0, 1.0, 20.0]
    regimes = (ls.RandomFeatures(), ls.NeuralTangent(), ls.Trained())
    lines = [ls.flow(TARGET, regime, width=6, times=[0.0, 1.0, 20.0], seed=3) for regime in regimes]
    assert said["data"]["risk"] == [line.risk.values.tolist() for line in lines]
    assert said["data"]["learned"] == lines[-1].learned.values.tolist()
    table = run(*FLOW, "--times", "0,1,20", "--out", "a.csv").stdout
    shares = lines[-1].learned.values[-1]
    largest = int(np.argmin(np.append(shares >= 0.5, False)))
    assert re.search(rf"^\s*20 .* {float(lines[-1].risk[-1]):.5f} +{largest} of 12$", table, re.MULTILINE)
    rows = [line for line in Path("a.csv").read_text().splitlines() if not line.startswith("#")]
    risks = [float(row["risk"]) for row in csv.DictReader(rows) if row["regime"] == "NN" and row["risk"]]
    assert risks == lines[-1].risk.values.tolist()


def test_flow_at_a_finite_step_size(here):
    run(*FLOW, "--step-size", 0.01, "--batch", 20, "--times", "0.5:5:4", "--out", "a.nc", "--plot")
    with xr.open_dataset("a.nc", engine="h5netcdf") as whole:
        assert whole.regime.values.tolist() == ["NT", "NN"]
        samples = np.rint(whole.time.values / 0.01).astype(int) * 20
        for regime in (ls.NeuralTangent(), ls.Trained()):
            how = {"step_size": 0.01, "batch": 20, "samples": samples, "seed": 3}
            found = ls.finite_step(TARGET, regime, width=6, **how)
            assert np.array_equal(whole.finite_step.sel(regime=regime.label), found.risk)
            assert np.allclose(whole.risk.sel(regime=regime.label), found.flow, atol=1e-9)
        assert not any(np.isnan(values).any() for values in whole.data_vars.values())
    assert Path("lazyscope-flow-quadratic.png").stat().st_size > 10_000
    assert "±" in run(*FLOW, "--regime", "nn", "--step-size", 0.01, "--times", "1,2").stdout


def test_output_scales_go_to_every_verb():
    said = json.loads(run(*FLOW, "--regime", "nn", "--alpha", 2, "--init", 1.5, "--times", 5, "--json").stdout)
    rich = ls.Trained(alpha=2.0, init=1.5)
    assert said["results"][0]["data"]["risk"] == [
        ls.flow(TARGET, rich, width=6, times=[5.0], seed=3).risk.values.tolist()
    ]
    common = ("quadratic", "--d", 12, "--width", 6, "--regime", "nn", "--alpha", 2, "--init", 1.5, "--json")
    said = json.loads(run("exact", *common).stdout)
    assert said["results"][0]["data"]["risk"] == [float(ls.exact(TARGET, rich, width=6).risk)]
    said = json.loads(run("simulate", *common, "--samples", 4000, "--batch", 20, "--step-sizes", "0.005").stdout)
    plan = ls.SGD(steps=200, batch=20, step_sizes=(0.005,))
    risk = float(ls.simulate(TARGET, rich, width=6, protocol=plan).risk)
    assert said["results"][0]["data"]["risk"] == pytest.approx([risk], rel=1e-6)


SHORT = ("--samples", 100, "--steps", 30, "--bound", 2, "--draws", 2, "--seed", 1)
PLAN = {"samples": 100, "protocol": ls.ParticleDescent(30, 2.0), "draws": 2, "seed": 1}
PROBLEMS = {
    "quadratic": (("--d", 12), TARGET, "square"),
    "mixture": (("--d", 12), ls.GaussianMixture.three_level(12), "square"),
    "linear": (("--d", 5, "--noise", 0.5), ls.LinearTarget(noise=0.5), "relu"),
    "labels": (("--d", 5, "--signal", 4), ls.LinearLabels(4.0), "relu"),
    "parity": (("--d", 5), ls.SparseParity(5), "relu3"),
    "monomial": (("--d", 5), ls.RidgeMonomial(5, 3), "relu3"),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_particles_on_every_problem(kind, here):
    options, problem, sigma = PROBLEMS[kind]
    command = ("simulate", kind, *options, "--regime", "mf", "--width", "3,6", *SHORT)
    said = json.loads(run(*command, "--json", "--out", "a.nc", "--plot").stdout)["results"][0]
    size = {"d": 5} if kind in ("linear", "labels") else {}
    for i, N in enumerate((3, 6)):
        result = ls.simulate(problem, ls.MeanField(sigma), width=N, **PLAN, **size)
        of_width = [np.ravel(said["data"][name])[i] for name in ("risk", "stderr", "train")]
        assert of_width == pytest.approx([float(result[name]) for name in ("risk", "stderr", "train")], rel=1e-6)
    assert "3" in run(*command).stdout and Path("a.nc").exists()
    assert Path(f"lazyscope-simulate-{kind}.png").stat().st_size > 10_000


def test_particles_beside_other_regimes(here):
    table = run(
        "simulate", "quadratic", "--d", 12, "--regime", "rf,mf", "--width", "3,6", *SHORT, "--out", "a.nc"
    ).stdout
    assert re.search(r"N/d +N +RF +MF", table)
    with xr.open_datatree("a.nc", engine="h5netcdf") as tree:
        assert tree["MF"].trace.dims == ("width", "step")


def finite(value):
    """Whether no number in a JSON value is NaN, nor an infinity in disguise of one."""
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    return all(map(finite, value)) if isinstance(value, list) else value == value and value != "nan"


@pytest.mark.parametrize("draws", [1, 2])
def test_reports_say_what_python_computes(draws, here):
    common = ("--draws", draws, "--seed", 1)
    command = ("report", "interpolation", "--n", 20, "--d", 4, "--regime", "rf,nt", *common)
    said = json.loads(run(*command, "--json", "--out", "i.csv").stdout)["results"][0]
    found = ls.interpolation(20, 4, kinds=["RF", "NT"], draws=draws, seed=1)
    assert said["data"]["smallest"] == found.smallest.values.tolist() == [20.0, 5.0] and finite(said["data"])
    assert re.search(r"^NT +5\.00", run(*command).stdout, re.MULTILINE)
    command = (
        "report",
        "mean-field",
        "labels",
        "--d",
        4,
        "--particles",
        "2,8",
        "--samples",
        60,
        "--steps",
        20,
        *common,
    )
    said = json.loads(run(*command, "--json", "--out", "m.nc").stdout)["results"][0]
    sizes = {"d": 4, "particles": [2, 8], "samples": 60, "steps": 20, "draws": draws, "seed": 1}
    found = ls.mean_field(ls.LinearLabels(4.0), **sizes)
    assert said["data"]["risk"] == pytest.approx(found.risk.values.tolist(), rel=1e-6) and finite(said["data"])
    assert "best measure: " in run(*command).stdout
    command = ("report", "lazy-to-rich", "--d", 4, "--width", 2, "--alpha", "1,100", *common)
    said = json.loads(run(*command, "--json", "--out", "l.json").stdout)["results"][0]
    found = ls.lazy_to_rich(ls.QuadraticTarget.exponential(4), width=2, alpha=[1.0, 100.0], draws=draws, seed=1)
    assert said["data"]["end"] == pytest.approx(found.end.values.tolist(), rel=1e-6) and finite(said["data"])
    assert f"{float(found.exact[0]):.4f}" in run(*command).stdout
    assert {path.name for path in here.iterdir()} == {"i.csv", "m.nc", "l.json"}


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("report", "interpolation", "--n", 0), "n parameter"),
        (("report", "interpolation", "--regime", "mf"), "RF, NT and NN"),
        (("report", "interpolation", "--activation", "sign"), "derivative"),
        (("report", "interpolation", "--width", "0"), "widths"),
        (("report", "interpolation", "--n", 100, "--d", 5, "--activation", "square"), "few enough"),
        (("report", "interpolation", "--out", "a.txt"), "--out"),
        (("report", "lazy-to-rich", "--alpha", "-1"), "alpha"),
        (("report", "lazy-to-rich", "--alpha", "inf"), "alpha"),
        (("report", "lazy-to-rich", "--B", "missing.npy"), "no such file"),
        (("report", "mean-field", "images"), "PROBLEM"),
        (("report", "mean-field", "mixture", "--d", 3), "least 5"),
        (("report", "mean-field", "parity", "--particles", "0"), "particles"),
        (("report", "mean-field", "parity", "--bound", "0"), "bound"),
        ((*FLOW, "--times", "1,10,5"), "10 before 5"),
        ((*FLOW, "--times", "-1,1"), "start at 0"),
        ((*FLOW, "--times", "inf"), "infinite"),
        ((*FLOW, "--times", "1e39"), "end by 1e+18"),
        ((*FLOW, "--regime", "nn", "--alpha", "1e-6", "--times", "1e15"), "end by 1e+12"),
        ((*FLOW, "--times", ""), "--times"),
        ((*FLOW, "--times", "2,1", "--step-size", 0.01), "ascending"),
        ((*FLOW, "--step-size", 0), "--step-size"),
        ((*FLOW, "--step-size", "nan"), "--step-size"),
        ((*FLOW, "--step-size", 10), "step size below"),
        ((*FLOW, "--step-size", 0.01, "--batch", 0), "batch"),
        ((*FLOW, "--step-size", 0.01, "--regime", "rf"), "not trained by SGD"),
        ((*FLOW, "--step-size", 0.01, "--regime", "nn", "--alpha", 2), "output scale"),
        ((*FLOW, "--regime", "bayes"), "--regime"),
        ((*FLOW, "--regime", "nn,nn"), "--regime"),
        ((*FLOW, "--second-layer", "free"), "--second-layer"),
        ((*FLOW, "--times", "0", "--plot"), "two positive times"),
        (("flow", "quadratic", "--d", 12, "--width", 0), "width"),
        (("flow", "quadratic", "--B", "missing.npy"), "no such file"),
        ((*FLOW, "--alpha", 0), "alpha"),
        ((*FLOW, "--init", -1), "init"),
        ((*FLOW, "--regime", "nt", "--alpha", 2), "--alpha"),
        (("exact", "quadratic", "--d", 9, "--regime", "rf,nt", "--alpha", 2), "--alpha"),
        (("exact", "quadratic", "--d", 9, "--regime", "mf"), "Use simulate"),
        (("exact", "quadratic", "--d", 9, "--regime", "nn", "--alpha", 2, "--activation", "relu"), "Use simulate"),
        (("compare", "quadratic", "--d", 9, "--regime", "mf"), "--regime"),
        (("simulate", "quadratic", "--d", 9, "--steps", 5), "--steps"),
        (("simulate", "parity", "--bound", 1), "--bound"),
        (("simulate", "quadratic", "--d", 9, "--regime", "mf", "--steps", 0), "steps"),
        (("simulate", "quadratic", "--d", 9, "--regime", "mf", "--bound", 0), "bound"),
        (("simulate", "quadratic", "--d", 9, "--regime", "mf", "--width", 0), "width"),
        (("simulate", "quadratic", "--d", 9, "--regime", "mf", "--samples", 1), "not all the same"),
        (("simulate", "mixture", "--d", 9, "--regime", "mf", "--activation", "sign"), "derivative"),
        (("simulate", "linear", "--regime", "nn"), "--regime"),
        (("simulate", "linear", "--steps", 5), "--steps"),
        (("simulate", "labels", "--regime", "mf", "--isotropic"), "--isotropic"),
        (("simulate", "linear", "--regime", "mf", "--surrogate"), "--surrogate"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_two(here, args, word):
    result = run(*args, code=2)
    assert result.stdout == "" and re.fullmatch(r"lazyscope: error: [^\n]+\n", result.stderr)
    assert word in result.stderr
    assert list(here.iterdir()) == []


def test_lazy_regimes_at_several_sizes_stand_side_by_side():
    """RF and NT of a function of a few directions by ridge regression: a line for each size and regime."""
    ask = ("--link", "relu", "--d", 30, "--method", "ridge", "--regime", "rf,nt", "--activation", "relu")
    told = run("limit", "multi-index", *ask, "--width", "inf", "--samples", "30,300").stdout
    assert told.count("RF, σ = relu") >= 2 and told.count("NT, σ = relu") >= 2


def test_one_giant_step_on_the_command_line():
    """All three verbs know it: two answer, and the limit is refused in a line."""
    ask = ("multi-index", "--link", "relu", "--d", 20, "--regime", "gs")
    assert "one gradient step" in run("exact", *ask, "--width", "10,20").stdout
    told = run("simulate", *ask, "--width", 10, "--samples", 100, "--giant-samples", 80).stdout
    assert "step 1 on 80 samples" in told
    assert "Ba et al. 2022" in refused("limit", *ask)

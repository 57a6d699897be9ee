"""`compare`: what it puts side by side, when it says that they agree, and the command."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import lazyscope as ls
from lazyscope.cli import main
from lazyscope.cli.asking.declared import questions
from lazyscope.runs.side_by_side import agreement

TARGET, MIXTURE = ls.QuadraticTarget.exponential(20), ls.GaussianMixture.three_level(20)
SHORT = ls.SGD(steps=1500, batch=20, step_sizes=(0.01,))


@pytest.mark.parametrize("problem", [TARGET, MIXTURE], ids=str)
def test_it_is_what_the_verbs_say(problem):
    regimes = [ls.RandomFeatures("relu"), ls.NeuralTangent(), ls.Trained()]
    result = ls.compare(problem, regimes, width=[5, 20], draws=3, seed=2, samples=30_000, protocol=SHORT)
    assert result.sizes == {"regime": 3, "width": 2}
    for regime, one in zip(regimes, (result.isel(regime=i) for i in range(3)), strict=True):
        assert str(one.regime.values) == str(regime)
        size = {"width": [5, 20], "draws": 3, "seed": 2}
        how = {} if regime.label == "RF" else {"protocol": SHORT}
        assert np.array_equal(one.limit, ls.limit(problem, regime, rho=[0.25, 1.0]).risk)
        assert np.array_equal(one.exact, ls.exact(problem, regime, **size).risk)
        simulated = ls.simulate(problem, regime, samples=30_000, **size, **how)
        assert np.array_equal(one["simulate"], simulated.risk)
        assert one.difference.values == pytest.approx((one["simulate"] - one.exact).values, abs=1e-15)
    assert float(result.z.max()) < 3
    assert "ghorbani" in ls.cite(result)


def test_a_wrong_simulation_is_found_out():
    """Ten per cent too much risk, on ten draws that share their weights with `exact`."""
    regime, size = ls.RandomFeatures("relu"), {"width": [20], "draws": 10}
    exact = ls.exact(TARGET, regime, **size)
    simulated = ls.simulate(TARGET, regime, samples=60_000, **size)
    assert float(agreement(exact, simulated).z[0]) < 3
    wrong = simulated.assign(risk_draws=1.1 * simulated.risk_draws)
    assert float(agreement(exact, wrong).z[0]) > 5


def test_pairing_takes_out_the_scatter_of_the_weights():
    regime, size = ls.NeuralTangent(), {"width": [4], "draws": 12}
    exact, simulated = ls.exact(TARGET, regime, **size), ls.simulate(TARGET, regime, protocol=SHORT, **size)
    paired = float(agreement(exact, simulated).stderr[0])
    assert paired < 0.5 * float(np.hypot(exact.stderr, simulated.stderr)[0])


def test_the_finite_size_terms_are_as_declared():
    fit = ls.simulate(TARGET, ls.RandomFeatures("relu"), width=[10, 30], samples=3000)
    assert fit.finite_size.values == pytest.approx(
        fit.risk.values * 2 * np.array([10, 30]) / (3000 - np.array([10, 30]))
    )
    trained = ls.simulate(TARGET, ls.Trained(), width=10, protocol=SHORT)
    quarter = np.interp(np.log(1500 * 20 / 4), np.log(trained.samples), trained.trace)
    assert float(trained.finite_size) == pytest.approx(quarter - float(trained.trace[-1]))


def test_where_a_theorem_is_missing_there_is_a_gap_and_no_refusal():
    result = ls.compare(TARGET, ls.NeuralTangent("relu"), width=5, draws=2, protocol=SHORT)
    assert np.isnan(result.limit).all() and np.isfinite(result.z).all()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"draws": 1}, "standard error"),
        ({"regimes": []}, "at least one"),
        ({"regimes": "rf"}, "be a regime"),
        ({"regimes": 5}, "be a regime"),
        ({"width": 0}, "positive whole"),
    ],
)
def test_bad_input_is_one_line(change, told):
    arguments = {"regimes": ls.Trained(), "width": 5, "protocol": SHORT} | change
    with pytest.raises(ls.InvalidParameter, match=told) as caught:
        ls.compare(TARGET, **arguments)
    assert "\n" not in str(caught.value)


def test_the_command_says_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problem = ["compare", "quadratic", "--d", "20", "--width", "5,20", "--draws", "2"]
    args = [*problem, "--samples", "20000", "--batch", "20", "--step-sizes", "0.01"]
    said = CliRunner().invoke(main, args)
    assert said.exit_code == 0 and "4 of 6 agree within 3 standard errors. 2 differ by more" in said.stdout  # short
    rows = json.loads(CliRunner().invoke(main, [*args, "--json"]).stdout)["rows"]
    assert [row["regime"] for row in rows[::2]] == ["RF, σ = square", "NT, σ = square", "NN, σ = square"]
    for out in ("a.csv", "a.nc", "a.json"):
        assert CliRunner().invoke(main, [*args, "--out", out]).exit_code == 0
    with xr.open_dataset("a.nc", engine="h5netcdf") as back:
        assert float(back.z[0, 1]) == rows[1]["z"]
    lines = [line for line in Path("a.csv").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert float(list(csv.DictReader(lines))[1]["z"]) == rows[1]["z"]
    refused = CliRunner().invoke(main, [*args, "--regime", "bayes"])
    assert refused.exit_code == 2 and refused.stderr.count("\n") == 1


def test_a_size_that_is_asked_for_twice_is_answered_twice():
    target = ls.QuadraticTarget([2.0, 1.0])
    assert ls.limit(target, ls.Trained(), rho=[0.5, 0.5, 1.0]).risk.values.tolist() == [0.2, 0.2, 0.0]
    assert ls.exact(target, ls.Trained(), width=[2, 1, 2]).risk.values.tolist() == [0.0, 0.2, 0.0]


def test_samples_of_sgd_say_how_many_steps_it_makes_and_are_no_size_of_the_result():
    target, short = ls.QuadraticTarget.exponential(5), ls.SGD(batch=10, step_sizes=(0.001,))
    result = ls.simulate(target, ls.Trained(), width=3, samples=84, protocol=short)
    assert float(result.samples[-1]) == 80.0 and result.trace.dims == ("samples",)


def test_samples_that_are_left_out_are_one_number_and_no_size_of_the_result():
    target, regime = ls.QuadraticTarget.exponential(5), ls.RandomFeatures()
    simulated = ls.simulate(target, regime, width=[1, 2], draws=2)
    assert simulated.risk.dims == ("width",)
    assert json.loads(simulated.attrs["arguments"])["samples"] == 500_000  # the paper's
    compared = ls.compare(target, regime, width=[1, 2], draws=2)
    np.testing.assert_array_equal(compared.simulate.values, [simulated.risk.values])
    assert bool((compared.z < 3).all())


def test_what_short_training_may_have_made_is_not_counted_as_agreement():
    """0.089 against 0.020 with a finite-size term of 0.09: z is 0, and it must not read as agreement."""
    from lazyscope.cli.compare import _verdict

    short = {"exact": 0.020, "difference": 0.069, "stderr": 0.004, "finite_size": 0.09, "z": 0.0}
    fine = {"exact": 0.5, "difference": 0.006, "stderr": 0.001, "finite_size": 0.01, "z": 0.0}
    off = {"exact": 0.5, "difference": 0.1, "stderr": 0.001, "finite_size": 0.01, "z": 9.0}
    none = {"exact": 0.5, "difference": None, "stderr": None, "finite_size": None, "z": None}
    assert _verdict([fine, none]) == "1 of 1 agree within 3 standard errors."
    assert _verdict([fine, short, off]).startswith("1 of 3 agree within 3 standard errors. 1 differ by more than that")
    assert "no test" in _verdict([short]) and "--samples" in _verdict([short])


def test_a_target_of_one_direction_is_compared_by_sgd_and_by_ridge_regression():
    """Its theorems for given N and n are for ridge regression; its limit along time has no place in the table."""
    problem = ls.MultiIndex(12, "erf")
    trained = ls.compare(problem, [ls.NeuralTangent("erf"), ls.Trained("erf")], width=6, draws=2, protocol=SHORT)
    assert np.isfinite(trained.simulate).all() and np.isnan(trained.limit.values[1, 0])
    assert np.isfinite(trained.exact.values[0, 0])
    ask = {"width": 20, "samples": 100, "ridge": 0.1, "method": "ridge"}
    ridge = ls.compare(problem, ls.RandomFeatures("erf"), draws=2, **ask)
    assert np.isfinite(ridge.limit).all() and np.isfinite(ridge.z).all()
    with pytest.raises(ls.NoTheorem, match="the same draws in exact and simulate"):
        ls.compare(problem, ls.GiantStep("erf", samples=30), width=4)


@pytest.mark.parametrize("word", sorted(questions("compare")))
def test_every_command_that_is_listed_has_an_answer(word):
    args = ["compare", word, "--d=6", "--width=4", "--samples=2000", "--draws=2"]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output


def test_one_fidelity_alone_is_refused_before_any_work():
    """A table of one column ended in "0 of 0 agree"."""
    with pytest.raises(ls.NoTheorem, match="which has simulate alone"):
        ls.compare(ls.MultiIndex(10**5, "he3"), ls.Trained("erf"), width=10**4)
    result = CliRunner().invoke(main, ["compare", "multi-index", "--regime", "nn", "--d", "6", "--width", "2"])
    assert result.exit_code == 2
    assert "which has simulate alone" in result.stderr

"""The data lens as a whole: what it says of noise and of planted data, its report, its budget, its command."""

import json
import time
from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import lazyscope as ls
from lazyscope.cli import main
from lazyscope.errors import InvalidParameter
from lazyscope.lenses.data import verdict
from lazyscope.lenses.data.budget import Budget, OutOfTime
from lazyscope.lenses.data.lens import data_lens
from lazyscope.lenses.data.measuring import Cell, Measured, measure
from lazyscope.lenses.data.preparing import folds
from lazyscope.lenses.data.table import from_arrays
from lazyscope.progress import report


@pytest.fixture(scope="module")
def planted():
    """One direction in eight, squared: hard for random features of a few neurons, easy for a trained network."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 8))
    return ls.lens(X, X[:, 0] ** 2 + 0.1 * rng.standard_normal(400), widths=[10, 30], folds=3)


def test_training_features_is_found_to_be_worth_it(planted):
    assert planted.verdict.startswith("Training features lowers the error by ")
    assert "at width 30" in planted.verdict and "random features" in planted.verdict
    assert planted.part.significant and planted.part.spectrum[0] == pytest.approx(1.0, abs=0.15)
    assert np.all(np.abs(planted.part.spectrum[1:]) < 0.15)


def test_the_dataset_holds_everything(planted):
    data = planted.dataset
    assert set(data.error.dims) == {"regime", "width", "samples", "fold"}
    assert list(data.regime.values) == ["RF", "NT", "QM", "NN"]
    error = data.error.mean("fold").sel(width=30, samples=266)
    assert error.sel(regime="NN") < error.sel(regime="NT") < error.sel(regime="RF")
    assert data.attrs["verdict"] == planted.verdict
    assert data.forecast.sel(theory="NN").values[0] < data.forecast.sel(theory="RF").values[0]


def test_the_forecast_lies_under_the_measured_dots(planted):
    from lazyscope.lenses.data import pictures
    from lazyscope.lenses.data.measuring import spread

    n, lines = planted.outlook.along_samples(33, 30)
    assert n[0] == 33 and n[-1] == 1600 and np.all(np.diff(lines["RF"][0]) < 0)
    cell = Cell("RF", 30, 266)
    mean, stderr = spread(planted.measured.squared[cell])
    forecast = np.exp(np.interp(np.log(266), np.log(n), np.log(lines["RF"][0])))
    # the forecast is at the best ridge, for the mean over weights; one draw of 30 neurons varies by a tenth
    assert abs(forecast - mean) < 3.0 * stderr + 0.15 * mean
    assert "For random features, 400 more rows" in planted.verdict
    assert {"outlook", "outlook_low", "outlook_high", "boosted"} <= {*planted.dataset.data_vars}
    labels = [text.get_text() for text in pictures.more_rows(planted).axes[0].get_legend().get_texts()]
    assert "random features, N = 30, forecast" in labels and "random features, measured" in labels


class Page(HTMLParser):
    """Collects tags and whatever would be loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.tags, self.outside = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.outside += [
            value for name, value in attributes if name in ("src", "href", "xlink:href") and not value.startswith("#")
        ]


def test_the_report_is_one_page_that_needs_nothing_else(planted, tmp_path):
    path = planted.save(tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.outside == [] and "script" not in page.tags and "link" not in page.tags and "@import" not in text
    assert "http" not in text and "url(#" in text  # pictures refer to their own parts, nothing to an address
    assert page.tags.count("svg") == 5 and page.tags.count("table") == 1
    assert planted.verdict in text
    with pytest.raises(InvalidParameter, match="must end in"):
        planted.save(tmp_path / "report.pdf")


def test_on_noise_no_regime_learns():
    for seed in range(3):
        noise = np.random.default_rng(seed).standard_normal((150, 6))
        found = ls.lens(noise[:, 1:], noise[:, 0], widths=[20], folds=3)
        assert found.verdict.startswith("No regime learns"), found.verdict
        assert not found.part.significant


def cells(samples=200, **errors):
    """Errors of regimes at width 100: 40 rows in each of five folds, spread evenly around the mean."""
    spread = np.linspace(-0.05, 0.05, 40)
    parts = {
        Cell(name, 100, samples): [value + shift + spread for shift in (-0.01, 0, 0, 0, 0.01)]
        for name, value in errors.items()
    }
    return Measured([np.full(40, 1.0)] * 5, parts, samples=samples, rows=samples)


def test_verdicts_in_words():
    say = lambda measured: verdict.sentence(measured, 100)  # noqa: E731
    # folds differ by 0.01·(1, 0, 0, 0, −1): the paired difference new − q·old, q = 0.6, by 0.4 times that, so that its
    # standard error is 0.4·0.00707/√5 = 0.00126, and over 0.5 it is 0.25 %; likewise 0.5·0.00707/√5/0.4 = 0.40 %
    assert say(cells(RF=0.6, NT=0.5, NN=0.3)).startswith(
        "Training features lowers the error by 40% ± 0.3 at width 100, against the tangent model"
    )
    assert "random features do not reach it up to width 100" in say(cells(RF=0.6, NT=0.5, NN=0.3))
    assert say(cells(RF=0.4, NT=0.5, NN=0.6)).startswith(
        "Training features does harm: it raises the error by 50% ± 0.4 at"
    )
    assert say(cells(RF=0.5, NT=0.6, NN=0.499)).startswith("Training features gains nothing that these data can show")
    assert say(cells(RF=0.9, NT=0.5, NN=0.5)).endswith("random features do not reach it up to width 100.")
    assert say(cells(RF=0.9999, NT=1.0, NN=1.0)).startswith("No regime learns")


def test_what_was_not_compared_is_not_ranked():
    partly = cells(RF=0.6, NT=0.5)
    partly.samples, partly.budget, partly.needed = 0, 3.0, 8.2
    said = verdict.sentence(partly, 100)
    assert said == (
        "No comparison: 3 s do not allow random features, the tangent model and the trained network at width 100 in "
        "every fold; about 9s would."
    )
    assert verdict.gain(partly, 200, 100) is None and verdict.boosting(partly, 100) == ""


def some_rows(before, here, trees=None):
    """Errors on 50 and on 200 of 1,600 rows; of boosted trees on both, too."""
    measured = cells(**here)
    measured.rows, measured.budget, measured.needed = 1600, 20.0, 130.0
    measured.losses |= cells(50, **before).losses
    for samples, error in zip((50, 200), trees or (), strict=False):
        measured.losses[Cell("GB", 0, samples)] = next(iter(cells(samples, GB=error).losses.values()))
    return measured


def test_what_some_rows_show_is_said_of_all_only_where_it_can_be_expected_to_last():
    """From 50 to 200 rows and on to 1,600 is as if the change happened 1.5 times more: log 8 = 1.5 log 4."""
    grows = some_rows({"RF": 0.8, "NT": 0.6, "NN": 0.5}, {"RF": 0.6, "NT": 0.5, "NN": 0.3})
    said = verdict.sentence(grows, 100)
    some = "On 200 of 1,600 training rows, as many as 20 s allow, "
    assert said.startswith(f"{some}training features lowers the error by 40% ± 0.3 at width 100")
    assert said.endswith(" On all rows its sign can be expected, not its size; about 3m would allow all.")
    # log(0.5/0.4) = 0.22 after log(0.9/0.6) = 0.41: below zero at 1,600 rows
    turns = some_rows({"RF": 0.6, "NT": 0.8, "NN": 0.9}, {"RF": 0.4, "NT": 0.5, "NN": 0.5})
    assert "25% ± 0.2 higher than that of random features" in verdict.sentence(turns, 100)
    nothing = some_rows({"RF": 0.6, "NT": 0.8, "NN": 0.9}, {"RF": 0.4, "NT": 0.5, "NN": 0.401})
    assert "which may be chance" in verdict.sentence(nothing, 100)
    alone = some_rows({}, {"RF": 0.6, "NT": 0.5, "NN": 0.3})
    assert "nothing tells how that changes with the rows" in verdict.sentence(alone, 100)
    for undecided in (turns, nothing, alone):
        said = verdict.sentence(undecided, 100)
        assert said.startswith("Undecided: on 200 of 1,600 training rows, as many as 20 s allow, the error of the ")
        assert said.endswith("; about 3m would allow all.")
    nobody = some_rows({}, {"RF": 1.0, "NT": 1.0, "NN": 0.9999})
    assert "no regime predicts the target clearly better than a constant does" in verdict.sentence(nobody, 100)


def test_boosted_trees_on_some_rows_are_not_told_as_on_all():
    errors = {"RF": 0.6, "NT": 0.5, "NN": 0.3}
    lasting = verdict.boosting(some_rows(errors, errors, (0.6, 0.6)), 100)
    assert lasting.startswith("Boosted trees would do worse than the trained network does")
    catching_up = verdict.boosting(some_rows(errors, errors, (0.6, 0.4)), 100)
    assert catching_up.startswith("On these rows boosted trees do worse than the trained network does")


def test_boosted_trees_in_words():
    measured = cells(RF=0.6, NT=0.5, NN=0.3)
    for error, said in (
        (0.15, "would do better than the trained network does"),
        (0.6, "would do worse"),
        (0.3, "no better"),
    ):
        measured.losses[Cell("GB", 0, 200)] = [part - 0.3 + error for part in measured.losses[Cell("NN", 100, 200)]]
        assert said in verdict.boosting(measured, 100)
    assert "GB" not in measured.at(200)


def test_the_width_that_random_features_need_is_read_off_their_curve():
    measured = cells(NN=0.2)
    for width, error in ((100, 0.8), (200, 0.4), (400, 0.1)):
        measured.losses[Cell("RF", width, 200)] = [np.full(40, error)] * 5
    assert verdict.width_for(measured, 200, 0.2) == pytest.approx(200 * np.sqrt(2))  # halfway from 0.4 to 0.1 in logs
    assert verdict.width_for(measured, 200, 0.05) is None


class Clock:
    """A clock on which every look takes as long as it is told."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def __call__(self):
        self.now += self.tick
        return self.now


def test_rows_are_fitted_to_the_budget_so_that_regimes_can_be_compared():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3))
    parts = folds(from_arrays(X, X[:, 0]), 2, 0)
    ample = measure(parts, "regression", [10, 20], Budget(1e9, clock=Clock(0.001)), 0)
    assert ample.samples == ample.rows == 750 and not ample.skipped and ample.reference is not None
    # epochs look at the clock, so that the network takes most of the time: 187 rows, then as many as fit
    budget = Budget(60.0, clock=Clock(0.02))
    found = measure(parts, "regression", [10, 20], budget, 0)
    assert 187 <= found.samples < 750 and found.skipped and found.needed > 60.0
    assert all(Cell(name, 20, found.samples) in found.losses for name in ("RF", "NT", "NN"))
    assert budget.clock.now <= 60.0 + 0.02 * (3 + len(found.skipped))  # the look that ends a fit, two that time it, …
    assert "training rows, as many as 60 s allow" in verdict.sentence(found, 20)


def test_a_budget_too_short_for_any_comparison_says_so():
    X = np.random.default_rng(0).standard_normal((200, 3))
    found = measure(folds(from_arrays(X, X[:, 0]), 2, 0), "regression", [10], Budget(2.0, clock=Clock(0.05)), 0)
    assert found.samples == 0 and found.needed > 2.0
    assert verdict.sentence(found, 10).startswith("No comparison: 2 s do not allow")


def test_without_a_comparison_the_report_says_so_and_ranks_nothing(planted):
    from dataclasses import replace

    from lazyscope.lenses.data.numbers import document

    empty = Measured(planted.measured.constant, rows=266, budget=2.0, needed=7.0)
    found = replace(planted, measured=empty)
    assert found.verdict.startswith("No comparison: 2 s do not allow") and "No comparison" in found.html()
    assert found.dataset.error.size == 0 and document(found)["rows"] == [] and document(found)["samples"] == 0
    X = np.random.default_rng(0).standard_normal((200, 3))
    short = data_lens(from_arrays(X, X[:, 0]), widths=[10], folds=2, budget=Budget(2.0, clock=Clock(0.05)))
    assert short.samples == 0 and "No comparison" in short.html()


def test_work_that_nobody_has_timed_is_ended_with_the_budget():
    """A first fit of a kind may try; its reports of progress end it."""
    budget = Budget(1.0, kept=0.25, clock=iter([0.0, 0.5, 0.7, 0.8]).__next__)
    with pytest.raises(OutOfTime), budget.ending():
        for step in range(5):
            report(step, 5, "training")
    assert step == 2


@pytest.mark.slow  # it looks at the clock
def test_a_short_budget_is_kept_by_the_clock():
    X = np.random.default_rng(0).standard_normal((600, 10))
    start = time.perf_counter()
    found = ls.lens(X, X[:, 0] * X[:, 1], budget=6)
    found.html()
    # one fit of a kind without a rate, and pictures on a busy machine, may run over; all of it would take a minute
    assert time.perf_counter() - start < 12
    assert any("did not fit into 6 s" in note for note in found.notes)


def test_the_command_prints_writes_and_refuses(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 2))
    rows = "\n".join(f"{a},{b},{'xy'[int(a * b > 0)]}" for a, b in X)
    (tmp_path / "t.csv").write_text("a,b,label\n" + rows + "\n")
    run = CliRunner().invoke
    common = ["lens", str(tmp_path / "t.csv"), "--target", "label", "--widths", "8,16", "--folds", "2"]
    out = [str(tmp_path / name) for name in ("r.html", "o.nc", "o.json")]
    done = run(main, [*common, "--json", "--report", out[0], "--out", out[1]])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["task"] == "classification"
    assert {row["regime"] for row in told["rows"]} == {"RF", "NT", "QM", "NN", "GB"}
    assert xr.load_dataset(out[1], engine="h5netcdf").attrs["verdict"] == told["verdict"]
    for arguments, said in (
        (["lens"], "be a file, or --example"),
        (["lens", "none.csv", "--target", "a"], "no such file"),
        ([*common[:2]], "name the column to predict: a, b, label"),
        ([*common, "--budget", "soon"], "must be a length of time"),
        ([*common, "--folds", "80"], "as many rows in every class as there are folds, 80"),
        ([*common, "--report", "x.txt"], "must end in"),
        (["lens", "--example", "diabetes", "--target", "bmi"], "Got --example instead"),
    ):
        refused = run(main, arguments)
        assert refused.exit_code == 2 and said in refused.stderr, refused.output
        assert refused.stderr.count("\n") == 1


def test_subjects_that_are_no_table_are_refused():
    with pytest.raises(InvalidParameter, match="be a file, a pandas frame"):
        ls.lens(42)
    with pytest.raises(InvalidParameter, match="one entry for each of 3 rows"):
        ls.lens(np.eye(3), np.ones(4))
    with pytest.raises(InvalidParameter, match="be a table"):
        ls.lens(np.ones(3), np.ones(3))

"""`lazyscope forecast`: table, advice, picture and files, and refusals in a line."""

import json
import re

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

from lazyscope.cli import main


def run(*args, code=0):
    result = CliRunner().invoke(main, ["forecast", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables: one that is learnt, with a category and gaps, one of pure noise, and one of classes."""
    path, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    X, noise = rng.standard_normal((240, 3)), rng.standard_normal(240)
    town = rng.choice(["a", "b"], 240)
    y = X[:, 0] * X[:, 1] + (town == "a") + 0.1 * noise
    lines = [
        f"{a:.4f},{b if k % 9 else ''},{c:.4f},{t},{z:.5f}"
        for k, ((a, b, c), t, z) in enumerate(zip(X, town, y, strict=True))
    ]
    path.joinpath("house.csv").write_text("size,age,rooms,town,price\n" + "\n".join(lines) + "\n")
    rows = "\n".join(f"{a:.4f},{b:.4f},{c:.4f},{z:.5f}" for (a, b, c), z in zip(X, noise, strict=True))
    path.joinpath("noise.csv").write_text("a,b,c,y\n" + rows + "\n")
    names = np.array(["red", "green", "blue"])[np.argmax(X, axis=1)]
    rows = "\n".join(f"{a:.4f},{b:.4f},{c:.4f},{z}" for (a, b, c), z in zip(X, names, strict=True))
    path.joinpath("colours.csv").write_text("a,b,c,colour\n" + rows + "\n")
    return path


def test_a_table_is_forecast_with_advice_and_files(folder, tmp_path):
    out, plot = tmp_path / "f.nc", tmp_path / "f.png"
    args = ("--target", "price", "--samples", "30,100,1000", "--width", "20,inf", "--out", out, "--plot", plot)
    said = run(folder / "house.csv", *args).stdout
    assert "N = 20" in said and "N = ∞" in said and "* is an extrapolation" in said and "missing values" in said
    assert "With 240 rows" in said and "200 more rows lower the error by" in said and "Best ridge" in said
    found = xr.open_dataset(out)
    assert found.share.dims == ("samples", "width") and plot.stat().st_size > 10_000
    assert np.all(np.diff(found.share.sel(width=np.inf)) < 0) and "missing values" in found.notes


def test_more_widths_than_fit_are_lines_and_no_number_is_cut(folder):
    shown = run(folder / "house.csv", "--target", "price", "--samples", "50,100", "--width", "10:100:12,inf").output
    assert "…" not in shown and shown.count("–") == 2 * 13
    assert [line.split()[1] for line in shown.splitlines() if line.startswith(" 100 ")][-1] == "∞"


def test_noise_buys_nothing(folder):
    said = run(folder / "noise.csv", "--target", "y", "--samples", "50,200,2000").stdout
    assert "Nothing is learnt" in said and "more rows buy nothing" in said


def test_a_table_of_few_rows_is_forecast_without_a_word_about_sizes(folder, tmp_path):
    """The default sizes go beyond the rows only where there are enough of them to look beyond."""
    few = "".join((folder / "house.csv").read_text().splitlines(True)[:51])
    (tmp_path / "few.csv").write_text(few)
    said = run(tmp_path / "few.csv", "--target", "price", "--json").stdout
    sizes = json.loads(json.loads(said)["results"][0]["attrs"]["arguments"])["samples"]
    assert min(sizes) == 10 and max(sizes) == 25
    said = run(tmp_path / "few.csv", "--target", "price", "--samples", "60", code=2).stderr
    assert "must be at most the number of rows" in said


def lines(share, stderr, learns=False):
    from lazyscope.lenses.forecast.advice import Advice, Gain

    return " ".join(Advice(30, share, stderr, learns, Gain(30, 30, 0.1, 0.1, False), None, 1.0, 1.0).lines)


def test_a_share_that_is_mostly_its_error_is_no_answer():
    """68 % that may as well be 100 % are not told as the error of the best constant."""
    said = lines(0.68, 0.35)
    assert said.startswith("No answer: with 30 rows 68% of the best constant's error would be left")
    assert "from 34% to 137%" in said
    assert lines(0.97, 0.04).startswith("Nothing is learnt")
    assert lines(0.99, 0.001).startswith("Nothing is learnt")


def test_small_shares_are_told_in_digits_and_none_as_nothing():
    assert lines(0.002, 0.1, learns=True).startswith("With 30 rows 0.2% of the best constant's error is left.")
    assert lines(1e-9, 0.1, learns=True).endswith(
        "nothing is left of the best constant's error: more rows buy nothing."
    )


def test_a_small_share_that_is_known_to_a_factor_is_learnt(tmp_path):
    """6 % of the error, known to a factor of three: far below the best constant's, as the band of the table says."""
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((150, 3)), rng.standard_normal(150)
    table = np.column_stack([X, X[:, 0] * X[:, 1] + 0.1 * noise])[:80]
    rows = "\n".join(",".join(f"{value:.6f}" for value in row) for row in table)
    tmp_path.joinpath("small.csv").write_text("a,b,c,y\n" + rows + "\n")
    said = run(tmp_path / "small.csv", "--target", "y", "--samples", "40,80", "--width", "inf").stdout
    high = float(re.search(r"^ *80 .*–([0-9.]+)\)", said, re.MULTILINE)[1])
    assert high < 0.5 and "of the best constant's error is left." in said and "No answer" not in said


def test_a_column_beyond_float64_is_refused_without_warnings(tmp_path):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{1e300 * a},{b},{a - b}" for a, b in rng.standard_normal((40, 2)))
    tmp_path.joinpath("far.csv").write_text("a,b,y\n" + rows + "\n")
    said = run(tmp_path / "far.csv", "--target", "y", code=2).stderr
    assert "left what float64 holds" in said and len(said.strip().splitlines()) == 1


def test_classes_and_json(folder):
    args = ("--target", "colour", "--samples", "40,160", "--width", "inf", "--ridge", "0.1,1", "--json")
    found = json.loads(run(folder / "colours.csv", *args).stdout)
    assert "3 classes" in found["problem"] and "Best ridge" in found["results"][0]["attrs"]["advice"]
    assert "blue" in json.dumps(found)


def test_the_tangent_kernel(folder):
    said = run(folder / "house.csv", "--target", "price", "--regime", "nt", "--samples", "50,200").stdout
    assert "N = ∞" in said and "Beyond width" not in said


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "DATA"),
        (("house.csv",), "name the column"),
        (("house.csv", "--target", "cost"), "name a column"),
        (("house.csv", "--example", "digits"), "both"),
        (("house.csv", "--target", "price", "--width", "20", "--regime", "nt"), "width = inf"),
        (("house.csv", "--target", "price", "--samples", "inf"), "samples"),
        (("house.csv", "--target", "price", "--ridge", "-1"), "ridge"),
        (("house.csv", "--target", "price", "--rows", "5"), "at least 20"),
        (("house.csv", "--target", "price", "--samples", "9", "--width", "inf", "--plot"), "two finite values"),
        (("house.csv", "--target", "price", "--activation", "rel"), "Did you mean"),
    ],
)
def test_mistakes_are_one_line(folder, monkeypatch, args, words):
    monkeypatch.chdir(folder)
    said = run(*args, code=2)
    assert said.stdout == "" and words in said.stderr and len(said.stderr.strip().splitlines()) == 1

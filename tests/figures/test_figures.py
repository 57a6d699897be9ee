"""Each figure at a small d: its numbers are those of the verbs, its files are complete."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

import lazyscope as ls
from lazyscope import figures, plotting
from lazyscope.cli import main

PROBLEMS = {"fig1": ls.QuadraticTarget.exponential(30, seed=100), "fig2": ls.GaussianMixture.three_level(30, seed=0)}


@pytest.fixture(scope="module", params=sorted(figures.FIGURES))
def figure(request):
    return request.param, figures.load(request.param).compute(d=30)


def test_numbers_are_those_of_the_verbs(figure):
    name, data = figure
    problem = PROBLEMS[name]
    for series in figures.REGIMES:
        one = data.sel(series=series.label)
        np.testing.assert_array_equal(one.limit, ls.limit(problem, series.regime, rho=data.rho.values).risk)
        N = int(data.width[2])
        dot = ls.exact(problem, series.regime, width=N, draws=series.draws(N, 30))
        assert float(one.exact[2]) == float(dot.risk)
        np.testing.assert_array_equal(one.limit_at_width[2], ls.limit(problem, series.regime, rho=N / 30).risk)


def test_order_of_the_regimes(figure):
    """L, Figures 1 and 2: trained features beat the tangent model, which beats isotropic random features."""
    _, data = figure
    for kind in ("limit", "exact"):
        rf, _, nt, nn = (data[kind].isel(series=i).values for i in range(4))
        slack = 0.0 if kind == "limit" else 0.02
        assert np.all(nn <= nt + 1e-12)
        assert np.all(nt <= rf + slack)
    if "bayes" in data:
        assert np.all(data.limit > data.bayes)


def test_dots_without_a_standard_error_do_not_depend_on_the_draw(figure):
    name, data = figure
    for series in figures.REGIMES:
        one = data.sel(series=series.label)
        for N in data.width.values[np.isnan(one.stderr.values)]:
            again = ls.exact(PROBLEMS[name], series.regime, width=int(N), seed=7)
            assert float(again.risk) == pytest.approx(float(one.exact.sel(width=N)), abs=1e-9)


def test_command_writes_picture_data_and_command(figure, tmp_path, monkeypatch):
    name, data = figure
    monkeypatch.setattr(figures.load(name), "compute", lambda: data)
    result = CliRunner().invoke(main, ["figure", name, "--out", str(tmp_path / "new" / "folder")])
    assert result.exit_code == 0, result.output
    written = {path.name: path.read_bytes() for path in (tmp_path / "new" / "folder").iterdir()}
    assert set(written) == {f"{name}.png", f"{name}.pdf", f"{name}.csv"}
    lines = written[f"{name}.csv"].decode().splitlines()
    comments = [line for line in lines if line.startswith("# ")]
    assert comments[:2] == [f"# lazyscope {ls.__version__}", f"# lazyscope figure {name}"]
    rows = list(csv.DictReader(lines[len(comments) :]))
    for series in figures.REGIMES:
        dots = [row for row in rows if (row["regime"], row["fidelity"]) == (series.label, "exact")]
        assert [float(row["risk"]) for row in dots] == data.exact.sel(series=series.label).values.tolist()
        assert all(f"{float(row['risk']):.4f}" in result.stdout for row in dots)


def test_style_is_not_left_behind(figure):
    import matplotlib as mpl

    def settings():
        return {name: mpl.rcParams[name] for name in mpl.rcParams if name != "backend"}  # to ask for it is to set it

    before = settings()
    figures.load(figure[0]).plot(figure[1])
    assert settings() == before
    with plotting.style():
        assert mpl.rcParams["axes.grid"]


def test_legend_covers_no_dot(figure):
    name, data = figure
    picture = figures.load(name).plot(data)
    picture.draw_without_rendering()
    axes = picture.axes[0]
    box = axes.get_legend().get_window_extent()
    for series in data.series.values:
        at = np.column_stack([data.width / data.attrs["d"], data.exact.sel(series=series)])
        assert not any(box.contains(*point) for point in axes.transData.transform(at))

"""Each figure at a small d: its numbers are those of the verbs, its files are complete, its picture can be read."""

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import lazyscope as ls
from lazyscope import experiments as figures
from lazyscope.cli import main
from lazyscope.experiments.frame import references, tables
from lazyscope.experiments.frame.compute import Layout, compute
from lazyscope.experiments.frame.design import Dots, Preset
from lazyscope.protocols import SGD
from lazyscope.runs import pictures
from lazyscope.runs.side_by_side import agreement

PLANNED = sorted(name for name in figures.FIGURES if hasattr(figures.load(name), "panels"))
_SGD = SGD(steps=150, batch=10, step_sizes=(0.01, 0.02), test=200)
TINY = Preset(
    d=20,
    fitted=Dots((2, 20), 3, samples=1000),
    tangent=Dots((2, 20), 3, protocol=_SGD),
    trained=Dots((2, 5), 3, protocol=replace(_SGD, steps=200)),
    cost="seconds",
    ratios=(0.1, 0.25, 0.5, 1.0, 2.0),
    draws=3,
    widest=0.4,
)


@pytest.fixture(scope="module", params=PLANNED)
def figure(request, tmp_path_factory):
    """The name of a figure, its plan, its numbers and the store that holds them."""
    store = tmp_path_factory.mktemp(request.param) / "tiny.sqlite"
    layout = Layout.of("tiny", figures.load(request.param).panels(TINY))
    return request.param, layout, compute(layout, store, workers=1), store


def series_of(layout):
    return [(panel, one) for panel in layout.panels for one in panel.series]


def test_lines_are_limits(figure):
    _, layout, numbers, _ = figure
    for panel, one in series_of(layout):
        line = numbers.panels[panel.name].limit.sel(series=one.label)
        try:
            expected = ls.limit(panel.problem, one.regime, rho=line.rho.values).risk.values
        except ls.NoTheorem:
            expected = np.nan
        np.testing.assert_array_equal(line, expected)


def test_crosses_and_dots_are_those_of_the_verbs(figure):
    _, layout, numbers, _ = figure
    for panel, one in series_of(layout)[:4]:
        data, N = numbers.panels[panel.name].sel(series=one.label), one.dots.widths[0]
        exact = ls.exact(panel.problem, one.regime, width=[N], draws=one.crosses[N])
        how = {"samples": one.dots.samples} if one.dots.protocol is None else {"protocol": one.dots.protocol}
        dot = ls.simulate(panel.problem, one.regime, width=[N], draws=one.dots.draws, **how)
        # a sweep computes with one thread: the last bits of a product may differ
        assert float(data.exact.sel(width=N)) == pytest.approx(exact.risk.item(), rel=1e-9)
        assert float(data.simulated.sel(width=N)) == pytest.approx(dot.risk.item(), rel=1e-4)
        if "trace" in dot:
            trace = data.trace.sel(width=N).dropna("point")
            np.testing.assert_allclose(trace, dot.trace.values[0], rtol=1e-3)
            np.testing.assert_array_equal(data.samples.dropna("point"), dot.samples)
        paired = ls.exact(panel.problem, one.regime, width=[N], draws=min(one.crosses[N], one.dots.draws))
        expected = agreement(paired, dot)
        for name in ("difference", "stderr", "finite_size"):
            assert float(data[name].sel(width=N)) == pytest.approx(expected[name].item(), rel=0.02, abs=1e-5)


def test_order_of_the_regimes(figure):
    """L, Figures 1 to 3: trained features beat the tangent model, which beats isotropic random features."""
    _, layout, numbers, _ = figure
    for panel in layout.panels:
        data = numbers.panels[panel.name]
        rf, nt, nn = (data.exact.sel(series=label).values for label in (panel.series[0].label, "NT", "NN"))
        slack = 0.03  # RF at N = 10d has as many features as there are quadratic monomials, here
        both = data.width.values <= panel.problem.d
        assert np.all((nt <= rf + slack)[both])
        assert np.all((nn <= nt + 1e-3) | np.isnan(nn))
        if "bayes" in data:
            assert np.nanmin(data.limit) > float(data.bayes)


def test_an_odd_activation_never_sees_the_target():
    layout_panels = figures.load("fig-activations").panels(TINY)
    (panel,) = [panel for panel in layout_panels if panel.name == "tanh"]
    for one in panel.series:
        assert ls.exact(panel.problem, one.regime, width=15).risk.item() == pytest.approx(1.0, abs=1e-9)


def test_the_non_diagonal_mixture_has_no_better_diagonal_covariance_than_the_isotropic_one():
    mixture = figures.load("fig-nondiagonal").panels(TINY)[0].problem
    risks = [
        ls.limit(mixture, ls.RandomFeatures(weights=weights), rho=np.inf).risk.item()
        for weights in (np.diagonal(mixture.Delta).copy(), None, "optimal")
    ]
    assert risks[0] == pytest.approx(risks[1], rel=1e-12)
    assert risks[2] < risks[1] - 0.05
    assert mixture.information == pytest.approx(ls.GaussianMixture.three_level(20, seed=0).information)


def test_verdict_names_a_dot_that_is_too_far(figure):
    _, layout, numbers, _ = figure
    compared, far = tables.outliers(numbers.panels)
    assert compared == sum(1 for _, one in series_of(layout) for N in one.dots.widths if N in one.crosses)
    name = layout.panels[0].name
    moved = {**numbers.panels, name: numbers.panels[name].copy(deep=True)}
    moved[name].z[0, 0] = 7.0
    assert len(tables.outliers(moved)[1]) == len({*far, tables.outliers(moved)[1][0]})
    assert "z = 7.0" in tables.verdict(moved)


def command(tmp_path, store, name, *options):
    """Run the command in a folder that has the results already, so that nothing is computed twice."""
    folder = tmp_path / "new" / "folder"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(store, folder / f"{name}-tiny.sqlite")
    arguments = ["figure", name, "--preset", "tiny", "--workers", "1", "--out", str(folder), *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return folder, result


def test_command_writes_picture_numbers_and_provenance(figure, tmp_path, monkeypatch):
    name, layout, numbers, store = figure
    monkeypatch.setitem(figures.load(name).PRESETS, "tiny", TINY)
    folder, result = command(tmp_path, store, name)
    assert {path.suffix for path in folder.iterdir()} == {".png", ".pdf", ".csv", ".nc", ".json", ".sqlite"}
    assert tables.verdict(numbers.panels) in result.stdout

    lines = (folder / f"{name}-tiny.csv").read_text(encoding="utf-8").splitlines()
    comments = [line for line in lines if line.startswith("# ")]
    assert comments[0] == f"# lazyscope {ls.__version__}"
    assert f"figure {name}" in comments[1]
    rows = list(csv.DictReader(lines[len(comments) :]))
    for panel, one in series_of(layout):
        data = numbers.panels[panel.name].sel(series=one.label)
        for fidelity, values in (("exact", data.exact), ("simulate", data.simulated)):
            mine = [row for row in rows if (row["panel"], row["regime"], row["fidelity"])
                    == (panel.name, one.label, fidelity)]  # fmt: skip
            assert [float(row["risk"]) for row in mine] == values.values[np.isfinite(values)].tolist()
            assert all(f"{float(row['risk']):.4f}" in result.stdout for row in mine)

    with xr.open_datatree(folder / f"{name}-tiny.nc", engine="h5netcdf") as tree:
        for panel in layout.panels:
            np.testing.assert_array_equal(tree[panel.name].trace, numbers.panels[panel.name].trace)

    about = json.loads((folder / f"{name}-tiny.json").read_text(encoding="utf-8"))
    assert {task["key"] for task in about["tasks"]} == {task.key for task in layout.plan.tasks}
    assert about["sweep"]["digest"] == layout.plan.digest
    assert not any("reference" in task for task in about["tasks"])


@pytest.mark.parametrize("figure", ["fig1"], indirect=True)
def test_reference_runs_are_taken_and_told_unless_fresh(figure, tmp_path, monkeypatch):
    name, layout, _, store = figure
    monkeypatch.setitem(figures.load(name).PRESETS, "tiny", TINY)
    text = references.written(*vars(references.of_store(store, "0123456789abcdef")).values())
    known = references.read(text)
    monkeypatch.setattr(references, "shipped", lambda: [known])
    out = tmp_path / "out"
    arguments = ["figure", name, "--preset", "tiny", "--workers", "1", "--out", str(out)]
    lent = CliRunner().invoke(main, arguments)
    assert lent.exit_code == 0, lent.output
    assert f"{len(layout.plan.tasks)} of {len(layout.plan.tasks)} tasks come from the reference runs" in lent.stderr
    about = json.loads((out / f"{name}-tiny.json").read_text(encoding="utf-8"))
    assert all(task["reference"] == known.when for task in about["tasks"])
    assert about["references"][known.when]["commit"] == "0123456789abcdef"
    again = CliRunner().invoke(main, arguments)
    assert "come from the reference runs" in again.stderr
    shutil.copy(store, out / f"{name}-tiny-fresh.sqlite")
    fresh = CliRunner().invoke(main, [*arguments, "--fresh"])
    assert "come from the reference runs" not in fresh.stderr
    assert fresh.stdout == lent.stdout


def test_a_reference_is_the_store_to_the_last_bit(figure):
    _, layout, _, store = figure
    known = references.of_store(store, "abc")
    again = references.read(references.written(known.provenance, known.rows))
    assert again.rows.keys() == {task.key for task in layout.plan.tasks}
    for key, row in known.rows.items():
        for variable, values in row.items():
            assert again.rows[key][variable].dtype == values.dtype
            np.testing.assert_array_equal(again.rows[key][variable], values)


def test_other_widths_are_another_sweep_in_the_same_store():
    module = figures.load("fig1")
    plans = [Layout.of("fig1", module.panels(size)).plan for size in (TINY, TINY.at([2, 10]))]
    assert plans[0].name != plans[1].name
    common = set.intersection(*({task.key for task in plan.tasks} for plan in plans))
    assert len(common) > len(plans[0].tasks) / 2


@pytest.mark.parametrize("preset", ["quick", "paper"])
@pytest.mark.parametrize("name", PLANNED)
def test_presets_can_be_laid_out(name, preset):
    """Every combination is served: nobody waits an hour to be told that one is not."""
    module = figures.load(name)
    layout = Layout.of(name, module.panels(module.PRESETS[preset]))
    if preset == "paper":
        assert {panel.problem.d for panel in layout.panels} == {450}
    else:
        assert all(one.dots.draws >= 3 for _, one in series_of(layout))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("fig1", "--preset", "slow"), "--preset"),
        (("fig1", "--width", "0"), "--width"),
        (("fig1", "--width", "1:2"), "--width"),
        (("fig1", "--workers", "0"), "workers"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(options, told, tmp_path):
    result = CliRunner().invoke(main, ["figure", *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.rglob("*.png"))


def test_style_is_not_left_behind(figure):
    import matplotlib as mpl

    def settings():
        return {name: mpl.rcParams[name] for name in mpl.rcParams if name != "backend"}  # to ask for it is to set it

    before = settings()
    figures.load(figure[0]).plot(figure[2].panels)
    assert settings() == before
    with pictures.style():
        assert mpl.rcParams["axes.grid"]


def test_legend_covers_no_frame_and_no_two_names_touch(figure):
    name, _, numbers, _ = figure
    picture = figures.load(name).plot(numbers.panels)
    picture.draw_without_rendering()
    (legend,) = picture.legends
    for axes in picture.axes:
        assert not legend.get_window_extent().overlaps(axes.get_window_extent())
        boxes = [text.get_window_extent() for text in axes.texts]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:i])

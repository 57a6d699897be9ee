"""Figures of panels at a small d: numbers are those of the verbs, files are complete, pictures can be read."""

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import lazyscope as ls
from lazyscope.cli import main
from lazyscope.experiments import load
from lazyscope.experiments.frame import references
from lazyscope.experiments.frame.experiment import compute, plan_of
from lazyscope.experiments.frame.judgement import judged
from lazyscope.experiments.frame.predicted import is_predicted
from lazyscope.experiments.lazy import fig1, fig2, fig3, fig_activations, fig_nondiagonal, tables
from lazyscope.experiments.lazy.design import Dots
from lazyscope.protocols import SGD
from lazyscope.runs import pictures

PLANNED = {module.EXPERIMENT.name: module for module in (fig1, fig2, fig3, fig_activations, fig_nondiagonal)}


@pytest.fixture(scope="module", params=PLANNED)
def figure(request, tiny, sizes):
    """The name of a figure, its panels, its numbers and the store that holds them."""
    name = request.param
    return name, PLANNED[name].panels(sizes[name]), tiny(name), tiny.store(name)


def series_of(panels):
    return [(panel, one) for panel in panels for one in panel.series]


def test_lines_are_limits(figure):
    _, panels, numbers, _ = figure
    for panel, one in series_of(panels):
        line = numbers.panels[panel.name].limit.sel(series=one.label)
        try:
            expected = ls.limit(panel.problem, one.regime, rho=line.rho.values).risk.values
        except ls.NoTheorem:
            expected = np.nan
        np.testing.assert_array_equal(line, expected)


def test_crosses_and_dots_are_those_of_the_verbs(figure):
    _, panels, numbers, _ = figure
    for panel, one in series_of(panels)[:4]:
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
        away = float(data.simulated.sel(width=N) - data.predicted.sel(width=N))
        assert float(data.difference.sel(width=N)) == pytest.approx(away, abs=1e-12)


def test_random_features_are_predicted_from_the_exact_risk_of_their_own_weights(figure):
    _, panels, numbers, _ = figure
    for panel, one in series_of(panels)[:1]:
        data, N, n = numbers.panels[panel.name].sel(series=one.label), one.dots.widths[0], one.dots.samples
        exact = ls.exact(panel.problem, one.regime, width=N, draws=one.dots.draws).risk.item()
        assert float(data.predicted.sel(width=N)) == pytest.approx(exact * (1.0 + N / (n - N - 1)), rel=1e-6)


def test_a_tangent_model_is_predicted_as_by_finite_step(figure):
    """Descent and its noise from a spectrum, against the limit theorem of SGD: two routes to one number."""
    name, panels, _, _ = figure
    if name != "fig1":
        return
    (nt,) = [one for one in panels[0].series if one.label == "NT"]
    for draw in panels[0].predictions(nt, nt.dots.widths[-1]):
        (formula, _, allowed), (spectrum, _, allowed_too) = draw._by_formula(), draw._by_spectrum()
        left_out = allowed + allowed_too
        assert np.all(left_out < 0.05 * formula)  # else nothing would be tested
        np.testing.assert_array_less(np.abs(spectrum - formula), left_out)


def test_order_of_the_regimes(figure):
    """L, Figures 1 to 3: trained features beat the tangent model, which beats isotropic random features."""
    _, panels, numbers, _ = figure
    for panel in panels:
        data = numbers.panels[panel.name]
        rf, nt, nn = (data.exact.sel(series=label).values for label in (panel.series[0].label, "NT", "NN"))
        slack = 0.03  # RF at N = 10d has as many features as there are quadratic monomials, here
        both = data.width.values <= panel.problem.d
        assert np.all((nt <= rf + slack)[both])
        assert np.all((nn <= nt + 1e-3) | np.isnan(nn))
        if "bayes" in data:
            assert np.nanmin(data.limit) > float(data.bayes)


def test_an_odd_activation_never_sees_the_target(sizes):
    (panel,) = [panel for panel in fig_activations.panels(sizes["fig-activations"]) if panel.name == "tanh"]
    for one in panel.series:
        assert ls.exact(panel.problem, one.regime, width=15).risk.item() == pytest.approx(1.0, abs=1e-9)


def test_the_non_diagonal_mixture_has_no_better_diagonal_covariance_than_the_isotropic_one(sizes):
    mixture = fig_nondiagonal.panels(sizes["fig-nondiagonal"])[0].problem
    risks = [
        ls.limit(mixture, ls.RandomFeatures(weights=weights), rho=np.inf).risk.item()
        for weights in (np.diagonal(mixture.Delta).copy(), None, "optimal")
    ]
    assert risks[0] == pytest.approx(risks[1], rel=1e-12)
    assert risks[2] < risks[1] - 0.05
    assert mixture.information == pytest.approx(ls.GaussianMixture.three_level(20, seed=0).information)


def test_verdict_names_a_dot_that_is_too_far(figure):
    _, panels, numbers, _ = figure
    found, name = judged(tables.dots_of(numbers.panels)), panels[0].name
    assert len(found.dots) == sum(len(one.dots.widths) for _, one in series_of(panels))
    assert len(found.counted) == sum(
        len(one.dots.widths) for _, one in series_of(panels) if one.label.startswith("RF") or is_predicted(one.regime)
    )
    at = numbers.panels[name]

    def told(**changed):
        moved = {**numbers.panels, name: at.copy(deep=True)}
        for variable, value in changed.items():
            moved[name][variable][0, 0] = value
        return tables.verdict(moved)[-1]

    stderr, allowance = float(at.stderr[0, 0]), float(at.allowance[0, 0])
    far = told(measured=at.foretold[0, 0] + (at.measured - at.foretold)[0, 0] + 60.0 * stderr + allowance)
    assert "too far" in far and "z = +" in far and not far.holds
    loose = judged(tables.dots_of({**numbers.panels, name: at.assign(allowance=at.predicted)}))
    assert len(loose.counted) < len(found.counted)
    blind = {key: panel.assign(predicted=np.nan * panel.predicted) for key, panel in numbers.panels.items()}
    assert "0 of" in tables.verdict(blind)[-1] and "too few predicted" in tables.verdict(blind)[-1]


def command(tmp_path, store, name, *options):
    """Run the command in a folder that has the results already, so that nothing is computed twice."""
    folder = tmp_path / "new" / "folder"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(store, folder / f"{name}-tiny.sqlite")
    arguments = ["figure", name, "--preset", "tiny", "--workers", "1", "--out", str(folder), *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return folder, result


def test_command_writes_picture_numbers_and_provenance(figure, sizes, tmp_path, monkeypatch):
    name, panels, numbers, store = figure
    monkeypatch.setitem(load(name).presets, "tiny", sizes[name])
    folder, result = command(tmp_path, store, name)
    assert {path.suffix for path in folder.iterdir()} == {".png", ".pdf", ".csv", ".nc", ".json", ".sqlite"}
    assert "\n".join(load(name).verdict(numbers.panels)) in result.stdout

    lines = (folder / f"{name}-tiny.csv").read_text(encoding="utf-8").splitlines()
    comments = [line for line in lines if line.startswith("# ")]
    assert comments[0] == f"# lazyscope {ls.__version__}"
    assert f"figure {name}" in comments[1]
    rows = list(csv.DictReader(lines[len(comments) :]))
    for panel, one in series_of(panels):
        data = numbers.panels[panel.name].sel(series=one.label)
        for fidelity, values in (("exact", data.exact), ("simulate", data.simulated)):
            mine = [row for row in rows if (row["panel"], row["regime"], row["fidelity"])
                    == (panel.name, one.label, fidelity)]  # fmt: skip
            assert [float(row["risk"]) for row in mine] == values.values[np.isfinite(values)].tolist()
            assert all(f"{float(row['risk']):.4f}" in result.stdout for row in mine)

    with xr.open_datatree(folder / f"{name}-tiny.nc", engine="h5netcdf") as tree:
        for panel in panels:
            np.testing.assert_array_equal(tree[panel.name].trace, numbers.panels[panel.name].trace)

    about = json.loads((folder / f"{name}-tiny.json").read_text(encoding="utf-8"))
    assert {task["key"] for task in about["sweep"]["tasks"]} == {task.key for task in numbers.plan.tasks}
    assert about["sweep"]["digest"] == numbers.plan.digest
    assert not any("reference" in task for task in about["sweep"]["tasks"])


@pytest.mark.parametrize("figure", ["fig1"], indirect=True)
def test_reference_runs_are_taken_and_told_unless_fresh(figure, sizes, tmp_path, monkeypatch):
    name, _, numbers, store = figure
    monkeypatch.setitem(load(name).presets, "tiny", sizes[name])
    text = references.written(*vars(references.of_store(store, "0123456789abcdef")).values())
    known = references.read(text)
    monkeypatch.setattr(references, "shipped", lambda: [known])
    out = tmp_path / "out"
    arguments = ["figure", name, "--preset", "tiny", "--workers", "1", "--out", str(out)]
    lent = CliRunner().invoke(main, arguments)
    assert lent.exit_code == 0, lent.output
    assert f"{len(numbers.plan.tasks)} of {len(numbers.plan.tasks)} tasks come from the reference runs" in lent.stderr
    about = json.loads((out / f"{name}-tiny.json").read_text(encoding="utf-8"))
    assert all(task["reference"] == known.when for task in about["sweep"]["tasks"])
    assert about["references"][known.when]["commit"] == "0123456789abcdef"
    again = CliRunner().invoke(main, arguments)
    assert "come from the reference runs" in again.stderr
    shutil.copy(store, out / f"{name}-tiny-fresh.sqlite")
    fresh = CliRunner().invoke(main, [*arguments, "--fresh"])
    assert "come from the reference runs" not in fresh.stderr
    assert fresh.stdout == lent.stdout


def test_a_reference_is_the_store_to_the_last_bit(figure):
    _, _, numbers, store = figure
    known = references.of_store(store, "abc")
    again = references.read(references.written(known.provenance, known.rows))
    assert again.rows.keys() == {task.key for task in numbers.plan.tasks}
    for key, row in known.rows.items():
        for variable, values in row.items():
            assert again.rows[key][variable].dtype == values.dtype
            np.testing.assert_array_equal(again.rows[key][variable], values)


def test_other_widths_are_another_sweep_in_the_same_store(sizes):
    fig = fig1.EXPERIMENT
    moved = fig.at_widths(sizes["fig1"], [2, 10])
    plans = [plan_of("fig1", fig.work(size))[0] for size in (sizes["fig1"], moved)]
    assert plans[0].name != plans[1].name
    common = set.intersection(*({task.key for task in plan.tasks} for plan in plans))
    assert len(common) > len(plans[0].tasks) / 2


@pytest.mark.parametrize("name", PLANNED)
def test_presets_are_the_papers_and_have_draws_to_judge_by(name):
    presets = load(name).presets
    assert {panel.problem.d for panel in PLANNED[name].panels(presets["paper"])} == {450}
    assert all(one.dots.draws >= 3 for _, one in series_of(PLANNED[name].panels(presets["quick"])))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("fig1", "--preset", "slow"), "--preset"),
        (("fig1", "--width", "0"), "--width"),
        (("fig1", "--width", "1:2"), "--width"),
        (("fig1", "--workers", "0"), "workers"),
        (("coupling", "--width", "5"), "--width"),
        (("coupling", "--fresh"), "--fresh"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(options, told, tmp_path):
    result = CliRunner().invoke(main, ["figure", *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.rglob("*.png"))


def test_lines_of_the_table_are_told_as_their_dots_arrive(sizes, tmp_path):
    """The first dot of the table first; each with the numbers that it has at the end, and none in a second run."""
    small = replace(
        sizes["fig1"], fitted=Dots((2, 4), 2, samples=500), tangent=Dots((2,), 2, protocol=SGD(steps=20, test=50)),
        trained=Dots((2,), 2, protocol=SGD(steps=20, test=50)), ratios=(0.5,), draws=2,
    )  # fmt: skip
    told, again = [], []
    found = compute("fig1", load("fig1"), small, tmp_path / "s.sqlite", 1, tell=told.append)
    compute("fig1", load("fig1"), small, tmp_path / "s.sqlite", 1, tell=again.append)
    table, label = {}, ""
    for line in tables.verdict(found.panels)[4:]:
        if not line[:1].isspace():
            label = line[:21].strip()
        if label:
            table[label, line[21:].split()[0] if line[21:].split() else ""] = line[21:].split()
    lines = [line.removeprefix("quadratic: ") for line in told]
    keys = [(line[:22].strip(), line[22:].split()[0]) for line in lines]
    assert keys[0] == ("RF, isotropic weights", "2") and len(keys) == len(set(keys)) == 6
    assert all(line[22:].split() == table[key] for key, line in zip(keys, lines, strict=True))
    assert again == []


def test_style_is_not_left_behind(figure):
    import matplotlib as mpl

    def settings():
        return {name: mpl.rcParams[name] for name in mpl.rcParams if name != "backend"}  # to ask for it is to set it

    before = settings()
    load(figure[0]).plot(figure[2].panels)
    assert settings() == before
    with pictures.style():
        assert mpl.rcParams["axes.grid"]


def test_legend_covers_no_frame_and_no_two_names_touch(figure):
    name, _, numbers, _ = figure
    picture = load(name).plot(numbers.panels)
    picture.draw_without_rendering()
    (legend,) = picture.legends
    for axes in picture.axes:
        assert not legend.get_window_extent().overlaps(axes.get_window_extent())
        boxes = [text.get_window_extent() for text in axes.texts]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:i])

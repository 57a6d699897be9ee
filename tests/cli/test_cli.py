"""The command line says what the Python interface computes, and refuses in one line."""

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import lazyscope as ls
from lazyscope import experiments
from lazyscope.evidence.errata import ERRATA

from .conftest import refused, run

COMMANDS = [
    [],
    ["limit"],
    ["limit", "quadratic"],
    ["limit", "mixture"],
    ["limit", "linear"],
    ["limit", "labels"],
    ["exact"],
    ["exact", "quadratic"],
    ["exact", "mixture"],
    ["simulate"],
    ["simulate", "quadratic"],
    ["simulate", "mixture"],
    ["simulate", "linear"],
    ["simulate", "labels"],
    ["simulate", "parity"],
    ["simulate", "monomial"],
    ["compare"],
    ["compare", "quadratic"],
    ["compare", "mixture"],
    ["compare", "linear"],
    ["compare", "labels"],
    ["flow"],
    ["flow", "quadratic"],
    ["report"],
    ["report", "interpolation"],
    ["report", "lazy-to-rich"],
    ["report", "mean-field"],
    ["sweep"],
    ["sweep", "run"],
    ["sweep", "status"],
    ["sweep", "export"],
    ["claims"],
    ["cite"],
    ["errata"],
    ["bench"],
    ["lens"],
    ["forecast"],
    ["explore"],
    ["figure"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command):
    assert "Usage: " in run(*command, "--help").stdout


def test_help_offers_infinite_sizes_to_theorems_alone_and_points_at_nothing_that_is_not_there():
    assert " inf," in run("limit", "harmonic", "--help").stdout
    said = " ".join(run("simulate", "linear", "--help").stdout.split())
    assert " inf," not in said and "likewise" not in said and "λ: a number, start:stop:count," in said


@pytest.mark.parametrize(
    ("samples", "shown"), [("50", "; n = 50"), ("1000", "; n = 1,000"), ("inf", "; n = ∞"), ("9,50", "")]
)
def test_a_single_number_of_samples_stands_above_the_table(samples, shown):
    printed = run("limit", "spectral", "--samples", samples, "--width", "10").stdout.splitlines()
    assert printed[0].endswith("; RF, σ = square" + shown)
    assert (" n " in printed[1]) == (not shown)


def test_a_table_of_an_enormous_width_keeps_its_columns():
    line = run("limit", "quadratic", "--d", "450", "--rho", "1e300").stdout.splitlines()[3]
    assert line.split() == ["1e+300", "4.5e+302", "0.51119", "0.00000", "0.00000"]


def test_version():
    assert ls.__version__ in run("--version").stdout


def test_it_runs_as_a_module():
    words = [sys.executable, "-m", "lazyscope", "limit", "quadratic", "--d", "20", "--rho", "0.5", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == run(*words[3:]).stdout


def test_help_loads_nothing_heavy():
    heavy = ("numpy", "scipy", "xarray", "matplotlib", "rich", "h5py", "pandas")
    of_claims = heavy[1:]  # a command that is made from declarations must read them
    script = (
        "import sys\nfrom lazyscope.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*[name for name in sys.modules if '.' not in name or name == 'lazyscope.evidence.registry'])"
    )
    for command, never in ((["--help"], {*heavy, "lazyscope.evidence.registry"}), (["limit", "--help"], {*of_claims}),
                           (["limit", "quadratic", "--help"], {*of_claims})):  # fmt: skip
        done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=True)
        assert "Usage: " in done.stdout
        assert not never & {*done.stdout.splitlines()[-1].split()}


LIMIT = ("limit", "mixture", "--d", 20, "--target-seed", 3, "--rho", "0.1,2,inf")
EXACT = ("exact", "quadratic", "--d", 20, "--width", "2,40", "--draws", 2, "--seed", 5)


def test_json_is_what_python_computes():
    document = json.loads(run(*LIMIT, "--weights", "optimal", "--json").stdout)
    problem = ls.GaussianMixture.three_level(20, seed=3)
    regimes = (ls.RandomFeatures(weights="optimal"), ls.NeuralTangent(), ls.Trained())
    expected = [*(ls.limit(problem, regime, rho=[0.1, 2.0, np.inf]) for regime in regimes), ls.bayes(problem)]
    assert document["problem"] == str(problem)
    for record, result in zip(document["results"], expected, strict=True):
        assert record["data"]["risk"] == result.risk.values.tolist()
        assert record["attrs"] == result.attrs
        assert record["claim"] == result.attrs["claim"]
        assert record["citations"] == result.attrs["citations"].split(",")
    assert document["results"][0]["coords"]["rho"] == [0.1, 2.0, "inf"]


def test_exact_json_is_what_python_computes():
    document = json.loads(run(*EXACT, "--regime", "nt,rf", "--activation", "relu", "--json").stdout)
    problem = ls.QuadraticTarget.exponential(20)
    assert [record["regime"] for record in document["results"]] == ["NT", "RF"]
    for record, regime in zip(document["results"], (ls.NeuralTangent("relu"), ls.RandomFeatures("relu")), strict=True):
        result = ls.exact(problem, regime, width=[2, 40], draws=2, seed=5)
        assert record["data"]["risk"] == result.risk.values.tolist()
        assert record["data"]["stderr"] == result.stderr.values.tolist()


def test_defaults_are_the_papers_problems():
    for kind, problem in (("quadratic", ls.QuadraticTarget.exponential(450, 100)),
                          ("mixture", ls.GaussianMixture.three_level(450, 0))):  # fmt: skip
        document = json.loads(run("limit", kind, "--json").stdout)
        assert document["problem"] == str(problem)
        assert document["results"][0]["coords"]["rho"] == np.linspace(0.05, 2, 40).tolist()
        assert [record["regime"] for record in document["results"]] == ["RF", "NT", "NN", "Bayes"][
            : 3 + (kind[0] == "m")
        ]


@pytest.mark.parametrize(("command", "digits"), [(LIMIT, 5), (EXACT, 4)])
def test_table_csv_and_json_agree(here, command, digits):
    table = run(*command, "--out", "a.csv").stdout
    run(*command, "--out", "a.json")
    lines = [line for line in (here / "a.csv").read_text().splitlines() if not line.startswith("# ")]
    rows = list(csv.DictReader(lines))
    printed = run(*command, "--json").stdout
    assert json.loads(printed)["results"] == json.loads((here / "a.json").read_text())["results"]
    for record in json.loads(printed)["results"]:
        risks = np.atleast_1d(record["data"]["risk"]).tolist()
        assert [float(row["risk"]) for row in rows if row["regime"] == record["regime"]] == risks
        assert all(f"{risk:.{digits}f}" in table for risk in risks)
        assert record["theorem"] in table
    assert table.startswith(json.loads(printed)["problem"])


def test_table_shows_errata_and_standard_errors():
    assert "erratum: Eq. 13" in run("limit", "quadratic", "--d", 20, "--rho", 0.5).stdout
    assert re.search(r"0\.\d{4} ± 0\.\d{4}", run(*EXACT).stdout)
    assert "∞" in run(*LIMIT).stdout


def test_targets_come_from_files(here):
    B = np.diag([3.0, 2.0, 1.0, 1.0])
    np.save("B.npy", B)
    Path("delta.csv").write_text("0.3,0.2,0.2\n")
    Path("sigma.csv").write_text("1 1 2\n")
    Path("gamma.csv").write_text("1;2;3;4\n")
    document = json.loads(run("limit", "quadratic", "--B", "B.npy", "--rho", 0.5, "--json").stdout)
    for record, regime in zip(
        document["results"], (ls.RandomFeatures(), ls.NeuralTangent(), ls.Trained()), strict=True
    ):
        assert record["data"]["risk"] == ls.limit(ls.QuadraticTarget(B), regime, rho=[0.5]).risk.values.tolist()
    result = run("limit", "mixture", "--delta", "delta.csv", "--sigma", "sigma.csv", "--rho", 1, "--json")
    mixture = ls.GaussianMixture([0.3, 0.2, 0.2], [1.0, 1.0, 2.0])
    assert json.loads(result.stdout)["problem"] == str(mixture)
    assert "note: nt is left out. The limit of Theorem 5 assumes Σ = I." in result.stderr
    document = json.loads(
        run("limit", "quadratic", "--B", "B.npy", "--rho", 1, "--weights", "gamma.csv", "--json").stdout
    )
    law = ls.RandomFeatures(weights=[1.0, 2.0, 3.0, 4.0])
    assert document["results"][0]["data"]["risk"] == [float(ls.limit(ls.QuadraticTarget(B), law, rho=1).risk)]


def test_regimes_without_a_theorem_are_left_out_with_a_note_unless_they_were_named():
    result = run("limit", "quadratic", "--d", 20, "--rho", 1, "--activation", "relu", "--json")
    assert [record["regime"] for record in json.loads(result.stdout)["results"]] == ["RF"]
    assert [line[:33] for line in result.stderr.splitlines()] == [
        "lazyscope: note: nt is left out. ",
        "lazyscope: note: nn is left out. ",
    ]
    assert "Theorem 2 assumes" in refused("limit", "quadratic", "--activation", "relu", "--regime", "rf,nt")
    result = run("exact", "mixture", "--d", 20, "--width", 5, "--activation", "sign")
    assert result.stderr.count("is left out") == 2


def test_only_ranges_of_widths_are_rounded():
    document = json.loads(run("exact", "quadratic", "--d", 9, "--width", "2:20:4log", "--json").stdout)
    assert document["results"][0]["coords"]["width"] == [2, 4, 9, 20]


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_pictures(here, suffix):
    run(*LIMIT, "--plot", f"a{suffix}")
    magic = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix]
    first = (here / f"a{suffix}").read_bytes()
    assert first.startswith(magic)
    run(*LIMIT, "--plot", f"a{suffix}", "--force")
    assert (here / f"a{suffix}").read_bytes() == first, "one command, one file"


def test_a_picture_without_a_name(here):
    assert run(*EXACT, "--plot").stderr == "wrote lazyscope-exact-quadratic.png\n"
    assert [path.name for path in here.iterdir()] == ["lazyscope-exact-quadratic.png"]


def test_claims_lists_the_registry():
    listed = json.loads(run("claims", "--json").stdout)
    assert [claim["key"] for claim in listed] == [claim.key for claim in (*ls.claims(), *ls.statements())]
    exact = json.loads(run("claims", "--fidelity", "exact", "--json").stdout)
    assert {claim["fidelity"] for claim in exact} == {"exact"}
    table = run("claims").stdout
    assert all(claim.theorem.split()[0] in table for claim in ls.claims())
    assert all(one.number.split()[0] in table for one in ls.statements())


def test_the_beginning_of_a_key_lists_what_has_it():
    keys = [claim.key for claim in ls.claims() if claim.key.startswith("limit/LinearLabels")]
    assert len(keys) > 2
    assert [claim["key"] for claim in json.loads(run("claims", "limit/linearlabels", "--json").stdout)] == keys
    table = run("claims", "limit/LinearLabels").stdout
    assert table.count("LinearLabels") == len(keys) and "GaussianMixture" not in table
    assert "Lemma 14" in run("claims", "report/coupling").stdout


def test_cite_prints_each_entry_once():
    printed = run("cite", "limit/LinearLabels", "report/landscape/lemma-1", "bai2020beyond").stdout
    cited = {key for claim in ls.claims() if claim.key.startswith("limit/LinearLabels") for key in claim.citations}
    assert {line.split("{")[1].rstrip(",") for line in printed.splitlines() if line.startswith("@")} == {
        *cited,
        "bai2020beyond",
    }
    assert printed.count("@") == len(cited) + 1


def test_errata_are_those_of_the_documentation():
    page = Path(__file__).parents[2].joinpath("docs/errata.md").read_text(encoding="utf-8")
    rows = [
        tuple(cell.strip() for cell in line.strip("|\n").split("|"))
        for line in page.splitlines()
        if line.startswith("| ")
    ]
    printed = json.loads(run("errata", "--json").stdout)
    assert rows[1:] == [(erratum["place"], erratum["printed"], erratum["right"]) for erratum in printed]
    notes = {erratum.note for erratum in ERRATA}
    assert {claim.erratum for claim in ls.claims()} <= notes
    assert all(erratum.place.split(",")[0] in run("errata").stdout for erratum in ERRATA)


def test_every_claim_is_shown_in_full_with_its_bibtex():
    for claim in ls.claims():
        shown = run("claims", claim.key).stdout
        assert claim.theorem in shown
        assert all(f"{{{key}," in shown for key in claim.citations)
        assert all(text in shown for text in claim.assumptions)


def test_figures_are_listed():
    lines = run("figure", "--list").stdout.splitlines()
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names[:5] == ["fig1", "fig2", "fig3", "fig-nondiagonal", "fig-activations"]
    assert names == list(experiments.load_all()), "in the order of the papers, each with its costs below it"
    assert all("quick: " in line and ("paper: " in line or "full: " in line) for line in lines[1::2])


def test_the_default_range_starts_at_one_neuron():
    for d in (1, 3, 10, 100):
        assert run("limit", "quadratic", "--d", d, "--regime", "nn").stdout


def test_simulate_says_what_python_computes(here):
    common = ("--d", 12, "--width", "4,20", "--samples", 4000, "--draws", 2, "--seed", 3)
    said = json.loads(
        run("simulate", "quadratic", *common, "--batch", 20, "--step-sizes", "0.005,0.01", "--json").stdout
    )
    target, changed = ls.QuadraticTarget.exponential(12), {"batch": 20, "step_sizes": (0.005, 0.01)}
    size = {"width": [4, 20], "samples": 4000, "draws": 2, "seed": 3}
    for record, regime in zip(said["results"], (ls.RandomFeatures(), ls.NeuralTangent(), ls.Trained()), strict=True):
        options = (
            size if regime.label == "RF" else size | {"protocol": replace(ls.SGD.paper(target, regime), **changed)}
        )
        assert record["data"]["risk"] == pytest.approx(ls.simulate(target, regime, **options).risk.values, rel=1e-6)
    run("simulate", "quadratic", *common, "--step-sizes", "0.01", "--out", "all.nc", "--plot")
    with xr.open_datatree("all.nc", engine="h5netcdf") as tree:
        assert list(tree.children) == ["RF", "NT", "NN"]
        assert tree["NN"].trace.dims == ("width", "samples")
    assert Path("lazyscope-simulate-quadratic.png").stat().st_size > 10_000


def test_simulate_leaves_out_what_it_cannot_do_and_refuses_what_was_asked():
    jumps = ("simulate", "mixture", "--d", 12, "--width", 4, "--activation", "sign")
    result = run(*jumps, "--samples", 500)
    assert "nn is left out. No simulate result is implemented for GaussianMixture" in result.stderr
    assert "simulate serves JointTangent, MeanField, NeuralTangent, RandomFeatures, Trained" in refused(
        *jumps, "--regime", "nn"
    )
    assert "positive" in refused("simulate", "quadratic", "--d", 12, "--width", 4, "--step-sizes", "-1")


def test_every_regime_of_a_problem_can_be_drawn(here):
    """Both layers of the linearisation among them, which once had no colour."""
    run("limit", "quadratic", "--d", "9", "--rho", "0.3,0.6", "--regime", "rf,nt,joint,nn", "--plot", "all.png")
    assert Path("all.png").stat().st_size > 1000

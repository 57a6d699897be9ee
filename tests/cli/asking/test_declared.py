"""Commands are made from declarations: what another package brings is there without a line changed here."""

import csv
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import sweep
from lazyscope.cli.asking import declared
from lazyscope.cli.asking.plan_file import read_plan
from lazyscope.evidence import registry
from lazyscope.evidence.claim import of_run
from lazyscope.problems import Option, SizedProblem
from lazyscope.protocols import TrainingProtocol
from lazyscope.regimes import Regime

from ..conftest import run  # noqa: TID252 (tests are no package that could be named)


@dataclass(frozen=True, eq=False)
class Coin(SizedProblem):
    """A problem of somebody else."""

    word: ClassVar[str] = "coin"
    title: ClassVar[str] = "biased coin"
    formula: ClassVar[str] = "y = 1 with probability p"
    options: ClassVar[tuple[Option, ...]] = (
        Option("d", int, 3, "Tosses."),
        Option("bias", float, 0.5, "p."),
        Option("coins", Path, None, "File with one p for each.", replaces=("bias",)),
    )
    d: int = 3
    bias: float = 0.5

    def __str__(self):
        return f"coin with bias {self.bias:g}"


@dataclass(frozen=True, eq=False)
class Guess(Regime):
    """A regime of somebody else."""

    times: int = 1
    label: ClassVar[str] = "Guess"
    words: ClassVar = {"guess": {}, "twice": {"times": 2}}
    options: ClassVar = (
        Option("luck", float, None, "How lucky."),
        Option("hand", ("left", "right"), "left", "Which one."),
        Option("bias", float, None, "The same as the problem's: one option for both."),
    )
    luck: float = 1.0
    hand: str = "left"
    bias: float = 0.0

    def __str__(self):
        return "guess" if self.times == 1 else "two guesses"


@dataclass(frozen=True)
class Tosses(TrainingProtocol):
    """A protocol of somebody else."""

    word: ClassVar[str] = "tosses"
    options: ClassVar = (Option("hands", int, None, "Hands that toss."),)
    hands: int = 1


def risk(problem, regime, run):
    hands = 1 if run.protocol is None else run.protocol.hands
    return {"risk": np.array([problem.bias * regime.times * regime.luck * hands / run.whole("width")])}


CLAIM = ls.Claim(
    fidelity="simulate", problem=Coin, regime=Guess, title="guessing", theorem="by luck",
    citations=("ghorbani2019limitations",), assumptions=("a fair day",), arguments=("width", "samples"),
    optional=("samples",), protocol=Tosses, compute=of_run(risk), example=lambda d: (Coin(d), Guess()),
)  # fmt: skip
EXACT = replace(CLAIM, fidelity="exact", arguments=("width",), optional=(), protocol=None)


@pytest.fixture
def coin(monkeypatch):
    # private: there is no way to take a registered claim back, and none is wanted
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    ls.register(CLAIM)
    ls.register(EXACT)


def test_a_problem_of_another_package_is_a_command_of_the_verbs_that_serve_it(coin):
    assert "Biased coin: y = 1 with probability p." in run("simulate", "--help").stdout
    assert "coin" in run("compare", "--help").stdout
    assert "No such command 'coin'" in run("limit", "coin", code=2).stderr
    said = " ".join(run("simulate", "coin", "--help").stdout.split())
    assert "Which of guess, twice, with commas; guess,twice by default." in said
    for option in ("--bias FLOAT p. [default: 0.5]", "--luck FLOAT", "--hands INTEGER", "--width TEXT", "--samples"):
        assert option in said
    record = json.loads(run("simulate", "coin", "--width", "2,4", "--hands", 3, "--luck", 0.5, "--json").stdout)
    assert [one["data"]["risk"] for one in record["results"]] == [[0.375, 0.1875], [0.75, 0.375]]
    assert re.search(r"N/d +N +Guess", run("exact", "coin", "--regime", "twice", "--width", 2).stdout)
    assert "--hands" not in run("exact", "coin", "--help").stdout


def test_what_it_declares_is_checked_as_everything_is(coin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for args, told in (
        (("--regime", "nn"), "name each of guess, twice at most once"),
        (("--coins", "a.csv", "--bias", "0.2"), "--coins parameter of lazyscope exact coin must stand alone"),
        (("--coins", "a.csv"), "no such file"),
        (("--bias", "much"), "'much' is not a valid float"),
        (("--width", "0"), "positive whole number"),
        (("--hand", "up"), "--hand parameter of lazyscope exact coin must be left, or right. Got 'up'"),
    ):
        assert told in run("exact", "coin", *args, code=2).stderr, args


def test_it_is_known_to_plans_too(coin, tmp_path):
    path = tmp_path / "coin.toml"
    path.write_text(
        'problem = "coin"\nbias = 0.25\nregime = ["guess", "twice"]\nluck = 2.0\nfidelity = "simulate"\n'
        "width = [1, 2]\n[tosses]\nhands = [1, 2]\n"
    )
    assert len(read_plan(path).tasks) == 2 * 2 * 2


PLANS = {
    'problem = "linear"\nnoise = 0.5\nd = [5, 6]\nregime = "rf"\nactivation = "tanh"\nsamples = 9\n'
    'ridge = "0.1:1:2"\n': (
        [ls.LinearTarget(noise=0.5)], ls.RandomFeatures("tanh"),
        [{"d": d, "ridge": [0.1, 1.0], "samples": 9} for d in (5, 6)],
    ),
    'problem = "labels"\nsignal = 4.0\nregime = ["isotropic"]\nd = 6\n': (
        [ls.LinearLabels(4.0)], ls.IsotropicFeatures(), [{"d": 6, "samples": 12, "method": "margin"}],
    ),
    'problem = "parity"\nd = [6, 8]\nregime = "randomized"\nnoisy_sgd.steps = 7\n': (
        [ls.SparseParity(6), ls.SparseParity(8)], ls.Taylor(2, "relu3"),
        [{"samples": 400, "protocol": ls.NoisySGD(steps=7)}],
    ),
    'problem = "monomial"\nd = 6\ndegree = 2\nregime = "nn"\nsamples = 50\n': (
        [ls.RidgeMonomial(6, 2)], ls.Trained("relu3"), [{"samples": 50}],
    ),
    'problem = "quadratic"\nd = 6\nregime = "mf"\n[descent]\nbound = 2.0\n': (
        [ls.QuadraticTarget.exponential(6)], ls.MeanField("square"),
        [{"samples": 1000, "protocol": ls.ParticleDescent(bound=2.0)}],
    ),
    'problem = "quadratic"\nd = 6\nregime = "nn"\nalpha = 3.0\n': (
        [ls.QuadraticTarget.exponential(6)], ls.Trained(alpha=3.0), [{}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", PLANS, ids=lambda text: text.split('"')[1])
def test_plans_know_every_problem_and_every_regime(text, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(text.replace("\nregime", '\nfidelity = "simulate"\nwidth = [2, 4]\nregime', 1))
    problems, regime, settings = PLANS[text]
    same = [
        sweep.Plan.grid("a", [problem], [regime], ["simulate"], widths=[2, 4], **how)
        for problem in problems
        for how in settings
    ]
    assert read_plan(path).digest == sweep.Plan.union("a", same).digest


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('problem = "linear"\nregime = "rf"\ndegree = 3\n', "degree .* must go with a problem that has it: monomial"),
        ('problem = "quadratic"\nregime = "rf"\nridge = 0.1\n', "ridge .* that has it: harmonic, linear, multi-index"),
        ('problem = ["linear", "parity"]\nregime = "rf"\n', "parity has nt, quadratic, randomized, nn, mf"),
        ('problem = "labels"\nregime = "rf"\nmethod = "ridge"\n', "method parameter of simulate must be 'margin'"),
        ('problem = "parity"\nregime = "nt"\nnoisy_sgd.momentum = 2\n', "momentum parameter of NoisySGD"),
        ('problem = "linear"\nregime = "rf"\nd = "many"\n', "d parameter"),
    ],
)  # fmt: skip
def test_keys_of_other_problems_are_refused(text, told, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('fidelity = "simulate"\nwidth = 4\n' + text)
    with pytest.raises(ls.LazyscopeError, match=told) as caught:
        read_plan(path)
    assert "\n" not in str(caught.value)


def test_every_verb_has_the_problems_that_its_claims_serve():
    assert {verb: sorted(declared.questions(verb)) for verb in ("limit", "exact", "simulate", "compare")} == {
        "limit": ["harmonic", "labels", "linear", "mixture", "multi-index", "quadratic", "spectral"],
        "exact": ["harmonic", "mixture", "monomial", "multi-index", "quadratic"],
        "simulate": ["harmonic", "labels", "linear", "mixture", "monomial", "multi-index", "parity", "quadratic"],
        "compare": ["harmonic", "labels", "linear", "mixture", "multi-index", "quadratic"],
    }


def test_an_option_of_a_regime_that_was_not_asked_for_is_refused():
    told = run("simulate", "quadratic", "--d", 9, "--regime", "rf", "--batch", 5, code=2).stderr
    assert "--batch parameter of lazyscope simulate quadratic must go with the regime nt or nn" in told


def test_a_sweep_of_open_dimension_is_exported_with_a_row_for_each_size(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(
        'problem = "linear"\nnoise = 0.5\nd = 6\nregime = "rf"\nridge = [0.1, 1.0]\nsamples = 9\n'
        'fidelity = "simulate"\nwidth = [3, 5]\ndraws = 2\n'
    )
    run("sweep", "run", "a.toml", "--workers", 1)
    run("sweep", "export", "a.sqlite", "--out", "a.csv")
    rows = [line for line in Path("a.csv").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    theirs = ls.simulate(
        ls.LinearTarget(noise=0.5), ls.RandomFeatures("relu"), d=6, width=[3, 5], samples=9, ridge=[0.1, 1.0], draws=2
    )
    risks = [float(row["risk"]) for row in csv.DictReader(rows)]
    # a worker holds its linear algebra to one thread, which may cost the last bits of a product
    assert risks == pytest.approx(theirs.risk.values.ravel().tolist(), rel=1e-10)


def test_a_size_that_nobody_here_knows_is_an_option_and_a_column(coin):
    """A theorem over a temperature: its claim is all that says so."""
    at = replace(
        EXACT, fidelity="limit", arguments=("temperature",), compute=lambda run: {"risk": 1.0 / run.grid()[0]}
    )  # fmt: skip
    ls.register(at)
    command = ("limit", "coin", "--regime", "guess")
    table = run(*command, "--temperature", "2,4").stdout
    assert re.search(r"temperature +risk\n─+\nguess +2 +0\.50000\nguess +4 +0\.25000\n", table)
    assert "--temperature parameter of lazyscope limit coin must be a number" in run(*command, code=2).stderr

"""A plan file says in TOML what the command line says in options."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import sweep
from lazyscope.cli.asking.plan_file import read_plan

LEAST = """
problem = "quadratic"
regime = "nn"
fidelity = "exact"
width = 3
"""


def read(text, name="a.toml"):
    Path(name).write_text(text, encoding="utf-8")
    return read_plan(Path(name))


def test_the_least_plan_is_the_papers_problem(here):
    expected = sweep.Plan.grid("a", [ls.QuadraticTarget.exponential(450)], [ls.Trained()], widths=[3])
    plan = read(LEAST)
    assert (plan.name, plan.digest) == ("a", expected.digest)


def test_lists_are_grids_and_tables_are_several(here):
    plan = read("""
        name = "two grids"
        fidelity = ["exact", "simulate"]
        width = ["2:20:4log", 30]
        draws = 2
        samples = 1000

        [sgd]
        steps = 50
        step_sizes = [0.01]

        [[grid]]
        problem = ["quadratic", "mixture"]
        d = [10, 12]
        regime = "rf"
        activation = ["relu", "tanh"]
        weights = ["isotropic", "optimal"]

        [[grid]]
        problem = "quadratic"
        d = 10
        regime = ["nt", "nn"]
        sgd = { steps = [50, 60], batch = 5 }
        seed = [0, 1]
    """)
    widths = [2, 4, 9, 20, 30]
    problems = [kind(d) for kind in (ls.QuadraticTarget.exponential, ls.GaussianMixture.three_level) for d in (10, 12)]
    rf = [ls.RandomFeatures(name, law) for name in ("relu", "tanh") for law in (None, "optimal")]
    first = sweep.Plan.grid("a", problems, rf, ["exact", "simulate"], widths=widths, draws=2, samples=1000)
    target, regimes = problems[:1], [ls.NeuralTangent(), ls.Trained()]
    rest = [
        sweep.Plan.grid(
            "a", target, [regime], ["exact", "simulate"], widths=widths, draws=2, seed=seed,
            protocol=ls.SGD(steps=steps, batch=5, decay=ls.SGD.paper(target[0], regime).decay),
        )
        for regime in regimes
        for seed in (0, 1)
        for steps in (50, 60)
    ]  # fmt: skip
    assert plan.name == "two grids"
    assert plan.digest == sweep.Plan.union("a", [first, *rest]).digest


def test_sgd_takes_its_steps_from_the_samples_if_it_names_none(here):
    common = LEAST.replace('"exact"', '"simulate"') + "d = 10\nsamples = 1000\n"
    for text, steps, batch in (
        (common, 10, 100),
        (common + "sgd.batch = 20", 50, 20),
        (common + "sgd.steps = 7", 7, 100),
    ):
        (task,) = read(text).tasks
        assert (task.work.protocol.steps, task.work.protocol.batch) == (steps, batch)


def test_every_setting_of_sgd_reaches_the_tasks(here):
    settings = {
        "steps": "7",
        "batch": "8",
        "step_sizes": "[0.5]",
        "decay": "[[0.5, 2.0]]",
        "test": "9",
        "second_layer": '"fixed"',
        "rule": '"adam"',
        "halving": "[0.5]",
    }
    assert set(settings) == {field.name for field in fields(ls.SGD)}
    simulated = LEAST.replace("exact", "simulate") + "[sgd]\n"
    plain = read(simulated).digest
    digests = {read(f"{simulated}{key} = {value}\n").digest for key, value in settings.items()}
    assert len(digests | {plain}) == len(settings) + 1


def test_files_are_looked_up_beside_the_plan(here, monkeypatch):
    Path("deep").mkdir()
    np.save("deep/B.npy", np.diag([3.0, 2.0, 1.0]))
    Path("deep/G.csv").write_text("1,2,3\n")
    Path("deep/a.toml").write_text(
        'problem = "quadratic"\nB = "B.npy"\nregime = "rf"\nweights = "G.csv"\nfidelity = "exact"\nwidth = 2\n'
    )
    target, regime = ls.QuadraticTarget(np.diag([3.0, 2.0, 1.0])), ls.RandomFeatures(weights=[1.0, 2.0, 3.0])
    assert read_plan(Path("deep/a.toml")).digest == sweep.Plan.grid("a", [target], [regime], widths=[2]).digest
    mixture = 'problem = "mixture"\ndelta = "D.csv"\nsigma = "S.csv"\nregime = "nt"\nfidelity = "exact"\nwidth = 2\n'
    Path("D.csv").write_text("0.1,0.2\n")
    Path("S.csv").write_text("1,2\n")
    problem = ls.GaussianMixture([0.1, 0.2], [1.0, 2.0])
    assert read(mixture).digest == sweep.Plan.grid("a", [problem], [ls.NeuralTangent()], widths=[2]).digest


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "The problem parameter of a.toml must be given."),
        ("regime = ", "must be TOML"),
        (LEAST + "widht = 3", "The widht parameter of a.toml must be one of .* Did you mean 'width'?"),
        (LEAST + "sgd.step = 3", r"The step parameter of \[sgd\] of a.toml must be one of .* Did you mean 'steps'?"),
        (LEAST + "[[grid]]\nname = 'b'", "The name parameter"),
        (LEAST + "grid = 3", r"tables, \[\[grid\]\]"),
        (LEAST + "sgd = 3", r"a table, \[sgd\]"),
        (LEAST + "sgd.steps = 0", "The steps parameter of SGD must be a whole number, at least 1. Got 0"),
        (LEAST + "sgd.step_sizes = [-0.01]", "The step_sizes parameter of SGD must be positive"),
        (LEAST + "sgd.decay = [0.1, 10]", "must be pairs"),
        (LEAST + "sgd.decay = [[0.1]]", "pairs"),
        (LEAST + "d = 0", "d parameter .* at least 1"),
        (LEAST + "d = '9'", "d parameter"),
        (LEAST + "B = 'missing.npy'", "no such file"),
        (LEAST + "B = 'b.npy'\nd = 3", "stand alone"),
        (LEAST + "delta = 'b.npy'", "go with a problem that has it: mixture"),
        (LEAST + "weights = 'optimal'", "go with the regime rf"),
        (LEAST + "activation = 'rleu'", "Did you mean 'relu'?"),
        (LEAST + "draws = 0", "draws"),
        (LEAST + "seed = -1", "seed"),
        (LEAST + "samples = 'many'", "samples"),
        (LEAST + "name = '/etc/passwd'", "name parameter of Plan"),
        (LEAST.replace("quadratic", "cubic"), "made of quadratic, mixture, .*parity"),
        (LEAST.replace("nn", "bayes"), "made of rf, nt, nn, joint, mf"),
        (LEAST.replace("exact", "limit"), "exact or simulate"),
        (LEAST.replace("3", "'1:2'"), "start:stop:count"),
        (LEAST.replace("3", "-3"), "positive whole number"),
        (LEAST.replace("3", "[]"), "widths"),
        (LEAST.replace('"nn"', '"rf"') + "weights = 'best'", "isotropic, optimal, or a file"),
        (LEAST.replace('"nn"', "[]"), "at least one task"),
    ],
)
def test_mistakes_are_one_line_that_names_the_key(here, text, told):
    with pytest.raises(ls.LazyscopeError, match=told) as error:
        read(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "key", "got"),
    [
        (LEAST + "samples = 100", "samples", "exact of NN"),
        (LEAST + "sgd.steps = 10", "sgd", "exact of NN"),
        (LEAST.replace('"exact"', '"simulate"').replace('"nn"', '"rf"') + "sgd.steps = 10", "sgd", "simulate of RF"),
        (LEAST.replace("quadratic", "multi-index").replace("nn", "rf") + "d = 4\nridge = 0.1", "ridge", "exact of RF"),
        (LEAST + "[[grid]]\nsamples = 100\n[[grid]]\nfidelity = 'simulate'", "samples", "exact of NN"),
    ],
)
def test_a_key_that_nothing_takes_is_refused(here, text, key, got):
    told = rf"The {key} parameter of a.toml must go with something that takes it. Got {got} instead. Leave it out."
    with pytest.raises(ls.InvalidParameter, match=told):
        read(text)


def test_a_key_above_the_grids_is_for_those_that_take_it(here):
    plan = read(LEAST + "samples = 1000\n[[grid]]\n[[grid]]\nd = 6\nfidelity = 'simulate'\nregime = 'rf'")
    assert [task.work.sizes.get("samples") for task in plan.tasks] == [None, (1000,)]


def test_what_is_no_text(here):
    for data in (b"\xff\xfe\x00", b"a = '\xc3('"):
        Path("a.toml").write_bytes(data)
        with pytest.raises(ls.UnreadableFile, match="must be TOML"):
            read_plan(Path("a.toml"))
    for path in (Path("missing.toml"), here):
        with pytest.raises(ls.UnreadableFile, match="must be a readable file"):
            read_plan(path)


def test_shares_of_halving_are_one_list_and_no_grid(here):
    plan = read(LEAST.replace("exact", "simulate") + "[sgd]\nsteps = 100\nhalving = [0.2, 0.5]\n")
    (task,) = plan.tasks
    assert task.work.protocol.halving == (0.2, 0.5)


def test_without_a_method_a_plan_means_what_the_commands_mean(here):
    """`exact` of several directions knows no method, and `simulate` fits random features as for other problems."""
    words = LEAST.replace("quadratic", "multi-index").replace('"nn"', '"rf"') + "d = 4\n"
    tasks = read(words.replace('"exact"', '["exact", "simulate"]')).tasks
    assert [task.work.method for task in tasks] == [None, None]
    given = read(words.replace('"exact"', '"simulate"') + 'method = "ridge"\n').tasks
    assert [task.work.method for task in given] == ["ridge"]


@pytest.mark.parametrize("problem", ["quadratic", "mixture", "multi-index", "harmonic", "monomial"])
def test_every_problem_with_an_exact_answer_has_a_plan_of_it(here, problem):
    words = LEAST.replace("quadratic", problem).replace('"nn"', '["rf", "nt"]') + "d = 6\n"
    assert [task.work.fidelity for task in read(words).tasks] == ["exact", "exact"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("name = 99999999999999999999", "name parameter of a.toml must be a text"),
        ('name = " "', "name parameter of a.toml must be a text"),
        ("giant_samples = [[1]]", "samples parameter of GiantStep must be a whole number"),
    ],
)
def test_values_of_another_kind_are_refused(here, more, told):
    words = LEAST.replace("quadratic", "multi-index").replace('"nn"', '"gs"')
    with pytest.raises(ls.InvalidParameter, match=told):
        read(words + more + "\n")

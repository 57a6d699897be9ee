"""Long work is announced before it begins, absurd work is refused, and no warning comes before a refusal."""

import re
import warnings

import click
import pytest
from click.testing import CliRunner

import lazyscope as ls
from lazyscope import progress
from lazyscope.cli import main, terminal
from lazyscope.cli.asking import effort
from lazyscope.errors import InvalidParameter, TooLarge
from lazyscope.training.sgd import lazy_to_rich


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("report", "mean-field", "parity", "--steps", "100000000"), "10 descents of 100,000,000 steps"),
        (("report", "lazy-to-rich", "--init", "1e9"), "init = 1e+09"),
        (("report", "lazy-to-rich", "--init", "1e300"), "init = 1e+300"),
        (("report", "interpolation", "--draws", "1" + "0" * 15), "fits of 100 labels"),
        (("simulate", "parity", "--regime", "mf", "--steps", "1" + "0" * 12), "descents of 1,000,000,000,000 steps"),
        (("simulate", "linear", "--draws", "1" + "0" * 12), "fits of rf to 300 samples"),
        (("simulate", "quadratic", "--samples", "1" + "0" * 15), "trainings of nn"),
        (("simulate", "monomial", "--draws", "1" + "0" * 12), "trainings of"),
        (("compare", "mixture", "--samples", "1" + "0" * 15), "trainings of nt"),
        (("exact", "quadratic", "--draws", "1" + "0" * 12), "5,000,000,000,000 fits of rf"),
        (("exact", "quadratic", "--d", "9", "--regime", "nn", "--activation", "gelu", "--draws", "99999"), "descents"),
        (("flow", "quadratic", "--d", "9", "--step-size", "1e-12", "--regime", "nt"), "steps of SGD"),
        (("exact", "multi-index", "--regime", "gs", "--giant-samples", "1e15"), "giant steps on 1,000,000,000,000,000"),
        (("simulate", "multi-index", "--regime", "gs", "--giant-samples", "1e15"), "giant steps on 1,000,000,000,000"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_absurd_work_is_refused_in_one_line_that_says_what_it_is(args, told):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = CliRunner().invoke(main, [*args])
    assert result.exit_code == 2 and result.stdout == ""
    assert re.fullmatch(r"lazyscope: error: [^\n]+\n", result.stderr)
    assert "within a day" in result.stderr and told in result.stderr


@pytest.mark.parametrize(
    "args", [("simulate", "quadratic"), ("compare", "mixture"), ("compare", "quadratic")], ids=" ".join
)
def test_the_papers_own_sizes_are_hours_and_not_refused(monkeypatch, args):
    class Stop(Exception):
        pass

    def stop(*args, **kwargs):
        progress.report(0, 1, "the work begins")
        raise Stop

    monkeypatch.setattr("lazyscope.runs.assembly.answer", stop)
    monkeypatch.setattr("lazyscope.runs.side_by_side.compare", stop)
    result = CliRunner().invoke(main, [*args])
    assert isinstance(result.exception, Stop)
    assert re.search(r"note: .*: about [\d.]+ hours\.\n$", result.stderr)


def test_work_between_is_announced_and_short_work_is_not(capsys):
    for seconds, said in ((19.0, ""), (30.0, "lazyscope: note: a descent: about 30 seconds.\n")):
        with click.Context(main), terminal.progress_bar():
            effort.Effort(seconds, "a descent").check("lazyscope exact", "--draws")
            assert capsys.readouterr().err == "", "an argument may still be refused, in one line"
            for done in range(3):
                progress.report(done, 3, "a step")
            assert capsys.readouterr().err == said
    for seconds in (1e6, float("inf"), float("nan")):
        with pytest.raises(TooLarge):
            effort.Effort(seconds, "a descent").check("lazyscope exact", "--draws")


def test_what_is_long_and_wrong_is_refused_in_one_line():
    long = ["exact", "quadratic", "--d", "60", "--regime", "nn", "--activation", "gelu", "--width", "30"]
    result = CliRunner().invoke(main, [*long, "--seed", "-1"])
    assert result.exit_code == 2 and re.fullmatch(r"lazyscope: error: [^\n]+\n", result.stderr)


def test_a_long_descent_says_how_far_it_has_come():
    told = []
    with progress.reporting(lambda done, total, what, share: told.append(what)):
        ls.exact(ls.QuadraticTarget([2.0, 1.0]), ls.Trained("silu"), width=1)
    assert any(re.fullmatch(r"descent, step \d+ of at most 2,000", what) for what in told)


def test_steps_are_as_small_as_the_initial_weights_ask_for():
    """A tangent kernel init² as large bears steps init² as small: nothing overflows, and the training ends well."""
    target = ls.QuadraticTarget([2.0, 1.0])
    assert lazy_to_rich.plan(target, 1.0) == lazy_to_rich.plan(target, 1.0, init=1.0)
    assert (
        lazy_to_rich.plan(target, 1.0, init=100.0).step_sizes[0] < 1e-3 * lazy_to_rich.plan(target, 1.0).step_sizes[0]
    )
    found = ls.lazy_to_rich(target, width=1, alpha=[1.0], init=5.0)
    assert float(found.end[0]) == pytest.approx(float(found.exact[0]), abs=0.05)
    with pytest.raises(InvalidParameter, match="init"):
        ls.lazy_to_rich(target, width=1, alpha=[1.0], init=1e200)

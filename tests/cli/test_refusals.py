"""Mistakes of a user are one line and exit code 2, and leave every file as it was."""

import pickle
import warnings
from pathlib import Path

import pytest

from lazyscope.cli import verbs

from .conftest import refused, run


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("limit", "quadratic", "--rho", "0"), "positive"),
        (("limit", "quadratic", "--rho", "-1:1:3"), "positive"),
        (("limit", "quadratic", "--rho", "a"), "--rho"),
        (("limit", "mixture", "--d", "9", "--rho", "1e-320"), "1e-300"),
        (("limit", "linear", "--psi1", "1e-320"), "1e-300"),
        (("flow", "quadratic", "--d", "5", "--width", "10" * 10), "beyond 2^53"),
        (("report", "interpolation", "--d", "10" * 20), "beyond 2^53"),
        (("simulate", "parity", "--d", "6", "--regime", "nn", "--samples", "1" + "0" * 15), "GB"),
        (("limit", "linear", "--ridge", "1e-320"), "1e-300"),
        (("limit", "quadratic", "--rho", "0.5", "--regime", "cnn"), "--regime"),
        (("limit", "quadratic", "--rho", "0.5", "--regime", ""), "--regime"),
        (("limit", "quadratic", "--rho", "0.5", "--regime", "rf,rf"), "--regime"),
        (("limit", "quadratic", "--activation", "relux"), "relux"),
        (("limit", "quadratic", "--weights", "optimum"), "optimum"),
        (("limit", "quadratic", "--weights", "missing.npy"), "missing.npy"),
        (("limit", "quadratic", "--weights", "optimal", "--regime", "nt"), "--weights"),
        (("limit", "quadratic", "--d", "0"), "whole number"),
        (("limit", "quadratic", "--d", "1" + "0" * 15), "GB"),
        (("limit", "quadratic", "--B", "missing.npy"), "no such file"),
        (("limit", "quadratic", "--B", "."), "Got a folder"),
        (("limit", "quadratic", "--B", "missing.npy", "--d", "5"), "--B"),
        (("limit", "mixture", "--d", "4"), "least 5"),
        (("limit", "mixture", "--delta", "missing.npy", "--target-seed", "0"), "--delta"),
        (("exact", "quadratic", "--d", "9", "--width", "4.5"), "4.5"),
        (("exact", "quadratic", "--d", "9", "--width", "inf"), "width"),
        (("exact", "quadratic", "--d", "9", "--draws", "0"), "draws"),
        (("exact", "quadratic", "--d", "9", "--seed", "-1"), "seed"),
        (("limit", "quadratic", "--d", "9", "--rho", "inf", "--plot", "a.png"), "finite"),
        (("limit", "mixture", "--d", "9", "--regime", "bayes", "--plot", "a.png"), "finite"),
        (("limit", "quadratic", "--plot", "a.gif"), "--plot"),
        (("limit", "quadratic", "--out", "missing/a.csv"), "folder"),
        (("claims", "nothing/like/this"), "nothing/like/this"),
        (("claims", ""), "begins none"),
        (("cite", "nobody2020"), "nobody2020"),
        (("figure",), "fig1"),
        (("figure", "fig9"), "fig9"),
        (("figure", "fig1", "--width", "a"), "--width"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_two(here, args, word):
    assert word in refused(*args)
    assert list(here.iterdir()) == []


def test_where_every_regime_is_left_out_the_command_is_refused_in_one_line(here):
    (here / "sigma.csv").write_text("2,1,1,1,1.5\n")
    turned = ("simulate", "mixture", "--sigma", "sigma.csv", "--d", 5, "--width", 4, "--samples", 600)
    assert "Σ = I" in refused(*turned, "--regime", "mf")
    few = ("simulate", "mixture", "--d", 9, "--activation", "sign", "--width", 50, "--samples", 10)
    assert "number of features" in refused(*few)  # nt and nn are left out, but that is no news any more
    jumps = ("exact", "mixture", "--d", 9, "--activation", "sign")  # nt and nn are left out
    assert "draws" in refused(*jumps, "--draws", 0)


def test_a_step_size_beyond_single_precision_is_refused_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "at most 1e+30" in refused("simulate", "quadratic", "--d", 5, "--samples", 200, "--step-sizes", "1e39")


def test_a_failure_leaves_the_file_that_was_there(here):
    for name in ("a.csv", "a.json", "a.nc", "a.txt"):
        (here / name).write_bytes(b"precious")
        refused("limit", "quadratic", "--d", 9, "--rho", -1, "--out", name)
        refused("limit", "quadratic", "--activation", "relu", "--regime", "rf,nn", "--out", name)
    refused("limit", "quadratic", "--d", 9, "--out", "a.txt")
    assert {path.read_bytes() for path in here.iterdir()} == {b"precious"}
    assert len(list(here.iterdir())) == 4


def test_places_are_refused_before_anything_is_computed(here, monkeypatch):
    def computed(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(verbs, "_compute", computed)
    refused("exact", "quadratic", "--out", "a.txt")
    refused("exact", "quadratic", "--plot", "missing/a.png")
    with pytest.raises(AssertionError):
        run("exact", "quadratic", "--out", "a.csv")


def test_a_pickled_target_is_refused_and_not_executed(here):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (here / "executed",))

    (here / "B.npy").write_bytes(pickle.dumps(Bomb()))
    refused("limit", "quadratic", "--B", "B.npy")
    assert not (here / "executed").exists()


def test_memory_errors_are_one_line_and_other_surprises_keep_their_traceback(monkeypatch):
    def fail(error):
        def compute(*args, **kwargs):
            raise error

        monkeypatch.setattr(verbs, "_compute", compute)

    fail(MemoryError("Unable to allocate 9 EiB"))
    assert "out of memory (Unable to allocate 9 EiB)." in refused("limit", "quadratic")
    fail(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        run("limit", "quadratic")
    fail(KeyboardInterrupt())
    assert run("limit", "quadratic", code=130).stderr == "lazyscope: interrupted\n"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["limit", "quadratic", "--d", "abc"], "'abc' is not a valid integer. See lazyscope limit quadratic --help."),
        (["exact", "mixture", "--zzz"], "--zzz. See lazyscope exact mixture --help."),
        (["frob"], "No such command 'frob'. See lazyscope --help."),
        (["claims", "a", "b"], "Got unexpected extra argument"),
    ],
)
def test_clicks_own_complaints_are_one_line_too(args, told):
    assert told in refused(*args).replace("'--zzz'", "--zzz")  # older versions of click do not quote it


@pytest.mark.parametrize("command", ["simulate quadratic --regime rf", "simulate linear", "compare quadratic"])
def test_a_number_that_no_array_holds_is_said_to_be_too_large(command):
    assert "Got a number beyond 2^63 instead. Pass a smaller one." in refused(*command.split(), "--samples", 10**39)


def test_what_the_package_warns_of_is_a_line_and_not_a_place_in_its_source(here, monkeypatch):
    """A busy machine makes a descent of `exact` long enough for such a warning."""
    monkeypatch.setattr("lazyscope.population.network._LONG", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = run("exact", "quadratic", "--d", "5", "--regime", "nn", "--activation", "relu", "--width", "4")
    notes = [line for line in result.stderr.splitlines() if "this descent may take" in line]
    assert len(notes) == 1 and notes[0].startswith("lazyscope: note: exact: ")
    assert "Warning" not in result.stderr and ".py" not in result.stderr

"""Where a command writes: all places are checked before any work, and a file is replaced by --force alone."""

import json

import click
import pytest

from lazyscope.cli import main
from lazyscope.experiments.frame import experiment, output

from .conftest import refused, run

LIMIT = ("limit", "quadratic", "--d", "5", "--rho", "0.5,1")
# one command of each kind that writes a file, with the options that name one
WRITERS = [
    (LIMIT, {"--out": ".csv", "--plot": ".png"}),
    (("limit", "linear", "--psi1", "1,2"), {"--out": ".nc", "--plot": ".svg"}),
    (("exact", "mixture", "--d", "6", "--width", "2,3"), {"--out": ".json", "--plot": ".pdf"}),
    (("simulate", "quadratic", "--d", "5", "--regime", "rf", "--samples", "50"), {"--out": ".csv", "--plot": ".png"}),
    (("simulate", "parity", "--d", "5", "--regime", "nt", "--width", "4,6"), {"--out": ".csv", "--plot": ".png"}),
    (("compare", "mixture", "--d", "6"), {"--out": ".csv"}),
    (("compare", "labels", "--d", "6"), {"--out": ".csv", "--plot": ".png"}),
    (("flow", "quadratic", "--d", "5"), {"--out": ".csv", "--plot": ".png"}),
    (("report", "interpolation"), {"--out": ".csv"}),
    (("report", "lazy-to-rich"), {"--out": ".csv"}),
    (("report", "mean-field", "parity"), {"--out": ".csv"}),
    (("lens", "--example", "diabetes"), {"--out": ".json", "--report": ".html"}),
    (("forecast", "--example", "diabetes", "--rows", "90"), {"--out": ".nc", "--plot": ".png"}),
    (("sweep", "export", "missing.sqlite"), {"--out": ".csv"}),
    (("explore",), {"--export": ".html"}),
]
EACH = [(args, option, suffix) for args, options in WRITERS for option, suffix in options.items()]


def names(value):
    return " ".join(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("args", "option", "suffix"), EACH, ids=names)
def test_a_place_that_will_not_do_is_refused_in_one_line(here, args, option, suffix):
    mine = here / f"mine{suffix}"
    mine.write_bytes(b"precious")
    (here / "loop.csv").symlink_to("loop.csv")
    (here / f"far{suffix}").symlink_to(here / "missing" / f"far{suffix}")
    before = sorted(here.iterdir())
    assert f"Got mine{suffix}, which exists, instead. Pass --force" in refused(*args, option, mine.name)
    assert "File name too long" in refused(*args, option, f"{'a' * 300}{suffix}")
    assert "File name too long" in refused(*args, option, f"{'a' * 300}/a{suffix}")
    assert "folder that exists" in refused(*args, option, f"missing/a{suffix}")
    assert "folder that exists" in refused(*args, option, f"mine{suffix}/a{suffix}")
    assert "folder that exists" in refused(*args, option, f"far{suffix}", "--force")
    assert "end in" in refused(*args, option, "a.txt")
    assert mine.read_bytes() == b"precious" and sorted(here.iterdir()) == before


@pytest.mark.parametrize(("args", "options"), [pair for pair in WRITERS if len(pair[1]) > 1], ids=names)
def test_all_places_are_checked_before_the_first_is_written(here, args, options):
    """Where the second place is bad, the first stays empty."""
    (first, ending), (second, other) = options.items()
    assert second in refused(*args, first, f"a{ending}", second, f"missing/a{other}")
    assert list(here.iterdir()) == []


def test_a_link_to_the_other_output_is_the_other_output(here):
    (here / "b.png").symlink_to("a.csv")
    told = refused(*LIMIT, "--out", "a.csv", "--plot", "b.png")
    assert "--plot" in told and "the file of --out" in told and not (here / "a.csv").exists()


def test_a_link_to_itself_is_refused(here):
    (here / "loop.csv").symlink_to("loop.csv")
    assert "symbolic links" in refused(*LIMIT, "--out", "loop.csv")


def test_force_replaces_and_the_longest_name_can_be_written(here):
    name = f"{'a' * 251}.csv"
    run(*LIMIT, "--out", name)
    first = (here / name).read_text()
    refused(*LIMIT, "--out", name)
    run(*LIMIT, "--out", name, "--force")
    assert (here / name).read_text() == first.replace(f"--out {name}", f"--out {name} --force")
    assert [path.name for path in here.iterdir()] == [name], "no part of a file is left"


@pytest.mark.parametrize(
    "args",
    [
        ("flow", "quadratic", "--d", "5", "--times", "0,1"),
        ("limit", "quadratic", "--d", "5", "--rho", "inf"),
        ("limit", "mixture", "--d", "6", "--regime", "bayes"),
        ("limit", "linear", "--psi1", "2"),
        ("limit", "linear", "--psi1", "2", "--ridge", "optimal"),
        ("simulate", "linear", "--d", "5", "--width", "3", "--regime", "mf"),
        ("compare", "linear", "--d", "5", "--width", "3"),
        ("simulate", "parity", "--d", "5", "--width", "4"),
    ],
    ids=names,
)
def test_a_picture_that_cannot_be_drawn_is_refused_before_any_work(here, monkeypatch, args):
    """Neither the first file is written and then the second refused, nor anything computed for nothing."""

    def computed(*args, **kwargs):
        raise AssertionError

    for road in ("assembly.answer", "verbs.bayes", "side_by_side.compare"):
        monkeypatch.setattr(f"lazyscope.runs.{road}", computed)
    monkeypatch.setattr("lazyscope.limits.flow.curve.flow", computed)
    assert "picture" in refused(*args, "--out", "a.json", "--plot", "p.svg")
    assert list(here.iterdir()) == []


def test_a_figure_replaces_its_own_files_and_no_others(here, monkeypatch):
    class Stop(Exception):
        pass

    def compute(*args, **kwargs):
        raise Stop

    monkeypatch.setattr(experiment, "compute", compute)
    command, out = ("figure", "coupling", "--out", "out"), here / "out"
    out.mkdir()
    (out / "coupling.png").write_bytes(b"a photograph")
    assert "Pass --force" in refused(*command)
    with pytest.raises(Stop):
        run(*command, "--force")
    (out / "coupling.json").write_text(json.dumps({"figure": "coupling", "preset": "quick"}))
    with pytest.raises(Stop):
        run(*command)
    for other in ('{"figure": "fig1", "preset": "quick"}', "[]", "nonsense", "[" * 100_000):
        (out / "coupling.json").write_text(other)
        assert not output.written_by(out / "coupling", "coupling", "quick")
        refused(*command)
    assert (out / "coupling.png").read_bytes() == b"a photograph"


@pytest.mark.parametrize(("args", "options"), WRITERS, ids=names)
def test_help_tells_of_force(args, options):
    command = args[:1] if args[0] in ("lens", "forecast", "explore") else args[:2]
    said = " ".join(run(*command, "--help").stdout.split())
    assert "--force Replace files that exist; without it they are left alone" in said
    assert all(option in said for option in options)


def test_no_command_writes_a_file_without_force_among_its_options():
    """Every option that is a file to write has --force beside it: what is not listed here is read."""
    read = {"--folder", "--B", "--delta", "--sigma", "data", "plan", "store", "--store"}

    def walk(command, path):
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                yield from walk(command.get_command(context, name), (*path, name))
        else:
            yield path, command

    for path, command in walk(main, ()):
        params = {parameter.opts[0]: parameter for parameter in command.params}
        written = {name for name, one in params.items() if type(one.type).__name__ == "Path"} - read
        assert ("--force" in params) == bool(written), path

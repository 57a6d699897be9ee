"""The bookkeeping of the benchmarks, under a clock that the test winds itself."""

from __future__ import annotations

import json
import math
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from lazyscope.cli import main as command

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.harness import Bound, Figure, MachineUse, footprint, interleaved
from benchmarks.report import HEADER, cells, provenance, table


class Clock:
    """Time that passes only when a piece of work says so."""

    def __init__(self) -> None:
        self.now, self.order = 0.0, ""

    def __call__(self) -> float:
        return self.now

    def piece(self, name: str, *seconds: float):
        left = list(seconds)

        def run() -> None:
            self.order += name
            self.now += left.pop(0)

        return run


def test_pieces_take_turns_and_the_median_forgets_one_slow_round():
    clock = Clock()
    pieces = {"a": clock.piece("a", 50.0, 2.0, 900.0, 3.0), "b": clock.piece("b", 70.0, 1.0, 400.0, 1.0)}
    assert interleaved(pieces, 3, clock) == {"a": 3.0, "b": 1.0}
    assert clock.order == "ab" * 4  # the first round warms up and is not counted


def test_without_warm_up_every_round_counts():
    clock = Clock()
    assert interleaved({"a": clock.piece("a", 5.0)}, 1, clock, warm_up=False) == {"a": 5.0}


@pytest.mark.parametrize(
    ("bound", "measured", "peer", "ratio", "holds"),
    [
        (Bound(3.0), 6.0, 2.0, 3.0, True),
        (Bound(3.0), 6.1, 2.0, 3.05, False),
        (Bound(20.0, at_least=True), 1.0, 20.0, 20.0, True),
        (Bound(20.0, at_least=True), 1.0, 19.0, 19.0, False),
        (Bound(3.0), math.nan, 1.0, math.nan, False),
        (Bound(3.0, at_least=True), 1.0, math.nan, math.nan, False),
    ],
)
def test_a_bound_is_a_cost_at_most_or_a_saving_at_least(bound, measured, peer, ratio, holds):
    figure = Figure("it", measured, peer, "a peer", bound)
    assert figure.ratio == pytest.approx(ratio, nan_ok=True)
    assert figure.holds is holds


def test_a_row_tells_both_times_the_ratio_and_the_verdict():
    slow = Figure("it", 0.5, 0.1, "a peer", Bound(3.0), note="scaled by ten")
    assert cells(slow) == ("it", "500 ms", "100 ms, a peer", "5", "≤ 3", "NO")
    big = Figure("it", 2e8, 4e8, "a limit", Bound(1.0), unit="B")
    assert cells(big) == ("it", "200 MB", "400 MB, a limit", "0.5", "≤ 1", "yes")
    lines = table([slow, big]).splitlines()
    assert lines[0].split() == list(HEADER)
    assert len({line.index(holds) for line, holds in zip(lines[2:4], ("NO", "yes"), strict=True)}) == 1
    assert lines[-1] == "it: scaled by ten"


def benchmarks_for(*ratios: float):
    return {
        f"number_{k}": lambda ratio=ratio: [Figure("it", ratio, 1.0, "one", Bound(1.0), extra={"steps": 7})]
        for k, ratio in enumerate(ratios)
    }


@pytest.mark.parametrize(("ratios", "code"), [((0.5, 1.0), 0), ((0.5, 1.5), 1)])
def test_the_exit_code_is_one_where_a_bound_does_not_hold(tmp_path, capsys, ratios, code):
    assert main([], benchmarks_for(*ratios), tmp_path, lambda: {"cores": 2}) == code
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("it ") for line in lines) == 2


def test_named_benchmarks_run_alone_and_leave_a_file_with_provenance(tmp_path, capsys):
    assert main(["number_1"], benchmarks_for(5.0, 0.25), tmp_path, lambda: {"cores": 2}) == 0
    (path,) = tmp_path.iterdir()
    assert path.name == "number_1.json"
    stored = json.loads(path.read_text())
    assert stored["provenance"]["cores"] == 2
    assert 0.0 <= stored["provenance"]["others_share_of_processor_time"] <= 1.0
    (row,) = stored["figures"]
    assert (row["measured"], row["peer"], row["ratio"], row["bound"], row["holds"]) == (0.25, 1.0, 0.25, "≤ 1", True)
    assert row["extra"] == {"steps": 7}


def test_the_share_of_others_is_what_was_busy_and_not_ours():
    before = MachineUse(total=100.0, busy=50.0, own=10.0)
    assert MachineUse(120.0, 66.0, 21.0).others_since(before) == pytest.approx(0.25)
    assert MachineUse(120.0, 60.0, 21.0).others_since(before) == 0.0  # ticks round; a share is not negative
    assert MachineUse.now().total > 0


def test_an_unknown_name_is_refused_with_the_list(tmp_path, capsys):
    assert main(["nope"], benchmarks_for(1.0), tmp_path, dict) == 2
    assert "number_0" in capsys.readouterr().err


def test_every_benchmark_says_what_it_measures():
    assert all(run.__doc__ for run in BENCHMARKS.values())


def test_provenance_names_versions_machine_and_peak(monkeypatch):
    monkeypatch.setattr("benchmarks.report.matrix_product_peak", lambda dtype: 1.0)
    origin = provenance()
    assert {"date", "python", "numpy", "scipy", "blas", "cores", "matrix_product_peak_gflops"} <= origin.keys()
    assert origin["cores"] >= 1
    json.dumps(origin)


def test_a_footprint_counts_what_the_body_touches_and_not_the_setup():
    held = footprint(
        "kept = bytearray(b'x') * 60_000_000", "new = bytearray(b'x') * 30_000_000; report['n'] = len(new)"
    )
    assert held.report == {"n": 30_000_000}
    assert 29e6 < held.added < 40e6
    assert held.baseline > 60e6


def test_the_command_lists_the_benchmarks_of_this_checkout():
    listed = CliRunner().invoke(command, ["bench", "--list"])  # by the command's own output, not past it
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [*BENCHMARKS]


def test_the_command_refuses_unknown_names_as_the_module_does(capfd):
    assert CliRunner().invoke(command, ["bench", "nothing"]).exit_code == 2
    assert "No benchmark named 'nothing'. There are: import_time" in capfd.readouterr().err


def test_the_command_says_where_benchmarks_are_when_they_are_not_here(tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("lazyscope.cli.bench"), "__file__", str(tmp_path / "a" / "b" / "c" / "bench.py"))
    result = CliRunner().invoke(command, ["bench"])
    assert result.exit_code == 2
    assert "Run `make bench` in a checkout." in result.stderr

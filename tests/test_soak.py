"""The attacks of `make soak` know every option there is: one that they do not know would never be tried."""

import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import psutil
from soak import __main__ as soak
from soak import commands, extremes, sweeps
from soak.calls import Calls
from soak.grammar import unknown
from soak.tally import Tally

from lazyscope.cli import main
from lazyscope.cli.terminal import PROGRESS


def test_the_attack_on_commands_knows_every_option():
    assert unknown(main) == []


def test_a_command_that_was_cut_off_is_not_judged(monkeypatch):
    """On a busy machine the alarm may ring where exceptions are caught and shown, as in a finaliser of a library."""

    def slow(words):
        try:
            signal.raise_signal(signal.SIGALRM)
        except BaseException:
            traceback.print_exc()
        sys.exit(0)

    before = signal.signal(signal.SIGALRM, commands._too_slow)  # private: what a worker of the attack sets
    try:
        monkeypatch.setattr("lazyscope.cli.main", slow)
        monkeypatch.setattr(commands, "_LATE", [])
        outcome = commands.run(["limit", "quadratic"], Path("no store"))
        monkeypatch.setattr("lazyscope.cli.main", lambda words: sys.exit(1))  # half-done imports of the one before
        after = commands.run(["limit", "quadratic"], Path("no store"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert outcome.code is None and outcome.problems == []
    assert after.code is None and after.problems == []


def test_lines_of_progress_are_no_fault_of_a_sweep(tmp_path):
    """Work that is short on a quiet machine tells its progress on a busy one."""
    error = "lazyscope: error: The cluster was lost."
    script = f"import sys; sys.stderr.write({PROGRESS + '1 of 9' + chr(10) + error + chr(10)!r}); sys.exit(2)"
    with (tmp_path / "out.log").open("w") as out, (tmp_path / "err.log").open("w") as err:
        process = subprocess.Popen([sys.executable, "-c", script], stdout=out, stderr=err, text=True)
    assert sweeps.ended(process, tmp_path).one_line


def test_a_refusal_after_lines_of_progress_is_one_line(monkeypatch):
    def refuse(words):
        sys.stderr.write(f"{PROGRESS}starting; 10 seconds so far\nlazyscope: error: No.\n")
        sys.exit(2)

    monkeypatch.setattr("lazyscope.cli.main", refuse)
    monkeypatch.setattr(commands, "_LATE", [])
    assert commands.run(["limit", "quadratic"], Path("no store")).problems == []


def test_a_command_that_works_long_without_a_word_is_told(monkeypatch):
    """Processor time is counted, not the clock: a busy machine does not make a command guilty."""

    def silent(words):
        signal.raise_signal(signal.SIGPROF)

    before = signal.signal(signal.SIGPROF, commands._too_slow)
    try:
        monkeypatch.setattr("lazyscope.cli.main", silent)
        monkeypatch.setattr(commands, "_LATE", [])
        outcome = commands.run(["exact", "quadratic"], Path("no store"))
    finally:
        signal.signal(signal.SIGPROF, before)
    assert outcome.code is None
    assert outcome.problems == ["30.0 s of processor time without a word"]


def test_a_command_in_a_process_of_its_own_does_the_same():
    words = ["limit", "quadratic", "--d=5", "--rho=1", "--out=out.csv"]
    here, there = commands.run(words, Path("no store")), commands.run(words, Path("no store"), commands._really)
    assert here == there
    assert here.code == 0 and here.problems == [] and [*here.files] == ["out.csv"]


def test_an_attack_that_is_ended_leaves_nothing_running():
    """A process whose child has a child, as an attack has an explorer and that its workers."""
    script = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'print(1, flush=True); input()']); input()"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()  # both are there
    family = psutil.Process(process.pid)
    children = family.children(recursive=True)
    soak.end(family)
    process.communicate()  # ends when the last one that holds the other end has let it go
    assert children
    limit = time.monotonic() + 60.0
    while any(map(_at_work, children)):  # a process closes its files a moment before it is gone
        assert time.monotonic() < limit
        time.sleep(0.01)


def _at_work(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE  # which nobody has waited for yet
    except psutil.NoSuchProcess:
        return False


def test_numbers_that_were_not_reached_are_told_and_are_no_success():
    short = Tally("calls", goals={"accepted": 5000}, tried=9, counts={"accepted": 7})
    assert "calls: not reached within its time: 7 of 5,000 accepted" in soak.table([short], 1).splitlines()
    assert soak.code([Tally("store", tried=3), short]) == 3
    assert soak.code([short, Tally("kills", tried=1, failed=1)]) == 1
    assert soak.code([Tally("store", goals={"tried": 3}, tried=3)]) == 0


def test_the_attacks_on_one_lane_end_within_the_bound_and_have_what_others_leave():
    lane = [name for name in soak.SHARES if name != "commands"]
    left, used = 1000.0, []
    for name in lane:
        used.append(soak.allotted(name, left))
        left -= used[-1]
    assert abs(sum(used) - 1000.0) < 1e-6 and min(used) > 100.0
    assert soak.allotted(lane[-1], 700.0) == 700.0 == soak.allotted("commands", 700.0)


def test_every_registered_pair_is_among_the_extremes_and_each_has_an_answer():
    """A case that no activation and no unit gives a number for would test nothing."""
    answered: dict[str, bool] = {}
    for case in extremes.cases((1, 12)):
        key = case.claim.key
        if answered.get(key) or case.activation not in ("square", "erf", "tanh", "relu3"):
            continue
        tally = Tally("extremes")
        calls = Calls(tally)
        calls(case.call(0))
        assert tally.findings == []
        answered[key] = calls.accepted > 0
    assert [key for key, some in answered.items() if not some] == []

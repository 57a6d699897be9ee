"""The attacks of `make soak` know every option there is: one that they do not know would never be tried."""

import signal
import subprocess
import sys
import traceback
from pathlib import Path

from soak import commands, sweeps
from soak.grammar import unknown

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

"""The attacks of `make soak` know every option there is: one that they do not know would never be tried."""

import signal
import sys
import traceback
from pathlib import Path

from soak import commands
from soak.grammar import unknown

from lazyscope.cli import main


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
        outcome = commands.run(["limit", "quadratic"], Path("no store"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert outcome.code is None and outcome.problems == []

"""The command line and its terminal: a bar where somebody watches, broken pipes, Ctrl-C, letters that are missing."""

import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from lazyscope import progress
from lazyscope.cli import terminal

from .conftest import refused


class Screen:
    """Stands in for stderr, of a terminal or of a file."""

    encoding = "utf-8"

    def __init__(self, terminal):
        self.terminal, self.text, self.written = terminal, "", threading.Event()

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.text += text
        self.written.set()
        return len(text)

    def flush(self):
        pass


def test_bar_is_shown_to_a_terminal_only(monkeypatch):
    for watched in (False, True):
        screen = Screen(watched)
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")
        with terminal.progress_bar():
            progress.report(1, 3, "RF, N = 45")
            progress.report(10, 0, "descent, step 10")
        assert ("descent, step 10" in screen.text) == watched


def test_where_nobody_watches_lines_tell_how_far_work_has_come(monkeypatch):
    """Also from a step that reports nothing: the first line is there before the first report."""
    monkeypatch.setenv("LAZYSCOPE_PROGRESS", "0.01")
    screen = Screen(terminal=False)
    monkeypatch.setattr(sys, "stderr", screen)
    with terminal.progress_bar() as say:
        assert screen.written.wait(60)
        progress.report(1, 4, "RF, N = 45")
        progress.report(2, 4, "NT, N = 45")
        progress.report(10, 0, "descent, step 10")
        while "step 10" not in screen.text:
            screen.written.wait(60)
        say("a line of the table")
    first, *_, last = [line for line in screen.text.splitlines() if line.startswith(terminal.PROGRESS)]
    assert first.startswith("lazyscope: at work: starting; ")
    assert last.startswith("lazyscope: at work: 2 of 4, NT, N = 45, descent, step 10; ") and last.endswith(" left")
    assert "a line of the table\n" in screen.text


@pytest.mark.parametrize("seconds", ["often", "-1", "nan", "inf"])
def test_seconds_between_lines_are_a_number(monkeypatch, seconds):
    monkeypatch.setenv("LAZYSCOPE_PROGRESS", seconds)
    said = refused("exact", "quadratic", "--d", "9", "--width", "3")
    assert "The LAZYSCOPE_PROGRESS parameter of lazyscope must be a number of seconds" in said


def _lazyscope(*args, **options):
    command = [sys.executable, "-c", "from lazyscope.cli import main; print('ready', flush=True); main()", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_broken_pipe_is_quiet():
    process = _lazyscope("limit", "quadratic", "--d", "9", "--rho", "0.1:1:2000")
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait()


def test_ctrl_c_is_one_line_and_leaves_no_file(here):
    process = _lazyscope(
        "exact", "quadratic", "--regime", "rf", "--width", "900", "--draws", "100000", "--out", "a.csv"
    )
    assert re.fullmatch(r"lazyscope: note: [^\n]* about [^\n]* hours\.\n", process.stderr.readline())
    process.send_signal(signal.SIGINT)
    assert (process.stderr.read(), process.stdout.read()) == ("lazyscope: interrupted\n", "")
    assert process.wait(timeout=60) == 130
    process.stdout.close()
    process.stderr.close()
    assert list(here.iterdir()) == []


def test_a_terminal_without_greek_letters():
    process = _lazyscope("limit", "quadratic", "--d", "9", "--rho", "1", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "quadratic target, d = 9" in out

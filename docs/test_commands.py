"""Every command line shown in the documentation is run, and must print what the page shows."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lazyscope.cli import main

HERE = Path(__file__).parent
PAGES = [HERE.parent / "README.md", *sorted(HERE.glob("*.md")), *sorted(HERE.glob("api/*.md"))]
LONG = ("make", "pip", "lazyscope figure ", "lazyscope explore", "lazyscope lens")  # minutes, the network, a browser
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def shown(page):
    """Yield (command, what the page shows below it) from the console blocks of a page."""
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.replace("\\\n", "").partition("\n")
            if not command.startswith(LONG) or command.endswith(("--list", "--help")):
                yield command, output


COMMANDS = {page.name: list(shown(page)) for page in PAGES}


WIDTH = {"COLUMNS": "80"}
PLAIN = re.compile(r"lazyscope (?!sweep run)([^|<>;&$`]*?)(; echo \"exit \$\?\")?")
"""A call of lazyscope with nothing of a shell but its exit code; not of a sweep, which starts processes of its own."""


def by_shell(command, folder, programs):
    """Return what a command prints, run by a shell in a folder with what is installed in `programs`."""
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    return subprocess.run(
        command, shell=True, cwd=folder, env={**os.environ, **WIDTH, "PATH": path, "PYTHONIOENCODING": "utf-8"},
        text=True, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    ).stdout  # fmt: skip


def called(command):
    """Return what a call of lazyscope prints, made in this process: thirty starts of Python take a minute."""
    arguments, with_code = PLAIN.fullmatch(command).groups()
    done = CliRunner(env=WIDTH).invoke(main, shlex.split(arguments))
    return done.output + (f"exit {done.exit_code}\n" if with_code else "")


def check(commands, run):
    """Run commands; each must print what is shown."""
    for command, expected in commands:
        printed = run(command)
        told = re.sub(r"^lazyscope: at work: .*\n", "", printed, flags=re.MULTILINE)  # on a busy machine
        same = doctest.OutputChecker().check_output(expected.strip() + "\n", told.strip() + "\n", FLAGS)
        assert same, f"$ {command}\n{printed}"


@pytest.mark.parametrize("page", [name for name, commands in COMMANDS.items() if commands])
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch):
    """The blocks of one page share a folder, so that a file written by one command is there for the next."""
    monkeypatch.chdir(tmp_path)
    programs = Path(sys.executable).parent
    check(COMMANDS[page], lambda line: called(line) if PLAIN.fullmatch(line) else by_shell(line, tmp_path, programs))


def test_the_network_of_the_readme(tmp_path, monkeypatch, capsys):
    """Python without prompts is a script that needs an extra: the rest of the README runs without."""
    monkeypatch.chdir(tmp_path)
    (script,) = re.findall(
        r"^```python\n((?!>>>).*?)^```", PAGES[0].read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    exec(compile(script, "README.md", "exec"), {})
    assert "laziness" in capsys.readouterr().out and (tmp_path / "network.html").stat().st_size > 1000

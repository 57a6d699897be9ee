"""Every command line shown in the documentation is run, and must print what the page shows."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def check(commands, folder, programs=Path(sys.executable).parent):
    """Run commands in a folder, with what is installed in `programs`; each must print what is shown."""
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    for command, expected in commands:
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        told = re.sub(r"^lazyscope: at work: .*\n", "", done.stdout, flags=re.MULTILINE)  # on a busy machine
        printed = doctest.OutputChecker().check_output(expected.strip() + "\n", told.strip() + "\n", FLAGS)
        assert printed, f"$ {command}\n{done.stdout}"


@pytest.mark.parametrize("page", [name for name, commands in COMMANDS.items() if commands])
def test_commands_print_what_the_page_shows(page, tmp_path):
    """The blocks of one page share a folder, so that a file written by one command is there for the next."""
    check(COMMANDS[page], tmp_path)


def test_the_network_of_the_readme(tmp_path, monkeypatch, capsys):
    """Python without prompts is a script that needs an extra: the rest of the README runs without."""
    monkeypatch.chdir(tmp_path)
    (script,) = re.findall(
        r"^```python\n((?!>>>).*?)^```", PAGES[0].read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    exec(compile(script, "README.md", "exec"), {})
    assert "laziness" in capsys.readouterr().out and (tmp_path / "network.html").stat().st_size > 1000

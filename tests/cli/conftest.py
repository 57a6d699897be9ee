"""The command line as tests call it: in this process, in a folder of its own."""

import re

import pytest
from click.testing import CliRunner

from lazyscope.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*args):
    """Run what must fail: exit code 2, nothing on stdout, one line on stderr, which is returned."""
    result = run(*args, code=2)
    assert result.stdout == ""
    assert re.fullmatch(r"lazyscope: error: [^\n]+\n", result.stderr)
    return result.stderr

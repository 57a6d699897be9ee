"""The page of the five documents: every statement has a row, every command runs, every key and every number exists."""

import re
import shlex
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import lazyscope as ls
from lazyscope import experiments
from lazyscope.cli import main
from lazyscope.cli.figure import figure

HERE = Path(__file__).parent
COLUMNS = ("place", "says", "here", "command", "numbers")
NUMBER = re.compile(r"(?<![\w.])−?\d+\.\d+(?![\w.])")
KEY = re.compile(r"`((?:limit|exact|simulate|report)/[^`]+)`")
SOURCES = {"ghorbani2019limitations", "mei2019generalization", "montanari2019generalization", "bai2020beyond"}


def rows():
    """Yield the cells of every row of the page."""
    for line in (HERE / "papers.md").read_text(encoding="utf-8").splitlines():
        if re.match(r"\| [PLTMQ] ", line):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in rows()]
SHOWN = [row for row in ROWS if row["command"].startswith("`")]


def numbered(letter):
    """Return the numbers that the places of one document name, such as "Eq. 9"; "Eqs. 8–10" are three of them."""
    found = set()
    for row in ROWS:
        if row["place"].startswith(letter):
            for word, first, last in re.findall(
                r"(Theorem|Lemma|Corollary|Proposition|Figure|Eq)s?\.? (\d+)(?:–(\d+))?", row["place"]
            ):
                found |= {f"{word} {k}" for k in range(int(first), int(last or first) + 1)}
    return found


def counted(**upto):
    """Return "Theorem 1", "Theorem 2" … up to the number given for each word."""
    return {f"{word} {k}" for word, last in upto.items() for k in range(1, last + 1)}


def test_every_numbered_statement_has_a_row():
    """Theorems, lemmas, equations and figures, as the documents count them."""
    assert len(ROWS) > 100 and len({(row["place"], row["says"]) for row in ROWS}) == len(ROWS)
    assert numbered("P") == counted(Theorem=3, Figure=3)
    assert numbered("L") == counted(Theorem=6, Corollary=1, Proposition=1, Eq=17, Figure=2)
    # in Q theorems, lemmas and corollaries are counted together
    lemmas = {f"Lemma {k}" for k in (1, 5, *range(8, 16))}
    assert numbered("Q") == lemmas | {f"Theorem {k}" for k in (2, 4, 6, 7)} | {"Corollary 3"} | counted(Eq=29)


def test_a_row_without_a_command_says_why():
    """A dash, and the reason beside it."""
    for row in ROWS:
        assert row["numbers"], row
        assert row["command"].startswith(("`lazyscope ", "`ls.")) or row["command"] == "—", row


def test_every_key_function_and_page_of_the_page_exists():
    """Keys are beginnings of those in the registry."""
    keys = [one.key for one in (*ls.claims(), *ls.statements())]
    for row in ROWS:
        named = KEY.findall(row["here"])
        functions = re.findall(r"`ls\.(\w+)`", row["here"])
        pages = re.findall(r"{doc}`([\w-]+)`", row["here"] + row["numbers"])
        assert named or functions or pages, row
        assert all(any(known.startswith(key) for known in keys) for key in named), row
        assert all(hasattr(ls, name) for name in functions), row
        assert all((HERE / f"{name}.md").exists() for name in pages), row


def test_what_is_claimed_of_these_sources_is_on_the_page():
    """Statements one by one, claims of the verbs by fidelity and problem."""
    named = {key for row in ROWS for key in KEY.findall(row["here"])}
    for one in (*ls.claims(), *ls.statements()):
        if one.key.startswith("report/"):
            assert one.key in named, f"{one.key} has no row"
        elif SOURCES & set(one.citations):
            kind = "/".join(one.key.split("/")[:2])
            assert any(key.startswith(kind) for key in named), f"{one.key} has no row"


@cache
def printed(command):
    """Return what a command of the page prints, or what an expression of it shows."""
    if command.startswith("ls."):
        return str(eval(command, {"ls": ls, "np": np}))
    done = CliRunner().invoke(main, shlex.split(command)[1:], env={"COLUMNS": "160"})
    assert done.exit_code == 0, f"$ {command}\n{done.output}"
    return done.output


@cache
def pages():
    """Return the text of all pages but this one."""
    return "\n".join(path.read_text(encoding="utf-8") for path in HERE.rglob("*.md") if path.name != "papers.md")


def on_a_page(text):
    """Say whether another page has this number, digit for digit; formulas write minus signs in their own way."""
    digits = re.escape(text.lstrip("−"))
    return re.search(rf"(?<![\d.]){digits}(?!\d)", pages()) is not None


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row["place"])
def test_the_commands_run_and_print_the_numbers(row):
    """Figures take minutes: that their work can be planned is asked of every experiment in tests/experiments."""
    commands, drawn = re.findall(r"`(.*?)`", row["command"]), False
    output = []
    for command in commands:
        words = shlex.split(command)
        if words[1] == "figure":
            given = figure.make_context("figure", words[2:]).params
            assert given["preset"] in experiments.load(words[2]).presets
            drawn = True
        else:
            output += re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", printed(command).replace("−", "-"))
    for text in NUMBER.findall(re.sub(r"\*.*?\*", "", row["numbers"])):  # those in italics are of another page
        digits, value = len(text.partition(".")[2]), float(text.replace("−", "-"))
        shown = any(abs(round(float(number), digits) - value) < 1e-9 for number in output)
        assert shown or (drawn and on_a_page(text)), f"{text} is not in\n" + "\n".join(output)


def test_numbers_in_italics_are_on_another_page():
    for row in ROWS:
        for part in re.findall(r"\*(.*?)\*", row["numbers"]):
            assert all(on_a_page(text) for text in NUMBER.findall(part)), row

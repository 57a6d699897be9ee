"""`lazyscope sweep` on the command line: what people and scripts see."""

import csv
import json
import os
import pty
import re
import subprocess
import sys
import time

import pytest
import xarray as xr

import lazyscope as ls
from lazyscope import sweep
from lazyscope.cli.asking.plan_file import read_plan

from ..cli.conftest import refused as refused_call  # noqa: TID252 (tests are no package that could be named)
from ..cli.conftest import run as call  # noqa: TID252

PLAN = """
problem = "quadratic"
d = 6
regime = ["nt", "nn"]
fidelity = "exact"
width = [2, 3]
draws = 2
"""


def invoke(*args, code=0):
    return call("sweep", *args, code=code)


def refused(*args):
    return refused_call("sweep", *args)


@pytest.fixture
def plan(here):
    (here / "a.toml").write_text(PLAN)
    return here / "a.toml"


def test_run_status_export(here, plan):
    out = invoke("run", "a.toml", "--workers", 1).stdout
    assert "NT, σ = square" in out
    assert "a: 8 computed, 0 had a result already; kept in a.sqlite" in out
    said = json.loads(invoke("run", plan, "--workers", 1, "--json").stdout)
    assert said == {
        "store": str(here / "a.sqlite"), "plan": "a", "tasks": 8, "reused": 8, "computed": 0, "failures": []
    }  # fmt: skip
    assert re.search(r"^a +8 +8 +0 +0 ", invoke("status", "a.sqlite").stdout, re.MULTILINE)
    said = json.loads(invoke("status", "a.sqlite", "--json").stdout)
    assert (said["plans"][0]["done"], said["running"]) == (8, None)
    assert invoke("export", "a.sqlite", "--out", "a.csv").stderr == "wrote a.csv\n"
    lines = [line for line in (here / "a.csv").read_text().splitlines() if not line.startswith("# ")]
    rows = list(csv.DictReader(lines))
    nt = ls.exact(ls.QuadraticTarget.exponential(6), ls.NeuralTangent(), width=[2, 3], draws=2)
    assert [float(row["risk"]) for row in rows if row["regime"] == "NT"] == nt.risk.values.tolist()
    invoke("export", "a.sqlite", "--out", "a.nc", "--plan", "a")
    with xr.open_datatree("a.nc", engine="h5netcdf") as tree:
        assert list(tree.children) == ["000-exact-NT", "001-exact-NN"]
        assert tree["000-exact-NT"].risk_draws.shape == (2, 2)


def test_workers_and_addresses_are_checked_also_where_nothing_is_left_to_compute(here, plan):
    invoke("run", "a.toml", "--workers", 1)
    assert "at least 1. Got 0" in refused("run", "a.toml", "--workers", 0)
    for wrong in ({"workers": 0}, {"address": "host:8786"}, {"backend": "dask", "workers": 1}, {"backend": "ray"}):
        with pytest.raises(ls.InvalidParameter):
            sweep.run(read_plan(plan), here / "a.sqlite", **wrong)


def test_failures_are_told_and_change_the_exit_code(here):
    text = PLAN.replace("exact", "simulate").replace('["nt", "nn"]', '"rf"').replace("[2, 3]", "[4, 90]")
    (here / "a.toml").write_text(text + "samples = 40\n")
    result = invoke("run", "a.toml", "--workers", 1, code=1)
    assert "2 computed, 0 had a result already, 2 failed" in result.stdout
    assert result.stderr.startswith(
        "lazyscope: failed: simulate RF, N = 90, n = 40, draw 0: The samples parameter of simulate"
    )
    assert "take the complete widths only" in refused("export", "a.sqlite", "--out", "a.csv")
    assert not (here / "a.csv").exists()
    told = invoke("export", "a.sqlite", "--out", "a.csv", "--partial").stderr
    assert told == "lazyscope: note: left out: simulate RF, σ = square: N = 90 (not finished)\nwrote a.csv\n"


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("run", "missing.toml"), "missing.toml"),
        (("run", "a.toml", "--store", "missing/a.sqlite"), "folder"),
        (("run", "a.toml", "--store", "."), "folder"),
        (("run", "a.toml", "--workers", "0"), "workers"),
        (("run", "a.toml", "--backend", "ray"), "'ray' is not one of"),
        (("run", "a.toml", "--backend", "dask"), "host:port"),
        (("run", "a.toml", "--address", "127.0.0.1:9"), "--backend dask"),
        (("run", "a.toml", "--store", "a.toml"), "left as it is"),
        (("status", "missing.sqlite"), "no such file"),
        (("status", "a.toml"), "left as it is"),
        (("export", "missing.sqlite", "--out", "a.csv"), "no such file"),
        (("export", "a.toml", "--out", "a.csv"), "left as it is"),
        (("export", "a.toml", "--out", "a.txt"), ".csv or .nc"),
        (("export", "a.toml"), "--out"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_two(plan, snapshot, args, word):
    before = snapshot()
    assert word in refused(*args)
    assert snapshot() == before


def test_a_changed_plan_is_refused_with_what_differs(here, plan, snapshot):
    invoke("run", plan, "--workers", 1)
    plan.write_text(PLAN + "seed = 1\n")
    before = snapshot()
    assert "a change of seed from 0 to 1" in refused("run", plan)
    assert snapshot() == before


def test_an_unknown_plan_of_a_store(plan):
    invoke("run", plan, "--workers", 1)
    assert "be one of the plans of a.sqlite: a. Got 'b'" in refused(
        "export", "a.sqlite", "--out", "a.csv", "--plan", "b"
    )


def test_a_cluster_that_is_not_there_is_one_line(plan, run, snapshot):
    before = snapshot()
    code, out, err = run("run", plan, "--backend", "dask", "--address", "127.0.0.1:9", timeout=120)
    assert (code, out) == (2, "")
    assert re.fullmatch(
        r"lazyscope: error: The address parameter [^\n]+ 127\.0\.0\.1:9, where none answers [^\n]+\n", err
    )
    assert snapshot() == before


def test_two_drivers_of_one_store(here, plan_file, lazyscope, run):
    plan = plan_file(steps=2000)
    lazyscope("run", plan, "--workers", 1)
    while not (here / "plan.sqlite").exists() or not sweep.status(here / "plan.sqlite")[0]:
        time.sleep(0.05)
    code, out, err = run("run", plan)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lazyscope: error: [^\n]+ be filled by one run at a time\. [^\n]+\n", err)
    assert "being filled by process " in invoke("status", "plan.sqlite").stdout


def test_a_bar_with_the_time_that_remains_is_shown_to_a_terminal_only(here, plan):
    code = "from lazyscope.cli import main; main()"
    command = [sys.executable, "-c", code, "sweep", "run", "a.toml", "--workers", "1"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # what Linux says of a terminal whose other end is closed
        pass
    os.close(ours)
    assert "8 computed" in process.communicate()[0]
    assert b"/8" in shown
    assert b"left" in shown

"""The real command in its own process, and plans that take seconds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lazyscope as ls
from lazyscope import sweep

PLAN = """
problem = "quadratic"
d = {d}
regime = ["rf", "nt", "nn"]
fidelity = ["exact", "simulate"]
width = [4, 12, {d}, 60]
draws = {draws}
samples = 20_000

[sgd]
steps = {steps}
batch = 20
step_sizes = [0.005, 0.01]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def plan_file(here):
    """A function that writes a plan; by default one of 96 short tasks."""

    def write(name="plan.toml", d=20, draws=4, steps=200, text=PLAN):
        path = here / name
        path.write_text(text.format(d=d, draws=draws, steps=steps), encoding="utf-8")
        return path

    return write


@pytest.fixture
def lazyscope(here):
    """Start `lazyscope sweep …` as a leader of its own process group; whatever is left of it dies with the test."""
    started = []

    def start(*args):
        command = [sys.executable, "-c", "from lazyscope.cli import main; main()", "sweep", *map(str, args)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture
def run(lazyscope):
    """Run `lazyscope sweep …` to its end and return (exit code, stdout, stderr)."""

    def run(*args, timeout=600):
        process = lazyscope(*args)
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err

    return run


@pytest.fixture
def workers_of():
    """A function that returns the worker processes of a driver that are alive."""

    def workers(pid):
        found = []
        for task in Path(f"/proc/{pid}/task").glob("*"):
            try:
                found += [int(child) for child in (task / "children").read_text().split()]
            except OSError:
                continue
        return [child for child in found if b"popen_loky" in _command(child)]

    return workers


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def alive():
    """A function that says whether a process is there and not a zombie."""

    def alive(pid):
        try:
            return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return False

    return alive


@pytest.fixture
def tiny():
    """A plan of 36 tasks of a few milliseconds each, of every kind."""
    problems = [ls.QuadraticTarget.exponential(8), ls.GaussianMixture.three_level(8)]
    protocol = ls.SGD(steps=60, batch=10, step_sizes=(0.005, 0.01), test=500)
    return sweep.Plan.grid(
        "tiny", problems, [ls.RandomFeatures("relu"), ls.NeuralTangent(), ls.Trained()], ["exact", "simulate"],
        widths=[3, 9, 12], draws=1, seed=5, samples=2000, protocol=protocol,
    )  # fmt: skip


@pytest.fixture
def snapshot(here):
    """A function that returns every file of the folder with its bytes."""

    def snapshot():
        return {os.fspath(path.relative_to(here)): path.read_bytes() for path in here.rglob("*") if path.is_file()}

    return snapshot

"""Random command lines over every subcommand: exit code 0 or 2, one line of refusal, no NaN, no file but those asked.

Commands run inside a few worker processes, each in a folder of its own that holds the same few input files; some are
run again, there or in a process of their own, and must then do the same. What is tried follows from the seed and the
number of the try alone, so that one try is done again by

    python -m soak.commands SEED NUMBER
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from soak.grammar import PLANS, Line, line, unknown
from soak.sweeps import environment, without_progress
from soak.tally import Deadline, Tally

GOALS = {"tried": 2000, "valid": 1000}
_TRIES = 2400
_WORKERS = 2
_AGAIN = 0.08  # share of the commands that are run twice
_REAL = 0.4  # share of these whose second run is a process of its own
_OFTEN = 25  # tries after which a subcommand must have had an answer
_WORK = 30.0  # seconds of processor time after which a command is cut off; it must have told how long it takes
_PATIENCE = 120  # seconds by the clock after which a command is cut off, and not judged: the machine may be busy
# What most commands import, in the process that the workers are forked from: a new worker then starts in no time.
_WARM = ["lazyscope.cli", "lazyscope.sweep", "matplotlib.pyplot", "scipy.optimize", "numba", "xarray", "h5netcdf"]
_NUMBERS = ("risk", "error", "margin", "train", "bias", "variance", "end", "smallest")  # that all regimes have
_GRIDS = ("compare", "flow", "lens")  # whose netCDF has places without a number: a width that one regime alone has
_MEMORY = 6 * 2**30
_NAN = re.compile(r"(?<![\w./-])nan(?![\w./-])", re.IGNORECASE)
# one line; above it only how long the work would take, where it had begun and then met what no theory covers
_REFUSAL = re.compile(r"(lazyscope: note: [^\n]+\n)*lazyscope: error: [^\n]+\n")
_WARNING = re.compile(r"\w*Warning: |Traceback \(most recent")


class _TooSlow(BaseException):
    """The command was cut off."""


@dataclass
class Outcome:
    """What one command did."""

    words: list[str]
    code: int | None
    stdout: str = ""
    stderr: str = ""
    problems: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    real: bool = False  # whether it was run again in a process of its own


def inputs(folder: Path) -> None:
    """Write the files that commands may read: the same in every folder."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((5, 5))
    folder.joinpath("B.csv").write_text("3\n2\n1\n0.5\n0\n")
    folder.joinpath("one.csv").write_text("1.8016\n")
    np.save(folder / "B.npy", root @ root.T)
    folder.joinpath("delta.csv").write_text("0.5,0.25,0.25,0.1,-0.1\n")
    np.save(folder / "delta.npy", 0.05 * (root + root.T))
    folder.joinpath("sigma.csv").write_text("2,1,1,1,1.5\n")
    table = rng.standard_normal((60, 3))
    lines = [f"{a:.4f},{b:.4f},{c:.4f},{a * b + 0.1 * c:.4f}" for a, b, c in table]
    folder.joinpath("table.csv").write_text("\n".join(["x0,x1,x2,y", *lines]) + "\n")
    for word, text in PLANS.items():
        folder.joinpath(f"{word}.toml").write_text(text)
    folder.joinpath("folder.csv").mkdir()
    for name in ("mine.csv", "mine.json", "mine.png", "mine.html"):
        folder.joinpath(name).write_text("precious\n")


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _start(store: Path) -> None:
    """Prepare a worker: memory bounded, warnings shown each time as they are shown to a user the first time."""
    global _STORE
    _STORE = store
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # of commands that start others, which print on their own
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.resetwarnings()
    warnings.simplefilter("always")
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    signal.signal(signal.SIGALRM, _too_slow)
    signal.signal(signal.SIGPROF, _too_slow)


_STORE = Path()
_LATE: list[int] = []  # by which signal this process cut a command off: the exception itself may be caught on its way


def _too_slow(number: int, frame: Any) -> None:
    _LATE.append(number)
    raise _TooSlow


def _end_helpers() -> None:
    """End the idle processes that joblib keeps for minutes: this process would wait for them at its own end."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    if loky is not None and loky._executor is not None:
        loky._executor.shutdown(wait=True, kill_workers=True)


def run(words: list[str], store: Path, how: Callable[[Outcome, Path], None] | None = None) -> Outcome:
    """Run one command in a fresh folder and judge it; none after one that was cut off: its imports may be half done."""
    outcome = Outcome(words, None)
    if _LATE:
        return outcome
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        inputs(folder)
        if store.is_file():
            shutil.copy(store, folder / "store.sqlite")
        before = _contents(folder)
        (how or _here)(outcome, folder)
        if outcome.code is None and not outcome.problems:
            return outcome
        after = _contents(folder)
        outcome.files = {path: data for path, data in after.items() if before.get(path) != data}
        outcome.problems += [f"{path} is gone" for path in sorted({*before} - {*after})]
        _judge(outcome, before, folder)
    return outcome


def _here(outcome: Outcome, folder: Path) -> None:
    """Run a command in this process; after so much processor time without a word it is cut off, and told."""
    from lazyscope.cli import main

    home = Path.cwd()
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    os.chdir(folder)
    signal.alarm(_PATIENCE)
    signal.setitimer(signal.ITIMER_PROF, _WORK)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(outcome.words)
    except SystemExit as end:
        outcome.code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except _TooSlow:
        pass
    except BaseException as error:
        outcome.problems.append(f"a traceback: {type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        os.chdir(home)
        _end_helpers()
    out.flush()
    err.flush()
    outcome.stdout, outcome.stderr = (stream.buffer.getvalue().decode() for stream in (out, err))
    if _LATE:  # it went on, or ended by the interruption: neither is a fault of its own
        silent = not outcome.stderr and signal.SIGPROF in _LATE
        outcome.code, outcome.problems = None, [f"{_WORK} s of processor time without a word"] if silent else []
    outcome.stderr = without_progress(outcome.stderr)


def _really(outcome: Outcome, folder: Path) -> None:
    """Run a command as a user does, in a process of its own."""
    words = [sys.executable, "-c", "from lazyscope.cli import main; main()", *outcome.words]
    try:
        done = subprocess.run(
            words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return
    outcome.code, outcome.stdout, outcome.stderr = done.returncode, done.stdout, without_progress(done.stderr)


def _value(words: list[str], option: str) -> str | None:
    return next((word.partition("=")[2] for word in words if word.startswith(f"{option}=")), None)


def _promised(words: list[str]) -> set[str]:
    """Return the files that a command that succeeds must have written, by its words."""
    if "--list" in words or words[0] in ("claims", "cite", "errata", "bench", "figure"):
        return set()
    if words[:2] == ["sweep", "run"]:
        return {_value(words, "--store") or f"{Path(words[2]).stem}.sqlite"}
    promised = {_value(words, option) for option in ("--out", "--plot", "--report", "--export")} - {None}
    if "--plot" in words:
        promised.add("lazyscope-" + "-".join(words[: 1 if words[0] == "forecast" else 2]) + ".png")
    if words[0] == "lens" and "--json" not in words and _value(words, "--report") is None:
        promised.add("lens.html")
    return {str(Path(str(name))) for name in promised}


def _judge(outcome: Outcome, before: dict[str, bytes], folder: Path) -> None:
    """Add what is wrong with an outcome."""
    tell, words = outcome.problems.append, outcome.words
    if outcome.code not in (0, 2) and not outcome.problems:
        tell(f"exit code {outcome.code}")
    if _WARNING.search(outcome.stderr) or _WARNING.search(outcome.stdout):
        tell("a warning or a traceback is shown")
    if outcome.code == 2:
        if not _REFUSAL.fullmatch(outcome.stderr):
            tell("a refusal is not one line on stderr")
        if outcome.stdout:
            tell("a refusal prints on stdout")
        if outcome.files:
            tell(f"a refusal left {sorted(outcome.files)}")
    if outcome.code != 0:
        return
    if "--help" not in words and "-h" not in words:
        promised = _promised(words)
        if promised - {*outcome.files}:
            tell(f"promised and not written: {sorted(promised - {*outcome.files})}")
        if {*outcome.files} - promised:
            tell(f"written and not promised: {sorted({*outcome.files} - promised)}")
        replaced = {*outcome.files} & {*before}
        if replaced and "--force" not in words:
            tell(f"replaced without --force: {sorted(replaced)}")
    if "--json" in words:
        try:
            json.loads(outcome.stdout, parse_constant=_constant)
        except ValueError as error:
            tell(f"--json: {error}")
    shown = {"stdout": outcome.stdout}
    shown |= {name: data.decode() for name, data in outcome.files.items() if name.endswith((".csv", ".json"))}
    for name, text in shown.items():
        if _NAN.search("\n".join(part for part in text.splitlines() if not part.startswith("#"))):
            tell(f"NaN in {name}")
    for name in outcome.files:
        if name.endswith(".nc") and words[0] not in _GRIDS:
            _no_nan_in(outcome.files[name], name, tell)


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _no_nan_in(data: bytes, name: str, tell: Any) -> None:
    import h5py

    with h5py.File(io.BytesIO(data), "r") as file:

        def visit(path: str, node: Any) -> None:
            if isinstance(node, h5py.Dataset) and path.rpartition("/")[2] in _NUMBERS and np.isnan(node[()]).any():
                tell(f"NaN in {path} of {name}")

        file.visititems(visit)


def trial(seed: int, number: int) -> tuple[Outcome, Line]:
    """Run the command of this number, some of them twice: the same command must leave the same bytes."""
    from lazyscope.cli import main

    rng = np.random.default_rng([seed, number])
    written: Line = line(rng, main)
    twice = rng.random() < _AGAIN and written.path[0] not in ("lens", "sweep")
    how = _really if rng.random() < _REAL else _here
    outcome = run(written.words, _STORE)
    if twice and outcome.code is not None:
        again = run(written.words, _STORE, how)
        outcome.problems += [f"a second run: {problem}" for problem in again.problems]
        outcome.real = how is _really and again.code is not None
        if again.code is not None and (again.stdout, again.files) != (outcome.stdout, outcome.files):
            names = [name for name in outcome.files if again.files.get(name) != outcome.files[name]]
            outcome.problems.append(f"a second run differs in {names or 'what it prints'}")
    outcome.files = {}
    return outcome, written


def attack(tally: Tally, rng: np.random.Generator, deadline: Deadline) -> None:
    """Run random commands in a few workers until there are enough of them or the time is up."""
    from lazyscope.cli import main

    for name in unknown(main):
        tally.check(False, f"soak/grammar.py does not know what {name} means")
    seed = int(rng.integers(2**31))
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        store = _store(Path(name))
        numbers, answered = count(), Counter[tuple[str, bool]]()
        while deadline and (tally.tried < _TRIES or tally.short):
            try:
                _batch(tally, numbers, seed, store, deadline, answered)
            except BrokenProcessPool:
                tally.check(False, f"a worker died; the tries around number {tally.tried} of seed {seed}")
    for path in sorted({path for path, _ in answered}):
        tried = answered[path, False] + answered[path, True]
        if tried >= _OFTEN and not answered[path, True]:
            tally.check(False, f"lazyscope {path}: none of {tried} commands that a user would write has an answer")


def _store(folder: Path) -> Path:
    """Return a store with the results of the plan, for `sweep status` and `sweep export`."""
    from lazyscope import sweep
    from lazyscope.cli.asking.plan_file import read_plan

    inputs(folder)
    sweep.run(read_plan(folder / "plan.toml"), folder / "kept.sqlite", workers=1)
    return folder / "kept.sqlite"


def _batch(
    tally: Tally, numbers: Any, seed: int, store: Path, deadline: Deadline, answered: Counter[tuple[str, bool]]
) -> None:
    """Keep the workers busy until there is no time or nothing left to do, or one of them has cut a command off."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_WARM)
    with ProcessPoolExecutor(_WORKERS, context, _start, (store,)) as pool:
        running: dict[Any, int] = {}
        fresh = True

        def more() -> bool:
            return bool(fresh and deadline and (tally.tried + len(running) < _TRIES or tally.short))

        while running or more():
            while len(running) < 2 * _WORKERS and more():
                number = next(numbers)
                running[pool.submit(trial, seed, number)] = number
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                number = running.pop(future)
                outcome, written = future.result()
                _record(tally, outcome, seed, number)
                if not written.spoilt:
                    answered[" ".join(written.path), outcome.code == 0] += 1
                fresh = fresh and outcome.code is not None


def _record(tally: Tally, outcome: Outcome, seed: int, number: int) -> None:
    if outcome.code is None and not outcome.problems:
        tally.count("cut off")
        return
    tally.count({0: "valid", 2: "refused", None: "silent"}.get(outcome.code, "neither"))
    if outcome.real:
        tally.count("real processes")
    command = shlex.join(["lazyscope", *outcome.words])
    said = outcome.stderr.strip()[-400:]
    what = f"{'; '.join(outcome.problems)}: {command} (python -m soak.commands {seed} {number}): {said}"
    tally.check(not outcome.problems, what)


if __name__ == "__main__":
    _screen = os.fdopen(os.dup(1), "w")  # a worker prints nowhere
    with tempfile.TemporaryDirectory(prefix="soak-") as _folder:
        _start(_store(Path(_folder)))
        _outcome, _ = trial(int(sys.argv[1]), int(sys.argv[2]))
    print(shlex.join(["lazyscope", *_outcome.words]), _outcome.code, *_outcome.problems, sep="\n", file=_screen)
    print(_outcome.stdout, _outcome.stderr, sep="\n", file=_screen)

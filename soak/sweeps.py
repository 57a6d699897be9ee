"""What the attacks on sweeps share: a plan, the command in a process of its own, and the bytes of a quiet run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from lazyscope.cli.terminal import PROGRESS

PLAN = """
problem = "quadratic"
d = {d}
regime = ["rf", "nt", "nn"]
fidelity = ["exact", "simulate"]
width = [4, 12, {d}, 60]
draws = {draws}
samples = 5_000
seed = {seed}

[sgd]
steps = {steps}
batch = 20
step_sizes = [0.005, 0.01]
"""
_LONG = 300.0  # seconds after which a command that has not ended is a finding: the longest here takes about ten


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def one_line(self) -> bool:
        """Whether it refused as it should: exit code 2, and one line on the standard error."""
        return self.code == 2 and self.err.startswith("lazyscope: error: ") and self.err.count("\n") == 1

    def __str__(self) -> str:
        """The end of what it said, on one line."""
        return f"exit {self.code}: {' | '.join((self.err or self.out).strip().splitlines()[-3:])[:600]}"


def words(*args: object) -> list[str]:
    """Return `lazyscope sweep …` as the words of a process."""
    return [sys.executable, "-c", "from lazyscope.cli import main; main()", "sweep", *map(str, args)]


def shown(*args: object) -> str:
    """Return a command as one would type it."""
    return shlex.join(["lazyscope", "sweep", *map(str, args)])


def environment() -> dict[str, str]:
    """Return ours with one thread of linear algebra a process, and the package found from any folder."""
    path = os.pathsep.join(str(Path(place).resolve()) for place in sys.path if place and Path(place).is_dir())
    return os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}


def started(
    *args: object, folder: Path, prefix: tuple[str, ...] = (), more: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a command as the leader of its own group, with its output in files: orphans hold no pipe of ours."""
    with (folder / "out.log").open("w") as out, (folder / "err.log").open("w") as err:
        return subprocess.Popen(
            [*prefix, *words(*args)], stdout=out, stderr=err, cwd=folder, env=environment() | (more or {}),
            start_new_session=True,
        )  # fmt: skip


def ended(process: subprocess.Popen[str], folder: Path) -> Said:
    """Wait for a command; one that hangs is killed with its group, and told by its exit code -9."""
    try:
        code = process.wait(_LONG)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    out, err = ((folder / name).read_text(errors="replace") for name in ("out.log", "err.log"))
    return Said(code, out, without_progress(err))


def without_progress(text: str) -> str:
    """Leave the lines out that tell how far the work is: a busy machine makes short work long enough for them."""
    return "".join(line for line in text.splitlines(True) if not line.startswith(PROGRESS))


def said(*args: object, folder: Path, prefix: tuple[str, ...] = ()) -> Said:
    """Run a command to its end."""
    return ended(started(*args, folder=folder, prefix=prefix), folder)


def exported(store: Path, folder: Path) -> bytes:
    """Return the bytes of what a store exports."""
    from lazyscope import sweep

    out = folder / "exported.csv"
    sweep.export(store, out)
    return out.read_bytes()


def group(leader: int) -> list[int]:
    """Return the processes of a group that are alive."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, session = status.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.append(int(status.parent.name))
    return found


def none_left(leader: int, seconds: float = 100.0) -> bool:
    """Wait until a group is gone, far less long than the five minutes that idle workers may live; else kill it."""
    limit = time.monotonic() + seconds
    while group(leader) and time.monotonic() < limit:
        time.sleep(0.05)
    left = group(leader)
    if left:
        os.killpg(leader, signal.SIGKILL)
    return not left

"""`python -m soak`: every attack within its share of the time, two at once, and one table of what was found.

Exit code 0 says that nothing failed and every attack reached its numbers, 1 that something failed, and 3 that nothing
failed but some attack had no time, or no right, to do all that it should.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import numpy as np
import psutil

from soak.sweeps import environment
from soak.tally import Deadline, Tally

# Shares of the time. One lane has the commands and then helps out, the other the rest, in this order. An attack that
# has reached its numbers ends before its share is over, and those that are still to come divide what it leaves.
SHARES = {
    "commands": 1.0, "calls": 0.2, "store": 0.14, "kills": 0.16, "cluster": 0.12, "extremes": 0.12, "explorer": 0.22,
}  # fmt: skip


GRACE = 60.0  # seconds that an attack may take beyond its time, to end what it has begun


def allotted(name: str, left: float) -> float:
    """Return the seconds of an attack that begins now: its share of what is left for it and those after it.

    >>> round(allotted("explorer", 400.0)), round(allotted("store", 760.0))
    (400, 140)
    """
    order = list(SHARES)
    lane = [name] if name == "commands" else order[order.index(name) :]
    return left * SHARES[name] / sum(SHARES[other] for other in lane)


def one(name: str, seed: int, seconds: float) -> Tally:
    """Run one attack in this process."""
    module = importlib.import_module(f"soak.{name}")
    tally = Tally(name, goals=module.GOALS)
    module.attack(tally, np.random.default_rng([seed, sorted(SHARES).index(name)]), Deadline(seconds))
    return tally


def started(name: str, seed: int, seconds: float) -> Tally:
    """Run one attack in a process of its own; a crash or a hang of it is a finding."""
    command = [sys.executable, "-m", "soak", "--only", name, "--seed", str(seed), "--seconds", str(seconds), "--json"]
    own = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        said, errors = own.communicate(timeout=seconds + GRACE)
        return Tally(**json.loads(said.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        end(psutil.Process(own.pid))
        own.communicate()
        return Tally(name, tried=1, failed=1, findings=[f"did not stop {GRACE:.0f} s after its deadline"])
    except (IndexError, ValueError, TypeError):
        return Tally(name, tried=1, failed=1, findings=[f"ended with {own.returncode}: {errors.strip()[-2000:]}"])


def end(process: psutil.Process) -> None:
    """Kill a process and all that it has started: an explorer or a worker would outlive it."""
    for other in (*process.children(recursive=True), process):
        with contextlib.suppress(psutil.NoSuchProcess):
            other.kill()


def table(tallies: list[Tally], seed: int) -> str:
    """Return the table and below it what was found."""
    lines = [f"seed {seed}", f"{'attack':<10} {'tried':>7} {'failed':>7}  what"]
    for tally in tallies:
        counts = ", ".join(f"{number} {what}" for what, number in sorted(tally.counts.items()))
        lines.append(f"{tally.name:<10} {tally.tried:>7} {tally.failed:>7}  {counts}")
    lines += [
        f"{tally.name}: not reached within its time: {reached} of {tally.goals[what]:,} {what}"
        for tally in tallies
        for what, reached in tally.short.items()
    ]
    lines += [f"{tally.name}: {finding}" for tally in tallies for finding in tally.findings]
    return "\n".join(lines)


def code(tallies: list[Tally]) -> int:
    """Return the exit code: 1 where something failed, 3 where only a number was not reached."""
    if any(tally.failed for tally in tallies):
        return 1
    return 3 if any(tally.short for tally in tallies) else 0


def main() -> int:
    """Parse the words, run, print."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="what is tried follows from it")
    parser.add_argument("--minutes", type=float, default=20.0, help="bound on the whole run")
    parser.add_argument("--only", choices=sorted(SHARES), help="run one attack, in this process")
    parser.add_argument("--seconds", type=float, help="with --only: how long it may go on")
    parser.add_argument("--json", action="store_true", help="with --only: print the tally as a line of JSON")
    words = parser.parse_args()
    whole = 60 * (words.minutes - 1)
    if words.only:
        tally = one(words.only, words.seed, words.seconds or whole * SHARES[words.only])
        print(json.dumps(asdict(tally)) if words.json else table([tally], words.seed))
        return code([tally])
    deadline = Deadline(whole)
    with ThreadPoolExecutor(2) as lanes:
        tallies = list(lanes.map(lambda name: started(name, words.seed, allotted(name, deadline.left)), SHARES))
    print(table(tallies, words.seed))
    return code(tallies)


if __name__ == "__main__":
    sys.exit(main())

"""`lazyscope bench`: performance as ratios against peers, from a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from lazyscope.cli.asking import unused
from lazyscope.errors import LazyscopeError


@click.command()
@click.argument("names", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="Name the benchmarks, and run none.")
def bench(names: tuple[str, ...], listing: bool) -> None:
    """Run all benchmarks, or those with these NAMES: each a ratio of two things measured in the same run.

    Prints a table, writes benchmarks/results/NAME.json, and exits with 1 where a bound does not hold. Benchmarks belong
    to a checkout of the project, where `make bench` also installs their peers.

    For example `lazyscope bench limit_curves exact_rf`.
    """
    unused.refuse("lazyscope bench", (), ("names",) * listing, "--list")
    checkout = Path(__file__).parents[3]
    if not (checkout / "benchmarks" / "__main__.py").is_file():
        raise LazyscopeError(
            "The benchmarks must be there, and belong to a checkout of lazyscope; this one is installed without it. "
            "Run `make bench` in a checkout."
        )
    command = [sys.executable, "-m", "benchmarks"]
    if listing:
        done = subprocess.run([*command, "--list"], cwd=checkout, check=True, text=True, stdout=subprocess.PIPE)
        click.echo(done.stdout, nl=False)
        return
    sys.exit(subprocess.run([*command, *names], cwd=checkout, check=False).returncode)

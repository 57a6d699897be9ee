"""The regime `mf` of `lazyscope simulate`: particles that descend on n samples of any problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from lazyscope.errors import InvalidParameter

if TYPE_CHECKING:
    import xarray as xr

    from lazyscope.activations import Activation
    from lazyscope.problems import Problem
    from lazyscope.protocols import ParticleDescent

SAMPLES = 1000  # n, where none is given


def options() -> tuple[click.Option, ...]:
    """Return the options that only the mean field has."""
    return (
        click.Option(["--steps"], type=int, help="Of the descent of particles, for mf: 2000 by default."),
        click.Option(["--bound"], type=float, help="A, for mf: particles live on |a| ≤ A, ‖w‖ ≤ 1; 4 by default."),
    )


def descent_of(owner: str, options: dict[str, Any], wanted: bool) -> ParticleDescent | None:
    """Return the descent that was asked for; None, and no option of it, where no particles are."""
    from lazyscope.protocols import ParticleDescent

    given = {name: options[name] for name in ("steps", "bound") if options[name] is not None}
    if given and not wanted:
        raise InvalidParameter.of(owner, f"--{next(iter(given))}", "go with the regime mf", "no mf", "Leave it out.")
    return ParticleDescent(**given) if wanted else None


def simulate(
    problem: Problem,
    activation: Activation | str,
    *,
    width: Sequence[float],
    descent: ParticleDescent | None,
    samples: int | None,
    **sizes: Any,
) -> xr.Dataset:
    """Return the risk of each number of particles; `sizes` are those of the verb."""
    from lazyscope.regimes import MeanField
    from lazyscope.runs import verbs

    n = SAMPLES if samples is None else samples
    return verbs.simulate(problem, MeanField(activation), width=width, samples=n, protocol=descent, **sizes)

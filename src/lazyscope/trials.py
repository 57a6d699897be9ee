"""One trial is the unit of work for problems that leave their dimension open: one draw of weights and data.

All ridges of a trial see the same draw. As for `draws.Draw`, the numbers depend on the fields of the trial alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lazyscope.draws import Row
from lazyscope.evidence import Claim
from lazyscope.problems.base import Problem
from lazyscope.regimes import Regime
from lazyscope.registry import find
from lazyscope.results import dataset

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Trial:
    """One draw of N weights and n samples in d dimensions, with every ridge from it.

    >>> import lazyscope as ls
    >>> target, regime = ls.LinearTarget(noise=0.5), ls.RandomFeatures("relu")
    >>> Trial(target, regime, d=20, width=30, samples=60, ridge=(0.1, 1.0)).compute()["risk"].shape
    (2,)
    """

    problem: Problem
    regime: Regime
    d: int
    width: int
    samples: int
    ridge: tuple[float, ...] = ()
    method: str | None = None
    number: int = 0
    seed: int = 0
    fidelity: ClassVar[Literal["simulate"]] = "simulate"

    @property
    def claim(self) -> Claim:
        """The claim that serves it."""
        return find(self.fidelity, self.problem, self.regime, self.method)

    @property
    def label(self) -> str:
        """A few words for a progress bar."""
        return f"{self.regime.label}, N = {self.width}, n = {self.samples}, d = {self.d}"

    @property
    def size(self) -> int:
        """What tells long work from short."""
        return self.width * self.samples

    def pieces(self) -> list[Trial]:
        """Return itself: it is as small as work gets."""
        return [self]

    def compute(self) -> Row:
        """Do the work; every array of the row has the shape of `ridge`, or none where the method knows no ridge."""
        where = (self.d, self.width, self.samples, self.ridge)
        row = self.claim.compute(self.problem, self.regime, *where, self.seed, self.number)
        return {name: np.asarray(value) for name, value in row.items()}


def assemble(trials: Sequence[Trial], rows: Sequence[Row], scalar: Sequence[str] = ()) -> xr.Dataset:
    """Return the result of the verb from trials that differ in number and width alone; `scalar` names lost dimensions.

    Every variable is its mean over draws, with its standard error beside it from two draws on: `stderr` for `risk`,
    whose single draws are in `risk_draws`, and `name_stderr` for the others.
    """
    first = trials[0]
    widths = list(dict.fromkeys(trial.width for trial in trials))
    draws = len(trials) // len(widths)
    dims = ("width", "ridge") if first.ridge else ("width",)
    variables: dict[str, tuple[tuple[str, ...], Any]] = {}
    for name in rows[0]:
        of_draws = np.stack(
            [[row[name] for trial, row in zip(trials, rows, strict=True) if trial.width == N] for N in widths]
        )  # (width, draw, ridge)
        variables[name] = (dims, of_draws.mean(axis=1))
        if draws > 1:
            error = "stderr" if name == "risk" else f"{name}_stderr"
            variables[error] = (dims, of_draws.std(axis=1, ddof=1) / np.sqrt(draws))
            if name == "risk":
                variables["risk_draws"] = ((*dims, "draw"), np.moveaxis(of_draws, 1, -1))
    coordinates: dict[str, tuple[tuple[str, ...], Any]] = {
        "width": (("width",), np.array(widths)),
        "psi1": (("width",), np.array(widths) / first.d),
        "psi2": ((), first.samples / first.d),
    }
    if first.ridge:
        coordinates["ridge"] = (("ridge",), np.array(first.ridge))
    arguments: dict[str, Any] = {
        "width": widths,
        "samples": first.samples,
        "d": first.d,
        "ridge": list(first.ridge) or None,
        "method": first.method,
        "draws": draws,
        "seed": first.seed,
    }
    whole = dataset(
        coordinates,
        variables,
        claim=first.claim,
        problem=first.problem,
        regime=first.regime,
        arguments={name: value for name, value in arguments.items() if value is not None},
    )
    return whole.isel({name: 0 for name in scalar if name in whole.dims})


def stderr_of(result: xr.Dataset, name: str) -> NDArray[Any] | None:
    """Return the standard error of a variable; None from a single draw."""
    error = "stderr" if name == "risk" else f"{name}_stderr"
    return result[error].values if error in result else None
